package arq

import (
	"math"
	"testing"
)

// The rate follows the formula, in integers.
func TestAdaptiveRatio(t *testing.T) {
	for _, gain := range []int64{600, 1000, 1600} {
		for _, q := range []float64{0, 0.0005, 0.001, 0.01, 0.05, 0.095, 0.2, 0.3, 0.44, 0.45, 0.6, 1} {
			for _, n := range []float64{0, 0.5, 1, 2, 4, 16, 64, 256, 960, 65536} {
				bounded := min(q, 0.45)
				want := float64(gain) / 1000 * bounded / (1 - bounded) * (1 + 3.3*math.Pow(max(n, 1), -0.25))
				got := float64(adaptiveRatio(int64(q*missRateOne), int64(n*256), gain)) / missRateOne
				if math.Abs(got-want) > 0.002+want*0.01 {
					t.Errorf("gain %d, miss rate %v, %v symbols in flight: %.4f, want %.4f", gain, q, n, got, want)
				}
			}
		}
	}
}

func TestIntegerSquareRoot(t *testing.T) {
	check := func(x uint64) {
		r := isqrt(x)
		if hi := r + 1; r > 0 && r > x/r || hi <= x/hi {
			t.Fatalf("root of %d is %d", x, r)
		}
	}
	for x := range uint64(100_000) {
		check(x)
	}
	for shift := range 64 {
		for d := range uint64(5) {
			check(1<<shift + d - 2)
		}
	}
	check(math.MaxUint64)
}

// A change of the rate is counted once, not each time that it wobbles.
func TestPolicyChangesAreCounted(t *testing.T) {
	r := repairSender{lastRatio: missRateOne / 10}
	for _, tt := range []struct {
		percent int64
		changes uint64
	}{{10, 0}, {11, 0}, {12, 1}, {12, 1}, {11, 1}, {10, 2}, {100, 3}, {0, 4}, {0, 4}} {
		r.noteRatio(missRateOne * tt.percent / 100)
		if r.stats.PolicyChanges != tt.changes {
			t.Errorf("%d changes at %d %%, want %d", r.stats.PolicyChanges, tt.percent, tt.changes)
		}
	}
	if r.stats.MaxRatio != 1000 {
		t.Errorf("highest ratio %d", r.stats.MaxRatio)
	}
}
