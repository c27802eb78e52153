package fec

import "math/bits"

// A value is a coded symbol or the right side of an equation, in a buffer that
// goes back to the pool. The same object is first the equation and then, once
// solved, the symbol: nothing is copied in between.
type value struct {
	id     uint64
	buf    []byte // whole capacity; zero from n up to padded(n)
	n      int    // length
	header bool   // the first Overhead bytes are filled in
	stored bool   // owned by a ring
	queued bool   // owned by the queue of restored symbols
	next   *value // in the one list that it is in: free, solved or restored
}

// vectorBytes is what the kernels process at once. Values are zero up to a
// multiple of it, so that no kernel call ends in a loop over single bytes.
const vectorBytes = 32

// padded returns n rounded up to a multiple of vectorBytes.
func padded(n int) int { return (n + vectorBytes - 1) &^ (vectorBytes - 1) }

// bytes returns the value without its padding.
func (v *value) bytes() []byte { return v.buf[:v.n] }

// operand returns the value with its padding, for the kernels.
func (v *value) operand() []byte { return v.buf[:padded(v.n)] }

// setSymbol makes v the source symbol id; the header follows when it is needed.
func (v *value) setSymbol(id uint64, data []byte) {
	v.id, v.n, v.header = id, Overhead+len(data), false
	copy(v.buf[Overhead:], data)
	clear(v.buf[v.n:padded(v.n)])
}

// valueBytes is what a value costs beside its buffer.
const valueBytes = 80

// Buffers come in sizes of 64 bytes up to 512 and then four per octave, so that
// at most a fifth of one is unused.
const (
	smallStep   = 64
	smallMax    = 512
	sizeClasses = smallMax/smallStep + 4*7
)

// sizeClass returns the class of a buffer of n bytes, 1 to 65,535, and its size.
func sizeClass(n int) (class, size int) {
	if n <= smallMax {
		class = (n + smallStep - 1) / smallStep
		return class - 1, class * smallStep
	}
	octave := bits.Len(uint(n - 1))
	step := octave - 3
	quarter := (n - 1) >> step // 4 to 7
	return smallMax/smallStep + 4*(octave-10) + quarter - 4, (quarter + 1) << step
}

// pool hands out values and accounts for all memory of its owner. Nothing is
// allocated beyond limit; what comes back is kept for reuse within reason.
type pool struct {
	limit  int // bytes
	total  int // bytes allocated: in use and free
	peak   int // largest total
	unused int // bytes on the free lists
	free   [sizeClasses]*value
}

// reserve accounts for n more bytes; it gives up free values first. It reports
// whether the limit allows them.
func (p *pool) reserve(n int) bool {
	if p.total+n > p.limit && p.unused > 0 {
		p.purge()
	}
	if p.total+n > p.limit {
		return false
	}
	p.total += n
	p.peak = max(p.peak, p.total)
	return true
}

// release takes back n bytes that were reserved.
func (p *pool) release(n int) { p.total -= n }

// get returns a value with room for n bytes, n up to 65,535, or nil when the
// limit forbids it. Contents and length are undefined.
func (p *pool) get(n int) *value {
	class, size := sizeClass(n)
	if v := p.free[class]; v != nil {
		p.free[class], v.next = v.next, nil
		p.unused -= size + valueBytes
		return v
	}
	if !p.reserve(size + valueBytes) {
		return nil
	}
	return &value{buf: make([]byte, size)}
}

// keepFree is how many free bytes a pool keeps even when little is in use: about
// the packets of one round trip.
const keepFree = 64 << 10

// put takes back a value that nobody refers to. It keeps at most as much as is in
// use, or keepFree, so that memory follows the load down as well.
func (p *pool) put(v *value) {
	cost := len(v.buf) + valueBytes
	inUse := p.total - p.unused - cost
	if p.unused+cost > max(keepFree, inUse) {
		p.total -= cost
		return
	}
	class, _ := sizeClass(len(v.buf))
	v.next, p.free[class] = p.free[class], v
	p.unused += cost
}

// grow makes v at least n bytes long, with zeros. It reports false, and leaves v
// as it is, when that takes memory beyond the limit.
func (p *pool) grow(v *value, n int) bool {
	if n <= v.n {
		return true
	}
	if padded(n) > len(v.buf) {
		w := p.get(n)
		if w == nil {
			return false
		}
		copy(w.buf, v.operand())
		w.buf, v.buf = v.buf, w.buf
		p.put(w)
	}
	clear(v.buf[v.n:padded(n)])
	v.n = n
	return true
}

// purge gives all free values to the garbage collector.
func (p *pool) purge() {
	p.free = [sizeClasses]*value{}
	p.total -= p.unused
	p.unused = 0
}
