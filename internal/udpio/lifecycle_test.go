package udpio

import (
	"errors"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openarkstudio/arknet-go/internal/bufpool"
)

func TestCloseUnblocksReader(t *testing.T) {
	each(t, func(t *testing.T, loopback string, opts Options) {
		s := newSocket(t, listen(t, "udp", loopback), opts)
		done := make(chan error)
		go func() {
			_, err := s.ReadTrains(make([]Train, 4))
			done <- err
		}()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; err != net.ErrClosed {
			t.Errorf("ReadTrains: %v, want net.ErrClosed", err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("second Close: %v", err)
		}
		if err := s.Detach(); err != nil {
			t.Errorf("Detach after Close: %v", err)
		}
		if n, err := s.WriteTrains([]Train{{Addr: addrOf(s)}}); n != 0 || err != net.ErrClosed {
			t.Errorf("WriteTrains after Close: %d, %v; want 0, net.ErrClosed", n, err)
		}
		s.Stats() // still readable
	})
}

// The owner closes the connection below the socket: the same as Close.
func TestConnectionClosedBelow(t *testing.T) {
	each(t, func(t *testing.T, loopback string, opts Options) {
		pc := listen(t, "udp", loopback)
		s := newSocket(t, pc, opts)
		done := make(chan error)
		go func() {
			_, err := s.ReadTrains(make([]Train, 4))
			done <- err
		}()
		pc.Close()
		if err := <-done; err != net.ErrClosed {
			t.Errorf("ReadTrains: %v, want net.ErrClosed", err)
		}
		if _, err := s.WriteTrains([]Train{{Buf: []byte("x"), Addr: addrOf(s)}}); err != net.ErrClosed {
			t.Errorf("WriteTrains: %v, want net.ErrClosed", err)
		}
	})
}

// A borrowed connection changes hands a hundred times between its owner and
// sockets, and each gets all that is sent while it has it.
func TestDetach(t *testing.T) {
	each(t, func(t *testing.T, loopback string, opts Options) {
		pc := listen(t, "udp", loopback)
		peer := listen(t, "udp", loopback)
		send := func(msg string) {
			t.Helper()
			if _, err := peer.WriteTo([]byte(msg), pc.LocalAddr()); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 100 {
			// A deadline of the owner's must not end the socket.
			if err := pc.SetDeadline(time.Now().Add(-time.Second)); err != nil {
				t.Fatal(err)
			}
			opts.Pool = new(bufpool.Pool)
			s, err := New(pc, opts)
			if err != nil {
				t.Fatal(err)
			}
			got := make(chan string, 2)
			go func() {
				defer close(got)
				ts := make([]Train, 1)
				for {
					n, err := s.ReadTrains(ts)
					if err != nil {
						return
					}
					for _, tr := range ts[:n] {
						got <- string(tr.Buf)
					}
				}
			}()
			msg := fmt.Sprint("for the socket ", i)
			send(msg)
			if m := <-got; m != msg {
				t.Fatalf("socket got %q, want %q", m, msg)
			}
			write(t, s, Train{Buf: []byte("answer"), Addr: addrPortOf(peer.LocalAddr())})
			if err := s.Detach(); err != nil {
				t.Fatal(err)
			}
			msg = fmt.Sprint("for the owner ", i)
			send(msg)
			buf := make([]byte, 100)
			n, _, err := pc.ReadFrom(buf)
			if err != nil || string(buf[:n]) != msg {
				t.Fatalf("owner got %q, %v; want %q", buf[:n], err, msg)
			}
			if m, ok := <-got; ok {
				t.Fatalf("socket got %q after Detach", m)
			}
			if n := opts.Pool.Outstanding(); n != 0 {
				t.Fatalf("%d receive buffers not given back", n)
			}
			if _, err := s.WriteTrains([]Train{{Buf: []byte("x"), Addr: addrOf(s)}}); err != net.ErrClosed {
				t.Fatalf("WriteTrains after Detach: %v", err)
			}
			if err := s.Close(); err != nil {
				t.Fatalf("Close after Detach: %v", err)
			}
		}
		if _, err := pc.WriteTo([]byte("still open"), peer.LocalAddr()); err != nil {
			t.Error(err)
		}
	})
}

// Detach wakes the reader of an in-memory connection at once and leaves the
// connection to its owner, under a fake clock as well.
func TestDetachInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newScriptConn()
		for range 20 {
			s, err := New(c, Options{})
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() {
				_, err := s.ReadTrains(make([]Train, 1))
				done <- err
			}()
			synctest.Wait()
			start := time.Now()
			if err := s.Detach(); err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != net.ErrClosed {
				t.Fatalf("ReadTrains: %v, want net.ErrClosed", err)
			}
			if d := time.Since(start); d != 0 {
				t.Fatalf("Detach took %v", d)
			}
			c.in <- scripted{data: "for the owner", addr: scriptPeer}
			buf := make([]byte, 100)
			if n, _, err := c.ReadFrom(buf); err != nil || string(buf[:n]) != "for the owner" {
				t.Fatalf("owner got %q, %v", buf[:n], err)
			}
		}
	})
}

// A connection without deadlines cannot be left without one more datagram;
// Detach says so.
func TestDetachWithoutDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newScriptConn()
		c.noDL = errors.ErrUnsupported
		s, err := New(c, Options{Pool: new(bufpool.Pool)})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		read := func() {
			_, err := s.ReadTrains(make([]Train, 1))
			done <- err
		}
		go read()
		synctest.Wait()
		if err := s.Detach(); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("Detach: %v, want errors.ErrUnsupported", err)
		}
		c.in <- scripted{data: "the last", addr: scriptPeer}
		if err := <-done; err != nil {
			t.Errorf("read under way: %v", err)
		}
		go read()
		if err := <-done; err != net.ErrClosed {
			t.Errorf("next read: %v, want net.ErrClosed", err)
		}
	})
}

// deafConn takes deadlines and ignores them.
type deafConn struct{ *scriptConn }

func (deafConn) SetReadDeadline(time.Time) error { return nil }

func TestDetachIgnoredDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := deafConn{newScriptConn()}
		s, err := New(c, Options{})
		if err != nil {
			t.Fatal(err)
		}
		go s.ReadTrains(make([]Train, 1))
		synctest.Wait()
		start := time.Now()
		if err := s.Detach(); err == nil || time.Since(start) != time.Second {
			t.Errorf("Detach: %v after %v, want an error after 1s", err, time.Since(start))
		}
		c.Close()
	})
}
