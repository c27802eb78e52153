package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/openarkstudio/arknet-go/bench"
	"golang.org/x/net/quic"
)

// xnetQUICDriver runs golang.org/x/net/quic with one bidirectional stream per
// connection.
type xnetQUICDriver struct{ tuning tuning }

// Name implements bench.Driver.
func (xnetQUICDriver) Name() string { return "xnet-quic" }

// Capabilities implements bench.Driver.
func (xnetQUICDriver) Capabilities() bench.Capabilities {
	return bench.Capabilities{Reliable: true, Ordered: true, Handshake: true, MaxMessage: maxMessage}
}

// Describe implements bench.Describer.
func (xnetQUICDriver) Describe() map[string]any {
	return map[string]any{
		"mtu":                1200, // the library's constant
		"mtu_discovery":      false,
		"flow_window":        quicWindow,
		"congestion_control": "newreno",
		"encryption":         "tls 1.3",
	}
}

// bulkWriteBuffer holds what one-way traffic has in flight; the library keeps
// data there until it is acknowledged.
const bulkWriteBuffer = 512 << 10

func xnetQUICConfig(server bool, t tuning) (*quic.Config, error) {
	pair, err := throwAwayTLS()
	if err != nil {
		return nil, err
	}
	config := &quic.Config{
		TLSConfig:                pair.client,
		MaxStreamReadBufferSize:  quicWindow,
		MaxStreamWriteBufferSize: quicWindow,
		MaxConnReadBufferSize:    quicWindow,
	}
	if t.bulk {
		config.MaxStreamWriteBufferSize = bulkWriteBuffer
	}
	if server {
		config.TLSConfig = pair.server
	}
	return config, nil
}

// Listen implements bench.Driver.
func (d xnetQUICDriver) Listen(_ context.Context, address string) (bench.Listener, error) {
	config, err := xnetQUICConfig(true, d.tuning)
	if err != nil {
		return nil, err
	}
	socket, err := listenSocket(address)
	if err != nil {
		return nil, err
	}
	endpoint, err := quic.NewEndpoint(socket, config)
	if err != nil {
		_ = socket.Close()
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &xnetQUICListener{
		queue:  newAcceptQueue(func() error { return closeEndpoint(endpoint) }),
		socket: socket,
		cancel: cancel,
		tuning: d.tuning,
	}
	go l.run(ctx, endpoint)
	return l, nil
}

// Dial implements bench.Driver.
func (d xnetQUICDriver) Dial(ctx context.Context, address string) (bench.Conn, error) {
	config, err := xnetQUICConfig(false, d.tuning)
	if err != nil {
		return nil, err
	}
	socket, remote, err := clientSocket(address)
	if err != nil {
		return nil, err
	}
	endpoint, err := quic.NewEndpoint(socket, nil)
	if err != nil {
		_ = socket.Close()
		return nil, err
	}
	// Saying goodbye takes a while, and a user with one endpoint for many
	// connections would not wait for it.
	cleanup := func() { go func() { _ = closeEndpoint(endpoint) }() }
	conn, err := endpoint.Dial(ctx, "udp", remote.String(), config)
	if err != nil {
		cleanup()
		return nil, err
	}
	stream, err := conn.NewStream(ctx)
	if err == nil {
		// A stream shows on the other side with its first byte.
		if _, err = stream.Write([]byte{streamOpen}); err == nil {
			err = stream.Flush()
		}
	}
	if err != nil {
		conn.Abort(nil)
		cleanup()
		return nil, err
	}
	return newFramedConn(newXnetStream(conn, stream, socket), d.tuning, cleanup), nil
}

// closeEndpoint gives open connections a moment to say goodbye.
func closeEndpoint(e *quic.Endpoint) error {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if err := e.Close(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

type xnetQUICListener struct {
	queue  *acceptQueue
	socket *net.UDPConn
	cancel context.CancelFunc
	tuning tuning
}

func (l *xnetQUICListener) run(ctx context.Context, endpoint *quic.Endpoint) {
	for {
		conn, err := endpoint.Accept(ctx)
		if err != nil {
			return
		}
		l.queue.hold()
		go l.open(ctx, conn)
	}
}

func (l *xnetQUICListener) open(ctx context.Context, conn *quic.Conn) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	stream, err := conn.AcceptStream(ctx)
	if err == nil {
		err = readXnetOpen(ctx, stream)
	}
	if err != nil {
		conn.Abort(nil)
		l.queue.dropQuietly()
		return
	}
	l.queue.offer(newFramedConn(newXnetStream(conn, stream, l.socket), l.tuning, l.queue.dropQuietly))
}

func readXnetOpen(ctx context.Context, stream *quic.Stream) error {
	stream.SetReadContext(ctx)
	first, err := stream.ReadByte()
	if err != nil {
		return err
	}
	if first != streamOpen {
		return errors.New("stream does not begin with the opening byte")
	}
	return nil
}

func (l *xnetQUICListener) Accept(ctx context.Context) (bench.Conn, error) {
	return l.queue.accept(ctx)
}

func (l *xnetQUICListener) Addr() net.Addr                   { return l.socket.LocalAddr() }
func (l *xnetQUICListener) SocketBuffers() (read, write int) { return grantedBuffers(l.socket) }

func (l *xnetQUICListener) Close() error {
	return l.queue.close(func() error {
		l.cancel()
		return nil
	})
}

// xnetStream is a byteStream over a connection with one stream.
type xnetStream struct {
	conn    *quic.Conn
	stream  *quic.Stream
	socket  *net.UDPConn
	closing context.Context // ends a waiting write
	cancel  context.CancelFunc
	now     context.Context // has ended: a write with it never waits
}

func newXnetStream(conn *quic.Conn, stream *quic.Stream, socket *net.UDPConn) *xnetStream {
	now, end := context.WithCancel(context.Background())
	end()
	s := &xnetStream{conn: conn, stream: stream, socket: socket, now: now}
	s.closing, s.cancel = context.WithCancel(context.Background())
	return s
}

func (s *xnetStream) read(ctx context.Context, p []byte) (int, error) {
	s.stream.SetReadContext(ctx)
	n, err := s.stream.Read(p)
	var goodbye *quic.ConnectionCloseError
	switch {
	case errors.As(err, &goodbye) && goodbye.Code == goodbyeCode:
		err = io.EOF
	case err != nil && ctx.Err() == nil && s.closing.Err() == nil:
		err = s.why(err)
	}
	return n, err
}

// why adds to a stream's error what ended its connection: the stream of a
// connection that gave up by itself says no more than that it is closed.
func (s *xnetStream) why(err error) error {
	ctx, cancel := context.WithTimeout(s.closing, time.Second)
	defer cancel()
	if cause := s.conn.Wait(ctx); cause != nil && ctx.Err() == nil {
		return fmt.Errorf("%w: %w", err, cause)
	}
	return err
}

// goodbyeCode ends a connection in good order.
const goodbyeCode = 0

// readable: a read of this library already returns everything that has arrived
// in one piece.
func (s *xnetStream) readable([]byte) (int, error) { return 0, nil }

func (s *xnetStream) offer(p []byte) (int, error) {
	s.stream.SetWriteContext(s.now)
	n, err := s.stream.Write(p)
	if err != nil && !errors.Is(err, context.Canceled) {
		return n, err
	}
	return n, s.stream.Flush()
}

func (s *xnetStream) write(p []byte) error {
	s.stream.SetWriteContext(s.closing)
	if _, err := s.stream.Write(p); err != nil {
		return err
	}
	return s.stream.Flush()
}

func (s *xnetStream) close() error {
	s.cancel()
	s.conn.Abort(&quic.ConnectionCloseError{Code: goodbyeCode})
	return nil
}

func (s *xnetStream) stats() bench.Stats               { return bench.Stats{} }
func (s *xnetStream) socketBuffers() (read, write int) { return grantedBuffers(s.socket) }
