package wire

import "encoding/binary"

// ResetLen is the size of a reset without its checksum. A reset is a long
// datagram and only answers short ones, so two ends that forgot each other cannot
// keep a loop alive, and even the shortest datagram that has a quote pays for its
// answer within the limit of three times what was received.
const ResetLen = LongHeaderLen + 3 + ChecksumLen

// Quote is the part of a short datagram that a reset sends back. Only who saw
// the datagram knows it, so a bystander cannot end a session with a reset; in
// plain mode an attacker on the path still can, as with every datagram.
type Quote struct {
	Number   uint32 // truncated packet number
	Checksum uint32
}

// QuoteOf reads the quote of a short datagram, checksum included. A datagram
// that elicits no ack has none: its sender keeps no record of it, and could not
// tell a true reset from a false one.
func QuoteOf(b []byte) (Quote, bool) {
	if Classify(b) != KindShort || len(b) < ShortHeaderLen+ChecksumLen ||
		b[0]&(shortControl|shortPayload) == 0 {
		return Quote{}, false
	}
	return Quote{
		Number:   uint24(b[5:]),
		Checksum: binary.BigEndian.Uint32(b[len(b)-ChecksumLen:]),
	}, true
}

// AppendReset appends the answer to a short datagram that named the unknown
// session id. The receiver does not know the peer's id, so it sends back the
// one that it was called by; the peer finds its session by address and quote.
func AppendReset(b []byte, unknown ConnID, q Quote) []byte {
	start := len(b)
	b = AppendLong(b, Long{Kind: KindReset, Version: Version, Dst: 0, Src: unknown})
	b = appendUint24(b, q.Number)
	b = binary.BigEndian.AppendUint32(b, q.Checksum)
	return AppendChecksum(b, start, HandshakeKey)
}

// ParseReset reads the rest of a reset after its long header.
func ParseReset(b []byte) (Quote, error) {
	if len(b) != 3+ChecksumLen {
		return Quote{}, ErrTruncated
	}
	return Quote{Number: uint24(b), Checksum: binary.BigEndian.Uint32(b[3:])}, nil
}
