package netem

import "time"

// Schedule holds values until the time they arrive, for drivers of a Link. Values
// come out by time, and those of equal times in the order they went in. The
// zero value is empty and ready. It is not safe for concurrent use, sets no
// bound of its own (see Len), and allocates only to grow.
//
// The times that links produce are nearly sorted: each mix of delay and lateness
// makes a rising sequence. So values wait in a few rising lanes, which take and
// give them in constant time, and only what fits no lane goes to a heap.
type Schedule[T any] struct {
	lanes [4]lane[T]
	heap  []scheduled[T]
	seq   uint64
	n     int
}

type scheduled[T any] struct {
	at    time.Duration
	seq   uint64
	value T
}

func (s *scheduled[T]) before(o *scheduled[T]) bool {
	return s.at < o.at || s.at == o.at && s.seq < o.seq
}

// Len returns the number of values that wait.
func (s *Schedule[T]) Len() int { return s.n }

// Push adds a value that arrives at the given time.
func (s *Schedule[T]) Push(at time.Duration, value T) {
	e := scheduled[T]{at, s.seq, value}
	s.seq++
	s.n++
	// The lane with the latest end that is not after at keeps the number of
	// lanes in use at its minimum; an empty lane is the last choice.
	best := -1
	for i := range s.lanes {
		l := &s.lanes[i]
		switch {
		case l.n == 0:
			if best < 0 {
				best = i
			}
		case l.last().at <= at:
			if best < 0 || s.lanes[best].n == 0 || s.lanes[best].last().at < l.last().at {
				best = i
			}
		}
	}
	if best >= 0 {
		s.lanes[best].push(e)
		return
	}
	s.heap = append(s.heap, e)
	for i := len(s.heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if !s.heap[i].before(&s.heap[parent]) {
			break
		}
		s.heap[i], s.heap[parent] = s.heap[parent], s.heap[i]
		i = parent
	}
}

// Next returns the time of the first arrival; ok is false when the schedule is
// empty.
func (s *Schedule[T]) Next() (at time.Duration, ok bool) {
	first, _ := s.first()
	if first == nil {
		return 0, false
	}
	return first.at, true
}

// PopDue removes and returns the first value whose time has come, with that time;
// ok is false when there is none.
func (s *Schedule[T]) PopDue(now time.Duration) (value T, at time.Duration, ok bool) {
	first, lane := s.first()
	if first == nil || first.at > now {
		return value, 0, false
	}
	value, at = first.value, first.at
	s.n--
	if lane >= 0 {
		s.lanes[lane].pop()
		return value, at, true
	}
	last := len(s.heap) - 1
	s.heap[0] = s.heap[last]
	s.heap[last] = scheduled[T]{}
	s.heap = s.heap[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			break
		}
		if child+1 < last && s.heap[child+1].before(&s.heap[child]) {
			child++
		}
		if !s.heap[child].before(&s.heap[i]) {
			break
		}
		s.heap[i], s.heap[child] = s.heap[child], s.heap[i]
		i = child
	}
	return value, at, true
}

// first finds the earliest entry and its lane, -1 for the heap.
func (s *Schedule[T]) first() (e *scheduled[T], index int) {
	index = -1
	if len(s.heap) > 0 {
		e = &s.heap[0]
	}
	for i := range s.lanes {
		if l := &s.lanes[i]; l.n > 0 {
			if head := &l.ring[l.head]; e == nil || head.before(e) {
				e, index = head, i
			}
		}
	}
	return e, index
}

// lane is a ring whose entries rise in time.
type lane[T any] struct {
	ring    []scheduled[T] // length is a power of two
	head, n int
}

func (l *lane[T]) last() *scheduled[T] { return &l.ring[(l.head+l.n-1)&(len(l.ring)-1)] }

func (l *lane[T]) push(e scheduled[T]) {
	if l.n == len(l.ring) {
		grown := make([]scheduled[T], max(16, 2*l.n))
		k := copy(grown, l.ring[l.head:])
		copy(grown[k:], l.ring[:l.head])
		l.ring, l.head = grown, 0
	}
	l.ring[(l.head+l.n)&(len(l.ring)-1)] = e
	l.n++
}

func (l *lane[T]) pop() {
	l.ring[l.head] = scheduled[T]{}
	l.head = (l.head + 1) & (len(l.ring) - 1)
	l.n--
}
