package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
)

// singleFlight is the number of bytes in flight per client up to which a Conn
// without TrySend is driven by one goroutine: every transport holds as much in
// its buffers, so that a send that waits cannot keep the echoes from being read.
const singleFlight = 128 << 10

// echoClient is one closed loop. Sequence numbers start at 0 in each phase.
//
// In the loop with one goroutine all fields belong to it. With a second one that
// sends, it owns what submit writes, and the shared state is next and slots.
type echoClient struct {
	r    *round
	id   uint16
	conn Conn
	try  TrySender // nil if the Conn has none
	comp completions
	out  []byte // message being sent

	tag      uint32
	measured bool
	next     atomic.Uint64  // sequence of the next message; below it all were sent
	slots    []atomic.Int64 // time of submission by sequence, modulo; 0 when back
	refused  int64          // when the message at next was refused for lack of room, or 0
	expected uint64         // lowest sequence that is not back
	settled  uint64         // messages that are back or given up
	in       []byte         // buffer of Receive
	wake     chan struct{}  // a message was submitted; nil with one goroutine

	verified uint64 // echoes without fault in this phase
	last     int64  // time of the last echo
}

func newEchoClient(r *round, id int, conn Conn) *echoClient {
	size := 256
	for size < 4*r.cfg.Window {
		size *= 2
	}
	c := &echoClient{
		r:     r,
		id:    uint16(id),
		conn:  conn,
		out:   make([]byte, r.pat.size),
		in:    make([]byte, 0, r.pat.size),
		slots: make([]atomic.Int64, size),
	}
	c.try, _ = conn.(TrySender)
	return c
}

// phase runs the closed loop until the deadline and then waits for what is in
// flight, as long as ctx allows. Times are those of the round's clock.
func (c *echoClient) phase(ctx context.Context, measured bool, deadline int64) {
	c.tag, c.measured = phaseTag(c.r.number, measured), measured
	c.next.Store(0)
	c.expected, c.settled, c.refused, c.verified = 0, 0, 0, 0
	c.last = c.r.now()
	for i := range c.slots {
		c.slots[i].Store(0)
	}
	var err error
	if c.try == nil && c.r.cfg.Window*c.r.pat.size > singleFlight {
		err = c.splitLoop(ctx, deadline)
	} else {
		err = c.loop(ctx, deadline)
	}
	c.conclude(err)
}

// loop keeps the window full from the goroutine that reads.
func (c *echoClient) loop(ctx context.Context, deadline int64) error {
	window := uint64(c.r.cfg.Window)
	for now := c.r.now(); ; {
		for now < deadline && c.inFlight() < window {
			sent, err := c.submit(ctx, now, c.inFlight() > 0)
			if err != nil {
				return err
			}
			if !sent {
				break // an echo will come and make room
			}
		}
		if c.inFlight() == 0 {
			return nil
		}
		msg, err := c.conn.Receive(ctx, c.in)
		if err != nil {
			return err
		}
		c.in = msg
		now = c.r.now()
		c.check(msg, now)
	}
}

// splitLoop sends from a goroutine of its own, for a Conn whose Send may wait
// until echoes are read.
func (c *echoClient) splitLoop(ctx context.Context, deadline int64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	credit := make(chan struct{}, c.r.cfg.Window)
	for range c.r.cfg.Window {
		credit <- struct{}{}
	}
	sender := make(chan error, 1)
	c.wake = make(chan struct{}, 1)
	defer func() { c.wake = nil }()
	go func() {
		err := errors.New("the sender panicked")
		defer func() {
			if err != nil {
				cancel()
			}
			sender <- err
		}()
		defer c.r.faults.guard(fmt.Sprintf("client %d, sender", c.id))
		err = c.sendLoop(ctx, deadline, credit)
	}()
	sending := true
	for {
		if c.inFlight() == 0 {
			if !sending {
				return nil
			}
			select { // nothing to read before the next message has been sent
			case <-c.wake:
			case err := <-sender:
				if err != nil {
					return err
				}
				sending = false
			}
			continue
		}
		msg, err := c.conn.Receive(ctx, c.in)
		if err != nil {
			cancel()
			if sending {
				if cause := <-sender; cause != nil && !ended(cause) {
					return cause
				}
			}
			return err
		}
		c.in = msg
		before := c.settled
		c.check(msg, c.r.now())
		if c.settled > before {
			credit <- struct{}{} // never waits: there are as many as messages in flight
		}
	}
}

func (c *echoClient) sendLoop(ctx context.Context, deadline int64, credit <-chan struct{}) error {
	for {
		select {
		case <-credit:
		case <-ctx.Done():
			return ctx.Err()
		}
		now := c.r.now()
		if now >= deadline {
			return nil
		}
		if _, err := c.submit(ctx, now, false); err != nil {
			return err
		}
	}
}

// submit sends the next message. With mayRefuse it reports false when the
// transport has no room; the time of the first refusal then counts as the time
// of submission.
func (c *echoClient) submit(ctx context.Context, now int64, mayRefuse bool) (bool, error) {
	seq := c.next.Load()
	slot := &c.slots[seq&uint64(len(c.slots)-1)]
	if slot.Load() != 0 {
		if c.wake != nil {
			// The receiving goroutine owns the bookkeeping; the run has failed.
			return false, errMissing
		}
		c.giveUp(c.expected)
		c.advance()
	}
	if c.refused == 0 {
		c.r.pat.fill(c.out, header{kind: kindEcho, client: c.id, tag: c.tag, seq: seq})
	} else {
		now = c.refused
	}
	slot.Store(now)
	c.next.Store(seq + 1)
	if c.wake != nil {
		signal(c.wake)
	}
	token := c.comp.arm()
	var err error
	sent := true
	if c.try != nil && mayRefuse {
		sent, err = c.try.TrySend(c.out, token.call)
	} else {
		err = c.conn.Send(ctx, c.out, token.call)
	}
	if err != nil || !sent {
		token.disarm()
		slot.Store(0)
		c.next.Store(seq)
		c.refused = now
		return false, err
	}
	c.refused = 0
	return true, nil
}

var errMissing = errors.New("an early message is still missing after a whole ring of later ones")

func (c *echoClient) inFlight() uint64 { return c.next.Load() - c.settled }

// check judges one received message.
func (c *echoClient) check(msg []byte, now int64) {
	f := &c.r.faults
	h, ok := parseHeader(msg)
	if !ok || h.kind != kindEcho || h.client != c.id || h.tag != c.tag {
		f.note(&f.errs.Unexpected, 1, "client %d: unexpected message of %d bytes: %x", c.id, len(msg), msg[:min(len(msg), headerLen)])
		return
	}
	if h.seq >= c.next.Load() {
		f.note(&f.errs.Unexpected, 1, "client %d: echo %d was never sent", c.id, h.seq)
		return
	}
	if h.seq < c.expected {
		f.note(&f.errs.Duplicate, 1, "client %d: echo %d came again; next is %d", c.id, h.seq, c.expected)
		return
	}
	sent := c.slots[h.seq&uint64(len(c.slots)-1)].Swap(0)
	if sent == 0 {
		f.note(&f.errs.Duplicate, 1, "client %d: echo %d came again", c.id, h.seq)
		return
	}
	c.settled++
	good := true
	if h.seq != c.expected {
		good = false
		if c.r.can.Reliable {
			f.note(&f.errs.Order, 1, "client %d: echo %d came before echo %d", c.id, h.seq, c.expected)
		} else {
			for seq := c.expected; seq < h.seq; seq++ {
				c.giveUp(seq)
			}
		}
	}
	c.advance()
	if !c.r.pat.same(msg, h) {
		good = false
		f.note(&f.errs.Content, 1, "client %d: echo %d of %d bytes differs from what was sent", c.id, h.seq, len(msg))
	}
	if !good {
		return
	}
	c.verified++
	c.last = now
	c.r.operations.Add(1)
	if c.measured {
		c.r.rtt.record(int(c.id), now-sent)
	}
}

// advance moves expected over everything that is settled.
func (c *echoClient) advance() {
	next, mask := c.next.Load(), uint64(len(c.slots)-1)
	for c.expected < next && c.slots[c.expected&mask].Load() == 0 {
		c.expected++
	}
}

// giveUp settles a message that will not be waited for any longer.
func (c *echoClient) giveUp(seq uint64) {
	if c.slots[seq&uint64(len(c.slots)-1)].Swap(0) == 0 {
		return
	}
	c.settled++
	f := &c.r.faults
	f.note(&f.errs.Lost, 1, "client %d: message %d was lost", c.id, seq)
}

// conclude counts what is left at the end of a phase.
func (c *echoClient) conclude(err error) {
	c.r.finish(c.last)
	f := &c.r.faults
	left := c.inFlight()
	if !c.r.can.Reliable {
		f.note(&f.errs.Lost, left, "client %d: %d messages were lost", c.id, left)
		if err != nil && !ended(err) {
			f.note(&f.errs.Disconnects, 1, "client %d: %v", c.id, err)
		}
		return
	}
	switch {
	case err == nil:
	case ended(err):
		f.note(&f.errs.DrainTimeouts, 1, "client %d: %d messages did not come back within %v after the deadline", c.id, left, drainLimit)
	default:
		f.note(&f.errs.Disconnects, 1, "client %d: %v", c.id, err)
	}
	f.note(&f.errs.Unfinished, left, "client %d: %d messages did not come back", c.id, left)
}

// ended reports whether err is the end of a context or a deadline.
func ended(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, os.ErrDeadlineExceeded)
}

// signal wakes one waiter, now or when it comes.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
