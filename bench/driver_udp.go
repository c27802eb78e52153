package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"time"
)

// maxDatagram is the longest UDP payload on IPv4.
const maxDatagram = 65507

// receiveBuffer is what every socket of a driver asks for, in bytes.
const receiveBuffer = 4 << 20

// RawUDP returns the driver of plain UDP: one datagram per message, one system
// call per datagram, nothing on top. It is the floor that a reliable transport
// is compared with, and runs over paths without loss only.
func RawUDP() Driver { return rawUDP{} }

type rawUDP struct{}

func (rawUDP) Name() string { return "raw-udp" }
func (rawUDP) Capabilities() Capabilities {
	return Capabilities{Ordered: true, MaxMessage: maxDatagram}
}

func (rawUDP) Listen(_ context.Context, address string) (Listener, error) {
	local, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		return nil, err
	}
	socket, err := net.ListenUDP("udp", local)
	if err != nil {
		return nil, err
	}
	if err := enlarge(socket); err != nil {
		return nil, err
	}
	l := &rawListener{closed: make(chan struct{}), first: make(chan struct{}, 1)}
	l.conn.socket = socket
	l.first <- struct{}{}
	return l, nil
}

func (rawUDP) Dial(_ context.Context, address string) (Conn, error) {
	remote, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		return nil, err
	}
	socket, err := net.DialUDP("udp", nil, remote)
	if err != nil {
		return nil, err
	}
	if err := enlarge(socket); err != nil {
		return nil, err
	}
	return &rawConn{socket: socket, connected: true}, nil
}

// enlarge asks for the receive buffer that all drivers get. On an error it closes
// the socket.
func enlarge(socket *net.UDPConn) error {
	if err := socket.SetReadBuffer(receiveBuffer); err != nil {
		_ = socket.Close()
		return fmt.Errorf("receive buffer: %w", err)
	}
	forceReadBuffer(socket, receiveBuffer)
	return nil
}

// rawListener has one association for all peers: what arrives is answered to
// where it came from, which is all that an echo server needs.
type rawListener struct {
	conn   rawConn
	first  chan struct{}
	closed chan struct{}
	once   atomic.Bool
}

func (l *rawListener) Accept(ctx context.Context) (Conn, error) {
	select {
	case <-l.first:
		return &l.conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *rawListener) Addr() net.Addr            { return l.conn.socket.LocalAddr() }
func (l *rawListener) SocketBuffers() (int, int) { return l.conn.SocketBuffers() }

func (l *rawListener) Close() error {
	if !l.once.Swap(true) {
		close(l.closed)
	}
	return l.conn.Close()
}

// rawConn is a UDP socket, connected on the client's side.
type rawConn struct {
	socket    *net.UDPConn
	connected bool
	peer      netip.AddrPort // of the last datagram, on the server's side
	binder    Binder
}

func (c *rawConn) Send(_ context.Context, msg []byte, done func(error)) error {
	var err error
	if c.connected {
		_, err = c.socket.Write(msg)
	} else {
		_, err = c.socket.WriteToUDPAddrPort(msg, c.peer)
	}
	if err != nil {
		return err
	}
	if done != nil {
		done(nil)
	}
	return nil
}

// TrySend never waits longer than the kernel takes for a datagram.
func (c *rawConn) TrySend(msg []byte, done func(error)) (bool, error) {
	err := c.Send(context.Background(), msg, done)
	return err == nil, err
}

func (c *rawConn) Receive(ctx context.Context, buf []byte) ([]byte, error) {
	if err := c.binder.Bind(ctx, c.setDeadline); err != nil {
		return nil, err
	}
	if cap(buf) <= maxDatagram {
		buf = make([]byte, 0, maxDatagram+1)
	}
	buf = buf[:cap(buf)]
	var n int
	var err error
	if c.connected {
		n, err = c.socket.Read(buf)
	} else {
		n, c.peer, err = c.socket.ReadFromUDPAddrPort(buf)
	}
	if err != nil {
		return nil, err
	}
	return buf[:n], nil
}

func (c *rawConn) setDeadline(t time.Time) error { return c.socket.SetReadDeadline(t) }

func (c *rawConn) Close() error {
	err := c.socket.Close()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (c *rawConn) SocketBuffers() (int, int) { return socketBuffers(c.socket) }
