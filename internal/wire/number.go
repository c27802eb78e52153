package wire

// ConnID names a session at its receiver. It is chosen at random by the side
// that receives datagrams carrying it, so two sides of a session have
// different ids. Zero means "not known yet" and never names a session.
type ConnID uint32

// PacketNumber counts datagrams of one direction and one packet number space.
// It is never reused, not even for a retransmission (RFC 9000, section 12.3).
type PacketNumber uint64

// SymbolID counts the source symbols of one direction. A retransmitted symbol
// keeps its id under a new packet number.
type SymbolID uint64

// MaxNumber is the largest value of a variable-length number: nine bytes of
// seven bits. No function appends a larger one that a peer could read.
const MaxNumber = 1<<63 - 1

const (
	numberBits = 24
	numberSpan = 1 << numberBits
	numberMask = numberSpan - 1
	numberEnd  = 1 << 62 // packet numbers and symbol ids stay below
)

// Truncate24 returns the low 24 bits that travel on the wire.
func Truncate24(full uint64) uint32 { return uint32(full & numberMask) }

// Expand24 returns the number closest to expected whose low 24 bits are
// truncated (RFC 9000, appendix A.3). Numbers below zero do not exist, so near
// zero the smallest non-negative candidate wins, and so does the largest one
// near the end. Bits of truncated above the 24th are ignored.
func Expand24(truncated uint32, expected uint64) uint64 {
	candidate := expected&^uint64(numberMask) | uint64(truncated&numberMask)
	switch {
	case candidate < expected && expected-candidate >= numberSpan/2 && candidate < numberEnd-numberSpan:
		return candidate + numberSpan
	case candidate > expected && candidate-expected > numberSpan/2 && candidate >= numberSpan:
		return candidate - numberSpan
	}
	return candidate
}

func appendUint24(b []byte, v uint32) []byte {
	return append(b, byte(v>>16), byte(v>>8), byte(v))
}

func uint24(b []byte) uint32 {
	_ = b[2]
	return uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2])
}

// uvarint reads a base-128 varint of at most nine bytes (63 bits) in its
// shortest form. ok is false when b is cut or the value is not minimal.
func uvarint(b []byte) (v uint64, rest []byte, ok bool) {
	for i := 0; i < len(b) && i < 9; i++ {
		c := b[i]
		v |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			if c == 0 && i > 0 {
				return 0, nil, false
			}
			return v, b[i+1:], true
		}
	}
	return 0, nil, false
}

func uvarintLen(v uint64) int {
	n := 1
	for v >= 0x80 {
		v >>= 7
		n++
	}
	return n
}
