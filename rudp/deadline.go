package rudp

import (
	"sync"
	"time"
)

// deadline is a point in time that calls wait for along with their event. It
// may be moved while they wait, in both directions.
type deadline struct {
	mu    sync.Mutex
	timer *time.Timer
	// passed is closed once the deadline has passed. A deadline set again
	// after that gets a new channel.
	passed chan struct{}
}

// wait returns the channel that closes when the deadline passes. A deadline
// that is moved before it has passed keeps its channel.
func (d *deadline) wait() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.passed == nil {
		d.passed = make(chan struct{})
	}
	return d.passed
}

// expired reports whether the deadline has passed.
func (d *deadline) expired() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.passed == nil {
		return false
	}
	select {
	case <-d.passed:
		return true
	default:
		return false
	}
}

// set moves the deadline; the zero time removes it.
func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	open := d.passed != nil
	if open {
		select {
		case <-d.passed:
			open = false
		default:
		}
	}
	if !open {
		d.passed = make(chan struct{})
	}
	if t.IsZero() {
		return
	}
	passed := d.passed
	wait := time.Until(t)
	if wait <= 0 {
		close(passed)
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(wait, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		// A timer that was stopped too late belongs to a former deadline.
		if d.timer == timer {
			d.timer = nil
			close(passed)
		}
	})
	d.timer = timer
}

// stop frees the timer.
func (d *deadline) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}
