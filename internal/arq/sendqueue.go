package arq

import (
	"slices"

	"github.com/openarkstudio/arknet-go/internal/bufpool"
	"github.com/openarkstudio/arknet-go/internal/wire"
)

// sourceSymbol is a packed piece of the application's data. Its bytes never
// change once it was sent.
type sourceSymbol struct {
	buf      *bufpool.Buffer
	messages uint64 // sequence number after the last message that ends here or before
	bytes    int    // application bytes inside
	ended    int    // messages that end here
	live     int    // transmissions neither acked nor lost
	sent     bool
	known    bool // the peer is known to hold it
	missing  bool // no live copy is on its way; in missingIDs
	granted  bool // missing, and to be sent again
}

// sendQueue packs messages into symbols and keeps the symbols until the peer
// holds them. Ids base..next-1 exist, base..unsent-1 were sent at least once.
type sendQueue struct {
	ring    []sourceSymbol
	base    wire.SymbolID
	unsent  wire.SymbolID
	next    wire.SymbolID
	room    int  // bytes left in the last symbol, 0 = closed to further records
	stream  int  // start of the last stream record in the last symbol, -1 = none
	sealed  bool // FIN is queued: nothing may follow
	mode    directionMode
	payload int // capacity of a symbol

	messages     uint64          // accepted so far
	acked        uint64          // acknowledged so far
	queuedBytes  int             // application bytes not yet sent
	queued       int             // messages not yet sent
	sentBytes    uint64          // symbol bytes sent for the first time, all in all
	inFlight     int             // symbol bytes sent and not known to be held
	missingIDs   []wire.SymbolID // ascending
	granted      int             // of them, how many are to be sent again
	unknownCount int             // symbols sent and not known to be held
}

// directionMode is fixed by the first write and carried on the wire.
type directionMode uint8

const (
	modeOpen directionMode = iota
	modeMessages
	modeStream
)

func (q *sendQueue) at(id wire.SymbolID) *sourceSymbol {
	return &q.ring[uint64(id)&uint64(len(q.ring)-1)]
}

func (q *sendQueue) len() int { return int(q.next - q.base) }

// open starts a new symbol.
func (q *sendQueue) open() *sourceSymbol {
	if q.len() == len(q.ring) {
		old := *q
		q.ring = make([]sourceSymbol, max(8, 2*len(old.ring)))
		for id := old.base; id < old.next; id++ {
			*q.at(id) = *old.at(id)
		}
	}
	s := q.at(q.next)
	q.next++
	*s = sourceSymbol{buf: bufpool.Get(q.payload), messages: q.messages}
	s.buf.Data = s.buf.Data[:0]
	q.room, q.stream = q.payload, -1
	return s
}

// last returns the symbol that may still take n bytes of record, or a new one.
func (q *sendQueue) last(n int) *sourceSymbol {
	if q.room >= n && q.next > q.unsent {
		return q.at(q.next - 1)
	}
	return q.open()
}

func (q *sendQueue) took(s *sourceSymbol, record, bytes int) {
	q.room -= record
	q.queuedBytes += bytes
	s.bytes += bytes
}

// addMessage packs one message: with its neighbours if it fits, else cut into
// equal symbols of its own.
func (q *sendQueue) addMessage(m []byte) {
	q.messages++
	q.queued++
	n := wire.RecordHeaderLen + len(m)
	if n <= q.payload {
		s := q.last(n)
		s.buf.Data = wire.AppendMessageRecord(s.buf.Data, wire.RecordWhole, 0, m)
		q.took(s, n, len(m))
		q.endMessage(s)
		return
	}
	// All symbols get the same length, headers included, so that they leave as
	// one train of equal datagrams.
	overhead := wire.RecordOverhead(wire.RecordContinue, 0)
	extra := wire.RecordOverhead(wire.RecordFirst, uint64(len(m))) - overhead
	pieces := (len(m) + extra + q.payload - overhead - 1) / (q.payload - overhead)
	size := (len(m) + extra + pieces - 1) / pieces
	kind, total, n := wire.RecordFirst, uint64(len(m)), size-extra
	for len(m) > 0 {
		piece := m[:min(n, len(m))]
		m = m[len(piece):]
		s := q.open()
		s.messages-- // this message ends in a later symbol
		s.buf.Data = wire.AppendMessageRecord(s.buf.Data, kind, total, piece)
		q.took(s, 0, len(piece))
		q.room = 0
		kind, total, n = wire.RecordContinue, 0, size
		if len(m) == 0 {
			q.endMessage(s)
		}
	}
}

func (q *sendQueue) endMessage(s *sourceSymbol) {
	s.messages = q.messages
	s.ended++
}

// addStream packs bytes of the stream behind what is there.
func (q *sendQueue) addStream(b []byte) {
	overhead := wire.RecordOverhead(wire.RecordStream, 0)
	for len(b) > 0 {
		if q.stream >= 0 && q.room > 0 && q.next > q.unsent {
			// Lengthen the record that ends the symbol.
			s := q.at(q.next - 1)
			n := min(q.room, len(b))
			s.buf.Data = append(s.buf.Data, b[:n]...)
			wire.SetRecordLen(s.buf.Data[q.stream:], len(s.buf.Data)-q.stream-overhead)
			q.took(s, n, n)
			b = b[n:]
			continue
		}
		s := q.last(overhead + 1)
		n := min(q.room-overhead, len(b))
		q.stream = len(s.buf.Data)
		s.buf.Data = wire.AppendMessageRecord(s.buf.Data, wire.RecordStream, 0, b[:n])
		q.took(s, overhead+n, n)
		b = b[n:]
	}
}

// addFin ends the direction.
func (q *sendQueue) addFin() {
	n := wire.RecordOverhead(wire.RecordFin, 0)
	s := q.last(n)
	s.buf.Data = wire.AppendMessageRecord(s.buf.Data, wire.RecordFin, 0, nil)
	q.took(s, n, 0)
	q.room = 0
	q.sealed = true
}

// repack cuts what is queued into symbols of another capacity. Nothing may have
// been sent.
func (q *sendQueue) repack(payload int) {
	old := *q
	*q = sendQueue{payload: payload, stream: -1, mode: old.mode, base: old.base, unsent: old.base, next: old.base}
	var long []byte
	left := 0
	for id := old.base; id < old.next; id++ {
		buf := old.at(id).buf
		for b := buf.Data; len(b) > 0; {
			r, rest, err := wire.NextMessageRecord(b)
			if err != nil {
				panic("BUG: queued a record that cannot be read: " + err.Error())
			}
			b = rest
			switch r.Kind {
			case wire.RecordWhole:
				q.addMessage(r.Data)
			case wire.RecordStream:
				q.addStream(r.Data)
			case wire.RecordFin:
				q.addFin()
			case wire.RecordFirst:
				long, left = append(long[:0], r.Data...), int(r.Total)-len(r.Data)
			case wire.RecordContinue:
				long = append(long, r.Data...)
				if left -= len(r.Data); left == 0 {
					q.addMessage(long)
				}
			}
		}
		buf.Release()
	}
}

// takeUnsent marks the next symbol as sent and returns its id.
func (q *sendQueue) takeUnsent() wire.SymbolID {
	id := q.unsent
	s := q.at(id)
	q.unsent++
	s.sent = true
	q.queuedBytes -= s.bytes
	q.queued -= s.ended
	q.sentBytes += uint64(len(s.buf.Data))
	q.inFlight += len(s.buf.Data)
	q.unknownCount++
	if q.unsent == q.next {
		q.room = 0
	}
	return id
}

// markKnown notes that the peer holds the symbol.
func (q *sendQueue) markKnown(id wire.SymbolID) {
	if id < q.base || id >= q.unsent {
		return
	}
	s := q.at(id)
	if s.known {
		return
	}
	s.known = true
	q.inFlight -= len(s.buf.Data)
	q.unknownCount--
	q.markNotMissing(id)
}

// markNotMissing takes the symbol off the list of missing ones.
func (q *sendQueue) markNotMissing(id wire.SymbolID) {
	s := q.at(id)
	if !s.missing {
		return
	}
	s.missing = false
	if s.granted {
		s.granted = false
		q.granted--
	}
	if i, ok := slices.BinarySearch(q.missingIDs, id); ok {
		q.missingIDs = slices.Delete(q.missingIDs, i, i+1)
	}
}

// advance releases symbols from the old end that the peer holds, up to the
// first that it does not. It reports whether any was released.
func (q *sendQueue) advance() bool {
	before := q.base
	for q.base < q.unsent {
		s := q.at(q.base)
		if !s.known {
			break
		}
		q.acked = s.messages
		s.buf.Release()
		s.buf = nil
		q.base++
	}
	return q.base != before
}

// firstUnknown is the oldest symbol that the peer is not known to hold, or the
// next one to be sent.
func (q *sendQueue) firstUnknown() wire.SymbolID {
	id := q.base
	for id < q.unsent && q.at(id).known {
		id++
	}
	return id
}

// addMissing lists a symbol that has no live copy left on its way.
func (q *sendQueue) addMissing(id wire.SymbolID) {
	if id < q.base || id >= q.unsent {
		return
	}
	s := q.at(id)
	if s.known || s.missing || s.live > 0 {
		return
	}
	s.missing = true
	i, _ := slices.BinarySearch(q.missingIDs, id)
	q.missingIDs = slices.Insert(q.missingIDs, i, id)
}

// ungranted counts the missing symbols that are not yet to be sent again, and
// names the first and the last of them.
func (q *sendQueue) ungranted() (n int, first, last wire.SymbolID) {
	if n = len(q.missingIDs) - q.granted; n == 0 {
		return 0, 0, 0
	}
	found := false
	for _, id := range q.missingIDs {
		if q.at(id).granted {
			continue
		}
		if !found {
			first, found = id, true
		}
		last = id
	}
	return n, first, last
}

// grant lets the oldest n missing symbols be sent again.
func (q *sendQueue) grant(n int) {
	for _, id := range q.missingIDs {
		if n == 0 {
			return
		}
		if s := q.at(id); !s.granted {
			s.granted = true
			q.granted++
			n--
		}
	}
}

// nextGranted is the oldest symbol that is to be sent again; there is one.
func (q *sendQueue) nextGranted() wire.SymbolID {
	for _, id := range q.missingIDs {
		if q.at(id).granted {
			return id
		}
	}
	panic("BUG: no symbol is granted")
}

// release gives all buffers back.
func (q *sendQueue) release() {
	for id := q.base; id < q.next; id++ {
		if s := q.at(id); s.buf != nil {
			s.buf.Release()
			s.buf = nil
		}
	}
	q.base, q.unsent = q.next, q.next
	q.queuedBytes, q.queued, q.inFlight, q.unknownCount = 0, 0, 0, 0
	q.missingIDs, q.granted, q.ring = nil, 0, nil
	q.room = 0
}
