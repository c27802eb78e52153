package arq

import (
	"time"

	"github.com/openarkstudio/arknet-go/internal/wire"
)

// lossState decides when a packet counts as lost: by time alone, when it is
// still unacked one tolerance after a later-sent packet was acked (the idea of
// RACK, RFC 8985, with another window). The tolerance is the 99th percentile
// of how long overtaken packets of this path took to be acked all the same.
type lossState struct {
	largestAcked wire.PacketNumber
	anyAcked     bool
	// scan is the lowest packet number that may be overtaken and unresolved.
	// Packets are overtaken in the order of their numbers, so the first
	// unresolved one from here on has the earliest deadline.
	scan    wire.PacketNumber
	extents delayHistogram
	// lateness is how late the driver's wake-ups came of late: acks may wait
	// in the socket that long.
	lateness time.Duration
	missRate missRate
}

func newLossState() lossState {
	return lossState{extents: delayHistogram{permille: 990}, missRate: newMissRate()}
}

// tolerance is how long a packet may be overtaken before it is lost.
func (l *lossState) tolerance(r *rttState) time.Duration {
	floor := max(lossToleranceFloor, r.min/8)
	t := floor
	if l.extents.ready {
		t = max(floor, min(l.extents.value, r.ceiling()))
	}
	return t + l.lateness
}

// observeExtent takes how long a packet that is now acked had been overtaken;
// zero for a packet that came in order. Outliers are not learned: a share of
// datagrams that the path delivers very late is cheaper to send again.
func (l *lossState) observeExtent(x time.Duration, r *rttState) {
	if x <= r.ceiling() {
		l.extents.add(x)
	}
}

// observeLateness takes how long after its deadline a timeout was handled.
func (l *lossState) observeLateness(d time.Duration, r *rttState) {
	d = min(max(d, 0), r.ceiling())
	if d > l.lateness {
		l.lateness = d
		return
	}
	l.lateness -= (l.lateness - d) / 16
}

// missRate is a moving average of packets that were not acked on first look:
// lost, or later than the tolerance. It is kept in units of 2^-20.
type missRate struct {
	rate    int64
	samples int64
}

const (
	missRateOne     = 1 << 20
	missRateInitial = missRateOne / 50
	missRateGain    = 256 // steady-state averaging length in packets
	missRateFast    = 32  // averaging length at the start
)

func newMissRate() missRate { return missRate{rate: missRateInitial} }

func (m *missRate) observe(missed bool) {
	m.samples++
	length := min(max(m.samples, missRateFast), missRateGain)
	target := int64(0)
	if missed {
		target = missRateOne
	}
	m.rate += (target - m.rate) / length
}
