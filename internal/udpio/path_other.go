//go:build !linux

package udpio

import "net"

// newPath picks the one path there is.
func newPath(s *Socket, pc net.PacketConn, opts *Options) (path, error) {
	return newPlainPath(s, pc, opts), nil
}
