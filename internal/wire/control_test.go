package wire

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func equalRecords(a, b Record) bool {
	return a.Type == b.Type && a.Value == b.Value && a.Number == b.Number &&
		a.Transport == b.Transport && bytes.Equal(a.Data, b.Data)
}

func TestControlRecords(t *testing.T) {
	path := [PathDataLen]byte{1, 2, 3, 4, 5, 6, 7, 8}
	long := strings.Repeat("r", MaxReasonLen)
	big := bytes.Repeat([]byte{7}, MaxCryptoLen)
	tests := []struct {
		name     string
		appended func(b []byte) []byte
		hex      string // "" = too long to spell out
		want     Record
	}{
		{"padding", func(b []byte) []byte { return append(b, byte(RecordPadding)) }, "00", Record{Type: RecordPadding}},
		{"end", AppendEnd, "01", Record{Type: RecordEnd}},
		{"ping", AppendPing, "02", Record{Type: RecordPing}},
		{
			"window", func(b []byte) []byte { return AppendWindow(b, 300) },
			"03 ac02", Record{Type: RecordWindow, Value: 300},
		}, {
			"largest window", func(b []byte) []byte { return AppendWindow(b, MaxNumber) },
			"03 ffffffffffffffff7f", Record{Type: RecordWindow, Value: MaxNumber},
		}, {
			"close", func(b []byte) []byte { return AppendClose(b, false, 7, "bye") },
			"04 00 07 03 627965", Record{Type: RecordClose, Value: 7, Data: []byte("bye")},
		}, {
			"close by the transport", func(b []byte) []byte { return AppendClose(b, true, 1, "") },
			"04 01 01 00", Record{Type: RecordClose, Value: 1, Transport: true},
		}, {
			"close with the longest reason", func(b []byte) []byte { return AppendClose(b, false, 0, long) },
			"", Record{Type: RecordClose, Data: []byte(long)},
		}, {
			"close with a longer reason", func(b []byte) []byte { return AppendClose(b, false, 0, long+"x") },
			"", Record{Type: RecordClose, Data: []byte(long)},
		}, {
			"close with the largest code", func(b []byte) []byte { return AppendClose(b, false, MaxNumber, "") },
			"04 00 ffffffffffffffff7f 00", Record{Type: RecordClose, Value: MaxNumber},
		}, {
			"close with a larger code", func(b []byte) []byte { return AppendClose(b, false, MaxNumber+1, "") },
			"04 00 ffffffffffffffff7f 00", Record{Type: RecordClose, Value: MaxNumber},
		}, {
			"crypto", func(b []byte) []byte { return AppendCrypto(b, 200, []byte("abc")) },
			"05 c801 03 616263", Record{Type: RecordCrypto, Value: 200, Data: []byte("abc")},
		}, {
			"crypto without bytes", func(b []byte) []byte { return AppendCrypto(b, 0, nil) },
			"05 00 00", Record{Type: RecordCrypto},
		}, {
			"crypto of all that is allowed", func(b []byte) []byte { return AppendCrypto(b, 0, big) },
			"", Record{Type: RecordCrypto, Data: big},
		}, {
			"crypto up to the limit", func(b []byte) []byte { return AppendCrypto(b, MaxCryptoLen-1, []byte("a")) },
			"05 ffff03 01 61", Record{Type: RecordCrypto, Value: MaxCryptoLen - 1, Data: []byte("a")},
		}, {
			"crypto ack", func(b []byte) []byte { return AppendCryptoAck(b, 33, 400) },
			"06 21 9003", Record{Type: RecordCryptoAck, Value: 33, Number: 400},
		}, {
			"path challenge", func(b []byte) []byte { return AppendPathChallenge(b, path) },
			"07 0102030405060708", Record{Type: RecordPathChallenge, Data: path[:]},
		}, {
			"path response", func(b []byte) []byte { return AppendPathResponse(b, path) },
			"08 0102030405060708", Record{Type: RecordPathResponse, Data: path[:]},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := tt.appended(nil)
			if tt.hex != "" {
				wantAppended(t, tt.appended, unhex(t, tt.hex))
			}
			got, rest, err := NextRecord(append(bytes.Clone(b), tail...))
			if err != nil || !equalRecords(got, tt.want) {
				t.Errorf("read %+v, %v, want %+v", got, err, tt.want)
			}
			wantRest(t, rest)
			if len(b) > 1000 {
				b = b[:1000]
			}
			refuseCuts(t, b, func(b []byte) error { _, _, err := NextRecord(b); return err })
		})
	}
	if n := len(AppendCrypto(nil, MaxCryptoLen, nil)) + uvarintLen(MaxCryptoLen) - uvarintLen(0); n != CryptoOverhead {
		t.Errorf("a CRYPTO record adds up to %d bytes, CryptoOverhead is %d", n, CryptoOverhead)
	}
}

func TestPaddingIsOneRecord(t *testing.T) {
	b := AppendPing(make([]byte, 1000))
	r, rest, err := NextRecord(b)
	if err != nil || r.Type != RecordPadding || len(rest) != 1 {
		t.Fatalf("read type %d, %d bytes left, %v", r.Type, len(rest), err)
	}
	if r, rest, err = NextRecord(rest); err != nil || r.Type != RecordPing || len(rest) != 0 {
		t.Errorf("behind the padding: type %d, %d bytes left, %v", r.Type, len(rest), err)
	}
	if _, rest, err := NextRecord(make([]byte, 5)); err != nil || len(rest) != 0 {
		t.Errorf("padding to the end: %d bytes left, %v", len(rest), err)
	}
}

func TestCloseReasonIsCutBetweenCharacters(t *testing.T) {
	tests := []struct {
		name, reason, want string
	}{
		{"fits", strings.Repeat("a", 255), strings.Repeat("a", 255)},
		{"one byte too long", strings.Repeat("a", 256), strings.Repeat("a", 255)},
		{"two-byte character across the limit", strings.Repeat("a", 254) + "é", strings.Repeat("a", 254)},
		{"two-byte character at the limit", strings.Repeat("a", 253) + "éa", strings.Repeat("a", 253) + "é"},
		{"four-byte character across the limit", strings.Repeat("a", 252) + "🚢", strings.Repeat("a", 252)},
		{"four-byte character at the limit", strings.Repeat("a", 251) + "🚢🚢", strings.Repeat("a", 251) + "🚢"},
		{"no text at all", strings.Repeat("\xbf", 300), strings.Repeat("\xbf", 252)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, _, err := NextRecord(AppendClose(nil, false, 0, tt.reason))
			if err != nil || string(r.Data) != tt.want {
				t.Errorf("reason of %d bytes was sent as %d bytes, %v, want %d", len(tt.reason), len(r.Data), err, len(tt.want))
			}
		})
	}
}

func TestControlRecordsInvalid(t *testing.T) {
	tests := []struct {
		name string
		hex  string
		want error
	}{
		{"empty", "", ErrTruncated},
		{"first unknown type", "09", ErrReserved},
		{"last unknown type", "ff", ErrReserved},
		{"window cut", "03", ErrNotMinimal},
		{"window not minimal", "03 8000", ErrNotMinimal},
		{"window of ten bytes", "03 80808080808080808001", ErrNotMinimal},
		{"close without space", "04", ErrTruncated},
		{"close of an unknown space", "04 02 00 00", ErrReserved},
		{"close code not minimal", "04 00 8000 00", ErrNotMinimal},
		{"close without reason length", "04 00 00", ErrTruncated},
		{"close reason cut", "04 00 00 04 627965", ErrTruncated},
		{"crypto offset beyond the limit", "05 818004 00", ErrTooLong},
		{"crypto length beyond the limit", "05 00 818004", ErrTooLong},
		{"crypto end beyond the limit", "05 808004 01 61", ErrTooLong},
		{"crypto of nearly all numbers", "05 ffffffffffffffff7f ffffffffffffffff7f", ErrTooLong},
		{"crypto bytes cut", "05 00 04 616263", ErrTruncated},
		{"crypto length not minimal", "05 00 8000", ErrNotMinimal},
		{"crypto ack length not minimal", "06 8000 00", ErrNotMinimal},
		{"crypto ack number not minimal", "06 00 8000", ErrNotMinimal},
		{"crypto ack number missing", "06 00", ErrNotMinimal},
		{"path challenge cut", "07 01020304050607", ErrTruncated},
		{"path response cut", "08", ErrTruncated},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if r, _, err := NextRecord(unhex(t, tt.hex)); !errors.Is(err, tt.want) {
				t.Errorf("got %+v, %v, want %v", r, err, tt.want)
			}
		})
	}
}
