package hrtime

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// fdTimer is a timerfd (timerfd_create(2)). It is non-blocking, so that
// os.File reads it through the runtime's poller: wait parks the goroutine, not
// a thread, and close wakes it.
type fdTimer struct {
	file *os.File
	fd   int // of file; valid until close, which the Alarm orders after arm
	buf  [8]byte
	spec unix.ItimerSpec
}

func newPreciseTimer() (timer, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	switch {
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE), errors.Is(err, unix.ENOMEM):
		return nil, fmt.Errorf("hrtime: timerfd_create: %w", err)
	case err != nil: // a sandbox without timerfd
		return newPortableTimer(), nil
	}
	return &fdTimer{file: os.NewFile(uintptr(fd), "timerfd"), fd: fd}, nil
}

func (f *fdTimer) arm(d time.Duration) {
	f.spec.Value = unix.NsecToTimespec(max(int64(d), 1)) // 0 would disarm
	// It can fail for a bad descriptor or a bad time only.
	if err := unix.TimerfdSettime(f.fd, 0, &f.spec, nil); err != nil {
		panic(fmt.Sprintf("BUG: hrtime: timerfd_settime of %v: %v", d, err))
	}
}

func (f *fdTimer) wait() bool {
	_, err := f.file.Read(f.buf[:])
	return err == nil
}

func (f *fdTimer) close() error { return f.file.Close() }

func (f *fdTimer) precise() bool { return true }
