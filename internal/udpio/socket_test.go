package udpio

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openarkstudio/arknet-go/internal/bufpool"
)

// variants are the ways through the package that must not differ but in speed.
var variants = []struct {
	name string
	opts Options
}{
	{"offloads", Options{}},
	{"noGSO", Options{NoGSO: true}},
	{"noGRO", Options{NoGRO: true}},
	{"noBatch", Options{NoBatch: true}},
	{"singles", Options{NoGSO: true, NoGRO: true, NoBatch: true}},
	{"plain", Options{NoFastPath: true}},
}

// each runs f for all variants over IPv4 and IPv6 loopback.
func each(t *testing.T, f func(t *testing.T, loopback string, opts Options)) {
	for _, loopback := range []string{"127.0.0.1", "::1"} {
		for _, v := range variants {
			t.Run(fmt.Sprintf("%s/%s", loopback, v.name), func(t *testing.T) {
				v.opts.ReadBuffer = 4 << 20
				f(t, loopback, v.opts)
			})
		}
	}
}

func listen(t testing.TB, network, host string) *net.UDPConn {
	t.Helper()
	pc, err := net.ListenPacket(network, net.JoinHostPort(host, "0"))
	if err != nil {
		if strings.Contains(host, ":") {
			t.Skipf("no IPv6 here: %v", err)
		}
		t.Fatal(err)
	}
	t.Cleanup(func() { pc.Close() })
	return pc.(*net.UDPConn)
}

func dial(t testing.TB, to net.Addr) *net.UDPConn {
	t.Helper()
	c, err := net.Dial("udp", to.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c.(*net.UDPConn)
}

// newSocket makes a socket and checks at the end of the test that it gave all
// its buffers back.
func newSocket(t testing.TB, pc net.PacketConn, opts Options) *Socket {
	t.Helper()
	opts.Pool = new(bufpool.Pool)
	s, err := New(pc, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		if _, err := s.ReadTrains(make([]Train, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("ReadTrains after Close: %v, want net.ErrClosed", err)
		}
		if n := opts.Pool.Outstanding(); n != 0 {
			t.Errorf("%d receive buffers not given back", n)
		}
	})
	return s
}

func addrOf(s *Socket) netip.AddrPort { return addrPortOf(s.LocalAddr()) }

// packet is a received datagram with what came along.
type packet struct {
	data  string
	addr  netip.AddrPort
	local netip.Addr
	ecn   byte
}

// collect reads n datagrams. It gives up after a time that no working socket
// needs, so that a lost datagram fails the test and does not hang it.
func collect(t testing.TB, s *Socket, n int) []packet {
	t.Helper()
	guard := time.AfterFunc(10*time.Second, func() { s.Close() })
	defer guard.Stop()
	var got []packet
	ts := make([]Train, 16)
	for len(got) < n {
		k, err := s.ReadTrains(ts)
		if err != nil {
			t.Fatalf("%v after %d of %d datagrams; %+v", err, len(got), n, s.Stats())
		}
		for _, tr := range ts[:k] {
			for d := range tr.Datagrams() {
				got = append(got, packet{string(d), tr.Addr, tr.Local, tr.ECN})
			}
		}
	}
	return got
}

func write(t testing.TB, s *Socket, ts ...Train) {
	t.Helper()
	want := 0
	for i := range ts {
		want += ts[i].Len()
	}
	if n, err := s.WriteTrains(ts); n != want || err != nil {
		t.Fatalf("WriteTrains = %d, %v; want %d, nil; %+v", n, err, want, s.Stats())
	}
}

// fill makes a train whose bytes differ from those of its neighbours.
func fill(n, seg, mark int) Train {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8 + mark)
	}
	return Train{Buf: b, SegSize: seg}
}

// transfers are what goes through a socket in TestTransfer.
var transfers = []struct {
	name   string
	trains []Train
}{
	{"one byte", []Train{fill(1, 0, 0)}},
	{"one datagram", []Train{fill(1200, 0, 0)}},
	{"empty", []Train{{}}},
	{"empty among others", []Train{fill(10, 0, 1), {}, fill(10, 0, 2), {}, {}, fill(25, 10, 3)}},
	{"two segments", []Train{fill(2400, 1200, 0)}},
	{"short last", []Train{fill(4*1200+7, 1200, 0)}},
	{"more than a kernel message", []Train{fill(100*1200, 1200, 0)}},
	{"more segments than a kernel message", []Train{fill(200*32, 32, 0)}},
	{"trains of several sizes", []Train{fill(5000, 1000, 1), fill(3000, 500, 2), fill(700, 0, 3), fill(2048, 1024, 4)}},
	{"many singles", func() (ts []Train) {
		for i := range 300 {
			ts = append(ts, fill(100+i%3, 0, i))
		}
		return ts
	}()},
	{"longest datagram", []Train{fill(65507, 0, 0), fill(1, 0, 1), fill(65507, 0, 2)}},
	{"above half the longest", []Train{fill(80000, 40000, 0)}},
}

// Trains arrive whole, in order and unchanged, in both directions and over
// connected and unconnected sockets.
func TestTransfer(t *testing.T) {
	each(t, func(t *testing.T, loopback string, opts Options) {
		server := newSocket(t, listen(t, "udp", loopback), opts)
		conn := dial(t, server.LocalAddr())
		connected := newSocket(t, conn, opts)
		free := newSocket(t, listen(t, "udp", loopback), opts)
		for _, tt := range transfers {
			t.Run(tt.name, func(t *testing.T) {
				var want []string
				for i := range tt.trains {
					if runtime.GOOS == "darwin" && tt.trains[i].seg() > 9216 {
						t.Skip("above net.inet.udp.maxdgram of macOS")
					}
					for d := range tt.trains[i].Datagrams() {
						want = append(want, string(d))
					}
				}
				check := func(from, to *Socket, connected bool) {
					t.Helper()
					ts := slices.Clone(tt.trains)
					for i := range ts {
						if !connected {
							ts[i].Addr = addrOf(to)
						}
					}
					write(t, from, ts...)
					got := collect(t, to, len(want))
					for i, p := range got {
						if p.data != want[i] {
							t.Fatalf("datagram %d: %d bytes, want %d, or others", i, len(p.data), len(want[i]))
						}
						if p.addr != addrOf(from) {
							t.Fatalf("datagram %d comes from %v, want %v", i, p.addr, addrOf(from))
						}
					}
				}
				check(connected, server, true)
				check(server, connected, false)
				check(free, server, false)
				check(server, free, false)
			})
		}
		for _, s := range []*Socket{server, connected, free} {
			st := s.Stats()
			if st.LostOut != 0 || st.ReadErrors.Total() != 0 || st.WriteErrors.Total() != 0 || st.TruncatedIn != 0 {
				t.Errorf("errors or losses: %+v", st)
			}
			if opts.NoFastPath && (st.GSO || st.GRO || st.Batch) {
				t.Errorf("offloads in use: %+v", st)
			}
		}
		if in, out := server.Stats(), connected.Stats(); in.EmptyIn == 0 || out.BytesOut == 0 || in.BytesIn < out.BytesOut || in.DatagramsIn < out.DatagramsOut {
			t.Errorf("counted in %+v, out %+v", in, out)
		}
	})
}

// Many writers use one socket at a time, each with its own order.
func TestConcurrentWriters(t *testing.T) {
	each(t, func(t *testing.T, loopback string, opts Options) {
		const writers, trains, per = 4, 25, 8
		server := newSocket(t, listen(t, "udp", loopback), opts)
		client := newSocket(t, listen(t, "udp", loopback), opts)
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				seq := uint32(0)
				for range trains {
					tr := Train{Buf: make([]byte, per*64), SegSize: 64, Addr: addrOf(server)}
					for i := range per {
						tr.Buf[i*64] = byte(w)
						binary.BigEndian.PutUint32(tr.Buf[i*64+1:], seq)
						seq++
					}
					if n, err := client.WriteTrains([]Train{tr}); n != per || err != nil {
						t.Errorf("WriteTrains = %d, %v", n, err)
					}
				}
			})
		}
		var next [writers]uint32
		for _, p := range collect(t, server, writers*trains*per) {
			w, seq := p.data[0], binary.BigEndian.Uint32([]byte(p.data[1:]))
			if seq != next[w] {
				t.Fatalf("writer %d: datagram %d, want %d", w, seq, next[w])
			}
			next[w]++
		}
		wg.Wait()
	})
}

func TestMaxDatagram(t *testing.T) {
	each(t, func(t *testing.T, loopback string, opts Options) {
		opts.MaxDatagram = 1000
		server := newSocket(t, listen(t, "udp", loopback), opts)
		client := newSocket(t, dial(t, server.LocalAddr()), Options{})
		write(t, client, fill(1001, 0, 0), fill(1000, 0, 1), fill(9000, 0, 2), fill(3*1500, 1500, 3), fill(5, 0, 4), fill(2000, 1000, 5))
		got := collect(t, server, 4)
		for i, want := range []int{1000, 5, 1000, 1000} {
			if len(got[i].data) != want {
				t.Errorf("datagram %d has %d bytes, want %d", i, len(got[i].data), want)
			}
		}
		if st := server.Stats(); st.TruncatedIn != 5 || st.DatagramsIn != 4 || st.BytesIn != 3005 {
			t.Errorf("%d too long, %d delivered with %d bytes; want 5, 4, 3005", st.TruncatedIn, st.DatagramsIn, st.BytesIn)
		}
	})
}

// An address that the socket cannot reach costs that train alone.
func TestUnreachableAddresses(t *testing.T) {
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			server := newSocket(t, listen(t, "udp4", "127.0.0.1"), v.opts)
			client := newSocket(t, listen(t, "udp4", "127.0.0.1"), v.opts)
			good := func(mark int) Train { tr := fill(20, 10, mark); tr.Addr = addrOf(server); return tr }
			bad := func(addr string) Train { tr := fill(20, 10, 0); tr.Addr = netip.MustParseAddrPort(addr); return tr }
			ts := []Train{bad("[::1]:9"), good(1), fill(10, 0, 0), bad("[fe80::1%nosuch]:9"), good(2), bad("[2001:db8::1]:9")}
			n, err := client.WriteTrains(ts)
			if n != 4 || err != nil {
				t.Errorf("WriteTrains = %d, %v; want 4, nil", n, err)
			}
			collect(t, server, 4)
			if st := client.Stats(); st.LostOut != 7 || st.WriteErrors.Total() == 0 || st.DatagramsOut != 4 {
				t.Errorf("lost %d, want 7; %+v", st.LostOut, st)
			}
			// Only bad ones.
			if n, err := client.WriteTrains(ts[:1]); n != 0 || err != nil {
				t.Errorf("WriteTrains = %d, %v; want 0, nil", n, err)
			}
			if n, err := client.WriteTrains(nil); n != 0 || err != nil {
				t.Errorf("WriteTrains of nothing = %d, %v", n, err)
			}
		})
	}
}

// IPv4 peers have one form, whatever the socket and the way they are written.
func TestAddressForms(t *testing.T) {
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			dual := newSocket(t, listen(t, "udp", "::"), v.opts)
			four := newSocket(t, listen(t, "udp4", "127.0.0.1"), v.opts)
			port := addrOf(dual).Port()

			write(t, four, Train{Buf: []byte("a"), Addr: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port)})
			if got := collect(t, dual, 1)[0]; got.addr != addrOf(four) {
				t.Errorf("dual-stack socket has the peer as %v, want %v", got.addr, addrOf(four))
			}
			mapped := netip.AddrFrom16(netip.MustParseAddr("127.0.0.1").As16())
			for _, to := range []netip.AddrPort{addrOf(four), netip.AddrPortFrom(mapped, addrOf(four).Port())} {
				write(t, dual, Train{Buf: []byte("b"), Addr: to})
				if got := collect(t, four, 1)[0]; got.addr.Addr() != netip.MustParseAddr("127.0.0.1") {
					t.Errorf("IPv4 socket has the peer as %v", got.addr)
				}
				write(t, four, Train{Buf: []byte("c"), Addr: netip.AddrPortFrom(mapped, port)})
				collect(t, dual, 1)
			}
		})
	}
}

// ICMP errors of a closed port do not end a connected socket: it works once
// somebody listens.
func TestClosedPortThenServer(t *testing.T) {
	each(t, func(t *testing.T, loopback string, opts Options) {
		pc := listen(t, "udp", loopback)
		addr := pc.LocalAddr()
		pc.Close()
		client := newSocket(t, dial(t, addr), opts)
		got := make(chan []packet, 1)
		go func() { got <- collect(t, client, 1) }()
		for range 20 {
			if _, err := client.WriteTrains([]Train{fill(300, 100, 0)}); err != nil {
				t.Fatal(err)
			}
		}
		pc2, err := net.ListenPacket("udp", addr.String())
		if err != nil {
			t.Skipf("the port was taken meanwhile: %v", err)
		}
		server := newSocket(t, pc2, opts)
		// A pending error of the closed port may cost one datagram yet.
		for range 3 {
			if _, err := client.WriteTrains([]Train{fill(10, 0, 0)}); err != nil {
				t.Fatal(err)
			}
		}
		collect(t, server, 1)
		write(t, server, Train{Buf: []byte("hello"), Addr: addrOf(client)})
		if p := <-got; p[0].data != "hello" {
			t.Errorf("got %q", p[0].data)
		}
	})
}

func TestNewRefuses(t *testing.T) {
	pc := listen(t, "udp", "127.0.0.1")
	tests := []struct {
		name string
		pc   net.PacketConn
		opts Options
		want string
	}{
		{"nil", nil, Options{}, "nil"},
		{"ReadBuffer", pc, Options{ReadBuffer: -1}, "Options.ReadBuffer is -1, want 0 or more"},
		{"WriteBuffer", pc, Options{WriteBuffer: -2}, "Options.WriteBuffer is -2, want 0 or more"},
		{"MaxDatagram below", pc, Options{MaxDatagram: -1}, "Options.MaxDatagram is -1, want 0 (65535) or 1 to 65535"},
		{"MaxDatagram above", pc, Options{MaxDatagram: 65536}, "Options.MaxDatagram is 65536, want 0 (65535) or 1 to 65535"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := New(tt.pc, tt.opts); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
	pc.Close()
	if _, err := New(pc, Options{}); !errors.Is(err, net.ErrClosed) && err != nil {
		t.Errorf("closed connection: %v, want net.ErrClosed", err)
	}
}

func TestReadTrainsWithoutRoomPanics(t *testing.T) {
	s := newSocket(t, listen(t, "udp", "127.0.0.1"), Options{})
	defer func() {
		if msg, _ := recover().(string); !strings.HasPrefix(msg, "BUG: ") {
			t.Errorf("recovered %q, want a BUG panic", msg)
		}
	}()
	s.ReadTrains(nil)
}

func TestGrantedBuffers(t *testing.T) {
	s := newSocket(t, listen(t, "udp", "127.0.0.1"), Options{ReadBuffer: 300 << 10, WriteBuffer: 200 << 10})
	if st := s.Stats(); st.ReadBuffer < 200<<10 || st.WriteBuffer < 100<<10 {
		t.Errorf("granted %d and %d bytes", st.ReadBuffer, st.WriteBuffer)
	}
}

// The steady state allocates nothing, in any variant of the UDP socket.
func TestNoAllocation(t *testing.T) {
	if raceEnabled {
		t.Skip("sync.Pool drops at random under the race detector")
	}
	each(t, func(t *testing.T, loopback string, opts Options) {
		server := newSocket(t, listen(t, "udp", loopback), opts)
		client := newSocket(t, dial(t, server.LocalAddr()), opts)
		ts := make([]Train, 8)
		train := fill(4*1200, 1200, 0)
		out := []Train{train, fill(100, 0, 0)}
		reply := make([]Train, 1)
		buf := bytes.Clone(train.Buf)
		roundTrip := func() {
			client.WriteTrains(out)
			for got := 0; got < 5; {
				n, err := server.ReadTrains(ts)
				if err != nil {
					t.Error(err)
					return
				}
				for i := range ts[:n] {
					got += ts[i].Len()
				}
			}
			reply[0] = ts[0]
			reply[0].Buf = buf[:copy(buf, ts[0].Buf)]
			server.WriteTrains(reply)
			for got := 0; got < reply[0].Len(); {
				n, err := client.ReadTrains(ts)
				if err != nil {
					t.Error(err)
					return
				}
				for i := range ts[:n] {
					got += ts[i].Len()
				}
			}
		}
		for range 10 {
			roundTrip()
		}
		if n := testing.AllocsPerRun(200, roundTrip); n != 0 {
			t.Errorf("%v allocations per round trip, want 0", n)
		}
	})
}
