package rudp

import "github.com/openarkstudio/arknet-go/internal/arq"

// completion is a function that waits for an acknowledgement: of a message by
// its sequence number, or of everything below a mark.
type completion struct {
	sequence uint64 // of the message, 0 = use mark
	mark     uint64
	done     func(error)
	err      error
}

// completionQueue holds completions in the order of their sends. Entries are
// taken from the front of a ring.
type completionQueue struct {
	ring  []completion
	first int
	count int
	ready []completion // scratch of take
}

func (q *completionQueue) addSequence(sequence uint64, done func(error)) {
	q.push(completion{sequence: sequence, done: done})
}

func (q *completionQueue) addMark(mark uint64, done func(error)) {
	q.push(completion{mark: mark, done: done})
}

func (q *completionQueue) push(e completion) {
	if q.count == len(q.ring) {
		grown := make([]completion, max(16, 2*len(q.ring)))
		for i := range q.count {
			grown[i] = q.ring[(q.first+i)%len(q.ring)]
		}
		q.ring, q.first = grown, 0
	}
	q.ring[(q.first+q.count)%len(q.ring)] = e
	q.count++
}

// take removes the completions that are due: acknowledged, or all of them once
// the session has failed. The result is the caller's.
func (q *completionQueue) take(core *arq.Conn) []completion {
	failed := core.Err()
	acked, mark := core.MessagesAcked(), core.Acknowledged()
	var out []completion
	for q.count > 0 {
		e := &q.ring[q.first]
		switch {
		case e.sequence != 0 && e.sequence <= acked, e.sequence == 0 && e.mark <= mark && failed == nil:
		case failed != nil:
			e.err = publicError(failed)
		default:
			return out
		}
		if out == nil {
			out = q.ready[:0]
			q.ready = nil
		}
		out = append(out, *e)
		*e = completion{}
		q.first = (q.first + 1) % len(q.ring)
		q.count--
	}
	if q.count == 0 && len(q.ring) > 4096 {
		q.ring, q.first = nil, 0
	}
	return out
}

// complete runs completions in order, one goroutine at a time.
func (c *Conn) complete(list []completion) {
	if len(list) == 0 {
		return
	}
	c.doneMu.Lock()
	for i := range list {
		list[i].done(list[i].err)
		list[i] = completion{}
	}
	c.doneMu.Unlock()
	c.mu.Lock()
	if c.completions.ready == nil {
		c.completions.ready = list[:0]
	}
	c.mu.Unlock()
}
