package wire

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
)

func TestClassify(t *testing.T) {
	long := map[byte]Kind{0x80: KindHandshake, 0x90: KindVersions, 0xa0: KindRetry, 0xb0: KindReset}
	for first := range 256 {
		want := KindInvalid
		switch {
		case first >= 0x80:
			want = long[byte(first)&0xf0] // types 4 to 7 are invalid
		case first >= 0x40:
			want = KindShort
		}
		if got := Classify([]byte{byte(first)}); got != want {
			t.Errorf("first byte %#02x is of kind %d, want %d", first, got, want)
		}
	}
	if got := Classify(nil); got != KindInvalid {
		t.Errorf("the empty datagram is of kind %d", got)
	}
}

func TestDestination(t *testing.T) {
	short := AppendShort(nil, Short{Dst: 0x01020304})
	tests := []struct {
		name string
		b    []byte
		want ConnID
		ok   bool
	}{
		{"short", short, 0x01020304, true},
		{"short with more behind", append(bytes.Clone(short), 9, 9), 0x01020304, true},
		{"short, one byte missing", short[:ShortHeaderLen-1], 0, false},
		{"handshake", AppendLong(nil, Long{Kind: KindHandshake, Dst: 5, Src: 6}), 5, true},
		{"handshake of another version", AppendLong(nil, Long{Kind: KindHandshake, Version: 77, Dst: 5, Src: 6}), 5, true},
		{"versions", AppendLong(nil, Long{Kind: KindVersions, Dst: 5, Src: 6}), 5, true},
		{"retry", AppendLong(nil, Long{Kind: KindRetry, Dst: 5, Src: 6}), 5, true},
		{"reset", AppendLong(nil, Long{Kind: KindReset, Dst: 5, Src: 6}), 5, true},
		{"long, one byte missing", AppendLong(nil, Long{Dst: 5})[:LongHeaderLen-1], 0, false},
		{"no kind", make([]byte, 100), 0, false},
		{"empty", nil, 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, ok := Destination(tt.b); got != tt.want || ok != tt.ok {
				t.Errorf("Destination is %#x, %v, want %#x, %v", got, ok, tt.want, tt.ok)
			}
		})
	}
}

func TestLongHeader(t *testing.T) {
	tests := []struct {
		name string
		h    Long
		hex  string
	}{
		{"handshake", Long{KindHandshake, Version, 0, 0xa1b2c3d4, 0}, "80 41524b01 00000000 a1b2c3d4 00000000"},
		{"handshake, largest fields", Long{KindHandshake, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, "80 ffffffff ffffffff ffffffff ffffffff"},
		{"versions", Long{KindVersions, Version, 1, 0, 0}, "90 41524b01 00000001 00000000 00000000"},
		{"retry", Long{KindRetry, Version, 1, 2, 3}, "a0 41524b01 00000001 00000002 00000003"},
		{"reset", Long{KindReset, Version, 0, 2, 0}, "b0 41524b01 00000000 00000002 00000000"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := unhex(t, tt.hex)
			wantAppended(t, func(b []byte) []byte { return AppendLong(b, tt.h) }, b)
			got, rest, err := ParseLong(append(bytes.Clone(b), tail...))
			if err != nil || got != tt.h {
				t.Errorf("read %+v, %v, want %+v", got, err, tt.h)
			}
			wantRest(t, rest)
			refuseCuts(t, b, func(b []byte) error { _, _, err := ParseLong(b); return err })
		})
	}
}

func TestLongHeaderInvalid(t *testing.T) {
	tests := []struct {
		name string
		hex  string
		want error
	}{
		{"empty", "", ErrReserved},
		{"type that no kind has", "c0 41524b01 00000000 a1b2c3d4 00000000", ErrReserved},
		{"last type", "f0 41524b01 00000000 a1b2c3d4 00000000", ErrReserved},
		{"short header", "40 41524b01 00000000 a1b2c3d4 00000000", ErrReserved},
		{"reserved bits of our version", "81 41524b01 00000000 a1b2c3d4 00000000", ErrReserved},
		{"one byte missing", "80 41524b01 00000000 a1b2c3d4 000000", ErrTruncated},
		{"reserved bits of another version", "8f 41524b02 00000000 a1b2c3d4 00000000", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, _, err := ParseLong(unhex(t, tt.hex)); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

// Every combination of the flags survives, with every allowed payload.
func TestShortHeader(t *testing.T) {
	for flags := range 8 {
		for _, payload := range []PayloadType{PayloadNone, PayloadData, PayloadRepair} {
			h := Short{
				Dst: 0x5e6f7081, Number: 0xabcdef,
				KeyPhase: flags&1 != 0, Ack: flags&2 != 0, Control: flags&4 != 0, Payload: payload,
			}
			t.Run(fmt.Sprintf("flags %03b payload %d", flags, payload), func(t *testing.T) {
				first := byte(0x40) | byte(payload)
				for bit, set := range map[byte]bool{0x20: h.KeyPhase, 0x08: h.Ack, 0x04: h.Control} {
					if set {
						first |= bit
					}
				}
				b := append([]byte{first}, unhex(t, "5e6f7081 abcdef")...)
				wantAppended(t, func(b []byte) []byte { return AppendShort(b, h) }, b)
				got, rest, err := ParseShort(append(bytes.Clone(b), tail...))
				if err != nil || got != h {
					t.Errorf("read %+v, %v, want %+v", got, err, h)
				}
				wantRest(t, rest)
				refuseCuts(t, b, func(b []byte) error { _, _, err := ParseShort(b); return err })
				if got, want := h.AckOnly(), !h.Control && payload == PayloadNone; got != want {
					t.Errorf("AckOnly is %v, want %v", got, want)
				}
			})
		}
	}
}

func TestShortHeaderInvalid(t *testing.T) {
	tests := []struct {
		name string
		hex  string
		want error
	}{
		{"empty", "", ErrReserved},
		{"no kind", "00 5e6f7081 abcdef", ErrReserved},
		{"long header", "80 5e6f7081 abcdef", ErrReserved},
		{"reserved bit", "50 5e6f7081 abcdef", ErrReserved},
		{"reserved payload type", "43 5e6f7081 abcdef", ErrReserved},
		{"one byte missing", "40 5e6f7081 abcd", ErrTruncated},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, _, err := ParseShort(unhex(t, tt.hex)); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}
