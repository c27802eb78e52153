package rudp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openarkstudio/arknet-go/internal/simnet"
	"github.com/openarkstudio/arknet-go/netem"
	"github.com/openarkstudio/arknet-go/rudp"
)

// world is a listener and the hosts around it on an in-memory network under a
// fake clock.
type world struct {
	t        *testing.T
	net      *simnet.Network
	listener *rudp.Listener
	socket   *simnet.Conn // of the listener
	hosts    int
}

const serverAddress = "10.0.0.1:9000"

// inWorld runs test in a bubble of fake time. Every goroutine that the endpoint
// started must have ended when it returns, or the bubble reports a deadlock.
func inWorld(t *testing.T, path netem.Config, cfg *rudp.Config, test func(*world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := simnet.New(42)
		n.SetDefault(path)
		socket, err := n.Listen(serverAddress)
		if err != nil {
			t.Fatal(err)
		}
		l, err := rudp.NewListener(socket, cfg)
		if err != nil {
			t.Fatal(err)
		}
		w := &world{t: t, net: n, listener: l, socket: socket}
		test(w)
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Errorf("close of the listener: %v", err)
		}
		// Sessions that linger come to their end.
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if err := n.Close(); err != nil {
			t.Errorf("close of the network: %v", err)
		}
	})
}

// delayed is a path of 20 ms round trip.
func delayed() netem.Config { return netem.Config{Delay: 10 * time.Millisecond} }

// socketFor opens a socket on a host of its own.
func (w *world) socketFor() *simnet.Conn {
	w.t.Helper()
	w.hosts++
	s, err := w.net.Listen(fmt.Sprintf("10.0.1.%d:0", w.hosts))
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// dial opens a session from a new host, without a server session.
func (w *world) dial(cfg *rudp.Config) *rudp.Conn {
	w.t.Helper()
	c, err := rudp.DialPacketConn(w.t.Context(), w.socketFor(), w.listener.Addr(), cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// pair opens a session and accepts it.
func (w *world) pair(cfg *rudp.Config) (client, server *rudp.Conn) {
	w.t.Helper()
	client = w.dial(cfg)
	server, err := w.listener.AcceptConn(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return client, server
}

// echo serves sessions until the listener closes.
func (w *world) echo() {
	for {
		c, err := w.listener.AcceptConn(context.Background())
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			for {
				m, err := c.ReadMessage(context.Background())
				if err != nil {
					return
				}
				if err := c.WriteMessage(context.Background(), m); err != nil {
					return
				}
			}
		}()
	}
}

// expectEcho sends a message and waits for the same one.
func expectEcho(t *testing.T, c *rudp.Conn, text string) {
	t.Helper()
	if err := c.WriteMessage(t.Context(), []byte(text)); err != nil {
		t.Fatalf("write of %q: %v", text, err)
	}
	m, err := c.ReadMessage(t.Context())
	if err != nil || string(m) != text {
		t.Fatalf("echo is %q, %v, want %q", m, err, text)
	}
}

// within fails the test unless f returns after at least lo and at most hi.
func within(t *testing.T, lo, hi time.Duration, what string, f func()) {
	t.Helper()
	start := time.Now()
	f()
	if d := time.Since(start); d < lo || d > hi {
		t.Errorf("%s took %v, want %v to %v", what, d, lo, hi)
	}
}

type datagram = simnet.Datagram

func dropAll(*datagram) bool { return false }

func readAll(c *rudp.Conn) ([]byte, error) { return io.ReadAll(c) }

// wait lets d of fake time pass.
func (w *world) wait(d time.Duration) { time.Sleep(d) }
