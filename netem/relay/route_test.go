package relay

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/openarkstudio/arknet-go/internal/bufpool"
	"github.com/openarkstudio/arknet-go/internal/udpio"
	"github.com/openarkstudio/arknet-go/netem"
)

const ms = time.Millisecond

// simulation drives routes in simulated time, in place of sockets and clock.
type simulation struct {
	t      *testing.T
	limits limits
	queue  *queue
	woken  time.Duration
	now    time.Duration
	routes []*route
	out    [2]outbox
	refuse func(datagrams int) (sent int) // of the simulated socket
	lazy   bool                           // check only when the test asks
	sent   []sentDatagram
}

type sentDatagram struct {
	route uint64
	dir   netem.Direction
	at    time.Duration
	data  string
}

func newSimulation(t *testing.T) *simulation {
	s := &simulation{t: t, woken: never, refuse: func(n int) int { return n }}
	s.limits.routeBytes, s.limits.routeDatagrams, s.limits.totalBytes = DefaultRouteBytes, DefaultRouteDatagrams, DefaultTotalBytes
	s.queue = newQueue(func(at time.Duration) { s.woken = min(s.woken, at) })
	return s
}

func (s *simulation) route(seed uint64, up, down netem.Config) *route {
	s.t.Helper()
	rt, err := newRoute(uint64(len(s.routes)), netip.AddrPort{}, seed, up, down, &s.limits, s.queue)
	if err != nil {
		s.t.Fatal(err)
	}
	s.routes = append(s.routes, rt)
	return rt
}

// offer admits a train and sends what leaves at once.
func (s *simulation) offer(rt *route, d netem.Direction, t udpio.Train) {
	f, o := &rt.flows[d], &s.out[d]
	f.admit(s.now, &t, o)
	if len(o.trains) > 0 {
		s.send(f, o)
	}
	for i := range t.Buf { // it was borrowed: what is held must be a copy
		t.Buf[i] = 0xee
	}
	s.check()
}

func (s *simulation) send(f *flow, o *outbox) {
	n := s.refuse(o.datagrams)
	left := n
	for i := range o.trains {
		for d := range o.trains[i].Datagrams() {
			if left--; left >= 0 {
				s.sent = append(s.sent, sentDatagram{f.route.index, f.dir, s.now, string(d)})
			}
		}
	}
	f.settle(o, n, &f.failed)
	o.reset()
}

// advance runs the release loop up to the given time.
func (s *simulation) advance(to time.Duration) {
	for s.woken <= to {
		s.now = max(s.now, s.woken)
		s.woken = never
		for {
			due := s.queue.due(s.now, make([]held, 0, 8))
			if len(due) == 0 {
				break
			}
			for _, h := range due {
				var o outbox
				o.take(h)
				s.send(h.flow, &o)
			}
			if !s.lazy {
				s.check()
			}
		}
		s.queue.rest()
	}
	s.now = to
}

// check asserts what must hold at any time.
func (s *simulation) check() {
	s.t.Helper()
	total := 0
	for _, rt := range s.routes {
		bytes, datagrams := uint64(0), uint64(0)
		for d := range rt.flows {
			st := rt.flows[d].stats()
			if !st.Balanced() {
				s.t.Fatalf("route %d %v does not balance: %+v", rt.index, netem.Direction(d), st)
			}
			bytes += st.Queued.Bytes
			datagrams += st.Queued.Datagrams
		}
		if uint64(rt.heldBytes) != bytes || uint64(rt.heldDatagrams) != datagrams {
			s.t.Fatalf("route %d holds %d B, %d datagrams, but counts %d, %d as queued", rt.index, rt.heldBytes, rt.heldDatagrams, bytes, datagrams)
		}
		if rt.heldBytes > s.limits.routeBytes || rt.heldDatagrams > s.limits.routeDatagrams {
			s.t.Fatalf("route %d holds %d B, %d datagrams", rt.index, rt.heldBytes, rt.heldDatagrams)
		}
		total += rt.heldBytes
	}
	if int64(total) != s.limits.total.Load() {
		s.t.Fatalf("%d B held, %d counted", total, s.limits.total.Load())
	}
}

// numbered returns a train of n datagrams of the given size whose first bytes are
// first, first+1, ...
func numbered(first, n, size int) udpio.Train {
	buf := make([]byte, 0, n*size)
	for i := range n {
		buf = append(buf, number(first+i, size)...)
	}
	return udpio.Train{Buf: buf, SegSize: size}
}

func number(i, size int) string {
	b := make([]byte, size)
	binary.BigEndian.PutUint32(b, uint32(i))
	return string(b)
}

func TestPerfectLinkSendsTrainsAtOnce(t *testing.T) {
	s := newSimulation(t)
	rt := s.route(1, netem.Config{}, netem.Config{})
	var o outbox
	in := numbered(0, 10, 100)
	in.Buf = in.Buf[:950] // the last one is shorter
	rt.flows[netem.Up].admit(0, &in, &o)
	if len(o.trains) != 1 || &o.trains[0].Buf[0] != &in.Buf[0] || len(o.trains[0].Buf) != 950 || o.trains[0].SegSize != 100 || o.datagrams != 10 {
		t.Errorf("outbox %+v", o)
	}
	rt.flows[netem.Up].settle(&o, 10, nil)
	s.check()
	if rt.peakBytes != 0 {
		t.Errorf("peak %d", rt.peakBytes)
	}
}

func TestLossCutsTrains(t *testing.T) {
	s := newSimulation(t)
	rt := s.route(1, netem.Config{Burst: netem.Burst{Lose: 1, Every: 10}}, netem.Config{})
	s.offer(rt, netem.Up, numbered(0, 100, 50))
	st := rt.flows[netem.Up].stats()
	if st.Sent.Datagrams != 90 || st.Dropped.Burst.Datagrams != 10 || len(s.sent) != 90 {
		t.Errorf("%+v, %d sent", st, len(s.sent))
	}
	last := -1
	for _, d := range s.sent {
		i := int(binary.BigEndian.Uint32([]byte(d.data)))
		if i <= last || d.data != number(i, 50) {
			t.Fatalf("%d after %d: %q", i, last, d.data)
		}
		last = i
	}
}

func TestDelayedTrainStaysTrain(t *testing.T) {
	s := newSimulation(t)
	rt := s.route(1, netem.Config{Delay: 10 * ms}, netem.Config{})
	s.offer(rt, netem.Up, numbered(0, 20, 1200))
	if s.queue.sched.Len() != 1 || len(s.sent) != 0 || s.woken != 10*ms {
		t.Fatalf("%d entries, %d sent, wake-up at %v", s.queue.sched.Len(), len(s.sent), s.woken)
	}
	s.advance(10*ms - 1)
	if len(s.sent) != 0 {
		t.Fatal("left early")
	}
	s.advance(10 * ms)
	if len(s.sent) != 20 || s.sent[19].data != number(19, 1200) || s.sent[0].at != 10*ms {
		t.Fatalf("%d sent", len(s.sent))
	}
	if rt.peakBytes != 20*1200 || rt.peakDatagrams != 20 || rt.heldBytes != 0 {
		t.Errorf("peak %d B, %d datagrams, held %d", rt.peakBytes, rt.peakDatagrams, rt.heldBytes)
	}
}

func TestEmptyDatagrams(t *testing.T) {
	for _, delay := range []time.Duration{0, ms} {
		s := newSimulation(t)
		rt := s.route(1, netem.Config{Delay: delay, Duplicate: 1}, netem.Config{})
		s.offer(rt, netem.Up, udpio.Train{})
		s.advance(ms)
		if len(s.sent) != 2 || s.sent[0].data != "" {
			t.Errorf("delay %v: sent %+v", delay, s.sent)
		}
	}
}

// With one seed the relay does exactly what the link of that seed says, copy by
// copy, for every mixture of knobs.
func TestRelayFollowsTheLink(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 4))
		var cfg netem.Config
		on := func() bool { return rng.IntN(2) == 0 }
		if on() {
			cfg.Loss = 0.1
		}
		if on() {
			cfg.Delay = 3 * ms
		}
		if on() {
			cfg.Jitter, cfg.JitterReorders = 2*ms, on()
		}
		if on() {
			cfg.Late = netem.Late{Share: 0.2, Delay: 5 * ms}
		}
		if on() {
			cfg.Duplicate = 0.1
		}
		if on() {
			cfg.Corrupt, cfg.CorruptBits = 0.1, 3
		}
		if on() {
			cfg.Rate = 50_000_000
		}
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { followLink(t, seed, cfg, rng) })
	}
}

func followLink(t *testing.T, seed uint64, cfg netem.Config, rng *rand.Rand) {
	s := newSimulation(t)
	rt := s.route(seed, cfg, netem.Config{})
	link, err := netem.NewLink(cfg, netem.DeriveSeed(seed, 0, netem.Up))
	if err != nil {
		t.Fatal(err)
	}
	var want []sentDatagram
	next := 0
	for range 300 {
		s.advance(s.now + time.Duration(rng.Int64N(int64(ms))))
		n, size := 1+rng.IntN(20), 4+rng.IntN(1000)
		for i := range n {
			fate := link.Transmit(s.now, size)
			for _, c := range fate.Delivered() {
				data := []byte(number(next+i, size))
				c.Damage(data)
				want = append(want, sentDatagram{0, netem.Up, c.At, string(data)})
			}
		}
		s.offer(rt, netem.Up, numbered(next, n, size))
		next += n
	}
	s.advance(s.now + time.Hour)
	slices.SortStableFunc(want, func(a, b sentDatagram) int { return int(a.at - b.at) })
	if len(s.sent) != len(want) {
		t.Fatalf("%d sent, want %d", len(s.sent), len(want))
	}
	for i := range want {
		if s.sent[i] != want[i] {
			t.Fatalf("datagram %d at %v, want %v; same bytes: %v", i, s.sent[i].at, want[i].at, s.sent[i].data == want[i].data)
		}
	}
	ls, st := link.Stats(), rt.flows[netem.Up].stats()
	if st.Received != ls.Offered || st.Sent != ls.Delivered || st.Late != ls.Late || st.Corrupted != ls.Corrupted || st.Dropped.Drops != ls.Dropped {
		t.Errorf("route %+v, link %+v", st, ls)
	}
}

func TestRoutesHaveTheirOwnStreams(t *testing.T) {
	cfg, _ := netem.Profile("random")
	alone := newSimulation(t)
	rt := alone.route(42, cfg, cfg)
	for i := range 500 {
		alone.offer(rt, netem.Up, numbered(i, 1, 100))
		alone.advance(alone.now + ms)
	}
	alone.advance(time.Hour)

	beside := newSimulation(t)
	first, second := beside.route(42, cfg, cfg), beside.route(42, cfg, cfg)
	for i := range 500 {
		beside.offer(first, netem.Up, numbered(i, 1, 100))
		beside.offer(second, netem.Up, numbered(i, 3, 50))
		beside.offer(second, netem.Down, numbered(i, 2, 50))
		beside.advance(beside.now + ms)
	}
	beside.advance(time.Hour)
	var own []sentDatagram
	for _, d := range beside.sent {
		if d.route == 0 {
			own = append(own, d)
		}
	}
	if !slices.Equal(own, alone.sent) {
		t.Error("a second client changes what befalls the first")
	}
	if first.flows[0].stats().Dropped.Loss == second.flows[0].stats().Dropped.Loss {
		t.Error("both routes lose the same")
	}
}

func TestOverflowIsCountedPerRoute(t *testing.T) {
	for _, tt := range []struct {
		name             string
		bytes, datagrams int
		total            int64
		want             uint64
	}{
		{"bytes", 10_000, 1000, 1 << 30, 10},
		{"datagrams", 1 << 20, 7, 1 << 30, 7},
		{"total", 1 << 20, 1000, 12_500, 12},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSimulation(t)
			s.limits.routeBytes, s.limits.routeDatagrams, s.limits.totalBytes = tt.bytes, tt.datagrams, tt.total
			slow := netem.Config{Delay: time.Second, Late: netem.Late{Share: 0.3, Delay: ms}}
			rt, other := s.route(1, slow, slow), s.route(1, netem.Config{}, netem.Config{})
			for i := range 10 {
				s.offer(rt, netem.Direction(i%2), numbered(i, 5, 1000))
			}
			up, down := rt.flows[0].stats(), rt.flows[1].stats()
			if got := up.Queued.Datagrams + down.Queued.Datagrams; got != tt.want {
				t.Errorf("%d held, want %d", got, tt.want)
			}
			if got := up.Dropped.Overflow.Datagrams + down.Dropped.Overflow.Datagrams; got != 50-tt.want {
				t.Errorf("%d overflowed, want %d", got, 50-tt.want)
			}
			if uint64(rt.peakDatagrams) != tt.want {
				t.Errorf("peak %d", rt.peakDatagrams)
			}
			s.offer(other, netem.Up, numbered(0, 100, 1000)) // needs no room
			s.advance(time.Minute)
			if len(s.sent) != 100+int(tt.want) {
				t.Errorf("%d sent", len(s.sent))
			}
			st := Stats{Up: up, Down: down}
			if err := st.Check(); err == nil {
				t.Error("Check is content with an overflow")
			}
		})
	}
}

// From a delay to none, what comes later must not overtake what is held.
func TestChangeAtRunTimeKeepsOrder(t *testing.T) {
	s := newSimulation(t)
	rt := s.route(1, netem.Config{Delay: 10 * ms}, netem.Config{})
	perfect := [2]netem.Config{}
	for i := range 30 {
		if i == 10 {
			if err := rt.setImpairment(s.now, perfect); err != nil {
				t.Fatal(err)
			}
		}
		s.offer(rt, netem.Up, numbered(i, 1, 10))
		s.advance(s.now + ms)
	}
	s.advance(time.Hour)
	for i, d := range s.sent {
		if d.data != number(i, 10) {
			t.Fatalf("datagram %d left at place %d", binary.BigEndian.Uint32([]byte(d.data)), i)
		}
	}
	if last := s.sent[29]; last.at != 29*ms || len(s.sent) != 30 {
		t.Errorf("%d sent, the last at %v", len(s.sent), last.at)
	}
}

func TestHeldUntilSentKeepsOrder(t *testing.T) {
	s := newSimulation(t)
	rt := s.route(1, netem.Config{Delay: ms}, netem.Config{})
	s.offer(rt, netem.Up, numbered(0, 1, 10))
	if err := rt.setImpairment(0, [2]netem.Config{}); err != nil {
		t.Fatal(err)
	}
	// The release loop has taken the first but not sent it yet.
	s.now = ms
	due := s.queue.due(s.now, make([]held, 0, 8))
	s.offer(rt, netem.Up, numbered(1, 1, 10))
	if len(s.sent) != 0 || s.queue.sched.Len() != 1 {
		t.Fatal("the second did not wait for the first")
	}
	var o outbox
	o.take(due[0])
	s.send(due[0].flow, &o)
	s.woken = s.now
	s.advance(s.now)
	s.offer(rt, netem.Up, numbered(2, 1, 10)) // nothing is held: at once
	if len(s.sent) != 3 || s.sent[1].data != number(1, 10) || s.sent[2].data != number(2, 10) {
		t.Errorf("sent %+v", s.sent)
	}
}

func TestFailedSendsAreCounted(t *testing.T) {
	s := newSimulation(t)
	rt := s.route(1, netem.Config{}, netem.Config{Delay: ms})
	s.refuse = func(n int) int { return n - 3 }
	s.offer(rt, netem.Up, numbered(0, 10, 100))
	s.offer(rt, netem.Down, numbered(0, 10, 100))
	s.advance(ms)
	for d := range rt.flows {
		st := rt.flows[d].stats()
		if (st.Sent != netem.Count{Datagrams: 7, Bytes: 700}) || (st.Dropped.Failed != netem.Count{Datagrams: 3, Bytes: 300}) {
			t.Errorf("%v: %+v", netem.Direction(d), st)
		}
	}
}

func TestClosedQueueDropsAndReleases(t *testing.T) {
	before := bufpool.Shared().Outstanding()
	s := newSimulation(t)
	rt := s.route(1, netem.Config{Delay: ms}, netem.Config{})
	s.offer(rt, netem.Up, numbered(0, 10, 100))
	for _, h := range s.queue.close() {
		h.flow.drop(h)
	}
	s.offer(rt, netem.Up, numbered(0, 5, 100))
	st := rt.flows[netem.Up].stats()
	if st.Dropped.Closed.Datagrams != 15 || st.Queued.Datagrams != 0 {
		t.Errorf("%+v", st)
	}
	rt.flows[netem.Down].turnAway(&udpio.Train{Buf: make([]byte, 250), SegSize: 100})
	if st := rt.flows[netem.Down].stats(); !st.Balanced() || (st.Received != netem.Count{Datagrams: 3, Bytes: 250}) {
		t.Errorf("%+v", st)
	}
	if n := bufpool.Shared().Outstanding(); n != before {
		t.Errorf("%d buffers not released", n-before)
	}
}

func TestQueueAsksForWakeUps(t *testing.T) {
	var wakes []time.Duration
	q := newQueue(func(at time.Duration) { wakes = append(wakes, at) })
	push := func(at time.Duration) { q.push(at, held{}) }
	push(10)
	push(20) // later: no need
	push(5)
	q.due(5, make([]held, 0, 8))
	push(1) // the loop is awake and will look again
	if got := q.due(5, make([]held, 0, 8)); len(got) != 1 {
		t.Errorf("%d due", len(got))
	}
	q.rest()
	push(11)
	push(9)
	if want := []time.Duration{10, 5, 10, 9}; !slices.Equal(wakes, want) {
		t.Errorf("wake-ups %v, want %v", wakes, want)
	}
}

func TestAdmitDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("sync.Pool drops buffers at random under the race detector")
	}
	for name, cfg := range map[string]netem.Config{
		"perfect": {},
		"delay":   {Delay: ms, Loss: 0.1, Duplicate: 0.1, Late: netem.Late{Share: 0.1, Delay: 2 * ms}},
	} {
		s := newSimulation(t)
		rt := s.route(1, cfg, netem.Config{})
		f, in := &rt.flows[netem.Up], numbered(0, 10, 1200)
		var o outbox
		buf := make([]held, 0, 64)
		step := func() {
			s.now += ms
			f.admit(s.now, &in, &o)
			f.settle(&o, o.datagrams, nil)
			o.reset()
			for _, h := range s.queue.due(s.now, buf) {
				o.take(h)
			}
			f.settle(&o, o.datagrams, nil)
			o.reset()
		}
		for range 100 {
			step()
		}
		if n := testing.AllocsPerRun(500, step); n >= 1 {
			t.Errorf("%s: %v allocations per train", name, n)
		}
	}
}

func BenchmarkAdmit(b *testing.B) {
	random, _ := netem.Profile("random")
	for _, bb := range []struct {
		name string
		cfg  netem.Config
		n    int
	}{
		{"profile=none/train=1", netem.Config{}, 1},
		{"profile=none/train=40", netem.Config{}, 40},
		{"profile=random/train=1", random, 1},
		{"profile=random/train=40", random, 40},
	} {
		b.Run(bb.name, func(b *testing.B) {
			var l limits
			l.routeBytes, l.routeDatagrams, l.totalBytes = DefaultRouteBytes, DefaultRouteDatagrams, DefaultTotalBytes
			q := newQueue(func(time.Duration) {})
			rt, err := newRoute(0, netip.AddrPort{}, 1, bb.cfg, bb.cfg, &l, q)
			if err != nil {
				b.Fatal(err)
			}
			f, in := &rt.flows[netem.Up], udpio.Train{Buf: bytes.Repeat([]byte("x"), 1200*bb.n), SegSize: 1200}
			var o outbox
			buf := make([]held, 0, 512)
			var now time.Duration
			b.ReportAllocs()
			for b.Loop() {
				now += 100 * time.Microsecond
				f.admit(now, &in, &o)
				for _, h := range q.due(now, buf) {
					o.take(h)
				}
				f.settle(&o, o.datagrams, nil)
				o.reset()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*bb.n), "ns/datagram")
		})
	}
}
