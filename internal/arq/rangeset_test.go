package arq

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/openarkstudio/arknet-go/internal/wire"
)

// newestFirst lists the ranges from the newest to the oldest, as acks do.
func (s *rangeSet) newestFirst() []wire.AckRange {
	r := slices.Clone(s.r)
	slices.Reverse(r)
	return r
}

func TestRangeSet(t *testing.T) {
	var s rangeSet
	for _, step := range []struct {
		lo, hi uint64
		want   string
	}{
		{5, 5, "5"},
		{5, 5, "5"},
		{7, 8, "5,7-8"},
		{6, 6, "5-8"},
		{0, 1, "0-1,5-8"},
		{3, 3, "0-1,3,5-8"},
		{12, 20, "0-1,3,5-8,12-20"},
		{2, 30, "0-30"},
	} {
		s.add(step.lo, step.hi)
		if got := rangesString(s.newestFirst()); got != step.want {
			t.Fatalf("after %d-%d: %s, want %s", step.lo, step.hi, got, step.want)
		}
	}
	s.dropBelow(10)
	if got := rangesString(s.newestFirst()); got != "10-30" {
		t.Errorf("after dropBelow(10): %s", got)
	}
	s.dropBelow(31)
	if len(s.r) != 0 || s.contains(30) {
		t.Errorf("after dropBelow(31): %v", s.r)
	}
}

// A rangeSet agrees with a plain set of numbers whatever is added and dropped.
func TestRangeSetAgainstModel(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var s rangeSet
		var model [200]bool
		for range 100 {
			lo := rng.Uint64N(200)
			hi := min(lo+rng.Uint64N(5), 199)
			switch rng.IntN(10) {
			case 0:
				s.dropBelow(lo)
				for x := range lo {
					model[x] = false
				}
			case 1:
				if len(s.r) > 0 {
					for x := s.r[0].Lo; x <= s.r[0].Hi; x++ {
						model[x] = false
					}
					s.dropFirst(1)
				}
			default:
				s.add(lo, hi)
				for x := lo; x <= hi; x++ {
					model[x] = true
				}
			}
			for x, in := range model {
				if s.contains(uint64(x)) != in {
					t.Fatalf("seed %d: %d in the set: %v, want %v", seed, x, !in, in)
				}
			}
			for i, r := range s.r {
				if r.Lo > r.Hi || i > 0 && r.Lo <= s.r[i-1].Hi+1 {
					t.Fatalf("seed %d: ranges touch or are out of order: %v", seed, s.r)
				}
			}
		}
	}
}
