//go:build !unix && !windows

package bench

import (
	"runtime"
	"time"
)

// processCPU is 0: the system does not tell.
func processCPU() time.Duration { return 0 }

// peakRSS is what the Go runtime has obtained from the system.
func peakRSS() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Sys
}
