package wire

import (
	"encoding/binary"
	"math/bits"
	"time"
)

// MaxAckRanges bounds the packet number ranges and, separately, the symbol
// ranges of one ack block. 64 keep a window of 960 symbols at 14 % overhead
// where 8 would cost 73 %.
const MaxAckRanges = 64

// AckRange is an inclusive range of packet numbers or symbol ids.
type AckRange struct{ Lo, Hi uint64 }

// Ack tells a sender what its peer holds. Ranges are in descending order and
// disjoint; Ranges[0] ends at the largest packet number. Symbols above Next
// are only listed when packet numbers do not already tell, that is when
// symbols were restored by repair. Slices are reused by Parse.
type Ack struct {
	Delay     time.Duration // age of the largest packet number when the ack left
	Next      SymbolID      // lowest symbol that is not held: everything below is
	Equations uint8         // independent repair equations held and not yet solved
	Ranges    []AckRange
	Symbols   []AckRange // ascending, above Next
}

const (
	ackEquations = 0x80
	ackSymbols   = 0x40
	ackCount     = 0x3f // number of ranges less one

	ackDelayUnit = 16 * time.Microsecond
)

// ackDelayByte encodes a delay as a byte float: exponent in the top three
// bits, mantissa in the lower five, in units of 16 us, rounded down; at most 64 ms.
func ackDelayByte(d time.Duration) byte {
	if d <= 0 {
		return 0
	}
	u := uint64(d / ackDelayUnit)
	if u < 32 {
		return byte(u)
	}
	e := bits.Len64(u) - 5 // u>>(e-1) is in 32..63
	if e > 7 {
		return 0xff
	}
	return byte(e<<5) | byte(u>>(e-1))&0x1f
}

func ackDelay(b byte) time.Duration {
	e, m := b>>5, uint64(b&0x1f)
	if e > 0 {
		m = (m | 32) << (e - 1)
	}
	return time.Duration(m) * ackDelayUnit
}

// AckLen returns the encoded size of a with the first ranges packet number
// ranges and symbols symbol ranges.
func AckLen(a *Ack, ranges, symbols int) int {
	n := 3 + 1 + 3 + 1
	if a.Equations > 0 {
		n++
	}
	prev := uint64(0)
	for i, r := range a.Ranges[:ranges] {
		if i > 0 {
			n += uvarintLen(prev - r.Hi - 2)
		}
		n += uvarintLen(r.Hi - r.Lo)
		prev = r.Lo
	}
	if symbols > 0 {
		n++
		at := uint64(a.Next)
		for _, r := range a.Symbols[:symbols] {
			n += uvarintLen(r.Lo-at-1) + uvarintLen(r.Hi-r.Lo)
			at = r.Hi + 1
		}
	}
	return n
}

// AppendAck appends an ack block with at most the first ranges packet number
// ranges and the first symbols symbol ranges of a. It must have at least one
// range.
func AppendAck(b []byte, a *Ack, ranges, symbols int) []byte {
	ranges = min(ranges, len(a.Ranges), MaxAckRanges)
	symbols = min(symbols, len(a.Symbols), MaxAckRanges)
	b = appendUint24(b, Truncate24(a.Ranges[0].Hi))
	b = append(b, ackDelayByte(a.Delay))
	b = appendUint24(b, Truncate24(uint64(a.Next)))
	flags := byte(ranges - 1)
	if a.Equations > 0 {
		flags |= ackEquations
	}
	if symbols > 0 {
		flags |= ackSymbols
	}
	b = append(b, flags)
	if a.Equations > 0 {
		b = append(b, a.Equations)
	}
	prev := uint64(0)
	for i, r := range a.Ranges[:ranges] {
		if i > 0 {
			b = binary.AppendUvarint(b, prev-r.Hi-2)
		}
		b = binary.AppendUvarint(b, r.Hi-r.Lo)
		prev = r.Lo
	}
	if symbols > 0 {
		b = append(b, byte(symbols))
		at := uint64(a.Next)
		for _, r := range a.Symbols[:symbols] {
			b = binary.AppendUvarint(b, r.Lo-at-1)
			b = binary.AppendUvarint(b, r.Hi-r.Lo)
			at = r.Hi + 1
		}
	}
	return b
}

// ParseAck reads an ack block into a, whose slices it reuses, and returns the
// bytes after it. sent is the sender's next packet number and nextSymbol its
// next symbol id: the truncated fields expand near them. The ranges returned
// are well formed but may name numbers that were never sent; that is for the
// caller to judge.
func ParseAck(b []byte, sent PacketNumber, nextSymbol SymbolID, a *Ack) (rest []byte, err error) {
	if len(b) < 8 {
		return nil, ErrTruncated
	}
	largest := Expand24(uint24(b), uint64(sent))
	a.Delay = ackDelay(b[3])
	a.Next = SymbolID(Expand24(uint24(b[4:]), uint64(nextSymbol)))
	flags := b[7]
	b = b[8:]
	a.Equations = 0
	if flags&ackEquations != 0 {
		if len(b) == 0 {
			return nil, ErrTruncated
		}
		if a.Equations, b = b[0], b[1:]; a.Equations == 0 {
			return nil, ErrNotMinimal // no equations are said without the byte
		}
	}
	a.Ranges = a.Ranges[:0]
	a.Symbols = a.Symbols[:0]
	count := int(flags&ackCount) + 1
	hi := largest
	for i := range count {
		var v uint64
		var ok bool
		if i > 0 {
			if v, b, ok = uvarint(b); !ok {
				return nil, ErrNotMinimal
			}
			// v+1 numbers are missing between the ranges.
			if v >= hi || hi-v < 2 {
				return nil, ErrRange
			}
			hi -= v + 2
		}
		if v, b, ok = uvarint(b); !ok {
			return nil, ErrNotMinimal
		}
		if v > hi {
			return nil, ErrRange
		}
		a.Ranges = append(a.Ranges, AckRange{Lo: hi - v, Hi: hi})
		hi -= v
	}
	if flags&ackSymbols != 0 {
		if len(b) == 0 {
			return nil, ErrTruncated
		}
		n := int(b[0])
		b = b[1:]
		if n == 0 || n > MaxAckRanges {
			return nil, ErrRange
		}
		at := uint64(a.Next)
		for range n {
			var gap, span uint64
			var ok bool
			if gap, b, ok = uvarint(b); !ok {
				return nil, ErrNotMinimal
			}
			if span, b, ok = uvarint(b); !ok {
				return nil, ErrNotMinimal
			}
			if gap >= numberSpan || span >= numberSpan {
				return nil, ErrRange
			}
			lo := at + gap + 1
			a.Symbols = append(a.Symbols, AckRange{Lo: lo, Hi: lo + span})
			at = lo + span + 1
		}
	}
	return b, nil
}
