package udpio

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestErrorKinds(t *testing.T) {
	tests := []struct {
		err  error
		want ErrorKind
	}{
		{errors.New("anything"), ErrOther},
		{syscall.ENOBUFS, ErrNoBuffers},
		{syscall.ENOMEM, ErrNoMemory},
		{syscall.EAGAIN, ErrWouldBlock},
		{syscall.EPERM, ErrNotPermitted},
		{syscall.EACCES, ErrNotPermitted},
		{syscall.ECONNREFUSED, ErrRefused},
		{syscall.ECONNRESET, ErrReset},
		{syscall.ENETUNREACH, ErrNetUnreachable},
		{syscall.ENETDOWN, ErrNetUnreachable},
		{syscall.EHOSTUNREACH, ErrHostUnreachable},
		{syscall.EMSGSIZE, ErrTooLarge},
		{syscall.EINTR, ErrInterrupted},
		{syscall.EINVAL, ErrInvalid},
		{syscall.EAFNOSUPPORT, ErrInvalid},
		{syscall.EIO, ErrOther},
		{syscall.Errno(10054), ErrReset},          // WSAECONNRESET
		{syscall.Errno(10052), ErrReset},          // WSAENETRESET
		{syscall.Errno(10040), ErrTooLarge},       // WSAEMSGSIZE
		{syscall.Errno(10055), ErrNoBuffers},      // WSAENOBUFS
		{syscall.Errno(10061), ErrRefused},        // WSAECONNREFUSED
		{syscall.Errno(10051), ErrNetUnreachable}, // WSAENETUNREACH
		{os.ErrDeadlineExceeded, ErrTimeout},
		{&net.OpError{Op: "read", Err: os.NewSyscallError("recvfrom", syscall.ECONNREFUSED)}, ErrRefused},
		{fmt.Errorf("wrapped: %w", os.ErrDeadlineExceeded), ErrTimeout},
	}
	for _, tt := range tests {
		if got := kindOf(tt.err); got != tt.want {
			t.Errorf("kindOf(%v) = %v, want %v", tt.err, got, tt.want)
		}
	}
}

func TestErrorKindNames(t *testing.T) {
	seen := map[string]bool{}
	for k := range numErrorKinds {
		name := k.String()
		if name == "" || seen[name] || strings.ContainsAny(name, " ()") {
			t.Errorf("kind %d has the name %q", uint8(k), name)
		}
		seen[name] = true
	}
	if got := numErrorKinds.String(); got != fmt.Sprintf("ErrorKind(%d)", uint8(numErrorKinds)) {
		t.Errorf("unknown kind: %q", got)
	}
}

func TestErrorCounts(t *testing.T) {
	var c ErrorCounts
	c[ErrReset], c[ErrOther] = 2, 1
	if c.Total() != 3 {
		t.Errorf("Total = %d, want 3", c.Total())
	}
	var got []string
	for k, n := range c.NonZero() {
		got = append(got, fmt.Sprint(k, n))
	}
	if s := strings.Join(got, ","); s != "other 1,reset 2" {
		t.Errorf("NonZero = %q", s)
	}
}
