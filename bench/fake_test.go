package bench

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/openarkstudio/arknet-go/netem"
)

// fakeDriver is an in-memory transport that can be told to misbehave.
type fakeDriver struct {
	caps Capabilities

	// deliver replaces the delivery of the n-th message (from 0) from the
	// server to a client: what it returns arrives instead.
	deliver func(n int, msg []byte) [][]byte
	// upload is the same from a client to the server.
	upload func(n int, msg []byte) [][]byte
	// complete replaces the call of done for the n-th send of a client.
	complete func(n int, done func(error))
	// send fails the n-th send of a client when it returns an error.
	send func(n int) error
	// dial fails a dial when it returns an error.
	dial func(n int) error
	// room refuses the n-th TrySend when it returns false; nil: no TrySend.
	room func(n int) bool
	// drain is the result of Drain.
	drain error

	stats func() Stats

	listener atomic.Pointer[fakeListener]
	dials    atomic.Int64
	up, down atomic.Uint64 // bytes
	upCount  atomic.Uint64 // messages
	open     atomic.Int64  // Conns
}

func reliableFake() *fakeDriver {
	return &fakeDriver{caps: Capabilities{Reliable: true, Ordered: true, Completions: true, Handshake: true}}
}

func (d *fakeDriver) Name() string               { return "fake" }
func (d *fakeDriver) Capabilities() Capabilities { return d.caps }
func (d *fakeDriver) Describe() map[string]any   { return map[string]any{"fec": "off"} }

type fakeAddr string

func (a fakeAddr) Network() string { return "fake" }
func (a fakeAddr) String() string  { return string(a) }

type fakeListener struct {
	d      *fakeDriver
	conns  chan *fakeConn
	closed chan struct{}
	once   sync.Once
}

func (d *fakeDriver) Listen(context.Context, string) (Listener, error) {
	l := &fakeListener{d: d, conns: make(chan *fakeConn, 64), closed: make(chan struct{})}
	d.listener.Store(l)
	return l, nil
}

func (l *fakeListener) Addr() net.Addr            { return fakeAddr("server:1") }
func (l *fakeListener) SocketBuffers() (int, int) { return 4096, 2048 }

func (l *fakeListener) Accept(ctx context.Context) (Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *fakeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// latency is the one-way delay of the fake transport, and inboxRoom the number
// of messages that may be under way or unread in one direction before Send waits.
const (
	latency   = time.Millisecond
	inboxRoom = 256
)

// fakeConn is one end.
type fakeConn struct {
	d      *fakeDriver
	client bool
	peer   *fakeConn
	sent   int
	tries  int

	inbox chan fakeMessage
	head  *fakeMessage // taken from the inbox, not due yet
	once  sync.Once
	gone  chan struct{}
}

type fakeMessage struct {
	data []byte
	due  time.Time
}

func (d *fakeDriver) Dial(ctx context.Context, _ string) (Conn, error) {
	n := int(d.dials.Add(1) - 1)
	if d.dial != nil {
		if err := d.dial(n); err != nil {
			return nil, err
		}
	}
	a := &fakeConn{d: d, client: true, inbox: make(chan fakeMessage, inboxRoom), gone: make(chan struct{})}
	b := &fakeConn{d: d, peer: a, inbox: make(chan fakeMessage, inboxRoom), gone: make(chan struct{})}
	a.peer = b
	d.open.Add(2)
	select {
	case d.listener.Load().conns <- b:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if d.room != nil {
		return &fakeTryConn{a}, nil
	}
	return a, nil
}

// fakeTryConn adds TrySend.
type fakeTryConn struct{ *fakeConn }

func (c *fakeTryConn) TrySend(msg []byte, done func(error)) (bool, error) {
	c.tries++
	if !c.d.room(c.tries - 1) {
		return false, nil
	}
	err := c.Send(context.Background(), msg, done)
	return err == nil, err
}

func (c *fakeConn) Send(ctx context.Context, msg []byte, done func(error)) error {
	n := c.sent
	c.sent++
	msg = append([]byte(nil), msg...)
	hook := c.d.deliver
	if c.client {
		c.d.up.Add(uint64(len(msg)))
		c.d.upCount.Add(1)
		hook = c.d.upload
		if c.d.send != nil {
			if err := c.d.send(n); err != nil {
				return err
			}
		}
	} else {
		c.d.down.Add(uint64(len(msg)))
	}
	list := [][]byte{msg}
	if hook != nil {
		list = hook(n, msg)
	}
	for _, m := range list {
		select {
		case c.peer.inbox <- fakeMessage{m, time.Now().Add(latency)}:
		case <-c.gone:
			return net.ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if c.client && c.d.complete != nil {
		c.d.complete(n, done)
	} else {
		done(nil)
	}
	return nil
}

func (c *fakeConn) Receive(ctx context.Context, buf []byte) ([]byte, error) {
	if c.head == nil {
		select {
		case m := <-c.inbox:
			c.head = &m
		default:
			select {
			case m := <-c.inbox:
				c.head = &m
			case <-c.gone:
				return nil, net.ErrClosed
			case <-c.peer.gone:
				return nil, io.EOF
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	}
	if wait := time.Until(c.head.due); wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-c.gone:
			return nil, net.ErrClosed
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	msg := append(buf[:0], c.head.data...)
	c.head = nil
	return msg, nil
}

func (c *fakeConn) Drain(context.Context) error { return c.d.drain }

func (c *fakeConn) Stats() Stats {
	if c.d.stats == nil {
		return Stats{}
	}
	return c.d.stats()
}

func (c *fakeConn) SocketBuffers() (int, int) { return 1000, 500 }

func (c *fakeConn) Close() error {
	c.once.Do(func() {
		c.d.open.Add(-1)
		close(c.gone)
	})
	return nil
}

// fakePath connects the clients of a fakeDriver with its server directly.
type fakePath struct {
	d        *fakeDriver
	overflow uint64
	errors   uint64
}

func (p *fakePath) Addr() net.Addr { return fakeAddr("relay:1") }
func (p *fakePath) Close() error   { return nil }

func (p *fakePath) Counters() pathCounters {
	var c pathCounters
	c.FromClients = p.d.upCount.Load()
	c.FromClientsBytes = p.d.up.Load()
	c.FromServerBytes = p.d.down.Load()
	c.overflow = p.overflow
	c.errors = p.errors
	c.trouble = "made up"
	c.peakSum = 77
	return c
}

// quick is a short run over a fake path.
func quick(d *fakeDriver) Config {
	return Config{
		Workload:   Echo,
		Payload:    128,
		Clients:    2,
		Window:     4,
		Profile:    "none",
		Impairment: netem.Config{},
		Warmup:     5 * time.Millisecond,
		Duration:   20 * time.Millisecond,
		Rounds:     1,
		Seed:       7,
		newPath:    func(pathConfig) (path, error) { return &fakePath{d: d}, nil },
	}
}

var errFake = errors.New("made up")
