package bench

import (
	"testing"

	"github.com/openarkstudio/arknet-go/bench/record"
)

func TestRTTDistribution(t *testing.T) {
	r := newRTTRecorder(2)
	if got := r.distribution(); got != nil {
		t.Errorf("without an observation: %v", got)
	}
	for i := range 1000 {
		r.record(i%2, int64(i+1)*1e6) // 1 to 1,000 ms
	}
	p50, p95, p99, _ := r.percentiles()
	want := map[float64]float64{0: 1000, 50: p50, 95: p95, 99: p99}
	var last record.Percentile
	for i, p := range r.distribution() {
		if us, ok := want[p.Percent]; ok && p.RTT != us {
			t.Errorf("%v %%: %v us, want %v", p.Percent, p.RTT, us)
		}
		delete(want, p.Percent)
		if i > 0 && (p.Percent <= last.Percent || p.RTT < last.RTT) {
			t.Errorf("%v follows %v", p, last)
		}
		last = p
	}
	if len(want) > 0 {
		t.Errorf("percentiles without an entry: %v", want)
	}
	// Three significant digits are kept.
	if last.Percent != 100 || last.RTT < 999_000 || last.RTT > 1_001_000 {
		t.Errorf("the longest is %v, want about 1,000 ms", last)
	}
}
