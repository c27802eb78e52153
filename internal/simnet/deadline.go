package simnet

import (
	"sync"
	"time"
)

// deadline ends blocking calls at a time. Its channel is closed when the time is
// over; setting a new time gives a new channel when the old one is spent.
type deadline struct {
	mu      sync.Mutex
	timer   *time.Timer
	done    chan struct{}
	stopped bool
}

func newDeadline() *deadline { return &deadline{done: make(chan struct{})} }

// set moves the deadline; the zero time means none.
func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped {
		return
	}
	if d.timer != nil && !d.timer.Stop() {
		<-d.done // the timer has fired: wait until it has closed the channel
	}
	d.timer = nil
	spent := isClosed(d.done)
	if t.IsZero() {
		if spent {
			d.done = make(chan struct{})
		}
		return
	}
	left := time.Until(t)
	if left <= 0 {
		if !spent {
			close(d.done)
		}
		return
	}
	if spent {
		d.done = make(chan struct{})
	}
	done := d.done
	d.timer = time.AfterFunc(left, func() { close(done) })
}

// wait returns the channel that is closed at the deadline.
func (d *deadline) wait() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.done
}

// stop releases the timer; later calls of set do nothing.
func (d *deadline) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopped = true
	if d.timer != nil {
		d.timer.Stop()
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
