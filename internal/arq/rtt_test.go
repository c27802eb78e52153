package arq

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestRTTEstimate(t *testing.T) {
	r := newRTTState()
	if r.known() || r.pto(1) != initialPTO {
		t.Fatal("an estimate without a sample")
	}
	r.sample(1, 20*ms)
	if r.smoothed != 20*ms || r.variance != 10*ms || r.min != 20*ms {
		t.Errorf("after one sample %+v", r)
	}
	r.sample(2, 28*ms)
	if r.smoothed != 21*ms || r.variance != (3*10*ms+8*ms)/4 || r.min != 20*ms || r.latest != 28*ms {
		t.Errorf("after two samples: smoothed %v, variance %v, least %v", r.smoothed, r.variance, r.min)
	}
	r.sample(3, 0)
	if r.min != time.Microsecond {
		t.Errorf("a sample of nothing gives a least round trip of %v", r.min)
	}
}

// The lowest round trip is believed for ten seconds, then the lowest since.
func TestLowestRoundTripExpires(t *testing.T) {
	r := newRTTState()
	now := Time(1)
	r.sample(now, 10*ms)
	for range 99 {
		now = now.add(100 * ms)
		r.sample(now, 30*ms+time.Duration(now)%7*ms)
		if r.min != 10*ms {
			t.Fatalf("forgotten after %v", now.sub(1))
		}
	}
	for range 3 {
		now = now.add(100 * ms)
		r.sample(now, 37*ms)
	}
	if r.min < 30*ms {
		t.Errorf("still %v after %v", r.min, now.sub(1))
	}
	r.sample(now, 20*ms)
	if r.min != 20*ms {
		t.Errorf("a lower sample gives %v", r.min)
	}
}

// The probe timeout follows the 98th percentile of what exceeds the least round
// trip, not the late datagrams: 5 % that come 15 ms later do not move it.
func TestProbeTimeoutIgnoresLateness(t *testing.T) {
	r := newRTTState()
	rng := rand.New(rand.NewPCG(1, 2))
	now := Time(1)
	for range 2000 {
		now = now.add(ms)
		rtt := 20*ms + time.Duration(rng.IntN(int(500*us)))
		if rng.IntN(20) == 0 {
			rtt += 15 * ms
		}
		r.sample(now, rtt)
	}
	if pto := r.pto(now); pto < 22*ms || pto > 24*ms {
		t.Errorf("probe timeout %v, want least + 2 ms + ack delay", pto)
	}
}

// Jitter that the path shows all the time does.
func TestProbeTimeoutCoversJitter(t *testing.T) {
	r := newRTTState()
	rng := rand.New(rand.NewPCG(1, 2))
	now := Time(1)
	r.sample(now, 20*ms)
	for range 2000 {
		now = now.add(ms)
		r.sample(now, 20*ms+time.Duration(rng.IntN(int(8*ms))))
	}
	if pto := r.pto(now); pto < 27*ms || pto > 33*ms {
		t.Errorf("probe timeout %v with 8 ms of jitter", pto)
	}
}

// Behind a standing queue it is that of RFC 9002.
func TestProbeTimeoutBehindAQueue(t *testing.T) {
	r := newRTTState()
	now := Time(1)
	r.sample(now, 20*ms)
	for range 500 {
		now = now.add(ms)
		r.sample(now, 300*ms)
	}
	want := r.smoothed + max(lossToleranceFloor, 4*r.variance) + r.ackDelay()
	if pto := r.pto(now); pto != want || pto < 300*ms {
		t.Errorf("probe timeout %v, want %v", pto, want)
	}
}

func TestSlidingExtremes(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	const window = 50 * ms
	var low slidingMin
	var high slidingMin // of negated values
	var all []timedRTT
	now := Time(1)
	for range 2000 {
		now = now.add(time.Duration(rng.IntN(int(4 * ms))))
		x := time.Duration(1 + rng.IntN(int(100*ms)))
		all = append(all, timedRTT{now, x})
		low.add(now, x, window)
		high.add(now, -x, window)
		wantLow, wantHigh := x, x
		for _, s := range all {
			if s.at >= now.add(-window) {
				wantLow, wantHigh = min(wantLow, s.rtt), max(wantHigh, s.rtt)
			}
		}
		if got, _ := low.get(now, window); got != wantLow {
			t.Fatalf("lowest %v, want %v", got, wantLow)
		}
		if got, _ := high.get(now, window); -got != wantHigh {
			t.Fatalf("highest %v, want %v", -got, wantHigh)
		}
	}
	// Ascending samples at a high rate keep the queue short, and the lowest.
	var flood slidingMin
	for i := range 10_000 {
		flood.add(now.add(time.Duration(i)), time.Duration(1+i), time.Second)
	}
	if got, _ := flood.get(now, time.Second); got != 1 || len(flood.q) > slidingMinMax {
		t.Errorf("lowest %v of %d candidates", got, len(flood.q))
	}
	if got, _ := flood.get(now.add(time.Hour), time.Second); got != 10_000 {
		t.Errorf("an empty window gives %v, want the latest", got)
	}
}
