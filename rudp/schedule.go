package rudp

import (
	"container/heap"
	"sync"
	"time"

	"github.com/openarkstudio/arknet-go/internal/arq"
	"github.com/openarkstudio/arknet-go/internal/hrtime"
)

// schedule holds the next deadline of every session of an endpoint and wakes
// its timer goroutine. A deadline that moves later, as most do, costs nothing:
// the session is looked at once too early and scheduled again.
//
// Its lock is taken inside that of a session, never around it.
type schedule struct {
	mu    sync.Mutex
	queue sessionHeap
	alarm *hrtime.Alarm
	epoch time.Time
}

// dueSession is the entry of a session in the heap.
type dueSession struct {
	at    arq.Time
	conn  *Conn
	index int // -1 = not in the heap
}

// set makes sure that conn is woken at the given time or before.
func (s *schedule) set(conn *Conn, at arq.Time) {
	e := &conn.due
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case e.index < 0:
		e.at = at
		heap.Push(&s.queue, e)
	case at < e.at:
		e.at = at
		heap.Fix(&s.queue, e.index)
	default:
		return
	}
	if e.index == 0 {
		s.alarm.Set(s.epoch.Add(time.Duration(at)))
	}
}

// remove forgets conn.
func (s *schedule) remove(conn *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if conn.due.index >= 0 {
		heap.Remove(&s.queue, conn.due.index)
	}
}

// take removes the sessions that are due and appends them to list.
func (s *schedule) take(now arq.Time, list []*Conn) []*Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.queue) > 0 && s.queue[0].at <= now {
		list = append(list, heap.Pop(&s.queue).(*dueSession).conn)
	}
	return list
}

// rearm sets the alarm to the earliest deadline after a round of take.
func (s *schedule) rearm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) > 0 {
		s.alarm.Set(s.epoch.Add(time.Duration(s.queue[0].at)))
	}
}

// sessionHeap implements heap.Interface, earliest deadline first.
type sessionHeap []*dueSession

func (h sessionHeap) Len() int           { return len(h) }
func (h sessionHeap) Less(i, j int) bool { return h[i].at < h[j].at }
func (h sessionHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *sessionHeap) Push(x any) {
	e := x.(*dueSession)
	e.index = len(*h)
	*h = append(*h, e)
}

func (h *sessionHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	e.index = -1
	return e
}
