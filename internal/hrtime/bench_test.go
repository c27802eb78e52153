package hrtime

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkLateness reports how late a wake-up after 100 us comes: of
// time.Sleep, of a portable and of a precise alarm; in an idle process, and
// beside goroutines that keep every P busy in short turns.
func BenchmarkLateness(b *testing.B) {
	const d = 100 * time.Microsecond
	sleepers := []struct {
		name  string
		sleep func(b *testing.B) func()
	}{
		{"sleep", func(*testing.B) func() { return func() { time.Sleep(d) } }},
		{"portable", func(b *testing.B) func() { return alarmSleep(b, NewPortable(), d) }},
		{"precise", func(b *testing.B) func() {
			a, err := NewAlarm()
			if err != nil {
				b.Fatal(err)
			}
			return alarmSleep(b, a, d)
		}},
	}
	for _, load := range []string{"idle", "busy"} {
		for _, s := range sleepers {
			b.Run("load="+load+"/by="+s.name, func(b *testing.B) {
				if load == "busy" {
					defer keepBusy()()
				}
				sleep := s.sleep(b)
				late := make([]time.Duration, 0, 1<<16)
				b.ReportAllocs()
				for b.Loop() {
					start := time.Now()
					sleep()
					if len(late) < cap(late) {
						late = append(late, time.Since(start)-d)
					}
				}
				slices.Sort(late)
				b.ReportMetric(float64(late[len(late)/2])/1e3, "p50-late-us")
				b.ReportMetric(float64(late[len(late)*99/100])/1e3, "p99-late-us")
			})
		}
	}
}

func alarmSleep(b *testing.B, a *Alarm, d time.Duration) func() {
	b.Cleanup(func() { a.Close() })
	return func() {
		a.Set(time.Now().Add(d))
		a.Wait()
	}
}

// keepBusy passes tokens between goroutines, so that there is always one to
// run, as in a process that echoes at full speed.
func keepBusy() (stop func()) {
	var wg sync.WaitGroup
	var end atomic.Bool
	for range 8 {
		ping, pong := make(chan int), make(chan int)
		wg.Go(func() {
			defer close(ping)
			for !end.Load() {
				ping <- 1
				<-pong
			}
		})
		wg.Go(func() {
			for range ping {
				pong <- 1
			}
		})
	}
	return func() { end.Store(true); wg.Wait() }
}

// BenchmarkSet measures a deadline that moves: later (no system call), and
// earlier (one).
func BenchmarkSet(b *testing.B) {
	for _, dir := range []struct {
		name string
		step time.Duration
	}{{"later", time.Microsecond}, {"earlier", -time.Microsecond}} {
		b.Run("move="+dir.name, func(b *testing.B) {
			a, err := NewAlarm()
			if err != nil {
				b.Fatal(err)
			}
			defer a.Close()
			at := time.Now().Add(10 * time.Hour)
			a.Set(at)
			b.ReportAllocs()
			for b.Loop() {
				at = at.Add(dir.step)
				a.Set(at)
			}
		})
	}
}
