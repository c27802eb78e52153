package wire

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"
)

func equalAcks(a, b *Ack) bool {
	return a.Delay == b.Delay && a.Next == b.Next && a.Equations == b.Equations &&
		slices.Equal(a.Ranges, b.Ranges) && slices.Equal(a.Symbols, b.Symbols)
}

// manyRanges returns n packet number ranges that end at top, each of one
// number with one missing between.
func manyRanges(n int, top uint64) (r []AckRange) {
	for i := range uint64(n) {
		r = append(r, AckRange{top - 2*i, top - 2*i})
	}
	return r
}

// manySymbols returns n symbol ranges above next, likewise.
func manySymbols(n int, next uint64) (r []AckRange) {
	for i := range uint64(n) {
		r = append(r, AckRange{next + 1 + 2*i, next + 1 + 2*i})
	}
	return r
}

func TestAck(t *testing.T) {
	tests := []struct {
		name   string
		ack    Ack
		sent   PacketNumber
		symbol SymbolID
		hex    string // "" = too long to spell out
	}{
		{
			name: "first packet", sent: 1,
			ack: Ack{Ranges: []AckRange{{0, 0}}},
			hex: "000000 00 000000 00 00",
		}, {
			name: "one range", sent: 300, symbol: 290,
			ack: Ack{Delay: 80 * time.Microsecond, Next: 289, Ranges: []AckRange{{100, 299}}},
			hex: "00012b 05 000121 00 c701",
		}, {
			name: "single missing number between two ranges", sent: 11, symbol: 9,
			ack: Ack{Next: 8, Ranges: []AckRange{{8, 10}, {3, 6}}},
			hex: "00000a 00 000008 01 02 0003",
		}, {
			name: "range down to zero", sent: 11, symbol: 9,
			ack: Ack{Ranges: []AckRange{{10, 10}, {0, 1}}},
			hex: "00000a 00 000000 01 00 0701",
		}, {
			name: "largest number behind a wrap", sent: 1 << 24, symbol: 1 << 24,
			ack: Ack{Next: 1<<24 - 2, Ranges: []AckRange{{1<<24 - 1, 1<<24 - 1}}},
			hex: "ffffff 00 fffffe 00 00",
		}, {
			name: "range over a wrap", sent: 3<<24 + 10, symbol: 5,
			ack: Ack{Ranges: []AckRange{{3<<24 - 2, 3<<24 + 9}, {3<<24 - 200, 3<<24 - 100}}},
			hex: "000009 00 000000 01 0b 6064",
		}, {
			name: "equations", sent: 6, symbol: 5,
			ack: Ack{Next: 2, Equations: 255, Ranges: []AckRange{{5, 5}}},
			hex: "000005 00 000002 80 ff 00",
		}, {
			name: "restored symbols", sent: 6, symbol: 300,
			ack: Ack{Next: 2, Ranges: []AckRange{{5, 5}}, Symbols: []AckRange{{3, 3}, {5, 8}, {200, 299}}},
			hex: "000005 00 000002 40 00 03 0000 0003 be0163",
		}, {
			name: "equations and restored symbols", sent: 6, symbol: 5,
			ack: Ack{Next: 2, Equations: 1, Ranges: []AckRange{{5, 5}}, Symbols: []AckRange{{3, 4}}},
			hex: "000005 00 000002 c0 01 00 01 0001",
		}, {
			name: "longest delay", sent: 6, symbol: 5,
			ack: Ack{Delay: 64512 * time.Microsecond, Ranges: []AckRange{{5, 5}}},
			hex: "000005 ff 000000 00 00",
		}, {
			name: "as many ranges as allowed", sent: 1 << 40, symbol: 1 << 41,
			ack: Ack{
				Next: 1 << 41, Equations: 7,
				Ranges: manyRanges(MaxAckRanges, 1<<40-1), Symbols: manySymbols(MaxAckRanges, 1<<41),
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := AppendAck(nil, &tt.ack, len(tt.ack.Ranges), len(tt.ack.Symbols))
			if tt.hex != "" {
				wantAppended(t, func(b []byte) []byte {
					return AppendAck(b, &tt.ack, len(tt.ack.Ranges), len(tt.ack.Symbols))
				}, unhex(t, tt.hex))
			}
			if n := AckLen(&tt.ack, len(tt.ack.Ranges), len(tt.ack.Symbols)); n != len(b) {
				t.Errorf("AckLen is %d, the block has %d bytes", n, len(b))
			}
			got := Ack{Equations: 9, Ranges: manyRanges(3, 100), Symbols: manySymbols(3, 100)} // of an earlier block
			rest, err := ParseAck(append(bytes.Clone(b), tail...), tt.sent, tt.symbol, &got)
			if err != nil || !equalAcks(&got, &tt.ack) {
				t.Errorf("read %+v, %v, want %+v", got, err, tt.ack)
			}
			wantRest(t, rest)
			refuseCuts(t, b, func(b []byte) error {
				_, err := ParseAck(b, tt.sent, tt.symbol, new(Ack))
				return err
			})
		})
	}
}

// What a datagram has no room for is left out: the ranges of the oldest
// packets, the highest restored symbols.
func TestAckTakesFirstRanges(t *testing.T) {
	a := &Ack{Next: 50, Ranges: manyRanges(100, 1000), Symbols: manySymbols(100, 50)}
	for _, n := range []int{1, 2, 8, MaxAckRanges} {
		b := AppendAck(nil, a, n, n-1)
		if got := AckLen(a, n, n-1); got != len(b) {
			t.Errorf("%d ranges: AckLen is %d, the block has %d bytes", n, got, len(b))
		}
		var got Ack
		if _, err := ParseAck(b, 1001, 500, &got); err != nil {
			t.Fatalf("%d ranges: %v", n, err)
		}
		if !slices.Equal(got.Ranges, a.Ranges[:n]) || !slices.Equal(got.Symbols, a.Symbols[:n-1]) {
			t.Errorf("%d ranges: read %v and %v", n, got.Ranges, got.Symbols)
		}
	}
	var got Ack
	if _, err := ParseAck(AppendAck(nil, a, 1000, 1000), 1001, 500, &got); err != nil ||
		len(got.Ranges) != MaxAckRanges || len(got.Symbols) != MaxAckRanges {
		t.Errorf("without a limit: %d and %d ranges, %v, want %d of each",
			len(got.Ranges), len(got.Symbols), err, MaxAckRanges)
	}
}

func TestAckInvalid(t *testing.T) {
	tests := []struct {
		name string
		hex  string
		want error
	}{
		{"empty", "", ErrTruncated},
		{"fixed part cut", "000005 00 000002", ErrTruncated},
		{"equations cut", "000005 00 000002 80", ErrTruncated},
		{"equations of zero", "000005 00 000002 80 00 00", ErrNotMinimal},
		{"first range cut", "000005 00 000002 00", ErrNotMinimal},
		{"first range below zero", "000005 00 000002 00 06", ErrRange},
		{"first range far below zero", "000005 00 000002 00 ffffffffffffffff7f", ErrRange},
		{"gap to below zero", "000005 00 000002 01 03 0100", ErrRange},
		{"gap of all numbers", "000005 00 000002 01 00 ffffffffffffffff7f 00", ErrRange},
		{"second range below zero", "000005 00 000002 01 00 0005", ErrRange},
		{"fewer ranges than counted", "000005 00 000002 03 00 0000", ErrNotMinimal},
		{"span not minimal", "000005 00 000002 00 8000", ErrNotMinimal},
		{"gap not minimal", "000005 00 000002 01 00 8100 00", ErrNotMinimal},
		{"symbol count cut", "000005 00 000002 40 00", ErrTruncated},
		{"symbol count of zero", "000005 00 000002 40 00 00", ErrRange},
		{"symbol count above the limit", "000005 00 000002 40 00 41 0000", ErrRange},
		{"fewer symbol ranges than counted", "000005 00 000002 40 00 02 0000", ErrNotMinimal},
		{"symbol gap not minimal", "000005 00 000002 40 00 01 8000 00", ErrNotMinimal},
		{"symbol gap beyond 24 bits", "000005 00 000002 40 00 01 80808008 00", ErrRange},
		{"symbol span beyond 24 bits", "000005 00 000002 40 00 01 00 80808008", ErrRange},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := ParseAck(unhex(t, tt.hex), 6, 5, new(Ack)); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

// Blocks that claim all packet numbers many times over yield no more than the
// ranges allowed, each within what the numbers below the largest leave.
func TestAckOfWholeSpaceIsBounded(t *testing.T) {
	block := unhex(t, "ffffff 00 ffffff 3f")
	block = append(block, unhex(t, "feffff07")...) // 2^24-2 numbers below the largest
	for range MaxAckRanges - 1 {
		block = append(block, unhex(t, "00 feffff07")...)
	}
	var a Ack
	_, err := ParseAck(block, numberEnd-1, numberEnd-1, &a)
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Ranges) != MaxAckRanges {
		t.Errorf("%d ranges, want %d", len(a.Ranges), MaxAckRanges)
	}
	checkRanges(t, &a)
	// The same block, when so many numbers cannot have been sent.
	if _, err := ParseAck(block, 1<<24, 0, &a); !errors.Is(err, ErrRange) {
		t.Errorf("with 2^24 packets sent: %v, want %v", err, ErrRange)
	}
}

// checkRanges checks the order that ParseAck promises.
func checkRanges(t testing.TB, a *Ack) {
	t.Helper()
	if n := len(a.Ranges); n < 1 || n > MaxAckRanges {
		t.Fatalf("%d packet number ranges", n)
	}
	if n := len(a.Symbols); n > MaxAckRanges {
		t.Fatalf("%d symbol ranges", n)
	}
	for i, r := range a.Ranges {
		if r.Lo > r.Hi || i > 0 && r.Hi+1 >= a.Ranges[i-1].Lo {
			t.Fatalf("packet number range %d of %v is out of order", i, a.Ranges)
		}
	}
	at := uint64(a.Next)
	for i, r := range a.Symbols {
		if r.Lo > r.Hi || r.Lo <= at {
			t.Fatalf("symbol range %d of %v above %d is out of order", i, a.Symbols, a.Next)
		}
		at = r.Hi + 1
	}
}

func TestAckDelay(t *testing.T) {
	tests := []struct {
		name  string
		delay time.Duration
		b     byte
		want  time.Duration // as read
	}{
		{"negative", -time.Second, 0x00, 0},
		{"none", 0, 0x00, 0},
		{"less than a unit", 15 * time.Microsecond, 0x00, 0},
		{"one unit", 16 * time.Microsecond, 0x01, 16 * time.Microsecond},
		{"largest exact count", 31 * 16 * time.Microsecond, 0x1f, 496 * time.Microsecond},
		{"first with an exponent", 512 * time.Microsecond, 0x20, 512 * time.Microsecond},
		{"1 ms", time.Millisecond, 0x3e, 992 * time.Microsecond},
		{"first of two units", 1024 * time.Microsecond, 0x40, 1024 * time.Microsecond},
		{"25 ms", 25 * time.Millisecond, 0xd0, 24576 * time.Microsecond},
		{"largest", 64512 * time.Microsecond, 0xff, 64512 * time.Microsecond},
		{"beyond the largest", 65536 * time.Microsecond, 0xff, 64512 * time.Microsecond},
		{"an hour", time.Hour, 0xff, 64512 * time.Microsecond},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if b := ackDelayByte(tt.delay); b != tt.b {
				t.Errorf("%v is byte %#02x, want %#02x", tt.delay, b, tt.b)
			}
			if d := ackDelay(tt.b); d != tt.want {
				t.Errorf("byte %#02x is %v, want %v", tt.b, d, tt.want)
			}
		})
	}
	last := time.Duration(-1)
	for b := range 256 {
		d := ackDelay(byte(b))
		if d <= last {
			t.Errorf("byte %#02x is %v, the one before %v", b, d, last)
		}
		if got := ackDelayByte(d); got != byte(b) {
			t.Errorf("byte %#02x is %v, which is byte %#02x", b, d, got)
		}
		last = d
	}
	// Rounding down loses less than 1/32.
	for d := ackDelayUnit; d < 64*time.Millisecond; d += 37 * time.Microsecond {
		if got := ackDelay(ackDelayByte(d)); got > d || d-got >= max(ackDelayUnit, d/32) {
			t.Errorf("%v is read as %v", d, got)
		}
	}
}
