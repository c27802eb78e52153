package bench

import (
	"sync"

	"github.com/HdrHistogram/hdrhistogram-go"
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

// percentiles returns the median, the 95th and the 99th percentile in
// microseconds and the number of observations.
func (r *rttRecorder) percentiles() (p50, p95, p99 float64, n int64) {
	sum := hdrhistogram.New(1, maxRTT, rttDigits)
	for i := range r.parts {
		r.parts[i].mu.Lock()
		sum.Merge(r.parts[i].hist)
		r.parts[i].mu.Unlock()
	}
	at := func(q float64) float64 { return float64(sum.ValueAtPercentile(q)) }
	return at(50), at(95), at(99), sum.TotalCount()
}
