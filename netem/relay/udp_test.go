package relay

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openarkstudio/arknet-go/internal/udpio"
	"github.com/openarkstudio/arknet-go/netem"
)

// patience bounds every wait of a test; none of them depends on how long things
// take below that.
const patience = 30 * time.Second

func start(t testing.TB, cfg Config) *Relay {
	t.Helper()
	r, err := Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		s := r.Stats()
		if !s.Up.Balanced() || !s.Down.Balanced() || s.Up.Queued.Datagrams+s.Down.Queued.Datagrams != 0 {
			t.Errorf("after close: %+v", s)
		}
	})
	return r
}

func listenUDP(t testing.TB, address string) *net.UDPConn {
	t.Helper()
	a, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.ListenUDP("udp", a)
	if err != nil {
		t.Skipf("no %s here: %v", address, err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetReadBuffer(4 << 20)
	return c
}

func dialUDP(t testing.TB, r *Relay) *net.UDPConn {
	t.Helper()
	c, err := net.DialUDP("udp", nil, r.Addr().(*net.UDPAddr))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	_ = c.SetReadBuffer(4 << 20)
	return c
}

// echo answers on a plain socket until the test ends.
func echo(t testing.TB, address string) *net.UDPConn {
	c := listenUDP(t, address)
	var wg sync.WaitGroup
	wg.Go(func() { echoAll(c, 65535) })
	t.Cleanup(func() { c.Close(); wg.Wait() })
	return c
}

// eventually waits until the relay's counters satisfy ok.
func eventually(t testing.TB, r *Relay, what string, ok func(Stats) bool) Stats {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; <-tick.C {
		s := r.Stats()
		if ok(s) {
			return s
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %+v", what, s)
		}
	}
}

func read(t testing.TB, c *net.UDPConn) []byte {
	t.Helper()
	b := make([]byte, 65535)
	n, err := c.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return b[:n]
}

func TestForwardBothWays(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "[::1]"} {
		for _, delay := range []time.Duration{0, 2 * ms} {
			for _, plain := range []bool{false, true} {
				t.Run(fmt.Sprintf("host=%s/delay=%v/plain=%v", host, delay, plain), func(t *testing.T) {
					server := echo(t, host+":0")
					link := netem.Config{Delay: delay}
					r := start(t, Config{Listen: host + ":0", Target: server.LocalAddr().String(), Up: link, Down: link, NoOffload: plain})
					c := dialUDP(t, r)
					bytes := uint64(0)
					sizes := []int{0, 1, 1200, 1200, 1200, 700, 9000, 65000}
					for i, size := range sizes {
						out := make([]byte, size)
						for k := range out {
							out[k] = byte(i + k)
						}
						if _, err := c.Write(out); err != nil {
							t.Fatal(err)
						}
						if in := read(t, c); string(in) != string(out) {
							t.Fatalf("%d B came back as %d B", size, len(in))
						}
						bytes += uint64(size)
					}
					want := netem.Count{Datagrams: uint64(len(sizes)), Bytes: bytes}
					s := eventually(t, r, "all counted", func(s Stats) bool { return s.Up.Sent == want && s.Down.Sent == want })
					for _, f := range []Flow{s.Up, s.Down} {
						if f.Received != want || f.Sent != want {
							t.Errorf("%+v, want %+v", f, want)
						}
					}
					if err := s.Check(); err != nil {
						t.Error(err)
					}
					if rs := r.Routes(); len(rs) != 1 || rs[0].Client.String() != c.LocalAddr().String() || rs[0].Up != s.Up {
						t.Errorf("routes %+v", rs)
					}
				})
			}
		}
	}
}

// Trains of segments stay in order and are counted by the datagram.
func TestTrainsAreCountedByDatagram(t *testing.T) {
	server := listenUDP(t, "127.0.0.1:0")
	r := start(t, Config{Target: server.LocalAddr().String(), Up: netem.Config{Delay: ms}})
	raw := dialUDP(t, r)
	sock, err := udpio.New(raw, udpio.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const trains, per, size = 50, 20, 1000
	for i := range trains {
		tr := numbered(i*per, per, size)
		if n, err := sock.WriteTrains([]udpio.Train{tr}); n != per || err != nil {
			t.Fatalf("%d, %v", n, err)
		}
		// Not more than the sockets hold, whatever the machine does.
		for k := range per {
			b := make([]byte, 2000)
			_ = server.SetReadDeadline(time.Now().Add(patience))
			n, _, err := server.ReadFromUDPAddrPort(b)
			if err != nil {
				t.Fatal(err)
			}
			if got := int(binary.BigEndian.Uint32(b)); n != size || got != i*per+k {
				t.Fatalf("datagram %d of %d B, want %d", got, n, i*per+k)
			}
		}
	}
	want := netem.Count{Datagrams: trains * per, Bytes: trains * per * size}
	s := eventually(t, r, "all counted", func(s Stats) bool { return s.Up.Sent == want })
	// A train may come before the relay has booked the one before it as sent.
	if s.Up.Received != want || s.PeakDatagrams == 0 || s.PeakDatagrams > 2*per || s.PeakBytes != s.PeakDatagrams*size {
		t.Errorf("%+v", s)
	}
}

// What the relay drops is what a link of the derived seed drops, in each direction.
func TestSeededDeterminism(t *testing.T) {
	server := listenUDP(t, "127.0.0.1:0")
	cfg := netem.Config{Loss: 0.2, Burst: netem.Burst{Lose: 3, Every: 50}, Duplicate: 0.1}
	r := start(t, Config{Target: server.LocalAddr().String(), Up: cfg, Down: netem.Config{}, Seed: 42})
	c := dialUDP(t, r)
	link, err := netem.NewLink(cfg, netem.DeriveSeed(42, 0, netem.Up))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		if _, err := c.Write([]byte(number(i, 10))); err != nil {
			t.Fatal(err)
		}
		fate := link.Transmit(0, 10)
		for range fate.Delivered() {
			b := make([]byte, 100)
			_ = server.SetReadDeadline(time.Now().Add(patience))
			n, _, err := server.ReadFromUDPAddrPort(b)
			if err != nil || string(b[:n]) != number(i, 10) {
				t.Fatalf("datagram %d: %q %v", i, b[:n], err)
			}
		}
	}
	ls := link.Stats()
	s := eventually(t, r, "all counted", func(s Stats) bool { return s.Up.Received == ls.Offered && s.Up.Queued.Datagrams == 0 })
	if s.Up.Sent != ls.Delivered || s.Up.Dropped.Drops != ls.Dropped || s.Up.Duplicated != ls.Duplicated {
		t.Errorf("relay %+v, link %+v", s.Up, ls)
	}
}

func TestChangeImpairmentAtRunTime(t *testing.T) {
	server := echo(t, "127.0.0.1:0")
	r := start(t, Config{Target: server.LocalAddr().String()})
	c := dialUDP(t, r)
	exchange := func() {
		t.Helper()
		if _, err := c.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		read(t, c)
	}
	exchange()
	if err := r.SetImpairment(netem.Config{Loss: 2}, netem.Config{}); err == nil || !strings.Contains(err.Error(), "up: netem: Config.Loss") {
		t.Errorf("error %v", err)
	}
	exchange()
	if err := r.SetImpairment(netem.Config{Loss: 1}, netem.Config{}); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if _, err := c.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	s := eventually(t, r, "all lost", func(s Stats) bool { return s.Up.Dropped.Loss.Datagrams == 10 })
	if s.Up.Sent.Datagrams != 2 {
		t.Errorf("%+v", s.Up)
	}
	d := dialUDP(t, r) // a new route is in the present condition
	if _, err := d.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	eventually(t, r, "the new route loses too", func(s Stats) bool { return s.Up.Dropped.Loss.Datagrams == 11 && s.Routes == 2 })
	if err := r.SetImpairment(netem.Config{}, netem.Config{}); err != nil {
		t.Fatal(err)
	}
	exchange()
	if up, down := r.Impairment(); !up.Perfect() || !down.Perfect() {
		t.Errorf("impairment %+v %+v", up, down)
	}
}

func TestManyClients(t *testing.T) {
	server := echo(t, "127.0.0.1:0")
	link := netem.Config{Delay: ms, Duplicate: 0.2}
	r := start(t, Config{Target: server.LocalAddr().String(), Up: link, Down: link, Seed: 1})
	const clients, each = 200, 10
	var wg sync.WaitGroup
	for i := range clients {
		c := dialUDP(t, r)
		wg.Go(func() {
			for k := range each {
				want := fmt.Sprintf("client %d datagram %d", i, k)
				if _, err := c.Write([]byte(want)); err != nil {
					t.Error(err)
					return
				}
				for b := make([]byte, 100); ; { // skip duplicates of earlier ones
					n, err := c.Read(b)
					if err != nil || !strings.HasPrefix(string(b[:n]), fmt.Sprintf("client %d datagram ", i)) {
						t.Errorf("client %d: %q %v", i, b[:n], err)
						return
					}
					if string(b[:n]) == want {
						break
					}
				}
			}
		})
	}
	wg.Wait()
	s := eventually(t, r, "drained", func(s Stats) bool {
		return s.Up.Queued.Datagrams+s.Down.Queued.Datagrams == 0 && s.Down.Received.Datagrams == s.Up.Sent.Datagrams
	})
	if s.Up.Received.Datagrams != clients*each || s.Routes != clients || s.RoutesEver != clients || s.Up.Duplicated.Datagrams == 0 {
		t.Errorf("%+v", s)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	rs := r.Routes()
	var sum Flow
	for i, route := range rs {
		if route.Index != uint64(i) || route.Up.Received.Datagrams != each {
			t.Errorf("route %d: %+v", i, route)
		}
		sum.Add(route.Up)
	}
	if sum != s.Up {
		t.Errorf("the routes sum to %+v, the relay counts %+v", sum, s.Up)
	}
}

func TestMaxRoutes(t *testing.T) {
	server := echo(t, "127.0.0.1:0")
	r := start(t, Config{Target: server.LocalAddr().String(), MaxRoutes: 2})
	for range 2 {
		c := dialUDP(t, r)
		if _, err := c.Write([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		read(t, c)
	}
	c := dialUDP(t, r)
	if _, err := c.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	s := eventually(t, r, "refused", func(s Stats) bool { return s.Refused == netem.Count{Datagrams: 1, Bytes: 5} })
	if s.Up.Received.Datagrams != 2 || s.Routes != 2 {
		t.Errorf("%+v", s)
	}
	if err := s.Check(); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("Check: %v", err)
	}
}

func TestOverflowOnSockets(t *testing.T) {
	server := listenUDP(t, "127.0.0.1:0")
	r := start(t, Config{Target: server.LocalAddr().String(), Up: netem.Config{Delay: time.Hour}, RouteDatagrams: 10})
	c := dialUDP(t, r)
	for i := range 25 {
		if _, err := c.Write([]byte(number(i, 100))); err != nil {
			t.Fatal(err)
		}
	}
	s := eventually(t, r, "all received", func(s Stats) bool { return s.Up.Received.Datagrams == 25 })
	if s.Up.Queued.Datagrams != 10 || s.Up.Dropped.Overflow.Datagrams != 15 || s.PeakBytes != 1000 || s.PeakDatagrams != 10 {
		t.Errorf("%+v", s)
	}
	if err := s.Check(); err == nil || !strings.Contains(err.Error(), "15 datagrams overflowed") {
		t.Errorf("Check: %v", err)
	}
	r.Close()
	if s := r.Stats(); s.Up.Dropped.Closed.Datagrams != 10 || !s.Up.Balanced() {
		t.Errorf("after close: %+v", s)
	}
}

// A target that is not there answers with ICMP errors; the route survives them.
func TestRefusedTargetDoesNotEndTheRoute(t *testing.T) {
	server := listenUDP(t, "127.0.0.1:0")
	address := server.LocalAddr().String()
	server.Close()
	r := start(t, Config{Target: address})
	c := dialUDP(t, r)
	for i := range 50 {
		if _, err := c.Write([]byte("nobody listens")); err != nil {
			t.Fatal(err)
		}
		eventually(t, r, "received", func(s Stats) bool { return s.Up.Received.Datagrams == uint64(i+1) })
	}
	again := echo(t, address)
	_ = again
	// Some errors may still be pending and eat a datagram each.
	_ = c.SetReadDeadline(time.Time{})
	got := make(chan bool, 1)
	go func() {
		_, err := c.Read(make([]byte, 100))
		got <- err == nil
	}()
	tick := time.NewTicker(5 * ms)
	defer tick.Stop()
	for deadline := time.After(patience); ; {
		select {
		case ok := <-got:
			if !ok {
				t.Fatal("read failed")
			}
			return
		case <-tick.C:
			_, _ = c.Write([]byte("is somebody there?"))
		case <-deadline:
			t.Fatalf("no answer: %+v", r.Stats())
		}
	}
}

func TestIdleRoutesEndAndStayInTheSums(t *testing.T) {
	server := echo(t, "127.0.0.1:0")
	r := start(t, Config{Target: server.LocalAddr().String(), RouteIdle: -1})
	u := r.engine.(*udpRelay)
	c := dialUDP(t, r)
	for round := range 3 {
		if _, err := c.Write([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		read(t, c)
		n := uint64(round + 1)
		eventually(t, r, "sent", func(s Stats) bool { return s.Up.Sent.Datagrams == n && s.Down.Sent.Datagrams == n })
		before := r.Stats()
		u.expire(u.now() + time.Second) // the janitor's work, at a later time
		s := eventually(t, r, "ended", func(Stats) bool {
			u.mu.Lock()
			defer u.mu.Unlock()
			return len(u.byClient)+len(u.ending) == 0
		})
		if s.Up != before.Up || s.Down != before.Down || s.RoutesEver != n || s.Routes != 0 {
			t.Errorf("before %+v, after %+v", before, s)
		}
	}
}

func TestHeldDatagramsKeepTheirRoute(t *testing.T) {
	server := listenUDP(t, "127.0.0.1:0")
	r := start(t, Config{Target: server.LocalAddr().String(), Up: netem.Config{Delay: time.Hour}, RouteIdle: -1})
	c := dialUDP(t, r)
	if _, err := c.Write([]byte("wait")); err != nil {
		t.Fatal(err)
	}
	eventually(t, r, "held", func(s Stats) bool { return s.Up.Queued.Datagrams == 1 })
	u := r.engine.(*udpRelay)
	u.expire(u.now() + time.Second)
	if s := r.Stats(); s.Routes != 1 {
		t.Errorf("%+v", s)
	}
}

func TestCloseEndsAllGoroutines(t *testing.T) {
	server := echo(t, "127.0.0.1:0")
	before := runtime.NumGoroutine()
	r := start(t, Config{Target: server.LocalAddr().String(), Up: netem.Config{Delay: ms}})
	for range 20 {
		c := dialUDP(t, r)
		if _, err := c.Write([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		read(t, c)
	}
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	tick := time.NewTicker(ms)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); runtime.NumGoroutine() > before; <-tick.C {
		if time.Now().After(deadline) {
			buf := make([]byte, 1<<16)
			t.Fatalf("goroutines left:\n%s", buf[:runtime.Stack(buf, true)])
		}
	}
	if s := r.Stats(); s.Up.Received.Datagrams != 20 {
		t.Errorf("%+v", s)
	}
}

func TestWildcardListenerAnswersFromTheAddressAsked(t *testing.T) {
	for _, tt := range []struct{ listen, dial string }{
		{"0.0.0.0:0", "127.0.0.1"}, {"0.0.0.0:0", "127.0.0.2"}, {":0", "127.0.0.1"}, {"[::]:0", "::1"},
	} {
		t.Run(tt.listen+" by "+tt.dial, func(t *testing.T) {
			server := echo(t, "127.0.0.1:0")
			r, err := Start(Config{Listen: tt.listen, Target: server.LocalAddr().String()})
			if err != nil {
				t.Skipf("no such family here: %v", err)
			}
			defer r.Close()
			c, err := net.DialUDP("udp", nil, &net.UDPAddr{IP: net.ParseIP(tt.dial), Port: r.Addr().(*net.UDPAddr).Port})
			if err != nil {
				t.Skipf("no %s here: %v", tt.dial, err)
			}
			defer c.Close()
			if tt.dial == "127.0.0.2" && runtime.GOOS != "linux" {
				t.Skip("only Linux tells which address was asked")
			}
			_ = c.SetDeadline(time.Now().Add(patience))
			if _, err := c.Write([]byte("hello")); err != nil {
				t.Fatal(err)
			}
			if b := read(t, c); string(b) != "hello" { // a connected socket hears that address only
				t.Errorf("%q", b)
			}
		})
	}
}

func TestStartRefusesBadConfigs(t *testing.T) {
	for _, tt := range []struct {
		cfg  Config
		want string
	}{
		{Config{}, "Config.Target"},
		{Config{Target: "127.0.0.1:1", Network: "sctp"}, "udp, tcp"},
		{Config{Target: "127.0.0.1:1", Up: netem.Config{Loss: -1}}, "up: netem: Config.Loss"},
		{Config{Target: "127.0.0.1:1", Down: netem.Config{Delay: -1}}, "down: netem: Config.Delay"},
		{Config{Target: "127.0.0.1:1", RouteBytes: -1}, "Config.RouteBytes"},
		{Config{Target: "127.0.0.1:1", MaxRoutes: 1 << 30}, "Config.MaxRoutes"},
		{Config{Target: "127.0.0.1:1", ResetAfter: 1}, "Config.ResetAfter"},
		{Config{Target: "no port"}, "Config.Target"},
		{Config{Target: "127.0.0.1:1", Listen: "127.0.0.1:70000"}, "Config.Listen"},
		{Config{Target: "127.0.0.1:1", Network: "tcp", Listen: "127.0.0.1:70000"}, "Config.Listen"},
		{Config{Target: "nowhere", Network: "tcp"}, "Config.Target"},
	} {
		r, err := Start(tt.cfg)
		if err == nil {
			r.Close()
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: error %v, want one about %s", tt.cfg, err, tt.want)
		}
	}
}

func TestSelfTestCounts(t *testing.T) {
	res, err := SelfTest{Duration: 100 * ms, Rate: 2000, Delay: ms}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := res.CheckCounts(); err != nil || res.Sent != 200 {
		t.Errorf("%+v: %v", res, err)
	}
	if res.P50 < 2*ms {
		t.Errorf("round trip %v through 2 x 1 ms", res.P50)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (SelfTest{}).Run(ctx); err == nil {
		t.Error("a cancelled self-test succeeded")
	}
	if _, err := (SelfTest{Size: 3}).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "SelfTest.Size") {
		t.Errorf("error %v", err)
	}
}
