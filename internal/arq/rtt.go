package arq

import "time"

// rttState estimates the round trip (RFC 9002, section 5) and derives the
// probe timeout.
type rttState struct {
	latest   time.Duration
	smoothed time.Duration
	variance time.Duration
	min      time.Duration // lowest of the last minRTTWindow, 0 before a sample

	minAt   Time
	nextMin time.Duration // lowest since minAt, takes over when min expires

	// excess is rtt - min of samples that are not outliers.
	excess delayHistogram
	recent slidingMin // lowest of the last smoothed/2
}

func newRTTState() rttState {
	return rttState{excess: delayHistogram{permille: 980}}
}

func (r *rttState) known() bool { return r.min > 0 }

func (r *rttState) sample(now Time, rtt time.Duration) {
	rtt = max(rtt, time.Microsecond)
	r.latest = rtt
	if !r.known() {
		r.smoothed, r.variance, r.min = rtt, rtt/2, rtt
		r.minAt, r.nextMin = now, 0
	} else {
		r.sampleMin(now, rtt)
		d := (rtt - r.smoothed).Abs()
		r.variance = (3*r.variance + d) / 4
		r.smoothed = (7*r.smoothed + rtt) / 8
	}
	if x := rtt - r.min; x <= r.ceiling() {
		r.excess.add(x)
	}
	r.recent.add(now, rtt, r.smoothed/2)
}

func (r *rttState) sampleMin(now Time, rtt time.Duration) {
	if rtt <= r.min {
		r.min, r.minAt, r.nextMin = rtt, now, 0
		return
	}
	if r.nextMin == 0 || rtt < r.nextMin {
		r.nextMin = rtt
	}
	if now.sub(r.minAt) > minRTTWindow {
		r.min, r.minAt, r.nextMin = r.nextMin, now, 0
	}
}

// ceiling parts jitter from lateness: what exceeds it is an outlier, and no
// reordering beyond it is waited out.
func (r *rttState) ceiling() time.Duration { return max(r.min/2, lossToleranceCeiling) }

// ackDelay is the longest time that an in-order arrival waits for its ack,
// here and at the peer.
func (r *rttState) ackDelay() time.Duration { return max(ackUrgentDelay, r.min/16) }

// pto is the time after the last transmission at which a probe leaves. On a
// path without a standing queue it comes from the 98th percentile of
// rtt - min_rtt, which late datagrams do not move; behind a standing queue it
// is the estimate of RFC 9002, section 6.2.1.
func (r *rttState) pto(now Time) time.Duration {
	if !r.known() {
		return initialPTO
	}
	lowest, ok := r.recent.get(now, r.smoothed/2)
	if !ok {
		lowest = r.latest
	}
	if lowest <= r.min+r.ceiling() {
		return r.min + max(lossToleranceFloor, r.excess.value) + r.ackDelay()
	}
	return r.smoothed + max(lossToleranceFloor, 4*r.variance) + r.ackDelay()
}

// slidingMin is the minimum of a sliding time window: a queue of candidates
// with ascending values. Of negated values it is the maximum.
type slidingMin struct{ q []timedRTT }

type timedRTT struct {
	at  Time
	rtt time.Duration
}

// slidingMinMax bounds the candidates of a window.
const slidingMinMax = 64

func (s *slidingMin) add(now Time, rtt, window time.Duration) {
	n := len(s.q)
	for n > 0 && s.q[n-1].rtt >= rtt {
		n--
	}
	s.q = append(s.q[:n], timedRTT{now, rtt})
	s.expire(now, window)
	if len(s.q) > slidingMinMax {
		// Of two neighbours in time the newer one stays.
		s.q = append(s.q[:len(s.q)-2], s.q[len(s.q)-1])
	}
}

func (s *slidingMin) expire(now Time, window time.Duration) {
	i := 0
	for i < len(s.q)-1 && s.q[i].at < now.add(-window) {
		i++
	}
	if i > 0 {
		s.q = append(s.q[:0], s.q[i:]...)
	}
}

// get returns the lowest sample of the window; the newest one stands for a
// window without samples.
func (s *slidingMin) get(now Time, window time.Duration) (time.Duration, bool) {
	if len(s.q) == 0 {
		return 0, false
	}
	s.expire(now, window)
	return s.q[0].rtt, true
}
