//go:build !linux && !darwin

package bench

import "os"

// What this system does not tell in a portable way stays empty in the records.

func kernel() string      { return "" }
func cpuModel() string    { return os.Getenv("PROCESSOR_IDENTIFIER") }
func memoryBytes() uint64 { return 0 }
