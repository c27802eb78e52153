package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/openarkstudio/arknet-go/bench"
	"github.com/xtaci/kcp-go/v5"
)

// kcpConfig is one way to run kcp-go. See the README for why these.
type kcpConfig struct {
	name               string
	sendWindow         int // segments
	recvWindow         int // segments
	noDelay            int // 1: minimum RTO 30 ms instead of 100 ms, slower backoff
	interval           int // ms between updates
	resend             int // duplicate acks before a fast retransmission, 0 = never
	noCongestion       int // 1 turns congestion control off
	ackNoDelay         bool
	dataShards, parity int // Reed-Solomon groups, 0 = no FEC
}

const kcpMTU = 1200

// kcpArknetLike mirrors the parameters of the C++ arknet: its windows, its
// update interval, congestion control on.
func kcpArknetLike(data, parity int) kcpConfig {
	return kcpConfig{
		name:       kcpName("kcp-arknet-like", data),
		sendWindow: 128, recvWindow: 512,
		noDelay: 1, interval: 10, resend: 2, noCongestion: 0,
		dataShards: data, parity: parity,
	}
}

// kcpTurbo is the fastest documented setting: no congestion control.
func kcpTurbo(data, parity int) kcpConfig {
	return kcpConfig{
		name:       kcpName("kcp-turbo", data),
		sendWindow: 512, recvWindow: 512,
		noDelay: 1, interval: 10, resend: 2, noCongestion: 1,
		ackNoDelay: true,
		dataShards: data, parity: parity,
	}
}

func kcpName(base string, data int) string {
	if data > 0 {
		return base + "-fec"
	}
	return base
}

// kcpDriver runs kcp-go without encryption, message boundaries by length
// prefix.
type kcpDriver struct {
	config kcpConfig
	tuning tuning
}

// Name implements bench.Driver.
func (d kcpDriver) Name() string { return d.config.name }

// Capabilities implements bench.Driver.
func (d kcpDriver) Capabilities() bench.Capabilities {
	return bench.Capabilities{Reliable: true, Ordered: true, MaxMessage: maxMessage}
}

// Describe implements bench.Describer.
func (d kcpDriver) Describe() map[string]any {
	c := d.config
	fec := "off"
	if c.dataShards > 0 {
		fec = fmt.Sprintf("%d+%d", c.dataShards, c.parity)
	}
	return map[string]any{
		"mtu":                kcpMTU,
		"send_window":        c.sendWindow,
		"receive_window":     c.recvWindow,
		"nodelay":            []int{c.noDelay, c.interval, c.resend, c.noCongestion},
		"ack_nodelay":        d.ackNoDelay(),
		"write_delay":        false,
		"stream_mode":        !d.aligned(),
		"fec":                fec,
		"congestion_control": c.noCongestion == 0,
		"encryption":         "none",
	}
}

// Listen implements bench.Driver.
func (d kcpDriver) Listen(_ context.Context, address string) (bench.Listener, error) {
	socket, err := listenSocket(address)
	if err != nil {
		return nil, err
	}
	inner, err := kcp.ServeConn(nil, d.config.dataShards, d.config.parity, socket)
	if err != nil {
		_ = socket.Close()
		return nil, err
	}
	l := &kcpListener{
		queue:  newAcceptQueue(socket.Close),
		inner:  inner,
		socket: socket,
	}
	go l.run(d)
	return l, nil
}

// Dial implements bench.Driver. kcp-go has no handshake: the server learns of
// the session with the first message.
func (d kcpDriver) Dial(_ context.Context, address string) (bench.Conn, error) {
	socket, remote, err := clientSocket(address)
	if err != nil {
		return nil, err
	}
	session, err := kcp.NewConn2(remote, nil, d.config.dataShards, d.config.parity, socket)
	if err != nil {
		_ = socket.Close()
		return nil, err
	}
	d.apply(session)
	stream := &kcpStream{session: session, socket: socket, aligned: d.aligned()}
	// The session does not own its socket, so closing that is ours.
	return newFramedConn(stream, d.tuning, func() { _ = socket.Close() }), nil
}

// aligned reports whether each message gets a segment of its own: when one fits
// and two do not, a message cut in two gains nothing and waits for both halves.
// All other sizes share and fill segments in kcp-go's stream mode, without which
// small messages use up a window that counts segments.
func (d kcpDriver) aligned() bool {
	const segment = kcpMTU - kcp.IKCP_OVERHEAD - kcpFECHeader
	frame := d.tuning.message + 2
	return frame <= segment && 2*frame > segment
}

// ackNoDelay: where one side only receives, a datagram per acknowledgement costs
// a third of the goodput and hurries nobody.
func (d kcpDriver) ackNoDelay() bool { return d.config.ackNoDelay && !d.tuning.bulk }

// kcpFECHeader is what FEC takes from each datagram.
const kcpFECHeader = 8

// apply sets the parameters on one end of a session.
func (d kcpDriver) apply(s *kcp.UDPSession) {
	c := d.config
	s.SetMtu(kcpMTU)
	s.SetWindowSize(c.sendWindow, c.recvWindow)
	s.SetNoDelay(c.noDelay, c.interval, c.resend, c.noCongestion)
	s.SetACKNoDelay(d.ackNoDelay())
	// Every piece that framedConn hands over is complete: waiting for the next
	// update would add up to an interval to each round trip.
	s.SetWriteDelay(false)
	//lint:ignore SA1019 there is no other way to let small messages share segments
	s.SetStreamMode(!d.aligned())
}

type kcpListener struct {
	queue  *acceptQueue
	inner  *kcp.Listener
	socket *net.UDPConn
}

func (l *kcpListener) run(d kcpDriver) {
	for {
		session, err := l.inner.AcceptKCP()
		if err != nil {
			return
		}
		d.apply(session)
		l.queue.hold()
		stream := &kcpStream{session: session, socket: l.socket, aligned: d.aligned()}
		l.queue.offer(newFramedConn(stream, d.tuning, l.queue.dropQuietly))
	}
}

func (l *kcpListener) Accept(ctx context.Context) (bench.Conn, error) { return l.queue.accept(ctx) }
func (l *kcpListener) Addr() net.Addr                                 { return l.inner.Addr() }
func (l *kcpListener) Close() error                                   { return l.queue.close(l.inner.Close) }
func (l *kcpListener) SocketBuffers() (read, write int)               { return grantedBuffers(l.socket) }

// kcpStream is a byteStream over a session.
type kcpStream struct {
	session *kcp.UDPSession
	socket  *net.UDPConn
	reading bench.Binder
	aligned bool
	pieces  [][]byte
	detour  int // pieces that offer must refuse; guarded by framedConn's turn to write
}

func (s *kcpStream) read(ctx context.Context, p []byte) (int, error) {
	if err := s.reading.Bind(ctx, s.session.SetReadDeadline); err != nil {
		return 0, err
	}
	return s.session.Read(p)
}

func (s *kcpStream) readable(p []byte) (int, error) { return s.session.TryRead(p) }

// offer writes from the calling goroutine, which on a clean path halves the CPU
// of a round trip, as long as kcp-go's window has room. The library cannot say
// beforehand, so a write that took long enough to have waited sends the next
// pieces by way of framedConn's goroutine, where waiting holds up nobody.
func (s *kcpStream) offer(p []byte) (int, error) {
	if s.detour > 0 {
		s.detour--
		return 0, nil
	}
	start := time.Now()
	err := s.write(p)
	if time.Since(start) >= kcpWaited {
		s.detour = kcpDetour
	}
	return len(p), err
}

const (
	kcpWaited = 2 * time.Millisecond
	kcpDetour = 256 // pieces
)

func (s *kcpStream) write(p []byte) error {
	s.pieces = s.pieces[:0]
	for s.aligned && len(p) > 0 {
		size, head := binary.Uvarint(p)
		end := head + int(size)
		s.pieces = append(s.pieces, p[:end])
		p = p[end:]
	}
	if len(p) > 0 {
		s.pieces = append(s.pieces, p)
	}
	_, err := s.session.WriteBuffers(s.pieces)
	return err
}

func (s *kcpStream) close() error {
	err := s.session.Close()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (s *kcpStream) stats() bench.Stats               { return bench.Stats{} }
func (s *kcpStream) socketBuffers() (read, write int) { return grantedBuffers(s.socket) }
