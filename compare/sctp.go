package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/openarkstudio/arknet-go/bench"
	"github.com/pion/logging"
	"github.com/pion/sctp"
	"github.com/pion/transport/v5/udp"
)

const (
	sctpMTU        = 1200
	sctpMaxMessage = 1 << 20
	sctpReceive    = 4 << 20
	sctpStreamID   = 1

	// sctpRTOMax in milliseconds undercuts the second that RFC 9260 asks for as a
	// minimum; the library has no other way to set it. With the second, whole
	// windows stall on a lossy path and runs end undrained.
	sctpRTOMax = 100
)

// sctpDriver runs pion/sctp straight over UDP, as WebRTC runs it over DTLS: one
// association per client, one ordered reliable stream, whole messages.
type sctpDriver struct{ tuning tuning }

// Name implements bench.Driver.
func (sctpDriver) Name() string { return "pion-sctp" }

// Capabilities implements bench.Driver.
func (sctpDriver) Capabilities() bench.Capabilities {
	return bench.Capabilities{Reliable: true, Ordered: true, Handshake: true, MaxMessage: sctpMaxMessage}
}

// Describe implements bench.Describer.
func (sctpDriver) Describe() map[string]any {
	return map[string]any{
		"mtu":                sctpMTU,
		"receive_buffer":     sctpReceive,
		"rto_max_ms":         sctpRTOMax,
		"congestion_control": "sctp (rfc 9260), rack",
		"encryption":         "none",
	}
}

// inside bounds what may wait in a library that keeps data until it is
// acknowledged.
func (t tuning) inside() int {
	if t.bulk {
		return bulkWriteBuffer
	}
	return t.queue
}

// quietLogs drops the library's log, which by default names lost packets.
func quietLogs() logging.LoggerFactory {
	f := logging.NewDefaultLoggerFactory()
	f.DefaultLogLevel = logging.LogLevelDisabled
	f.Writer = io.Discard
	return f
}

// Listen implements bench.Driver. pion's own UDP listener tells the clients
// apart.
func (d sctpDriver) Listen(_ context.Context, address string) (bench.Listener, error) {
	addr, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		return nil, err
	}
	config := udp.ListenConfig{ReadBufferSize: socketBuffer, WriteBufferSize: socketBuffer}
	inner, err := config.Listen("udp", addr)
	if err != nil {
		return nil, err
	}
	// The listener's socket outlives it until the last association is closed.
	l := &sctpListener{queue: newAcceptQueue(func() error { return nil }), inner: inner, limit: d.tuning.inside()}
	go l.run()
	return l, nil
}

// Dial implements bench.Driver.
func (d sctpDriver) Dial(ctx context.Context, address string) (bench.Conn, error) {
	socket, remote, err := clientSocket(address)
	if err != nil {
		return nil, err
	}
	conn := &connectedSocket{UDPConn: socket, remote: remote}
	assoc, err := sctp.ClientContext(ctx,
		sctp.WithNetConn(conn),
		sctp.WithLoggerFactory(quietLogs()),
		sctp.WithMTU(sctpMTU),
		sctp.WithRTOMax(sctpRTOMax),
		sctp.WithMaxReceiveBufferSize(sctpReceive),
		sctp.WithMaxMessageSize(sctpMaxMessage),
	)
	if err != nil {
		_ = socket.Close()
		return nil, err
	}
	stream, err := assoc.OpenStream(sctpStreamID, sctp.PayloadTypeWebRTCBinary)
	if err == nil {
		// A stream shows on the other side with its first message.
		_, err = stream.Write([]byte{streamOpen})
	}
	if err != nil {
		_ = assoc.Close()
		return nil, err
	}
	return newSCTPConn(assoc, stream, socket, d.tuning.inside(), nil), nil
}

// connectedSocket makes a net.Conn of an unconnected socket, so that every
// driver uses the same kind of socket.
type connectedSocket struct {
	*net.UDPConn
	remote *net.UDPAddr
}

func (c *connectedSocket) Read(p []byte) (int, error) {
	n, _, err := c.ReadFromUDPAddrPort(p)
	return n, err
}

func (c *connectedSocket) Write(p []byte) (int, error) { return c.WriteToUDP(p, c.remote) }
func (c *connectedSocket) RemoteAddr() net.Addr        { return c.remote }

type sctpListener struct {
	queue *acceptQueue
	inner net.Listener
	limit int
}

func (l *sctpListener) run() {
	for {
		conn, err := l.inner.Accept()
		if err != nil {
			return
		}
		l.queue.hold()
		go l.open(conn)
	}
}

func (l *sctpListener) open(conn net.Conn) {
	// Nothing bounds the wait for a client's handshake but the connection's end.
	timer := time.AfterFunc(openTimeout, func() { _ = conn.Close() })
	assoc, err := sctp.ServerWithOptions(
		sctp.WithNetConn(conn),
		sctp.WithLoggerFactory(quietLogs()),
		sctp.WithMTU(sctpMTU),
		sctp.WithRTOMax(sctpRTOMax),
		sctp.WithMaxReceiveBufferSize(sctpReceive),
		sctp.WithMaxMessageSize(sctpMaxMessage),
	)
	if err != nil {
		timer.Stop()
		_ = conn.Close()
		l.queue.dropQuietly()
		return
	}
	stream, err := assoc.AcceptStream()
	if err == nil {
		err = readOpen(stream)
	}
	timer.Stop()
	if err != nil {
		_ = assoc.Close()
		l.queue.dropQuietly()
		return
	}
	l.queue.offer(newSCTPConn(assoc, stream, nil, l.limit, l.queue.dropQuietly))
}

func (l *sctpListener) Accept(ctx context.Context) (bench.Conn, error) { return l.queue.accept(ctx) }
func (l *sctpListener) Addr() net.Addr                                 { return l.inner.Addr() }

func (l *sctpListener) Close() error {
	return l.queue.close(func() error {
		// Closing waits for open associations when there are none left to wait
		// for, so it cannot hold up the harness.
		return l.inner.Close()
	})
}

// sctpConn is an association with its one stream.
type sctpConn struct {
	assoc   *sctp.Association
	stream  *sctp.Stream
	socket  *net.UDPConn // nil on the server, whose socket is shared
	in      []byte
	limit   uint64 // bytes accepted and not acknowledged
	reading bench.Binder
	onClose func()

	mu     sync.Mutex
	room   sync.Cond
	closed bool

	closeOnce sync.Once
	closeErr  error
}

func newSCTPConn(a *sctp.Association, s *sctp.Stream, socket *net.UDPConn, limit int, onClose func()) *sctpConn {
	c := &sctpConn{assoc: a, stream: s, socket: socket, in: make([]byte, sctpMaxMessage), limit: uint64(limit), onClose: onClose}
	c.room.L = &c.mu
	s.SetReliabilityParams(false, sctp.ReliabilityTypeReliable, 0)
	s.SetBufferedAmountLowThreshold(c.limit / 2)
	s.OnBufferedAmountLow(func() {
		c.mu.Lock()
		c.room.Broadcast()
		c.mu.Unlock()
	})
	return c
}

func (c *sctpConn) full() bool { return c.stream.BufferedAmount() >= c.limit }

// Send implements bench.Conn. The library queues without bound, so the limit is
// kept here.
func (c *sctpConn) Send(ctx context.Context, msg []byte, done func(error)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for c.full() {
		if err := c.waitRoom(ctx); err != nil {
			return err
		}
	}
	return c.write(msg, done)
}

// TrySend implements bench.TrySender.
func (c *sctpConn) TrySend(msg []byte, done func(error)) (bool, error) {
	if c.full() {
		return false, nil
	}
	if err := c.write(msg, done); err != nil {
		return false, err
	}
	return true, nil
}

func (c *sctpConn) write(msg []byte, done func(error)) error {
	if _, err := c.stream.Write(msg); err != nil {
		return c.ended(err)
	}
	if done != nil {
		done(nil)
	}
	return nil
}

func (c *sctpConn) waitRoom(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		c.mu.Lock()
		c.room.Broadcast()
		c.mu.Unlock()
	})
	defer stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.full() {
		if c.closed {
			return net.ErrClosed
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		c.room.Wait()
	}
	return nil
}

// Receive implements bench.Conn.
func (c *sctpConn) Receive(ctx context.Context, buf []byte) ([]byte, error) {
	if err := c.reading.Bind(ctx, c.stream.SetReadDeadline); err != nil {
		return nil, err
	}
	n, err := c.stream.Read(c.in)
	if err != nil {
		if ctxErr := ctx.Err(); ctxErr != nil {
			return nil, ctxErr
		}
		return nil, c.ended(err)
	}
	return append(buf[:0], c.in[:n]...), nil
}

func (c *sctpConn) ended(err error) error {
	c.mu.Lock()
	closed := c.closed
	c.mu.Unlock()
	if errors.Is(err, sctp.ErrUserInitiatedAbort) {
		return io.EOF
	}
	if closed && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("%w: %w", net.ErrClosed, err)
	}
	return err
}

// Close implements bench.Conn.
func (c *sctpConn) Close() error {
	c.closeOnce.Do(func() {
		c.mu.Lock()
		c.closed = true
		c.room.Broadcast()
		c.mu.Unlock()
		// Close alone tells the peer nothing, and a later association from the
		// same address would look like a restart of this one.
		c.assoc.Abort("")
		c.closeErr = c.assoc.Close()
		if errors.Is(c.closeErr, net.ErrClosed) {
			c.closeErr = nil
		}
		if c.onClose != nil {
			c.onClose()
		}
	})
	return c.closeErr
}

// Stats implements bench.StatsReader.
func (c *sctpConn) Stats() bench.Stats {
	return bench.Stats{SentBytes: c.assoc.BytesSent(), ReceivedBytes: c.assoc.BytesReceived()}
}

// SocketBuffers implements bench.BufferReader.
func (c *sctpConn) SocketBuffers() (read, write int) {
	if c.socket == nil {
		return 0, 0
	}
	return grantedBuffers(c.socket)
}
