package arq

import (
	"fmt"
	"testing"
	"time"
)

// direct is two Conns that hand each other their datagrams at once, in memory:
// what remains is the cost of the protocol.
type direct struct {
	tb        testing.TB
	a, b      *Conn
	now       Time
	buf       []byte
	msg       []byte
	datagrams int
	lose      int // every so many datagrams one is lost, 0 = none
}

func newDirect(tb testing.TB, change func(*Config)) *direct {
	d := &direct{tb: tb, now: 1, buf: make([]byte, 0, maxTrain*DefaultMTU), msg: make([]byte, 0, 1<<16)}
	cc, sc := testConfig(1), testConfig(2)
	if change != nil {
		change(&cc)
		change(&sc)
	}
	d.a = NewClient(d.now, cc)
	buf, _ := d.a.AppendDatagrams(d.now, nil, 1)
	h, ok := FirstFlight(buf)
	if !ok {
		tb.Fatal("no first flight")
	}
	d.b = NewServer(d.now, sc, h)
	d.b.HandleDatagram(d.now, buf)
	d.step()
	d.step()
	if d.a.State() != StateOpen || d.b.State() != StateOpen {
		tb.Fatalf("states %d and %d", d.a.State(), d.b.State())
	}
	return d
}

// step lets 50 us pass and each side take its turn.
func (d *direct) step() {
	d.now = d.now.add(50 * us)
	d.turn(d.a, d.b)
	d.turn(d.b, d.a)
}

func (d *direct) turn(from, to *Conn) {
	if at, ok := from.NextTimeout(); ok && at <= d.now {
		from.HandleTimeout(d.now)
	}
	for {
		out, seg := from.AppendDatagrams(d.now, d.buf[:0], maxTrain)
		if seg == 0 {
			return
		}
		for len(out) > 0 {
			n := min(seg, len(out))
			d.datagrams++
			if d.lose == 0 || d.datagrams%d.lose != 0 {
				to.HandleDatagram(d.now, out[:n])
			}
			out = out[n:]
		}
	}
}

// echo sends a message of each of the window's places and waits for all to
// come back.
func (d *direct) echo(m []byte, window int) {
	for range window {
		if _, err := d.a.Send(d.now, m); err != nil {
			d.tb.Fatal(err)
		}
	}
	back := 0
	for steps := 0; back < window; steps++ {
		if steps > 10_000 {
			d.tb.Fatalf("%d of %d messages came back", back, window)
		}
		d.step()
		for {
			out, ok, _ := d.b.AppendMessage(d.msg[:0])
			if !ok {
				break
			}
			if _, err := d.b.Send(d.now, out); err != nil {
				d.tb.Fatal(err)
			}
		}
		for ok := true; ok; {
			if _, ok, _ = d.a.AppendMessage(d.msg[:0]); ok {
				back++
			}
		}
		d.a.TakeEvents()
		d.b.TakeEvents()
	}
}

// stream moves n bytes one way.
func (d *direct) stream(chunk []byte, n int) {
	for got, written := 0, 0; got < n; {
		if written < n {
			k, _ := d.a.WriteStream(d.now, chunk[:min(len(chunk), n-written)])
			written += k
		}
		d.step()
		for {
			k, err := d.b.ReadStream(d.msg[:cap(d.msg)])
			if k == 0 || err != nil {
				break
			}
			got += k
		}
		d.a.TakeEvents()
		d.b.TakeEvents()
	}
}

func codingOn(c *Config) {
	c.FEC = FECConfig{
		Policy: FECAdaptive, Gain: 1000, Data: 8, Parity: 2, ParityLimit: 4, Budget: 100, Retain: 512 << 10,
	}
}

// In steady state nothing is allocated per message, on a clean path and on one
// that loses datagrams.
func TestSteadyStateDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes pools forget")
	}
	for _, size := range []int{0, 64, 1024, 20_000} {
		for _, lose := range []int{0, 20} {
			for name, change := range map[string]func(*Config){"off": nil, "adaptive": codingOn} {
				if change != nil && size > 1024 {
					continue // the coder keeps no more room than it uses
				}
				t.Run(fmt.Sprintf("size=%d/lose=%d/fec=%s", size, lose, name), func(t *testing.T) {
					d := newDirect(t, change)
					d.lose = lose
					m := make([]byte, size)
					for range 300 {
						d.echo(m, 16)
					}
					if n := testing.AllocsPerRun(200, func() { d.echo(m, 16) }); n >= 1 {
						t.Errorf("%v allocations per 16 round trips", n)
					}
				})
			}
		}
	}
	t.Run("stream", func(t *testing.T) {
		d := newDirect(t, nil)
		chunk := make([]byte, 64<<10)
		d.stream(chunk, 8<<20)
		if n := testing.AllocsPerRun(20, func() { d.stream(chunk, 1<<20) }); n >= 1 {
			t.Errorf("%v allocations per MiB", n)
		}
	})
}

// A session that was busy and is idle holds little memory once it sends its
// first keepalive.
func TestIdleSessionIsSmall(t *testing.T) {
	d := newDirect(t, nil)
	d.lose = 50
	for range 20 {
		d.echo(make([]byte, 20_000), 32)
	}
	for range 50 {
		d.now = d.now.add(time.Second)
		d.step()
	}
	for _, c := range []*Conn{d.a, d.b} {
		if c.recv.memory() != 0 || cap(c.recv.ready.chunks) > keptSlots || len(c.recv.early) > keptSlots ||
			len(c.send.ring) > keptSlots || len(c.sent.ring) > keptSlots {
			t.Errorf("%d bytes received, room for %d chunks, %d early and %d sent symbols and %d packets",
				c.recv.memory(), cap(c.recv.ready.chunks), len(c.recv.early), len(c.send.ring), len(c.sent.ring))
		}
	}
	d.echo(make([]byte, 20_000), 32)
}

func BenchmarkEcho(b *testing.B) {
	for _, size := range []int{64, 1024, 16384} {
		for _, window := range []int{1, 16} {
			b.Run(fmt.Sprintf("size=%d/window=%d", size, window), func(b *testing.B) {
				d := newDirect(b, nil)
				m := make([]byte, size)
				for range 100 {
					d.echo(m, window)
				}
				b.SetBytes(int64(2 * size * window))
				b.ReportAllocs()
				d.datagrams = 0
				rounds := 0
				for b.Loop() {
					d.echo(m, window)
					rounds++
				}
				perDatagram(b, d.datagrams)
				b.ReportMetric(float64(d.datagrams)/float64(rounds*window), "datagrams/roundtrip")
			})
		}
	}
}

func BenchmarkStream(b *testing.B) {
	for _, lose := range []int{0, 20} {
		b.Run(fmt.Sprintf("lose=%d", lose), func(b *testing.B) {
			d := newDirect(b, nil)
			d.lose = lose
			chunk := make([]byte, 64<<10)
			d.stream(chunk, 1<<20)
			b.SetBytes(1 << 20)
			b.ReportAllocs()
			d.datagrams = 0
			for b.Loop() {
				d.stream(chunk, 1<<20)
			}
			perDatagram(b, d.datagrams)
		})
	}
}

// perDatagram reports the time of sending and receiving one datagram.
func perDatagram(b *testing.B, datagrams int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(datagrams), "ns/datagram")
}

func BenchmarkSimulation(b *testing.B) {
	for b.Loop() {
		runEcho(b, echoLoad{
			net: profile(b, "random"), payload: 1024, window: 16,
			warm: 0, measure: time.Second, clients: 1,
		})
	}
}
