package relay

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/openarkstudio/arknet-go/netem"
)

// tcpServer hands accepted connections to serve until the test ends.
func tcpServer(t *testing.T, host string, serve func(c *net.TCPConn)) string {
	t.Helper()
	l, err := net.Listen("tcp", host+":0")
	if err != nil {
		t.Skipf("no %s here: %v", host, err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				_ = c.SetDeadline(time.Now().Add(patience))
				serve(c.(*net.TCPConn))
			})
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	return l.Addr().String()
}

func tcpEcho(c *net.TCPConn) {
	_, _ = io.Copy(c, c)
	_ = c.CloseWrite()
}

func dialTCP(t *testing.T, r *Relay) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", r.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	return c.(*net.TCPConn)
}

// expectReset connects and fails unless the connection ends with an error, which
// may already be that of the connect.
func expectReset(t *testing.T, r *Relay) {
	t.Helper()
	c, err := net.Dial("tcp", r.Addr().String())
	if err != nil {
		return
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	if _, err := c.Read(make([]byte, 1)); err == nil || err == io.EOF || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read: %v, want a reset", err)
	}
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

func TestTCPEchoWithHalfClose(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "[::1]"} {
		for name, link := range map[string]netem.Config{
			"perfect": {},
			"delay":   {Delay: 2 * ms},
			"rate":    {Rate: 200_000_000, QueueBytes: 20_000, Delay: ms},
			"outage":  {Outages: []netem.Outage{{Start: 5 * ms, Duration: 5 * ms, Every: 20 * ms}}},
		} {
			t.Run(host+"/"+name, func(t *testing.T) {
				target := tcpServer(t, host, tcpEcho)
				r := start(t, Config{Network: "tcp", Listen: host + ":0", Target: target, Up: link, Down: link})
				c := dialTCP(t, r)
				want := randomBytes(1 << 20)
				var wg sync.WaitGroup
				wg.Go(func() {
					if _, err := c.Write(want); err != nil {
						t.Error(err)
					}
					if err := c.CloseWrite(); err != nil {
						t.Error(err)
					}
				})
				got, err := io.ReadAll(c)
				wg.Wait()
				if err != nil || !bytes.Equal(got, want) {
					t.Fatalf("%d B, %v; want %d B", len(got), err, len(want))
				}
				c.Close()
				s := eventually(t, r, "ended", func(s Stats) bool { return s.Routes == 0 })
				for _, f := range []Flow{s.Up, s.Down} {
					if f.Sent.Bytes != 1<<20 || f.Received != f.Sent {
						t.Errorf("%+v", f)
					}
				}
				if err := s.Check(); err != nil || s.RoutesEver != 1 {
					t.Errorf("%v, %+v", err, s)
				}
			})
		}
	}
}

func TestTCPHoldsTheSenderBack(t *testing.T) {
	target := tcpServer(t, "127.0.0.1", func(c *net.TCPConn) { _, _ = io.Copy(io.Discard, c) })
	r := start(t, Config{Network: "tcp", Target: target, Up: netem.Config{Delay: time.Hour}, RouteBytes: 100_000})
	c := dialTCP(t, r)
	// Writes until the relay and the kernel hold all they may.
	blocked := make(chan error, 1)
	go func() {
		_, err := c.Write(make([]byte, 64<<20))
		blocked <- err
	}()
	eventually(t, r, "held", func(s Stats) bool { return s.Up.Queued.Bytes > 100_000-maxChunk })
	_ = c.SetWriteDeadline(time.Now())
	if err := <-blocked; err == nil {
		t.Error("64 MiB were accepted")
	}
	s := r.Stats()
	if s.Up.Queued.Bytes > 100_000 || s.Up.Dropped.Overflow.Datagrams != 0 {
		t.Errorf("%+v", s.Up)
	}
	r.Close()
	if s := r.Stats(); s.Up.Dropped.Closed.Bytes == 0 || !s.Up.Balanced() {
		t.Errorf("after close: %+v", s.Up)
	}
}

func TestTCPReset(t *testing.T) {
	for name, reset := range map[string]func(t *testing.T, r *Relay){
		"by method": func(t *testing.T, r *Relay) {
			if n := r.ResetConnections(); n != 1 {
				t.Errorf("%d reset", n)
			}
		},
		"by time": nil,
	} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan error, 1)
			target := tcpServer(t, "127.0.0.1", func(c *net.TCPConn) {
				_, err := io.Copy(c, c)
				ended <- err
			})
			cfg := Config{Network: "tcp", Target: target}
			if reset == nil {
				cfg.ResetAfter = 20 * ms
			}
			r := start(t, cfg)
			c := dialTCP(t, r)
			if reset != nil {
				if _, err := c.Write([]byte("hello")); err != nil {
					t.Fatal(err)
				}
				if _, err := io.ReadFull(c, make([]byte, 5)); err != nil {
					t.Fatal(err)
				}
				reset(t, r)
			}
			if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) && runtime.GOOS != "windows" || err == nil || err == io.EOF {
				t.Errorf("the client sees %v", err)
			}
			if err := <-ended; err == nil {
				t.Error("the server sees no error")
			}
			eventually(t, r, "ended", func(s Stats) bool { return s.Routes == 0 })
		})
	}
}

func TestTCPTargetThatIsNotThere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	r := start(t, Config{Network: "tcp", Target: l.Addr().String()})
	for range 3 {
		expectReset(t, r)
	}
	eventually(t, r, "ended", func(s Stats) bool { return s.Routes == 0 && s.RoutesEver == 3 })
}

func TestTCPMaxRoutes(t *testing.T) {
	target := tcpServer(t, "127.0.0.1", tcpEcho)
	r := start(t, Config{Network: "tcp", Target: target, MaxRoutes: 1})
	first := dialTCP(t, r)
	eventually(t, r, "accepted", func(s Stats) bool { return s.Routes == 1 })
	expectReset(t, r)
	eventually(t, r, "refused", func(s Stats) bool { return s.Refused.Datagrams == 1 })
	if _, err := first.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(first, make([]byte, 1)); err != nil {
		t.Error(err)
	}
}

func TestTCPRefusesWhatHasNoMeaning(t *testing.T) {
	for name, c := range map[string]netem.Config{
		"Loss":           {Loss: 0.1},
		"Burst":          {Burst: netem.Burst{Lose: 1, Every: 2}},
		"GilbertElliott": {GilbertElliott: netem.GilbertElliott{LossGood: 0.1}},
		"Jitter":         {Jitter: ms},
		"JitterReorders": {JitterReorders: true},
		"Late":           {Late: netem.Late{Share: 0.1}},
		"Duplicate":      {Duplicate: 0.1},
		"Corrupt":        {Corrupt: 0.1},
		"QueuePackets":   {Rate: 1000, QueuePackets: 1},
		"Police":         {Rate: 1000, Police: true},
		"MTU":            {MTU: 1200},
	} {
		r, err := Start(Config{Network: "tcp", Target: "127.0.0.1:1", Down: c})
		if err == nil {
			r.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "down: network tcp has no use for Config."+name+";") {
			t.Errorf("%s: error %v", name, err)
		}
	}
	r := start(t, Config{Network: "tcp", Target: "127.0.0.1:1"})
	if err := r.SetImpairment(netem.Config{MTU: 1}, netem.Config{}); err == nil {
		t.Error("accepted at run time")
	}
	if err := r.SetImpairment(netem.Config{Delay: ms}, netem.Config{Rate: 1000}); err != nil {
		t.Error(err)
	}
}

func TestTCPManyClientsAndClose(t *testing.T) {
	target := tcpServer(t, "127.0.0.1", tcpEcho)
	before := runtime.NumGoroutine()
	r := start(t, Config{Network: "tcp", Target: target, Up: netem.Config{Delay: ms}})
	var wg sync.WaitGroup
	for i := range 50 {
		c := dialTCP(t, r)
		wg.Go(func() {
			msg := randomBytes(1000 + i)
			for range 5 {
				if _, err := c.Write(msg); err != nil {
					t.Error(err)
					return
				}
				got := make([]byte, len(msg))
				if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, msg) {
					t.Errorf("client %d: %v", i, err)
					return
				}
			}
		})
	}
	wg.Wait()
	if s := r.Stats(); s.Routes != 50 || s.Up.Sent.Bytes != s.Down.Received.Bytes {
		t.Errorf("%+v", s)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	tick := time.NewTicker(ms)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); runtime.NumGoroutine() > before; <-tick.C {
		if time.Now().After(deadline) {
			buf := make([]byte, 1<<16)
			t.Fatalf("goroutines left:\n%s", buf[:runtime.Stack(buf, true)])
		}
	}
}
