package wire

import "testing"

func wantNoAllocs(t *testing.T, name string, f func()) {
	t.Helper()
	f() // slices grow to their size
	if n := testing.AllocsPerRun(100, f); n != 0 {
		t.Errorf("%s allocates %v times", name, n)
	}
}

// Neither way through the package allocates once its slices have their size.
func TestNoAllocs(t *testing.T) {
	buf := make([]byte, 0, 2048)
	message := make([]byte, 512)
	var in, out Ack
	out = Ack{Next: 7, Equations: 2, Ranges: manyRanges(MaxAckRanges, 1<<20), Symbols: manySymbols(MaxAckRanges, 7)}
	params := Params{Nonce: testNonce, RecvWindow: 1 << 40, SymbolWindow: 4096, MaxMessage: 1 << 24, MaxDatagram: 1500}
	wantNoAllocs(t, "appending a datagram", func() {
		buf = buf[:0]
		buf = AppendShort(buf, Short{Dst: 7, Number: 9, Ack: true, Control: true, Payload: PayloadData})
		buf = AppendAck(buf, &out, MaxAckRanges, MaxAckRanges)
		buf = AppendEnd(AppendClose(AppendPing(AppendWindow(buf, 1<<40)), true, 5, "reason"))
		buf = AppendSymbolID(buf, 1<<40)
		buf = AppendMessageRecord(buf, RecordFirst, 1<<20, message)
		buf = AppendMessageRecord(buf, RecordContinue, 0, message)
		buf = AppendChecksum(buf, 0, 77)
	})
	wantNoAllocs(t, "parsing a datagram", func() {
		body, ok := VerifyChecksum(buf, 77)
		if !ok || Classify(buf) != KindShort {
			t.Fatal("checksum or kind")
		}
		h, b, err := ParseShort(body)
		if err != nil || h.Dst != 7 {
			t.Fatal(h, err)
		}
		if b, err = ParseAck(b, 1<<20+1, 1<<10, &in); err != nil {
			t.Fatal(err)
		}
		for {
			var r Record
			if r, b, err = NextRecord(b); err != nil {
				t.Fatal(err)
			}
			if r.Type == RecordEnd {
				break
			}
		}
		if _, b, err = ParseSymbolID(b); err != nil {
			t.Fatal(err)
		}
		for len(b) > 0 {
			if _, b, err = NextMessageRecord(b); err != nil {
				t.Fatal(err)
			}
		}
	})
	wantNoAllocs(t, "appending and parsing a repair", func() {
		buf = AppendRepair(buf[:0], Repair{First: 7, Span: 16, Seed: 3})
		if _, _, err := ParseRepair(buf); err != nil {
			t.Fatal(err)
		}
	})
	var handshake []byte
	wantNoAllocs(t, "appending a handshake datagram", func() {
		buf = AppendParams(buf[:0], &params)
		n := len(buf)
		buf = AppendLong(buf, Long{Kind: KindHandshake, Version: Version, Src: 7})
		buf = AppendCryptoAck(buf, 33, 1)
		buf = AppendCrypto(buf, 0, buf[:n])
		handshake = AppendChecksum(buf, n, HandshakeKey)[n:]
	})
	wantNoAllocs(t, "parsing a handshake datagram", func() {
		body, _ := VerifyChecksum(handshake, HandshakeKey)
		_, b, err := ParseLong(body)
		for len(b) > 0 && err == nil {
			var r Record
			if r, b, err = NextRecord(b); err == nil && r.Type == RecordCrypto {
				_, err = ParseParams(r.Data)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	wantNoAllocs(t, "quote and reset", func() {
		short := AppendChecksum(AppendPing(AppendShort(buf[:0], Short{Control: true})), 0, 77)
		q, ok := QuoteOf(short)
		if b := AppendReset(short, 7, q)[len(short):]; !ok || len(b) != ResetLen+ChecksumLen {
			t.Fatal(q, ok)
		}
	})
}

// What a peer claims of sizes costs nothing before the bytes are there.
func TestClaimedSizesAllocateNothing(t *testing.T) {
	var a Ack
	if _, err := ParseAck(AppendAck(nil, &fuzzAcks[3], MaxAckRanges, MaxAckRanges), 1000, 500, &a); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name  string
		hex   string
		parse func(b []byte)
	}{
		{"ack of 64 ranges", "ffffff ff ffffff ff ff 00", func(b []byte) { _, _ = ParseAck(b, 1<<40, 1<<40, &a) }},
		{"ack of 255 symbol ranges", "ffffff ff ffffff 40 00 ff 0000", func(b []byte) { _, _ = ParseAck(b, 1<<40, 1<<40, &a) }},
		{"first piece of 2^63 bytes", "8001 04 ffffffffffffffff7f 61", func(b []byte) { _, _, _ = NextMessageRecord(b) }},
		{"record of 32 KiB", "7fff 61", func(b []byte) { _, _, _ = NextMessageRecord(b) }},
		{"crypto of 64 KiB", "05 00 808004 61", func(b []byte) { _, _, _ = NextRecord(b) }},
		{"reason of 255 bytes", "04 00 00 ff 61", func(b []byte) { _, _, _ = NextRecord(b) }},
		{"parameter of 2^63 bytes", "01 ffffffffffffffff7f 00", func(b []byte) { _, _ = ParseParams(b) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := unhex(t, tt.hex)
			wantNoAllocs(t, "parsing", func() { tt.parse(b) })
		})
	}
}
