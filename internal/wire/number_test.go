package wire

import (
	"encoding/binary"
	"errors"
	"math"
	"testing"
)

// RFC 9000, appendix A.3, with 24 bits.
func TestExpand24(t *testing.T) {
	const half = numberSpan / 2
	tests := []struct {
		name      string
		truncated uint32
		expected  uint64
		want      uint64
	}{
		{"first number", 0, 0, 0},
		{"some numbers ahead at the start", 100, 0, 100},
		{"start has nothing below zero", numberMask, 0, numberMask},
		{"start has nothing below zero, half a span ahead", half + 1, 0, half + 1},
		{"as expected", 0x123456, 0x9_123456, 0x9_123456},
		{"a little late", 0x123450, 0x9_123456, 0x9_123450},
		{"a little early", 0x123460, 0x9_123456, 0x9_123460},
		{"late over the wrap", numberMask, numberSpan, numberMask},
		{"early over the wrap", 0, numberMask, numberSpan},
		{"early over a later wrap", 5, 7*numberSpan - 3, 7*numberSpan + 5},
		{"late over a later wrap", numberMask - 5, 7*numberSpan + 3, 7*numberSpan - 6},
		{"half a span ahead stays ahead", half, 2 * numberSpan, 2*numberSpan + half},
		{"more than half a span ahead is behind", half + 1, 2 * numberSpan, numberSpan + half + 1},
		{"half a span behind is ahead", half - 1, 2*numberSpan - 1, 2*numberSpan + half - 1},
		{"less than half a span behind stays behind", half, 2*numberSpan - 1, numberSpan + half},
		{"end has nothing above", 0, numberEnd - 1, numberEnd - numberSpan},
		{"last number", numberMask, numberEnd - 1, numberEnd - 1},
		{"bits above the 24th are ignored", 0xff_000005, 0, 5},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Expand24(tt.truncated, tt.expected); got != tt.want {
				t.Errorf("Expand24(%#x, %#x) = %#x, want %#x", tt.truncated, tt.expected, got, tt.want)
			}
		})
	}
}

// Whatever lies within half a span of what is expected is found again.
func TestExpand24FindsTruncatedNumbers(t *testing.T) {
	const half = numberSpan / 2
	for _, expected := range []uint64{0, 1, half, numberSpan - 1, numberSpan, numberSpan + 1, 5*numberSpan + 77, 1 << 40, numberEnd - numberSpan} {
		for _, distance := range []int64{-half + 1, -70000, -2, -1, 0, 1, 2, 70000, half} {
			full := int64(expected) + distance
			if full < 0 || full >= numberEnd {
				continue
			}
			if got := Expand24(Truncate24(uint64(full)), expected); got != uint64(full) {
				t.Errorf("%#x, expected %#x: got %#x", full, expected, got)
			}
		}
	}
}

func TestUvarint(t *testing.T) {
	for _, v := range []uint64{0, 1, 0x7f, 0x80, 0x3fff, 0x4000, 1<<21 - 1, 1 << 21, 1<<56 - 1, 1 << 56, MaxNumber} {
		b := binary.AppendUvarint(nil, v)
		if len(b) != uvarintLen(v) {
			t.Errorf("%#x takes %d bytes, uvarintLen says %d", v, len(b), uvarintLen(v))
		}
		got, rest, ok := uvarint(append(b, tail...))
		if !ok || got != v {
			t.Errorf("%#x: read %#x, %v", v, got, ok)
		}
		wantRest(t, rest)
		refuseCuts(t, b, func(b []byte) error {
			if _, _, ok := uvarint(b); !ok {
				return ErrNotMinimal
			}
			return nil
		})
	}
	for name, s := range map[string]string{
		"zero in two bytes":    "8000",
		"127 in two bytes":     "ff00",
		"nine bytes, last 0":   "ffffffffffffffff00",
		"ten bytes":            "ffffffffffffffffff01",
		"ten bytes that go on": "ffffffffffffffffffff",
	} {
		t.Run(name, func(t *testing.T) {
			if v, _, ok := uvarint(unhex(t, s)); ok {
				t.Errorf("%s was read as %d", s, v)
			}
		})
	}
	if n := uvarintLen(math.MaxUint64); n != binary.MaxVarintLen64 {
		t.Errorf("uvarintLen of the largest uint64 is %d, want %d", n, binary.MaxVarintLen64)
	}
}

func TestSymbolID(t *testing.T) {
	b := AppendSymbolID(nil, 0x5_abcdef)
	wantAppended(t, func(b []byte) []byte { return AppendSymbolID(b, 0x5_abcdef) }, []byte{0xab, 0xcd, 0xef})
	v, rest, err := ParseSymbolID(append(b, tail...))
	if err != nil || v != 0xabcdef {
		t.Errorf("read %#x, %v", v, err)
	}
	wantRest(t, rest)
	refuseCuts(t, b, func(b []byte) error { _, _, err := ParseSymbolID(b); return err })
	if _, _, err := ParseSymbolID(nil); !errors.Is(err, ErrTruncated) {
		t.Errorf("nothing: %v, want %v", err, ErrTruncated)
	}
}
