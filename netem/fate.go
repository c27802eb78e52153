package netem

import "time"

// Fate is what becomes of one datagram.
type Fate struct {
	// Cause is why the datagram was dropped, or None.
	Cause Cause

	copies [2]Copy
	n      uint8
}

// Delivered returns the copies that arrive: none when the datagram was dropped,
// else the original and perhaps a duplicate, which may arrive first. The slice
// is part of the Fate.
func (f *Fate) Delivered() []Copy { return f.copies[:f.n] }

// Copy is one arrival of a datagram.
type Copy struct {
	// At is the time of the arrival on the caller's clock.
	At time.Duration

	// Late reports whether the copy was picked by Config.Late.
	Late bool

	// Corrupted reports whether the receiver must see damaged bytes: call
	// Damage on them.
	Corrupted bool

	bits   uint8
	damage uint64
}

// Damage flips bits of b if the copy is corrupted and does nothing otherwise. b
// must be a private copy of the whole datagram when another copy of it is still
// to be delivered. The same link, seed and datagram index flip the same bits.
func (c Copy) Damage(b []byte) {
	if !c.Corrupted || len(b) == 0 {
		return
	}
	total := uint64(len(b)) * 8
	var flipped [maxCorruptBits]uint64
	n := min(uint64(c.bits), total)
	for i := range n {
		pos := uniform(mix64(c.damage+(i+1)*golden), total)
		for contains(flipped[:i], pos) { // no bit twice, or it would be whole again
			pos = (pos + 1) % total
		}
		flipped[i] = pos
		b[pos/8] ^= 1 << (pos % 8)
	}
}

func contains(s []uint64, v uint64) bool {
	for _, x := range s {
		if x == v {
			return true
		}
	}
	return false
}
