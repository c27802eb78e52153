package arq

import (
	"math"
	"testing"
	"time"
)

// Every delay falls into the bucket whose upper edge is the next one above it,
// at most a quarter octave away.
func TestHistogramBuckets(t *testing.T) {
	if histogramBucket(-5) != 0 || histogramBucket(131*us) != 0 || histogramEdge(0) != 0 {
		t.Error("delays below 131 us do not count as none")
	}
	if histogramBucket(math.MaxInt64) != 55 {
		t.Error("the longest delay has no bucket")
	}
	for d := 132 * us; d < 500*ms; d += d / 64 {
		i := histogramBucket(d)
		low, high := histogramEdge(i-1), histogramEdge(i)
		if i == 1 {
			low = 4 << histogramUnitBits
		}
		if d < low || d >= high || high-low > low/4+1 {
			t.Fatalf("%v is in bucket %d of %v to %v", d, i, low, high)
		}
	}
}

func TestHistogramQuantiles(t *testing.T) {
	h := delayHistogram{permille: 990}
	for i := range 31 {
		h.add(time.Duration(i) * ms)
	}
	if h.ready {
		t.Fatal("ready before 32 samples")
	}
	h.add(0)
	if !h.ready || h.value < 30*ms || h.value > 38*ms {
		t.Errorf("p99 of 0..30 ms is %v", h.value)
	}

	half := delayHistogram{permille: 500}
	for i := range 64 {
		half.add(time.Duration(i%2) * 8 * ms)
	}
	if half.value != 0 && (half.value < 8*ms || half.value > 10*ms) {
		t.Errorf("median of 0 and 8 ms is %v", half.value)
	}

	// 1 sample of 100 is above: the 99th percentile is below it.
	rare := delayHistogram{permille: 990}
	for i := range 256 {
		d := time.Duration(0)
		if i%128 == 0 {
			d = 50 * ms
		}
		rare.add(d)
	}
	if rare.value != 0 {
		t.Errorf("p99 is %v when 1 of 128 is late", rare.value)
	}
}

// Old samples fade: what was normal before a change is forgotten within a few
// hundred samples.
func TestHistogramForgets(t *testing.T) {
	h := delayHistogram{permille: 990}
	for range 10_000 {
		h.add(5 * ms)
	}
	n := 0
	for h.value != 0 {
		h.add(0)
		if n++; n > 2048 {
			t.Fatalf("p99 is still %v after %d samples of none", h.value, n)
		}
	}
	if n < 256 {
		t.Errorf("5 ms were forgotten after %d samples", n)
	}
	sum := 0
	for _, b := range h.buckets {
		sum += int(b)
	}
	if sum != h.weight {
		t.Errorf("weight %d, the buckets sum to %d", h.weight, sum)
	}
}
