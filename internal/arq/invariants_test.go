package arq

import "fmt"

// checkConn says what is wrong with the state of a Conn, if anything: sums that
// disagree with what they sum up, or memory beyond a limit.
func checkConn(c *Conn) error {
	if err := checkSent(c); err != nil {
		return err
	}
	if err := checkSendQueue(&c.send); err != nil {
		return err
	}
	return checkReceived(c)
}

// checkSent: what was sent is acknowledged, lost or in flight.
func checkSent(c *Conn) error {
	inFlight, acked := 0, 0
	for pn := c.sent.base; pn < c.sent.next; pn++ {
		p := c.sent.at(pn)
		switch {
		case p.acked:
			acked++
			if !c.sent.acked.contains(uint64(pn)) {
				return fmt.Errorf("packet %d is acked and not in the set", pn)
			}
		case !p.lost:
			inFlight += int(p.size)
		}
	}
	for _, r := range c.sent.acked.r {
		acked -= int(r.Hi - r.Lo + 1)
	}
	st := &c.stats
	switch {
	case inFlight != c.inFlight && c.state != StateDone:
		return fmt.Errorf("%d bytes in flight, the log says %d", c.inFlight, inFlight)
	case acked != 0:
		return fmt.Errorf("%d packets more are acked than in the set", acked)
	case c.sent.len() > c.sent.limit+closeTries+probePackets:
		return fmt.Errorf("%d packets are watched", c.sent.len())
	case st.SpuriousLosses > st.Lost:
		return fmt.Errorf("%d losses were wrong of %d", st.SpuriousLosses, st.Lost)
	case st.Lost > uint64(c.sent.next):
		return fmt.Errorf("%d packets lost of %d", st.Lost, c.sent.next)
	}
	return nil
}

func checkSendQueue(q *sendQueue) error {
	inFlight, unknown, queuedBytes, queued, missing := 0, 0, 0, 0, 0
	for id := q.base; id < q.next; id++ {
		s := q.at(id)
		if id >= q.unsent {
			queuedBytes += s.bytes
			queued += s.ended
			continue
		}
		if s.live < 0 {
			return fmt.Errorf("symbol %d has %d copies on their way", id, s.live)
		}
		if s.missing {
			missing++
		}
		if !s.known {
			unknown++
			inFlight += len(s.buf.Data)
			if s.live == 0 && !s.missing {
				return fmt.Errorf("symbol %d is unknown, has no copy on its way and is not to be sent again", id)
			}
		}
	}
	switch {
	case inFlight != q.inFlight || unknown != q.unknownCount:
		return fmt.Errorf("%d bytes of %d symbols unknown, the queue says %d of %d", inFlight, unknown, q.inFlight, q.unknownCount)
	case queuedBytes != q.queuedBytes || queued != q.queued:
		return fmt.Errorf("%d bytes of %d messages queued, the queue says %d of %d", queuedBytes, queued, q.queuedBytes, q.queued)
	case missing != len(q.missingIDs):
		return fmt.Errorf("%d symbols missing, %d listed", missing, len(q.missingIDs))
	case q.acked > q.messages:
		return fmt.Errorf("%d messages acknowledged of %d", q.acked, q.messages)
	}
	return nil
}

// checkReceived: memory stays within the windows, whatever the peer sends.
func checkReceived(c *Conn) error {
	q := &c.recv
	held, bytes := 0, 0
	for i, b := range q.early {
		if b != nil {
			held++
			bytes += len(b.Data)
			if q.slot(q.next) == &q.early[i] && c.state < StateClosing {
				return fmt.Errorf("symbol %d is held and still counts as missing", q.next)
			}
		}
	}
	ready := 0
	for _, chunk := range q.ready.chunks {
		if chunk != nil {
			ready += len(chunk.Data)
		}
	}
	switch {
	case held != q.held || bytes != q.earlyBytes:
		return fmt.Errorf("%d bytes of %d early symbols, the queue says %d of %d", bytes, held, q.earlyBytes, q.held)
	case len(q.early) > 2*max(q.limit, 8):
		return fmt.Errorf("%d slots for early symbols with a limit of %d", len(q.early), q.limit)
	case bytes > c.cfg.RecvWindow:
		return fmt.Errorf("%d early bytes, the window is %d", bytes, c.cfg.RecvWindow)
	case ready-q.ready.offset != q.ready.len:
		return fmt.Errorf("%d ready bytes in chunks, the queue says %d", ready-q.ready.offset, q.ready.len)
	case q.ready.len > c.cfg.RecvWindow+2*c.cfg.MaxMessage+MaxMTU:
		return fmt.Errorf("%d bytes are ready, the window is %d", q.ready.len, c.cfg.RecvWindow)
	case len(c.acks.received.r) > maxReceivedRanges:
		return fmt.Errorf("%d ranges received", len(c.acks.received.r))
	case q.streamBytes < 0 || q.messages < 0 || q.ready.len < 0:
		return fmt.Errorf("%d messages, %d stream bytes, %d bytes ready", q.messages, q.streamBytes, q.ready.len)
	}
	return nil
}

// checkPair: nobody believes to be further than the other side is.
func checkPair(from, to *Conn) error {
	if from == nil || to == nil || from.State() >= StateClosing || to.State() >= StateClosing {
		return nil
	}
	switch {
	case from.send.base > to.recv.next:
		return fmt.Errorf("symbols below %d are acknowledged, %d is missing", from.send.base, to.recv.next)
	case from.send.acked > 0 && to.recv.received < from.send.acked && from.send.mode == modeMessages:
		return fmt.Errorf("%d messages acknowledged, %d received", from.send.acked, to.recv.received)
	case to.recv.top > from.send.unsent:
		return fmt.Errorf("symbol %d was received, %d were sent", to.recv.top-1, from.send.unsent)
	case to.acks.any && to.acks.largest >= from.sent.next:
		return fmt.Errorf("packet %d was received, %d were sent", to.acks.largest, from.sent.next)
	case from.send.sentBytes > from.peer.RecvWindow:
		return fmt.Errorf("%d bytes sent, the window is %d", from.send.sentBytes, from.peer.RecvWindow)
	}
	return nil
}
