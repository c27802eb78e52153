package wire

import (
	"bytes"
	"testing"
)

// Every parser gets its fuzz target. Common to all: no panic; what was read is
// within what was given; and what was accepted is appended again to the same
// bytes, since every structure has one encoding.

// Structures to start from.
var (
	fuzzAcks = []Ack{
		{Ranges: []AckRange{{0, 0}}},
		{Delay: 1 << 20, Next: 289, Ranges: []AckRange{{100, 299}, {3, 50}, {0, 0}}},
		{Next: 2, Equations: 3, Ranges: []AckRange{{900, 999}}, Symbols: []AckRange{{3, 4}, {200, 299}}},
		{Next: 7, Ranges: manyRanges(MaxAckRanges, 999), Symbols: manySymbols(MaxAckRanges, 7)},
	}
	fuzzPath = [PathDataLen]byte{1, 2, 3, 4, 5, 6, 7, 8}
)

// seedFromVectors adds the bodies of all datagrams of the vectors, without
// their checksums.
func seedFromVectors(f *testing.F, add func(body []byte, e expectation)) {
	f.Helper()
	_, all := readVectors(f)
	for _, v := range all {
		if _, ok := v.value("hex"); !ok {
			continue
		}
		d, _, e := v.datagram(f)
		add(d[:len(d)-ChecksumLen], e)
	}
}

// inside reports whether part aliases whole, or is empty.
func inside(whole, part []byte) bool {
	for i := range whole {
		if len(part) > 0 && &whole[i] == &part[0] {
			return len(part) <= len(whole)-i
		}
	}
	return len(part) == 0
}

// FuzzDatagram reads whole datagrams as a receiver does.
func FuzzDatagram(f *testing.F) {
	seedFromVectors(f, func(b []byte, e expectation) {
		f.Add(b, e.packet, e.symbol, e.sentPackets, e.sentSymbols)
	})
	f.Fuzz(func(t *testing.T, body []byte, packet, symbol, sentPackets, sentSymbols uint64) {
		e := expectation{packet % numberEnd, symbol % numberEnd, sentPackets % numberEnd, sentSymbols % numberEnd}
		d := AppendChecksum(bytes.Clone(body), 0, 77)
		in, err := inspect(d, 77, e)
		if err == nil && !bytes.Equal(in.rebuilt, d) {
			t.Errorf("appended again:\n%x\nwant\n%x", in.rebuilt, d)
		}
	})
}

func FuzzHeader(f *testing.F) {
	seedFromVectors(f, func(b []byte, _ expectation) { f.Add(b) })
	f.Fuzz(func(t *testing.T, b []byte) {
		kind := Classify(b)
		dst, ok := Destination(b)
		long, rest, err := ParseLong(b)
		if err == nil {
			if long.Kind != kind || !ok || dst != long.Dst || kind == KindShort || kind == KindInvalid {
				t.Fatalf("kind %d, destination %#x, %v, header %+v", kind, dst, ok, long)
			}
			again := append(AppendLong(nil, long), rest...)
			if long.Version != Version {
				again[0] |= b[0] & longReserved
			}
			if !bytes.Equal(again, b) {
				t.Fatalf("appended again: %x, want %x", again, b)
			}
		}
		short, rest, err := ParseShort(b)
		if err == nil {
			if kind != KindShort || !ok || dst != short.Dst {
				t.Fatalf("kind %d, destination %#x, %v, header %+v", kind, dst, ok, short)
			}
			if again := append(AppendShort(nil, short), rest...); !bytes.Equal(again, b) {
				t.Fatalf("appended again: %x, want %x", again, b)
			}
		}
		if id, rest, err := ParseSymbolID(b); err == nil {
			if again := append(AppendSymbolID(nil, SymbolID(id)), rest...); !bytes.Equal(again, b) {
				t.Fatalf("symbol id appended again: %x, want %x", again, b)
			}
		}
	})
}

func FuzzChecksum(f *testing.F) {
	f.Add([]byte("123456789"), uint32(0), uint32(1))
	f.Add([]byte{}, uint32(5), uint32(5))
	f.Add(AppendChecksum([]byte("datagram"), 0, 9), uint32(9), uint32(0xffffffff))
	f.Fuzz(func(t *testing.T, b []byte, key, other uint32) {
		if body, ok := VerifyChecksum(b, ChecksumKey(key)); ok {
			if again := AppendChecksum(bytes.Clone(body), 0, ChecksumKey(key)); !bytes.Equal(again, b) {
				t.Fatalf("appended again: %x, want %x", again, b)
			}
		}
		d := AppendChecksum(bytes.Clone(b), 0, ChecksumKey(key))
		if body, ok := VerifyChecksum(d, ChecksumKey(key)); !ok || !bytes.Equal(body, b) {
			t.Fatalf("own checksum refused: %x, %v", body, ok)
		}
		if _, ok := VerifyChecksum(d, ChecksumKey(other)); ok != (other == key) {
			t.Fatalf("sent under %#x, received under %#x: accepted is %v", key, other, ok)
		}
	})
}

func FuzzExpand24(f *testing.F) {
	f.Add(uint32(0), uint64(0))
	f.Add(uint32(numberMask), uint64(numberSpan))
	f.Add(uint32(numberSpan/2), uint64(5*numberSpan))
	f.Add(uint32(0), uint64(numberEnd-1))
	f.Fuzz(func(t *testing.T, truncated uint32, expected uint64) {
		expected %= numberEnd
		full := Expand24(truncated, expected)
		if Truncate24(full) != truncated&numberMask || full >= numberEnd {
			t.Fatalf("Expand24(%#x, %#x) = %#x", truncated, expected, full)
		}
		// No other number with these bits is closer, unless it does not exist.
		for _, other := range []uint64{full + numberSpan, full - numberSpan} {
			if other >= numberEnd {
				continue // beyond the last, or below zero
			}
			if distance(other, expected) < distance(full, expected) {
				t.Fatalf("Expand24(%#x, %#x) = %#x, but %#x is closer", truncated, expected, full, other)
			}
		}
	})
}

func distance(a, b uint64) uint64 { return max(a, b) - min(a, b) }

func FuzzAck(f *testing.F) {
	for i := range fuzzAcks {
		a := &fuzzAcks[i]
		f.Add(AppendAck(nil, a, len(a.Ranges), len(a.Symbols)), uint64(1000), uint64(300))
	}
	f.Add(append([]byte{0xff, 0xff, 0xff, 0, 0xff, 0xff, 0xff, 0x3f}, bytes.Repeat([]byte{0xfe, 0xff, 0xff, 7, 0}, 64)...),
		uint64(numberEnd-1), uint64(0))
	f.Fuzz(func(t *testing.T, b []byte, sent, symbols uint64) {
		sent, symbols = sent%numberEnd, symbols%numberEnd
		var a Ack
		rest, err := ParseAck(b, PacketNumber(sent), SymbolID(symbols), &a)
		if cap(a.Ranges) > MaxAckRanges || cap(a.Symbols) > MaxAckRanges {
			t.Fatalf("room for %d and %d ranges", cap(a.Ranges), cap(a.Symbols))
		}
		if err != nil {
			return
		}
		checkRanges(t, &a)
		size := len(b) - len(rest)
		if n := AckLen(&a, len(a.Ranges), len(a.Symbols)); n != size {
			t.Fatalf("AckLen is %d, the block has %d bytes", n, size)
		}
		if again := AppendAck(nil, &a, len(a.Ranges), len(a.Symbols)); !bytes.Equal(again, b[:size]) {
			t.Fatalf("appended again: %x, want %x", again, b[:size])
		}
		// A block ends itself: what follows does not change how it is read.
		var alone Ack
		if rest, err := ParseAck(bytes.Clone(b[:size:size]), PacketNumber(sent), SymbolID(symbols), &alone); err != nil ||
			len(rest) != 0 || !equalAcks(&a, &alone) {
			t.Fatalf("without what follows: %+v, %v, want %+v", alone, err, a)
		}
	})
}

func FuzzControlRecord(f *testing.F) {
	for _, b := range [][]byte{
		{0, 0, 0, 2}, AppendEnd(nil), AppendPing(nil), AppendWindow(nil, 1<<40), AppendClose(nil, true, 5, "reason"),
		AppendCrypto(nil, 300, []byte("abc")), AppendCryptoAck(nil, 33, 400),
		AppendPathChallenge(nil, fuzzPath), AppendPathResponse(nil, fuzzPath),
	} {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, rest, err := NextRecord(b)
		if err != nil {
			return
		}
		if len(rest) >= len(b) || !inside(b, r.Data) {
			t.Fatalf("read %+v of %x, %d bytes left", r, b, len(rest))
		}
		size := len(b) - len(rest)
		in := &inspector{}
		_ = in.record(r, size) // appends r; the parameters inside have a target of their own
		if !bytes.Equal(in.rebuilt, b[:size]) {
			t.Fatalf("appended again: %x, want %x", in.rebuilt, b[:size])
		}
	})
}

func FuzzParams(f *testing.F) {
	f.Add(AppendParams(nil, &Params{Nonce: testNonce, MaxDatagram: MinDatagram}))
	f.Add(AppendParams(nil, &Params{
		Nonce: testNonce, RecvWindow: 4 << 20, SymbolWindow: 4096, MaxMessage: 16 << 20,
		MaxDatagram: 32767, MaxRepairSpan: 128, MaxRepairHeld: 512 << 10, SendsRepairs: 1,
	}))
	f.Add(append(AppendParams(nil, &Params{Nonce: testNonce, MaxDatagram: 1200}), 0x7f, 2, 1, 2))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := ParseParams(b)
		if err != nil {
			return
		}
		// Unknown parameters and zeros that were spelt out are left away.
		again := AppendParams(nil, &p)
		if len(again) > len(b) {
			t.Fatalf("%d bytes became %d", len(b), len(again))
		}
		if q, err := ParseParams(again); err != nil || q != p {
			t.Fatalf("read again %+v, %v, want %+v", q, err, p)
		}
	})
}

func FuzzMessageRecord(f *testing.F) {
	f.Add(AppendMessageRecord(nil, RecordWhole, 0, []byte("hello")))
	f.Add(AppendMessageRecord(nil, RecordStream, 0, []byte("hello")))
	f.Add(AppendMessageRecord(nil, RecordFirst, 70000, []byte("hello")))
	f.Add(AppendMessageRecord(nil, RecordContinue, 0, []byte("hello")))
	f.Add(AppendMessageRecord(nil, RecordFin, 0, nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, rest, err := NextMessageRecord(b)
		if err != nil {
			return
		}
		if len(rest) >= len(b) || !inside(b, r.Data) {
			t.Fatalf("read %+v of %x, %d bytes left", r, b, len(rest))
		}
		size := len(b) - len(rest)
		if n := RecordOverhead(r.Kind, r.Total); n != size-len(r.Data) {
			t.Fatalf("RecordOverhead is %d, the header has %d bytes", n, size-len(r.Data))
		}
		if again := AppendMessageRecord(nil, r.Kind, r.Total, r.Data); !bytes.Equal(again, b[:size]) {
			t.Fatalf("appended again: %x, want %x", again, b[:size])
		}
	})
}

func FuzzReset(f *testing.F) {
	seedFromVectors(f, func(b []byte, _ expectation) { f.Add(append(bytes.Clone(b), 1, 2, 3, 4), uint32(7)) })
	f.Add([]byte{0, 0, 1, 0xa, 0xb, 0xc, 0xd}, uint32(0xffffffff))
	f.Fuzz(func(t *testing.T, b []byte, unknown uint32) {
		if q, err := ParseReset(b); err == nil {
			d := AppendReset(nil, ConnID(unknown), q)
			if !bytes.Equal(d[LongHeaderLen:len(d)-ChecksumLen], b) {
				t.Fatalf("appended again: %x, want the body %x", d, b)
			}
		}
		q, ok := QuoteOf(b)
		if !ok {
			return
		}
		body, ok := VerifyChecksum(AppendReset(nil, ConnID(unknown), q), HandshakeKey)
		if !ok {
			t.Fatal("checksum of a reset does not match")
		}
		h, rest, err := ParseLong(body)
		if err != nil || h.Kind != KindReset || h.Src != ConnID(unknown) {
			t.Fatalf("header of a reset is %+v, %v", h, err)
		}
		if got, err := ParseReset(rest); err != nil || got != q {
			t.Fatalf("quote is %+v, %v, want %+v", got, err, q)
		}
	})
}

func FuzzVersions(f *testing.F) {
	f.Add([]byte{}, Version)
	f.Add(AppendVersions(nil, Version), Version)
	f.Add(AppendVersions(nil, 1, 2, 3), uint32(3))
	f.Add([]byte{0, 0, 1}, uint32(1))
	f.Fuzz(func(t *testing.T, b []byte, v uint32) {
		_ = OffersVersion(b, v)
		if whole := len(b) &^ 3; OffersVersion(b, v) != OffersVersion(b[:whole], v) {
			t.Fatalf("the cut entry of %x counts", b)
		}
		if !OffersVersion(AppendVersions(b[:len(b)&^3], v), v) {
			t.Fatalf("%#x is not offered behind %x", v, b)
		}
	})
}
