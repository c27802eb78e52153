//go:build darwin || freebsd

package udpio

import "golang.org/x/sys/unix"

func forceBuffers(uintptr, int, int) {}

func bufferSizes(fd uintptr) (read, write int) {
	read, _ = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF)
	write, _ = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUF)
	return read, write
}

// dontFragment sets the option of the socket's family; macOS has had the IPv4
// one since version 11.
func dontFragment(fd uintptr) bool {
	err4 := unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_DONTFRAG, 1)
	err6 := unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_DONTFRAG, 1)
	return err4 == nil || err6 == nil
}
