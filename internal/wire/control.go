package wire

import (
	"encoding/binary"
	"unicode/utf8"
)

// RecordType is the first byte of a control record.
type RecordType uint8

// Control records. PADDING repeats; END separates the records from a payload.
const (
	RecordPadding       RecordType = 0x00
	RecordEnd           RecordType = 0x01
	RecordPing          RecordType = 0x02
	RecordWindow        RecordType = 0x03
	RecordClose         RecordType = 0x04
	RecordCrypto        RecordType = 0x05
	RecordCryptoAck     RecordType = 0x06
	RecordPathChallenge RecordType = 0x07
	RecordPathResponse  RecordType = 0x08
)

// Limits of control records.
const (
	// MaxReasonLen is the longest close reason in bytes.
	MaxReasonLen = 255
	// MaxCryptoLen bounds the handshake bytes of one direction: a TLS server
	// flight with a long certificate chain, several times over.
	MaxCryptoLen = 64 << 10
	// PathDataLen is the size of a path challenge.
	PathDataLen = 8
)

// Record is one control record. Only the fields of its type are set; Data
// aliases the parsed datagram.
type Record struct {
	Type RecordType
	// Value is WINDOW's byte limit, CLOSE's code, CRYPTO's offset, CRYPTO_ACK's
	// contiguous length.
	Value uint64
	// Number is CRYPTO_ACK's latest handshake datagram received.
	Number uint64
	// Transport marks a CLOSE that the transport decided, not the application.
	Transport bool
	// Data is CLOSE's reason, CRYPTO's bytes, the path data.
	Data []byte
}

// AppendPing appends a record that only asks for an ack.
func AppendPing(b []byte) []byte { return append(b, byte(RecordPing)) }

// AppendEnd appends the separator before a payload.
func AppendEnd(b []byte) []byte { return append(b, byte(RecordEnd)) }

// AppendWindow appends a flow control limit: the sum of all source symbol
// bytes that the peer may send from the start of the session.
func AppendWindow(b []byte, limit uint64) []byte {
	return binary.AppendUvarint(append(b, byte(RecordWindow)), limit)
}

// AppendClose appends the end of the session. A reason longer than MaxReasonLen
// bytes is cut before the character that crosses the limit. A code above
// MaxNumber is sent as MaxNumber: a wrong code is better than a close that the
// peer cannot read.
func AppendClose(b []byte, transport bool, code uint64, reason string) []byte {
	reason = cutReason(reason)
	code = min(code, MaxNumber)
	space := byte(0)
	if transport {
		space = 1
	}
	b = append(b, byte(RecordClose), space)
	b = binary.AppendUvarint(b, code)
	b = append(b, byte(len(reason)))
	return append(b, reason...)
}

func cutReason(reason string) string {
	if len(reason) <= MaxReasonLen {
		return reason
	}
	n := MaxReasonLen
	for n > MaxReasonLen-utf8.UTFMax+1 && !utf8.RuneStart(reason[n]) {
		n--
	}
	return reason[:n]
}

// AppendCrypto appends handshake bytes at their offset.
func AppendCrypto(b []byte, offset uint64, data []byte) []byte {
	b = binary.AppendUvarint(append(b, byte(RecordCrypto)), offset)
	b = binary.AppendUvarint(b, uint64(len(data)))
	return append(b, data...)
}

// CryptoOverhead is the most that AppendCrypto adds to its data.
const CryptoOverhead = 1 + 3 + 3

// AppendCryptoAck appends how many handshake bytes are held without a gap, and
// the latest handshake datagram seen, from which the peer takes an RTT sample.
func AppendCryptoAck(b []byte, length, number uint64) []byte {
	b = binary.AppendUvarint(append(b, byte(RecordCryptoAck)), length)
	return binary.AppendUvarint(b, number)
}

// AppendPathChallenge appends a path validation request (RFC 9000, section 8.2).
func AppendPathChallenge(b []byte, data [PathDataLen]byte) []byte {
	return append(append(b, byte(RecordPathChallenge)), data[:]...)
}

// AppendPathResponse appends the answer to a path challenge.
func AppendPathResponse(b []byte, data [PathDataLen]byte) []byte {
	return append(append(b, byte(RecordPathResponse)), data[:]...)
}

// NextRecord reads one control record and returns the bytes after it. PADDING
// is returned once for a whole run of it.
func NextRecord(b []byte) (r Record, rest []byte, err error) {
	if len(b) == 0 {
		return r, nil, ErrTruncated
	}
	r.Type = RecordType(b[0])
	b = b[1:]
	var ok bool
	switch r.Type {
	case RecordPadding:
		for len(b) > 0 && b[0] == byte(RecordPadding) {
			b = b[1:]
		}
		return r, b, nil
	case RecordEnd, RecordPing:
		return r, b, nil
	case RecordWindow:
		if r.Value, b, ok = uvarint(b); !ok {
			return r, nil, ErrNotMinimal
		}
		return r, b, nil
	case RecordClose:
		if len(b) == 0 {
			return r, nil, ErrTruncated
		}
		if b[0] > 1 {
			return r, nil, ErrReserved
		}
		r.Transport = b[0] == 1
		if r.Value, b, ok = uvarint(b[1:]); !ok {
			return r, nil, ErrNotMinimal
		}
		if len(b) == 0 || len(b) < 1+int(b[0]) {
			return r, nil, ErrTruncated
		}
		n := int(b[0])
		r.Data = b[1 : 1+n]
		return r, b[1+n:], nil
	case RecordCrypto:
		if r.Value, b, ok = uvarint(b); !ok {
			return r, nil, ErrNotMinimal
		}
		var n uint64
		if n, b, ok = uvarint(b); !ok {
			return r, nil, ErrNotMinimal
		}
		if r.Value > MaxCryptoLen || n > MaxCryptoLen-r.Value {
			return r, nil, ErrTooLong
		}
		if n > uint64(len(b)) {
			return r, nil, ErrTruncated
		}
		r.Data = b[:n]
		return r, b[n:], nil
	case RecordCryptoAck:
		if r.Value, b, ok = uvarint(b); !ok {
			return r, nil, ErrNotMinimal
		}
		if r.Number, b, ok = uvarint(b); !ok {
			return r, nil, ErrNotMinimal
		}
		return r, b, nil
	case RecordPathChallenge, RecordPathResponse:
		if len(b) < PathDataLen {
			return r, nil, ErrTruncated
		}
		r.Data = b[:PathDataLen]
		return r, b[PathDataLen:], nil
	}
	return r, nil, ErrReserved
}
