package arq

import (
	"fmt"
	"testing"
	"time"
)

// lossyPath is two Conns with a delay and regular losses between them, in
// memory and without allocations of its own: what remains is the cost of the
// protocol at a realistic number of symbols in flight.
type lossyPath struct {
	tb        testing.TB
	now       Time
	delay     time.Duration
	lose      int // every so many datagrams one is lost, 0 = none
	side      [2]*Conn
	queue     [2]flightQueue // towards side i
	wake      [2]Time
	datagrams int
	rng       uint64
	back      int // messages that came back
	asked     int
	buf, msg  []byte
}

// flightQueue holds the datagrams on their way, in the order of their arrival.
type flightQueue struct {
	ring        []flight
	first, next int
}

type flight struct {
	at Time
	b  []byte
}

func (q *flightQueue) push(at Time, b []byte) {
	if q.next-q.first == len(q.ring) {
		old := *q
		q.ring = make([]flight, max(64, 2*len(old.ring)))
		for i := old.first; i < old.next; i++ {
			q.ring[i%len(q.ring)] = old.ring[i%len(old.ring)]
		}
	}
	f := &q.ring[q.next%len(q.ring)]
	f.at, f.b = at, append(f.b[:0], b...)
	q.next++
}

func (q *flightQueue) head() Time {
	if q.first == q.next {
		return never
	}
	return q.ring[q.first%len(q.ring)].at
}

func newLossyPath(tb testing.TB, delay time.Duration, lose int, change func(*Config)) *lossyPath {
	p := &lossyPath{tb: tb, now: 1, delay: delay, buf: make([]byte, 0, maxTrain*DefaultMTU), msg: make([]byte, 0, 1<<16)}
	cc, sc := testConfig(1), testConfig(2)
	for _, c := range []*Config{&cc, &sc} {
		c.SendWindow = 4 << 20
		if change != nil {
			change(c)
		}
	}
	p.side[0] = NewClient(p.now, cc)
	buf, _ := p.side[0].AppendDatagrams(p.now, nil, 1)
	h, ok := FirstFlight(buf)
	if !ok {
		tb.Fatal("no first flight")
	}
	p.side[1] = NewServer(p.now, sc, h)
	p.side[1].HandleDatagram(p.now, buf)
	p.turn(0)
	p.turn(1)
	for p.side[0].State() != StateOpen || p.side[1].State() != StateOpen {
		p.step()
	}
	p.lose = lose
	return p
}

// turn is the driver's turn of side i.
func (p *lossyPath) turn(i int) {
	c := p.side[i]
	c.TakeEvents()
	for {
		out, ok, _ := c.AppendMessage(p.msg[:0])
		if !ok {
			break
		}
		if i == 0 {
			p.back++
		}
		if _, err := c.Send(p.now, out); err != nil {
			p.tb.Fatal(err)
		}
	}
	for {
		out, seg := c.AppendDatagrams(p.now, p.buf[:0], maxTrain)
		if seg == 0 {
			break
		}
		for len(out) > 0 {
			n := min(seg, len(out))
			p.datagrams++
			p.rng = p.rng*6364136223846793005 + 1442695040888963407
			if p.lose == 0 || p.rng>>33%uint64(p.lose) != 0 {
				p.queue[1-i].push(p.now.add(p.delay), out[:n])
			}
			out = out[n:]
		}
	}
	p.wake[i], _ = c.NextTimeout()
}

// step handles all that happens at the next point in time.
func (p *lossyPath) step() {
	next := never
	for i := range p.side {
		next = min(next, p.queue[i].head(), p.wake[i])
	}
	p.now = max(p.now, next)
	for i, c := range p.side {
		q := &p.queue[i]
		touched := false
		for q.head() <= p.now {
			c.HandleDatagram(p.now, q.ring[q.first%len(q.ring)].b)
			q.first++
			touched = true
		}
		if p.wake[i] <= p.now {
			c.HandleTimeout(p.now)
			touched = true
		}
		if touched {
			p.turn(i)
		}
	}
}

// fill puts messages into the loop: each side sends back what it reads.
func (p *lossyPath) fill(m []byte, window int) {
	for range window {
		if _, err := p.side[0].Send(p.now, m); err != nil {
			p.tb.Fatal(err)
		}
	}
	p.turn(0)
}

// roundTrips runs until n more messages came back than were asked for before.
func (p *lossyPath) roundTrips(n int) {
	p.asked += n
	for steps := 0; p.back < p.asked; steps++ {
		if steps > 1000*n+100_000 {
			p.tb.Fatalf("%d messages are missing", p.asked-p.back)
		}
		p.step()
	}
}

// BenchmarkEchoOverLossyPath has what coding costs: the difference between off
// and the policies, per round trip of two symbols. It must not grow with the
// symbols in flight beyond the window of a repair.
func BenchmarkEchoOverLossyPath(b *testing.B) {
	policies := []struct {
		name   string
		change func(*Config)
	}{
		{"off", nil},
		{"adaptive", func(c *Config) { c.FEC = sliding(FECAdaptive) }},
		{"fixed", func(c *Config) { c.FEC = sliding(FECFixed) }},
		{"block", func(c *Config) { c.FEC = block(FECFixed) }},
		{"coded", func(c *Config) { c.FEC.Retain, c.Retransmit = 512<<10, RetransmitCoded }},
	}
	for _, window := range []int{16, 128, 1000} {
		for _, policy := range policies {
			b.Run(fmt.Sprintf("window=%d/fec=%s", window, policy.name), func(b *testing.B) {
				p := newLossyPath(b, 10*ms, 20, policy.change)
				p.fill(make([]byte, 1024), window)
				p.roundTrips(20 * window)
				b.ReportAllocs()
				p.datagrams = 0
				rounds := 0
				for b.Loop() {
					p.roundTrips(1)
					rounds++
				}
				perDatagram(b, p.datagrams)
				b.ReportMetric(float64(p.datagrams)/float64(rounds), "datagrams/roundtrip")
			})
		}
	}
}

func sliding(policy FECPolicy) FECConfig {
	c := block(policy)
	c.Scheme = FECSliding
	if policy == FECAdaptive {
		c.Budget = 100
	}
	return c
}

func block(policy FECPolicy) FECConfig {
	return FECConfig{
		Policy: policy, Scheme: FECBlock, Gain: 1000, Data: 8, Parity: 2, ParityLimit: 4,
		GroupWait: 2 * ms, Budget: 50, Retain: 512 << 10,
	}
}
