package hrtime

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// fdTimer is a timerfd (timerfd_create(2)). It is non-blocking, so that
// os.File reads it through the runtime's poller: wait parks the goroutine, not
// a thread, and close wakes it.
//
// The runtime polls when it has nothing to run; a process that always has
// something to run polls every 10 ms at best, while it looks at its own timers
// on every switch of goroutines. So each time is also the read deadline of the
// file, which is a timer of the runtime: the timerfd wakes an idle process, the
// deadline a busy one, and whichever comes first wins.
type fdTimer struct {
	file    *os.File
	raw     syscall.RawConn // of file; its errors cost no allocation
	try     func(fd uintptr) bool
	fd      int // of file; valid until close, which the Alarm orders after arm
	buf     [8]byte
	spec    unix.ItimerSpec
	expired bool // the deadline ended the last wait and still stands
}

func newPreciseTimer() (timer, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	switch {
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE), errors.Is(err, unix.ENOMEM):
		return nil, fmt.Errorf("hrtime: timerfd_create: %w", err)
	case err != nil: // a sandbox without timerfd
		return newPortableTimer(), nil
	}
	f := &fdTimer{file: os.NewFile(uintptr(fd), "timerfd"), fd: fd}
	f.try = f.read
	if f.raw, err = f.file.SyscallConn(); err != nil {
		_ = f.file.Close()
		return nil, fmt.Errorf("hrtime: timerfd: %w", err)
	}
	return f, nil
}

// longestWait keeps seconds within 32 bits.
const longestWait = 365 * 24 * time.Hour

func (f *fdTimer) arm(d time.Duration) {
	// Setting the time also discards an expiration that nobody has read.
	// 0 would disarm; what a 32-bit kernel cannot hold is looked at in a year.
	f.spec.Value = unix.NsecToTimespec(int64(min(max(d, 1), longestWait)))
	// It can fail for a bad descriptor or a bad time only.
	if err := unix.TimerfdSettime(f.fd, 0, &f.spec, nil); err != nil {
		panic(fmt.Sprintf("BUG: hrtime: timerfd_settime of %v: %v", d, err))
	}
	_ = f.file.SetReadDeadline(time.Now().Add(d))
}

func (f *fdTimer) wait() bool {
	err := f.raw.Read(f.try)
	f.expired = err != nil && errors.Is(err, os.ErrDeadlineExceeded)
	return err == nil || f.expired
}

// read takes the expiration count; false makes the runtime wait for one.
func (f *fdTimer) read(fd uintptr) bool {
	for {
		_, err := unix.Read(int(fd), f.buf[:])
		if err != unix.EINTR {
			return err != unix.EAGAIN
		}
	}
}

func (f *fdTimer) rest() {
	if f.expired {
		_ = f.file.SetReadDeadline(time.Time{})
	}
}

func (f *fdTimer) close() error { return f.file.Close() }

func (f *fdTimer) precise() bool { return true }
