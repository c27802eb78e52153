package fec

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// A lie is what can be wrong with a repair. It may change what it is given.
var lies = []struct {
	name string
	tell func(rng *rand.Rand, f *flow, r Repair, p []byte) (Repair, []byte)
}{
	{"window starts elsewhere", func(rng *rand.Rand, _ *flow, r Repair, p []byte) (Repair, []byte) {
		r.First += uint64(rng.IntN(9)) - 4
		return r, p
	}},
	{"window ends elsewhere", func(rng *rand.Rand, _ *flow, r Repair, p []byte) (Repair, []byte) {
		r.Span = 1 + rng.IntN(MaxSpan)
		return r, p
	}},
	{"one symbol only", func(rng *rand.Rand, _ *flow, r Repair, p []byte) (Repair, []byte) {
		r.First += uint64(rng.IntN(r.Span))
		r.Span = 1
		return r, p
	}},
	{"wrong coefficients", func(rng *rand.Rand, _ *flow, r Repair, p []byte) (Repair, []byte) {
		r.Seed = uint8(rng.IntN(Seeds))
		return r, p
	}},
	{"bit flipped", func(rng *rand.Rand, _ *flow, r Repair, p []byte) (Repair, []byte) {
		p[rng.IntN(len(p))] ^= 1 << rng.IntN(8)
		return r, p
	}},
	{"bytes cut off", func(rng *rand.Rand, _ *flow, r Repair, p []byte) (Repair, []byte) {
		return r, p[:rng.IntN(len(p))]
	}},
	{"bytes added", func(rng *rand.Rand, _ *flow, r Repair, p []byte) (Repair, []byte) {
		return r, append(p, make([]byte, 1+rng.IntN(20))...)
	}},
	{"noise added", func(rng *rand.Rand, _ *flow, r Repair, p []byte) (Repair, []byte) {
		return r, append(p, symbol(rng.Uint64(), 1+rng.IntN(20))...)
	}},
	{"noise", func(rng *rand.Rand, _ *flow, r Repair, p []byte) (Repair, []byte) {
		return r, symbol(rng.Uint64(), len(p))
	}},
	{"zeros", func(_ *rand.Rand, _ *flow, r Repair, p []byte) (Repair, []byte) {
		clear(p)
		return r, p
	}},
	{"another repair's payload", func(rng *rand.Rand, f *flow, r Repair, p []byte) (Repair, []byte) {
		first, n := f.enc.Window()
		span := 1 + rng.IntN(min(n, 16))
		return r, f.payload(Sliding(first+uint64(n-span), span, rng.Uint64()))
	}},
	{"another epoch", func(_ *rand.Rand, f *flow, r Repair, p []byte) (Repair, []byte) {
		return r, f.foreign(r, f.enc.epoch+1, func(id uint64) []byte { return f.symbols[id] })
	}},
	{"another session", func(_ *rand.Rand, f *flow, r Repair, p []byte) (Repair, []byte) {
		return r, f.foreign(r, f.enc.epoch+99, func(id uint64) []byte { return symbol(^id, len(f.symbols[id])) })
	}},
}

// foreign makes the payload of r over other symbols or with another epoch.
func (f *flow) foreign(r Repair, epoch uint64, data func(uint64) []byte) []byte {
	e, err := NewEncoder(Config{Epoch: epoch})
	if err != nil {
		f.t.Fatal(err)
	}
	for id := r.First; id != r.End(); id++ {
		if err := e.Add(id, data(id)); err != nil {
			f.t.Fatal(err)
		}
	}
	p, err := e.AppendRepair(nil, r)
	if err != nil {
		f.t.Fatal(err)
	}
	return p
}

// Repairs that lie among honest ones: no wrong byte comes out, everything is
// accounted for, and honest repairs still restore.
func TestLies(t *testing.T) {
	for _, lie := range lies {
		t.Run(lie.name, func(t *testing.T) {
			for seed := range uint64(20) {
				rng := rand.New(rand.NewPCG(seed, 46))
				f := newFlow(t, Config{First: rng.Uint64(), Epoch: 77})
				size := 4 + rng.IntN(100) // of equal length, where linear sums are weakest
				for range 200 {
					f.sendBlind(size, rng.Float64() < 0.15)
					if rng.IntN(2) > 0 {
						continue
					}
					first, n := f.enc.Window()
					span := min(n, 1+rng.IntN(12))
					r := Sliding(first+uint64(n-span), span, f.seed)
					f.seed++
					p := f.payload(r)
					if rng.IntN(3) == 0 {
						r, p = lie.tell(rng, f, r, p)
					}
					f.dec.AddRepair(r, p)
					f.drain()
					if rng.IntN(10) == 0 {
						f.dec.Advance(f.dec.known)
					}
				}
				if s := f.dec.Stats(); s.Restored == 0 {
					t.Fatalf("seed %d: nothing restored: %+v", seed, s)
				}
			}
		})
	}
}

// sendBlind is send without the model, which knows no lies.
func (f *flow) sendBlind(n int, lost bool) {
	f.t.Helper()
	id := f.sent
	f.sent++
	f.symbols[id] = symbol(id, n)
	if err := f.enc.Add(id, f.symbols[id]); err != nil {
		f.t.Fatal(err)
	}
	if !lost {
		f.dec.AddSource(id, f.symbols[id])
		f.drain()
	}
}

// Every repair of a small group under every other header. Symbols of one length
// and ids whose XOR is 0 are what a plain CRC would fall for: with seed 0 the
// payload is the XOR of its window.
func TestEveryWrongHeader(t *testing.T) {
	const k = 8
	wrong := 0
	for span := 1; span <= k; span++ {
		for start := 0; start+span <= k; start++ {
			for _, seed := range []uint8{0, 1, 5} {
				for lost := range 1 << 4 {
					f := newFlow(t, Config{})
					for i := range k {
						f.sendBlind(12, lost>>i&1 == 1)
					}
					p := f.payload(Repair{First: uint64(start), Span: span, Seed: seed})
					for claim := 1; claim <= k; claim++ {
						for at := 0; at+claim <= k; at++ {
							for _, s := range []uint8{0, 1} {
								f.dec.AddRepair(Repair{First: uint64(at), Span: claim, Seed: s}, p)
								f.drain()
							}
						}
					}
					wrong += int(f.dec.Stats().BadChecksum)
				}
			}
		}
	}
	if wrong == 0 {
		t.Fatal("no checksum ever failed: the test tests nothing")
	}
}

// The case that a linear checksum lets through: the XOR of three symbols, claimed
// to be a fourth whose id is the XOR of the three ids.
func TestXORIsNotASymbol(t *testing.T) {
	f := newFlow(t, Config{})
	for i := range 4 {
		f.sendBlind(40, i == 0)
	}
	p := f.payload(Block(1, 3, 0)) // 1 XOR 2 XOR 3 = 0
	if o := f.dec.AddRepair(Repair{First: 0, Span: 1}, p); o != BadChecksum {
		t.Fatalf("%v, want %v", o, BadChecksum)
	}
	f.repairBlind(Block(0, 4, 0), Restored)
}

func (f *flow) repairBlind(r Repair, want Outcome) {
	f.t.Helper()
	if o := f.dec.AddRepair(r, f.payload(r)); o != want {
		f.t.Fatalf("repair %+v: %v, want %v", r, o, want)
	}
	f.drain()
}

// A wrong repair takes down what it was combined with and nothing else.
func TestBlame(t *testing.T) {
	f := newFlow(t, Config{})
	for i := range 24 {
		f.sendBlind(40, i%4 < 2) // 0 1, 4 5, 8 9, ... are lost
	}
	f.repairBlind(Block(0, 4, 0), Held)
	f.repairBlind(Block(4, 4, 0), Held)
	bad := f.payload(Block(8, 4, 0))
	bad[20]++
	if o := f.dec.AddRepair(Block(8, 4, 0), bad); o != Held {
		t.Fatalf("wrong repair: %v", o)
	}
	f.repairBlind(Block(8, 4, 1), BadChecksum) // solved together with the wrong one
	if s := f.dec.Stats(); s.BadChecksum != 2 || s.Rows != 2 {
		t.Fatalf("%+v", s)
	}
	f.repairBlind(Block(0, 4, 1), Restored)
	f.repairBlind(Block(4, 4, 1), Restored)
	f.repairBlind(Block(8, 4, 2), Held)
	f.repairBlind(Block(8, 4, 3), Restored)
	if s := f.dec.Stats(); s.BadChecksum != 2 || s.Restored != 6 {
		t.Fatalf("%+v", s)
	}
}

// What was part of a right solution is not suspected later.
func TestProvenIsNotBlamed(t *testing.T) {
	f := newFlow(t, Config{})
	for i := range 8 {
		f.sendBlind(40, i < 5)
	}
	// Three equations in 0 to 3, then one in 3 and 4.
	for i := range 3 {
		f.repairBlind(Block(0, 4, i), Held)
	}
	f.repairBlind(Block(3, 4, 9), Held)
	// Symbol 0 arrives: 1, 2 and 3 are solved, and with 3 also 4.
	f.dec.AddSource(0, f.symbols[0])
	if got := f.drain(); !slices.Equal(got, []uint64{1, 2, 3, 4}) {
		t.Fatalf("restored %d", got)
	}
	if s := f.dec.Stats(); s.Used != 4 || s.BadChecksum != 0 {
		t.Fatalf("%+v", s)
	}
}

// A symbol that is longer than an equation it is in proves the equation wrong.
func TestSymbolLongerThanItsRepair(t *testing.T) {
	for _, arrives := range []uint64{0, 1} { // the pivot, or another
		t.Run(fmt.Sprint(arrives), func(t *testing.T) {
			f := newFlow(t, Config{})
			for i := range 4 {
				f.sendBlind([]int{80, 80, 10, 10}[i], i < 2)
			}
			r := Block(0, 4, 3)
			if o := f.dec.AddRepair(r, f.payload(r)[:Overhead+30]); o != Held {
				t.Fatalf("cut repair: %v", o)
			}
			f.dec.AddSource(arrives, f.symbols[arrives])
			f.drain()
			if s := f.dec.Stats(); s.BadChecksum != 1 || s.Rows != 0 {
				t.Fatalf("%+v", s)
			}
			f.repairBlind(r, Restored)
		})
	}
}

// The payload is the caller's: it is neither kept nor changed.
func TestPayloadIsBorrowed(t *testing.T) {
	f := newFlow(t, Config{})
	for i := range 4 {
		f.sendBlind(40, i < 2)
	}
	for i := range 2 {
		p := f.payload(Block(0, 4, i))
		before := bytes.Clone(p)
		f.dec.AddRepair(Block(0, 4, i), p)
		if !bytes.Equal(p, before) {
			t.Fatal("payload changed")
		}
		clear(p)
	}
	if got := f.drain(); !slices.Equal(got, []uint64{0, 1}) {
		t.Fatalf("restored %d", got)
	}
}
