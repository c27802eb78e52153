package arq

import (
	"testing"
	"time"
)

// ackFlow feeds a controller with round trips of a flow that is always held
// back by its window: it sends a window, and the path takes its share.
type ackFlow struct {
	cc    Controller
	now   Time
	acked uint64
	min   time.Duration
	due   int // losses, in 1/1000
}

func newAckFlow(cc Controller) *ackFlow {
	return &ackFlow{cc: cc, now: Time(time.Second), min: 20 * ms}
}

// round lets one round trip pass in which lost of 1000 packets are lost, and the
// queue adds so much to every round trip.
func (f *ackFlow) round(queue time.Duration, lost int, idle bool) {
	rtt := f.min + queue
	packets := max(f.cc.Window()/packetSize, 1)
	step := rtt / time.Duration(packets)
	for range packets {
		f.now = f.now.add(step)
		inFlight := f.cc.Window() - packetSize
		if idle {
			inFlight = packetSize
		}
		f.cc.OnSent(f.now, packetSize, inFlight)
		// The losses are spread evenly over the packets of all rounds.
		if f.due += lost; f.due >= 1000 {
			f.due -= 1000
			f.cc.OnLoss(f.now, f.now, packetSize)
			continue
		}
		f.acked += packetSize
		f.cc.OnAck(f.now, AckSample{
			Bytes: packetSize, RTT: rtt, MinRTT: f.min, Smoothed: rtt,
			InFlight: inFlight, Acked: f.acked, Backlogged: !idle,
		})
	}
}

func (f *ackFlow) rounds(n int, queue time.Duration, lost int) {
	for range n {
		f.round(queue, lost, false)
	}
}

func TestCopaStartsFast(t *testing.T) {
	c := NewCopa()
	f := newAckFlow(c)
	if c.Window() != initialWindow {
		t.Fatalf("first window %d", c.Window())
	}
	f.rounds(3, 0, 0)
	if w := c.Window(); w < 6*initialWindow || w > 8*initialWindow {
		t.Errorf("window %d after three round trips, want it doubled each time", w)
	}
	f.rounds(1, 5*ms, 0)
	if c.startup {
		t.Error("still doubling with a queue of 5 ms")
	}
}

// The window of an application that does not use it stays where it is.
func TestCopaGrowsOnlyWhileUsed(t *testing.T) {
	for _, startup := range []bool{true, false} {
		c := NewCopa()
		f := newAckFlow(c)
		if !startup {
			f.rounds(1, 5*ms, 0)
		}
		before := c.Window()
		for range 50 {
			f.round(0, 0, true)
		}
		// The round trip in which the use ends may still count.
		if w := c.Window(); w > before+3*packetSize {
			t.Errorf("startup %v: window %d grew to %d unused", startup, before, w)
		}
	}
}

// The target is two packets per queueing delay: the window settles where its
// rate meets that.
func TestCopaTarget(t *testing.T) {
	for _, queue := range []time.Duration{1600 * us, 3 * ms, 10 * ms} {
		c := NewCopa()
		f := newAckFlow(c)
		f.rounds(1, 40*ms, 0)
		f.rounds(600, queue, 0)
		// window / rtt = 2 packets / queue
		want := float64(2*packetSize) * float64(f.min+queue) / float64(queue)
		if w := float64(c.Window()); w < max(want*0.6, minimumWindow) || w > want*1.6+4*packetSize {
			t.Errorf("queue %v: window %.0f, want %.0f", queue, w, want)
		}
	}
}

// A queue of up to 1 ms is none, one of up to a 14th of the least round trip, and
// one of up to half of what the path reorders by.
func TestCopaQueueFloor(t *testing.T) {
	for _, tt := range []struct {
		queue, reordering time.Duration
		min               time.Duration
		grows             bool
	}{
		{ms, 0, 5 * ms, true},
		{1100 * us, 0, 5 * ms, false},
		{1400 * us, 0, 20 * ms, true},
		{1500 * us, 0, 20 * ms, false},
		{2 * ms, 4 * ms, 20 * ms, true},
		{2 * ms, 3 * ms, 20 * ms, false},
		{9 * ms, 10 * ms, 20 * ms, false},
	} {
		c := NewCopa()
		f := newAckFlow(c)
		f.min = tt.min
		c.startup, c.window = false, 200*packetSize
		before := c.Window()
		for range 100 {
			f.now = f.now.add(ms)
			f.acked += packetSize
			c.OnSent(f.now, packetSize, c.Window())
			c.OnAck(f.now, AckSample{
				Bytes: packetSize, RTT: f.min + tt.queue, MinRTT: f.min, Smoothed: f.min,
				InFlight: c.Window(), Acked: f.acked, Reordering: tt.reordering,
			})
		}
		if grows := c.Window() > before; grows != tt.grows {
			t.Errorf("queue %v of %v, reordering %v: grows %v, want %v", tt.queue, tt.min, tt.reordering, grows, tt.grows)
		}
	}
}

func TestCopaWindowIsBounded(t *testing.T) {
	c := NewCopa()
	f := newAckFlow(c)
	for range 20 {
		f.now = f.now.add(time.Second)
		f.acked += 1 << 28
		c.OnSent(f.now, 1<<28, 1<<30)
		c.OnAck(f.now, AckSample{
			Bytes: 1 << 28, RTT: f.min, MinRTT: f.min, Smoothed: f.min, InFlight: 1 << 30, Acked: f.acked,
		})
	}
	if c.Window() > maximumWindow {
		t.Errorf("window %d", c.Window())
	}
	for range 2000 {
		f.now = f.now.add(maxRTT)
		c.OnAck(f.now, AckSample{
			Bytes: 1 << 20, RTT: maxRTT, MinRTT: f.min, Smoothed: maxRTT, InFlight: 1 << 20, Acked: f.acked,
		})
		c.OnLoss(f.now, f.now, 1<<20)
	}
	if w := c.Window(); w < minimumWindow || w > maximumWindow {
		t.Errorf("window %d", w)
	}
}

// Losses that do not depend on what is sent are found out to be the path's: the
// window comes back, and the next test is far away.
func TestGuardLeavesRandomLossAlone(t *testing.T) {
	c := NewCopa()
	f := newAckFlow(c)
	f.rounds(2, 0, 0)
	c.startup = false
	tests, was := 0, guardWatching
	for range 300 {
		f.round(0, 200, false)
		if c.guard.phase != guardWatching && was == guardWatching {
			tests++
		}
		was = c.guard.phase
	}
	if tests > 2 || c.guard.gentle > f.now || c.Smooth() {
		t.Errorf("%d tests, gentle %v: random loss was taken for congestion", tests, c.guard.gentle > f.now)
	}
	if c.guard.base < 150 || c.guard.base > 250 {
		t.Errorf("base %d, 200 of 1000 are lost", c.guard.base)
	}
}

// policed drops what exceeds so many bytes per round trip.
func (f *ackFlow) policed(limit int) {
	w := f.cc.Window()
	f.round(0, max(0, (w-limit)*1000/w), false)
}

// Losses that go away when less is sent are ours: the window falls to what gets
// through, and bursts end.
func TestGuardFindsALimitWithoutAQueue(t *testing.T) {
	c := NewCopa()
	f := newAckFlow(c)
	const limit = 100 * packetSize
	sent, lost := 0, 0
	for i := range 400 {
		f.policed(limit)
		if i > 100 {
			sent += c.Window()
			lost += max(0, c.Window()-limit)
		}
	}
	if share := 100 * float64(lost) / float64(sent); share > 5 {
		t.Errorf("%.1f %% are lost in the long run", share)
	}
	if used := float64(sent-lost) / (300 * limit); used < 0.85 {
		t.Errorf("%.2f of the limit is used", used)
	}
	if !c.Smooth() {
		t.Error("bursts go on")
	}
}

// While much is lost the window itself follows what gets through, so that no
// stored-up window breaks out when losses pause.
func TestBackstopHoldsTheWindow(t *testing.T) {
	c := NewCopa()
	c.guard.retry = never // the backstop alone
	f := newAckFlow(c)
	for range 200 {
		f.policed(50 * packetSize)
	}
	if c.window > 90*packetSize {
		t.Errorf("window %d, 50 packets get through", c.window/packetSize)
	}
}

func TestGuardWindows(t *testing.T) {
	g := newGuardWindows(100)
	g.acked = 90 * packetSize
	g.lose(150, 10*packetSize)
	g.lose(50, 99*packetSize) // due before the first window
	if _, packets, _ := g.shift(200); packets != 0 {
		t.Error("a window is judged before it is there")
	}
	g.lose(190, 10*packetSize) // of the last window
	g.lose(150, -5*packetSize) // was only late
	g.lose(210, 7*packetSize)
	share, packets, _ := g.shift(300)
	if share != 15*1000/105 || packets != 105 {
		t.Errorf("%d of 1000 lost of %d packets", share, packets)
	}
	if g.lastLost != 7*packetSize {
		t.Errorf("%d bytes lost in the next window", g.lastLost)
	}
}

// Competitive mode takes a larger share while the queue never empties, and ends
// when it does.
func TestCopaCompetitiveMode(t *testing.T) {
	c := competitive()
	f := newAckFlow(c)
	f.rounds(2, 0, 0)
	f.rounds(40, 20*ms, 0)
	if !c.inComp || c.inverse <= copaInverse {
		t.Fatalf("competitive %v with 1/delta %d beside a standing queue", c.inComp, c.inverse)
	}
	high := c.inverse
	c.OnLoss(f.now.add(time.Second), f.now, packetSize)
	if c.inverse > high/2+1 {
		t.Errorf("1/delta %d after a loss, %d before", c.inverse, high)
	}
	f.rounds(10, 0, 0)
	if c.inComp || c.inverse != copaInverse {
		t.Errorf("competitive %v with 1/delta %d on an empty path", c.inComp, c.inverse)
	}
}

func TestNewReno(t *testing.T) {
	c := NewNewReno()
	f := newAckFlow(c)
	f.rounds(2, 0, 0)
	if w := c.Window(); w < 3*initialWindow || w > 4*initialWindow {
		t.Errorf("window %d after two round trips of slow start", w)
	}
	before := c.Window()
	c.OnSent(f.now, packetSize, before)
	c.OnLoss(f.now, f.now, packetSize)
	c.OnLoss(f.now, f.now, 20*packetSize) // of the same round trip
	if w := c.Window(); w != before/2 {
		t.Errorf("window %d after losses in one round trip, want half of %d", w, before)
	}
	f.rounds(2, 0, 0) // recovery, then a packet per round trip
	before = c.Window()
	f.rounds(10, 0, 0)
	if w := c.Window(); w < before+9*packetSize || w > before+11*packetSize {
		t.Errorf("window grew from %d to %d in ten round trips", before, w)
	}
	for range 50 {
		c.OnLoss(f.now, f.now, packetSize)
		f.rounds(1, 0, 0)
		f.rounds(1, 0, 0)
	}
	if c.Window() < minimumWindow {
		t.Errorf("window %d", c.Window())
	}
	before = c.Window()
	for range 20 {
		f.round(0, 0, true)
	}
	if c.Window() > before+packetSize {
		t.Errorf("window %d grew to %d unused", before, c.Window())
	}
}
