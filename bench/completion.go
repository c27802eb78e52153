package bench

import "sync/atomic"

// completions checks that a Conn calls every done exactly once. One goroutine
// sends; done comes from anywhere.
type completions struct {
	sent      atomic.Uint64 // sends that are under way or accepted
	done      atomic.Uint64 // first calls
	failed    atomic.Uint64 // of them with an error
	duplicate atomic.Uint64 // further calls, and calls for refused sends

	tokens []*token
	cursor int
}

// token is one done function with the knowledge whether a call is due. Tokens
// are used again once their call came: sending allocates nothing in the steady
// state.
type token struct {
	owner *completions
	armed atomic.Bool
	call  func(error)
}

// maxTries bounds the search for a free token. Completions come nearly in the
// order of sending, so the oldest token is free or almost all are taken.
const maxTries = 4

// arm returns a free token whose call is expected from now on: the send counts
// before it is tried, since its echo may come back before the call returns.
func (c *completions) arm() *token {
	for range min(maxTries, len(c.tokens)) {
		t := c.tokens[c.cursor]
		c.cursor++
		if c.cursor == len(c.tokens) {
			c.cursor = 0
		}
		if !t.armed.Load() {
			t.armed.Store(true)
			c.sent.Add(1)
			return t
		}
	}
	t := &token{owner: c}
	t.call = t.complete
	t.armed.Store(true)
	c.sent.Add(1)
	c.tokens = append(c.tokens, t)
	return t
}

// disarm takes back a token whose send was refused.
func (t *token) disarm() {
	t.owner.sent.Add(^uint64(0))
	if !t.armed.CompareAndSwap(true, false) {
		// The call came although the send was refused: it was counted as a
		// completion, and is none.
		t.owner.done.Add(^uint64(0))
		t.owner.duplicate.Add(1)
	}
}

func (t *token) complete(err error) {
	if !t.armed.CompareAndSwap(true, false) {
		t.owner.duplicate.Add(1)
		return
	}
	if err != nil {
		t.owner.failed.Add(1)
	}
	t.owner.done.Add(1)
}

// settled reports whether every accepted send has completed.
func (c *completions) settled() bool { return c.done.Load() >= c.sent.Load() }

// missing is how many completions are outstanding.
func (c *completions) missing() uint64 {
	sent, done := c.sent.Load(), c.done.Load()
	if done >= sent {
		return 0
	}
	return sent - done
}
