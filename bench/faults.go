package bench

import (
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/openarkstudio/arknet-go/bench/record"
)

// faults collects what went wrong in one round.
type faults struct {
	mu    sync.Mutex
	errs  record.Errors
	first string
}

// note adds n to a counter, which is a field of f.errs, and keeps the text of
// the first fault of the round.
func (f *faults) note(counter *uint64, n uint64, format string, args ...any) {
	if n == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	*counter += n
	if f.first == "" {
		f.first = fmt.Sprintf(format, args...)
	}
}

// result returns the counters and the first fault.
func (f *faults) result() (record.Errors, string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.errs, f.first
}

// any reports whether anything was noted.
func (f *faults) any() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.first != ""
}

// guard is deferred by every goroutine that calls into a driver: a panic there
// is a fault of the round, not the end of the process.
func (f *faults) guard(who string) {
	if p := recover(); p != nil {
		f.note(&f.errs.Exceptions, 1, "%s: panic: %v\n%s", who, p, debug.Stack())
	}
}
