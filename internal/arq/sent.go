package arq

import "github.com/openarkstudio/arknet-go/internal/wire"

// sentPacket is one ack-eliciting datagram whose fate is still watched.
type sentPacket struct {
	sent      Time
	overtaken Time // when a later-sent packet was first acked, 0 = not yet
	symbol    wire.SymbolID
	checksum  uint32 // as sent, to recognise a reset that quotes it
	size      int32
	payload   wire.PayloadType
	span      uint8 // symbols from symbol on that a repair covers
	carries   carriedRecords
	acked     bool
	lost      bool
	again     bool // a retransmission
}

// carriedRecords are the control records that need to be repeated when the
// packet that carried them is lost.
type carriedRecords uint8

const (
	carriesWindow carriedRecords = 1 << iota
	carriesClose
	carriesPing
)

func (p *sentPacket) resolved() bool { return p.acked || p.lost }

// sentLog holds the packets base..next-1 in a ring that grows on use. The
// numbers below base are forgotten.
type sentLog struct {
	ring  []sentPacket
	base  wire.PacketNumber
	next  wire.PacketNumber
	acked rangeSet // of base..next-1, so that a repeated ack costs no walk
	limit int      // most packets watched
}

func (l *sentLog) len() int { return int(l.next - l.base) }

// full reports whether nothing more can be sent for now. Settled packets at
// the old end make room, however young.
func (l *sentLog) full() bool {
	if l.len() < l.limit {
		return false
	}
	l.forget(never)
	return l.len() >= l.limit
}

func (l *sentLog) at(pn wire.PacketNumber) *sentPacket {
	return &l.ring[uint64(pn)&uint64(len(l.ring)-1)]
}

// push makes room for the next packet and returns its number and record.
func (l *sentLog) push() (wire.PacketNumber, *sentPacket) {
	if l.len() == len(l.ring) {
		l.grow()
	}
	pn := l.next
	l.next++
	p := l.at(pn)
	*p = sentPacket{}
	return pn, p
}

func (l *sentLog) grow() {
	old := *l
	l.ring = make([]sentPacket, max(16, 2*len(old.ring)))
	for pn := old.base; pn < old.next; pn++ {
		*l.at(pn) = *old.at(pn)
	}
}

// forget drops packets from the old end: acked ones, and lost ones sent before
// the time given, which are kept that long to notice a late ack. Packets never
// overtaken stay.
func (l *sentLog) forget(sentBefore Time) {
	for l.base < l.next {
		p := l.at(l.base)
		if !p.acked && !(p.lost && p.sent < sentBefore) {
			break
		}
		l.base++
	}
	l.acked.dropBelow(uint64(l.base))
}
