package netem

import (
	"slices"
	"time"
)

// maxSize bounds the size of one datagram so that its transmission time fits 64
// bits at any rate.
const maxSize = 1 << 30

// Link is one direction of a path. It is not safe for concurrent use.
type Link struct {
	cfg   Config
	seed  uint64
	epoch time.Duration // origin of the outages
	now   time.Duration // latest time seen
	index uint64        // of the next datagram
	stats Stats

	loss, duplicate, corrupt, late       threshold
	goodToBad, badToGood                 threshold
	lossGood, lossBad                    threshold
	state, stateLoss, lossDraw, dupDraw  stream
	corruptDraw, damage, jitterDraw, lat [2]stream
	corruptBits                          uint8
	dropping, burstOn, stateOn           bool

	burstPhase uint64
	bad        bool // state of the Gilbert-Elliott model
	queue      bottleneck
	lastOut    time.Duration // latest arrival of a datagram that must keep its order
}

// NewLink returns a link in the given condition. Links with the same seed and
// config make the same decisions.
func NewLink(cfg Config, seed uint64) (*Link, error) {
	l := &Link{
		seed:      seed,
		state:     newStream(seed, knobState),
		stateLoss: newStream(seed, knobStateLoss),
		lossDraw:  newStream(seed, knobLoss),
		dupDraw:   newStream(seed, knobDuplicate),
	}
	for i := range l.damage {
		nth := knob(i) * knobCopy
		l.corruptDraw[i] = newStream(seed, knobCorrupt+nth)
		l.damage[i] = newStream(seed, knobDamage+nth)
		l.jitterDraw[i] = newStream(seed, knobJitter+nth)
		l.lat[i] = newStream(seed, knobLate+nth)
	}
	if err := l.SetConfig(0, cfg); err != nil {
		return nil, err
	}
	return l, nil
}

// Config returns a copy of the link's present condition.
func (l *Link) Config() Config {
	c := l.cfg
	c.Outages = slices.Clone(c.Outages)
	return c
}

// SetConfig changes the condition of the link for datagrams offered from now on.
// Fates already given stay as they are. Counters, the index that the random
// decisions follow, the backlog of the rate limit and the Gilbert-Elliott state
// go on; outages are counted from epoch, which is usually the present time. On
// an error nothing changes.
func (l *Link) SetConfig(epoch time.Duration, cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	cfg.Outages = slices.Clone(cfg.Outages)
	l.cfg = cfg
	l.epoch = epoch
	l.loss = newThreshold(cfg.Loss)
	l.duplicate = newThreshold(cfg.Duplicate)
	l.corrupt = newThreshold(cfg.Corrupt)
	l.late = newThreshold(cfg.Late.Share)
	g := cfg.GilbertElliott
	l.goodToBad = newThreshold(g.GoodToBad)
	l.badToGood = newThreshold(g.BadToGood)
	l.lossGood = newThreshold(g.LossGood)
	l.lossBad = newThreshold(g.lossBad())
	l.corruptBits = uint8(max(cfg.CorruptBits, 1))
	l.dropping, l.stateOn = cfg.drops(), g.on()
	if l.burstOn = cfg.Burst.Lose > 0; l.burstOn {
		l.burstPhase = uniform(newStream(l.seed, knobBurst).at(0), uint64(cfg.Burst.Every))
	}
	l.queue.configure(&cfg)
	return nil
}

// Stats returns the counters since the link was made.
func (l *Link) Stats() Stats { return l.stats }

// Transmit offers a datagram of size bytes to the link at time now and returns
// its fate. now is an offset on the caller's clock; a value before that of an
// earlier call counts as that one. It does not allocate.
func (l *Link) Transmit(now time.Duration, size int) (f Fate) {
	now = max(now, l.now)
	l.now = now
	size = min(max(size, 0), maxSize)
	n := l.index
	l.index++
	l.stats.Offered.add(size)

	if l.dropping {
		f.Cause = l.lose(now, n, size)
	}
	if f.Cause == None && l.cfg.Rate > 0 {
		leaves, waiting, ok := l.queue.pass(now, size)
		l.stats.QueuePeakBytes = max(l.stats.QueuePeakBytes, waiting)
		if ok {
			now = leaves
		} else {
			f.Cause = LostQueue
		}
	}
	if f.Cause != None {
		l.stats.Dropped.of(f.Cause).add(size)
		return f
	}

	f.n = 1
	if l.duplicate > 0 && l.duplicate.hit(l.dupDraw.at(n)) {
		f.n = 2
		l.stats.Duplicated.add(size)
	}
	for i := range f.n {
		l.carry(&f.copies[i], now, n, size, i)
	}
	return f
}

// lose decides about every kind of loss but that of the queue.
func (l *Link) lose(now time.Duration, n uint64, size int) Cause {
	// The state moves with every datagram, whatever else befalls it.
	lostByState := false
	if l.stateOn {
		leave := l.goodToBad
		if l.bad {
			leave = l.badToGood
		}
		if leave.hit(l.state.at(n)) {
			l.bad = !l.bad
		}
		loss := l.lossGood
		if l.bad {
			loss = l.lossBad
		}
		lostByState = loss.hit(l.stateLoss.at(n))
	}
	if len(l.cfg.Outages) > 0 {
		if _, out := l.cfg.OutageAt(now - l.epoch); out {
			return LostOutage
		}
	}
	switch {
	case l.cfg.MTU > 0 && size > l.cfg.MTU:
		return LostMTU
	case l.burstOn && (n+l.burstPhase)%uint64(l.cfg.Burst.Every) < uint64(l.cfg.Burst.Lose):
		return LostBurst
	case l.loss > 0 && l.loss.hit(l.lossDraw.at(n)):
		return LostRandom
	case lostByState:
		return LostState
	}
	return None
}

// carry decides about the damage and the arrival of copy i, which leaves the
// bottleneck at the given time.
func (l *Link) carry(c *Copy, leaves time.Duration, n uint64, size int, i uint8) {
	l.stats.Delivered.add(size)
	at := leaves + l.cfg.Delay
	if l.cfg.Jitter > 0 {
		at += time.Duration(uniform(l.jitterDraw[i].at(n), uint64(l.cfg.Jitter)+1))
	}
	if l.corrupt > 0 && size > 0 && l.corrupt.hit(l.corruptDraw[i].at(n)) {
		c.Corrupted = true
		c.bits = l.corruptBits
		c.damage = l.damage[i].at(n)
		l.stats.Corrupted.add(size)
	}
	late := l.late > 0 && l.late.hit(l.lat[i].at(n))
	if !l.cfg.JitterReorders {
		at = max(at, l.lastOut)
		if !late {
			l.lastOut = at
		}
	}
	if late {
		c.Late = true
		at += l.cfg.Late.Delay
		l.stats.Late.add(size)
	}
	c.At = at
}
