package fec

// Symbol ids are serial numbers modulo 2^64: a is before b when it is fewer than
// 2^63 steps behind, as in RFC 1982. So nothing special happens when they wrap.

// before reports whether id a comes before id b.
func before(a, b uint64) bool { return int64(a-b) < 0 }

// later returns the later of a and b.
func later(a, b uint64) uint64 {
	if before(a, b) {
		return b
	}
	return a
}

// ring holds source symbols with ids in [first, end), in slots that are found by
// the low bits of the id. Not every id has to be present.
type ring struct {
	slots []*value // a power of two, or none
	first uint64
	end   uint64 // one behind the highest id ever stored, or first
	count int
}

const (
	ringMinimum   = 16
	ringSlotBytes = 8
)

// get returns the symbol id, or nil.
func (r *ring) get(id uint64) *value {
	if len(r.slots) == 0 {
		return nil
	}
	if v := r.slots[id&uint64(len(r.slots)-1)]; v != nil && v.id == id {
		return v
	}
	return nil
}

// room makes sure that id has a slot. It reports false when the pool's limit
// forbids the larger table. The caller keeps id within [first, first+2^31).
func (r *ring) room(p *pool, id uint64) bool {
	need := int(id-r.first) + 1
	if need <= len(r.slots) {
		return true
	}
	n := max(ringMinimum, 2*len(r.slots))
	for n < need {
		n *= 2
	}
	if !p.reserve(n * ringSlotBytes) {
		return false
	}
	old := r.slots
	r.slots = make([]*value, n)
	for _, v := range old {
		if v != nil {
			r.slots[v.id&uint64(n-1)] = v
		}
	}
	p.release(len(old) * ringSlotBytes)
	return true
}

// put stores v under its id, for which there must be room.
func (r *ring) put(v *value) {
	r.slots[v.id&uint64(len(r.slots)-1)] = v
	v.stored = true
	r.count++
	r.end = later(r.end, v.id+1)
}

// drop removes the symbols before id and makes id the first. The work is bounded
// by the number of slots, however far the jump.
func (r *ring) drop(p *pool, id uint64) {
	if !before(r.first, id) {
		return
	}
	if r.count > 0 {
		stop := id
		if before(r.end, stop) {
			stop = r.end
		}
		for ; r.first != stop && r.count > 0; r.first++ {
			slot := r.first & uint64(len(r.slots)-1)
			if v := r.slots[slot]; v != nil {
				r.slots[slot] = nil
				r.count--
				unstore(p, v)
			}
		}
	}
	r.first = id
	r.end = later(r.end, id)
}

// reset gives back all memory and starts again behind the highest id.
func (r *ring) reset(p *pool) {
	for _, v := range r.slots {
		if v != nil {
			unstore(p, v)
		}
	}
	p.release(len(r.slots) * ringSlotBytes)
	r.slots, r.count, r.first = nil, 0, r.end
}

// unstore ends the ring's ownership of v.
func unstore(p *pool, v *value) {
	v.stored = false
	if !v.queued {
		p.put(v)
	}
}
