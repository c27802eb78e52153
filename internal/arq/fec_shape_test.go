package arq

import (
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/openarkstudio/arknet-go/netem"
)

// profiled is the adaptive policy in one of its profiles.
func profiled(gain int, smallBursts bool) FECConfig {
	c := sliding(FECAdaptive)
	c.Gain, c.SmallBursts = gain, smallBursts
	return c
}

var (
	eco      = profiled(600, false)
	balanced = profiled(1000, false)
	fast     = profiled(1600, true)
)

// The closed loop of four clients keeps its shape with erasure coding: what a
// policy reaches on a path, at what cost in bytes and in the tail.
func TestCodingShape(t *testing.T) {
	random, burst, sustained := profile(t, "random"), profile(t, "burst"), profile(t, "sustained")
	lossy := func(loss float64) netem.Config {
		return with(random, func(c *netem.Config) { c.Loss = loss })
	}
	jittery := netem.Config{Delay: 10 * ms, Jitter: 5 * ms, JitterReorders: true}
	coded := FECConfig{Retain: 512 << 10}
	for _, tt := range []struct {
		name            string
		net             netem.Config
		payload, window int
		clients         int
		measure         time.Duration // in milliseconds
		fec             FECConfig

		perSecond float64       // at least
		p99       time.Duration // at most
		overhead  float64       // at most, in percent
	}{
		{"random", random, 1024, 16, 4, 2000, balanced, 2850, 42 * ms, 37},
		{"random eco", random, 1024, 16, 4, 1500, eco, 2450, 60 * ms, 26},
		{"random fast", random, 1024, 16, 2, 1500, fast, 3050, 38 * ms, 57},
		{"burst", burst, 1024, 16, 4, 1500, balanced, 2750, 46 * ms, 30},
		{"burst fast", burst, 1024, 16, 2, 1500, fast, 3000, 38 * ms, 43},
		{"sustained", sustained, 1024, 16, 2, 2000, balanced, 2800, 46 * ms, 36},
		{"sustained 4096 B", sustained, 4096, 16, 2, 500, balanced, 2800, 42 * ms, 31},
		{"sustained 4096 B fast", sustained, 4096, 16, 1, 500, fast, 3050, 36 * ms, 46},
		{"random 64 B window 1", random, 64, 1, 4, 10000, balanced, 168, 62 * ms, 112},
		{"random 64 B window 1 fast", random, 64, 1, 4, 5000, fast, 190, 37 * ms, 216},
		{"random 64 B window 64", random, 64, 64, 4, 3000, balanced, 11000, 55 * ms, 48},
		{"random 64 B window 64 fast", random, 64, 64, 2, 2000, fast, 12100, 37 * ms, 90},
		{"random 1024 B window 1", random, 1024, 1, 4, 10000, balanced, 168, 62 * ms, 46},
		{"random 1024 B window 64", random, 1024, 64, 1, 600, balanced, 11000, 44 * ms, 31},
		{"random 4096 B window 1", random, 4096, 1, 4, 5000, balanced, 175, 58 * ms, 45},
		{"random 4096 B window 64", random, 4096, 64, 1, 300, balanced, 10500, 56 * ms, 29},
		{"random 16384 B window 1", random, 16384, 1, 4, 1000, balanced, 183, 38 * ms, 38},
		{"loss 0", lossy(0), 1024, 16, 2, 1500, balanced, 2800, 45 * ms, 20},
		{"loss 1", lossy(0.01), 1024, 16, 2, 1500, balanced, 2800, 50 * ms, 23},
		{"loss 10", lossy(0.10), 1024, 16, 2, 1500, balanced, 2900, 46 * ms, 55},
		{"loss 20", lossy(0.20), 1024, 16, 2, 1500, balanced, 2900, 42 * ms, 99},
		{"coded retransmission", random, 1024, 16, 4, 3000, coded, 1550, 78 * ms, 21},
		{"fixed", random, 1024, 16, 2, 1500, sliding(FECFixed), 2800, 46 * ms, 33},
		{"block", random, 1024, 16, 4, 1000, block(FECFixed), 2550, 60 * ms, 34},
		{"adaptive block", random, 1024, 16, 4, 1000, block(FECAdaptive), 2550, 60 * ms, 38},
		{"clean", netem.Config{Delay: 10 * ms}, 1024, 16, 1, 1000, balanced, 3190, 20100 * us, 3.5},
		{"jitter 5 ms", jittery, 1024, 16, 2, 1000, balanced, 2380, 31 * ms, 10},
		{"jitter 5 ms 4096 B", jittery, 4096, 16, 1, 500, balanced, 2150, 31 * ms, 10},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			heavy(t, tt.payload*tt.window > 16<<10 || tt.fec.SmallBursts && tt.window > 1)
			r := runEcho(t, echoLoad{
				net: tt.net, payload: tt.payload, window: tt.window,
				warm: time.Second, measure: tt.measure * ms, clients: tt.clients,
				config: func(c *Config) {
					if c.FEC = tt.fec; c.FEC.Policy == FECOff {
						c.Retransmit = RetransmitCoded
					}
				},
				inspect: func(c *Conn) {
					if err := checkCoding(c); err != nil {
						t.Error(err)
					}
				},
			})
			if r.perSecond < tt.perSecond {
				t.Errorf("%.0f round trips/s, want at least %.0f", r.perSecond, tt.perSecond)
			}
			if r.p99 > tt.p99 {
				t.Errorf("p99 %v, want at most %v", r.p99, tt.p99)
			}
			if 100*r.overhead > tt.overhead {
				t.Errorf("overhead %.1f %%, want at most %.1f", 100*r.overhead, tt.overhead)
			}
			t.Logf("%.0f/s p50 %v p95 %v p99 %v overhead %.1f %%", r.perSecond, r.p50, r.p95, r.p99, 100*r.overhead)
		})
	}
}

// loop is a closed loop of one session with times, for paths that change.
type loop struct {
	s              *sim
	client, server *node
	rtts           []time.Duration // since the last look
	bytes          int64           // on the wire until then
	payload        int
}

// newLoop starts a closed loop of window messages.
func newLoop(s *sim, id uint32, payload, window int, cfg FECConfig, up, down *netem.Link) *loop {
	cc, sc := testConfig(id), testConfig(id+1)
	cc.FEC, sc.FEC = cfg, cfg
	return startLoop(s, payload, window, cc, sc, up, down)
}

func startLoop(s *sim, payload, window int, cc, sc Config, up, down *netem.Link) *loop {
	l := &loop{s: s, payload: payload}
	l.client, l.server = s.pair(cc, sc, up, down)
	l.server.onMessage = func(m []byte) { l.server.send(m) }
	submit := func() {
		m := make([]byte, payload)
		binary.BigEndian.PutUint64(m, uint64(s.now))
		l.client.send(m)
	}
	l.client.onOpen = func() {
		for range window {
			submit()
		}
	}
	l.client.onMessage = func(m []byte) {
		l.rtts = append(l.rtts, s.now.sub(Time(binary.BigEndian.Uint64(m))))
		submit()
	}
	return l
}

// look tells what happened since the last look.
func (l *loop) look() (trips int, p99 time.Duration, overhead float64) {
	trips = len(l.rtts)
	if trips > 0 {
		slices.Sort(l.rtts)
		p99 = l.rtts[trips*99/100]
	}
	sent := l.client.sentBytes + l.server.sentBytes
	overhead = float64(sent-l.bytes)/float64(2*l.payload*max(trips, 1)) - 1
	l.rtts, l.bytes = l.rtts[:0], sent
	return trips, p99, overhead
}

// On a full link that four clients share, repairs fade out by themselves: they
// neither fill the queue nor take the place of data.
func TestRepairsFadeOutOnAFullLink(t *testing.T) {
	type outcome struct{ perSecond, overhead, drop float64 }
	run := func(cfg FECConfig, loss float64) outcome {
		s := newSim(t)
		up, down := testLinks(t, netem.Config{Delay: 10 * ms, Loss: loss, Rate: 10_000_000, QueueBytes: 25_000}, 42)
		var loops []*loop
		for i := range uint32(4) {
			loops = append(loops, newLoop(s, 2*i+1, 1024, 16, cfg, up, down))
		}
		s.runFor(time.Second)
		for _, l := range loops {
			l.look()
		}
		lost, offered := queueDrops(up, down)
		s.runFor(3 * time.Second)
		var o outcome
		for _, l := range loops {
			trips, _, overhead := l.look()
			o.perSecond += float64(trips) / 3
			o.overhead += 100 * overhead / 4
		}
		l, n := queueDrops(up, down)
		o.drop = 100 * float64(l-lost) / float64(n-offered)
		t.Logf("loss %v: %.0f/s overhead %.1f %% dropped %.2f %%", loss, o.perSecond, o.overhead, o.drop)
		return o
	}
	off := run(FECConfig{}, 0)
	for _, tt := range []struct {
		name     string
		fec      FECConfig
		overhead float64
		share    float64 // of the round trips without repairs
	}{
		{"balanced", balanced, 5, 0.95},
		{"fast", fast, 5, 0.95},
		{"fixed", sliding(FECFixed), 15, 0.85},
		{"block", block(FECFixed), 15, 0.85},
	} {
		if raceEnabled && tt.fec.Policy != FECAdaptive {
			continue // heavy
		}
		o := run(tt.fec, 0)
		if o.drop > 1 {
			t.Errorf("%s: %.2f %% are dropped", tt.name, o.drop)
		}
		if o.perSecond < tt.share*off.perSecond || o.overhead > tt.overhead {
			t.Errorf("%s: %.0f round trips/s at %.1f %%, %.0f without repairs", tt.name, o.perSecond, o.overhead, off.perSecond)
		}
	}
	lossy := run(FECConfig{}, 0.05)
	if o := run(balanced, 0.05); o.drop > 1 || o.perSecond < 0.95*lossy.perSecond {
		t.Errorf("with losses: %.0f round trips/s, %.2f %% dropped; %.0f without repairs", o.perSecond, o.drop, lossy.perSecond)
	}
}

func queueDrops(links ...*netem.Link) (dropped, offered uint64) {
	for _, l := range links {
		st := l.Stats()
		dropped += st.Dropped.Queue.Datagrams
		offered += st.Offered.Datagrams
	}
	return dropped, offered
}

// The adaptive rate follows the path within about a second, both ways.
func TestRateFollowsThePath(t *testing.T) {
	s := newSim(t)
	path := netem.Config{Delay: 10 * ms}
	up, down := testLinks(t, path, 42)
	l := newLoop(s, 1, 1024, 16, balanced, up, down)
	s.runFor(time.Second)
	for _, step := range []struct {
		loss             float64
		first, then      int // round trips of one client in a second, at least
		overhead, settle float64
	}{
		{0, 780, 790, 6, 4},
		{0.10, 500, 680, 35, 52},
		{0.01, 660, 640, 22, 12},
		{0.05, 580, 640, 24, 28},
		{0, 770, 790, 10, 4},
	} {
		path.Loss = step.loss
		for _, link := range []*netem.Link{up, down} {
			if err := link.SetConfig(time.Duration(s.now), path); err != nil {
				t.Fatal(err)
			}
		}
		l.look()
		s.runFor(time.Second)
		trips, p99, overhead := l.look()
		t.Logf("loss %v, first second: %d, p99 %v, overhead %.1f %%", step.loss, trips, p99, 100*overhead)
		if trips < step.first || 100*overhead > step.overhead {
			t.Errorf("loss %v: %d round trips in the first second at %.1f %%", step.loss, trips, 100*overhead)
		}
		s.runFor(3 * time.Second)
		trips, p99, overhead = l.look()
		t.Logf("loss %v, then: %d, p99 %v, overhead %.1f %%", step.loss, trips/3, p99, 100*overhead)
		if trips/3 < step.then || 100*overhead > step.settle {
			t.Errorf("loss %v: %d round trips per second later on at %.1f %%", step.loss, trips/3, 100*overhead)
		}
	}
}
