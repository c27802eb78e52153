package wire

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// expectation is what the receiver of a datagram knows when it arrives: the
// numbers near which the truncated ones expand.
type expectation struct {
	packet      uint64 // packet number expected next
	symbol      uint64 // lowest symbol missing
	sentPackets uint64 // own packets sent so far
	sentSymbols uint64 // own symbols sent so far
}

// inspector reads a datagram to its end with the parsers of this package, in
// the order of docs/protocol.md. It notes each field in a line and appends it
// again with the append functions.
type inspector struct {
	lines   []string
	rebuilt []byte
}

func (in *inspector) note(key, format string, args ...any) {
	in.lines = append(in.lines, strings.TrimRight(fmt.Sprintf("%-8s "+format, append([]any{key}, args...)...), " "))
}

// Reasons that the parsers leave to their callers.
var (
	errChecksum = errors.New("checksum does not match")
	errTrailing = errors.New("bytes behind the last field")
)

// refusals are the names of the reasons in the vectors.
var refusals = map[string]error{
	"checksum": errChecksum, "trailing": errTrailing,
	"truncated": ErrTruncated, "reserved": ErrReserved, "number": ErrNotMinimal, "range": ErrRange,
	"too-long": ErrTooLong, "duplicate": ErrDuplicate, "missing": ErrMissing, "param": ErrParam, "shape": ErrRecordShape,
}

// inspect reads one datagram under the key.
func inspect(d []byte, key ChecksumKey, e expectation) (*inspector, error) {
	in := &inspector{}
	body, ok := VerifyChecksum(d, key)
	if !ok {
		return in, errChecksum
	}
	read := in.long
	if k := Classify(d); k == KindShort || k == KindInvalid {
		read = in.short
	}
	if err := read(body, e); err != nil {
		return in, err
	}
	in.rebuilt = AppendChecksum(in.rebuilt, 0, key)
	in.note("crc", "%x", d[len(d)-ChecksumLen:])
	return in, nil
}

var kindNames = map[Kind]string{
	KindHandshake: "handshake", KindVersions: "versions", KindRetry: "retry", KindReset: "reset",
}

func (in *inspector) long(b []byte, e expectation) error {
	first := b
	h, b, err := ParseLong(b)
	if err != nil {
		return err
	}
	reserved := first[0] & longReserved // of another version, so not ours to judge
	extra := ""
	if reserved != 0 {
		extra = fmt.Sprintf(" reserved=%x", reserved)
	}
	in.note("long", "kind=%s version=%08x dst=%08x src=%08x number=%d%s",
		kindNames[h.Kind], h.Version, uint32(h.Dst), uint32(h.Src), h.Number, extra)
	in.rebuilt = AppendLong(nil, h)
	in.rebuilt[0] |= reserved
	switch h.Kind {
	case KindVersions:
		return in.versions(b)
	case KindRetry:
		in.note("retry", "body=%x", b)
		in.rebuilt = append(in.rebuilt, b...)
		return nil
	case KindReset:
		q, err := ParseReset(b)
		if err != nil {
			return err
		}
		in.note("reset", "number=%d checksum=%08x", q.Number, q.Checksum)
		// AppendReset makes a whole datagram of it.
		whole := AppendReset(nil, h.Src, q)
		in.rebuilt = append(in.rebuilt, whole[LongHeaderLen:len(whole)-ChecksumLen]...)
		return nil
	}
	for len(b) > 0 {
		var r Record
		before := b
		if r, b, err = NextRecord(b); err != nil {
			return err
		}
		switch r.Type {
		case RecordPadding, RecordPing, RecordCrypto, RecordCryptoAck, RecordClose:
			if err := in.record(r, len(before)-len(b)); err != nil {
				return err
			}
		default:
			return ErrReserved
		}
	}
	return nil
}

func (in *inspector) versions(b []byte) error {
	if len(b)%4 != 0 {
		return errTrailing
	}
	var names []string
	for ; len(b) > 0; b = b[4:] {
		v := binary.BigEndian.Uint32(b)
		names = append(names, fmt.Sprintf("%08x", v))
		in.rebuilt = AppendVersions(in.rebuilt, v)
	}
	in.note("versions", "%s", strings.Join(names, ","))
	return nil
}

func (in *inspector) short(b []byte, e expectation) error {
	h, b, err := ParseShort(b)
	if err != nil {
		return err
	}
	packet := ""
	if !h.AckOnly() {
		packet = fmt.Sprintf(" packet=%d", Expand24(h.Number, e.packet))
	}
	in.note("short", "dst=%08x number=%d%s flags=%s payload=%s", uint32(h.Dst), h.Number, packet, flagNames(h),
		[]string{"none", "data", "repair"}[h.Payload])
	in.rebuilt = AppendShort(nil, h)
	if h.Ack {
		if b, err = in.ack(b, e); err != nil {
			return err
		}
	}
	if h.Control {
		if b, err = in.controls(b, h.Payload != PayloadNone); err != nil {
			return err
		}
	}
	switch h.Payload {
	case PayloadData:
		return in.symbol(b, e)
	case PayloadRepair:
		r, coded, err := ParseRepair(b)
		if err != nil {
			return err
		}
		first := Expand24(r.First, e.symbol)
		in.note("repair", "first=%d span=%d seed=%d data=%x", first, r.Span, r.Seed, coded)
		r.First = Truncate24(first)
		in.rebuilt = append(AppendRepair(in.rebuilt, r), coded...)
		return nil
	}
	if len(b) > 0 {
		return errTrailing
	}
	return nil
}

func flagNames(h Short) string {
	var names []string
	for _, f := range []struct {
		set  bool
		name string
	}{{h.KeyPhase, "key-phase"}, {h.Ack, "ack"}, {h.Control, "control"}} {
		if f.set {
			names = append(names, f.name)
		}
	}
	if len(names) == 0 {
		return "-"
	}
	return strings.Join(names, ",")
}

func (in *inspector) ack(b []byte, e expectation) ([]byte, error) {
	var a Ack
	rest, err := ParseAck(b, PacketNumber(e.sentPackets), SymbolID(e.sentSymbols), &a)
	if err != nil {
		return nil, err
	}
	in.note("ack", "delay=%dus next=%d equations=%d ranges=%s symbols=%s",
		a.Delay.Microseconds(), a.Next, a.Equations, rangeNames(a.Ranges), rangeNames(a.Symbols))
	in.rebuilt = AppendAck(in.rebuilt, &a, len(a.Ranges), len(a.Symbols))
	return rest, nil
}

func rangeNames(ranges []AckRange) string {
	if len(ranges) == 0 {
		return "-"
	}
	var names []string
	for _, r := range ranges {
		names = append(names, fmt.Sprintf("%d-%d", r.Lo, r.Hi))
	}
	return strings.Join(names, ",")
}

// controls reads the control records of a short datagram.
func (in *inspector) controls(b []byte, payload bool) ([]byte, error) {
	for len(b) > 0 {
		before := b
		r, rest, err := NextRecord(b)
		if err != nil {
			return nil, err
		}
		b = rest
		switch r.Type {
		case RecordCrypto, RecordCryptoAck:
			return nil, ErrReserved
		case RecordEnd:
			if !payload {
				return nil, ErrReserved
			}
		}
		if err := in.record(r, len(before)-len(b)); err != nil {
			return nil, err
		}
		if r.Type == RecordEnd {
			return b, nil
		}
	}
	if payload {
		return nil, ErrTruncated
	}
	return nil, nil
}

// record takes one control record, which had size bytes.
func (in *inspector) record(r Record, size int) error {
	b := in.rebuilt
	switch r.Type {
	case RecordPadding:
		in.note("padding", "%d", size)
		b = append(b, make([]byte, size)...)
	case RecordEnd:
		in.note("end", "")
		b = AppendEnd(b)
	case RecordPing:
		in.note("ping", "")
		b = AppendPing(b)
	case RecordWindow:
		in.note("window", "limit=%d", r.Value)
		b = AppendWindow(b, r.Value)
	case RecordClose:
		space := "application"
		if r.Transport {
			space = "transport"
		}
		in.note("close", "space=%s code=%d reason=%q", space, r.Value, r.Data)
		b = AppendClose(b, r.Transport, r.Value, string(r.Data))
	case RecordCrypto:
		in.note("crypto", "offset=%d data=%x", r.Value, r.Data)
		b = AppendCrypto(b, r.Value, r.Data)
	case RecordCryptoAck:
		in.note("crypto-ack", "length=%d number=%d", r.Value, r.Number)
		b = AppendCryptoAck(b, r.Value, r.Number)
	case RecordPathChallenge:
		in.note("path-challenge", "data=%x", r.Data)
		b = AppendPathChallenge(b, [PathDataLen]byte(r.Data))
	case RecordPathResponse:
		in.note("path-response", "data=%x", r.Data)
		b = AppendPathResponse(b, [PathDataLen]byte(r.Data))
	}
	in.rebuilt = b
	if r.Type == RecordCrypto && r.Value == 0 {
		return in.params(r.Data)
	}
	return nil
}

// params reads the parameters of plain mode if all of them are there.
func (in *inspector) params(b []byte) error {
	if len(b) < 2 || len(b)-2 < int(binary.BigEndian.Uint16(b)) {
		return nil
	}
	p, err := ParseParams(b[2:][:binary.BigEndian.Uint16(b)])
	if err != nil {
		return err
	}
	line := "nonce=" + hex.EncodeToString(p.Nonce[:])
	for id := paramRecvWindow; id <= paramLast; id++ {
		if v := *p.number(id); v != 0 {
			line += fmt.Sprintf(" %s=%d", paramNames[id], v)
		}
	}
	in.note("params", "%s", line)
	return nil
}

var paramNames = map[paramID]string{
	1: "nonce", 2: "recv-window", 3: "symbol-window", 4: "max-message", 5: "max-datagram",
	6: "max-repair-span", 7: "max-repair-held", 8: "sends-repairs",
}

var messageNames = map[RecordKind]string{
	RecordWhole: "whole", RecordStream: "stream", RecordFirst: "first", RecordContinue: "continue", RecordFin: "fin",
}

// symbol reads the payload of a data datagram.
func (in *inspector) symbol(b []byte, e expectation) error {
	truncated, b, err := ParseSymbolID(b)
	if err != nil {
		return err
	}
	id := Expand24(truncated, e.symbol)
	in.note("symbol", "id=%d", id)
	in.rebuilt = AppendSymbolID(in.rebuilt, SymbolID(id))
	for len(b) > 0 {
		var r MessageRecord
		if r, b, err = NextMessageRecord(b); err != nil {
			return err
		}
		switch r.Kind {
		case RecordFin:
			in.note("fin", "")
		case RecordFirst:
			in.note("first", "total=%d data=%x", r.Total, r.Data)
		default:
			in.note(messageNames[r.Kind], "data=%x", r.Data)
		}
		in.rebuilt = AppendMessageRecord(in.rebuilt, r.Kind, r.Total, r.Data)
	}
	return nil
}
