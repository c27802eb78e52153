package arq

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/openarkstudio/arknet-go/internal/wire"
	"github.com/openarkstudio/arknet-go/netem"
)

// Five messages a second over a path of 200 ms that loses a fifth: each gets
// its repair at once, no group waits to fill, and what is lost arrives sooner
// than a retransmission could bring it.
func TestRepairsAtALowRate(t *testing.T) {
	const oneWay = 100 * ms
	generous := fast
	generous.Budget = 200
	groups := ratio(FECBlock, 10, 30)
	groups.Budget, groups.GroupWait = 300, 2*ms
	type outcome struct {
		p50, p99 time.Duration
		sent     uint64
		pto      time.Duration
	}
	run := func(name string, cfg FECConfig) (o outcome) {
		s, client, server := newPair(t, netem.Config{Delay: oneWay, Loss: 0.2}, 42, func(cc, sc *Config) {
			cc.FEC, sc.FEC = cfg, cfg
		})
		var delays []time.Duration
		server.onMessage = func(m []byte) { delays = append(delays, s.now.sub(Time(binary.BigEndian.Uint64(m)))) }
		m := make([]byte, 128)
		var tick func()
		tick = func() {
			if client.c.State() == StateOpen {
				binary.BigEndian.PutUint64(m, uint64(s.now))
				client.send(m)
			}
			s.after(200*ms, tick)
		}
		s.after(0, tick)
		s.runFor(10 * time.Minute)
		if err := errors.Join(checkCoding(client.c), checkCoding(server.c)); err != nil {
			t.Error(err)
		}
		slices.Sort(delays)
		n := len(delays)
		st, at := client.c.Stats(), server.c.Stats()
		o = outcome{p50: delays[n/2], p99: delays[n*99/100], sent: st.Repairs.Sent, pto: client.c.rtt.pto(s.now)}
		t.Logf("%s: %d messages, p50 %v, p99 %v, overhead %.0f %%, %d repairs sent, %d used, %d of no use, %d symbols sent again",
			name, n, o.p50, o.p99, 100*float64(client.sentBytes)/float64(n*len(m))-100,
			o.sent, at.Repairs.Used, at.Repairs.Useless+at.Repairs.Late, st.Retransmitted)
		return o
	}
	off := run("off", FECConfig{})
	if o := run("balanced", balanced); o.sent < 2600 || o.p99 > off.p99/2 {
		t.Errorf("balanced: %d repairs for 3,000 messages, p99 %v, %v without", o.sent, o.p99, off.p99)
	}
	if o := run("fast with a budget of 200 %", generous); o.p99-oneWay > o.pto {
		t.Errorf("fast: p99 %v beyond the path's delay, a probe leaves after %v", o.p99-oneWay, o.pto)
	}
	// A partial group is closed after its time and not a bit later.
	if o := run("groups of 10+30", groups); o.p99 > oneWay+groups.GroupWait+ms {
		t.Errorf("groups: p99 %v", o.p99)
	}
}

// Half an hour of jitter, reordering, loss and duplicates grows nothing, and an
// idle session afterwards keeps nothing for coding.
func TestMemoryOnABadPath(t *testing.T) {
	for _, cfg := range []FECConfig{balanced, block(FECFixed), {}} {
		t.Run(fmt.Sprint("policy ", cfg.Policy, " scheme ", cfg.Scheme), func(t *testing.T) {
			heavy(t, cfg.Policy != FECAdaptive)
			bad := netem.Config{
				Delay: 100 * ms, Jitter: 200 * ms, JitterReorders: true, Loss: 0.05, Duplicate: 0.02,
				Late: netem.Late{Share: 0.25, Delay: 100 * ms},
			}
			shared := &budget{limit: 2 << 20}
			s, client, server := newPair(t, bad, 7, func(cc, sc *Config) {
				cc.FEC, sc.FEC = cfg, cfg
				cc.CodingMemory, sc.CodingMemory = shared, shared
				// The jitter looks like a queue to what goes by delays.
				cc.Congestion, cc.MaxRate = FixedRate{}, 500_000
			})
			received := 0
			server.onMessage = func([]byte) { received++ }
			m, sent := make([]byte, 1000), 0
			active := true
			var tick func()
			tick = func() {
				if client.c.State() == StateOpen && active {
					client.send(m)
					sent++
				}
				s.after(40*ms, tick)
			}
			s.after(0, tick)
			heap := func() int64 {
				var st runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&st)
				return int64(st.HeapAlloc)
			}
			s.runFor(5 * time.Minute)
			early, peak := heap(), client.c.Stats().Repairs.RetainedPeakBytes+server.c.Stats().Repairs.RetainedPeakBytes
			for range 25 {
				s.runFor(time.Minute)
				for _, c := range []*Conn{client.c, server.c} {
					if err := errors.Join(checkConn(c), checkCoding(c)); err != nil {
						t.Fatalf("after %v: %v", time.Duration(s.now), err)
					}
				}
			}
			if grown := heap() - early; grown > 256<<10 {
				t.Errorf("the heap grew by %d bytes in 25 minutes", grown)
			}
			late := client.c.Stats().Repairs.RetainedPeakBytes + server.c.Stats().Repairs.RetainedPeakBytes
			if late > peak*5/4+20_000 {
				t.Errorf("%d bytes retained at most after 5 minutes, %d after 30", peak, late)
			}
			active = false
			s.runFor(time.Minute)
			if received != sent {
				t.Errorf("%d messages received of %d", received, sent)
			}
			if n := client.c.retainedBytes() + server.c.retainedBytes(); n != 0 || shared.held != 0 {
				t.Errorf("%d bytes are retained and %d reserved a minute later", n, shared.held)
			}
		})
	}
}

// Two seconds in which everything is lost, in mid-flow: the flow comes back at
// its former rate and the coder with it.
func TestCodingAcrossAnOutage(t *testing.T) {
	for _, cfg := range []FECConfig{balanced, fast, block(FECFixed)} {
		s := newSim(t)
		path := with(profile(t, "random"), func(c *netem.Config) {
			c.Outages = []netem.Outage{{Start: 3 * time.Second, Duration: 2 * time.Second}}
		})
		up, down := testLinks(t, path, 42)
		l := newLoop(s, 1, 1024, 16, cfg, up, down)
		s.runFor(time.Second)
		l.look()
		s.runFor(2 * time.Second)
		before, _, overhead := l.look()
		s.runFor(2 * time.Second)
		l.look()
		s.runFor(1500 * ms)
		again, _, _ := l.look()
		if again < before/3 {
			t.Errorf("%d round trips in the 1.5 s after the outage, %d in the 2 s before", again, before)
		}
		s.runFor(2 * time.Second)
		after, _, later := l.look()
		if after < before*8/10 || later > overhead*12/10 {
			t.Errorf("%d round trips at %.1f %% before the outage, %d at %.1f %% long after", before, 100*overhead, after, 100*later)
		}
		for _, c := range []*Conn{l.client.c, l.server.c} {
			if err := errors.Join(checkConn(c), checkCoding(c)); err != nil {
				t.Error(err)
			}
		}
	}
}

// After a minute of silence the first burst is protected as the last one was:
// a datagram of it that is lost is restored, not sent again.
func TestFirstBurstAfterASilenceIsProtected(t *testing.T) {
	for _, cfg := range []FECConfig{ratio(FECSliding, 4, 1), ratio(FECBlock, 4, 1)} {
		s, client, server := newPair(t, path20, 1, func(cc, sc *Config) { cc.FEC, sc.FEC = cfg, cfg })
		received := 0
		server.onMessage = func([]byte) { received++ }
		s.runFor(time.Second)
		for round := range 4 {
			lost := 0
			client.tap = func([]byte) bool {
				lost++
				return lost != 2 // the second of the burst
			}
			before, again := server.c.Stats().Repairs.Restored, client.c.Stats().Retransmitted
			for range 4 {
				if _, err := client.c.Send(s.now, make([]byte, 1000)); err != nil {
					t.Fatal(err)
				}
			}
			client.turn()
			s.runFor(11 * ms)
			if received != 4*(round+1) {
				t.Errorf("scheme %d, round %d: %d messages one way later", cfg.Scheme, round, received)
			}
			s.runFor(time.Minute)
			if n := server.c.Stats().Repairs.Restored - before; n != 1 || client.c.Stats().Retransmitted != again {
				t.Errorf("scheme %d, round %d: %d symbols restored, %d sent again", cfg.Scheme, round, n, client.c.Stats().Retransmitted-again)
			}
			if n := client.c.retainedBytes() + server.c.retainedBytes(); n != 0 {
				t.Errorf("%d bytes are kept after a minute", n)
			}
		}
	}
}

// The path's delay jumps from 10 to 150 ms and back, under loss.
func TestCodingAcrossLagSteps(t *testing.T) {
	for _, cfg := range []FECConfig{balanced, block(FECAdaptive)} {
		s := newSim(t)
		path := netem.Config{Delay: 10 * ms, Loss: 0.05}
		up, down := testLinks(t, path, 42)
		l := newLoop(s, 1, 1024, 16, cfg, up, down)
		s.runFor(2 * time.Second)
		for _, step := range []struct {
			delay    time.Duration
			least    int // round trips in 5 s
			overhead float64
		}{{10 * ms, 2900, 0.4}, {150 * ms, 110, 0.4}, {10 * ms, 2600, 0.4}, {150 * ms, 110, 0.4}} {
			path.Delay = step.delay
			for _, link := range []*netem.Link{up, down} {
				if err := link.SetConfig(time.Duration(s.now), path); err != nil {
					t.Fatal(err)
				}
			}
			l.look()
			s.runFor(5 * time.Second)
			trips, p99, overhead := l.look()
			t.Logf("delay %v: %d round trips, p99 %v, overhead %.1f %%", step.delay, trips, p99, 100*overhead)
			if trips < step.least || overhead > step.overhead {
				t.Errorf("delay %v: %d round trips in 5 s at %.1f %%", step.delay, trips, 100*overhead)
			}
			for _, c := range []*Conn{l.client.c, l.server.c} {
				if err := errors.Join(checkConn(c), checkCoding(c)); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// What one side counts as sent left, what the other counts as received came,
// and every repair received is accounted for.
func TestCountersOfRepairsAddUp(t *testing.T) {
	for _, cfg := range []FECConfig{balanced, fast, sliding(FECFixed), block(FECAdaptive), {Retain: 512 << 10}} {
		s := newSim(t)
		up, down := testLinks(t, profile(t, "random"), 42)
		cc, sc := testConfig(1), testConfig(2)
		var sent, received [2]uint64
		for i, c := range []*Config{&cc, &sc} {
			c.FEC, c.Retransmit = cfg, RetransmitCoded
			c.Trace = func(e TraceEvent) {
				switch {
				case e.Payload != wire.PayloadRepair:
				case e.Kind == TraceSent:
					sent[i]++
				case e.Kind == TraceReceived:
					received[i]++
				}
			}
		}
		l := startLoop(s, 1024, 16, cc, sc, up, down)
		s.runFor(3 * time.Second)
		l.client.onMessage = nil
		s.runFor(time.Second)
		for i, c := range []*Conn{l.client.c, l.server.c} {
			st := c.Stats().Repairs
			if st.Sent+st.SentCoded != sent[i] || st.Received != received[i] {
				t.Errorf("%d repairs left and %d came, counted are %d, %d and %d", sent[i], received[i], st.Sent, st.SentCoded, st.Received)
			}
			if share := float64(received[i]) / float64(sent[1-i]); share < 0.9 || share > 0.99 {
				t.Errorf("%.0f %% of the repairs came over a path that loses 5 %%", 100*share)
			}
			if coded := cfg.Policy == FECOff; coded != (st.SentCoded > 0) || coded != (st.Sent == 0) {
				t.Errorf("policy %d: %d repairs ahead of losses, %d with retransmissions", cfg.Policy, st.Sent, st.SentCoded)
			}
			if st.Restored < st.Used || st.Used == 0 || st.BytesSent < 100*sent[i] {
				t.Errorf("%d repairs restored %d symbols, %d bytes were sent", st.Used, st.Restored, st.BytesSent)
			}
			if err := checkCoding(c); err != nil {
				t.Error(err)
			}
		}
	}
}

// Sessions that share little memory for coding stay within it, go on without
// where it is short, and give all of it back.
func TestMemoryOfCodingIsShared(t *testing.T) {
	shared := &budget{limit: 192 << 10}
	s := newSim(t)
	var loops []*loop
	for i := range uint32(4) {
		up, down := testLinks(t, profile(t, "random"), uint64(i))
		cc, sc := testConfig(2*i+1), testConfig(2*i+2)
		cc.FEC, sc.FEC = balanced, balanced
		cc.CodingMemory, sc.CodingMemory = shared, shared
		loops = append(loops, startLoop(s, 1024, 16, cc, sc, up, down))
	}
	bound := uint64(0)
	for range 20 {
		s.runFor(100 * ms)
		retained := 0
		for _, l := range loops {
			for _, c := range []*Conn{l.client.c, l.server.c} {
				if c == nil {
					continue // not yet made
				}
				if err := checkCoding(c); err != nil {
					t.Fatal(err)
				}
				retained += c.retainedBytes()
			}
		}
		if retained > shared.limit || shared.held > shared.limit {
			t.Fatalf("%d bytes are retained and %d reserved of %d", retained, shared.held, shared.limit)
		}
	}
	for i, l := range loops {
		trips, _, _ := l.look()
		if trips < 600 {
			t.Errorf("loop %d: %d round trips in 2 s", i, trips)
		}
		bound += l.client.c.Stats().Repairs.MemoryBound + l.server.c.Stats().Repairs.MemoryBound
	}
	if bound == 0 {
		t.Error("nobody ran out of memory")
	}
	// One side is cut off, one aborts, one closes, one vanishes.
	s.cut(loops[0].client)
	loops[1].client.c.Abort(s.now, 1, "enough")
	loops[2].server.c.Close(s.now)
	loops[3].client.c.Vanish(s.now)
	for _, l := range loops {
		l.client.onMessage, l.server.onMessage = nil, nil
		l.client.turn()
		l.server.turn()
	}
	s.runFor(2 * time.Minute)
	for i, l := range loops {
		if l.client.c.State() != StateDone || l.server.c.State() != StateDone {
			t.Errorf("loop %d: states %d and %d", i, l.client.c.State(), l.server.c.State())
		}
	}
	if shared.held != 0 {
		t.Errorf("%d bytes are still reserved", shared.held)
	}
}
