package rudp_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/openarkstudio/arknet-go"
	"github.com/openarkstudio/arknet-go/rudp"
)

func TestSocketErrorsAreLosses(t *testing.T) {
	for _, test := range []struct {
		name string
		err  error
		long time.Duration
	}{
		{"ENOBUFS", syscall.ENOBUFS, 200 * time.Millisecond},
		{"EAGAIN", syscall.EAGAIN, 200 * time.Millisecond},
		{"ENETUNREACH", syscall.ENETUNREACH, 3 * time.Second},
		{"EHOSTUNREACH", syscall.EHOSTUNREACH, 3 * time.Second},
		{"ECONNREFUSED", syscall.ECONNREFUSED, 50 * time.Millisecond},
		{"EPERM", syscall.EPERM, 300 * time.Millisecond},
	} {
		t.Run(test.name, func(t *testing.T) {
			inWorld(t, delayed(), nil, func(w *world) {
				t := w.t
				go w.echo()
				var bad atomic.Bool
				bad.Store(true)
				wrapped := &net.OpError{Op: "write", Net: "udp", Err: os.NewSyscallError("sendto", test.err)}
				s := w.socketFor()
				s.OnWrite(func(netip.AddrPort, []byte) error {
					if bad.Load() {
						return wrapped
					}
					return nil
				})
				// The very first datagram fails too.
				time.AfterFunc(test.long, func() { bad.Store(false) })
				c, err := rudp.DialPacketConn(t.Context(), s, w.listener.Addr(), nil)
				if err != nil {
					t.Fatal(err)
				}
				expectEcho(t, c, "one")
				bad.Store(true)
				time.AfterFunc(test.long, func() { bad.Store(false) })
				for range 10 {
					s.FailRead(&net.OpError{Op: "read", Net: "udp", Err: os.NewSyscallError("recvfrom", test.err)})
					w.socket.FailRead(&net.OpError{Op: "read", Net: "udp", Err: os.NewSyscallError("recvfrom", test.err)})
				}
				expectEcho(t, c, "two")
				if n := c.SocketStats(); n.WriteErrors == 0 || n.ReadErrors == 0 {
					t.Errorf("%d write and %d read errors counted", n.WriteErrors, n.ReadErrors)
				}
				c.Close()
			})
		})
	}
}

func TestGarbageIsDroppedAndCounted(t *testing.T) {
	inWorld(t, delayed(), nil, func(w *world) {
		t := w.t
		go w.echo()
		c := w.dial(nil)
		expectEcho(t, c, "before")
		clientAddr := c.LocalAddr()
		stranger := w.socketFor()
		rng := rand.New(rand.NewPCG(7, 7))
		sent := uint64(0)
		for _, size := range append(seq(0, 64), rudp.DefaultMTU, rudp.DefaultMTU+1, 65507) {
			for range 20 {
				b := make([]byte, size)
				for _, fill := range []func(){
					func() {},
					func() { copy(b, bytes.Repeat([]byte{0xff}, size)) },
					func() {
						for i := range b {
							b[i] = byte(rng.Uint32())
						}
					},
				} {
					fill()
					for _, to := range []net.Addr{w.listener.Addr(), clientAddr} {
						if _, err := stranger.WriteTo(b, to); err != nil {
							t.Fatal(err)
						}
						sent++
					}
				}
			}
			w.wait(time.Millisecond)
		}
		w.wait(time.Second)
		expectEcho(t, c, "after")
		l, d := w.listener.Stats(), c.SocketStats()
		if l.Sessions != 1 {
			t.Errorf("%d sessions, want 1", l.Sessions)
		}
		counted := l.Malformed + l.UnknownSession + l.BadHandshake + d.Malformed + d.UnknownSession + d.BadHandshake + c.Stats().Dropped.Total()
		if counted != sent {
			t.Errorf("%d datagrams counted, %d sent", counted, sent)
		}
		c.Close()
	})
}

func seq(from, to int) []int {
	var s []int
	for i := from; i <= to; i++ {
		s = append(s, i)
	}
	return s
}

func TestEmptyWrites(t *testing.T) {
	inWorld(t, delayed(), nil, func(w *world) {
		t := w.t
		client, server := w.pair(nil)
		for _, b := range [][]byte{nil, {}} {
			if n, err := client.Write(b); n != 0 || err != nil {
				t.Errorf("empty write: %d, %v", n, err)
			}
			// An empty stream write fixes no mode; an empty message does and arrives.
			if err := server.WriteMessage(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := client.Write([]byte("stream")); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if m, err := client.ReadMessage(t.Context()); err != nil || len(m) != 0 {
				t.Errorf("read %q, %v, want an empty message", m, err)
			}
		}
		client.SetReadDeadline(time.Now().Add(time.Second))
		if m, err := client.ReadMessage(t.Context()); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("read %q, %v, want nothing more", m, err)
		}
		client.Close()
		server.Close()
	})
}

func TestRefusedSendsLeaveNothingBehind(t *testing.T) {
	cfg := &rudp.Config{Limits: arknet.Limits{MaxMessage: 1000, SendQueueMessages: 2, Linger: time.Second}}
	inWorld(t, delayed(), cfg, func(w *world) {
		t := w.t
		client, server := w.pair(nil)
		// The peer's limit is known before anything is queued.
		for _, size := range []int{1001, 1 << 20} {
			if err := client.WriteMessage(t.Context(), make([]byte, size)); !errors.Is(err, arknet.ErrMessageTooLarge) {
				t.Errorf("message of %d bytes: %v", size, err)
			}
		}
		for _, size := range []int{0, 10, 999, 1000} {
			if err := client.WriteMessage(t.Context(), make([]byte, size)); err != nil {
				t.Errorf("message of %d bytes: %v", size, err)
			}
			if m, err := server.ReadMessage(t.Context()); err != nil || len(m) != size {
				t.Errorf("read %d bytes, %v, want %d", len(m), err, size)
			}
		}
		if _, err := client.Write([]byte("stream")); !errors.Is(err, arknet.ErrWrongMode) {
			t.Errorf("stream write: %v", err)
		}
		// A full queue refuses, and says nothing of what it refused.
		remove := w.net.Filter(dropAll)
		var accepted, completed int
		for i := range 1000 {
			err := server.SendFunc([]byte(fmt.Sprint(i)), func(err error) {
				if err != nil {
					t.Errorf("completion: %v", err)
				}
				completed++
			})
			if err == nil {
				accepted++
			} else if !errors.Is(err, arknet.ErrQueueFull) {
				t.Fatal(err)
			}
		}
		remove()
		for range accepted {
			if _, err := client.ReadMessage(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := server.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if completed != accepted || accepted == 1000 {
			t.Errorf("%d accepted, %d completed", accepted, completed)
		}
		client.Close()
		server.Close()
		if err := server.SendFunc(nil, nil); !errors.Is(err, net.ErrClosed) {
			t.Errorf("send after close: %v", err)
		}
	})
}

func TestStreamWriteWithDeadlineTellsWhatWasTaken(t *testing.T) {
	cfg := &rudp.Config{SendWindow: 16 << 10, RecvWindow: 16 << 10, Limits: arknet.Limits{SendQueueBytes: 64 << 10}}
	inWorld(t, delayed(), cfg, func(w *world) {
		t := w.t
		client, server := w.pair(cfg)
		data := make([]byte, 1<<20)
		for i := range data {
			data[i] = byte(i * 7)
		}
		client.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
		n, err := client.Write(data)
		if !errors.Is(err, os.ErrDeadlineExceeded) || n == 0 || n == len(data) {
			t.Fatalf("write: %d, %v", n, err)
		}
		client.SetWriteDeadline(time.Time{})
		go func() {
			if _, err := client.Write([]byte("OK")); err != nil {
				t.Errorf("write: %v", err)
			}
			client.Close()
		}()
		got, err := readAll(server)
		if want := append(data[:n:n], "OK"...); err != nil || !bytes.Equal(got, want) {
			t.Errorf("read %d bytes, %v, want %d", len(got), err, len(want))
		}
		server.Close()
	})
}

func TestMessagesLongerThanTheWindowComplete(t *testing.T) {
	cfg := &rudp.Config{RecvWindow: 16 << 10, RecvWindowSegments: 32}
	path := delayed()
	path.Loss = 0.05
	inWorld(t, path, cfg, func(w *world) {
		t := w.t
		client, server := w.pair(cfg)
		go func() {
			for _, pieces := range []int{31, 32, 33, 127, 128, 255, 256, 900} {
				client.WriteMessage(t.Context(), make([]byte, pieces*1150))
				client.WriteMessage(t.Context(), []byte("0123456789"))
			}
		}()
		for _, pieces := range []int{31, 32, 33, 127, 128, 255, 256, 900} {
			for _, want := range []int{pieces * 1150, 10} {
				if m, err := server.ReadMessage(t.Context()); err != nil || len(m) != want {
					t.Fatalf("read %d bytes, %v, want %d", len(m), err, want)
				}
			}
		}
		client.Close()
		server.Close()
	})
}

func TestConfigErrorsNameFieldAndRange(t *testing.T) {
	for _, test := range []struct {
		cfg  rudp.Config
		want string
	}{
		{rudp.Config{MTU: 50}, "Config.MTU is 50, allowed are 576 to 16384"},
		{rudp.Config{MTU: -1}, "Config.MTU is -1, allowed"},
		{rudp.Config{MTU: 65507}, "Config.MTU is 65507, allowed"},
		{rudp.Config{SendWindow: 1}, "Config.SendWindow is 1, allowed are 16384 to"},
		{rudp.Config{RecvWindowSegments: 1 << 20}, "Config.RecvWindowSegments"},
		{rudp.Config{Congestion: "bbr"}, `Config.Congestion is "bbr", allowed are copa, copa-competitive, newreno, none`},
		{rudp.Config{Congestion: "none"}, "Config.MaxRate is 0"},
		{rudp.Config{MaxRate: 5000, MinRate: 6000}, "Config.MinRate is 6000"},
		{rudp.Config{Retransmit: "twice"}, "Config.Retransmit"},
		{rudp.Config{KeepAlive: time.Microsecond}, "Config.KeepAlive"},
		{rudp.Config{HandshakeTimeout: -1}, "Config.HandshakeTimeout"},
		{rudp.Config{FEC: rudp.FEC{Policy: "some"}}, `Config.FEC.Policy is "some", allowed are adaptive, fixed, off`},
		{rudp.Config{FEC: rudp.FEC{Data: 129}}, "Config.FEC.Data is 129, allowed are 1 to 128"},
		{rudp.Config{FEC: rudp.FEC{Retain: 5}}, "Config.FEC.Retain"},
		{rudp.Config{Limits: arknet.Limits{MaxMessage: -1}}, "Limits.MaxMessage is -1"},
	} {
		_, listenErr := rudp.Listen("udp", "127.0.0.1:0", &test.cfg)
		_, dialErr := rudp.Dial(t.Context(), "udp", "127.0.0.1:1", &test.cfg)
		for _, err := range []error{test.cfg.Validate(), listenErr, dialErr} {
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		}
	}
}
