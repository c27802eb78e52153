package main

import (
	"sync"
	"time"
)

// pauseTick is how often a pauseWatch looks at the clock, and pauseWorth the
// pause from which a round is marked: on a busy machine a goroutine waits for
// tens of milliseconds at times, and a lossy path is not judged by that.
const (
	pauseTick  = 5 * time.Millisecond
	pauseWorth = 150 * time.Millisecond
)

// pauseWatch finds the longest time for which the machine did not run this
// process, so that a stall of the host is not read as one of a transport.
type pauseWatch struct {
	stop    chan struct{}
	done    sync.WaitGroup
	longest time.Duration
}

func watchPauses() *pauseWatch {
	w := &pauseWatch{stop: make(chan struct{})}
	w.done.Go(func() {
		tick := time.NewTicker(pauseTick)
		defer tick.Stop()
		last := time.Now()
		for {
			select {
			case <-tick.C:
			case <-w.stop:
				return
			}
			now := time.Now()
			w.longest = max(w.longest, now.Sub(last)-pauseTick)
			last = now
		}
	})
	return w
}

// end stops watching and returns the longest pause.
func (w *pauseWatch) end() time.Duration {
	close(w.stop)
	w.done.Wait()
	return w.longest
}
