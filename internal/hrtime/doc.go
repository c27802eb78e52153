// Package hrtime wakes a goroutine at a given time, precisely where the system
// can.
//
// The timers of the Go runtime are as precise as its wait for IO: on Linux the
// runtime sleeps in epoll_wait, which counts in milliseconds, so that an idle
// process wakes from time.Sleep(100 * time.Microsecond) after a full
// millisecond. An [Alarm] of [NewAlarm] is a timerfd read through the runtime's
// poller instead: the kernel wakes the poller at the nanosecond asked for, and
// the goroutine runs about twenty microseconds later. In a busy process, which
// seldom polls, a timer of the runtime set to the same time takes over. On other
// systems NewAlarm gives the same Alarm over time.Timer.
//
// An Alarm is made for a loop that computes its next deadline anew on every
// turn, while other goroutines may move it forward:
//
//	a, err := hrtime.NewAlarm()
//	go func() {
//		for a.Wait() {
//			now := time.Now()
//			a.Set(work(now)) // the next deadline, or the zero time
//		}
//	}()
//	...
//	a.Set(sooner) // from anywhere
//	a.Close()     // Wait returns false
//
// Moving a deadline later, which protocols do with every packet, costs no
// system call: the alarm stays armed for the earlier time, and Wait re-arms it
// when it rings. Neither Set nor Wait allocates.
//
// [NewPortable] uses time.Timer and channels only, on every system, so that it
// follows the fake clock of testing/synctest.
package hrtime
