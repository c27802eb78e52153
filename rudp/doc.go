// Package rudp is reliable UDP: ordered messages or a byte stream between two
// hosts over datagrams that may be lost, delayed, duplicated and reordered.
//
//	l, err := rudp.Listen("udp", ":9000", nil)
//	c, err := l.AcceptConn(ctx)
//
//	c, err := rudp.Dial(ctx, "udp", "example.org:9000", nil)
//	err = c.WriteMessage(ctx, []byte("hello"))
//	m, err := c.ReadMessage(ctx)
//
// # Messages or a stream
//
// The first write fixes what a direction carries: WriteMessage and SendFunc
// make it carry messages with their boundaries, Write a byte stream. Both are
// ordered and reliable. The two directions are independent. Reading in the
// other form fails with arknet.ErrWrongMode and loses nothing.
//
// A Conn is a net.Conn and a Listener a net.Listener, so that whatever runs
// over TCP, net/http for one, runs over them.
//
// # What a completed send means
//
// A write returns when the session has taken the bytes. SendFunc and Flush
// tell when the peer's transport has acknowledged them; the peer's application
// may still not have read them. Close delivers what was accepted, for at most
// Limits.Linger, and returns an *arknet.UnacknowledgedError when it could not.
// Data of the peer that arrives after Close is acknowledged and discarded.
//
// # Security
//
// This is plain mode: datagrams carry a checksum keyed by random numbers that
// both sides exchange, which keeps damaged, foreign and blindly forged
// datagrams out. It is no protection against anyone who can read the traffic:
// such an attacker can read, forge and end sessions.
//
// # Goroutines
//
// A Listener runs three goroutines and a dialled Conn three of its own,
// whatever the number of sessions or messages; they end with the last session
// of the socket. All methods are safe for concurrent use.
package rudp
