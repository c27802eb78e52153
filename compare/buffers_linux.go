package main

import (
	"net"
	"syscall"
)

// grantedBuffers returns the sizes the kernel reports for a socket, 0 where it
// does not say.
func grantedBuffers(conn *net.UDPConn) (read, write int) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, 0
	}
	err = raw.Control(func(fd uintptr) {
		read, _ = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF)
		write, _ = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_SNDBUF)
	})
	if err != nil {
		return 0, 0
	}
	return read, write
}
