package relay

import (
	"math"
	"sync"
	"time"

	"github.com/openarkstudio/arknet-go/internal/bufpool"
	"github.com/openarkstudio/arknet-go/netem"
)

// held is a run of datagrams of one flow that leave at one time. Whoever has it
// owns buf.
type held struct {
	flow *flow
	buf  *bufpool.Buffer
	seg  int // length of each datagram, as in udpio.Train
	n    int // datagrams
	late bool
}

// never is the time of a queue that waits for nothing.
const never = time.Duration(math.MaxInt64)

// queue holds what waits for its time, of all routes. It knows the time only from
// its callers and asks for wake-ups through a function.
type queue struct {
	wake func(at time.Duration)

	mu    sync.Mutex
	sched netem.Schedule[held]
	// armed is when the releasing loop will look next; negative while it is
	// awake and will look again before it sleeps.
	armed  time.Duration
	closed bool
}

func newQueue(wake func(at time.Duration)) *queue { return &queue{wake: wake, armed: never} }

// push takes h over, until at; false after close, and h is still the caller's.
func (q *queue) push(at time.Duration, h held) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.sched.Push(at, h)
	if at < q.armed {
		q.armed = at
		q.wake(at)
	}
	return true
}

// due appends to dst what is due, up to its capacity, and notes that the
// releasing loop is awake.
func (q *queue) due(now time.Duration, dst []held) []held {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.armed = -1
	for len(dst) < cap(dst) {
		h, _, ok := q.sched.PopDue(now)
		if !ok {
			break
		}
		dst = append(dst, h)
	}
	return dst
}

// rest is called by the releasing loop when nothing more is due.
func (q *queue) rest() {
	q.mu.Lock()
	defer q.mu.Unlock()
	next, ok := q.sched.Next()
	if !ok {
		q.armed = never
		return
	}
	q.armed = next
	q.wake(next)
}

// close refuses later pushes and returns what is left.
func (q *queue) close() []held {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	left := make([]held, 0, q.sched.Len())
	for {
		h, _, ok := q.sched.PopDue(never)
		if !ok {
			return left
		}
		left = append(left, h)
	}
}
