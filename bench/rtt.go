package bench

import (
	"sync"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/openarkstudio/arknet-go/bench/record"
)

// Histograms hold microseconds with 3 significant digits. Clients share them
// once there are many, to bound the memory.
const (
	maxRTT        = 10 * 60 * 1e6 // microseconds
	rttDigits     = 3
	maxHistograms = 64
)

// rttRecorder collects round trip times. It is safe for concurrent use.
type rttRecorder struct {
	parts []rttPart
}

type rttPart struct {
	mu   sync.Mutex
	hist *hdrhistogram.Histogram
	_    [40]byte // keeps the locks of neighbours in different cache lines
}

func newRTTRecorder(clients int) *rttRecorder {
	r := &rttRecorder{parts: make([]rttPart, min(clients, maxHistograms))}
	for i := range r.parts {
		r.parts[i].hist = hdrhistogram.New(1, maxRTT, rttDigits)
	}
	return r
}

// record adds one round trip of so many nanoseconds.
func (r *rttRecorder) record(client int, ns int64) {
	us := min(max((ns+500)/1000, 0), maxRTT)
	p := &r.parts[client%len(r.parts)]
	p.mu.Lock()
	_ = p.hist.RecordValue(us) // the value is in range
	p.mu.Unlock()
}

// rttPercents are the percentiles that a record carries beside the median, the
// 95th and the 99th: denser to the end, where transports differ.
var rttPercents = []float64{
	0, 5, 10, 20, 30, 40, 50, 60, 70, 75, 80, 85, 90, 92, 94, 95, 96, 97, 98, 98.5,
	99, 99.25, 99.5, 99.75, 99.9, 99.95, 99.99, 100,
}

// distribution returns the percentiles in microseconds, none without an
// observation.
func (r *rttRecorder) distribution() []record.Percentile {
	sum := r.merged()
	if sum.TotalCount() == 0 {
		return nil
	}
	list := make([]record.Percentile, len(rttPercents))
	for i, percent := range rttPercents {
		us := sum.ValueAtPercentile(percent)
		if percent == 0 {
			us = sum.Min()
		}
		list[i] = record.Percentile{Percent: percent, RTT: float64(us)}
	}
	return list
}

// percentiles returns the median, the 95th and the 99th percentile in
// microseconds and the number of observations.
func (r *rttRecorder) percentiles() (p50, p95, p99 float64, n int64) {
	sum := r.merged()
	at := func(q float64) float64 { return float64(sum.ValueAtPercentile(q)) }
	return at(50), at(95), at(99), sum.TotalCount()
}

// merged is the sum of the parts.
func (r *rttRecorder) merged() *hdrhistogram.Histogram {
	sum := hdrhistogram.New(1, maxRTT, rttDigits)
	for i := range r.parts {
		r.parts[i].mu.Lock()
		sum.Merge(r.parts[i].hist)
		r.parts[i].mu.Unlock()
	}
	return sum
}
