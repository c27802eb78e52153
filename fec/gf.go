package fec

import "sync"

// Arithmetic is that of GF(2^8) with the polynomial
// x^8 + x^4 + x^3 + x^2 + 1 (0x11d) and the generator element 2: the field of
// RFC 5510, section 8.1, and of the github.com/klauspost/reedsolomon kernels.
const fieldPolynomial = 0x11d

// MaxSpan is the largest number of source symbols that one repair can cover.
const MaxSpan = 128

// Seeds is the number of different repairs of one window: seeds are 0 to
// Seeds-1.
//
// Rows and columns of the generator need different field elements, and there
// are 256 of them: MaxSpan + Seeds.
const Seeds = 128

// tables holds what depends on the field alone. It is written once and read by
// every Encoder and Decoder of the process.
type tables struct {
	exp [2 * 255]byte // exp[i] = 2^i
	log [256]byte     // log[exp[i]] = i for i < 255; log[0] is unused
	gen [Seeds][MaxSpan]byte
}

// field builds the tables at first use (about 50 us), so that a program which
// links this package and does not use it pays nothing.
var field = sync.OnceValue(func() *tables {
	t := new(tables)
	x := 1
	for i := range 255 {
		t.exp[i], t.exp[i+255] = byte(x), byte(x)
		t.log[x] = byte(i)
		if x <<= 1; x > 255 {
			x ^= fieldPolynomial
		}
	}
	for r := range t.gen {
		for c := range t.gen[r] {
			y := byte(MaxSpan | c)
			t.gen[r][c] = t.mul(y, t.inv(byte(r)^y))
		}
	}
	return t
})

// mul returns the product of a and b.
func (t *tables) mul(a, b byte) byte {
	if a == 0 || b == 0 {
		return 0
	}
	return t.exp[int(t.log[a])+int(t.log[b])]
}

// inv returns the inverse of a, which must not be 0.
func (t *tables) inv(a byte) byte {
	return t.exp[255-int(t.log[a])]
}

// Coefficient returns what source symbol id is multiplied with in the repairs
// that carry this seed. It is the whole definition of the code:
//
//	r = seed                       0 to 127
//	y = 128 + id mod 128           128 to 255
//	Coefficient = y / (r XOR y)    in GF(2^8), polynomial 0x11d
//
// This is a Cauchy matrix 1/(r+y) whose columns are scaled so that row 0 is all
// ones: a repair with seed 0 is the XOR of its window. No coefficient is 0, and
// every square submatrix with different seeds and different columns is
// invertible, so any n repairs with different seeds over one window restore any
// n of its symbols. It panics when seed is not below [Seeds].
func Coefficient(seed uint8, id uint64) byte {
	return field().gen[seed][id%MaxSpan]
}
