package relay

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/openarkstudio/arknet-go/internal/udpio"
	"github.com/openarkstudio/arknet-go/netem"
)

// BenchmarkSelfTest reports how precisely the relay keeps its times, in one run of
// two seconds: rtt-p50-us should be 20,000 to 20,300, p99-above-p50-us below 300.
func BenchmarkSelfTest(b *testing.B) {
	for b.Loop() {
		res, err := SelfTest{Duration: 2 * time.Second}.Run(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if err := res.CheckCounts(); err != nil {
			b.Error(err)
		}
		b.ReportMetric(float64(res.P50.Nanoseconds())/1e3, "rtt-p50-us")
		b.ReportMetric(float64((res.P99-res.P50).Nanoseconds())/1e3, "p99-above-p50-us")
		b.ReportMetric(float64(res.Max.Nanoseconds())/1e3, "rtt-max-us")
	}
}

// BenchmarkEcho counts echo round trips of 1,200 B through a relay between peers
// in the same process: 4 clients with 16 datagrams in flight each. Plain peers
// make one system call per datagram, train peers use the offloads. Without a relay
// it shows what the peers alone cost.
func BenchmarkEcho(b *testing.B) {
	slow := netem.Config{Delay: ms}
	for _, bb := range []struct {
		name   string
		relay  bool
		trains bool
		window int
		link   netem.Config
	}{
		{"peers=plain/relay=no/window=16", false, false, 16, netem.Config{}},
		{"peers=plain/relay=yes/window=16", true, false, 16, netem.Config{}},
		{"peers=trains/relay=no/window=16", false, true, 16, netem.Config{}},
		{"peers=trains/relay=yes/window=16", true, true, 16, netem.Config{}},
		{"peers=plain/relay=delay/window=64", true, false, 64, slow},
		{"peers=trains/relay=delay/window=256", true, true, 256, slow},
	} {
		b.Run(bb.name, func(b *testing.B) {
			server := listenUDP(b, "127.0.0.1:0")
			target := server.LocalAddr().(*net.UDPAddr)
			var r *Relay
			if bb.relay {
				r = start(b, Config{Target: target.String(), Up: bb.link, Down: bb.link})
				target = r.Addr().(*net.UDPAddr)
			}
			var clients [4]*net.UDPConn
			var peers [4]func(count func(int))
			for i := range clients {
				c, err := net.DialUDP("udp", nil, target)
				if err != nil {
					b.Fatal(err)
				}
				_ = c.SetReadBuffer(4 << 20)
				clients[i] = c
				peers[i] = benchPeer(b, c, bb.trains)
			}
			var wg sync.WaitGroup
			answer := benchPeer(b, server, bb.trains)
			wg.Go(func() { answer(nil) })
			var trips atomic.Int64
			goal := int64(b.N)
			done := make(chan struct{})
			count := func(n int) {
				if now := trips.Add(int64(n)); now >= goal && now-int64(n) < goal {
					close(done)
				}
			}
			b.SetBytes(2 * 1200)
			b.ReportAllocs()
			b.ResetTimer()
			for i, c := range clients {
				wg.Go(func() { peers[i](count) })
				for i := range bb.window {
					if _, err := c.Write([]byte(number(i, 1200))); err != nil {
						b.Fatal(err)
					}
				}
			}
			select {
			case <-done:
			case <-time.After(patience):
				b.Errorf("stalled after %d of %d round trips", trips.Load(), goal)
			}
			b.StopTimer()
			b.ReportMetric(float64(trips.Load())/b.Elapsed().Seconds(), "rt/s")
			if r != nil {
				s := r.Stats()
				if err := s.Check(); err != nil {
					b.Error(err)
				}
				in := r.engine.(*udpRelay).socket.Stats()
				b.ReportMetric(float64(in.DatagramsIn)/float64(in.SyscallsIn), "datagrams/read")
			}
			for _, c := range clients {
				c.Close()
			}
			server.Close()
			wg.Wait()
		})
	}
}

// benchPeer returns a function that sends back what it receives until the
// connection is closed, and tells count about it.
func benchPeer(b *testing.B, c *net.UDPConn, trains bool) func(count func(int)) {
	if !trains {
		return func(count func(int)) { plainPeer(c, count) }
	}
	s, err := udpio.New(c, udpio.Options{})
	if err != nil {
		b.Fatal(err)
	}
	return func(count func(int)) { trainPeer(s, count) }
}

func plainPeer(c *net.UDPConn, count func(int)) {
	buf := make([]byte, 2000)
	for {
		n, from, err := c.ReadFromUDPAddrPort(buf)
		if err != nil {
			return
		}
		if count != nil {
			count(1)
			_, err = c.Write(buf[:n])
		} else {
			_, err = c.WriteToUDPAddrPort(buf[:n], from)
		}
		if err != nil {
			return
		}
	}
}

func trainPeer(s *udpio.Socket, count func(int)) {
	ts := make([]udpio.Train, 32)
	for {
		n, err := s.ReadTrains(ts)
		if err != nil {
			return
		}
		k := 0
		for i := range ts[:n] {
			k += ts[i].Len()
		}
		if count != nil {
			count(k)
		}
		if _, err := s.WriteTrains(ts[:n]); err != nil {
			return
		}
	}
}
