package fec

import (
	"math/rand/v2"
	"testing"
)

// How often do the coefficients fail where the windows allow success? The measure
// is the rank over a field so large that random coefficients never fail by
// accident; a random code over GF(2^8) is the other side of the comparison.

// generator is a field and coefficients in it.
type generator struct {
	coef func(seed, id uint64) uint64
	mul  func(a, b uint64) uint64
	sub  func(a, b uint64) uint64
	inv  func(a uint64) uint64
}

const bigPrime = 1<<31 - 1

var (
	gf256 = generator{
		mul: func(a, b uint64) uint64 { return uint64(plainMul(byte(a), byte(b))) },
		sub: func(a, b uint64) uint64 { return a ^ b },
		inv: func(a uint64) uint64 { return uint64(plainInverse[a]) },
	}
	ideal = generator{
		coef: func(seed, id uint64) uint64 { return 1 + mix(seed<<32^mix(id))%(bigPrime-1) },
		mul:  func(a, b uint64) uint64 { return a * b % bigPrime },
		sub:  func(a, b uint64) uint64 { return (a + bigPrime - b) % bigPrime },
		inv: func(a uint64) uint64 {
			r := uint64(1)
			for e := bigPrime - 2; e > 0; e >>= 1 {
				if e&1 == 1 {
					r = r * a % bigPrime
				}
				a = a * a % bigPrime
			}
			return r
		},
	}
	ours = generator{
		coef: func(seed, id uint64) uint64 { return uint64(Coefficient(uint8(seed%Seeds), id)) },
		mul:  gf256.mul, sub: gf256.sub, inv: gf256.inv,
	}
	random = generator{
		coef: func(seed, id uint64) uint64 { return 1 + mix(seed<<32^mix(id))%255 },
		mul:  gf256.mul, sub: gf256.sub, inv: gf256.inv,
	}
)

// window is a repair: seed and half-open window.
type window struct{ seed, first, end uint64 }

// rank returns the rank of the repairs over the unknown symbols.
func (g generator) rank(repairs []window, unknown []uint64) int {
	m := make([][]uint64, len(repairs))
	for i, w := range repairs {
		m[i] = make([]uint64, len(unknown))
		for j, id := range unknown {
			if id >= w.first && id < w.end {
				m[i][j] = g.coef(w.seed, id)
			}
		}
	}
	rank := 0
	for c := range unknown {
		p := rank
		for p < len(m) && m[p][c] == 0 {
			p++
		}
		if p == len(m) {
			continue
		}
		m[rank], m[p] = m[p], m[rank]
		inv := g.inv(m[rank][c])
		for i := rank + 1; i < len(m); i++ {
			if f := g.mul(m[i][c], inv); f != 0 {
				for j := c; j < len(unknown); j++ {
					m[i][j] = g.sub(m[i][j], g.mul(f, m[rank][j]))
				}
			}
		}
		rank++
	}
	return rank
}

// failures draws situations of n unknown symbols and n repairs that could restore
// them, and counts those where a code cannot.
func failures(rng *rand.Rand, n, tries int, sliding bool, codes ...generator) []int {
	failed := make([]int, len(codes))
	for done := 0; done < tries; {
		start := rng.Uint64N(1 << 40)
		unknown := make([]uint64, n)
		for i, o := range rng.Perm(40)[:n] {
			unknown[i] = start + uint64(o)
		}
		repairs := make([]window, n)
		seed := rng.Uint64N(1 << 20)
		end := start + 40
		if sliding {
			end = start + 8
		}
		for i := range repairs {
			first := start
			if sliding {
				// Windows of 16 to 32 symbols that move on by up to 8.
				end = min(end+rng.Uint64N(8)+1, start+40)
				if back := 16 + rng.Uint64N(17); end-start > back {
					first = end - back
				}
			}
			repairs[i] = window{seed + uint64(i), first, end}
		}
		if ideal.rank(repairs, unknown) < n {
			continue
		}
		done++
		for i, g := range codes {
			if g.rank(repairs, unknown) < n {
				failed[i]++
			}
		}
	}
	return failed
}

// Over one window the code never fails; over sliding windows it fails less often
// than random coefficients from GF(2^8), which fail once in 200 to 500 times, and
// never with two unknown.
func TestFailureRate(t *testing.T) {
	tries := 2000
	if testing.Short() {
		tries = 500
	}
	rng := rand.New(rand.NewPCG(4, 4))
	sum, sumRandom := 0, 0
	for n := 2; n <= 10; n++ {
		if got := failures(rng, n, tries/10, false, ours)[0]; got != 0 {
			t.Errorf("%d unknown in one window: %d of %d failed, want none", n, got, tries/10)
		}
		got := failures(rng, n, tries, true, ours, random)
		t.Logf("%d unknown in sliding windows: %d of %d failed, random coefficients %d", n, got[0], tries, got[1])
		if n == 2 && got[0] != 0 || got[0] > tries/100 {
			t.Errorf("%d unknown in sliding windows: %d of %d failed", n, got[0], tries)
		}
		sum += got[0]
		sumRandom += got[1]
	}
	if sum >= sumRandom {
		t.Errorf("sliding windows: %d failed, with random coefficients %d", sum, sumRandom)
	}
}
