package fec

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		name   string
		limits Limits
		want   string // part of the error; empty means valid
	}{
		{"zero", Limits{}, ""},
		{"smallest", Limits{SymbolBytes: 1, Span: 1, Symbols: 1, Bytes: 32 << 10, Rows: 1, Work: 1}, ""},
		{"largest", Limits{SymbolBytes: MaxSymbolBytes, Span: 128, Symbols: 1 << 14, Bytes: 1 << 30, Rows: 255, Work: 1024}, ""},
		{"symbol", Limits{SymbolBytes: MaxSymbolBytes + 1}, "Limits.SymbolBytes is 65530, want 1 to 65529"},
		{"negative", Limits{Span: -1}, "Limits.Span is -1, want 1 to 128"},
		{"span", Limits{Span: 129}, "Limits.Span"},
		{"symbols", Limits{Symbols: 1<<14 + 1}, "Limits.Symbols"},
		{"bytes", Limits{Bytes: 1000}, "Limits.Bytes is 1000, want 32768 to"},
		{"bytes for the symbols", Limits{SymbolBytes: 60000, Bytes: 100000}, "at least 4 times Limits.SymbolBytes, 240000"},
		{"rows", Limits{Rows: 256}, "Limits.Rows"},
		{"work", Limits{Work: 1025}, "Limits.Work"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, encErr := NewEncoder(Config{Limits: c.limits})
			_, decErr := NewDecoder(Config{Limits: c.limits})
			for _, err := range []error{encErr, decErr} {
				switch {
				case c.want == "" && err != nil:
					t.Errorf("%v", err)
				case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
					t.Errorf("%v, want %q", err, c.want)
				}
			}
		})
	}
}

// The accounts are in constants; they must cover what is really allocated.
func TestSizesCoverTheTypes(t *testing.T) {
	for _, c := range []struct {
		name        string
		size, count uintptr
	}{
		{"solver", unsafe.Sizeof(solver{}), solverBytes},
		{"row", unsafe.Sizeof(row{}), rowBytes},
		{"value", unsafe.Sizeof(value{}), valueBytes},
		{"ring slot", unsafe.Sizeof((*value)(nil)), ringSlotBytes},
	} {
		if c.size > c.count {
			t.Errorf("a %s takes %d bytes, accounted as %d", c.name, c.size, c.count)
		}
	}
	for n := 1; n <= 1<<16-1; n++ {
		class, size := sizeClass(n)
		if size < padded(n) || class >= sizeClasses || n > 256 && size > n+n/4+smallStep {
			t.Fatalf("%d bytes: class %d of %d bytes", n, class, size)
		}
		if c, s := sizeClass(size); size < 1<<16 && (c != class || s != size) {
			t.Fatalf("class of %d is %d, class of %d is %d", n, class, size, c)
		}
	}
}

// A flow without loss and repairs holds a handful of symbols, one without symbols
// nothing.
func TestMemoryOnlyOnUse(t *testing.T) {
	f := newFlow(t, Config{})
	if e, d := f.enc.Stats(), f.dec.Stats(); e.Bytes != 0 || d.Bytes != 0 {
		t.Fatalf("new: %d and %d bytes", e.Bytes, d.Bytes)
	}
	peak := 0
	for range 2 * reachForever {
		f.sendBlind(1100, false)
		f.enc.Advance(f.sent)
		f.dec.Advance(f.sent)
		peak = max(peak, f.dec.Stats().Symbols)
	}
	if peak > reachStart+1 {
		t.Errorf("%d symbols kept for a sender without repairs, want at most %d", peak, reachStart+1)
	}
	if d := f.dec.Stats(); d.Symbols != 0 || d.Bytes > 4<<10 {
		t.Errorf("%d symbols, %d bytes kept after %d symbols without a repair", d.Symbols, d.Bytes, 2*reachForever)
	}
	f.enc.Release()
	f.dec.Release()
	if e, d := f.enc.Stats(), f.dec.Stats(); e.Bytes != 0 || d.Bytes != 0 {
		t.Errorf("released: %d and %d bytes", e.Bytes, d.Bytes)
	}
}

// The decoder keeps as much as the sender's windows reach back, no more, and
// follows when they grow.
func TestKeepsWhatRepairsReach(t *testing.T) {
	f := newFlow(t, Config{})
	step := func(span int, lost bool) Outcome {
		f.sendBlind(100, lost)
		_, n := f.enc.Window()
		span = min(span, n)
		r := Sliding(f.sent-uint64(span), span, f.sent)
		o := f.dec.AddRepair(r, f.payload(r))
		f.drain()
		f.dec.Advance(f.dec.known)
		return o
	}
	for range 300 {
		step(20, false)
	}
	if n := f.dec.Stats().Symbols; n < 19 || n > 40 {
		t.Errorf("%d symbols kept for windows of 20", n)
	}
	if o := step(20, true); o != Restored {
		t.Errorf("window of 20: %v", o)
	}
	if o := step(128, true); o != Forgotten {
		t.Errorf("first window of 128: %v, want %v", o, Forgotten)
	}
	f.dec.AddSource(f.sent-1, f.symbols[f.sent-1])
	f.dec.Advance(f.dec.known)
	for range 130 {
		step(128, false)
	}
	if o := step(128, true); o != Restored {
		t.Errorf("window of 128 after a while: %v, want %v", o, Restored)
	}
}

// After a long silence both ends release; the flow goes on as if new.
func TestReleaseAndGoOn(t *testing.T) {
	f := newFlow(t, Config{})
	for i := range 20 {
		f.send(300, i == 7 || i == 8)
	}
	if o := f.repair(Sliding(4, 16, 0)); o != Held {
		t.Fatal(o)
	}
	f.enc.Release()
	f.dec.Release()
	f.dec.Advance(f.sent)
	f.model = model{known: map[uint64]bool{}}
	f.audit()
	if s := f.dec.Stats(); s.Expired != 1 || s.Bytes != 0 || s.Rows != 0 {
		t.Fatalf("%+v", s)
	}
	first := f.sent
	for i := range 8 {
		f.send(300, i == 3)
	}
	if o := f.repair(Block(first, 8, 0)); o != Restored {
		t.Fatal(o)
	}
	if _, err := f.enc.AppendRepair(nil, Sliding(first-1, 4, 0)); !errors.Is(err, ErrWindow) {
		t.Fatalf("a window over released symbols: %v", err)
	}
}

// An owner takes memory away: the oldest goes, the rest works.
func TestShrink(t *testing.T) {
	f := newFlow(t, Config{})
	for i := range 100 {
		f.sendBlind(1000, i%50 == 48 || i%50 == 49)
	}
	f.repairBlind(Sliding(30, 30, 0), Held)
	f.repairBlind(Sliding(80, 20, 1), Held)
	for n := f.dec.Bytes(); n > 0; n -= 5000 {
		f.dec.Shrink(n)
		f.enc.Shrink(n)
		f.audit()
		if d, e := f.dec.Bytes(), f.enc.Bytes(); d > n || e > n {
			t.Fatalf("%d and %d bytes held, asked for %d", d, e, n)
		}
		if n > 30000 && n < 35000 {
			f.repairBlind(Sliding(96, 4, 2), Restored)
			f.repairBlind(Sliding(97, 3, 3), Useless)
		}
	}
	f.dec.Shrink(0)
	f.enc.Shrink(0)
	s := f.dec.Stats()
	if s.Bytes != 0 || s.Restored != 2 || s.Evicted != 1 || s.SourcesEvicted == 0 || f.enc.Bytes() != 0 {
		t.Fatalf("%+v", s)
	}
}

// A caller that does not drain loses nothing and breaks no limit.
func TestReleaseWithSymbolsNotTaken(t *testing.T) {
	f := newFlow(t, Config{})
	for i := range 8 {
		f.send(300, i < 2)
	}
	for i := range 2 {
		f.dec.AddRepair(Block(0, 8, i), f.payload(Block(0, 8, i)))
	}
	if _, _, ok := f.dec.Next(); !ok {
		t.Fatal("nothing restored")
	}
	f.dec.Release()
	f.audit()
	if s := f.dec.Stats(); s.Bytes != 0 || s.Restored != 2 {
		t.Fatalf("%+v", s)
	}
}

func TestRowsLimit(t *testing.T) {
	const rows = 10
	f := newFlow(t, Config{Limits: Limits{Rows: rows}})
	for range 40 {
		f.sendBlind(30, true)
		f.sendBlind(30, true)
		f.repairBlind(Sliding(f.sent-2, 2, 0), Held)
	}
	s := f.dec.Stats()
	if s.Rows != rows || s.Evicted != 40-rows {
		t.Fatalf("%+v", s)
	}
	// The newest survived.
	for i := f.sent - 2*rows; i != f.sent; i += 2 {
		f.dec.AddSource(i, f.symbols[i])
		if got := f.drain(); !slices.Equal(got, []uint64{i + 1}) {
			t.Fatalf("restored %d, want %d", got, i+1)
		}
	}
}

// More unknown symbols than columns: old equations go, new ones work.
func TestColumnsRunOut(t *testing.T) {
	f := newFlow(t, Config{Limits: Limits{Rows: maxRows, Symbols: 2048}})
	for range 10 {
		for range MaxSpan {
			f.sendBlind(10, true)
		}
		for i := range 3 {
			f.repairBlind(Sliding(f.sent-MaxSpan, MaxSpan, uint64(i)), Held)
		}
	}
	if s := f.dec.Stats(); s.Rows < 3 || s.Rows > 6 || s.Evicted == 0 {
		t.Fatalf("%+v", s)
	}
	for id := f.sent - MaxSpan; id != f.sent-3; id++ {
		f.dec.AddSource(id, f.symbols[id])
	}
	if got := f.drain(); len(got) != 3 {
		t.Fatalf("restored %d, want the last 3", got)
	}
}

func TestWorkLimit(t *testing.T) {
	f := newFlow(t, Config{Limits: Limits{Work: 20}})
	for i := range 64 {
		f.sendBlind(30, i == 60)
	}
	before := f.dec.Stats().MulAdds
	f.repairBlind(Sliding(32, 32, 0), OverLimit) // 31 known symbols to subtract
	if n := f.dec.Stats().MulAdds - before; n != 0 {
		t.Errorf("%d passes over payloads for a repair that was refused", n)
	}
	f.repairBlind(Sliding(44, 20, 0), Restored)
}

// What one call can cost is in the package documentation. Noise in all forms
// tries to break it.
func TestWorkIsBounded(t *testing.T) {
	limits := Limits{Rows: 40, Work: 150, Bytes: 64 << 10, SymbolBytes: 200, Symbols: 300}
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 9))
		d, err := NewDecoder(Config{Limits: limits})
		if err != nil {
			t.Fatal(err)
		}
		id := uint64(0)
		for range 1000 {
			before := d.Stats().MulAdds
			allowed := uint64(limits.Rows + 2)
			switch rng.IntN(5) {
			case 0:
				id++
				d.AddSource(id, symbol(id, rng.IntN(200)))
			case 1:
				d.AddSource(id-uint64(rng.IntN(100)), symbol(id, rng.IntN(200)))
			default:
				span := 1 + rng.IntN(MaxSpan)
				first := id - uint64(rng.IntN(2*MaxSpan)) + uint64(rng.IntN(2*MaxSpan))
				d.AddRepair(Sliding(first, span, rng.Uint64()), symbol(rng.Uint64(), Overhead+rng.IntN(200)))
				allowed = uint64(limits.Work + 1)
			}
			if n := d.Stats().MulAdds - before; n > allowed {
				t.Fatalf("seed %d: one call took %d passes, want at most %d", seed, n, allowed)
			}
			if err := auditDecoder(d); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if rng.IntN(50) == 0 {
				d.Advance(id - 20)
			}
		}
		if s := d.Stats(); s.Restored != 0 {
			t.Fatalf("seed %d: %d symbols restored from noise", seed, s.Restored)
		}
	}
}

// Little memory, much loss: the limit holds at every step and what fits is still
// restored.
func TestBytesLimit(t *testing.T) {
	for _, size := range []int{0, 60, 1100, 1500} {
		rng := rand.New(rand.NewPCG(uint64(size), 3))
		f := newFlow(t, Config{Limits: Limits{Bytes: 64 << 10}})
		for range 1500 {
			f.sendBlind(rng.IntN(size+1), rng.IntN(5) == 0)
			if rng.IntN(2) == 0 {
				_, n := f.enc.Window()
				span := min(n, 1+rng.IntN(60))
				r := Sliding(f.sent-uint64(span), span, f.sent)
				f.dec.AddRepair(r, f.payload(r))
				f.drain()
			}
		}
		s := f.dec.Stats()
		if s.Restored < 100 {
			t.Errorf("%d bytes: %+v", size, s)
		}
		if size >= 1100 && (s.SourcesEvicted == 0 || s.PeakBytes < 40<<10) {
			t.Errorf("%d bytes: limit never met: %+v", size, s)
		}
	}
}

// Restored symbols that nobody takes fill the memory; the limit still holds.
func TestBytesLimitWithoutDraining(t *testing.T) {
	f := newFlow(t, Config{Limits: Limits{Bytes: 32 << 10}})
	for range 200 {
		f.send(1000, true)
		r := Sliding(f.sent-1, 1, f.sent)
		f.dec.AddRepair(r, f.payload(r))
		if err := auditDecoder(f.dec); err != nil {
			t.Fatal(err)
		}
	}
	// A source symbol finds no room either. It is lost to later repairs, no more.
	f.symbols[1000] = symbol(1000, 1000)
	f.dec.AddSource(1000, f.symbols[1000])
	if s := f.dec.Stats(); s.Sources != 1 || s.SourcesEvicted == 0 || s.Symbols != 0 || f.dec.Known(1000) {
		t.Fatalf("%+v", s)
	}
	s := f.dec.Stats()
	if s.OverLimit == 0 || s.Restored == 0 || s.Restored+s.OverLimit != 200 {
		t.Fatalf("%+v", s)
	}
	if got := f.drain(); len(got) != int(s.Restored) {
		t.Fatalf("%d taken, %d restored", len(got), s.Restored)
	}
	f.sent = 1001
	f.sendBlind(1000, true)
	f.repairBlind(Sliding(f.sent-1, 1, 0), Restored)
}

// Equations outlive the symbols around them: a retransmission that comes much
// later still counts.
func TestSourceOlderThanWhatIsKept(t *testing.T) {
	f := newFlow(t, Config{Limits: Limits{Symbols: 64}})
	for i := range 8 {
		f.sendBlind(50, i < 2)
	}
	f.repairBlind(Block(0, 8, 0), Held)
	for range 100 {
		f.sendBlind(50, false)
	}
	if f.dec.AddSource(5, f.symbols[5]) || f.dec.Known(5) {
		t.Fatal("symbol 5 should be too old to be kept")
	}
	if !f.dec.AddSource(1, f.symbols[1]) {
		t.Fatal("symbol 1 is waited for")
	}
	if got := f.drain(); !slices.Equal(got, []uint64{0}) {
		t.Fatalf("restored %d, want 0", got)
	}
	if f.dec.AddSource(1, f.symbols[1]) || f.dec.AddSource(0, f.symbols[0]) {
		t.Fatal("nothing waits any more")
	}
	f.audit()
}

// The ids of a flow that jumps leave nothing behind.
func TestJumps(t *testing.T) {
	f := newFlow(t, Config{Limits: Limits{Symbols: 64}})
	id := uint64(0)
	for _, jump := range []uint64{1, 1, 63, 64, 65, 1000, 1 << 20, 1 << 40, 1 << 62} {
		for range 70 {
			id++
			f.dec.AddSource(id, []byte("x"))
			f.audit()
		}
		id += jump
	}
	f.dec.Advance(id + 1<<50)
	f.audit()
	if s := f.dec.Stats(); s.Symbols != 0 {
		t.Fatalf("%d symbols kept behind the Advance point", s.Symbols)
	}
	f.dec.Advance(5) // going back is no effect
	if f.dec.want != id+1<<50 {
		t.Fatal("Advance went back")
	}
}

func TestSourceAboveLimit(t *testing.T) {
	f := newFlow(t, Config{Limits: Limits{SymbolBytes: 10}})
	if f.dec.AddSource(0, make([]byte, 11)) {
		t.Error("taken")
	}
	if err := f.enc.Add(0, make([]byte, 11)); !errors.Is(err, ErrSymbolSize) {
		t.Errorf("Add: %v", err)
	}
	if s := f.dec.Stats(); s.SourcesRefused != 1 || s.Symbols != 0 {
		t.Errorf("%+v", s)
	}
}
