package bench

import (
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"testing"
	"time"
)

// TestMain fails the package when goroutines are left after all its tests: every
// run must end what it started.
func TestMain(m *testing.M) {
	before := runtime.NumGoroutine()
	status := m.Run()
	// Goroutines of closed sockets need a moment to return.
	for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; {
		if time.Now().After(deadline) {
			fmt.Fprintf(os.Stderr, "%d goroutines left, %d at the start:\n", runtime.NumGoroutine(), before)
			_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
			os.Exit(1)
		}
		runtime.Gosched()
	}
	os.Exit(status)
}
