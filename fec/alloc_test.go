package fec

import (
	"math/rand/v2"
	"testing"
)

// Steady state: symbols come and go, some are lost, repairs restore them, and
// nothing is allocated at either end.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	enc, err := NewEncoder(Config{})
	if err != nil {
		t.Fatal(err)
	}
	dec, err := NewDecoder(Config{})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	all := symbol(1, 1100)
	data := func(id uint64) []byte { return all[:1000+id*37%101] }
	bufs := [][]byte{make([]byte, 0, 1200), make([]byte, 0, 1200)}
	var sent, n uint64
	restored := 0
	round := func() {
		for range 16 {
			if err := enc.Add(sent, data(sent)); err != nil {
				t.Fatal(err)
			}
			if rng.IntN(8) > 0 {
				dec.AddSource(sent, data(sent))
			}
			sent++
		}
		_, held := enc.Window()
		span := min(held, 48)
		r := Sliding(sent-uint64(span), span, n%(Seeds-1))
		n += 2
		bufs[0], bufs[1] = bufs[0][:0], bufs[1][:0]
		if err := enc.AppendRepairs(bufs, r); err != nil {
			t.Fatal(err)
		}
		for _, p := range bufs {
			dec.AddRepair(r, p)
			r.Seed++
		}
		for {
			_, _, ok := dec.Next()
			if !ok {
				break
			}
			restored++
		}
		// What repairs cannot restore is sent again a round later.
		old := sent - 32
		if sent < 32 {
			old = 0
		}
		for id := dec.want; id != old; id++ {
			dec.AddSource(id, data(id))
		}
		dec.Advance(old)
		enc.Advance(sent - uint64(span))
	}
	for range 300 {
		round()
	}
	if allocs := testing.AllocsPerRun(300, round); allocs != 0 {
		t.Errorf("%v allocations per round of 16 symbols", allocs)
	}
	if s := dec.Stats(); restored < 100 || s.BadChecksum > 0 || s.Rows > 20 {
		t.Errorf("restored %d: %+v", restored, s)
	}
}
