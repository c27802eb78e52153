package fec

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/reedsolomon"
)

const benchBytes = 1100

var benchWindows = []int{8, 16, 64, 128}

// What everything else is made of: one pass over one symbol.
func BenchmarkMulAdd(b *testing.B) {
	src, dst := make([]byte, 1120), make([]byte, 1120)
	b.SetBytes(benchBytes)
	c := byte(2)
	for b.Loop() {
		mulAddSlice(c, src, dst)
		c |= c<<1 | 2
	}
}

func benchFlow(b *testing.B, window int, lost int) *flow {
	f := newFlow(b, Config{})
	for i := range window {
		id := uint64(i)
		f.symbols[id] = symbol(id, benchBytes)
		if err := f.enc.Add(id, f.symbols[id]); err != nil {
			b.Fatal(err)
		}
		if i >= lost {
			f.dec.AddSource(id, f.symbols[id])
		}
	}
	return f
}

// One source symbol at the sender.
func BenchmarkEncoderAdd(b *testing.B) {
	for _, window := range benchWindows {
		b.Run(fmt.Sprintf("window=%d", window), func(b *testing.B) {
			f := benchFlow(b, window, 0)
			data := symbol(1, benchBytes)
			id := uint64(window)
			b.ReportAllocs()
			b.SetBytes(benchBytes)
			for b.Loop() {
				if err := f.enc.Add(id, data); err != nil {
					b.Fatal(err)
				}
				id++
				f.enc.Advance(id - uint64(window))
			}
		})
	}
}

// One repair at the sender, alone or among others over the same window.
func BenchmarkAppendRepairs(b *testing.B) {
	for _, window := range benchWindows {
		for _, n := range []int{1, 2, 4, 8} {
			b.Run(fmt.Sprintf("window=%d/repairs=%d", window, n), func(b *testing.B) {
				f := benchFlow(b, window, 0)
				dsts := make([][]byte, n)
				for i := range dsts {
					dsts[i] = make([]byte, 0, 2*benchBytes)
				}
				b.ReportAllocs()
				for b.Loop() {
					for i := range dsts {
						dsts[i] = dsts[i][:0]
					}
					if err := f.enc.AppendRepairs(dsts, Block(0, window, 1)); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/repair")
			})
		}
	}
}

// The same groups with the encoder of the reedsolomon module, which codes equal
// lengths only and needs no header, for scale.
func BenchmarkPlainReedSolomon(b *testing.B) {
	for _, c := range []struct{ k, m int }{{8, 2}, {16, 4}} {
		b.Run(fmt.Sprintf("window=%d/repairs=%d", c.k, c.m), func(b *testing.B) {
			enc, err := reedsolomon.New(c.k, c.m)
			if err != nil {
				b.Fatal(err)
			}
			shards := make([][]byte, c.k+c.m)
			for i := range shards {
				shards[i] = symbol(uint64(i), benchBytes)
			}
			for b.Loop() {
				if err := enc.Encode(shards); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*c.m), "ns/repair")
		})
	}
}

// One source symbol at the receiver, nothing waiting for it.
func BenchmarkDecoderAddSource(b *testing.B) {
	f := benchFlow(b, 16, 0)
	data := symbol(1, benchBytes)
	id := uint64(16)
	b.ReportAllocs()
	b.SetBytes(benchBytes)
	for b.Loop() {
		f.dec.AddSource(id, data)
		id++
		f.dec.Advance(id)
	}
}

// A repair at the receiver that restores a symbol, alone or together with others:
// from payload to checked symbol.
func BenchmarkDecoderRestore(b *testing.B) {
	for _, window := range benchWindows {
		for _, lost := range []int{1, 2, 4, 8} {
			b.Run(fmt.Sprintf("window=%d/lost=%d", window, lost), func(b *testing.B) {
				f := benchFlow(b, window, lost)
				payloads := make([][]byte, lost)
				for i := range payloads {
					payloads[i] = f.payload(Block(0, window, i+1))
				}
				b.ReportAllocs()
				for b.Loop() {
					for i, p := range payloads {
						f.dec.AddRepair(Block(0, window, i+1), p)
					}
					for range lost {
						if _, _, ok := f.dec.Next(); !ok {
							b.Fatal("not restored")
						}
					}
					f.dec.unlearn(lost)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*lost), "ns/repair")
			})
		}
	}
}

// unlearn loses the symbols before n again.
func (d *Decoder) unlearn(n int) {
	d.unpin()
	for id := range uint64(n) {
		v := d.ring.get(id)
		d.ring.slots[id] = nil
		d.ring.count--
		unstore(&d.pool, v)
	}
	d.known = 0
}

// A repair at the receiver whose symbols are all known: on a good path, most.
func BenchmarkDecoderUseless(b *testing.B) {
	f := benchFlow(b, 64, 0)
	p := f.payload(Block(0, 64, 1))
	b.ReportAllocs()
	for b.Loop() {
		f.dec.AddRepair(Block(0, 64, 1), p)
	}
}

// The most expensive repairs that could be thought of: full tables, wide windows
// without a known symbol, nearly every one independent. They wander by as many
// symbols as one window has, or by as many as the limit allows, where columns run
// out.
func BenchmarkDecoderHostile(b *testing.B) {
	for _, rows := range []int{defaultRows, maxRows} {
		for _, wander := range []uint64{MaxSpan, defaultSymbols - MaxSpan} {
			b.Run(fmt.Sprintf("rows=%d/wander=%d", rows, wander), func(b *testing.B) {
				d, err := NewDecoder(Config{Limits: Limits{Rows: rows}})
				if err != nil {
					b.Fatal(err)
				}
				p := symbol(1, Overhead+benchBytes)
				rng := rand.New(rand.NewPCG(1, 1))
				b.ReportAllocs()
				for b.Loop() {
					d.AddRepair(Sliding(rng.Uint64N(wander), MaxSpan, rng.Uint64()), p)
				}
				s := d.Stats()
				b.ReportMetric(float64(s.MulAdds)/float64(b.N), "passes/op")
			})
		}
	}
}
