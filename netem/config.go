package netem

import (
	"fmt"
	"math"
	"time"
)

// Limits of the configuration. They keep every sum of times far from overflow.
const (
	maxTime         = time.Hour
	maxRate         = 1_000_000_000_000 // 1 Tbit/s
	minRate         = 1_000             // 1 kbit/s
	maxQueueBytes   = 1 << 30
	maxQueuePackets = 1 << 20
	maxBurst        = 1 << 30
	maxOutages      = 1024
	maxCorruptBits  = 64
)

// DefaultQueueBytes is the queue of a rate limit whose Config names no limit.
const DefaultQueueBytes = 256 << 10

// Config describes one direction of a path. The zero value is a perfect link:
// nothing is lost and everything arrives at once. Probabilities are 0 to 1.
type Config struct {
	// Loss is the probability that a datagram is lost, independently of all
	// others.
	Loss float64

	// Burst loses runs of consecutive datagrams at fixed distances.
	Burst Burst

	// GilbertElliott loses datagrams in random clusters.
	GilbertElliott GilbertElliott

	// Delay is added to every datagram; 0 to 1 h.
	Delay time.Duration

	// Jitter is the upper end of a uniform extra delay per datagram; 0 to 1 h.
	// The order is kept all the same: a datagram never leaves before one that
	// arrived earlier.
	Jitter time.Duration

	// JitterReorders lets jitter, and a change of Delay at run time, change
	// the order of datagrams.
	JitterReorders bool

	// Late delays a share of the datagrams further, so that later ones
	// overtake them.
	Late Late

	// Duplicate is the probability that a datagram arrives twice. The second
	// copy draws its own jitter, lateness and damage.
	Duplicate float64

	// Corrupt is the probability that bits of a copy are flipped. Empty
	// datagrams have none to flip.
	Corrupt float64

	// CorruptBits is how many bits of a damaged copy are flipped; 1 to 64,
	// 0 means 1.
	CorruptBits int

	// Rate limits the link to so many bits of datagram payload per second;
	// 1,000 to 10^12, 0 means no limit. Datagrams above the rate wait in a
	// queue; what finds the queue full is dropped.
	Rate int64

	// QueueBytes bounds the payload that waits for a Rate; up to 1 GiB,
	// 0 means DefaultQueueBytes, or no bound when QueuePackets is set. An idle
	// link takes any datagram.
	QueueBytes int

	// QueuePackets bounds the datagrams that wait for a Rate; up to 2^20,
	// 0 means no bound.
	QueuePackets int

	// Police turns the rate limit into a policer: datagrams above the Rate and
	// the queue's depth are dropped, and the others are not delayed.
	Police bool

	// MTU drops datagrams of more than so many bytes without notice, as a
	// black hole on the path does; 0 means no limit.
	MTU int

	// Outages are times in which everything is lost. They are counted from
	// time 0 of the caller's clock, or from the time given to SetConfig.
	Outages []Outage
}

// Burst loses Lose consecutive datagrams of every Every. Where in the period the
// run begins is drawn from the seed. The zero value loses nothing.
type Burst struct {
	Lose  int // 0 to Every
	Every int // up to 2^30
}

// GilbertElliott is the two-state loss model of Gilbert (1960) and Elliott
// (1963): a link that moves between a good and a bad state, once per datagram.
// The zero value loses nothing.
type GilbertElliott struct {
	GoodToBad float64 // probability per datagram to enter the bad state
	BadToGood float64 // probability per datagram to leave it; above 0 when GoodToBad is
	LossGood  float64 // loss probability in the good state
	LossBad   float64 // loss probability in the bad state; 0 means 1
}

// Late picks a Share of the datagrams (0 to 1) and delays them by a further
// Delay (0 to 1 h). The zero value picks none.
type Late struct {
	Share float64
	Delay time.Duration
}

// Outage is a time in which a link loses everything that is offered to it.
type Outage struct {
	Start    time.Duration // 0 to 1 h
	Duration time.Duration // above 0, up to 1 h
	Every    time.Duration // repeats with this period, longer than Duration; 0 means once
}

// Perfect reports whether the config passes every datagram unchanged and at
// once.
func (c *Config) Perfect() bool {
	return !c.drops() && c.Delay == 0 && c.Jitter == 0 && c.Late.Share == 0 &&
		c.Duplicate == 0 && c.Corrupt == 0 && c.Rate == 0
}

func (c *Config) drops() bool {
	return c.Loss > 0 || c.Burst.Lose > 0 || c.GilbertElliott.on() || c.MTU > 0 || len(c.Outages) > 0
}

func (g GilbertElliott) on() bool { return g.GoodToBad > 0 || g.LossGood > 0 }

func (g GilbertElliott) lossBad() float64 {
	if g.LossBad == 0 {
		return 1
	}
	return g.LossBad
}

// MeanLoss is the share of datagrams that the model loses in the long run.
func (g GilbertElliott) MeanLoss() float64 {
	if !g.on() {
		return 0
	}
	if g.GoodToBad == 0 {
		return g.LossGood
	}
	bad := g.GoodToBad / (g.GoodToBad + g.BadToGood)
	return bad*g.lossBad() + (1-bad)*g.LossGood
}

// OutageAt reports whether an outage holds at time t, counted from the same
// origin as the outages, and when the one that ends last is over.
func (c *Config) OutageAt(t time.Duration) (end time.Duration, ok bool) {
	for _, o := range c.Outages {
		since := t - o.Start
		if since < 0 {
			continue
		}
		begin := o.Start
		if o.Every > 0 {
			begin += since / o.Every * o.Every
			since %= o.Every
		}
		if since < o.Duration {
			ok = true
			end = max(end, begin+o.Duration)
		}
	}
	return end, ok
}

// Validate checks every field and names the first that is out of range together
// with the range.
func (c *Config) Validate() error {
	for _, p := range []struct {
		field string
		value float64
	}{
		{"Loss", c.Loss},
		{"GilbertElliott.GoodToBad", c.GilbertElliott.GoodToBad},
		{"GilbertElliott.BadToGood", c.GilbertElliott.BadToGood},
		{"GilbertElliott.LossGood", c.GilbertElliott.LossGood},
		{"GilbertElliott.LossBad", c.GilbertElliott.LossBad},
		{"Late.Share", c.Late.Share},
		{"Duplicate", c.Duplicate},
		{"Corrupt", c.Corrupt},
	} {
		if !(p.value >= 0 && p.value <= 1) { // also refuses NaN
			return outOfRange(p.field, p.value, "a probability from 0 to 1")
		}
	}
	for _, d := range []struct {
		field string
		value time.Duration
	}{
		{"Delay", c.Delay},
		{"Jitter", c.Jitter},
		{"Late.Delay", c.Late.Delay},
	} {
		if d.value < 0 || d.value > maxTime {
			return outOfRange(d.field, d.value, "0 to 1h")
		}
	}
	if g := c.GilbertElliott; g.GoodToBad > 0 && g.BadToGood == 0 {
		return outOfRange("GilbertElliott.BadToGood", g.BadToGood, "above 0 and up to 1 when GoodToBad is set")
	}
	for _, n := range []struct {
		field  string
		value  int64
		lo, hi int64
	}{
		{"Burst.Every", int64(c.Burst.Every), 0, maxBurst},
		{"Burst.Lose", int64(c.Burst.Lose), 0, int64(c.Burst.Every)},
		{"CorruptBits", int64(c.CorruptBits), 0, maxCorruptBits},
		{"QueueBytes", int64(c.QueueBytes), 0, maxQueueBytes},
		{"QueuePackets", int64(c.QueuePackets), 0, maxQueuePackets},
		{"MTU", int64(c.MTU), 0, math.MaxInt32},
	} {
		if n.value < n.lo || n.value > n.hi {
			return outOfRange(n.field, n.value, fmt.Sprintf("%d to %d", n.lo, n.hi))
		}
	}
	if c.Rate != 0 && (c.Rate < minRate || c.Rate > maxRate) {
		return outOfRange("Rate", c.Rate, fmt.Sprintf("0 (no limit) or %d to %d bit/s", int64(minRate), int64(maxRate)))
	}
	if c.Rate == 0 && (c.QueueBytes > 0 || c.QueuePackets > 0 || c.Police) {
		return outOfRange("Rate", c.Rate, "above 0 when QueueBytes, QueuePackets or Police is set")
	}
	if len(c.Outages) > maxOutages {
		return outOfRange("Outages", len(c.Outages), fmt.Sprintf("0 to %d windows", maxOutages))
	}
	for i, o := range c.Outages {
		if o.Start < 0 || o.Start > maxTime {
			return outOfRange(fmt.Sprintf("Outages[%d].Start", i), o.Start, "0 to 1h")
		}
		if o.Duration <= 0 || o.Duration > maxTime {
			return outOfRange(fmt.Sprintf("Outages[%d].Duration", i), o.Duration, "above 0, up to 1h")
		}
		if o.Every != 0 && (o.Every <= o.Duration || o.Every > 24*maxTime) {
			return outOfRange(fmt.Sprintf("Outages[%d].Every", i), o.Every, "0 (once) or longer than Duration, up to 24h")
		}
	}
	return nil
}

func outOfRange(field string, value any, allowed string) error {
	return fmt.Errorf("netem: Config.%s is %v; allowed: %s", field, value, allowed)
}
