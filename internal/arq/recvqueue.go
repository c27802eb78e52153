package arq

import (
	"errors"

	"github.com/openarkstudio/arknet-go/internal/bufpool"
	"github.com/openarkstudio/arknet-go/internal/wire"
)

// recvQueue puts source symbols into order. A symbol that arrives in order is
// copied behind the bytes that wait for the application (the ready bytes); one
// that is ahead is kept by itself until the gap is filled.
type recvQueue struct {
	next  wire.SymbolID // lowest symbol not held
	limit int           // how far ahead of next a symbol may be
	early []*bufpool.Buffer
	held  int           // number of early symbols
	top   wire.SymbolID // one above the highest symbol seen

	ready      readyBytes
	maxMessage int
	mode       directionMode
	fin        bool // the peer ended the direction
	partTotal  uint64
	partHeld   uint64 // bytes held of a message begun and not complete

	messages     int    // whole messages ready
	streamBytes  int    // stream bytes ready
	earlyBytes   int    // symbol bytes ahead of next
	earlyHeld    int    // memory that they take
	ordered      uint64 // symbol bytes below next, all in all
	received     uint64 // messages completed
	receivedSize uint64 // application bytes in order
	discard      bool   // the application is gone: accept, acknowledge and drop
	ended        bool   // the session is over
	discarded    uint64 // symbols dropped for that reason
}

// Reasons to refuse a symbol.
var (
	errSymbolOld      = errors.New("symbol is held already")
	errSymbolAhead    = errors.New("symbol is beyond the window")
	errSymbolShape    = errors.New("records contradict each other")
	errMessageTooLong = errors.New("message is longer than announced")
)

func (q *recvQueue) slot(id wire.SymbolID) **bufpool.Buffer {
	return &q.early[uint64(id)&uint64(len(q.early)-1)]
}

// contains reports whether the symbol is held.
func (q *recvQueue) contains(id wire.SymbolID) bool {
	if id < q.next {
		return true
	}
	return q.held > 0 && id < q.next+wire.SymbolID(len(q.early)) && *q.slot(id) != nil
}

// accept takes a symbol; b is copied. Any error other than errSymbolOld and
// errSymbolAhead is a breach of the protocol.
func (q *recvQueue) accept(id wire.SymbolID, b []byte) error {
	if q.contains(id) {
		return errSymbolOld
	}
	if id >= q.next+wire.SymbolID(q.limit) {
		return errSymbolAhead
	}
	q.top = max(q.top, id+1)
	if id > q.next {
		q.keepEarly(id, b)
		return nil
	}
	if err := q.order(b); err != nil {
		return err
	}
	for q.held > 0 {
		s := q.slot(q.next)
		if *s == nil {
			break
		}
		buf := *s
		*s = nil
		q.held--
		q.earlyBytes -= len(buf.Data)
		q.earlyHeld -= bufpool.Cap(len(buf.Data))
		err := q.order(buf.Data)
		buf.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

func (q *recvQueue) keepEarly(id wire.SymbolID, b []byte) {
	if span := int(id - q.next + 1); span > len(q.early) {
		size := max(8, len(q.early))
		for size < span {
			size *= 2
		}
		old := *q
		q.early = make([]*bufpool.Buffer, size)
		for i := range old.early {
			from := old.next + wire.SymbolID(i)
			*q.slot(from) = *old.slot(from)
		}
	}
	buf := bufpool.Get(len(b))
	copy(buf.Data, b)
	*q.slot(id) = buf
	q.held++
	q.earlyBytes += len(b)
	q.earlyHeld += bufpool.Cap(len(b))
}

// order checks the records of the next symbol and makes them ready.
func (q *recvQueue) order(b []byte) error {
	q.next++
	q.ordered += uint64(len(b))
	checked, err := q.orderRecords(b)
	if q.discard {
		q.discarded++
		q.messages, q.streamBytes = 0, 0
		return err
	}
	// What precedes a contradiction was counted, and can be read.
	if checked > 0 || err == nil {
		q.ready.append(b[:checked])
		q.trim()
	}
	return err
}

// orderRecords counts the records of a symbol up to its end, or up to the first
// that contradicts the others, and returns the length of what it counted.
func (q *recvQueue) orderRecords(b []byte) (checked int, err error) {
	for rest := b; len(rest) > 0; checked = len(b) - len(rest) {
		var r wire.MessageRecord
		if r, rest, err = wire.NextMessageRecord(rest); err != nil {
			return checked, err
		}
		if err = q.orderRecord(r); err != nil {
			return checked, err
		}
	}
	return len(b), nil
}

func (q *recvQueue) orderRecord(r wire.MessageRecord) error {
	if q.fin {
		return errSymbolShape
	}
	mode := modeMessages
	switch r.Kind {
	case wire.RecordStream:
		mode = modeStream
	case wire.RecordFin:
		if q.partTotal > 0 {
			return errSymbolShape
		}
		q.fin = true
		return nil
	}
	if q.mode == modeOpen {
		q.mode = mode
	} else if q.mode != mode {
		return errSymbolShape
	}
	q.receivedSize += uint64(len(r.Data))
	switch r.Kind {
	case wire.RecordStream:
		q.streamBytes += len(r.Data)
	case wire.RecordWhole:
		if q.partTotal > 0 {
			return errSymbolShape
		}
		if len(r.Data) > q.maxMessage {
			return errMessageTooLong
		}
		q.messages++
		q.received++
	case wire.RecordFirst:
		if q.partTotal > 0 {
			return errSymbolShape
		}
		if r.Total > uint64(q.maxMessage) {
			return errMessageTooLong
		}
		q.partTotal, q.partHeld = r.Total, uint64(len(r.Data))
	case wire.RecordContinue:
		q.partHeld += uint64(len(r.Data))
		if q.partHeld > q.partTotal {
			return errSymbolShape
		}
		if q.partHeld == q.partTotal {
			q.partTotal, q.partHeld = 0, 0
			q.messages++
			q.received++
		}
	}
	return nil
}

// unread is what counts against the window of what is ready: nothing while the
// application could not read it anyway, because the first message is still
// incomplete. So a message longer than the window completes.
func (q *recvQueue) unread() int {
	if q.messages == 0 && q.streamBytes == 0 {
		return 0
	}
	return q.ready.len
}

// memory is what the queue holds, in bytes. Early symbols count with the whole
// buffer that each takes, however short they are.
func (q *recvQueue) memory() int { return q.ready.len + q.earlyHeld }

// end drops what can never be read any more, now that nothing arrives.
func (q *recvQueue) end() {
	for i, b := range q.early {
		if b != nil {
			b.Release()
			q.early[i] = nil
		}
	}
	q.early, q.held, q.earlyBytes, q.earlyHeld = nil, 0, 0, 0
	q.ended = true
	q.trim()
}

// trim releases the ready bytes once they hold nothing to read, so that an
// idle session holds no chunk: the end of the direction may remain in them, or
// the beginning of a message that will never be whole.
func (q *recvQueue) trim() {
	if q.messages == 0 && q.streamBytes == 0 && (q.partTotal == 0 || q.ended) {
		q.ready.release()
	}
}

// appendMessage appends the oldest whole message to dst.
func (q *recvQueue) appendMessage(dst []byte) ([]byte, bool) {
	if q.messages == 0 {
		return dst, false
	}
	q.messages--
	for left := uint64(1); left > 0; {
		r := q.ready.next()
		dst = append(dst, r.Data...)
		switch r.Kind {
		case wire.RecordWhole:
			left = 0
		case wire.RecordFirst:
			left = r.Total - uint64(len(r.Data))
		case wire.RecordContinue:
			left -= uint64(len(r.Data))
		}
	}
	q.trim()
	return dst, true
}

// messageLen is the length of the oldest whole message.
func (q *recvQueue) messageLen() (int, bool) {
	if q.messages == 0 {
		return 0, false
	}
	r := q.ready.peek()
	if r.Kind == wire.RecordFirst {
		return int(r.Total), true
	}
	return len(r.Data), true
}

// readStream copies stream bytes to p.
func (q *recvQueue) readStream(p []byte) int {
	n := 0
	for n < len(p) && q.streamBytes > 0 {
		c := q.ready.copyStream(p[n:])
		n += c
		q.streamBytes -= c
	}
	q.trim()
	return n
}

// dropReady gives the ready bytes back. The early symbols stay: the peer was
// told that they are held, and will not send them again.
func (q *recvQueue) dropReady() {
	q.ready.release()
	q.messages, q.streamBytes = 0, 0
}

// readyBytes is a queue of whole symbols in pooled chunks; a symbol never
// spans two chunks.
type readyBytes struct {
	chunks []*bufpool.Buffer // Data is what was written; cap is the room
	first  int               // index of the oldest chunk
	offset int               // bytes of it that were read
	rest   int               // stream bytes left of the record at offset, 0 = at a header
	len    int               // bytes not yet read
}

func (q *readyBytes) append(b []byte) {
	q.len += len(b)
	if n := len(q.chunks); n > q.first {
		if last := q.chunks[n-1]; cap(last.Data)-len(last.Data) >= len(b) {
			last.Data = append(last.Data, b...)
			return
		}
	}
	if q.first > 0 && len(q.chunks) == cap(q.chunks) {
		n := copy(q.chunks, q.chunks[q.first:])
		clear(q.chunks[n:])
		q.chunks, q.first = q.chunks[:n], 0
	}
	size := bufpool.Small
	if q.len > bufpool.Small {
		size = bufpool.Medium
	}
	buf := bufpool.Get(max(size, len(b)))
	buf.Data = append(buf.Data[:0], b...)
	q.chunks = append(q.chunks, buf)
}

// next reads one record. Only records that order has checked are there.
func (q *readyBytes) next() wire.MessageRecord {
	r, size := q.parse()
	q.consume(size)
	return r
}

// peek returns the record that next will return.
func (q *readyBytes) peek() wire.MessageRecord {
	r, _ := q.parse()
	return r
}

func (q *readyBytes) parse() (r wire.MessageRecord, size int) {
	before := q.front().Data[q.offset:]
	r, after, err := wire.NextMessageRecord(before)
	if err != nil {
		panic("BUG: unchecked record is ready: " + err.Error())
	}
	return r, len(before) - len(after)
}

// copyStream copies from the stream record at hand to p.
func (q *readyBytes) copyStream(p []byte) int {
	if q.rest == 0 {
		r, size := q.parse()
		q.consume(size - len(r.Data))
		q.rest = len(r.Data)
	}
	n := copy(p, q.front().Data[q.offset:][:q.rest])
	q.rest -= n
	q.consume(n)
	return n
}

// front returns the chunk of the next byte. Chunks that were read to their end
// are released here, not earlier: the record read last still lies in one.
func (q *readyBytes) front() *bufpool.Buffer {
	for {
		chunk := q.chunks[q.first]
		if q.offset < len(chunk.Data) {
			return chunk
		}
		chunk.Release()
		q.chunks[q.first] = nil
		q.first++
		q.offset = 0
	}
}

func (q *readyBytes) consume(n int) {
	q.offset += n
	q.len -= n
}

func (q *readyBytes) release() {
	for _, c := range q.chunks {
		if c != nil {
			c.Release()
		}
	}
	clear(q.chunks)
	*q = readyBytes{chunks: q.chunks[:0]}
}
