package udpio

// What a kernel message can carry: UDP_MAX_SEGMENTS of the kernels that first
// had UDP_SEGMENT, and the longest IPv4 datagram, which bounds the whole
// message before the cut.
const (
	maxSegments = 64
	maxGSOBytes = 65507
)

// How much one system call carries. A message of single datagrams takes a
// piece per datagram, so that pieces bound the datagrams of a batch that was
// put together from singles.
const (
	maxMessages = 64
	maxPieces   = 256
)

// cursor is a place between two datagrams of a list of trains. It never stands
// at the end of a train: that place is the start of the next.
type cursor struct {
	train int
	off   int // into Buf
}

// message is what one kernel message carries: one datagram, or several that
// the kernel cuts to seg bytes.
type message struct {
	from, to      cursor // the datagrams, to exclusive; from.train has the addresses
	seg           int    // 0 for a single datagram
	datagrams     int
	bytes         int
	piece, pieces int // first piece in the batch, and how many
}

// plan is a batch of messages for one system call.
type plan struct {
	msgs   []message
	pieces [][]byte
}

// next plans the datagrams from c up to end, as many as a batch carries, and
// returns where it stopped. Datagrams longer than maxSeg travel alone; 0 sends
// every datagram alone.
//
// The order of the datagrams never changes. A message takes whole segments of
// one size, over as many trains of the same addresses as follow one another,
// and ends with a shorter datagram if one comes; the kernel gathers the pieces,
// so that nothing is copied here.
func (p *plan) next(ts []Train, c, end cursor, maxSeg int) cursor {
	p.msgs = p.msgs[:0]
	p.pieces = p.pieces[:0]
	for c != end && len(p.msgs) < maxMessages && len(p.pieces) < maxPieces {
		m := message{from: c, piece: len(p.pieces)}
		c = p.gather(&m, ts, end, maxSeg)
		m.to = c
		m.pieces = len(p.pieces) - m.piece
		p.msgs = append(p.msgs, m)
	}
	return c
}

// gather fills the message that starts at m.from.
func (p *plan) gather(m *message, ts []Train, end cursor, maxSeg int) cursor {
	head := &ts[m.from.train]
	size := min(head.seg(), len(head.Buf)-m.from.off)
	if size == 0 || size > maxSeg {
		p.take(m, head, m.from.off, size)
		m.datagrams = 1
		return step(head, m.from, size)
	}
	c := m.from
	for c != end && len(p.pieces) < maxPieces {
		t := &ts[c.train]
		if t != head && !sameFlow(t, head) {
			break
		}
		room := min(maxSegments-m.datagrams, (maxGSOBytes-m.bytes)/size)
		if room <= 0 {
			break
		}
		limit := len(t.Buf)
		if c.train == end.train {
			limit = end.off
		}
		n, datagrams, last := fit(t.seg(), limit-c.off, size, room)
		if datagrams == 0 {
			break
		}
		p.take(m, t, c.off, n)
		m.datagrams += datagrams
		c = step(t, c, n)
		if last {
			break
		}
	}
	if m.datagrams > 1 {
		m.seg = size
	}
	return c
}

// fit tells how many bytes and datagrams of a train with segments of seg bytes
// and left bytes to go fit behind segments of size bytes, when there is room
// for that many. last means that the message ends with them: only the last
// segment of a message may be short.
func fit(seg, left, size, room int) (n, datagrams int, last bool) {
	switch first := min(seg, left); {
	case first == 0 || first > size:
		return 0, 0, true
	case first < size:
		return first, 1, true
	case seg != size: // a train of one datagram
		return first, 1, false
	}
	datagrams = left / size
	if datagrams >= room {
		return room * size, room, true
	}
	if left%size != 0 {
		return left, datagrams + 1, true
	}
	return left, datagrams, false
}

func (p *plan) take(m *message, t *Train, off, n int) {
	p.pieces = append(p.pieces, t.Buf[off:off+n])
	m.bytes += n
}

// step moves a cursor over n bytes of its train.
func step(t *Train, c cursor, n int) cursor {
	c.off += n
	if c.off >= len(t.Buf) {
		return cursor{train: c.train + 1}
	}
	return c
}

// sameFlow reports whether two trains can share a kernel message.
func sameFlow(a, b *Train) bool {
	return a.Addr == b.Addr && a.Local == b.Local && a.ECN == b.ECN
}
