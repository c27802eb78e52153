package relay

import (
	"testing"
	"time"
)

// BenchmarkSelfTest reports how precisely the relay keeps its times, in one run of
// two seconds: rtt-p50-us should be 20,000 to 20,300, p99-above-p50-us below 300.
func BenchmarkSelfTest(b *testing.B) {
	for b.Loop() {
		res, err := SelfTest{Duration: 2 * time.Second}.Run(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if err := res.CheckCounts(); err != nil {
			b.Error(err)
		}
		b.ReportMetric(float64(res.P50.Nanoseconds())/1e3, "rtt-p50-us")
		b.ReportMetric(float64((res.P99-res.P50).Nanoseconds())/1e3, "p99-above-p50-us")
		b.ReportMetric(float64(res.Max.Nanoseconds())/1e3, "rtt-max-us")
	}
}
