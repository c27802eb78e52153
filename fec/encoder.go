package fec

import (
	"errors"
	"fmt"
)

// Errors of an [Encoder]. Match them with errors.Is.
var (
	// ErrSymbolSize means a source symbol above [Limits].SymbolBytes.
	ErrSymbolSize = errors.New("fec: source symbol too large")

	// ErrWindow means a repair over symbols that the encoder does not hold, or
	// with a span or seed out of range.
	ErrWindow = errors.New("fec: window not available")
)

// An Encoder keeps copies of the most recent source symbols of one flow and makes
// repairs from them. It is not safe for concurrent use.
//
// The source symbols travel as they are; the encoder never changes them.
type Encoder struct {
	epoch  uint64
	limits Limits
	gen    *[Seeds][MaxSpan]byte
	pool   pool
	ring   ring
	sums   []byte // repairs under construction, side by side

	sumsPeak int
	sources  uint64
	repairs  uint64
	evicted  uint64
	muladds  uint64
}

// EncoderStats counts what an [Encoder] did since it was made.
type EncoderStats struct {
	Sources uint64 // source symbols added
	Repairs uint64 // repair payloads made
	Evicted uint64 // source symbols dropped by Limits.Symbols or Limits.Bytes
	MulAdds uint64 // multiply-and-add passes over one symbol
	Symbols int    // source symbols held now
	Bytes   int    // memory held now, in bytes; never above Limits.Bytes

	PeakBytes int // at least the largest value that Bytes had, at most Limits.Bytes
}

// NewEncoder returns an encoder for a flow that starts with symbol c.First. It
// holds no memory to speak of until a symbol is added.
func NewEncoder(c Config) (*Encoder, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	e := &Encoder{epoch: c.Epoch, limits: c.Limits.withDefaults(), gen: &field().gen}
	e.pool.limit = e.limits.Bytes - scratchBytes(e.limits)
	e.ring.first, e.ring.end = c.First, c.First
	return e, nil
}

// Add copies the source symbol id, which should be one above the one before it.
// After a gap or a step back the encoder forgets what it holds and starts again
// at id: a window has no holes. The oldest symbols make room at the limits.
//
// The error matches [ErrSymbolSize]; the encoder is then as it was.
func (e *Encoder) Add(id uint64, data []byte) error {
	if len(data) > e.limits.SymbolBytes {
		return fmt.Errorf("%w: %d bytes, Limits.SymbolBytes is %d", ErrSymbolSize, len(data), e.limits.SymbolBytes)
	}
	if id != e.ring.end {
		e.ring.reset(&e.pool)
		e.ring.first, e.ring.end = id, id
	}
	if id-e.ring.first >= uint64(e.limits.Symbols) {
		e.evict()
	}
	e.sources++
	var v *value
	for {
		if e.ring.room(&e.pool, id) {
			if v = e.pool.get(Overhead + len(data)); v != nil {
				break
			}
		}
		if e.ring.count == 0 {
			panic("BUG: fec: Limits.Bytes has no room for one symbol")
		}
		e.evict()
	}
	v.setSymbol(id, data)
	e.ring.put(v)
	return nil
}

// evict drops the oldest symbol.
func (e *Encoder) evict() {
	e.evicted++
	e.ring.drop(&e.pool, e.ring.first+1)
}

// Window returns the symbols that a repair can cover now: n of them from first
// on.
func (e *Encoder) Window() (first uint64, n int) { return e.ring.first, e.ring.count }

// Advance forgets all symbols before id. Call it when the peer is known to have
// them.
func (e *Encoder) Advance(id uint64) { e.ring.drop(&e.pool, id) }

// Release forgets all symbols and gives back the memory. The encoder stays
// usable; the next window starts with the next symbol added.
func (e *Encoder) Release() {
	e.ring.reset(&e.pool)
	e.sums = nil
	e.pool.purge()
}

// Bytes returns the memory held now, as in [EncoderStats].
func (e *Encoder) Bytes() int { return e.pool.total + len(e.sums) }

// Shrink drops the oldest symbols until at most n bytes are held. They count as
// evicted. It serves an owner of many encoders that has a limit for all of them
// together.
func (e *Encoder) Shrink(n int) {
	for e.Bytes() > n {
		e.pool.purge()
		e.sums = nil
		if e.Bytes() <= n {
			return
		}
		if e.ring.count == 0 {
			e.ring.reset(&e.pool)
			return
		}
		e.evict()
	}
}

// Stats returns the counters.
func (e *Encoder) Stats() EncoderStats {
	return EncoderStats{
		Sources: e.sources, Repairs: e.repairs, Evicted: e.evicted, MulAdds: e.muladds,
		Symbols: e.ring.count, Bytes: e.Bytes(), PeakBytes: e.pool.peak + e.sumsPeak,
	}
}

// PayloadBytes returns the length of the payload of r: [Overhead] and the longest
// source symbol of the window. The error matches [ErrWindow].
func (e *Encoder) PayloadBytes(r Repair) (int, error) {
	first, end := e.ring.first, e.ring.end
	if !r.valid(e.limits.Span) {
		return 0, fmt.Errorf("%w: span %d, seed %d; want 1 to %d, below %d", ErrWindow, r.Span, r.Seed, e.limits.Span, Seeds)
	}
	if skip, held := r.First-first, end-first; skip > held || uint64(r.Span) > held-skip {
		return 0, fmt.Errorf("%w: [%d, %d) asked for, [%d, %d) held", ErrWindow, r.First, r.End(), first, end)
	}
	n := 0
	for id := r.First; id != r.End(); id++ {
		n = max(n, e.ring.get(id).n)
	}
	return n, nil
}

// AppendRepair appends the payload of r to dst and returns the longer slice. The
// error matches [ErrWindow]; dst is then returned as it was.
func (e *Encoder) AppendRepair(dst []byte, r Repair) ([]byte, error) {
	n, err := e.PayloadBytes(r)
	if err != nil {
		return dst, err
	}
	e.sum(r, n, 1)
	return append(dst, e.sums[:n]...), nil
}

// AppendRepairs appends to each dsts[i] the payload of the repair over r's window
// with seed r.Seed+i. It reads each symbol once for several repairs and so costs
// less than one call of AppendRepair each. The error matches [ErrWindow], also
// when the seeds run past 127; nothing is appended then.
func (e *Encoder) AppendRepairs(dsts [][]byte, r Repair) error {
	n, err := e.PayloadBytes(r)
	if err != nil {
		return err
	}
	if int(r.Seed)+len(dsts) > Seeds {
		return fmt.Errorf("%w: %d repairs from seed %d on, want seeds below %d", ErrWindow, len(dsts), r.Seed, Seeds)
	}
	for len(dsts) > 0 {
		m := min(len(dsts), max(1, sumsBytes/padded(n)))
		e.sum(r, n, m)
		for i := range m {
			dsts[i] = append(dsts[i], e.sums[i*padded(n):][:n]...)
		}
		dsts, r.Seed = dsts[m:], r.Seed+uint8(m)
	}
	return nil
}

// sumsBytes bounds the repairs that are made side by side: what is read once for
// all of them should still be in the first-level cache for the last.
const sumsBytes = 12 << 10

// scratchBytes returns how much of Limits.Bytes is kept free for e.sums.
func scratchBytes(l Limits) int { return max(sumsBytes, padded(Overhead+l.SymbolBytes)) }

// sum leaves m repairs of n bytes, with seeds from r.Seed on, in e.sums at
// multiples of padded(n).
func (e *Encoder) sum(r Repair, n, m int) {
	size := padded(n)
	if len(e.sums) < m*size {
		e.sums = make([]byte, m*size)
		e.sumsPeak = max(e.sumsPeak, len(e.sums))
	}
	sums := e.sums[:m*size]
	clear(sums)
	for id := r.First; id != r.End(); id++ {
		v := e.ring.get(id)
		if !v.header {
			putHeader(v.bytes(), e.epoch, id)
			v.header = true
		}
		for i := range m {
			mulAddSlice(e.gen[int(r.Seed)+i][id%MaxSpan], v.operand(), sums[i*size:][:size])
		}
	}
	e.repairs += uint64(m)
	e.muladds += uint64(m * r.Span)
}
