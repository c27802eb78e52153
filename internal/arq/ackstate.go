package arq

import (
	"time"

	"github.com/openarkstudio/arknet-go/internal/wire"
)

// ackState is the receiver's side of acknowledgement: which packet numbers
// arrived, and when that has to be told.
type ackState struct {
	received  rangeSet
	largest   wire.PacketNumber
	largestAt Time
	any       bool
	unacked   int  // arrivals since an ack left
	deadline  Time // when an ack has to leave, never = nothing to tell

	// Ranges are reported for one and a half to three round trips: marks are
	// the largest number at the last two ticks of that clock.
	markAt    Time
	markOld   wire.PacketNumber
	markNew   wire.PacketNumber
	fullAt    Time // when all ranges were last reported
	truncated bool // the last data datagram could not carry all of them
}

// expand recovers a truncated packet number.
func (a *ackState) expand(truncated uint32) wire.PacketNumber {
	expected := uint64(0)
	if a.any {
		expected = uint64(a.largest) + 1
	}
	return wire.PacketNumber(wire.Expand24(truncated, expected))
}

// seen reports whether the packet number is known to have arrived.
func (a *ackState) seen(pn wire.PacketNumber) bool { return a.received.contains(uint64(pn)) }

// arrived notes an ack-eliciting packet and schedules its ack. The timer is
// never restarted by later arrivals, else a fast flow would starve its acks.
func (a *ackState) arrived(now Time, pn wire.PacketNumber, delay time.Duration) {
	gap := a.any && (pn > a.largest+1 || pn < a.largest) || !a.any && pn > 0
	a.received.add(uint64(pn), uint64(pn))
	if extra := len(a.received.r) - maxReceivedRanges; extra > 0 {
		a.received.dropFirst(extra)
	}
	if !a.any || pn > a.largest {
		a.largest, a.largestAt, a.any = pn, now, true
	}
	if gap {
		delay = ackUrgentDelay
	}
	a.schedule(now, delay)
}

// schedule asks for an ack after delay, or earlier if one is due already.
func (a *ackState) schedule(now Time, delay time.Duration) {
	a.unacked++
	if a.unacked >= ackEvery {
		delay = 0
	}
	a.deadline = min(a.deadline, now.add(delay))
}

// due is when an ack has to leave, by itself if nothing else does.
func (a *ackState) due() Time {
	if a.truncated {
		return min(a.deadline, a.fullAt.add(fullAckInterval))
	}
	return a.deadline
}

// age drops ranges that the peer was told about for long enough.
func (a *ackState) age(now Time, smoothed time.Duration) {
	if now.sub(a.markAt) <= max(smoothed*3/2, 15*time.Millisecond) {
		return
	}
	a.markAt, a.markOld, a.markNew = now, a.markNew, a.largest
	n := 0
	for n < len(a.received.r)-1 && a.received.r[n].Hi < uint64(a.markOld) {
		n++
	}
	a.received.dropFirst(n)
}

// fill writes the state into ack: at most limit ranges, newest first. It
// reports whether all were taken.
func (a *ackState) fill(now Time, next wire.SymbolID, limit int, ack *wire.Ack) bool {
	ack.Delay = now.sub(a.largestAt)
	ack.Next = next
	ack.Equations = 0
	ack.Symbols = ack.Symbols[:0]
	ack.Ranges = ack.Ranges[:0]
	r := a.received.r
	for i := len(r) - 1; i >= 0 && len(ack.Ranges) < limit; i-- {
		ack.Ranges = append(ack.Ranges, r[i])
	}
	return len(ack.Ranges) == len(r)
}

// told notes that a datagram carries the state.
func (a *ackState) told(now Time, all bool) {
	a.deadline = never
	a.unacked = 0
	if all {
		a.fullAt = now
	}
}
