package bench

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// forceReadBuffer goes past net.core.rmem_max where the process may.
func forceReadBuffer(c syscall.Conn, size int) {
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, size)
	})
}
