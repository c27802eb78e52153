package wire

import (
	"bytes"
	"errors"
	"testing"
)

func TestReset(t *testing.T) {
	const key ChecksumKey = 0x48dfe982
	lost := AppendShort(nil, Short{Dst: 0x5e6f7081, Number: 0xabcdef, Control: true})
	lost = AppendChecksum(AppendPing(lost), 0, key)
	q, ok := QuoteOf(lost)
	if !ok || q.Number != 0xabcdef {
		t.Fatalf("quote is %+v, %v", q, ok)
	}
	head := []byte("datagram before it")
	b := AppendReset(bytes.Clone(head), 0x5e6f7081, q)[len(head):]
	if len(b) != ResetLen+ChecksumLen {
		t.Errorf("a reset has %d bytes, ResetLen says %d without its checksum", len(b), ResetLen)
	}
	body, ok := VerifyChecksum(b, HandshakeKey)
	if !ok {
		t.Fatal("checksum does not match")
	}
	h, rest, err := ParseLong(body)
	if err != nil || h.Kind != KindReset || h.Src != 0x5e6f7081 || h.Dst != 0 {
		t.Errorf("header is %+v, %v", h, err)
	}
	got, err := ParseReset(rest)
	if err != nil || got != q {
		t.Errorf("read %+v, %v, want %+v", got, err, q)
	}
	refuseCuts(t, rest, func(b []byte) error { _, err := ParseReset(b); return err })
	if _, err := ParseReset(append(rest, 0)); !errors.Is(err, ErrTruncated) {
		t.Errorf("one byte too long: %v, want %v", err, ErrTruncated)
	}
}

// Two ends that forgot each other must not answer each other for ever, nor
// send more than three times what they were sent.
func TestResetEndsTheExchange(t *testing.T) {
	reset := AppendReset(nil, 7, Quote{})
	if _, ok := QuoteOf(reset); ok {
		t.Error("a reset has a quote, and would be answered by a reset")
	}
	for n := range 40 {
		b := make([]byte, n)
		if n > 0 {
			b[0] = shortBit | byte(PayloadData)
		}
		if _, ok := QuoteOf(b); ok && 3*n < len(reset) {
			t.Errorf("%d bytes are answered by %d", n, len(reset))
		}
	}
}

func TestQuoteOf(t *testing.T) {
	tests := []struct {
		name string
		hex  string
		want Quote
		ok   bool
	}{
		{"control", "44 5e6f7081 abcdef 02 01020304", Quote{0xabcdef, 0x01020304}, true},
		{"data", "41 5e6f7081 abcdef 000000 01020304", Quote{0xabcdef, 0x01020304}, true},
		{"repair", "42 5e6f7081 abcdef 01020304", Quote{0xabcdef, 0x01020304}, true},
		{"ack only", "48 5e6f7081 abcdef 000000 00 000000 00 00 01020304", Quote{}, false},
		{"empty", "40 5e6f7081 abcdef 01020304", Quote{}, false},
		{"too short", "44 5e6f7081 abcdef 010203", Quote{}, false},
		{"handshake", "80 41524b01 5e6f7081 a1b2c3d4 00000000 01020304", Quote{}, false},
		{"reset", "b0 41524b01 00000000 a1b2c3d4 00000000 01020304050607 01020304", Quote{}, false},
		{"no kind", "04 5e6f7081 abcdef 02 01020304", Quote{}, false},
		{"nothing", "", Quote{}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if q, ok := QuoteOf(unhex(t, tt.hex)); q != tt.want || ok != tt.ok {
				t.Errorf("quote is %+v, %v, want %+v, %v", q, ok, tt.want, tt.ok)
			}
		})
	}
}
