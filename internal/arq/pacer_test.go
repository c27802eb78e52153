package arq

import (
	"testing"
	"time"

	"github.com/openarkstudio/arknet-go/netem"
)

func TestPacerCreditsItsBurstOnce(t *testing.T) {
	var p pacer
	p.spend(1000) // not in use yet
	p.refill(1, 1_000_000, 5000)
	if p.credit != 5000 {
		t.Fatalf("credit %d at the start, want the burst of 5000", p.credit)
	}
	p.spend(5000)
	if at := p.until(1, 1000, 1_000_000); at.sub(1) != ms {
		t.Errorf("1000 bytes may leave after %v, want 1 ms", at.sub(1))
	}
	p.refill(Time(1).add(500*us), 1_000_000, 5000)
	if p.credit != 500 {
		t.Errorf("credit %d after half a millisecond, want 500", p.credit)
	}
	p.refill(Time(1).add(time.Hour), 1_000_000, 5000)
	if p.credit != 5000 {
		t.Errorf("credit %d after an hour, want the burst and no more", p.credit)
	}
}

// The rate is exact however often the bucket is asked, and at any rate.
func TestPacerKeepsItsRate(t *testing.T) {
	for _, rate := range []int64{1, 999, 1_000_000, 125_000_000, 8 << 30} {
		for _, step := range []time.Duration{time.Nanosecond, 333 * time.Nanosecond, 7 * us, 13 * ms} {
			var p pacer
			now := Time(1)
			p.refill(now, rate, 0)
			n := min(int64(100_000), int64(10*time.Second/step))
			const huge = 1 << 60
			for range n {
				now = now.add(step)
				p.refill(now, rate, huge)
			}
			elapsed := int64(step) * n
			want := mulDiv(rate, elapsed, int64(time.Second))
			if p.credit != want {
				t.Errorf("rate %d in steps of %v: %d bytes, want %d", rate, step, p.credit, want)
			}
		}
	}
}

// mulDiv is a*b/c without overflow for the values of this test.
func mulDiv(a, b, c int64) int64 { return a/c*b + a%c*(b/c) + a%c*(b%c)/c }

// Whatever a bucket says of when a packet may leave is true at that time, and
// never is the present: a driver that waits must get on.
func TestPacerUntilComesTrue(t *testing.T) {
	for _, rate := range []int64{1, 1000, 777_777, 1 << 30} {
		var p pacer
		now := Time(1)
		p.refill(now, rate, 10_000)
		for range 100 {
			at := p.until(now, 1200, rate)
			if at > now {
				if at.sub(now) < pacerGranularity {
					t.Fatalf("rate %d: a wait of %v", rate, at.sub(now))
				}
				now = at
				p.refill(now, rate, 10_000)
				if again := p.until(now, 1200, rate); again > now {
					t.Fatalf("rate %d: told to wait %v after the wait", rate, again.sub(now))
				}
			}
			p.spend(1200)
		}
	}
}

// A datagram longer than the controller's least window, or than the burst of a
// rate limit, leaves all the same.
func TestLongDatagramsLeaveUnderEveryLimit(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Config)
	}{
		{"least window", func(c *Config) { c.Congestion = fixedWindow(minimumWindow) }},
		{"rate limit", func(c *Config) { c.Congestion, c.MaxRate = FixedRate{}, 1_000_000 }},
		{"least rate", func(c *Config) { c.Congestion, c.MinRate = fixedWindow(1), 1_000_000 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSim(t)
			up, down := testLinks(t, netem.Config{Delay: ms}, 1)
			cc, sc := testConfig(1), testConfig(2)
			cc.MTU = MaxMTU
			c.change(&cc)
			client, server := s.pair(cc, sc, up, down)
			got := 0
			server.onMessage = func(m []byte) { got += len(m) }
			client.onOpen = func() { client.send(make([]byte, 200_000)) }
			s.runFor(5 * time.Second)
			if got != 200_000 {
				t.Errorf("%d bytes arrived of 200000", got)
			}
		})
	}
}

// fixedWindow is a window that nothing moves.
type fixedWindow int

func (w fixedWindow) Window() int             { return int(w) }
func (w fixedWindow) Smooth() bool            { return false }
func (w fixedWindow) Paced() bool             { return false }
func (w fixedWindow) OnSent(Time, int, int)   {}
func (w fixedWindow) OnAck(Time, AckSample)   {}
func (w fixedWindow) OnLoss(_, _ Time, _ int) {}

func TestMaxRateIsKept(t *testing.T) {
	for _, congestion := range []Controller{nil, FixedRate{}} {
		s := newSim(t)
		up, down := testLinks(t, netem.Config{Delay: 5 * ms}, 1)
		cc, sc := testConfig(1), testConfig(2)
		cc.MaxRate, cc.Congestion = 1_000_000, congestion
		client, _ := s.pair(cc, sc, up, down)
		feed(client, 1000)
		s.runFor(500 * ms)
		before := client.sentBytes
		s.runFor(2 * time.Second)
		if rate := float64(client.sentBytes-before) / 2; rate < 980_000 || rate > 1_000_100 {
			t.Errorf("%.0f bytes/s left under a limit of 1000000", rate)
		}
	}
}

// MinRate goes on when the controller's window is shut.
func TestMinRateIsKept(t *testing.T) {
	s := newSim(t)
	up, down := testLinks(t, netem.Config{Delay: 50 * ms}, 1)
	cc, sc := testConfig(1), testConfig(2)
	cc.MinRate, cc.Congestion = 250_000, fixedWindow(2400)
	client, _ := s.pair(cc, sc, up, down)
	feed(client, 1000)
	s.runFor(time.Second)
	before := client.sentBytes
	s.runFor(4 * time.Second)
	if rate := float64(client.sentBytes-before) / 4; rate < 240_000 || rate > 250_000+2400/0.1*1.1 {
		t.Errorf("%.0f bytes/s left with a least rate of 250000", rate)
	}
}

// A probe timeout and lost packets must not let a rate-limited session go silent.
func TestRateLimitedSessionRecovers(t *testing.T) {
	s := newSim(t)
	up, down := testLinks(t, netem.Config{Delay: 5 * ms, Loss: 0.3}, 7)
	cc, sc := testConfig(1), testConfig(2)
	cc.MaxRate, cc.Congestion = 100_000, FixedRate{}
	client, server := s.pair(cc, sc, up, down)
	got := 0
	server.onMessage = func([]byte) { got++ }
	client.onOpen = func() {
		for range 200 {
			client.send(make([]byte, 500))
		}
	}
	s.runFor(10 * time.Second)
	if got != 200 {
		t.Errorf("%d messages arrived of 200", got)
	}
}

// feed keeps the queue of a node full of messages of the size, as an
// application does that waits for room.
func feed(n *node, size int) {
	m := make([]byte, size)
	fill := func() {
		for {
			if _, err := n.c.Send(n.s.now, m); err != nil {
				break
			}
		}
	}
	n.onOpen = fill
	n.onEvents = func(e Events) {
		if e&EventWritable != 0 && n.c.State() == StateOpen {
			fill()
		}
	}
}
