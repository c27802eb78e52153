package main

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/openarkstudio/arknet-go/bench"
	"github.com/quic-go/quic-go"
)

// quicWindow is the flow-control window and buffer of both QUIC libraries.
const quicWindow = 4 << 20

// quicGoDriver runs quic-go with one bidirectional stream per connection.
type quicGoDriver struct{ tuning tuning }

// Name implements bench.Driver.
func (quicGoDriver) Name() string { return "quic-go" }

// Capabilities implements bench.Driver.
func (quicGoDriver) Capabilities() bench.Capabilities {
	return bench.Capabilities{Reliable: true, Ordered: true, Handshake: true, MaxMessage: maxMessage}
}

// Describe implements bench.Describer.
func (quicGoDriver) Describe() map[string]any {
	return map[string]any{
		"mtu":                1200,
		"mtu_discovery":      false,
		"flow_window":        quicWindow,
		"congestion_control": "cubic",
		"encryption":         "tls 1.3",
	}
}

func quicGoConfig() *quic.Config {
	return &quic.Config{
		InitialPacketSize:              1200,
		DisablePathMTUDiscovery:        true,
		InitialStreamReceiveWindow:     quicWindow,
		MaxStreamReceiveWindow:         quicWindow,
		InitialConnectionReceiveWindow: quicWindow,
		MaxConnectionReceiveWindow:     quicWindow,
	}
}

// Listen implements bench.Driver.
func (d quicGoDriver) Listen(_ context.Context, address string) (bench.Listener, error) {
	pair, err := throwAwayTLS()
	if err != nil {
		return nil, err
	}
	socket, err := listenSocket(address)
	if err != nil {
		return nil, err
	}
	transport := &quic.Transport{Conn: socket}
	inner, err := transport.Listen(pair.server, quicGoConfig())
	if err != nil {
		_ = socket.Close()
		return nil, err
	}
	l := &quicGoListener{
		queue: newAcceptQueue(func() error {
			return errors.Join(transport.Close(), socket.Close())
		}),
		inner:  inner,
		socket: socket,
		tuning: d.tuning,
	}
	go l.run()
	return l, nil
}

// Dial implements bench.Driver.
func (d quicGoDriver) Dial(ctx context.Context, address string) (bench.Conn, error) {
	pair, err := throwAwayTLS()
	if err != nil {
		return nil, err
	}
	socket, remote, err := clientSocket(address)
	if err != nil {
		return nil, err
	}
	transport := &quic.Transport{Conn: socket}
	cleanup := func() {
		_ = transport.Close()
		_ = socket.Close()
	}
	conn, err := transport.Dial(ctx, remote, pair.client, quicGoConfig())
	if err != nil {
		cleanup()
		return nil, err
	}
	stream, err := conn.OpenStreamSync(ctx)
	if err == nil {
		// A stream shows on the other side with its first byte.
		_, err = stream.Write([]byte{streamOpen})
	}
	if err != nil {
		_ = conn.CloseWithError(0, "")
		cleanup()
		return nil, err
	}
	s := &quicGoStream{conn: conn, stream: stream, socket: socket, bulk: d.tuning.bulk}
	return newFramedConn(s, d.tuning, cleanup), nil
}

type quicGoListener struct {
	queue  *acceptQueue
	inner  *quic.Listener
	socket *net.UDPConn
	tuning tuning
}

func (l *quicGoListener) run() {
	for {
		conn, err := l.inner.Accept(context.Background())
		if err != nil {
			return
		}
		l.queue.hold()
		go l.open(conn)
	}
}

func (l *quicGoListener) open(conn *quic.Conn) {
	stream, err := conn.AcceptStream(conn.Context())
	if err == nil {
		err = readOpen(stream)
	}
	if err != nil {
		_ = conn.CloseWithError(0, "")
		l.queue.dropQuietly()
		return
	}
	s := &quicGoStream{conn: conn, stream: stream, socket: l.socket, bulk: l.tuning.bulk}
	l.queue.offer(newFramedConn(s, l.tuning, l.queue.dropQuietly))
}

func (l *quicGoListener) Accept(ctx context.Context) (bench.Conn, error) { return l.queue.accept(ctx) }
func (l *quicGoListener) Addr() net.Addr                                 { return l.inner.Addr() }
func (l *quicGoListener) Close() error                                   { return l.queue.close(l.inner.Close) }
func (l *quicGoListener) SocketBuffers() (read, write int)               { return grantedBuffers(l.socket) }

// quicGoStream is a byteStream over a connection with one stream.
type quicGoStream struct {
	conn    *quic.Conn
	stream  *quic.Stream
	socket  *net.UDPConn
	reading bench.Binder
	bulk    bool
}

func (s *quicGoStream) read(ctx context.Context, p []byte) (int, error) {
	if err := s.reading.Bind(ctx, s.stream.SetReadDeadline); err != nil {
		return 0, err
	}
	return s.stream.Read(p)
}

// readable: a read of quic-go already returns everything that has arrived.
func (s *quicGoStream) readable([]byte) (int, error) { return 0, nil }

// offer queues inside the library, up to the flow-control window. Bulk data
// goes through Write, which keeps no more than a packet there.
func (s *quicGoStream) offer(p []byte) (int, error) {
	if s.bulk {
		return 0, nil
	}
	switch err := s.stream.TryWriteAll(p); {
	case err == nil:
		return len(p), nil
	case errors.Is(err, quic.ErrWouldBlock):
		return 0, nil
	default:
		return 0, err
	}
}

func (s *quicGoStream) write(p []byte) error {
	_, err := s.stream.Write(p)
	return err
}

func (s *quicGoStream) close() error { return s.conn.CloseWithError(0, "") }

func (s *quicGoStream) stats() bench.Stats {
	st := s.conn.ConnectionStats()
	return bench.Stats{
		SentDatagrams:     st.PacketsSent,
		SentBytes:         st.BytesSent,
		ReceivedDatagrams: st.PacketsReceived,
		ReceivedBytes:     st.BytesReceived,
		Retransmitted:     st.PacketsLost,
	}
}

func (s *quicGoStream) socketBuffers() (read, write int) { return grantedBuffers(s.socket) }

// streamOpen is the first byte of a QUIC stream, sent by the client so that the
// server's accept returns before the first message.
const streamOpen = 'o'

// deadlineReader is the part of a stream that readOpen needs.
type deadlineReader interface {
	Read(p []byte) (int, error)
	SetReadDeadline(t time.Time) error
}

// readOpen takes the opening byte.
func readOpen(stream deadlineReader) error {
	if err := stream.SetReadDeadline(time.Now().Add(openTimeout)); err != nil {
		return err
	}
	var first [1]byte
	if _, err := stream.Read(first[:]); err != nil {
		return err
	}
	if first[0] != streamOpen {
		return errors.New("stream does not begin with the opening byte")
	}
	return stream.SetReadDeadline(time.Time{})
}

// openTimeout bounds the wait for the opening byte.
const openTimeout = 10 * time.Second
