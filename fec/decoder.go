package fec

// A Decoder restores lost source symbols of one flow from repairs. Hand it every
// source symbol and every repair that arrives, in any order; take what it
// restores with [Decoder.Next]. It is not safe for concurrent use.
//
// It keeps copies of the source symbols that repairs may still cover: those from
// the Advance point on, and as many below it as the repairs of the recent past
// reached back.
type Decoder struct {
	epoch  uint64
	limits Limits
	field  *tables
	pool   pool
	ring   ring    // an id from ring.first on is in the ring or unknown
	eq     *solver // nil while there is no equation and has been none for long

	want  uint64 // Advance point: ids before it are not wanted
	known uint64 // every id in [want, known) is known
	queue *value // restored, in the order of their ids, linked by next
	last  *value // handed out by Next, valid until the next call
	reach reach

	hadSolver bool // there was a solver once
	stats     DecoderStats
}

// NewDecoder returns a decoder for a flow that starts with symbol c.First. It
// holds no memory to speak of until a symbol or repair is handed in.
func NewDecoder(c Config) (*Decoder, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	d := &Decoder{epoch: c.Epoch, limits: c.Limits.withDefaults(), field: field()}
	d.pool.limit = d.limits.Bytes - solverBytes
	d.ring.first, d.ring.end = c.First, c.First
	d.want, d.known = c.First, c.First
	d.reach.start(d.limits.Span)
	return d, nil
}

// AddSource tells the decoder that source symbol id is known: received, or
// obtained in any other way. It copies data. It reports whether that was news, so
// false for duplicates, for symbols restored before and for those older than what
// is kept.
//
// One call costs at most Limits.Rows+2 passes over a payload, and nothing but a
// copy while no equation waits for the symbol.
func (d *Decoder) AddSource(id uint64, data []byte) bool {
	d.unpin()
	if len(data) > d.limits.SymbolBytes {
		d.stats.SourcesRefused++
		return false
	}
	d.fit(id)
	if before(id, d.ring.first) {
		return d.addOld(id, data)
	}
	if d.ring.get(id) != nil {
		return false
	}
	d.stats.Sources++
	if d.reach.source() {
		d.keep()
		d.pool.purge()
		if d.Rows() == 0 {
			d.freeSolver()
		}
	}
	v := d.alloc(Overhead + len(data))
	if v == nil {
		d.stats.SourcesEvicted++
		d.forget(id + 1)
		return true
	}
	v.setSymbol(id, data)
	stored := d.store(v)
	d.learn(v)
	if !stored {
		d.pool.put(v)
	}
	return true
}

// addOld takes a symbol that is too old to be kept. It still matters to an
// equation that waits for it.
func (d *Decoder) addOld(id uint64, data []byte) bool {
	if !d.waitsFor(id) {
		return false
	}
	d.stats.Sources++
	if v := d.alloc(Overhead + len(data)); v != nil {
		v.setSymbol(id, data)
		d.learn(v)
		d.pool.put(v)
	}
	return true
}

// AddRepair hands in a repair. The payload is borrowed until AddRepair returns.
// Whatever is wrong with a repair, no symbol is ever restored wrongly: see the
// package documentation.
func (d *Decoder) AddRepair(r Repair, payload []byte) Outcome {
	d.unpin()
	d.stats.Repairs++
	o := d.admit(r, payload)
	if o == 0 {
		return d.add(r, payload)
	}
	d.count(o)
	return o
}

// count counts a repair that did not become a row. Rows are counted when they
// end.
func (d *Decoder) count(o Outcome) {
	switch o {
	case Useless:
		d.stats.Useless++
	case Late:
		d.stats.Late++
	case Forgotten:
		d.stats.Forgotten++
	case BadWindow:
		d.stats.BadWindow++
	case BadLength:
		d.stats.BadLength++
	case OverLimit:
		d.stats.OverLimit++
	default:
		panic("BUG: fec: outcome of a row counted as a refusal")
	}
}

// admit returns the outcome of a repair that can be judged without looking at the
// symbols of its window, or 0.
func (d *Decoder) admit(r Repair, payload []byte) Outcome {
	if !r.valid(d.limits.Span) {
		return BadWindow
	}
	end := r.End()
	if int64(end-later(d.ring.end, d.want)) > int64(d.limits.Symbols) {
		return BadWindow
	}
	if len(payload) < Overhead || len(payload) > Overhead+d.limits.SymbolBytes {
		return BadLength
	}
	if !before(d.want, end) {
		return Late
	}
	d.reach.repair(int64(d.want - r.First))
	if !before(d.known, end) {
		return Useless
	}
	if before(r.First, d.ring.first) {
		return Forgotten
	}
	return 0
}

// Advance tells the decoder that no symbol before id is wanted any more: it was
// delivered or given up. Going back has no effect. Call it as delivery proceeds:
// it is what lets the decoder forget.
func (d *Decoder) Advance(id uint64) {
	d.unpin()
	if !before(d.want, id) {
		return
	}
	d.want = id
	d.known = later(d.known, id)
	d.advanceKnown()
	d.keep()
}

// keep forgets what no repair is expected to reach.
func (d *Decoder) keep() {
	low := d.want - uint64(d.reach.keep)
	d.forget(low)
	d.expire(low)
}

// Next returns a restored symbol that is still wanted, the lowest id first, or
// false when there is none. data is valid until the next call of any method but
// Stats, Bytes, Rows and Known. Symbols that are not taken stay; they count against
// Limits.Bytes.
func (d *Decoder) Next() (id uint64, data []byte, ok bool) {
	d.unpin()
	for d.queue != nil {
		v := d.queue
		d.queue, v.next = v.next, nil
		if before(v.id, d.want) {
			d.unqueue(v)
			continue
		}
		d.last = v
		return v.id, v.bytes()[Overhead:], true
	}
	return 0, nil, false
}

// unpin ends the loan of the symbol that Next returned.
func (d *Decoder) unpin() {
	if v := d.last; v != nil {
		d.last = nil
		d.unqueue(v)
	}
}

// unqueue ends the queue's ownership of v.
func (d *Decoder) unqueue(v *value) {
	v.queued = false
	if !v.stored {
		d.pool.put(v)
	}
}

// enqueue adds a restored symbol to what Next returns.
func (d *Decoder) enqueue(v *value) {
	v.queued = true
	at := &d.queue
	for *at != nil && before((*at).id, v.id) {
		at = &(*at).next
	}
	v.next, *at = *at, v
}

// Rows returns the number of independent equations held: how many symbols the
// peer need not send again if the rest of what these equations cover arrives.
func (d *Decoder) Rows() int {
	if d.eq == nil {
		return 0
	}
	return d.eq.n
}

// Known reports whether source symbol id is held, so that AddSource would be no
// news.
func (d *Decoder) Known(id uint64) bool { return d.ring.get(id) != nil }

// Release gives back all memory: symbols kept, equations, restored symbols not
// taken. Call it after a long silence. The decoder stays usable for symbols
// behind the highest id so far; equations over older ones are forgotten.
func (d *Decoder) Release() {
	d.unpin()
	for d.queue != nil {
		v := d.queue
		d.queue, v.next = v.next, nil
		d.unqueue(v)
	}
	d.freeSolver()
	d.ring.reset(&d.pool)
	d.pool.purge()
	d.reach.start(d.limits.Span)
}

// Bytes returns the memory held now, as in [DecoderStats].
func (d *Decoder) Bytes() int {
	if d.eq == nil {
		return d.pool.total
	}
	return d.pool.total + solverBytes
}

// Shrink drops the oldest symbols and equations until at most n bytes are held, or
// nothing is left but restored symbols not taken. They count as evicted. It serves
// an owner of many decoders that has a limit for all of them together.
func (d *Decoder) Shrink(n int) {
	d.unpin()
	for d.Bytes() > n {
		d.pool.purge()
		if d.Bytes() <= n {
			return
		}
		if !d.evict() {
			d.freeSolver()
			d.ring.reset(&d.pool)
			return
		}
	}
}

// Stats returns the counters.
func (d *Decoder) Stats() DecoderStats {
	s := d.stats
	s.Rows, s.Symbols = d.Rows(), d.ring.count
	s.Bytes, s.PeakBytes = d.Bytes(), d.pool.peak
	if d.hadSolver {
		s.PeakBytes += solverBytes
	}
	return s
}

// fit makes id fit the range of Limits.Symbols; the oldest symbols make room.
func (d *Decoder) fit(id uint64) {
	if limit := uint64(d.limits.Symbols); int64(id-d.ring.first) >= int64(limit) {
		d.evictBefore(id + 1 - limit)
	}
}

// store puts v into the ring when it is not too old, and reports whether it did.
func (d *Decoder) store(v *value) bool {
	d.fit(v.id)
	if before(v.id, d.ring.first) {
		return false
	}
	for !d.ring.room(&d.pool, v.id) {
		if !d.evict() || before(v.id, d.ring.first) {
			return false
		}
	}
	d.ring.put(v)
	d.advanceKnown()
	return true
}

// advanceKnown moves known over the symbols that arrived.
func (d *Decoder) advanceKnown() {
	for d.ring.get(d.known) != nil {
		d.known++
	}
}

// forget drops the source symbols before id.
func (d *Decoder) forget(id uint64) { d.ring.drop(&d.pool, id) }

// evictBefore drops the source symbols before id because of a limit.
func (d *Decoder) evictBefore(id uint64) {
	n := d.ring.count
	d.forget(id)
	d.stats.SourcesEvicted += uint64(n - d.ring.count)
}

// alloc returns a value with room for n bytes. To stay within Limits.Bytes it
// drops the oldest symbols and equations; nil means that there was nothing left
// to drop.
func (d *Decoder) alloc(n int) *value {
	for {
		if v := d.pool.get(n); v != nil {
			return v
		}
		if !d.evict() {
			return nil
		}
	}
}

// evict drops the oldest symbol or equation, and reports whether there was one.
func (d *Decoder) evict() bool {
	row := d.oldestRow()
	if d.ring.count > 0 {
		id := d.ring.first
		for d.ring.get(id) == nil {
			id++
		}
		if row == nil || !before(row.id, id) {
			d.evictBefore(id + 1)
			return true
		}
	}
	if row == nil {
		return false
	}
	d.dropRow(row, &d.stats.Evicted)
	return true
}
