package wire

import "encoding/binary"

// Version is the protocol version of this package, carried by every long header.
const Version uint32 = 0x41524b01

// Kind tells datagrams apart by their first byte.
type Kind uint8

const (
	// KindInvalid is a first byte that no version of the protocol uses.
	KindInvalid Kind = iota
	// KindShort carries an established session: acks, control records, one payload.
	KindShort
	// KindHandshake carries CRYPTO records before the session has its key.
	KindHandshake
	// KindVersions answers a long header of an unknown version.
	KindVersions
	// KindRetry is reserved for the stateless cookie answer.
	KindRetry
	// KindReset answers a short datagram that names no session.
	KindReset
)

// First byte of a datagram: 1tttrrrr is a long header of type ttt, 01KRACTT a
// short one (key phase, reserved, ack block, control records, payload type).
const (
	longBit  = 0x80
	shortBit = 0x40

	longHandshake = 0 << 4
	longVersions  = 1 << 4
	longRetry     = 2 << 4
	longReset     = 3 << 4
	longTypeMask  = 0x70
	longReserved  = 0x0f

	shortKeyPhase = 0x20
	shortReserved = 0x10
	shortAck      = 0x08
	shortControl  = 0x04
	shortPayload  = 0x03
)

// Header sizes in bytes.
const (
	ShortHeaderLen = 1 + 4 + 3
	LongHeaderLen  = 1 + 4 + 4 + 4 + 4
	SymbolIDLen    = 3
)

// Classify returns the kind of a datagram, without validating the rest of it.
func Classify(b []byte) Kind {
	if len(b) == 0 {
		return KindInvalid
	}
	switch first := b[0]; {
	case first&longBit != 0:
		switch first & longTypeMask {
		case longHandshake:
			return KindHandshake
		case longVersions:
			return KindVersions
		case longRetry:
			return KindRetry
		case longReset:
			return KindReset
		}
		return KindInvalid
	case first&shortBit != 0:
		return KindShort
	}
	return KindInvalid
}

// Destination returns the connection id that a short or long header is
// addressed to. It is the first step of demultiplexing; nothing is verified.
func Destination(b []byte) (ConnID, bool) {
	switch Classify(b) {
	case KindShort:
		if len(b) < ShortHeaderLen {
			return 0, false
		}
		return ConnID(binary.BigEndian.Uint32(b[1:])), true
	case KindHandshake, KindVersions, KindRetry, KindReset:
		if len(b) < LongHeaderLen {
			return 0, false
		}
		return ConnID(binary.BigEndian.Uint32(b[5:])), true
	}
	return 0, false
}

// Long is the header of datagrams that do not belong to an established
// session. Number counts the handshake datagrams of one side.
type Long struct {
	Kind    Kind
	Version uint32
	Dst     ConnID
	Src     ConnID
	Number  uint32
}

// AppendLong appends the header. The kind must be one of the long kinds.
func AppendLong(b []byte, h Long) []byte {
	first := byte(longBit)
	switch h.Kind {
	case KindVersions:
		first |= longVersions
	case KindRetry:
		first |= longRetry
	case KindReset:
		first |= longReset
	default:
		first |= longHandshake
	}
	b = append(b, first)
	b = binary.BigEndian.AppendUint32(b, h.Version)
	b = binary.BigEndian.AppendUint32(b, uint32(h.Dst))
	b = binary.BigEndian.AppendUint32(b, uint32(h.Src))
	return binary.BigEndian.AppendUint32(b, h.Number)
}

// ParseLong splits a long datagram, checksum already removed, into its header
// and the bytes after it. Reserved bits are only judged for a known version:
// a later version may use them, and it must still get its answer.
func ParseLong(b []byte) (h Long, rest []byte, err error) {
	h.Kind = Classify(b)
	if h.Kind == KindInvalid || h.Kind == KindShort {
		return h, nil, ErrReserved
	}
	if len(b) < LongHeaderLen {
		return h, nil, ErrTruncated
	}
	h.Version = binary.BigEndian.Uint32(b[1:])
	h.Dst = ConnID(binary.BigEndian.Uint32(b[5:]))
	h.Src = ConnID(binary.BigEndian.Uint32(b[9:]))
	h.Number = binary.BigEndian.Uint32(b[13:])
	if h.Version == Version && b[0]&longReserved != 0 {
		return h, nil, ErrReserved
	}
	return h, b[LongHeaderLen:], nil
}

// PayloadType says what ends a short datagram.
type PayloadType uint8

const (
	// PayloadNone ends after acks and control records.
	PayloadNone PayloadType = 0
	// PayloadData is a symbol id and the records of that source symbol.
	PayloadData PayloadType = 1
	// PayloadRepair is a repair header and a coded symbol.
	PayloadRepair PayloadType = 2
)

// Short is the fixed part of a short datagram.
type Short struct {
	Dst      ConnID
	Number   uint32 // truncated to 24 bits
	KeyPhase bool
	Ack      bool // an ack block follows
	Control  bool // control records follow
	Payload  PayloadType
}

// AckOnly reports whether the datagram elicits no ack. Such datagrams are
// numbered in a space of their own, so that losing one leaves no gap in the
// ack ranges of the other.
func (h Short) AckOnly() bool { return !h.Control && h.Payload == PayloadNone }

// AppendShort appends the header.
func AppendShort(b []byte, h Short) []byte {
	first := byte(shortBit) | byte(h.Payload)&shortPayload
	if h.KeyPhase {
		first |= shortKeyPhase
	}
	if h.Ack {
		first |= shortAck
	}
	if h.Control {
		first |= shortControl
	}
	b = append(b, first)
	b = binary.BigEndian.AppendUint32(b, uint32(h.Dst))
	return appendUint24(b, h.Number)
}

// ParseShort splits a short datagram, checksum already removed, into its
// header and the bytes after it.
func ParseShort(b []byte) (h Short, rest []byte, err error) {
	if Classify(b) != KindShort {
		return h, nil, ErrReserved
	}
	if len(b) < ShortHeaderLen {
		return h, nil, ErrTruncated
	}
	first := b[0]
	h.Payload = PayloadType(first & shortPayload)
	if first&shortReserved != 0 || h.Payload > PayloadRepair {
		return h, nil, ErrReserved
	}
	h.KeyPhase = first&shortKeyPhase != 0
	h.Ack = first&shortAck != 0
	h.Control = first&shortControl != 0
	h.Dst = ConnID(binary.BigEndian.Uint32(b[1:]))
	h.Number = uint24(b[5:])
	return h, b[ShortHeaderLen:], nil
}

// AppendSymbolID appends a truncated symbol id, which starts a data payload.
func AppendSymbolID(b []byte, id SymbolID) []byte {
	return appendUint24(b, Truncate24(uint64(id)))
}

// ParseSymbolID reads a truncated symbol id.
func ParseSymbolID(b []byte) (truncated uint32, rest []byte, err error) {
	if len(b) < SymbolIDLen {
		return 0, nil, ErrTruncated
	}
	return uint24(b), b[SymbolIDLen:], nil
}
