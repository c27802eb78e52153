package udpio

import "golang.org/x/sys/unix"

// forceBuffers goes past net.core.rmem_max and wmem_max where the process may.
// The kernel reports twice the size that was asked.
func forceBuffers(fd uintptr, read, write int) {
	gotRead, gotWrite := bufferSizes(fd)
	if read > 0 && gotRead < 2*read {
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, read)
	}
	if write > 0 && gotWrite < 2*write {
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, write)
	}
}

func bufferSizes(fd uintptr) (read, write int) {
	read, _ = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF)
	write, _ = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUF)
	return read, write
}

// dontFragment uses PMTUDISC_PROBE: DF is set, and the path MTU that the
// kernel learns from ICMP, which anybody can forge, is not enforced (RFC 8899,
// section 4.6). Which of the two options a socket has depends on its family; a
// dual-stack socket has both.
func dontFragment(fd uintptr) bool {
	err4 := unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE)
	err6 := unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_PROBE)
	return err4 == nil || err6 == nil
}
