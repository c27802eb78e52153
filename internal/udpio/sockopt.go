package udpio

import (
	"net"
	"syscall"
)

// minBuffer is where the search for a buffer size that the system grants ends.
const minBuffer = 64 << 10

// setBuffers asks for socket buffers and returns the sizes that the system
// reports afterwards. Some systems (macOS) refuse a size above their limit as
// a whole instead of granting less; half is tried then.
func setBuffers(pc net.PacketConn, read, write int) (grantedRead, grantedWrite int) {
	if c, ok := pc.(interface{ SetReadBuffer(int) error }); ok && read > 0 {
		for size := read; c.SetReadBuffer(size) != nil && size > minBuffer; {
			size /= 2
		}
	}
	if c, ok := pc.(interface{ SetWriteBuffer(int) error }); ok && write > 0 {
		for size := write; c.SetWriteBuffer(size) != nil && size > minBuffer; {
			size /= 2
		}
	}
	control(pc, func(fd uintptr) {
		forceBuffers(fd, read, write)
		grantedRead, grantedWrite = bufferSizes(fd)
	})
	return grantedRead, grantedWrite
}

// setDontFragment reports whether local and in-path fragmentation is off.
func setDontFragment(pc net.PacketConn) (ok bool) {
	control(pc, func(fd uintptr) { ok = dontFragment(fd) })
	return ok
}

// control runs f on the descriptor of pc if it is a UDP socket.
func control(pc net.PacketConn, f func(fd uintptr)) {
	if _, ok := pc.(*net.UDPConn); !ok {
		return
	}
	if rc, err := pc.(syscall.Conn).SyscallConn(); err == nil {
		_ = rc.Control(f)
	}
}
