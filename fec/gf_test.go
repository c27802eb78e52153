package fec

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

func TestFieldAgainstPlainArithmetic(t *testing.T) {
	f := field()
	for a := range 256 {
		for b := range 256 {
			if got, want := f.mul(byte(a), byte(b)), plainMul(byte(a), byte(b)); got != want {
				t.Fatalf("%d * %d = %d, want %d", a, b, got, want)
			}
		}
		if a > 0 {
			if got, want := f.inv(byte(a)), plainInverse[a]; got != want {
				t.Fatalf("1 / %d = %d, want %d", a, got, want)
			}
		}
	}
}

// The kernels must agree with the tables at every length: the vector part, the
// rest, and nothing behind it.
func TestKernels(t *testing.T) {
	f := field()
	rng := rand.New(rand.NewPCG(1, 1))
	src, dst := make([]byte, 200), make([]byte, 201)
	for n := range len(src) {
		c := byte(rng.Uint32())
		if n < 3 {
			c = byte(n)
		}
		for i := range dst {
			dst[i] = byte(rng.Uint32())
		}
		for i := range src {
			src[i] = byte(rng.Uint32())
		}
		add, set := bytes.Clone(dst), bytes.Clone(dst)
		mulAddSlice(c, src[:n], add)
		mulSlice(c, src[:n], set)
		for i := range dst {
			wantAdd, wantSet := dst[i], dst[i]
			if i < n {
				wantAdd ^= f.mul(c, src[i])
				wantSet = f.mul(c, src[i])
			}
			if add[i] != wantAdd || set[i] != wantSet {
				t.Fatalf("c=%d n=%d: byte %d is %d and %d, want %d and %d", c, n, i, add[i], set[i], wantAdd, wantSet)
			}
		}
	}
}

func TestCoefficient(t *testing.T) {
	for seed := range Seeds {
		for id := range uint64(MaxSpan) {
			got := Coefficient(uint8(seed), id)
			if got != plainCoefficient(uint8(seed), id) || got == 0 {
				t.Fatalf("Coefficient(%d, %d) = %d, want %d", seed, id, got, plainCoefficient(uint8(seed), id))
			}
			if seed == 0 && got != 1 {
				t.Fatalf("Coefficient(0, %d) = %d, want 1", id, got)
			}
		}
	}
	// For other implementations.
	for _, v := range []struct {
		seed uint8
		id   uint64
		want byte
	}{
		{1, 0, 85}, {1, 1, 26}, {2, 0, 94}, {7, 100, 235}, {127, 127, 252}, {127, 128, 127},
		{64, 1<<64 - 1, 135}, {64, 1 << 32, 245},
	} {
		if got := Coefficient(v.seed, v.id); got != v.want {
			t.Errorf("Coefficient(%d, %d) = %d, want %d", v.seed, v.id, got, v.want)
		}
	}
}

// Any square choice of seeds and of ids within a window is invertible.
func TestGeneratorIsMDS(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for range 3000 {
		n := 1 + rng.IntN(12)
		if rng.IntN(100) == 0 {
			n = MaxSpan
		}
		first := rng.Uint64()
		seeds, offsets := rng.Perm(Seeds)[:n], rng.Perm(MaxSpan)[:n]
		m := make([][]byte, n)
		for i, seed := range seeds {
			m[i] = make([]byte, n)
			for j, o := range offsets {
				m[i][j] = Coefficient(uint8(seed), first+uint64(o))
			}
		}
		if rank := len(gauss(m)); rank != n {
			t.Fatalf("first %d, seeds %d, offsets %d: rank %d of %d", first, seeds, offsets, rank, n)
		}
	}
}
