package arq

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/openarkstudio/arknet-go/netem"
)

// bottleneck is one link that several flows share, with what it shows.
type bottleneck struct {
	s        *sim
	t        testing.TB
	link     *netem.Link
	back     netem.Config
	since    Time // start of the measurement
	queue    []time.Duration
	offered  int
	dropped  int // by the queue
	flows    []*flow
	sampling bool
}

// flow is one sender and its receiver.
type flow struct {
	sender, receiver *node
	got              int64 // application bytes that arrived in the measurement
}

func newBottleneck(t testing.TB, forward, back netem.Config, seed uint64) *bottleneck {
	t.Helper()
	link, err := netem.NewLink(forward, netem.DeriveSeed(seed, 99, netem.Up))
	if err != nil {
		t.Fatal(err)
	}
	return &bottleneck{s: newSim(t), t: t, link: link, back: back}
}

// add connects one more sender over the shared link, with a way back of its own.
func (b *bottleneck) add(change func(*Config)) *flow {
	b.t.Helper()
	i := uint64(len(b.flows))
	_, down := testLinks(b.t, b.back, 1000+i)
	cc, sc := testConfig(uint32(100+i)), testConfig(uint32(200+i))
	cc.SendQueue, cc.SendWindow = 256<<10, 8<<20
	cc.SendSymbols, sc.RecvSymbols = 8192, 8192
	sc.RecvWindow = 16 << 20
	if change != nil {
		change(&cc)
	}
	f := &flow{}
	f.sender, f.receiver = b.s.pair(cc, sc, b.link, down)
	f.sender.onFate = func(size int, fate *netem.Fate) {
		if !b.sampling {
			return
		}
		b.offered++
		if fate.Cause == netem.LostQueue {
			b.dropped++
		}
		cfg := b.link.Config()
		for _, c := range fate.Delivered()[:min(1, len(fate.Delivered()))] {
			if cfg.Rate > 0 && !c.Late {
				own := time.Duration(int64(size) * 8 * int64(time.Second) / cfg.Rate)
				b.queue = append(b.queue, max(0, time.Duration(c.At)-time.Duration(b.s.now)-cfg.Delay-own))
			}
		}
	}
	f.receiver.onMessage = func(m []byte) {
		if b.sampling {
			f.got += int64(len(m))
		}
	}
	b.flows = append(b.flows, f)
	return f
}

// bulk adds a sender that always has something to send.
func (b *bottleneck) bulk(change func(*Config)) *flow {
	f := b.add(change)
	feed(f.sender, 1000)
	return f
}

// measure warms up and then measures.
func (b *bottleneck) measure(warm, d time.Duration) {
	b.s.runFor(warm)
	b.sampling, b.since = true, b.s.now
	b.s.runFor(d)
	b.sampling = false
	slices.Sort(b.queue)
}

// mbit is the goodput of a flow in Mbit/s.
func (b *bottleneck) mbit(f *flow) float64 {
	return float64(f.got) * 8 / 1e6 / b.s.now.sub(b.since).Seconds()
}

// delay is a quantile of the queueing delay, in percent.
func (b *bottleneck) delay(percent int) time.Duration {
	if len(b.queue) == 0 {
		return 0
	}
	return b.queue[min(len(b.queue)*percent/100, len(b.queue)-1)]
}

// drop is the share of the datagrams that the queue dropped, in percent.
func (b *bottleneck) drop() float64 { return 100 * float64(b.dropped) / float64(max(b.offered, 1)) }

func competitive() *Copa {
	c := NewCopa()
	c.Competitive = true
	return c
}

// link20 is a link of 20 Mbit/s and 20 ms whose queue holds one bandwidth-delay
// product.
func link20(loss float64) netem.Config {
	return netem.Config{Rate: 20_000_000, Delay: 10 * ms, QueueBytes: 50_000, Loss: loss}
}

// lateToo adds what the lossy paths of the benchmark have besides loss.
func lateToo(c netem.Config) netem.Config {
	c.Late, c.Duplicate = netem.Late{Share: 0.05, Delay: 15 * ms}, 0.01
	return c
}

// within fails the test when a figure leaves its bounds.
func within(t *testing.T, what string, got, lo, hi float64) {
	t.Helper()
	if got < lo || got > hi {
		t.Errorf("%s: %.2f, want %.2f to %.2f", what, got, lo, hi)
	}
}

func inMS(d time.Duration) float64 { return float64(d) / float64(ms) }

// Random loss does not slow a bulk flow down, and the link's queue stays short.
func TestBulkFlowUnderRandomLoss(t *testing.T) {
	for _, tt := range []struct {
		loss  float64
		mbit  float64
		queue float64 // p95 in ms
	}{{0, 19.2, 5}, {0.01, 18, 5}, {0.05, 17.3, 5}, {0.1, 16.5, 6}, {0.2, 14.5, 6}} {
		t.Run(fmt.Sprint("loss ", tt.loss), func(t *testing.T) {
			heavy(t, tt.loss == 0.01 || tt.loss == 0.1)
			forward, back := link20(tt.loss), netem.Config{Delay: 10 * ms, Loss: tt.loss}
			if tt.loss > 0 {
				forward, back = lateToo(forward), lateToo(back)
			}
			b := newBottleneck(t, forward, back, 1)
			f := b.bulk(nil)
			b.measure(2500*ms, 3*time.Second)
			within(t, "goodput in Mbit/s", b.mbit(f), tt.mbit, 20)
			within(t, "queue p95 in ms", inMS(b.delay(95)), 0.5, tt.queue)
			within(t, "dropped by the queue in percent", b.drop(), 0, 0.1)
		})
	}
}

// Flows of one kind share a link, whether it loses datagrams or not.
func TestFlowsShareFairly(t *testing.T) {
	fast := func(mbit int64) netem.Config {
		return netem.Config{Rate: mbit * 1_000_000, Delay: 10 * ms, QueueBytes: int(mbit) * 2500}
	}
	for _, tt := range []struct {
		name    string
		forward netem.Config
		flows   int
		warm    time.Duration
		share   float64 // of the slowest to the fastest
		total   float64
		queue   float64 // p95 in ms
	}{
		{"two", link20(0), 2, 4 * time.Second, 0.8, 19, 5},
		{"two with loss", lateToo(link20(0.05)), 2, 4 * time.Second, 0.8, 17, 5},
		{"four", link20(0), 4, 4 * time.Second, 0.8, 19, 8},
		{"two on 100 Mbit/s", fast(100), 2, 5 * time.Second, 0.7, 92, 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			heavy(t, tt.forward.Rate > 50_000_000 || tt.flows > 2)
			b := newBottleneck(t, tt.forward, netem.Config{Delay: 10 * ms, Loss: tt.forward.Loss}, 1)
			for range tt.flows {
				b.bulk(nil)
			}
			b.measure(tt.warm, 5*time.Second)
			slowest, fastest, total := 1e9, 0.0, 0.0
			for _, f := range b.flows {
				m := b.mbit(f)
				slowest, fastest, total = min(slowest, m), max(fastest, m), total+m
			}
			within(t, "slowest to fastest", slowest/fastest, tt.share, 1)
			within(t, "goodput of all in Mbit/s", total, tt.total, 1000)
			within(t, "queue p95 in ms", inMS(b.delay(95)), 0, tt.queue)
			within(t, "dropped by the queue in percent", b.drop(), 0, 0.1)
		})
	}
}

// Jitter is not taken for a queue: echoes over a path with up to 1 ms of it are
// as fast as without a controller, also over a path of 30 us.
func TestJitterDoesNotSlowEchoes(t *testing.T) {
	for _, path := range []struct {
		delay           time.Duration
		payload, window int
		measure         time.Duration
	}{{10 * ms, 1024, 16, 2 * time.Second}, {10 * ms, 4096, 64, 300 * ms}, {15 * us, 1024, 16, 50 * ms}} {
		for _, jitter := range []time.Duration{0, 500 * us, ms} {
			t.Run(fmt.Sprintf("path %v jitter %v size %d", 2*path.delay, jitter, path.payload), func(t *testing.T) {
				heavy(t, path.measure < time.Second)
				rate := func(none bool) float64 {
					return runEcho(t, echoLoad{
						net:     netem.Config{Delay: path.delay, Jitter: jitter, JitterReorders: true},
						payload: path.payload, window: path.window,
						warm: path.measure, measure: path.measure, clients: 1,
						config: func(c *Config) {
							if none {
								c.Congestion = FixedRate{}
							}
						},
					}).perSecond
				}
				within(t, "rate relative to no controller", rate(false)/rate(true), 0.9, 1.1)
			})
		}
	}
}

// Nor is the reordering of a path that jitters by 5 ms: a bulk flow keeps the link.
func TestJitterDoesNotSlowBulkFlows(t *testing.T) {
	for _, jitter := range []time.Duration{500 * us, ms, 5 * ms} {
		t.Run(jitter.String(), func(t *testing.T) {
			heavy(t, jitter < ms)
			forward, back := link20(0), netem.Config{Delay: 10 * ms}
			forward.Jitter, forward.JitterReorders = jitter, true
			back.Jitter, back.JitterReorders = jitter, true
			b := newBottleneck(t, forward, back, 1)
			f := b.bulk(nil)
			b.measure(2*time.Second, 4*time.Second)
			within(t, "goodput in Mbit/s", b.mbit(f), 18.3, 20)
			within(t, "queue and jitter p95 in ms", inMS(b.delay(95)), 0, 5+inMS(jitter))
			within(t, "dropped by the queue in percent", b.drop(), 0, 0.1)
		})
	}
}

// A link that four echo clients fill drops next to nothing, with repairs or
// without: repairs fade out where they would only add to the load.
func TestFullLinkOfEchoes(t *testing.T) {
	for _, tt := range []struct {
		mbit      int64
		loss      float64
		coding    bool
		perSecond float64
		drop      float64
	}{
		{10, 0, false, 1070, 0.1},
		{10, 0, true, 1070, 0.1},
		{10, 0.05, false, 930, 0.2},
		{10, 0.05, true, 930, 0.2},
		{40, 0, false, 3050, 0.1},
		{40, 0.05, true, 2350, 0.1}, // the link is not full: repairs help
		{5, 0, true, 510, 2.5},      // least windows of 4 packets for a path of 10
	} {
		t.Run(fmt.Sprintf("%d Mbit/s loss %v coding %v", tt.mbit, tt.loss, tt.coding), func(t *testing.T) {
			heavy(t, tt.mbit > 10)
			net := netem.Config{
				Rate: tt.mbit * 1_000_000, Delay: 10 * ms, QueueBytes: int(tt.mbit) * 2500, Loss: tt.loss,
			}
			s := newSim(t)
			up, down := testLinks(t, net, 1)
			echoes := 0
			for i := range uint32(4) {
				cc, sc := testConfig(10+i), testConfig(20+i)
				if tt.coding {
					codingOn(&cc)
					codingOn(&sc)
				}
				client, server := s.pair(cc, sc, up, down)
				m := make([]byte, 1024)
				server.onMessage = func(m []byte) { server.send(m) }
				client.onMessage = func([]byte) { echoes++; client.send(m) }
				client.onOpen = func() {
					for range 16 {
						client.send(m)
					}
				}
			}
			s.runFor(2 * time.Second)
			echoes = 0
			before := up.Stats()
			s.runFor(2 * time.Second)
			after := up.Stats()
			dropped := after.Dropped.Queue.Datagrams - before.Dropped.Queue.Datagrams
			within(t, "round trips/s", float64(echoes)/2, tt.perSecond, 1e6)
			within(t, "dropped by the queue in percent",
				100*float64(dropped)/float64(after.Offered.Datagrams-before.Offered.Datagrams), 0, tt.drop)
		})
	}
}

// Where no queue tells of the limit, the flow finds it by its losses, with a
// small test now and then: a policer, or a queue below the delay that counts as
// none. The figures document what is reached; lossy paths with a policer remain
// a weak spot.
func TestLimitsWithoutAQueue(t *testing.T) {
	police := func(c netem.Config) netem.Config {
		c.Police = true
		return c
	}
	link := func(mbit int64, delay time.Duration, queue int) netem.Config {
		return netem.Config{Rate: mbit * 1_000_000, Delay: delay, QueueBytes: queue}
	}
	for _, tt := range []struct {
		name    string
		forward netem.Config
		mbit    float64
		drop    float64
		warm    time.Duration
	}{
		{"policer of 0.1 BDP", police(link(20, 10*ms, 5_000)), 13.5, 7, 4 * time.Second},
		{"policer of 1 BDP", police(link(20, 10*ms, 50_000)), 18.5, 10, 4 * time.Second},
		{"policer of 0.1 BDP and loss", police(lateToo(netem.Config{Rate: 20_000_000, Delay: 10 * ms, QueueBytes: 5_000, Loss: 0.05})), 14, 27, 4 * time.Second},
		{"queue of 0.1 BDP", link(20, 10*ms, 5_000), 16, 4, 4 * time.Second},
		{"100 Mbit/s, queue of 2 ms", link(100, 10*ms, 25_000), 94, 0.5, 2 * time.Second},
		{"100 Mbit/s, queue of 1 ms", link(100, 10*ms, 12_500), 75, 4, 2 * time.Second},
		{"500 Mbit/s, 1 ms, queue of 1 ms", link(500, 500*us, 62_500), 450, 4, time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			heavy(t, tt.forward.Rate > 50_000_000 || tt.forward.Loss > 0)
			b := newBottleneck(t, tt.forward, netem.Config{Delay: tt.forward.Delay}, 1)
			f := b.bulk(nil)
			measure := 4 * time.Second
			if tt.forward.Rate > 400_000_000 {
				measure = 300 * ms
			} else if tt.forward.Rate > 50_000_000 {
				measure = time.Second
			}
			b.measure(tt.warm, measure)
			within(t, "goodput in Mbit/s", b.mbit(f), tt.mbit, 1000)
			within(t, "dropped in percent", b.drop(), 0, tt.drop)
		})
	}
}

// A burst as long as the window, on a path whose queue holds a ninth of it: the
// application writes 10 MB at once and 1 MB every other second.
func TestLongPathWithAShortQueue(t *testing.T) {
	heavy(t, true)
	const window = 1536 * 1200
	forward := netem.Config{Rate: 200_000_000, Delay: 45 * ms, QueueBytes: 250_000}
	b := newBottleneck(t, forward, netem.Config{Delay: 45 * ms}, 1)
	f := b.add(func(c *Config) { c.SendWindow, c.SendQueue, c.SendQueued = window, 16<<20, 1<<20 })
	write := func(bytes int) {
		for range bytes / 10_000 {
			f.sender.send(make([]byte, 10_000))
		}
	}
	b.sampling = true
	f.sender.onOpen = func() { write(10_000_000) }
	lostAtFirst := uint64(0) // with the first burst after the startup
	for i := range 3 {
		b.s.after(time.Duration(3+2*i)*time.Second, func() {
			if i == 1 {
				lostAtFirst = f.sender.c.Stats().Lost
			}
			write(1_000_000)
		})
	}
	b.s.runFor(10 * time.Second)
	slices.Sort(b.queue)
	if f.got != 13_000_000 {
		t.Errorf("%d bytes arrived", f.got)
	}
	// The first burst shows that bursts are lost; the later ones leave evenly.
	within(t, "dropped in percent", b.drop(), 0, 9)
	within(t, "queue p95 in ms", inMS(b.delay(95)), 0, 10)
	if n := f.sender.c.Stats().Lost - lostAtFirst; n > 10 {
		t.Errorf("%d datagrams of the later bursts were lost", n)
	}
}

// Beside flows that fill the queue the delay target yields; the competitive mode
// holds its own. These figures document it.
func TestBesideLossBasedFlows(t *testing.T) {
	for _, tt := range []struct {
		name        string
		own, other  Controller
		least, most float64 // Mbit/s
	}{
		{"NewReno", nil, NewNewReno(), 0.8, 15},
		{"CUBIC", nil, newCubic(), 0.8, 15},
		{"NewReno, competitive", competitive(), NewNewReno(), 4, 7},
		{"CUBIC, competitive", competitive(), newCubic(), 3, 7},
	} {
		t.Run(tt.name, func(t *testing.T) {
			heavy(t, tt.own != nil)
			b := newBottleneck(t, link20(0), netem.Config{Delay: 10 * ms}, 1)
			own := b.bulk(func(c *Config) { c.Congestion = tt.own })
			other := b.bulk(func(c *Config) { c.Congestion = tt.other })
			b.measure(4*time.Second, 5*time.Second)
			within(t, "own goodput in Mbit/s", b.mbit(own), tt.least, 13)
			within(t, "the other's in Mbit/s", b.mbit(other), tt.most, 19)
			if p := own.sender.c.Stats().Probes; p > 10 {
				t.Errorf("%d probes were sent behind the other's queue", p)
			}
		})
	}
}

// Two flows in competitive mode do not take each other for buffer fillers for
// long: the queue stays short most of the time.
func TestCompetitiveFlowsAmongThemselves(t *testing.T) {
	heavy(t, true)
	b := newBottleneck(t, link20(0), netem.Config{Delay: 10 * ms}, 1)
	one := b.bulk(func(c *Config) { c.Congestion = competitive() })
	two := b.bulk(func(c *Config) { c.Congestion = competitive() })
	b.measure(4*time.Second, 6*time.Second)
	within(t, "goodput of both in Mbit/s", b.mbit(one)+b.mbit(two), 19, 20)
	within(t, "one to the other", b.mbit(one)/b.mbit(two), 0.75, 1.35)
	within(t, "queue p50 in ms", inMS(b.delay(50)), 0, 5)
}

func TestNewRenoFlow(t *testing.T) {
	for _, tt := range []struct {
		loss     float64
		lo, high float64
	}{{0, 18.8, 20}, {0.05, 0.5, 4}} { // random loss starves it, which is why it is no default
		b := newBottleneck(t, link20(tt.loss), netem.Config{Delay: 10 * ms}, 1)
		f := b.bulk(func(c *Config) { c.Congestion = NewNewReno() })
		b.measure(3*time.Second, 5*time.Second)
		within(t, "goodput in Mbit/s", b.mbit(f), tt.lo, tt.high)
		within(t, "dropped in percent", b.drop(), 0, 1)
	}
}

// Beyond the burst credit no stretch of time carries more than the pacing rate of
// four windows per round trip, nor any 5 ms more than 1.25 times that rate; where
// bursts are lost, no 5 ms carry more than 1.25 windows per round trip.
func TestPacing(t *testing.T) {
	const window, rtt = 600 * packetSize, 90 * ms
	for _, smooth := range []bool{false, true} {
		s := newSim(t)
		up, down := testLinks(t, netem.Config{Delay: rtt / 2}, 1)
		cc, sc := testConfig(1), testConfig(2)
		cc.Congestion, cc.SendWindow = pacedWindow{window, smooth}, 8<<20
		client, _ := s.pair(cc, sc, up, down)
		rate, credit := float64(4*window)/rtt.Seconds(), float64(window)/2
		if smooth {
			rate = float64(window) * 1.25 / rtt.Seconds()
			credit = max(2*packetSize, rate*pacerLateness.Seconds())
		}
		var recent []simSent // of the last 5 ms
		bucket, last, most, total := credit, Time(0), 0.0, 0
		client.onFate = func(size int, _ *netem.Fate) {
			bucket = min(bucket+rate*s.now.sub(last).Seconds(), credit)
			was := bucket
			bucket -= float64(size)
			last = s.now
			if bucket < -2 && s.now > Time(time.Second) {
				t.Fatalf("smooth %v: %.0f bytes more than the rate allows left by %v", smooth, -bucket, time.Duration(s.now))
			}
			recent = append(recent, simSent{s.now, size, was})
			for recent[0].at <= s.now.add(-5*ms) {
				recent = recent[1:]
			}
			n := 0
			for _, r := range recent {
				n += r.size
			}
			// What the credit held when the 5 ms began is burst.
			most = max(most, float64(n)-recent[0].credit)
			total += size
		}
		client.onOpen = func() {
			s.after(time.Second, func() {
				for range 1000 {
					client.send(make([]byte, 10_000))
				}
			})
		}
		s.runFor(4 * time.Second)
		if most > 1.25*rate*0.005 {
			t.Errorf("smooth %v: %.0f bytes left in 5 ms beside the credit, the rate allows %.0f", smooth, most, rate*0.005)
		}
		within(t, "sent in windows per round trip", float64(total)/window/(3/rtt.Seconds()), 0.4, 1)
	}
}

type simSent struct {
	at     Time
	size   int
	credit float64
}

// pacedWindow is a paced window that nothing moves.
type pacedWindow struct {
	window int
	smooth bool
}

func (w pacedWindow) Window() int             { return w.window }
func (w pacedWindow) Paced() bool             { return true }
func (w pacedWindow) Smooth() bool            { return w.smooth }
func (w pacedWindow) OnSent(Time, int, int)   {}
func (w pacedWindow) OnAck(Time, AckSample)   {}
func (w pacedWindow) OnLoss(_, _ Time, _ int) {}

// A flow one way is acknowledged neither too often nor too rarely.
func TestAckFrequency(t *testing.T) {
	for _, tt := range []struct {
		mbit   int64
		lo, hi float64 // acks per second
	}{{20, 400, 900}, {100, 600, 1000}} {
		if raceEnabled && tt.mbit > 50 {
			continue // heavy
		}
		forward := netem.Config{Rate: tt.mbit * 1_000_000, Delay: 10 * ms, QueueBytes: int(tt.mbit) * 2500}
		b := newBottleneck(t, forward, netem.Config{Delay: 10 * ms}, 1)
		f := b.bulk(nil)
		b.s.runFor(2 * time.Second)
		before := f.receiver.sentCount
		b.measure(0, 3*time.Second)
		within(t, "acks per second", float64(f.receiver.sentCount-before)/3, tt.lo, tt.hi)
		within(t, "goodput in Mbit/s", b.mbit(f), 0.96*float64(tt.mbit), float64(tt.mbit))
	}
}

// cubic is a model of CUBIC (RFC 9438) to compete with.
type cubic struct {
	window, threshold, most float64 // bytes
	epoch                   Time
	k                       float64 // seconds to the former maximum
	smoothed                time.Duration
	recovery                Time
	inFlight                int
}

func newCubic() *cubic { return &cubic{window: 10 * packetSize, threshold: 1e12} }

func (c *cubic) Window() int                    { return int(c.window) }
func (c *cubic) Paced() bool                    { return false }
func (c *cubic) Smooth() bool                   { return false }
func (c *cubic) OnSent(_ Time, _, inFlight int) { c.inFlight = inFlight }

func (c *cubic) OnAck(now Time, s AckSample) {
	c.smoothed = s.Smoothed
	switch {
	case float64(s.InFlight+s.Bytes) < 0.8*c.window: // not held back by it
	case c.window < c.threshold:
		c.window += float64(s.Bytes)
	default:
		if c.epoch == 0 {
			c.epoch = now
			c.k = math.Cbrt(max(0, c.most-c.window) / packetSize / 0.4)
		}
		t := (now.sub(c.epoch) + s.Smoothed).Seconds()
		target := 0.4*math.Pow(t-c.k, 3)*packetSize + c.most
		friendly := 0.7*c.most + 3*0.3/1.7*t/s.Smoothed.Seconds()*packetSize
		if target = max(target, friendly); target > c.window {
			c.window += min(float64(s.Bytes)/2, (target-c.window)*float64(s.Bytes)/c.window)
		}
	}
}

func (c *cubic) OnLoss(now, _ Time, _ int) {
	if now < c.recovery {
		return
	}
	c.recovery = now.add(c.smoothed)
	c.most = c.window
	c.window = max(0.7*c.window, 2*packetSize)
	c.threshold, c.epoch = c.window, 0
}
