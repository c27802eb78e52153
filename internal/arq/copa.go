package arq

import "time"

// Copa is a delay-target controller after Arun and Balakrishnan, "Copa:
// Practical Delay-Based Congestion Control for the Internet" (NSDI 2018):
// the window approaches 1/delta packets per queueing delay. It keeps its rate
// under random loss, and a queue of a few milliseconds on a full link.
//
// It differs from the paper in these points: the window only grows while it is
// used; a standing queue of up to 1 ms counts as none, or of a 14th of the base
// round trip, or of half of what the path reorders by, since jitter of hosts and
// radio links looks like one; steps follow the size of the window; a guard finds limits that no queue shows; a backstop holds the window
// near what gets through while more than 12 % of the packets are lost; and the
// competitive mode, which mistakes its own kind for buffer fillers, is off unless
// asked for.
type Copa struct {
	// Competitive turns the paper's competitive mode on: beside buffer-filling
	// flows delta shrinks, and the queue grows.
	Competitive bool

	window    int64
	remainder int64 // of the last window step, in window-ths of a byte
	startup   bool
	velocity  int64
	direction int
	turns     int // round trips in this direction
	lastSize  int64
	lastTurn  Time
	inverse   int64 // 1/delta in packets

	standing slidingMin    // lowest rtt of the last smoothed/2
	floor    time.Duration // a standing queue below counts as none
	highest  slidingMin    // highest rtt of the last 4 smoothed, negated
	emptied  Time          // when the queue was last seen nearly empty
	lossAt   Time
	inComp   bool

	used     bool // half the window was in flight in this round
	roundEnd uint64

	backstop backstop
	guard    lossGuard
}

const (
	copaQueueFloor   = 1 * time.Millisecond
	copaFloorShare   = 14 // of min_rtt: a short queue counts as none on a long path
	copaStartupQueue = 8  // the startup goes on below min_rtt/8
	copaInverse      = 2  // delta = 0.5
	copaVelocity     = 32
	copaTurns        = 3 // round trips in one direction before the speed doubles
	copaEmptyRTTs    = 5 // round trips without an empty queue mean a competitor
)

// NewCopa returns a controller in its startup phase.
func NewCopa() *Copa {
	return &Copa{
		window: initialWindow, startup: true, velocity: 1, inverse: copaInverse,
		guard: lossGuard{base: guardInitial},
	}
}

// Window implements Controller.
func (c *Copa) Window() int {
	w := c.window
	if b := c.backstop.limit; b > 0 {
		w = min(w, b)
	}
	if t := c.guard.cap; t > 0 {
		w = min(w, t)
	}
	return int(max(w, minimumWindow))
}

// Paced implements Controller.
func (c *Copa) Paced() bool { return true }

// Smooth implements Controller: the path was found to drop what exceeds it at
// once, so bursts are lost even when the rate is right.
func (c *Copa) Smooth() bool { return c.guard.smooth }

// OnSent implements Controller.
func (c *Copa) OnSent(_ Time, _, inFlight int) {
	if int64(inFlight)*2 > c.window {
		c.used = true
	}
}

// OnLoss implements Controller: only the competitive mode reacts to a single
// loss; the backstop reacts to many.
func (c *Copa) OnLoss(now, due Time, size int) {
	c.backstop.lost += int64(size)
	c.guard.lose(due, int64(size))
	if size >= guardClump && c.guard.phase == guardWatching {
		// The end of a burst: what is sent again must not be the next one.
		c.guardStart(now, 1000, false)
	}
	if c.inComp && now > c.lossAt {
		c.lossAt = now.add(c.backstop.smoothed)
		c.inverse = max(copaInverse, c.inverse/2)
	}
}

// OnAck implements Controller.
func (c *Copa) OnAck(now Time, s AckSample) {
	c.backstop.onAck(now, s)
	if b := c.backstop.limit; b > 0 {
		// Not only for now: the queue that is not there lets the window itself
		// grow without end.
		c.window = min(c.window, max(b, minimumWindow))
	}
	if c.guardLosses(now, s) {
		return // a test holds the window still
	}
	c.standing.add(now, s.RTT, s.Smoothed/2)
	standing, _ := c.standing.get(now, s.Smoothed/2)
	c.floor = max(copaQueueFloor, s.MinRTT/copaFloorShare, s.Reordering/2)
	queue := max(standing-s.MinRTT, 0)
	c.highest.add(now, -s.RTT, 4*s.Smoothed)
	c.judgeCompetition(now, s, queue)

	used := c.used || int64(s.InFlight+s.Bytes)*2 > c.window
	if s.Acked >= c.roundEnd {
		c.roundEnd = s.Acked + uint64(s.InFlight)
		c.used = false
	}
	up := c.below(standing, queue)
	if c.startup {
		// A queue that jitter or a burst explains does not end it.
		if up || queue <= s.MinRTT/copaStartupQueue && !c.backstop.lossy() {
			if used {
				c.window = min(c.window+int64(s.Bytes), maximumWindow)
			}
			return
		}
		// The queue that is seen now is that of a round trip ago, when the window
		// was half as large.
		c.startup = false
		c.window = max(c.window/2, initialWindow)
	}
	if up && !used {
		return
	}
	c.step(now, s.Bytes, up)
	c.turn(now, s)
}

// below reports whether the rate window/standing is below the target rate of
// 1/delta packets per queueing delay.
func (c *Copa) below(standing, queue time.Duration) bool {
	if queue <= c.floor {
		return true
	}
	// window / standing < packets / queue, in microseconds against overflow.
	return c.window*queue.Microseconds() < c.inverse*packetSize*standing.Microseconds()
}

// step moves the window by velocity/delta packets per window acknowledged, within
// bounds that follow its size: at most a 32nd and 4 packets up; from a 32nd to an
// eighth down, or 8 packets. So speed gained in one direction does no harm after
// a turn, and the windows of flows on a fast link, which are large against the
// steps, still converge.
func (c *Copa) step(now Time, acked int, up bool) {
	perWindow := c.velocity * c.inverse * packetSize
	slow, fast := c.window/32, c.window/8
	switch {
	case up && now < c.guard.gentle:
		perWindow = min(perWindow, c.window/guardGrowth+packetSize)
	case up:
		perWindow = min(perWindow, slow+4*packetSize)
	default:
		perWindow = max(slow, min(perWindow, max(fast, 8*packetSize)))
	}
	n := perWindow*int64(acked) + c.remainder
	d := n / c.window
	c.remainder = n % c.window
	if up {
		c.window = min(c.window+d, maximumWindow)
	} else {
		c.window = max(c.window-d, minimumWindow)
	}
}

// turn doubles the velocity while the window keeps its direction, once per
// round trip, and resets it when the direction changes.
func (c *Copa) turn(now Time, s AckSample) {
	if now.sub(c.lastTurn) <= s.Smoothed {
		return
	}
	direction := 1
	if c.window < c.lastSize {
		direction = -1
	}
	if direction == c.direction {
		c.turns++
		if c.turns >= copaTurns {
			c.velocity = min(2*c.velocity, copaVelocity)
		}
	} else {
		c.turns, c.velocity = 0, 1
	}
	if c.inComp {
		c.velocity = 1
		if now > c.lossAt {
			c.inverse++
		}
	}
	c.direction, c.lastSize, c.lastTurn = direction, c.window, now
}

// judgeCompetition: a queue that never empties for five round trips is kept
// full by somebody else. The queue counts as empty below a tenth of its range,
// or below an eighth of the base round trip.
func (c *Copa) judgeCompetition(now Time, s AckSample, queue time.Duration) {
	highest, _ := c.highest.get(now, 4*s.Smoothed)
	if queue < (-highest-s.MinRTT)/10 || queue < s.MinRTT/8 {
		c.emptied = now
	}
	if !c.Competitive {
		return
	}
	was := c.inComp
	c.inComp = !c.startup && now.sub(c.emptied) > copaEmptyRTTs*s.Smoothed
	switch {
	case !c.inComp:
		c.inverse = copaInverse
	case !was:
		c.lossAt = now
	}
}
