//go:build !linux && !darwin && !freebsd && !windows

package udpio

func forceBuffers(uintptr, int, int) {}

func bufferSizes(uintptr) (read, write int) { return 0, 0 }

func dontFragment(uintptr) bool { return false }
