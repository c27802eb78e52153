package arq

import (
	"slices"
	"sort"

	"github.com/openarkstudio/arknet-go/internal/wire"
)

// rangeSet is a set of numbers kept as ascending, disjoint, non-adjacent
// ranges. Its owner bounds the number of ranges.
type rangeSet struct{ r []wire.AckRange }

// search returns the index of the first range that ends at or above x.
func (s *rangeSet) search(x uint64) int {
	// Most look-ups concern the newest numbers.
	n := len(s.r)
	if n == 0 || s.r[n-1].Hi < x {
		return n
	}
	if s.r[n-1].Lo <= x {
		return n - 1
	}
	return sort.Search(n, func(i int) bool { return s.r[i].Hi >= x })
}

func (s *rangeSet) contains(x uint64) bool {
	i := s.search(x)
	return i < len(s.r) && s.r[i].Lo <= x
}

// add puts lo..hi into the set, joining what touches.
func (s *rangeSet) add(lo, hi uint64) {
	from := s.search(lo)
	if from > 0 && s.r[from-1].Hi+1 == lo {
		from--
	}
	to := from
	for to < len(s.r) && s.r[to].Lo <= hi+1 {
		to++
	}
	if from == to {
		s.r = slices.Insert(s.r, from, wire.AckRange{Lo: lo, Hi: hi})
		return
	}
	s.r[from].Lo = min(s.r[from].Lo, lo)
	s.r[from].Hi = max(s.r[to-1].Hi, hi)
	s.r = slices.Delete(s.r, from+1, to)
}

// dropBelow removes all numbers below x.
func (s *rangeSet) dropBelow(x uint64) {
	i := s.search(x)
	s.dropFirst(i)
	if len(s.r) > 0 && s.r[0].Lo < x {
		s.r[0].Lo = x
	}
}

// dropFirst removes the n lowest ranges.
func (s *rangeSet) dropFirst(n int) {
	if n > 0 {
		s.r = slices.Delete(s.r, 0, n)
	}
}
