package fec

import (
	"encoding/binary"
	"math/bits"
)

// The equations are kept in reduced row echelon form, always. Each row is one
// equation: a sum of unknown symbols times coefficients, equal to a value from
// which all known symbols have been subtracted. In each row the unknown with the
// lowest id is the pivot: its coefficient is 1, and no other row has that
// unknown. So
//
//   - a row without a second unknown is solved, and there is no other way to be
//     solved: the form decides exactly what can be restored;
//   - a solved unknown is in no other row, so that one solution never sets off a
//     chain of work;
//   - dropping a row costs exactly one equation.

// columns is the number of different unknowns in all rows together. A row has a
// byte for each.
const columns = 256

// row is one equation.
type row struct {
	coef  [columns]byte // by the slot of the unknown
	from  set           // repairs that went into it and are not proven right
	val   *value
	id    uint64 // the pivot
	pivot uint8  // its slot
	bit   uint8  // this row's own repair in from
	at    int    // index in solver.rows
	dirty bool   // changed; look whether it is solved
	wrong bool   // its solution is no valid symbol
	next  *row   // free list
}

const rowBytes = 352

// column is one unknown.
type column struct {
	id   uint64
	slot uint8
}

// term is a known symbol times a coefficient, to be subtracted from a repair.
type term struct {
	v *value
	c byte
}

// step is a row times a coefficient, to be subtracted from a repair.
type step struct {
	at int16
	c  byte
}

// solver holds the equations. It is allocated with the first repair that is not
// useless.
type solver struct {
	n     int // number of rows
	rows  [maxRows + 1]*row
	ncols int
	cols  [columns]column // in the order of their ids
	owner [columns]*row   // by slot: the row whose pivot it is
	slots set             // slots in use
	bits  set             // row bits in use
	free  *row
	made  int    // rows allocated
	fresh *value // solved just now, linked by next

	// Scratch of one call.
	terms    [MaxSpan]term
	unknown  [MaxSpan]uint64
	unkSlots [MaxSpan]uint8
	steps    [columns]step
	coef     [columns]byte
	chunk    [512]byte
}

// solverBytes is at least the size of solver, and is kept free for it.
const solverBytes = 14 << 10

// set is a set of numbers below 256.
type set [4]uint64

func (s *set) add(i uint8)    { s[i>>6] |= 1 << (i & 63) }
func (s *set) remove(i uint8) { s[i>>6] &^= 1 << (i & 63) }

func (s *set) union(t *set) {
	for i := range s {
		s[i] |= t[i]
	}
}

func (s *set) subtract(t *set) {
	for i := range s {
		s[i] &^= t[i]
	}
}

func (s *set) meets(t *set) bool {
	return s[0]&t[0]|s[1]&t[1]|s[2]&t[2]|s[3]&t[3] != 0
}

// lowestFree returns the lowest number that is not in s.
func (s *set) lowestFree() (i uint8, ok bool) {
	for w, b := range s {
		if b != ^uint64(0) {
			return uint8(w*64 + bits.TrailingZeros64(^b)), true
		}
	}
	return 0, false
}

// width returns how many coefficients of a row can be other than 0, rounded up
// for the kernels.
func (s *solver) width() int {
	for w := len(s.slots) - 1; w >= 0; w-- {
		if b := s.slots[w]; b != 0 {
			return padded(w*64 + bits.Len64(b))
		}
	}
	return 0
}

// find returns the index of the first column whose id is not before id, and
// whether it is id's.
func (s *solver) find(id uint64) (i int, ok bool) {
	lo, hi := 0, s.ncols
	for lo < hi {
		if mid := (lo + hi) / 2; before(s.cols[mid].id, id) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, lo < s.ncols && s.cols[lo].id == id
}

// slot returns the slot of the unknown id, a new one if need be. There must be
// room for it.
func (s *solver) slot(id uint64) uint8 {
	i, ok := s.find(id)
	if !ok {
		slot, free := s.slots.lowestFree()
		if !free {
			panic("BUG: fec: no column left")
		}
		s.slots.add(slot)
		copy(s.cols[i+1:s.ncols+1], s.cols[i:s.ncols])
		s.cols[i] = column{id, slot}
		s.ncols++
	}
	return s.cols[i].slot
}

// removeColumn ends the use of the column with index i. No row may have it.
func (s *solver) removeColumn(i int) {
	slot := s.cols[i].slot
	s.slots.remove(slot)
	s.owner[slot] = nil
	copy(s.cols[i:], s.cols[i+1:s.ncols])
	s.ncols--
}

// sweep removes the columns that no row has.
func (s *solver) sweep() {
	var used [columns]byte
	for _, r := range s.rows[:s.n] {
		for i := 0; i < columns; i += 8 {
			w := binary.LittleEndian.Uint64(used[i:]) | binary.LittleEndian.Uint64(r.coef[i:])
			binary.LittleEndian.PutUint64(used[i:], w)
		}
	}
	kept := s.cols[:0]
	for _, c := range s.cols[:s.ncols] {
		if used[c.slot] == 0 {
			s.slots.remove(c.slot)
			continue
		}
		kept = append(kept, c)
	}
	s.ncols = len(kept)
}

// choosePivot makes the unknown with the lowest id in coef the pivot of r. It
// reports false when coef has none.
func (s *solver) choosePivot(r *row, coef *[columns]byte) bool {
	for _, c := range s.cols[:s.ncols] {
		if coef[c.slot] != 0 {
			r.pivot, r.id = c.slot, c.id
			return true
		}
	}
	return false
}

// single reports whether r has no unknown but its pivot.
func (r *row) single(width int) bool {
	lead := r.coef[r.pivot]
	r.coef[r.pivot] = 0
	var or uint64
	for i := 0; i < width; i += 8 {
		or |= binary.LittleEndian.Uint64(r.coef[i:])
	}
	r.coef[r.pivot] = lead
	return or == 0
}

// attach puts r among the rows and gives it a bit that appears in no other row,
// so far as there is one.
func (s *solver) attach(r *row) {
	taken := s.bits
	for _, o := range s.rows[:s.n] {
		taken.union(&o.from)
	}
	bit, ok := taken.lowestFree()
	if !ok {
		if bit, ok = s.bits.lowestFree(); !ok {
			panic("BUG: fec: more rows than bits")
		}
	}
	s.bits.add(bit)
	r.from.add(bit)
	r.bit, r.at = bit, s.n
	r.dirty, r.wrong = false, false
	s.rows[s.n] = r
	s.n++
}

// detach takes r from the rows. Its value stays with the caller.
func (s *solver) detach(r *row) *value {
	s.n--
	last := s.rows[s.n]
	s.rows[r.at], last.at = last, r.at
	s.rows[s.n] = nil
	s.bits.remove(r.bit)
	if s.owner[r.pivot] == r {
		s.owner[r.pivot] = nil
	}
	v := r.val
	s.putRow(r)
	return v
}

// putRow keeps r, which is not attached, for reuse.
func (s *solver) putRow(r *row) {
	r.val = nil
	r.next, s.free = s.free, r
}

// scale multiplies the value v by c, through a buffer because the kernels do not
// promise to work in place.
func (s *solver) scale(c byte, v *value) {
	for b := v.operand(); len(b) > 0; {
		n := min(len(b), len(s.chunk))
		mulSlice(c, b[:n], s.chunk[:])
		copy(b, s.chunk[:n])
		b = b[n:]
	}
}
