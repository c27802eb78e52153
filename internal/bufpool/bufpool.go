package bufpool

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// The size classes, in bytes. Small holds any datagram of an Ethernet path,
// Medium a jumbo frame or a short train, Large the longest UDP datagram and
// the longest train that the kernel takes or gives in one call.
const (
	Small  = 2 << 10
	Medium = 16 << 10
	Large  = 64 << 10
)

var classes = [...]int{Small, Medium, Large}

// oversize marks a buffer that belongs to no class.
const oversize = int8(-1)

// Pool is a set of free buffers. The zero value is ready for use. A Pool must
// not be copied after first use; all methods are safe for concurrent use.
type Pool struct {
	free        [len(classes)]sync.Pool
	outstanding atomic.Int64
}

// shared is a cache and nothing more: no behaviour depends on what it holds.
var shared Pool

// Shared returns the pool of the process, which [Get] draws from.
func Shared() *Pool { return &shared }

// Get is [Pool.Get] of the pool that the whole process shares.
func Get(n int) *Buffer { return shared.Get(n) }

// Buffer is a lent piece of memory.
type Buffer struct {
	// Data is the memory. Get returns it with the length asked for and the
	// capacity of its class; the content is whatever the previous owner left.
	// The owner may reslice, grow or replace it; Release puts it right.
	Data []byte

	pool  *Pool
	whole []byte
	class int8
	lent  atomic.Bool
}

// Get lends a buffer with len(Data) == n. The bytes are not cleared. A length
// above [Large] is a plain allocation, which Release leaves to the garbage
// collector. A negative length panics, as make does.
func (p *Pool) Get(n int) *Buffer {
	c := classOf(n)
	p.outstanding.Add(1)
	if c == oversize {
		b := &Buffer{Data: make([]byte, n), pool: p, class: oversize}
		b.lent.Store(true)
		return b
	}
	b, _ := p.free[c].Get().(*Buffer)
	if b == nil {
		b = &Buffer{pool: p, whole: make([]byte, classes[c]), class: c}
	}
	b.lent.Store(true)
	b.Data = b.whole[:n]
	return b
}

// Outstanding returns how many buffers are lent and not released. Tests use it
// to find a path that forgets a release.
func (p *Pool) Outstanding() int { return int(p.outstanding.Load()) }

// Release ends the ownership. Neither b nor any slice of b.Data may be touched
// afterwards. Release of nil does nothing; a second Release panics. Under the
// race detector the head of the released memory is overwritten, so that a late
// reader sees garbage in every test run, not another owner's bytes now and then.
func (b *Buffer) Release() {
	if b == nil {
		return
	}
	if !b.lent.Swap(false) {
		panic(fmt.Sprintf("BUG: bufpool: buffer of %d bytes released twice", max(cap(b.whole), cap(b.Data))))
	}
	p := b.pool
	b.Data = nil
	p.outstanding.Add(-1)
	if b.class == oversize {
		return
	}
	if poison {
		copy(b.whole, poisonBytes)
	}
	p.free[b.class].Put(b)
}

// Cap returns the size of the class that serves a request of n bytes, or n
// itself above [Large].
func Cap(n int) int {
	if c := classOf(n); c != oversize {
		return classes[c]
	}
	return n
}

func classOf(n int) int8 {
	if n < 0 {
		panic(fmt.Sprintf("BUG: bufpool: negative length %d", n))
	}
	for c, size := range classes {
		if n <= size {
			return int8(c)
		}
	}
	return oversize
}
