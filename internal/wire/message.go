package wire

import "encoding/binary"

// A source symbol is a sequence of message records. Each starts with two
// bytes: the length of its bytes in the lower 15 bits, and one bit that says
// whether attributes follow. Without attributes it is one whole message on
// channel 0, reliable and ordered: the common case costs two bytes.
const (
	// RecordHeaderLen is the size of a record header without attributes.
	RecordHeaderLen = 2
	// MaxRecordLen is the most bytes that one record carries.
	MaxRecordLen = 1<<15 - 1

	recordAttributes = 0x8000
)

// Attribute bits of a record.
const (
	attrStream   = 0x01 // bytes of the stream, no message boundary
	attrFin      = 0x02 // the direction ends here; no bytes follow ever
	attrFirst    = 0x04 // first fragment; the length of the whole message follows
	attrContinue = 0x08 // further fragment of the message begun before
	attrChannel  = 0x10 // reserved: a channel number follows
	attrMode     = 0x20 // reserved: a delivery mode, id and offset follow
	attrKnown    = attrStream | attrFin | attrFirst | attrContinue
)

// RecordKind says what the bytes of a message record are.
type RecordKind uint8

const (
	// RecordWhole is one whole message.
	RecordWhole RecordKind = iota
	// RecordStream is a piece of the byte stream.
	RecordStream
	// RecordFirst begins a message of Total bytes.
	RecordFirst
	// RecordContinue goes on with the message begun before.
	RecordContinue
	// RecordFin ends the direction.
	RecordFin
)

// MessageRecord is one record of a source symbol; Data aliases the symbol.
type MessageRecord struct {
	Kind  RecordKind
	Total uint64 // of RecordFirst
	Data  []byte
}

// RecordOverhead is the header size of a record of the kind.
func RecordOverhead(kind RecordKind, total uint64) int {
	switch kind {
	case RecordWhole:
		return RecordHeaderLen
	case RecordFirst:
		return RecordHeaderLen + 1 + uvarintLen(total)
	}
	return RecordHeaderLen + 1
}

// AppendMessageRecord appends a record with its bytes, at most MaxRecordLen.
func AppendMessageRecord(b []byte, kind RecordKind, total uint64, data []byte) []byte {
	return append(AppendRecordHeader(b, kind, total, len(data)), data...)
}

// AppendRecordHeader appends the header of a record of n bytes.
func AppendRecordHeader(b []byte, kind RecordKind, total uint64, n int) []byte {
	if kind == RecordWhole {
		return binary.BigEndian.AppendUint16(b, uint16(n))
	}
	b = binary.BigEndian.AppendUint16(b, recordAttributes|uint16(n))
	switch kind {
	case RecordStream:
		b = append(b, attrStream)
	case RecordFirst:
		b = binary.AppendUvarint(append(b, attrFirst), total)
	case RecordContinue:
		b = append(b, attrContinue)
	case RecordFin:
		b = append(b, attrFin)
	}
	return b
}

// SetRecordLen rewrites the length of the record header at the start of b,
// which lets a stream record grow while its symbol is still open.
func SetRecordLen(b []byte, n int) {
	v := binary.BigEndian.Uint16(b)&recordAttributes | uint16(n)
	binary.BigEndian.PutUint16(b, v)
}

// NextMessageRecord reads one record and returns the bytes after it.
func NextMessageRecord(b []byte) (r MessageRecord, rest []byte, err error) {
	if len(b) < RecordHeaderLen {
		return r, nil, ErrTruncated
	}
	head := binary.BigEndian.Uint16(b)
	n := int(head &^ recordAttributes)
	b = b[RecordHeaderLen:]
	if head&recordAttributes != 0 {
		if len(b) == 0 {
			return r, nil, ErrTruncated
		}
		attr := b[0]
		b = b[1:]
		if attr&^attrKnown != 0 {
			return r, nil, ErrReserved
		}
		switch attr {
		case attrStream:
			r.Kind = RecordStream
		case attrFin:
			r.Kind = RecordFin
			if n != 0 {
				return r, nil, ErrRecordShape
			}
		case attrFirst:
			r.Kind = RecordFirst
			var ok bool
			if r.Total, b, ok = uvarint(b); !ok {
				return r, nil, ErrNotMinimal
			}
			if uint64(n) >= r.Total {
				return r, nil, ErrRecordShape
			}
		case attrContinue:
			r.Kind = RecordContinue
		default:
			return r, nil, ErrReserved
		}
		if n == 0 && r.Kind != RecordFin {
			return r, nil, ErrRecordShape
		}
	}
	if n > len(b) {
		return r, nil, ErrTruncated
	}
	r.Data = b[:n]
	return r, b[n:], nil
}
