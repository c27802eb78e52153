package udpio

import (
	"fmt"
	"net"
	"sync"
	"testing"
)

// benchDatagram is the default datagram of the reliable transport.
const benchDatagram = 1200

// drain reads a socket until it ends and returns how many datagrams came.
func drain(s *Socket) uint64 {
	ts := make([]Train, 64)
	for {
		if _, err := s.ReadTrains(ts); err != nil {
			return s.Stats().DatagramsIn
		}
	}
}

// BenchmarkWrite measures one goroutine that sends datagrams of 1,200 bytes to
// a socket that is read with GRO: with the Write of package net, in batches of
// single datagrams, and in trains. One operation is one datagram.
func BenchmarkWrite(b *testing.B) {
	run := func(b *testing.B, opts Options, per int, op func(s *Socket)) {
		server := newSocket(b, listen(b, "udp4", "127.0.0.1"), Options{ReadBuffer: 4 << 20})
		client := newSocket(b, dial(b, server.LocalAddr()), opts)
		var received uint64
		var wg sync.WaitGroup
		wg.Go(func() { received = drain(server) })
		b.SetBytes(benchDatagram)
		b.ReportAllocs()
		sent := 0
		for b.Loop() {
			// The loop counts datagrams; a train is sent on every per-th.
			if sent%per == 0 {
				op(client)
			}
			sent++
		}
		server.Close()
		wg.Wait()
		b.ReportMetric(float64(sent)/b.Elapsed().Seconds(), "datagrams/s")
		b.ReportMetric(100*float64(received)/float64(sent), "%received")
	}
	b.Run("by=net.Write", func(b *testing.B) {
		buf := make([]byte, benchDatagram)
		run(b, Options{}, 1, func(s *Socket) { _, _ = s.PacketConn().(*net.UDPConn).Write(buf) })
	})
	trains := func(opts Options, count, segments int) func(*testing.B) {
		return func(b *testing.B) {
			ts := make([]Train, count)
			for i := range ts {
				ts[i] = Train{Buf: make([]byte, segments*benchDatagram), SegSize: benchDatagram}
			}
			run(b, opts, count*segments, func(s *Socket) { _, _ = s.WriteTrains(ts) })
		}
	}
	b.Run("by=one", trains(Options{}, 1, 1))
	b.Run("by=plain", trains(Options{NoFastPath: true}, 64, 1))
	b.Run("by=sendmmsg/batch=64", trains(Options{NoGSO: true}, 64, 1))
	for _, n := range []int{2, 4, 16, 54} {
		b.Run(fmt.Sprintf("by=gso/segments=%d", n), trains(Options{}, 1, n))
	}
	b.Run("by=gso/singles=54", trains(Options{}, 54, 1))
	b.Run("by=gso+sendmmsg/segments=54/batch=8", trains(Options{}, 8, 54))
}

// BenchmarkRead measures one goroutine that receives what another one sends in
// trains of 54: datagram by datagram, with recvmmsg, with GRO. One operation
// is one datagram.
func BenchmarkRead(b *testing.B) {
	for _, v := range []struct {
		name string
		opts Options
	}{
		{"plain", Options{NoFastPath: true}},
		{"recvmmsg", Options{NoGRO: true, MaxDatagram: 1500}},
		{"gro", Options{NoBatch: true}},
		{"gro+recvmmsg", Options{}},
	} {
		b.Run("by="+v.name, func(b *testing.B) {
			v.opts.ReadBuffer = 4 << 20
			server := newSocket(b, listen(b, "udp4", "127.0.0.1"), v.opts)
			client := newSocket(b, dial(b, server.LocalAddr()), Options{})
			var wg sync.WaitGroup
			wg.Go(func() {
				out := []Train{{Buf: make([]byte, 54*benchDatagram), SegSize: benchDatagram}}
				for {
					if _, err := client.WriteTrains(out); err != nil {
						return
					}
				}
			})
			ts := make([]Train, 64)
			b.SetBytes(benchDatagram)
			b.ReportAllocs()
			have, total := 0, 0
			for b.Loop() {
				for have == 0 {
					n, err := server.ReadTrains(ts)
					if err != nil {
						b.Fatal(err)
					}
					for i := range ts[:n] {
						have += ts[i].Len()
					}
				}
				have--
				total++
			}
			b.ReportMetric(float64(total)/b.Elapsed().Seconds(), "datagrams/s")
			client.Close()
			wg.Wait()
		})
	}
}

// BenchmarkPingPong measures the round trip of one datagram at a time, which
// the batching must not slow down: with package net, and with trains.
func BenchmarkPingPong(b *testing.B) {
	b.Run("by=net", func(b *testing.B) {
		server := listen(b, "udp4", "127.0.0.1")
		client := dial(b, server.LocalAddr())
		var wg sync.WaitGroup
		wg.Go(func() {
			buf := make([]byte, 2048)
			for {
				n, from, err := server.ReadFromUDPAddrPort(buf)
				if err != nil {
					return
				}
				_, _ = server.WriteToUDPAddrPort(buf[:n], from)
			}
		})
		out, in := make([]byte, benchDatagram), make([]byte, 2048)
		b.ReportAllocs()
		for b.Loop() {
			_, _ = client.Write(out)
			if _, err := client.Read(in); err != nil {
				b.Fatal(err)
			}
		}
		server.Close()
		wg.Wait()
	})
	for _, v := range []struct {
		name string
		opts Options
	}{{"trains", Options{}}, {"plain", Options{NoFastPath: true}}} {
		b.Run("by="+v.name, func(b *testing.B) {
			server := newSocket(b, listen(b, "udp4", "127.0.0.1"), v.opts)
			client := newSocket(b, dial(b, server.LocalAddr()), v.opts)
			var wg sync.WaitGroup
			wg.Go(func() {
				ts := make([]Train, 16)
				for {
					n, err := server.ReadTrains(ts)
					if err != nil {
						return
					}
					_, _ = server.WriteTrains(ts[:n])
				}
			})
			out, in := []Train{{Buf: make([]byte, benchDatagram)}}, make([]Train, 16)
			b.ReportAllocs()
			for b.Loop() {
				_, _ = client.WriteTrains(out)
				if _, err := client.ReadTrains(in); err != nil {
					b.Fatal(err)
				}
			}
			server.Close()
			wg.Wait()
		})
	}
}
