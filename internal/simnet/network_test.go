package simnet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openarkstudio/arknet-go/netem"
)

const ms = time.Millisecond

// inBubble runs f in a bubble with a network of the given links.
func inBubble(t *testing.T, cfg netem.Config, f func(t *testing.T, n *Network)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := New(42)
		defer n.Close()
		n.SetDefault(cfg)
		f(t, n)
	})
}

func listen(t *testing.T, n *Network, address string) *Conn {
	t.Helper()
	c, err := n.Listen(address)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func write(t *testing.T, c *Conn, to *Conn, text string) {
	t.Helper()
	if k, err := c.WriteTo([]byte(text), to.LocalAddr()); k != len(text) || err != nil {
		t.Fatalf("WriteTo = %d, %v", k, err)
	}
}

func wantRead(t *testing.T, c *Conn, text string, from netip.AddrPort) {
	t.Helper()
	b := make([]byte, 2000)
	n, a, err := c.ReadFromUDPAddrPort(b)
	if err != nil || string(b[:n]) != text || a != from {
		t.Fatalf("read %q from %v, %v; want %q from %v", b[:n], a, err, text, from)
	}
}

func wantNothing(t *testing.T, c *Conn) {
	t.Helper()
	synctest.Wait()
	if q := c.Stats().Queued; q != 0 {
		t.Fatalf("%d datagrams wait, want none", q)
	}
}

func TestDelayPassesInFakeTime(t *testing.T) {
	for _, host := range []string{"10.0.0.%d", "[fd00::%d]"} {
		inBubble(t, netem.Config{Delay: 250 * ms}, func(t *testing.T, n *Network) {
			a, b := listen(t, n, fmt.Sprintf(host, 1)+":7000"), listen(t, n, fmt.Sprintf(host, 2)+":0")
			start := time.Now()
			write(t, b, a, "ping")
			wantRead(t, a, "ping", b.LocalAddrPort())
			write(t, a, b, "pong")
			wantRead(t, b, "pong", a.LocalAddrPort())
			if rtt := time.Since(start); rtt != 500*ms {
				t.Errorf("round trip %v, want 500 ms", rtt)
			}
		})
	}
}

func TestSameInstantKeepsOrder(t *testing.T) {
	inBubble(t, netem.Config{Delay: 10 * ms}, func(t *testing.T, n *Network) {
		a, b := listen(t, n, "10.0.0.1:1"), listen(t, n, "10.0.0.2:1")
		for i := range 1000 {
			write(t, a, b, fmt.Sprint(i))
		}
		for i := range 1000 {
			wantRead(t, b, fmt.Sprint(i), a.LocalAddrPort())
		}
	})
}

func TestLossyPathIsReproducible(t *testing.T) {
	cfg, err := netem.Profile("sustained")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Corrupt = 0.01
	transcript := func(t *testing.T) (log string) {
		inBubble(t, cfg, func(t *testing.T, n *Network) {
			a, b := listen(t, n, "10.0.0.1:1"), listen(t, n, "10.0.0.2:1")
			start := time.Now()
			var sb strings.Builder
			n.Observe(func(d Datagram) { fmt.Fprintln(&sb, time.Since(start), d.Data) })
			for i := range 2000 {
				write(t, a, b, string(binary.BigEndian.AppendUint32(nil, uint32(i))))
				time.Sleep(ms)
			}
			time.Sleep(time.Second)
			p, s := n.PathStats(a.local.Addr(), b.local.Addr()), n.Stats()
			if p.Offered.Datagrams != 2000 || !p.Balanced() || s.Delivered != p.Delivered.Datagrams || s.InFlight != 0 {
				t.Errorf("path %+v, network %+v", p, s)
			}
			if p.Dropped.Burst.Datagrams != 60 || p.Dropped.Loss.Datagrams == 0 || p.Duplicated.Datagrams == 0 || p.Corrupted.Datagrams == 0 {
				t.Errorf("path %+v", p)
			}
			log = sb.String()
		})
		return log
	}
	if first, second := transcript(t), transcript(t); first != second {
		t.Error("two runs with one seed differ")
	}
}

func TestDuplicatesAreDamagedApart(t *testing.T) {
	inBubble(t, netem.Config{Duplicate: 1, Corrupt: 0.5}, func(t *testing.T, n *Network) {
		a, b := listen(t, n, "10.0.0.1:1"), listen(t, n, "10.0.0.2:1")
		const total = 200
		for range total {
			write(t, a, b, "abcd")
		}
		whole := 0
		buf := make([]byte, 10)
		for range 2 * total {
			k, _, err := b.ReadFrom(buf)
			if err != nil {
				t.Fatal(err)
			}
			if string(buf[:k]) == "abcd" {
				whole++
			}
		}
		p := n.PathStats(a.local.Addr(), b.local.Addr())
		if whole != 2*total-int(p.Corrupted.Datagrams) {
			t.Errorf("%d whole, %d corrupted of %d", whole, p.Corrupted.Datagrams, 2*total)
		}
	})
}

func TestWriterKeepsItsBuffer(t *testing.T) {
	inBubble(t, netem.Config{Delay: ms}, func(t *testing.T, n *Network) {
		a, b := listen(t, n, "10.0.0.1:1"), listen(t, n, "10.0.0.2:1")
		buf := []byte("first")
		a.WriteTo(buf, b.LocalAddr())
		copy(buf, "XXXXX")
		wantRead(t, b, "first", a.local)
	})
}

func TestReadDeadline(t *testing.T) {
	inBubble(t, netem.Config{}, func(t *testing.T, n *Network) {
		a, b := listen(t, n, "10.0.0.1:1"), listen(t, n, "10.0.0.2:1")
		start := time.Now()
		a.SetReadDeadline(start.Add(50 * ms))
		_, _, err := a.ReadFrom(make([]byte, 10))
		var ne net.Error
		if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &ne) || !ne.Timeout() {
			t.Fatalf("error %v", err)
		}
		if d := time.Since(start); d != 50*ms {
			t.Errorf("after %v", d)
		}
		write(t, b, a, "late")
		if _, _, err := a.ReadFrom(make([]byte, 10)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("a spent deadline with data: %v", err)
		}
		a.SetReadDeadline(time.Time{})
		wantRead(t, a, "late", b.local)

		// Moved while a read waits: later, and then into the past.
		a.SetReadDeadline(time.Now().Add(10 * ms))
		done := make(chan error)
		go func() {
			_, _, err := a.ReadFrom(make([]byte, 10))
			done <- err
		}()
		synctest.Wait()
		a.SetReadDeadline(time.Now().Add(time.Hour))
		time.Sleep(20 * ms)
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatalf("ended at the old deadline: %v", err)
		default:
		}
		a.SetReadDeadline(time.Now().Add(-1))
		if err := <-done; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("error %v", err)
		}
	})
}

func TestWriteDeadline(t *testing.T) {
	inBubble(t, netem.Config{}, func(t *testing.T, n *Network) {
		a := listen(t, n, "10.0.0.1:1")
		a.SetWriteDeadline(time.Now().Add(ms))
		write(t, a, a, "in time")
		time.Sleep(ms)
		synctest.Wait()
		if _, err := a.WriteTo([]byte("late"), a.LocalAddr()); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		a.SetDeadline(time.Time{})
		write(t, a, a, "again")
	})
}

func TestClose(t *testing.T) {
	inBubble(t, netem.Config{Delay: ms}, func(t *testing.T, n *Network) {
		a, b := listen(t, n, "10.0.0.1:1"), listen(t, n, "10.0.0.2:1")
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if _, _, err := a.ReadFrom(make([]byte, 10)); !errors.Is(err, net.ErrClosed) {
					t.Errorf("blocked read: %v", err)
				}
			})
		}
		synctest.Wait()
		write(t, b, a, "to a closed socket")
		write(t, a, b, "sent before close")
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		wg.Wait()
		wantRead(t, b, "sent before close", a.local)
		for what, err := range map[string]error{
			"close":    a.Close(),
			"deadline": a.SetDeadline(time.Now()),
			"read":     func() error { _, _, err := a.ReadFrom(nil); return err }(),
			"write":    func() error { _, err := a.WriteTo(nil, b.LocalAddr()); return err }(),
		} {
			if !errors.Is(err, net.ErrClosed) {
				t.Errorf("%s after close: %v", what, err)
			}
		}
		if s := n.Stats(); s.NoSocket != 1 || s.Delivered != 1 || s.Sent != 2 {
			t.Errorf("stats %+v", s)
		}
		listen(t, n, "10.0.0.1:1") // the address is free again
	})
}

func TestNetworkClose(t *testing.T) {
	inBubble(t, netem.Config{Delay: ms}, func(t *testing.T, n *Network) {
		a := listen(t, n, "10.0.0.1:1")
		write(t, a, a, "lost")
		n.Close()
		n.Close()
		if _, _, err := a.ReadFrom(nil); !errors.Is(err, net.ErrClosed) {
			t.Errorf("read: %v", err)
		}
		if _, err := n.Listen("10.0.0.1:1"); !errors.Is(err, net.ErrClosed) {
			t.Errorf("listen: %v", err)
		}
	})
}

func TestReceiveQueueIsBounded(t *testing.T) {
	inBubble(t, netem.Config{}, func(t *testing.T, n *Network) {
		a, b := listen(t, n, "10.0.0.1:1"), listen(t, n, "10.0.0.2:1")
		b.SetReadBuffer(10 * (100 + packetCost))
		big := string(make([]byte, 100))
		for range 15 {
			write(t, a, b, big)
		}
		if s := b.Stats(); s.Received != 10 || s.Overflow != 5 || s.Queued != 10 {
			t.Errorf("stats %+v", s)
		}
		wantRead(t, b, big, a.local)
		write(t, a, b, big)
		if s := b.Stats(); s.Received != 11 || s.Overflow != 5 {
			t.Errorf("stats %+v", s)
		}
		for range 20_000 {
			write(t, b, a, "")
		}
		if s := a.Stats(); s.Queued != maxReadPackets {
			t.Errorf("%d empty datagrams queued", s.Queued)
		}
		if s := n.Stats(); s.Sent != 20_016 || s.Delivered != 11+maxReadPackets || s.Delivered+s.Overflow != s.Sent {
			t.Errorf("stats %+v", s)
		}
	})
}

func TestManyReadersShareASocket(t *testing.T) {
	inBubble(t, netem.Config{}, func(t *testing.T, n *Network) {
		a, b := listen(t, n, "10.0.0.1:1"), listen(t, n, "10.0.0.2:1")
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 100 {
					if _, _, err := b.ReadFrom(make([]byte, 10)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		for range 800 {
			write(t, a, b, "x")
		}
		wg.Wait()
		wantNothing(t, b)
	})
}

func TestTruncation(t *testing.T) {
	inBubble(t, netem.Config{}, func(t *testing.T, n *Network) {
		a := listen(t, n, "10.0.0.1:1")
		write(t, a, a, "long")
		write(t, a, a, "next")
		b := make([]byte, 2)
		if k, _, err := a.ReadFrom(b); k != 2 || err != nil || string(b) != "lo" {
			t.Errorf("%d %q %v", k, b, err)
		}
		wantRead(t, a, "next", a.local)
		if s := a.Stats(); s.Truncated != 1 {
			t.Errorf("stats %+v", s)
		}
	})
}

func TestBadCalls(t *testing.T) {
	inBubble(t, netem.Config{}, func(t *testing.T, n *Network) {
		a := listen(t, n, "10.0.0.1:1")
		for _, address := range []string{"", "host:1", "10.0.0.1", "0.0.0.0:1", "[::]:1", "10.0.0.1:1"} {
			if c, err := n.Listen(address); err == nil {
				t.Errorf("Listen(%q) = %v", address, c.LocalAddr())
			}
		}
		if _, err := n.Dial("10.0.0.1:0", "[fd00::1]:1"); !errors.Is(err, errFamily) {
			t.Errorf("dial across families: %v", err)
		}
		if _, err := a.WriteTo(make([]byte, maxDatagram+1), a.LocalAddr()); !errors.Is(err, syscall.EMSGSIZE) {
			t.Errorf("oversized: %v", err)
		}
		if _, err := a.WriteTo(nil, nil); !errors.Is(err, errBadAddress) {
			t.Errorf("no address: %v", err)
		}
		if _, err := a.WriteTo(nil, &net.UDPAddr{IP: net.IPv6loopback, Port: 1}); !errors.Is(err, errFamily) {
			t.Errorf("other family: %v", err)
		}
		if _, err := a.Write(nil); !errors.Is(err, errNotConnected) {
			t.Errorf("Write without a peer: %v", err)
		}
		mapped := &net.UDPAddr{IP: net.IPv4(10, 0, 0, 1).To16(), Port: 1}
		if _, err := a.WriteTo([]byte("mapped"), mapped); err != nil {
			t.Error(err)
		}
		wantRead(t, a, "mapped", a.local)
	})
}

func TestDialledSocketHearsItsPeerOnly(t *testing.T) {
	inBubble(t, netem.Config{}, func(t *testing.T, n *Network) {
		server, other := listen(t, n, "10.0.0.1:1"), listen(t, n, "10.0.0.3:1")
		c, err := n.Dial("10.0.0.2:0", "10.0.0.1:1")
		if err != nil {
			t.Fatal(err)
		}
		write(t, other, c, "stranger")
		if _, err := c.Write([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		wantRead(t, server, "hello", c.local)
		write(t, server, c, "welcome")
		b := make([]byte, 20)
		if k, err := c.Read(b); err != nil || string(b[:k]) != "welcome" {
			t.Errorf("%q %v", b[:k], err)
		}
		if _, err := c.WriteTo(nil, server.LocalAddr()); !errors.Is(err, net.ErrWriteToConnected) {
			t.Errorf("WriteTo: %v", err)
		}
		if c.RemoteAddr().String() != "10.0.0.1:1" || n.Stats().NoSocket != 1 {
			t.Errorf("remote %v, stats %+v", c.RemoteAddr(), n.Stats())
		}
	})
}

func TestFilterObserveForge(t *testing.T) {
	inBubble(t, netem.Config{Delay: ms}, func(t *testing.T, n *Network) {
		a, b := listen(t, n, "10.0.0.1:1"), listen(t, n, "10.0.0.2:1")
		var seen []string
		defer n.Observe(func(d Datagram) { seen = append(seen, string(d.Data)) })()
		remove := n.Filter(func(d *Datagram) bool {
			if string(d.Data) == "change" {
				d.Data = []byte("changed")
			}
			return string(d.Data) != "drop"
		})
		write(t, a, b, "drop")
		write(t, a, b, "change")
		wantRead(t, b, "changed", a.local)
		remove()
		write(t, a, b, "drop")
		wantRead(t, b, "drop", a.local)
		n.Forge(netip.MustParseAddrPort("192.0.2.9:9"), b.local, []byte("forged"))
		wantRead(t, b, "forged", netip.MustParseAddrPort("192.0.2.9:9"))
		if s := n.Stats(); s.Filtered != 1 || s.Delivered != 3 || s.Sent != 4 {
			t.Errorf("stats %+v", s)
		}
		if got := strings.Join(seen, " "); got != "changed drop forged" {
			t.Errorf("observed %q", got)
		}
	})
}

func TestRebind(t *testing.T) {
	inBubble(t, netem.Config{Delay: 10 * ms}, func(t *testing.T, n *Network) {
		server, client := listen(t, n, "198.51.100.1:1"), listen(t, n, "10.0.0.2:5000")
		first, second := netip.MustParseAddrPort("192.0.2.1:1001"), netip.MustParseAddrPort("192.0.2.1:1002")
		answer := func(to netip.AddrPort, text string) {
			t.Helper()
			if _, err := server.WriteToUDPAddrPort([]byte(text), to); err != nil {
				t.Fatal(err)
			}
		}
		n.Rebind(client.local, first)
		write(t, client, server, "one")
		wantRead(t, server, "one", first)
		answer(first, "one")
		wantRead(t, client, "one", server.local)
		answer(client.local, "to the inside")

		answer(first, "in flight over the rebinding")
		n.Rebind(client.local, second)
		write(t, client, server, "two")
		wantRead(t, server, "two", second)
		answer(first, "to the old address")
		answer(second, "two")
		wantRead(t, client, "two", server.local)

		n.Rebind(client.local, netip.AddrPort{})
		write(t, client, server, "three")
		wantRead(t, server, "three", client.local)
		time.Sleep(time.Second)
		wantNothing(t, client)
		if s := n.Stats(); s.NoSocket != 3 {
			t.Errorf("stats %+v", s)
		}
		// The links are those of the hosts, not of the translated addresses.
		if p := n.PathStats(client.local.Addr(), server.local.Addr()); p.Offered.Datagrams != 3 {
			t.Errorf("path %+v", p)
		}
	})
}

func TestPathsAreDirectedAndChangeAtRunTime(t *testing.T) {
	inBubble(t, netem.Config{Delay: 10 * ms}, func(t *testing.T, n *Network) {
		a, b := listen(t, n, "10.0.0.1:1"), listen(t, n, "10.0.0.2:1")
		trip := func(from, to *Conn) time.Duration {
			start := time.Now()
			write(t, from, to, "x")
			wantRead(t, to, "x", from.local)
			return time.Since(start)
		}
		n.SetPath(a.local.Addr(), b.local.Addr(), netem.Config{Delay: 70 * ms})
		if there, back := trip(a, b), trip(b, a); there != 70*ms || back != 10*ms {
			t.Errorf("there %v, back %v", there, back)
		}
		time.Sleep(time.Hour)
		n.SetPath(b.local.Addr(), a.local.Addr(), netem.Config{Outages: []netem.Outage{{Start: ms, Duration: ms}}})
		trip(b, a)
		time.Sleep(ms)
		write(t, b, a, "lost")
		wantNothing(t, a)
		time.Sleep(ms)
		trip(b, a)
	})
}

func TestScriptedSocketErrors(t *testing.T) {
	inBubble(t, netem.Config{}, func(t *testing.T, n *Network) {
		a := listen(t, n, "10.0.0.1:1")
		write(t, a, a, "data")
		a.FailRead(syscall.ECONNREFUSED)
		if _, _, err := a.ReadFrom(nil); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("read: %v", err)
		}
		wantRead(t, a, "data", a.local)
		a.OnWrite(func(to netip.AddrPort, b []byte) error { return syscall.ENOBUFS })
		if _, err := a.WriteTo([]byte("x"), a.LocalAddr()); !errors.Is(err, syscall.ENOBUFS) {
			t.Errorf("write: %v", err)
		}
		a.OnWrite(nil)
		write(t, a, a, "again")
		if s := a.Stats(); s.Sent != 2 || s.Received != 2 {
			t.Errorf("stats %+v", s)
		}
	})
}

// A queue that is never quite empty must not grow without end.
func TestBusyQueueReusesItsMemory(t *testing.T) {
	inBubble(t, netem.Config{}, func(t *testing.T, n *Network) {
		a := listen(t, n, "10.0.0.1:1")
		write(t, a, a, "first")
		for range 100_000 {
			write(t, a, a, "x")
			if _, _, err := a.ReadFrom(make([]byte, 10)); err != nil {
				t.Fatal(err)
			}
		}
		if c := cap(a.queue); c > 10_000 {
			t.Errorf("capacity %d for one datagram", c)
		}
	})
}

// Works without a bubble, with real time.
func TestOutsideABubble(t *testing.T) {
	n := New(1)
	defer n.Close()
	n.SetDefault(netem.Config{Delay: ms})
	a := listen(t, n, "10.0.0.1:0")
	for range 10 {
		write(t, a, a, "x")
		wantRead(t, a, "x", a.local)
	}
}
