package hrtime

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// kinds runs a test over every timer there is.
func kinds(t *testing.T, f func(t *testing.T, a *Alarm)) {
	t.Run("precise", func(t *testing.T) {
		a, err := NewAlarm()
		if err != nil {
			t.Fatal(err)
		}
		if want := runtime.GOOS == "linux"; a.Precise() != want {
			t.Errorf("Precise() = %v on %s, want %v", a.Precise(), runtime.GOOS, want)
		}
		f(t, a)
	})
	t.Run("portable", func(t *testing.T) { f(t, NewPortable()) })
}

func TestNeverEarly(t *testing.T) {
	kinds(t, func(t *testing.T, a *Alarm) {
		defer a.Close()
		for _, d := range []time.Duration{-time.Hour, 0, 1, time.Microsecond, 50 * time.Microsecond, 2 * time.Millisecond} {
			at := time.Now().Add(d)
			a.Set(at)
			if !a.Wait() {
				t.Fatalf("%v: Wait = false", d)
			}
			if early := time.Until(at); early > 0 {
				t.Errorf("%v: %v early", d, early)
			}
		}
	})
}

// A time before the base, or without a monotonic reading, works too.
func TestOddTimes(t *testing.T) {
	kinds(t, func(t *testing.T, a *Alarm) {
		defer a.Close()
		for _, at := range []time.Time{time.Unix(0, 0), time.Unix(1, 0), time.Now().Round(0), time.Date(-5000, 1, 1, 0, 0, 0, 0, time.UTC)} {
			a.Set(at)
			if !a.Wait() {
				t.Fatalf("%v: Wait = false", at)
			}
		}
		a.Set(time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC))
		a.Set(time.Now())
		if !a.Wait() {
			t.Fatal("Wait = false")
		}
	})
}

// Set moves the alarm of a goroutine that waits: forward, and from disarmed.
func TestSetWhileWaiting(t *testing.T) {
	kinds(t, func(t *testing.T, a *Alarm) {
		defer a.Close()
		rang := make(chan bool)
		go func() {
			defer close(rang)
			for a.Wait() {
				rang <- true
			}
		}()
		for range 100 {
			a.Set(time.Now().Add(time.Hour))
			a.Set(time.Now())
			<-rang
			a.Set(time.Time{})
			a.Set(time.Now())
			<-rang
		}
		a.Close()
		if _, ok := <-rang; ok {
			t.Error("rang after Close")
		}
	})
}

func TestClose(t *testing.T) {
	kinds(t, func(t *testing.T, a *Alarm) {
		var wg sync.WaitGroup
		wg.Go(func() {
			if a.Wait() {
				t.Error("Wait = true after Close")
			}
		})
		a.Set(time.Now().Add(time.Hour))
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		wg.Wait()
		if err := a.Close(); err != nil {
			t.Errorf("second Close: %v", err)
		}
		a.Set(time.Now())
		a.Set(time.Time{})
		if a.Wait() {
			t.Error("Wait = true after Close and Set")
		}
	})
}

// Any number of goroutines may set while one waits and one closes.
func TestConcurrentUse(t *testing.T) {
	kinds(t, func(t *testing.T, a *Alarm) {
		var setters, waiter sync.WaitGroup
		waiter.Go(func() {
			for a.Wait() {
			}
		})
		for g := range 4 {
			setters.Go(func() {
				for i := range 2000 {
					switch (i + g) % 4 {
					case 0:
						a.Set(time.Time{})
					case 1:
						a.Set(time.Now())
					default:
						a.Set(time.Now().Add(time.Duration(i) * time.Microsecond))
					}
				}
			})
		}
		setters.Wait()
		a.Set(time.Now())
		a.Close()
		waiter.Wait()
	})
}

// countTimer counts what reaches the timer below an alarm.
type countTimer struct {
	timer
	arms int
}

func (c *countTimer) arm(d time.Duration) { c.arms++; c.timer.arm(d) }

// In fake time the alarm rings exactly when it should, and later deadlines
// reach the timer only when it rings.
func TestExactAndLazy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &countTimer{timer: newPortableTimer()}
		a := newAlarm(c)
		defer a.Close()
		start := time.Now()
		wait := func(want time.Duration, arms int) {
			t.Helper()
			if !a.Wait() {
				t.Fatal("Wait = false")
			}
			if got := time.Since(start); got != want {
				t.Errorf("rang after %v, want %v", got, want)
			}
			if c.arms != arms {
				t.Errorf("armed %d times, want %d", c.arms, arms)
			}
			c.arms = 0
		}

		a.Set(start.Add(time.Second))
		wait(time.Second, 1)

		for i := range 1000 { // a deadline that recedes: armed for the first and the last
			a.Set(start.Add(2*time.Second + time.Duration(i)*time.Millisecond))
		}
		wait(2*time.Second+999*time.Millisecond, 2)

		a.Set(start.Add(time.Minute))
		a.Set(start.Add(4 * time.Second)) // earlier: armed at once
		wait(4*time.Second, 2)

		a.Set(start.Add(5 * time.Second))
		a.Set(time.Time{})
		a.Set(start.Add(6 * time.Second)) // disarming leaves the timer alone
		wait(6*time.Second, 2)

		a.Set(start) // the past
		wait(6*time.Second, 1)
	})
}

// A disarmed alarm does not ring, though its timer does.
func TestDisarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := NewPortable()
		start := time.Now()
		a.Set(start.Add(time.Second))
		a.Set(time.Time{})
		go func() {
			time.Sleep(time.Hour)
			a.Close()
		}()
		if a.Wait() {
			t.Errorf("rang after %v", time.Since(start))
		}
		if got := time.Since(start); got != time.Hour {
			t.Errorf("Wait returned after %v, want %v", got, time.Hour)
		}
	})
}

func TestNoAllocation(t *testing.T) {
	kinds(t, func(t *testing.T, a *Alarm) {
		defer a.Close()
		if n := testing.AllocsPerRun(200, func() {
			a.Set(time.Now().Add(time.Hour))
			a.Set(time.Now())
			a.Wait()
		}); n != 0 {
			t.Errorf("%v allocations per Set and Wait, want 0", n)
		}
	})
}
