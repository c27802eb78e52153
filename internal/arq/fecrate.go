package arq

import "math/bits"

// The adaptive rate: repairs per source symbol
//
//	rho = g * q/(1-q) * (1 + 3.3 * N^-1/4)
//
// with q the miss rate and N the symbols in flight. It is fitted on simulated
// runs from 0 to 20 % loss and from 1 to 960 symbols in flight: few symbols
// need more surplus, since luck evens out less. It is at most 1, unless the
// parity budget allows more.
const (
	adaptiveMissMax  = missRateOne * 45 / 100
	adaptiveSpread   = 845 // 3.3 in 1/256
	gainOne          = 1000
	ratioChangeShare = 8
)

// repairRatio is how many repairs one more symbol is owed, in 1/missRateOne.
func (c *Conn) repairRatio() int64 {
	r := &c.repairs
	switch r.policy {
	case FECFixed:
		return int64(c.cfg.FEC.Parity) * missRateOne / int64(c.cfg.FEC.Data)
	case FECAdaptive:
		ratio := adaptiveRatio(c.loss.missRate.rate, r.unknown, int64(c.cfg.FEC.Gain))
		return min(ratio, missRateOne*int64(max(c.cfg.FEC.Budget, 100))/100)
	}
	return 0
}

// adaptiveRatio takes the miss rate in 1/missRateOne, the symbols in flight in
// 1/256, and the gain in 1/1000.
func adaptiveRatio(missRate, unknown, gain int64) int64 {
	q := min(missRate, adaptiveMissMax)
	odds := q * missRateOne / (missRateOne - q)
	// unknown * 2^24 is N * 2^32, whose fourth root is N^1/4 * 256.
	root := int64(isqrt(isqrt(uint64(max(unknown, 256)) << 24)))
	spread := 256 + adaptiveSpread*256/root
	return odds * spread / 256 * gain / gainOne
}

// isqrt is the integer square root (Newton's method).
func isqrt(x uint64) uint64 {
	if x == 0 {
		return 0
	}
	r := uint64(1) << ((bits.Len64(x) + 1) / 2)
	for {
		next := (r + x/r) / 2
		if next >= r {
			return r
		}
		r = next
	}
}

// noteRatio keeps the statistics of the policy.
func (r *repairSender) noteRatio(ratio int64) {
	r.stats.MaxRatio = max(r.stats.MaxRatio, int(ratio*1000/missRateOne))
	if d := ratio - r.lastRatio; max(d, -d)*ratioChangeShare > max(r.lastRatio, missRateOne/100) {
		r.lastRatio = ratio
		r.stats.PolicyChanges++
	}
}
