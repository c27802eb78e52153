package hrtime

import (
	"math"
	"sync"
	"time"
)

// Alarm wakes one waiting goroutine at a time that others may change. Make it
// with [NewAlarm] or [NewPortable], and Close it: it may hold a descriptor.
type Alarm struct {
	base  time.Time
	timer timer

	mu     sync.Mutex
	want   int64 // the deadline in nanoseconds after base, or never
	armed  int64 // when timer rings, in the same unit; at most want
	closed bool
}

// never is later than any deadline.
const never = math.MaxInt64

// timer is a one-shot timer.
type timer interface {
	// arm makes wait return after d >= 0, instead of what was armed before.
	// It never runs concurrently with itself or close.
	arm(d time.Duration)

	// wait blocks until the timer rings, or a little less; false after close.
	wait() bool

	// rest makes the timer quiet until the next arm. It is called by the
	// goroutine that waits, and excludes arm and close.
	rest()

	close() error

	precise() bool
}

// NewAlarm returns an alarm of the best precision that the system offers,
// disarmed. The error is about resources: too many open files. Where the system
// has no precise timers, or denies them, the alarm is that of [NewPortable].
func NewAlarm() (*Alarm, error) {
	t, err := newPreciseTimer()
	if err != nil {
		return nil, err
	}
	return newAlarm(t), nil
}

// NewPortable returns a disarmed alarm that blocks on channels and time.Timer
// alone. Within a testing/synctest bubble it must be made inside the bubble.
func NewPortable() *Alarm { return newAlarm(newPortableTimer()) }

func newAlarm(t timer) *Alarm {
	return &Alarm{base: time.Now(), timer: t, want: never, armed: never}
}

// Set makes Wait return at the given time, at once if it has passed, in place
// of any time set before. The zero time disarms. Set may be called from any
// goroutine, also while another one waits, and never blocks for long. It is
// cheap (no system call) when the new time is not before the one that the
// alarm is armed for. After Close it does nothing.
func (a *Alarm) Set(at time.Time) {
	want := int64(never)
	if !at.IsZero() {
		want = max(int64(at.Sub(a.base)), 0) // Sub saturates
	}
	a.mu.Lock()
	a.want = want
	if want < a.armed && !a.closed {
		a.arm(want)
	}
	a.mu.Unlock()
}

// Wait blocks until the time that was Set last has come, and disarms the
// alarm. It returns false after Close. It may return early, on a time that Set
// replaced while Wait was about to return: the caller looks at its clock, does
// what is due, and sets the alarm again. Only one goroutine may wait.
func (a *Alarm) Wait() bool {
	for a.timer.wait() {
		if a.rang() {
			return true
		}
	}
	return false
}

// rang handles a ring of the timer: it reports whether the deadline has come,
// and arms the timer for the rest of the way if not.
func (a *Alarm) rang() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.armed = never
	if a.want == never || a.closed {
		a.timer.rest()
		return false
	}
	if int64(time.Since(a.base)) < a.want {
		a.arm(a.want)
		return false
	}
	a.want = never
	return true
}

// arm starts the timer for a time after base.
func (a *Alarm) arm(want int64) {
	a.armed = want
	a.timer.arm(max(time.Duration(want)-time.Since(a.base), 0))
}

// Precise reports whether the alarm has a timer of its own in the kernel.
func (a *Alarm) Precise() bool { return a.timer.precise() }

// Close ends a blocked Wait and all future ones, and frees the timer. Closing
// twice does nothing.
func (a *Alarm) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil
	}
	a.closed = true
	return a.timer.close()
}
