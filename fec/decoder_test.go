package fec

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Every loss pattern of every small group, both schemes, in two orders of
// arrival. The flow compares each step with the model.
func TestEveryLossPattern(t *testing.T) {
	for k := 1; k <= 6; k++ {
		for m := 1; m <= 4; m++ {
			t.Run(fmt.Sprintf("block/k=%d/m=%d", k, m), func(t *testing.T) {
				for pattern := range 1 << (k + m) {
					lossPattern(t, k, m, pattern, true)
				}
			})
			t.Run(fmt.Sprintf("sliding/k=%d/m=%d", k, m), func(t *testing.T) {
				for pattern := range 1 << (k + m) {
					lossPattern(t, k, m, pattern, false)
				}
			})
		}
	}
}

// lossPattern sends k symbols and m repairs; bit i of the pattern loses the i-th
// of them. A block's parities cover the group. A sliding repair covers the three
// symbols up to some position, so that windows overlap in part.
func lossPattern(t *testing.T, k, m, pattern int, block bool) {
	lost := func(i int) bool { return pattern>>i&1 == 1 }
	f := newFlow(t, Config{First: 1000})
	for i := range k {
		f.send(10+i, lost(i))
	}
	missing, arrived := 0, 0
	for i := range k {
		if lost(i) {
			missing++
		}
	}
	for i := range m {
		if lost(k + i) {
			continue
		}
		arrived++
		if block {
			f.repair(Block(1000, k, i))
			continue
		}
		end := 1 + (i*k/m+i)%k
		span := min(end, 3)
		f.repair(Sliding(1000+uint64(end-span), span, uint64(5*i)))
	}
	if block {
		restored := f.dec.Stats().Restored
		if want := uint64(missing); arrived >= missing && restored != want || arrived < missing && restored != 0 {
			t.Fatalf("pattern %b: %d of %d missing restored from %d parities", pattern, restored, missing, arrived)
		}
	}
	// What is still missing arrives at last, and nothing is left over.
	for i := k - 1; i >= 0; i-- {
		f.source(1000 + uint64(i))
	}
	if f.dec.Rows() != 0 {
		t.Fatalf("pattern %b: %d rows left although all symbols are known", pattern, f.dec.Rows())
	}
}

func TestUnequalLengths(t *testing.T) {
	for _, lengths := range [][]int{
		{0}, {1}, {0, 0, 0}, {0, 1500, 0}, {1500, 1500}, {1, 2, 3, 4, 5, 6, 7, 8},
		{26, 25, 27, 58, 57, 59, 0}, {1500, 3, 700, 0, 1499, 64},
	} {
		t.Run(fmt.Sprint(lengths), func(t *testing.T) {
			for lost := range len(lengths) {
				for also := range len(lengths) {
					f := newFlow(t, Config{})
					for i, n := range lengths {
						f.send(n, i == lost || i == also)
					}
					r := Block(0, len(lengths), 0)
					if n, want := len(f.payload(r)), Overhead+slices.Max(lengths); n != want {
						t.Fatalf("payload of %d bytes, want %d", n, want)
					}
					f.repair(r)
					r.Seed = 1
					f.repair(r)
					if got := f.dec.Rows(); got != 0 {
						t.Fatalf("%d rows left", got)
					}
				}
			}
		})
	}
}

func TestLargestSymbols(t *testing.T) {
	f := newFlow(t, Config{Limits: Limits{SymbolBytes: MaxSymbolBytes, Bytes: 2 << 20}})
	for i := range 4 {
		f.send(MaxSymbolBytes-i%2, i > 1)
	}
	f.repair(Block(0, 4, 0))
	f.repair(Block(0, 4, 1))
	if s := f.dec.Stats(); s.Restored != 2 {
		t.Fatalf("restored %d of 2", s.Restored)
	}
}

// Ids that a protocol cuts to 24 or 32 bits, and the end of uint64 itself: the
// same losses give the same result wherever the flow stands.
func TestIDsWrap(t *testing.T) {
	run := func(first uint64) (s DecoderStats) {
		f := newFlow(t, Config{First: first})
		rng := rand.New(rand.NewPCG(31, 31))
		for i := range 400 {
			f.send(20+rng.IntN(30), rng.IntN(10) == 0)
			if i%4 == 3 && rng.IntN(10) > 0 {
				span := min(i+1, 16)
				f.repair(Sliding(f.sent-uint64(span), span, f.seed))
			}
			f.seed++
			f.dec.Advance(f.dec.known)
		}
		s = f.dec.Stats()
		s.Bytes, s.PeakBytes = 0, 0
		return s
	}
	want := run(0)
	if want.Restored < 20 {
		t.Fatalf("restored %d symbols: the test tests nothing", want.Restored)
	}
	for _, wrap := range []uint64{1 << 24, 1 << 31, 1 << 32, 1 << 63, 0} {
		// Coefficients depend on the id modulo 128, so the start keeps that.
		if got := run(wrap - 256); got != want {
			t.Errorf("across %d: %+v, want %+v", wrap, got, want)
		}
	}
}

// A group code that numbers its groups from the packet id goes blind when the id
// wraps and groups restart in the middle. Here groups are windows: parities per
// group that restore a loss are the same before and after.
func TestGroupsAcrossWrap(t *testing.T) {
	for _, g := range []struct{ k, m int }{{10, 3}, {20, 5}, {4, 2}, {8, 2}} {
		for _, wrap := range []uint64{1 << 24, 1 << 32, 0} {
			groups := 100
			f := newFlow(t, Config{First: wrap - uint64(20*g.k) - uint64(g.k/2)})
			for i := range groups {
				first := f.sent
				for j := range g.k {
					f.send(30, j == i%g.k)
				}
				for j := range g.m {
					o := f.repair(Block(first, g.k, j))
					if want := []Outcome{Restored, Useless}[min(j, 1)]; o != want {
						t.Fatalf("%d+%d across %d: group %d, parity %d: %v, want %v", g.k, g.m, wrap, i, j, o, want)
					}
				}
				f.dec.Advance(f.sent)
				f.enc.Advance(f.sent)
			}
		}
	}
}

// Random schedules: loss, late sources, duplicates, sliding windows and groups of
// any size, with delivery in order. The decoder must restore exactly what the
// model says can be solved, at the very moment.
func TestRandomSchedules(t *testing.T) {
	rounds := 80
	if testing.Short() {
		rounds = 30
	}
	for seed := range rounds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { randomSchedule(t, uint64(seed)) })
	}
}

func randomSchedule(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 7))
	f := newFlow(t, Config{First: rng.Uint64(), Limits: Limits{Rows: maxRows, Work: maxWork}})
	loss := rng.Float64() * 0.4
	window := 1 + rng.IntN(40)
	if rng.IntN(4) == 0 {
		window = MaxSpan
	}
	rate := rng.Float64()
	var missing []uint64
	for range 300 {
		id := f.sent
		lost := rng.Float64() < loss
		f.send(rng.IntN(60), lost)
		if lost {
			missing = append(missing, id)
		}
		for rng.Float64() < rate {
			first, n := f.enc.Window()
			span := min(n, 1+rng.IntN(window))
			back := 0
			if n > span && rng.IntN(4) == 0 {
				back = rng.IntN(min(n-span, 20))
			}
			r := Sliding(first+uint64(n-span-back), span, f.seed)
			f.seed++
			if rng.Float64() < loss {
				continue
			}
			f.repair(r)
			if rng.IntN(20) == 0 {
				if o := f.repair(r); o != Useless && o != Late && o != Forgotten {
					t.Fatalf("duplicate: %v", o)
				}
			}
		}
		if len(missing) > 0 && rng.IntN(6) == 0 {
			// A late datagram or a retransmission.
			i := rng.IntN(len(missing))
			f.source(missing[i])
			missing = slices.Delete(missing, i, i+1)
		}
		if rng.IntN(8) == 0 {
			f.dec.Advance(f.dec.known)
			f.check()
		}
	}
}

// Given-up symbols: Advance passes over unknown ones. What can be solved without
// them still is, and equations that need them go.
func TestAdvanceOverUnknown(t *testing.T) {
	f := newFlow(t, Config{})
	for i := range 6 {
		f.send(20, i == 1 || i == 2 || i == 4)
	}
	// Two equations in 1, 2 and 4: neither solves anything.
	f.repair(Block(0, 6, 0))
	f.repair(Block(0, 6, 1))
	f.dec.reach.keep = 0
	f.dec.Advance(2)
	if n := f.dec.Rows(); n != 1 {
		t.Fatalf("%d rows, want 1: the one that does without symbol 1", n)
	}
	f.symbols[1] = nil
	f.model.known[1] = true // nobody waits for it
	if !f.dec.AddSource(4, f.symbols[4]) {
		t.Fatal("symbol 4 is no news")
	}
	if got := f.drain(); !slices.Equal(got, []uint64{2}) {
		t.Fatalf("restored %d, want 2", got)
	}
	if s := f.dec.Stats(); s.Expired != 1 || s.Used != 1 {
		t.Fatalf("%+v", s)
	}
}

// A given-up symbol that an equation yields on the way is used, not delivered.
func TestUnwantedIsNotDelivered(t *testing.T) {
	f := newFlow(t, Config{})
	for i := range 4 {
		f.send(20, i == 1 || i == 2)
	}
	f.repair(Block(0, 4, 0))
	f.dec.Advance(2) // 1 is given up but stays in the equations
	f.repair(Block(0, 4, 1))
	if s := f.dec.Stats(); s.Used != 2 || s.Restored != 1 {
		t.Fatalf("%+v", s)
	}
}

func TestOutcomes(t *testing.T) {
	const first = 500
	f := newFlow(t, Config{First: first, Limits: Limits{SymbolBytes: 100, Symbols: 256, Span: 64}})
	for i := range 80 {
		f.send(50, i == 40 || i == 41)
	}
	ok := f.payload(Sliding(first, 8, 0))
	for _, c := range []struct {
		name    string
		r       Repair
		payload []byte
		want    Outcome
	}{
		{"no span", Repair{First: first, Seed: 1}, ok, BadWindow},
		{"negative span", Repair{First: first, Span: -1}, ok, BadWindow},
		{"span above the limit", Repair{First: first, Span: 65}, ok, BadWindow},
		{"span overflows", Repair{First: first, Span: math.MaxInt}, ok, BadWindow},
		{"seed", Repair{First: first, Span: 8, Seed: Seeds}, ok, BadWindow},
		{"far ahead", Repair{First: first + 80 + 256 - 7, Span: 8}, ok, BadWindow},
		{"just not too far ahead", Repair{First: first + 80 + 256 - 8, Span: 8}, ok, Held},
		{"almost half the number space ahead", Repair{First: first + 1<<63, Span: 8}, ok, BadWindow},
		{"half the number space behind", Repair{First: first + 1<<63 + 80, Span: 8}, ok, Late},
		{"empty payload", Repair{First: first + 40, Span: 8}, nil, BadLength},
		{"payload below the overhead", Repair{First: first + 40, Span: 8}, ok[:Overhead-1], BadLength},
		{"payload above the limit", Repair{First: first + 40, Span: 8}, make([]byte, Overhead+101), BadLength},
		{"payload below a known symbol", Repair{First: first + 40, Span: 8}, ok[:Overhead+49], BadLength},
		{"all known", Sliding(first, 8, 0), ok, Useless},
		{"all known, after a gap", Sliding(first+42, 8, 0), ok, Useless},
		{"before the flow", Sliding(first-8, 8, 0), ok, Late},
		{"begins before the flow", Sliding(first-4, 64, 0), ok, Forgotten},
		{"two unknown", Sliding(first+32, 16, 0), f.payload(Sliding(first+32, 16, 0)), Held},
		{"again", Sliding(first+32, 16, 0), f.payload(Sliding(first+32, 16, 0)), Useless},
		{"second equation", Sliding(first+36, 16, 1), f.payload(Sliding(first+36, 16, 1)), Restored},
		{"third", Sliding(first+36, 16, 2), f.payload(Sliding(first+36, 16, 2)), Useless},
	} {
		got := f.dec.AddRepair(c.r, c.payload)
		if got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		f.drain()
	}
	if s := f.dec.Stats(); s.Restored != 2 || s.BadWindow != 7 || s.BadLength != 4 || s.Late != 2 || s.Forgotten != 1 {
		t.Errorf("%+v", s)
	}
	for o := Outcome(0); o <= OverLimit+1; o++ {
		if known := o.String() != "unknown outcome"; known != (o >= Restored && o <= OverLimit) {
			t.Errorf("Outcome(%d) is called %q", o, o)
		}
	}
}

func TestNextInOrderAndPinned(t *testing.T) {
	f := newFlow(t, Config{})
	for i := range 8 {
		f.send(30, i%2 == 1)
	}
	for i := range 4 {
		f.dec.AddRepair(Block(0, 8, i), f.payload(Block(0, 8, i)))
	}
	for want := uint64(1); want < 8; want += 2 {
		id, data, ok := f.dec.Next()
		if !ok || id != want || string(data) != string(f.symbols[id]) {
			t.Fatalf("Next = %d, %t, want %d", id, ok, want)
		}
	}
	if _, _, ok := f.dec.Next(); ok {
		t.Fatal("more than was lost")
	}
}

// What Advance passes is not handed out any more.
func TestNextSkipsDelivered(t *testing.T) {
	f := newFlow(t, Config{})
	for i := range 4 {
		f.send(30, i < 2)
	}
	for i := range 2 {
		f.dec.AddRepair(Block(0, 4, i), f.payload(Block(0, 4, i)))
	}
	f.dec.Advance(1)
	if id, _, ok := f.dec.Next(); !ok || id != 1 {
		t.Fatalf("Next = %d, %t, want 1", id, ok)
	}
	f.drain()
}

func TestKnown(t *testing.T) {
	f := newFlow(t, Config{})
	for i := range 3 {
		f.send(10, i == 1)
	}
	if !f.dec.Known(0) || f.dec.Known(1) || !f.dec.Known(2) || f.dec.Known(3) {
		t.Fatal("Known does not tell received symbols from lost ones")
	}
	f.repair(Block(0, 3, 0))
	if !f.dec.Known(1) {
		t.Fatal("a restored symbol is not known")
	}
}
