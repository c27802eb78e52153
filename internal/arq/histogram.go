package arq

import (
	"math/bits"
	"time"
)

// delayHistogram is a log-scale histogram of short delays: four buckets per
// octave from 131 us on. It forgets: all counts are halved every 256 samples.
// Quantiles are taken every 32 samples and name the upper edge of a bucket.
type delayHistogram struct {
	permille int // which quantile, of 1000
	buckets  [56]uint16
	weight   int // sum of the buckets
	samples  int // since the last halving
	value    time.Duration
	ready    bool
}

const (
	histogramUnitBits    = 15 // 32.768 us
	histogramRefresh     = 32
	histogramHalveEvery  = 256
	histogramPerOctave   = 4
	histogramFirstOctave = 2 // log2 of the units where buckets get their width
)

func histogramBucket(d time.Duration) int {
	u := uint64(max(d, 0)) >> histogramUnitBits
	if u < histogramPerOctave {
		return 0
	}
	octave := bits.Len64(u) - 1 - histogramFirstOctave
	within := int(u>>octave) - histogramPerOctave
	return min(octave*histogramPerOctave+within+1, 55)
}

// histogramEdge is the upper edge of a bucket; bucket 0 counts as no delay.
func histogramEdge(i int) time.Duration {
	if i == 0 {
		return 0
	}
	i--
	width := i / histogramPerOctave
	return time.Duration(i%histogramPerOctave+histogramPerOctave+1) << width << histogramUnitBits
}

func (h *delayHistogram) add(d time.Duration) {
	h.buckets[histogramBucket(d)]++
	h.weight++
	h.samples++
	if h.samples%histogramRefresh != 0 {
		return
	}
	h.value, h.ready = h.quantile(), true
	if h.samples < histogramHalveEvery {
		return
	}
	h.samples, h.weight = 0, 0
	for i := range h.buckets {
		h.buckets[i] /= 2
		h.weight += int(h.buckets[i])
	}
}

func (h *delayHistogram) quantile() time.Duration {
	above := h.weight * (1000 - h.permille) / 1000
	for i := len(h.buckets) - 1; i > 0; i-- {
		above -= int(h.buckets[i])
		if above < 0 {
			return histogramEdge(i)
		}
	}
	return 0
}
