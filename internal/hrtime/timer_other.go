//go:build !linux

package hrtime

func newPreciseTimer() (timer, error) { return newPortableTimer(), nil }
