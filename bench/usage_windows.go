package bench

import (
	"runtime"
	"time"

	"golang.org/x/sys/windows"
)

// processCPU is the CPU time, user and kernel, that the process has used.
func processCPU() time.Duration {
	var created, exited, kernel, user windows.Filetime
	if windows.GetProcessTimes(windows.CurrentProcess(), &created, &exited, &kernel, &user) != nil {
		return 0
	}
	ticks := func(f windows.Filetime) int64 { return int64(f.HighDateTime)<<32 | int64(f.LowDateTime) }
	return time.Duration(ticks(kernel)+ticks(user)) * 100 // ticks of 100 ns
}

// peakRSS is what the Go runtime has obtained from the system, which never
// shrinks, for want of a portable resident set.
func peakRSS() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Sys
}
