package fec

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// This file holds what the decoder is judged by: the same code written down in the
// plainest way, with arithmetic of its own, and a flow that runs both.

// plainProducts is filled by multiplying bit by bit.
var plainProducts = func() (p [256][256]byte) {
	for x := range 256 {
		for y := range 256 {
			a, b := byte(x), byte(y)
			for ; b > 0; b >>= 1 {
				if b&1 == 1 {
					p[x][y] ^= a
				}
				carry := a & 0x80
				a <<= 1
				if carry != 0 {
					a ^= 0x1d
				}
			}
		}
	}
	return p
}()

func plainMul(a, b byte) byte { return plainProducts[a][b] }

// plainInverse is filled by trying all products.
var plainInverse = func() (inv [256]byte) {
	for a := 1; a < 256; a++ {
		for b := 1; b < 256; b++ {
			if plainMul(byte(a), byte(b)) == 1 {
				inv[a] = byte(b)
			}
		}
	}
	return inv
}()

// plainCoefficient is the definition in the comment of Coefficient.
func plainCoefficient(seed uint8, id uint64) byte {
	y := byte(128 + id%128)
	return plainMul(y, plainInverse[seed^y])
}

// gauss brings m into reduced row echelon form and returns the pivot column of
// each row that is not zero.
func gauss(m [][]byte) (pivots []int) {
	if len(m) == 0 {
		return nil
	}
	for c := 0; c < len(m[0]) && len(pivots) < len(m); c++ {
		r := len(pivots)
		p := slices.IndexFunc(m[r:], func(row []byte) bool { return row[c] != 0 })
		if p < 0 {
			continue
		}
		m[r], m[r+p] = m[r+p], m[r]
		inv := plainInverse[m[r][c]]
		for j := range m[r] {
			m[r][j] = plainMul(m[r][j], inv)
		}
		for i := range m {
			if f := m[i][c]; i != r && f != 0 {
				for j := range m[i] {
					m[i][j] ^= plainMul(f, m[r][j])
				}
			}
		}
		pivots = append(pivots, c)
	}
	return pivots
}

// model knows which repairs and sources arrived and says what follows.
type model struct {
	repairs []Repair
	known   map[uint64]bool
}

// learn marks everything that can be solved as known and returns it, and the
// number of independent equations that are left.
func (m *model) learn() (solved []uint64, rank int) {
	var unknown []uint64
	index := map[uint64]int{}
	m.repairs = slices.DeleteFunc(m.repairs, func(r Repair) bool {
		useful := false
		for id := r.First; id != r.End(); id++ {
			if m.known[id] {
				continue
			}
			useful = true
			if _, ok := index[id]; !ok {
				index[id] = len(unknown)
				unknown = append(unknown, id)
			}
		}
		return !useful
	})
	rows := make([][]byte, len(m.repairs))
	for i, r := range m.repairs {
		rows[i] = make([]byte, len(unknown))
		for id := r.First; id != r.End(); id++ {
			if !m.known[id] {
				rows[i][index[id]] = plainCoefficient(r.Seed, id)
			}
		}
	}
	for i, c := range gauss(rows) {
		others := 0
		for _, f := range rows[i] {
			if f != 0 {
				others++
			}
		}
		if others == 1 {
			solved = append(solved, unknown[c])
			continue
		}
		rank++
	}
	for _, id := range solved {
		m.known[id] = true
	}
	slices.SortFunc(solved, func(a, b uint64) int {
		if before(a, b) {
			return -1
		}
		return 1
	})
	return solved, rank
}

// flow is an encoder, a decoder and a model of the same flow.
type flow struct {
	t       testing.TB
	enc     *Encoder
	dec     *Decoder
	model   model
	symbols map[uint64][]byte
	sent    uint64 // next id
	seed    uint64 // next repair number
	limit   int    // Limits.Bytes of the decoder
}

func newFlow(t testing.TB, c Config) *flow {
	t.Helper()
	enc, err := NewEncoder(c)
	if err != nil {
		t.Fatal(err)
	}
	dec, err := NewDecoder(c)
	if err != nil {
		t.Fatal(err)
	}
	return &flow{
		t: t, enc: enc, dec: dec, sent: c.First,
		model:   model{known: map[uint64]bool{}},
		symbols: map[uint64][]byte{}, limit: c.Limits.withDefaults().Bytes,
	}
}

// symbol returns n bytes that differ for every id and length.
func symbol(id uint64, n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte(append(binary.BigEndian.AppendUint64(nil, id), make([]byte, 24)...))).Read(b)
	return b
}

// send makes the next source symbol, n bytes long, and hands it in unless lost.
func (f *flow) send(n int, lost bool) {
	f.t.Helper()
	id := f.sent
	f.sent++
	f.symbols[id] = symbol(id, n)
	if err := f.enc.Add(id, f.symbols[id]); err != nil {
		f.t.Fatal(err)
	}
	if !lost {
		f.source(id)
	}
}

// source hands in the source symbol id, perhaps not for the first time.
func (f *flow) source(id uint64) {
	f.t.Helper()
	old := before(id, f.dec.ring.first) && !f.dec.waitsFor(id)
	news := f.dec.AddSource(id, f.symbols[id])
	if want := !old && !f.model.known[id]; news != want {
		f.t.Fatalf("AddSource(%d) = %t, want %t", id, news, want)
	}
	if news {
		f.model.known[id] = true
	}
	f.check()
}

// payload returns the payload of r.
func (f *flow) payload(r Repair) []byte {
	f.t.Helper()
	p, err := f.enc.AppendRepair(nil, r)
	if err != nil {
		f.t.Fatal(err)
	}
	return p
}

// repair makes the repair r, hands it in and checks the outcome.
func (f *flow) repair(r Repair) Outcome {
	f.t.Helper()
	p := f.payload(r)
	o := f.dec.AddRepair(r, p)
	switch o {
	case Restored, Held, Useless:
		f.model.repairs = append(f.model.repairs, r)
	case Late, Forgotten:
	default:
		f.t.Fatalf("repair %+v: %v", r, o)
	}
	if n := f.check(); o == Restored && n == 0 || o != Restored && n > 0 {
		f.t.Fatalf("repair %+v: %v, %d restored", r, o, n)
	}
	return o
}

// check compares what the decoder restored with the model, byte by byte, and
// returns how many symbols that were.
func (f *flow) check() int {
	f.t.Helper()
	want, rank := f.model.learn()
	wanted := slices.DeleteFunc(slices.Clone(want), func(id uint64) bool { return before(id, f.dec.want) })
	got := f.drain()
	if !slices.Equal(got, wanted) {
		f.t.Fatalf("restored %d, want %d", got, wanted)
	}
	if n := f.dec.Rows(); n != rank {
		f.t.Fatalf("%d rows held, want %d", n, rank)
	}
	return len(want)
}

// drain takes everything that the decoder restored and checks that it is right.
func (f *flow) drain() (ids []uint64) {
	f.t.Helper()
	for {
		id, data, ok := f.dec.Next()
		if !ok {
			f.audit()
			return ids
		}
		if want, ok := f.symbols[id]; !ok || !bytes.Equal(data, want) {
			f.t.Fatalf("symbol %d restored as %d bytes %x, want %d bytes %x", id, len(data), data, len(want), want)
		}
		ids = append(ids, id)
	}
}

// audit checks what holds at any time.
func (f *flow) audit() {
	f.t.Helper()
	if err := auditDecoder(f.dec); err != nil {
		f.t.Fatal(err)
	}
	if s := f.enc.Stats(); s.Bytes > f.limit {
		f.t.Fatalf("encoder holds %d bytes, limit %d", s.Bytes, f.limit)
	}
}

// auditDecoder checks the accounts of d and the form of its equations.
func auditDecoder(d *Decoder) error {
	s := d.Stats()
	sum := s.Used + s.Useless + s.Late + s.Forgotten + s.BadWindow + s.BadLength +
		s.BadChecksum + s.OverLimit + s.Evicted + s.Expired + uint64(s.Rows)
	if sum != s.Repairs {
		return fmt.Errorf("%d repairs, %d accounted for: %+v", s.Repairs, sum, s)
	}
	if s.Bytes > d.limits.Bytes || s.PeakBytes > d.limits.Bytes || s.Bytes > s.PeakBytes || s.Bytes < 0 {
		return fmt.Errorf("holds %d bytes, peak %d, limit %d", s.Bytes, s.PeakBytes, d.limits.Bytes)
	}
	if s.Rows > d.limits.Rows {
		return fmt.Errorf("%d rows, limit %d", s.Rows, d.limits.Rows)
	}
	if got := countBytes(d); got != s.Bytes {
		return fmt.Errorf("%d bytes in all lists, %d accounted for", got, s.Bytes)
	}
	if d.eq == nil {
		return nil
	}
	return auditRows(d.eq)
}

// countBytes adds up what d holds by walking over it.
func countBytes(d *Decoder) int {
	seen := map[*value]bool{}
	list := func(v *value) {
		for ; v != nil; v = v.next {
			seen[v] = true
		}
	}
	for _, v := range d.pool.free {
		list(v)
	}
	list(d.queue)
	if d.last != nil {
		seen[d.last] = true
	}
	for _, v := range d.ring.slots {
		if v != nil {
			seen[v] = true
		}
	}
	n := len(d.ring.slots) * ringSlotBytes
	if s := d.eq; s != nil {
		n += solverBytes
		for _, r := range s.rows[:s.n] {
			seen[r.val] = true
			n += rowBytes
		}
		for r := s.free; r != nil; r = r.next {
			n += rowBytes
		}
	}
	for v := range seen {
		n += len(v.buf) + valueBytes
	}
	return n
}

// auditRows checks that the equations are in the form that solver.go promises.
func auditRows(s *solver) error {
	for _, r := range s.rows[:s.n] {
		if s.owner[r.pivot] != r || r.coef[r.pivot] != 1 || r.dirty || r.wrong {
			return fmt.Errorf("row %d: pivot not its own", r.id)
		}
		others := 0
		for _, c := range s.cols[:s.ncols] {
			switch {
			case r.coef[c.slot] == 0 || c.slot == r.pivot:
			case before(c.id, r.id):
				return fmt.Errorf("row %d: lower unknown %d", r.id, c.id)
			case s.owner[c.slot] != nil:
				return fmt.Errorf("row %d: has the pivot of row %d", r.id, s.owner[c.slot].id)
			default:
				others++
			}
		}
		if others == 0 {
			return fmt.Errorf("row %d: solved and still here", r.id)
		}
		for i := s.width(); i < columns; i++ {
			if r.coef[i] != 0 {
				return fmt.Errorf("row %d: coefficient without a column", r.id)
			}
		}
		for _, b := range r.val.buf[r.val.n:padded(r.val.n)] {
			if b != 0 {
				return fmt.Errorf("row %d: padding is not zero", r.id)
			}
		}
	}
	return nil
}
