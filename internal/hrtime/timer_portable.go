package hrtime

import "time"

// portableTimer is a time.Timer that can be closed.
type portableTimer struct {
	t    *time.Timer
	done chan struct{}
}

func newPortableTimer() *portableTimer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return &portableTimer{t: t, done: make(chan struct{})}
}

// arm relies on Reset of Go 1.23 and later: no value of an earlier setting is
// received after it.
func (p *portableTimer) arm(d time.Duration) { p.t.Reset(d) }

func (p *portableTimer) wait() bool {
	select {
	case <-p.t.C:
		return true
	case <-p.done:
		return false
	}
}

func (p *portableTimer) rest() {}

func (p *portableTimer) close() error {
	p.t.Stop()
	close(p.done)
	return nil
}

func (p *portableTimer) precise() bool { return false }
