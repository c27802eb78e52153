// Package udpio moves batches of datagrams over one UDP socket, or over any
// net.PacketConn.
//
// A [Train] is a run of equal-size datagrams to or from one address, back to
// back in one buffer. [Socket.WriteTrains] sends trains and
// [Socket.ReadTrains] receives them. On Linux a *net.UDPConn gets the fast
// path: a train is one message for the kernel in both directions (UDP_SEGMENT,
// UDP_GRO), several messages share one system call (sendmmsg, recvmmsg), and
// a wildcard socket learns and sets the local address of each train
// (IP_PKTINFO), so that a reply leaves from the address that was asked. Each
// of these is probed when the socket is made, can be switched off in
// [Options], and is given up at run time when the kernel refuses it. Anything
// else - other systems, other kinds of net.PacketConn - is served datagram by
// datagram with the same semantics.
//
//	s, err := udpio.New(pc, udpio.Options{ReadBuffer: 4 << 20})
//	trains := make([]udpio.Train, 64)
//	for {
//		n, err := s.ReadTrains(trains)
//		if err != nil {
//			return // net.ErrClosed, nothing else
//		}
//		for _, t := range trains[:n] {
//			for d := range t.Datagrams() {
//				handle(t.Addr, d) // d is valid until the next ReadTrains
//			}
//		}
//	}
//
// # Errors are losses
//
// A datagram socket reports trouble of one packet, often of an earlier one and
// of another peer: refused, unreachable, no buffers, too large. None of these
// is the end of the socket. Reads and writes count them by kind in [Stats] and
// go on; a datagram that could not be sent is lost, as it could have been on
// the path. The one error that ReadTrains and WriteTrains return is
// net.ErrClosed.
//
// # Concurrency
//
// One goroutine reads; any number of goroutines write. [Socket.Close] ends
// both and closes the connection. [Socket.Detach] ends both and leaves the
// connection open and usable, for a connection that belongs to somebody else.
//
// # Memory
//
// Receive buffers come from package bufpool once the socket is readable and
// go back with the next ReadTrains, so that a thousand idle Linux sockets hold
// none. (The one-by-one path has to hold one buffer of MaxDatagram bytes while
// it waits.) The steady state allocates nothing, save what a foreign
// net.PacketConn allocates for its net.Addr values.
package udpio
