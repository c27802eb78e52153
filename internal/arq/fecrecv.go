package arq

import (
	"github.com/openarkstudio/arknet-go/fec"
	"github.com/openarkstudio/arknet-go/internal/wire"
)

// restorer is the receiving side of erasure coding.
type restorer struct {
	dec       *fec.Decoder
	releaseAt Time     // end of a long silence, never = nothing kept
	restored  rangeSet // symbols restored above recv.next: acks have to name them
	peak      int
	reserved  int    // bytes reserved from Config.CodingMemory
	bound     uint64 // times that there was no more of it
}

// startRestorer sets the receiving side up if the peer may send repairs: what
// its first repair covers has to be kept by then.
func (c *Conn) startRestorer() {
	if c.peer.SendsRepairs != 0 {
		c.makeDecoder()
	}
}

func (c *Conn) makeDecoder() {
	if c.restorer.dec != nil || c.cfg.FEC.Retain == 0 {
		return
	}
	const symbolBytes = MaxMTU
	dec, err := fec.NewDecoder(fec.Config{
		First: uint64(c.recv.next),
		Epoch: c.repairEpoch(!c.client),
		Limits: fec.Limits{
			SymbolBytes: symbolBytes,
			Span:        wire.MaxRepairSpan,
			Bytes:       max(c.cfg.FEC.Retain, 4*symbolBytes),
		},
	})
	if err != nil {
		panic("BUG: decoder limits: " + err.Error())
	}
	c.restorer.dec = dec
}

// handleRepair takes a repair. It reports whether the packet may be
// acknowledged.
func (c *Conn) handleRepair(now Time, b, whole []byte) bool {
	h, payload, err := wire.ParseRepair(b)
	if err != nil {
		c.drop(now, &c.stats.Dropped.Malformed, whole)
		return false
	}
	if c.state >= StateClosing || c.cfg.FEC.Retain == 0 {
		c.drop(now, &c.stats.Dropped.Stale, whole)
		return false
	}
	first := wire.Expand24(h.First, uint64(c.recv.next))
	if first+uint64(h.Span) > uint64(c.recv.next)+uint64(c.recv.limit) {
		c.drop(now, &c.stats.Dropped.Window, whole)
		return false
	}
	c.makeDecoder()
	c.restorer.releaseAt = now.add(fecSilence)
	c.restorer.dec.AddRepair(fec.Repair{First: first, Span: h.Span, Seed: h.Seed}, payload)
	c.takeRestored(now)
	return true
}

// feedDecoder tells the decoder of a symbol that arrived.
func (c *Conn) feedDecoder(now Time, id wire.SymbolID, payload []byte) {
	d := &c.restorer
	if d.dec == nil {
		return
	}
	d.releaseAt = now.add(fecSilence)
	d.dec.AddSource(uint64(id), payload)
	c.takeRestored(now)
}

// takeRestored puts restored symbols where received ones go.
func (c *Conn) takeRestored(now Time) {
	d := &c.restorer
	for c.state < StateClosing {
		id, data, ok := d.dec.Next()
		if !ok {
			break
		}
		if c.recv.contains(wire.SymbolID(id)) || !c.acceptSymbol(now, wire.SymbolID(id), data, data) {
			continue
		}
		c.trace(TraceEvent{Kind: TraceRestored, Time: now, Symbol: wire.SymbolID(id), Size: len(data)})
		d.restored.add(id, id)
		if extra := len(d.restored.r) - maxReceivedRanges; extra > 0 {
			d.restored.dropFirst(extra)
		}
	}
	d.restored.dropBelow(uint64(c.recv.next))
	d.dec.Advance(uint64(c.recv.next))
	c.noteRetained()
}

// fillRestored adds to the ack what packet numbers do not tell: equations held
// and symbols restored, the lowest limit ranges.
func (c *Conn) fillRestored(limit int) {
	d := &c.restorer
	if d.dec == nil {
		return
	}
	c.ackOut.Equations = uint8(min(d.dec.Rows(), 255))
	d.restored.dropBelow(uint64(c.recv.next))
	lowest := d.restored.r[:min(len(d.restored.r), limit)]
	c.ackOut.Symbols = append(c.ackOut.Symbols, lowest...)
}

// codingStep is the unit of reservations from the shared memory.
const codingStep = 32 << 10

// noteRetained keeps the peak of what coding holds, and the reservation of the
// shared memory. Where that has no more, the oldest of what is held goes, and
// coding goes on with what comes next.
func (c *Conn) noteRetained() {
	d := &c.restorer
	held := c.retainedBytes()
	if c.cfg.CodingMemory != nil {
		if held > d.reserved {
			need := roundUp(held, codingStep)
			if c.cfg.CodingMemory.Reserve(need - d.reserved) {
				d.reserved = need
			} else {
				d.bound++
				held = c.shrinkCoding(d.reserved)
			}
		} else if keep := roundUp(held, codingStep); keep < d.reserved/2 || keep == 0 && d.reserved > 0 {
			c.cfg.CodingMemory.Release(d.reserved - keep)
			d.reserved = keep
		}
	}
	d.peak = max(d.peak, held)
}

// shrinkCoding makes both directions hold at most n bytes together, each its
// share, and returns what they hold.
func (c *Conn) shrinkCoding(n int) int {
	held, sending := c.retainedBytes(), 0
	if enc := c.repairs.enc; enc != nil {
		enc.Shrink(int(int64(enc.Bytes()) * int64(n) / int64(held)))
		sending = enc.Bytes()
	}
	if dec := c.restorer.dec; dec != nil {
		dec.Shrink(n - sending)
	}
	return c.retainedBytes()
}

func roundUp(n, step int) int { return (n + step - 1) / step * step }

func (c *Conn) retainedBytes() int {
	n := 0
	if c.repairs.enc != nil {
		n += c.repairs.enc.Bytes()
	}
	if c.restorer.dec != nil {
		n += c.restorer.dec.Bytes()
	}
	return n
}

// repairStats merges what both directions counted.
func (c *Conn) repairStats() RepairStats {
	s := c.repairs.stats
	if d := c.restorer.dec; d != nil {
		t := d.Stats()
		s.Received, s.Used, s.Useless, s.Restored = t.Repairs, t.Used, t.Useless, t.Restored
		s.Late = t.Late + t.Forgotten + t.Expired
		s.Rejected = t.BadWindow + t.BadLength + t.BadChecksum + t.OverLimit
		s.Evicted, s.Held = t.Evicted, uint64(t.Rows)
	}
	s.MemoryBound = c.restorer.bound
	s.RetainedBytes = c.retainedBytes()
	s.RetainedPeakBytes = c.restorer.peak
	return s
}

// releaseCoding gives all memory of coding back at the end of the session.
func (c *Conn) releaseCoding() {
	r, d := &c.repairs, &c.restorer
	r.dropOwed()
	r.flushAt, r.releaseAt, d.releaseAt = never, never, never
	r.live, d.restored = nil, rangeSet{}
	if r.enc != nil {
		r.enc.Release()
	}
	if d.dec != nil {
		d.dec.Release()
	}
	c.noteRetained()
}
