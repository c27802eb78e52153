//go:build unix

package bench

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// socketBuffers reads the granted sizes, or 0.
func socketBuffers(c syscall.Conn) (read, write int) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, 0
	}
	_ = raw.Control(func(fd uintptr) {
		if n, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF); err == nil {
			read = n
		}
		if n, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUF); err == nil {
			write = n
		}
	})
	return read, write
}
