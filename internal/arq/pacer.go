package arq

import "time"

// pacer is a token bucket that spreads packets over time.
type pacer struct {
	credit  int64 // bytes that may leave now; negative after a burst
	updated Time
	rest    int64 // fraction of a byte not yet credited, in bytes*ns
}

const (
	pacerGain        = 4
	pacerBurst       = 32 * packetSize
	pacerBulkGain    = 2
	pacerBulkBurst   = 16 * packetSize
	pacerSmoothGain  = 5 // quarters
	pacerSmoothBurst = 2 * packetSize
	pacerLateness    = 250 * time.Microsecond // of sending that a late wake-up may make up for
	pacerRateBurst   = 10 * packetSize        // burst under an explicit rate limit
	pacerGranularity = 10 * time.Microsecond
	pacerMaxRate     = 8 << 30 // so that no product overflows
)

// pacing is the rate, in bytes per second, and the burst that a window allows.
// A closed loop sends its window in bursts, and holding those back would cost
// it a round trip: it gets a high rate and half a window of credit. A bulk flow
// gains nothing from bursts; spread, it sees the queue of the path and not its
// own. Where bursts are lost, smooth, packets leave as evenly as wake-ups come.
func pacing(window int, smoothed time.Duration, bulk, smooth bool) (rate, burst int64) {
	perSecond := int64(window) * 1_000_000 / max(smoothed.Microseconds(), 1)
	burst = max(pacerBurst, int64(window)/2)
	switch {
	case smooth:
		rate = pacerSmoothGain * perSecond / 4
		return rate, min(burst, max(pacerSmoothBurst, rate*pacerLateness.Microseconds()/1_000_000))
	case bulk:
		rate = pacerBulkGain * perSecond
		return rate, min(burst, max(pacerBulkBurst, rate*pacerLateness.Microseconds()/1_000_000))
	}
	return pacerGain * perSecond, burst
}

// refill credits the time since the last call at rate bytes per second.
func (p *pacer) refill(now Time, rate, burst int64) {
	if p.updated == 0 {
		p.credit, p.updated = burst, now
		return
	}
	const second = int64(time.Second)
	elapsed := int64(now - p.updated)
	p.updated = now
	rate = min(rate, pacerMaxRate)
	p.rest += elapsed % second * rate
	p.credit += min(elapsed/second, 1_000_000)*rate + p.rest/second
	p.rest %= second
	if p.credit >= burst {
		p.credit, p.rest = burst, 0
	}
}

// until is when size bytes may leave.
func (p *pacer) until(now Time, size int, rate int64) Time {
	lack := int64(size) - p.credit
	if lack <= 0 {
		return now
	}
	rate = max(rate, 1)
	wait := time.Duration((lack*int64(time.Second) + rate - 1) / rate)
	return now.add(max(wait, pacerGranularity))
}

// spend takes a sent packet off the credit; a bucket never filled is not in use.
func (p *pacer) spend(size int) {
	if p.updated != 0 {
		p.credit -= int64(size)
	}
}
