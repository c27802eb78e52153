package fec

// solver returns the solver, which it makes at the first call.
func (d *Decoder) solver() *solver {
	if d.eq == nil {
		d.eq = new(solver)
		d.hadSolver = true
	}
	return d.eq
}

// add makes a row of a repair that passed admit, and solves what can be solved.
//
// The order matters: everything is worked out on the coefficients first, a few
// hundred bytes, so that a repair which turns out useless or too expensive costs
// no pass over its payload.
func (d *Decoder) add(r Repair, payload []byte) Outcome {
	s := d.solver()
	terms, unknown, o := d.split(r, len(payload))
	if o != 0 {
		d.count(o)
		return o
	}
	// Get memory before looking at any row: it may cost some.
	v := d.alloc(len(payload))
	nr := d.newRow()
	if v == nil || nr == nil {
		o = OverLimit
	} else if before(r.First, d.ring.first) {
		o = Forgotten
	}
	var steps []step
	if o == 0 {
		d.reserveColumns(unknown)
		steps, o = d.reduce(nr, r, unknown, len(terms))
	}
	if o == 0 && !d.subtract(v, payload, terms, steps, nr) {
		o = OverLimit
	}
	if o != 0 {
		if v != nil {
			d.pool.put(v)
		}
		if nr != nil {
			s.putRow(nr)
		}
		d.count(o)
		return o
	}
	used, wrong := d.stats.Used, d.stats.BadChecksum
	nr.val = v
	s.attach(nr)
	d.place(nr)
	d.settle()
	switch {
	case d.stats.Used > used:
		return Restored
	case d.stats.BadChecksum > wrong:
		return BadChecksum
	}
	if s.n > d.limits.Rows {
		old := d.oldestRow()
		d.dropRow(old, &d.stats.Evicted)
	}
	return Held
}

// split sorts the symbols under r into known ones, to be subtracted, and unknown
// ones. Its results are in the solver's scratch memory.
func (d *Decoder) split(r Repair, length int) (terms []term, unknown []uint64, o Outcome) {
	s := d.eq
	terms, unknown = s.terms[:0], s.unknown[:0]
	gen := &d.field.gen[r.Seed]
	for id := r.First; id != r.End(); id++ {
		v := d.ring.get(id)
		if v == nil {
			unknown = append(unknown, id)
			continue
		}
		if v.n > length {
			return nil, nil, BadLength
		}
		terms = append(terms, term{v, gen[id%MaxSpan]})
	}
	if len(unknown) == 0 {
		return nil, nil, Useless
	}
	return terms, unknown, 0
}

// reserveColumns makes room for the unknowns of one repair. The oldest equations
// make room if need be.
func (d *Decoder) reserveColumns(unknown []uint64) {
	s := d.eq
	need := s.ncols
	for _, id := range unknown {
		if _, ok := s.find(id); !ok {
			need++
		}
	}
	if need <= columns {
		return
	}
	for first := true; s.ncols+len(unknown) > columns; first = false {
		if !first {
			// A quarter of what is missing at a time: a row frees one column for
			// certain and often several.
			for range (s.ncols + len(unknown) - columns + 3) / 4 {
				if old := d.oldestRow(); old != nil {
					d.dropRow(old, &d.stats.Evicted)
				}
			}
		}
		s.sweep()
	}
}

// reduce works out, on coefficients alone, which rows have to be subtracted from
// the repair. It leaves the result in s.coef and sets the pivot of nr. The outcome
// is Useless when nothing is left, or OverLimit when the passes over payloads
// would be too many.
func (d *Decoder) reduce(nr *row, r Repair, unknown []uint64, terms int) (steps []step, o Outcome) {
	s := d.eq
	clear(s.coef[:])
	slots := s.unkSlots[:len(unknown)]
	for i, id := range unknown {
		slots[i] = s.slot(id)
		s.coef[slots[i]] = d.field.gen[r.Seed][id%MaxSpan]
	}
	w := s.width()
	steps = s.steps[:0]
	for _, slot := range slots {
		// A pivot row has no pivot of another row: no step undoes one before.
		if p := s.owner[slot]; p != nil {
			c := s.coef[slot]
			mulAddSlice(c, p.coef[:w], s.coef[:w])
			steps = append(steps, step{int16(p.at), c})
		}
	}
	if !s.choosePivot(nr, &s.coef) {
		return nil, Useless
	}
	work := terms + len(steps)
	for _, q := range s.rows[:s.n] {
		if q.coef[nr.pivot] != 0 {
			work++
		}
	}
	if work > d.limits.Work {
		return nil, OverLimit
	}
	return steps, 0
}

// subtract computes the value and the coefficients of the new row nr: the repair
// minus terms and steps, divided by the coefficient of the pivot. It reports false
// when that takes memory beyond the limit.
func (d *Decoder) subtract(v *value, payload []byte, terms []term, steps []step, nr *row) bool {
	s, f := d.eq, d.field
	inv := f.inv(s.coef[nr.pivot])
	v.n, v.header = len(payload), true
	mulSlice(inv, payload, v.buf)
	d.stats.MulAdds++
	clear(v.buf[v.n:padded(v.n)])
	for _, t := range terms {
		d.mulAdd(f.mul(inv, t.c), t.v, v)
	}
	nr.from = set{}
	for _, st := range steps {
		p := s.rows[st.at]
		if !d.pool.grow(v, p.val.n) {
			return false
		}
		d.mulAdd(f.mul(inv, st.c), p.val, v)
		nr.from.union(&p.from)
	}
	mulSlice(inv, s.coef[:], nr.coef[:])
	return true
}

// mulAdd adds c times src to dst, which must not be shorter.
func (d *Decoder) mulAdd(c byte, src, dst *value) {
	if !src.header {
		putHeader(src.bytes(), d.epoch, src.id)
		src.header = true
	}
	mulAddSlice(c, src.operand(), dst.buf)
	d.stats.MulAdds++
}

// place makes the attached row r, whose pivot is chosen and whose coefficients
// are reduced, fit the form: its pivot leaves all other rows. A row that is solved
// is checked first, so that a wrong one spoils no other.
func (d *Decoder) place(r *row) {
	s := d.eq
	w := s.width()
	if r.single(w) {
		slot := r.pivot
		if v := d.solve(r); v != nil {
			d.substitute(slot, v)
		}
		return
	}
	s.owner[r.pivot] = r
	for i := s.n - 1; i >= 0; i-- {
		q := s.rows[i]
		c := q.coef[r.pivot]
		if q == r || c == 0 {
			continue
		}
		if !d.pool.grow(q.val, r.val.n) {
			d.dropRow(q, &d.stats.Evicted)
			continue
		}
		mulAddSlice(c, r.coef[:w], q.coef[:w])
		d.mulAdd(c, r.val, q.val)
		q.from.union(&r.from)
		q.dirty = true
	}
}

// solve takes r, which has no unknown but its pivot, from the rows and returns the
// symbol, or nil and marks r when it is not a valid one. The column stays.
func (d *Decoder) solve(r *row) *value {
	s := d.eq
	n, ok := validLength(r.val.bytes(), d.epoch, r.id)
	if !ok {
		r.wrong = true
		return nil
	}
	d.stats.Used++
	id, proven := r.id, r.from
	v := s.detach(r)
	v.id, v.n, v.header = id, n, true
	v.next, s.fresh = s.fresh, v
	// What went into a right solution is right: it takes no blame later.
	for _, q := range s.rows[:s.n] {
		q.from.subtract(&proven)
	}
	return v
}

// substitute puts the known symbol v, whose unknown is no pivot, into all rows,
// and ends its column.
func (d *Decoder) substitute(slot uint8, v *value) {
	s := d.eq
	for _, q := range s.rows[:s.n] {
		c := q.coef[slot]
		if c == 0 {
			continue
		}
		q.coef[slot] = 0
		if v.n > q.val.n {
			q.wrong = true // no repair is shorter than a symbol it covers
			continue
		}
		d.mulAdd(c, v, q.val)
		q.dirty = true
	}
	i, _ := s.find(v.id)
	s.removeColumn(i)
}

// learn puts the source symbol v, just received, into the equations.
func (d *Decoder) learn(v *value) {
	s := d.eq
	if s == nil {
		return
	}
	i, ok := s.find(v.id)
	if !ok {
		return
	}
	slot := s.cols[i].slot
	r := s.owner[slot]
	if r == nil {
		d.substitute(slot, v)
		d.settle()
		return
	}
	// r loses its pivot. It has a second unknown, else it would be solved.
	r.coef[slot] = 0
	s.removeColumn(i)
	switch {
	case v.n > r.val.n:
		r.wrong = true
	default:
		d.mulAdd(1, v, r.val)
		if !s.choosePivot(r, &r.coef) {
			panic("BUG: fec: a row with one unknown was not solved")
		}
		if lead := r.coef[r.pivot]; lead != 1 {
			inv := d.field.inv(lead)
			s.scale(inv, r.val)
			mulSlice(inv, r.coef[:], s.coef[:])
			r.coef = s.coef
			d.stats.MulAdds++
		}
		d.place(r)
	}
	d.settle()
}

// settle takes the rows that have become solved, drops those proven wrong, and
// delivers what was solved.
func (d *Decoder) settle() {
	s := d.eq
	w := s.width()
	wrong := false
	for i := s.n - 1; i >= 0; i-- {
		r := s.rows[i]
		if r.dirty && !r.wrong && r.single(w) {
			if v := d.solve(r); v != nil {
				i, _ := s.find(v.id)
				s.removeColumn(i)
				continue
			}
		}
		r.dirty = false
		wrong = wrong || r.wrong
	}
	if wrong {
		d.blame()
	}
	for s.fresh != nil {
		v := s.fresh
		s.fresh, v.next = v.next, nil
		if !before(v.id, d.want) {
			d.stats.Restored++
			d.enqueue(v)
		}
		if !d.store(v) && !v.queued {
			d.pool.put(v)
		}
	}
}

// blame drops the rows proven wrong and those that share an unproven repair with
// one of them: which of those repairs is the wrong one cannot be known.
func (d *Decoder) blame() {
	s := d.eq
	var suspects set
	for _, r := range s.rows[:s.n] {
		if r.wrong {
			suspects.union(&r.from)
		}
	}
	for i := s.n - 1; i >= 0; i-- {
		if r := s.rows[i]; r.wrong || r.from.meets(&suspects) {
			d.dropRow(r, &d.stats.BadChecksum)
		}
	}
}

// newRow returns a row that is not attached, or nil when memory forbids it.
func (d *Decoder) newRow() *row {
	s := d.eq
	for {
		if r := s.free; r != nil {
			s.free, r.next = r.next, nil
			return r
		}
		if d.pool.reserve(rowBytes) {
			s.made++
			return new(row)
		}
		if !d.evict() {
			return nil
		}
	}
}

// dropRow drops r and counts it.
func (d *Decoder) dropRow(r *row, counter *uint64) {
	d.pool.put(d.eq.detach(r))
	*counter++
}

// oldestRow returns the row with the oldest pivot, or nil.
func (d *Decoder) oldestRow() *row {
	if s := d.eq; s != nil {
		for _, c := range s.cols[:s.ncols] {
			if r := s.owner[c.slot]; r != nil {
				return r
			}
		}
	}
	return nil
}

// waitsFor reports whether an equation may have the unknown id.
func (d *Decoder) waitsFor(id uint64) bool {
	if d.eq == nil {
		return false
	}
	_, ok := d.eq.find(id)
	return ok
}

// expire drops the equations with an unknown before id. The others do not have
// it: what is lost is only what could not do without.
func (d *Decoder) expire(id uint64) {
	s := d.eq
	if s == nil {
		return
	}
	n, _ := s.find(id)
	for _, c := range s.cols[:n] {
		if r := s.owner[c.slot]; r != nil {
			d.dropRow(r, &d.stats.Expired)
		}
		s.slots.remove(c.slot)
	}
	copy(s.cols[:], s.cols[n:s.ncols])
	s.ncols -= n
}

// freeSolver drops all equations and the memory for them.
func (d *Decoder) freeSolver() {
	s := d.eq
	if s == nil {
		return
	}
	for s.n > 0 {
		d.dropRow(s.rows[0], &d.stats.Expired)
	}
	d.pool.release(s.made * rowBytes)
	d.eq = nil
}
