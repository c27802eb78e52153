package udpio

import "net"

// newPath picks the fast path for UDP sockets.
func newPath(s *Socket, pc net.PacketConn, opts *Options) (path, error) {
	if conn, ok := pc.(*net.UDPConn); ok && !opts.NoFastPath {
		return newFastPath(s, conn, opts)
	}
	return newPlainPath(s, pc, opts), nil
}
