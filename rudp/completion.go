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

// completionQueue holds completions in the order of their sends, in a ring. It
// is guarded by the session's lock.
type completionQueue struct {
	ring  []completion
	first int
	count int

	due     []completion // to be run, in order
	spare   []completion // memory of a list that was run
	running bool         // a goroutine runs what is due
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

// collect moves to due what is acknowledged, or everything once the session has
// failed.
func (q *completionQueue) collect(core *arq.Conn) {
	failed := core.Err()
	acked, mark := core.MessagesAcked(), core.Acknowledged()
	for q.count > 0 {
		e := &q.ring[q.first]
		done := e.sequence != 0 && e.sequence <= acked || e.sequence == 0 && e.mark <= mark && failed == nil
		if !done && failed == nil {
			break
		}
		if !done {
			e.err = publicError(failed)
		}
		q.due = append(q.due, *e)
		*e = completion{}
		q.first = (q.first + 1) % len(q.ring)
		q.count--
	}
	if q.count == 0 && len(q.ring) > 4096 {
		q.ring, q.first = nil, 0
	}
}

// pending reports whether something is due and nobody runs it.
func (q *completionQueue) pending() bool { return len(q.due) > 0 && !q.running }

// runCompletions runs what is due, in order. One goroutine at a time does so;
// what becomes due meanwhile, also by calls that completions make, is left to it.
func (c *Conn) runCompletions() {
	q := &c.completions
	c.mu.Lock()
	defer c.mu.Unlock()
	if q.running {
		return
	}
	q.running = true
	for len(q.due) > 0 {
		list := q.due
		q.due, q.spare = q.spare[:0], nil
		c.mu.Unlock()
		for i := range list {
			list[i].done(list[i].err)
			list[i] = completion{}
		}
		c.mu.Lock()
		q.spare = list[:0]
	}
	q.running = false
}
