package arq

import "time"

// pacer spreads packets at a multiple of window per round trip, with a credit
// for bursts: a closed loop sends its window in bursts, and holding those back
// would cost it a round trip. An explicit rate limit uses the same bucket with
// a small credit.
type pacer struct {
	credit  int64 // bytes that may leave now; negative after a burst
	updated Time
	rest    int64 // fraction of a byte not yet credited, in bytes*ns
}

const (
	pacerGain        = 4
	pacerBurst       = 32 * packetSize
	pacerRateBurst   = 10 * packetSize // burst under an explicit rate limit
	pacerGranularity = 10 * time.Microsecond
	pacerMaxRate     = 8 << 30 // so that no product overflows
)

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
