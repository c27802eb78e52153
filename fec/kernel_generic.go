//go:build !((amd64 || arm64 || ppc64le) && !noasm && !appengine && !gccgo && !nopshufb)

package fec

import "sync"

// Where reedsolomon has no vector code it multiplies through a table of 32 MiB.
// A 32-bit or embedded system should not pay that for a few repairs a second: a
// table of 64 KiB is nearly as fast.
var products = sync.OnceValue(func() *[256][256]byte {
	p, t := new([256][256]byte), field()
	for a := range p {
		for b := range p[a] {
			p[a][b] = t.mul(byte(a), byte(b))
		}
	}
	return p
})

// mulSlice sets dst[i] = c * src[i]. dst must be at least as long as src.
func mulSlice(c byte, src, dst []byte) {
	row := &products()[c]
	dst = dst[:len(src)]
	for i, b := range src {
		dst[i] = row[b]
	}
}

// mulAddSlice adds c * src[i] to dst[i]. dst must be at least as long as src.
func mulAddSlice(c byte, src, dst []byte) {
	row := &products()[c]
	dst = dst[:len(src)]
	for i, b := range src {
		dst[i] ^= row[b]
	}
}
