package arq

import "time"

// lossGuard tells losses that come with the path from losses that this flow
// makes, where no queue tells: at a policer, or before a queue shorter than the
// delay that counts as none. It sends less than what gets through, and evenly,
// for a few round trips, and looks whether the losses go away. A flow that its
// window does not hold back can only have lost its bursts: that one is sent
// evenly, and no less.
type lossGuard struct {
	guardWindows
	base int64 // share that is lost whatever we do, in 1/1000

	phase     guardPhase
	settled   Time          // from when on the test shows
	before    int64         // share that gave rise to the test
	restore   int64         // window before the test
	delivered int64         // bytes per round trip before the test
	cap       int64         // window of the test, 0 = none
	retry     Time          // no test before
	rest      time.Duration // to the next one after a test that found nothing
	memory    time.Duration // how long the last finding stands
	gentle    Time          // until then growth is gentle, and packets leave evenly
	smooth    bool          // packets leave evenly
}

type guardPhase uint8

const (
	guardWatching guardPhase = iota
	guardSettling
	guardTesting
)

const (
	guardWindow  = 100 * packetSize // bytes judged at a time
	guardInitial = 60               // base before anything is known, of 1000
	guardShare   = 30               // least rise above the base that is tested, of 1000
	guardMost    = 400              // largest base
	guardClump   = 32 * packetSize  // so much lost at one time is the end of a burst
	guardGain    = 16               // windows over which the base averages
	guardCap     = 85               // percent of what gets through, during a test
	guardCut     = 95               // the same, once it is known to be the limit
	guardChance  = 70               // percent of the spread that a finding about bursts exceeds
	guardGrowth  = 64               // gentle growth: window/64 and a packet per round trip

	// A finding stands for guardMemory at first and up to guardLongest when it
	// is found again and again; tests that find nothing rest in the same way.
	guardMemory  = 10 * time.Second
	guardRest    = 1 * time.Second
	guardLongest = 60 * time.Second
)

// guardLosses runs the guard at an ack. It reports whether the window has to
// stand still for a test.
func (c *Copa) guardLosses(now Time, s AckSample) bool {
	g := &c.guard
	g.acked += int64(s.Bytes)
	if s.Backlogged && s.InFlight+s.Bytes+2*packetSize > c.Window() {
		g.waited += int64(s.Bytes)
	}
	g.lose(s.LateDue, -int64(s.Late))
	g.smooth = g.phase != guardWatching || now < g.gentle
	patience := guardMemory
	if g.cap > 0 {
		patience = 20*s.Smoothed + 100*time.Millisecond
	}
	switch {
	case g.phase == guardSettling:
		if now >= g.settled {
			g.phase, g.guardWindows = guardTesting, newGuardWindows(now)
		}
	case g.phase == guardTesting && now.sub(g.settled) > patience:
		g.end(now) // too little was sent to tell
		g.retry = now.add(guardRest)
		c.window = max(c.window, g.restore)
	case g.lost+g.acked >= guardWindow && now.sub(g.since) >= max(s.Smoothed, 2*lossToleranceCeiling):
		c.guardJudge(now, s)
	}
	return g.cap > 0
}

// guardJudge looks at a window that is complete.
func (c *Copa) guardJudge(now Time, s AckSample) {
	g := &c.guard
	share, packets, waited := g.shift(now)
	switch {
	case packets == 0:
	case g.phase == guardTesting:
		c.guardVerdict(now, s, share, packets)
	case now >= g.retry && share > g.base+max(guardShare, guardSpread(g.base, packets)):
		c.guardStart(now, share, waited)
	default:
		g.base = min(g.base+(share-g.base)/guardGain, guardMost)
	}
}

// guardStart starts a test: of the rate, or of bursts alone.
func (c *Copa) guardStart(now Time, share int64, rate bool) {
	g := &c.guard
	g.phase, g.smooth = guardSettling, true
	g.settled = now.add(2*c.backstop.smoothed + lossToleranceCeiling)
	g.before, g.restore, g.delivered = share, c.window, c.backstop.most()
	if rate {
		g.cap = max(g.delivered*guardCap/100, minimumWindow)
	}
}

// guardSpread is five standard deviations of the share of so many packets that
// are lost independently: chance alone gives no rise to a test.
func guardSpread(share, packets int64) int64 {
	return 5 * int64(isqrt(uint64(share*(1000-share)/packets)))
}

// guardVerdict ends a test: were the losses ours?
func (c *Copa) guardVerdict(now Time, s AckSample, share, packets int64) {
	g := &c.guard
	ours := max(share-g.base, 0)*2 < g.before-g.base
	capped := g.cap > 0
	if !capped && g.before-share < guardSpread((share+g.before)/2, packets)*guardChance/100 {
		// A window that stood out by chance gave rise to the test, and the next
		// one does not: that says nothing, and a wrong finding costs a flow that is
		// not held back a part of its rate.
		ours = false
	}
	g.end(now)
	g.base = min(share, guardMost)
	switch {
	case !ours:
		g.rest = min(2*max(g.rest, guardRest), guardLongest)
		g.retry = now.add(g.rest)
		c.window = max(c.window, g.restore)
		return
	case capped:
		c.window = max(min(c.window, g.delivered*guardCut/100), minimumWindow)
		c.startup, c.velocity, c.turns = false, 1, 0
	}
	g.gentle = now.add(max(g.memory, guardMemory))
	g.memory = min(2*max(g.memory, guardMemory), guardLongest)
	g.retry, g.rest = now.add(2*s.Smoothed), guardRest
}

// end ends a test.
func (g *lossGuard) end(now Time) {
	g.phase, g.cap, g.guardWindows = guardWatching, 0, newGuardWindows(now)
}

// guardWindows counts what was lost and acked, of packets whose acks came or were
// due in a window of time. A window is judged when the next one is over: by then
// its losses are declared, and packets that were only late have come.
type guardWindows struct {
	lost, acked, waited             int64
	since                           Time
	lastLost, lastAcked, lastWaited int64
	lastSince                       Time
}

func newGuardWindows(now Time) guardWindows { return guardWindows{since: now, lastSince: now} }

// lose counts a loss in the window in which the ack was due; a negative one is
// taken back.
func (g *guardWindows) lose(due Time, size int64) {
	switch {
	case due >= g.since:
		g.lost = max(g.lost+size, 0)
	case due >= g.lastSince:
		g.lastLost = max(g.lastLost+size, 0)
	}
}

// shift starts a new window and returns the share lost in the one before last,
// in 1/1000, of how many packets, and whether data waited for the window then.
func (g *guardWindows) shift(now Time) (share, packets int64, waited bool) {
	if total := g.lastLost + g.lastAcked; g.lastSince < g.since && total > 0 {
		share, packets = g.lastLost*1000/total, max(total/packetSize, 1)
		waited = g.lastWaited*2 >= g.lastAcked
	}
	*g = guardWindows{
		since: now, lastSince: g.since, lastLost: g.lost, lastAcked: g.acked, lastWaited: g.waited,
	}
	return share, packets, waited
}

// backstop limits the window to little more than what gets through while a
// large share of the bytes is lost, whatever the cause: a bottleneck without a
// queue shows no delay.
type backstop struct {
	lost, acked int64 // in the running window
	share       int64 // lost share of the last full window, in 1/1000
	rounds      [10]int64
	round       int
	roundBytes  int64
	roundAt     Time
	smoothed    time.Duration
	limit       int64 // 0 = none
}

const (
	backstopWindow   = 200 * packetSize
	backstopShare    = 120 // of 1000
	backstopHeadroom = 8 * packetSize
	backstopRound    = 5 * time.Millisecond
)

// lossy reports whether a large share of the bytes was lost of late.
func (b *backstop) lossy() bool { return b.share > backstopShare }

func (b *backstop) onAck(now Time, s AckSample) {
	b.smoothed = s.Smoothed
	b.acked += int64(s.Bytes)
	b.lost = max(b.lost-int64(s.Late), 0)
	b.roundBytes += int64(s.Bytes)
	elapsed := now.sub(b.roundAt)
	if elapsed < max(s.Smoothed, backstopRound) {
		return
	}
	b.rounds[b.round%len(b.rounds)] = b.roundBytes * s.Smoothed.Microseconds() / max(elapsed.Microseconds(), 1)
	b.round++
	b.roundBytes, b.roundAt = 0, now
	if total := b.lost + b.acked; total > backstopWindow {
		b.share = b.lost * 1000 / total
		b.lost, b.acked = 0, 0
	}
	b.limit = 0
	if b.lossy() {
		b.limit = b.most()*5/4 + backstopHeadroom
	}
}

// most is the largest of the last rounds: bytes that got through per round trip.
func (b *backstop) most() int64 {
	most := int64(0)
	for _, r := range b.rounds {
		most = max(most, r)
	}
	return most
}
