package wire

import (
	"bytes"
	"errors"
	"testing"
)

func TestRepair(t *testing.T) {
	tests := []struct {
		name string
		r    Repair
		hex  string
	}{
		{"smallest", Repair{0, 1, 0}, "000000 00 00"},
		{"some", Repair{0xabcdef, 17, 5}, "abcdef 10 05"},
		{"largest", Repair{0xffffff, MaxRepairSpan, 127}, "ffffff 7f 7f"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := unhex(t, tt.hex)
			wantAppended(t, func(b []byte) []byte { return AppendRepair(b, tt.r) }, b)
			if len(b) != RepairHeaderLen {
				t.Errorf("%d bytes, RepairHeaderLen is %d", len(b), RepairHeaderLen)
			}
			got, rest, err := ParseRepair(append(bytes.Clone(b), tail...))
			if err != nil || got != tt.r {
				t.Errorf("read %+v, %v, want %+v", got, err, tt.r)
			}
			wantRest(t, rest)
			refuseCuts(t, b, func(b []byte) error { _, _, err := ParseRepair(b); return err })
		})
	}
}

func TestRepairInvalid(t *testing.T) {
	tests := []struct {
		name string
		hex  string
		want error
	}{
		{"empty", "", ErrTruncated},
		{"one byte missing", "000000 00", ErrTruncated},
		{"window of 129", "000000 80 00 aa", ErrReserved},
		{"widest window that a byte says", "000000 ff 00 aa", ErrReserved},
		{"seed 128", "000000 00 80 aa", ErrReserved},
		{"largest seed that a byte says", "000000 00 ff aa", ErrReserved},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if r, _, err := ParseRepair(unhex(t, tt.hex)); !errors.Is(err, tt.want) {
				t.Errorf("got %+v, %v, want %v", r, err, tt.want)
			}
		})
	}
}

func FuzzRepair(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 0, 1, 2, 3})
	f.Add([]byte{0xff, 0xff, 0xff, 0x7f, 0x7f})
	f.Add([]byte{0, 0, 5, 0x80, 0x80})
	f.Fuzz(func(t *testing.T, b []byte) {
		r, coded, err := ParseRepair(b)
		if err != nil {
			return
		}
		if r.Span < 1 || r.Span > MaxRepairSpan || r.Seed > 127 {
			t.Fatalf("read %+v", r)
		}
		if again := append(AppendRepair(nil, r), coded...); !bytes.Equal(again, b) {
			t.Fatalf("appended again: %x, want %x", again, b)
		}
	})
}
