package arq

import (
	"errors"
	"time"

	"github.com/openarkstudio/arknet-go/internal/bufpool"
	"github.com/openarkstudio/arknet-go/internal/wire"
)

// HandleDatagram takes one datagram; b is borrowed until it returns. What is
// damaged, foreign or out of place is counted and dropped.
func (c *Conn) HandleDatagram(now Time, b []byte) {
	if c.state == StateDone {
		c.stats.Dropped.Stale++
		return
	}
	c.timers.now = now
	c.stats.DatagramsReceived++
	c.stats.BytesReceived += uint64(len(b))
	switch wire.Classify(b) {
	case wire.KindShort:
		c.handleShort(now, b)
	case wire.KindHandshake, wire.KindVersions, wire.KindReset:
		c.handleLong(now, b)
	default:
		c.drop(now, &c.stats.Dropped.Malformed, b)
	}
}

func (c *Conn) drop(now Time, counter *uint64, b []byte) {
	*counter++
	c.trace(TraceEvent{Kind: TraceDropped, Time: now, Size: len(b)})
}

func (c *Conn) handleShort(now Time, b []byte) {
	if c.key == 0 {
		c.drop(now, &c.stats.Dropped.Stale, b)
		return
	}
	body, ok := wire.VerifyChecksum(b, c.key)
	if !ok {
		c.drop(now, &c.stats.Dropped.Checksum, b)
		return
	}
	h, rest, err := wire.ParseShort(body)
	if err != nil || h.KeyPhase || h.Dst != c.cfg.LocalID {
		c.drop(now, &c.stats.Dropped.Malformed, b)
		return
	}
	var pn wire.PacketNumber
	if !h.AckOnly() {
		pn = c.acks.expand(h.Number)
		if c.acks.seen(pn) {
			// The peer may have missed the ack.
			c.acks.schedule(now, ackUrgentDelay)
			c.lastHeard = now
			c.drop(now, &c.stats.Dropped.Duplicate, b)
			return
		}
	}
	c.lastHeard = now
	if c.state == StateHandshake && !c.client {
		c.confirmHandshake(now)
	}
	if h.Ack {
		if rest, err = c.handleAckBlock(now, rest); err != nil {
			counter := &c.stats.Dropped.Malformed
			if errors.Is(err, errBadAck) {
				counter = &c.stats.Dropped.BadAck
			}
			c.drop(now, counter, b)
			return
		}
	}
	if h.Control {
		if rest, err = c.handleRecords(now, rest, h.Payload != wire.PayloadNone); err != nil {
			c.drop(now, &c.stats.Dropped.Malformed, b)
			return
		}
	}
	accepted := true
	var symbol wire.SymbolID
	switch h.Payload {
	case wire.PayloadData:
		symbol, accepted = c.handleData(now, rest, b)
	case wire.PayloadRepair:
		accepted = c.handleRepair(now, rest, b)
	default:
		if len(rest) > 0 {
			c.drop(now, &c.stats.Dropped.Malformed, b)
			return
		}
	}
	if !accepted {
		return
	}
	c.trace(TraceEvent{Kind: TraceReceived, Time: now, Packet: pn, Symbol: symbol,
		Payload: h.Payload, AckOnly: h.AckOnly(), Size: len(b)})
	if !h.AckOnly() {
		c.acks.arrived(now, pn, c.rtt.ackDelay())
	}
}

// handleData takes a source symbol. It reports whether the packet may be
// acknowledged: not when the symbol could not be kept.
func (c *Conn) handleData(now Time, b, whole []byte) (id wire.SymbolID, accepted bool) {
	truncated, payload, err := wire.ParseSymbolID(b)
	if err != nil {
		c.drop(now, &c.stats.Dropped.Malformed, whole)
		return 0, false
	}
	id = wire.SymbolID(wire.Expand24(truncated, uint64(c.recv.next)))
	if c.state >= StateClosing {
		// Nobody will read it, so the peer must not believe that it is held.
		c.drop(now, &c.stats.Dropped.Stale, whole)
		return id, false
	}
	if c.recv.contains(id) {
		c.stats.Dropped.OldSymbol++
		return id, true
	}
	if !c.acceptSymbol(now, id, payload, whole) {
		return id, false
	}
	c.feedDecoder(now, id, payload)
	return id, true
}

// acceptSymbol puts a symbol that is not held, received or restored, into the
// queue. It reports whether the queue took it.
func (c *Conn) acceptSymbol(now Time, id wire.SymbolID, payload, whole []byte) bool {
	held := c.recv.ordered + uint64(c.recv.earlyBytes) + uint64(len(payload))
	if id >= c.recv.next+wire.SymbolID(c.recv.limit) || held > c.flow.announced {
		c.drop(now, &c.stats.Dropped.Window, whole)
		return false
	}
	// What fills a gap is taken whatever the memory: it alone can free what
	// waits behind it.
	if !c.reserve(bufpool.Cap(len(payload))) && (id > c.recv.next || c.recv.held == 0) {
		c.drop(now, &c.stats.Dropped.Memory, whole)
		return false
	}
	readable, before := c.Readable(), c.recv.received
	if err := c.recv.accept(id, payload); err != nil {
		c.drop(now, &c.stats.Dropped.Malformed, whole)
		c.abort(now, &CloseError{Code: CodeProtocolError, Reason: err.Error(), Transport: true})
		return false
	}
	if c.recv.received != before || c.recv.mode == modeStream {
		c.lastMessage = now
	}
	c.flow.update(&c.recv)
	if !readable && c.Readable() || c.recv.fin {
		c.events |= EventReadable
	}
	return true
}

// handleRecords reads control records up to END, or to the end of the datagram
// when no payload follows.
func (c *Conn) handleRecords(now Time, b []byte, payload bool) (rest []byte, err error) {
	for len(b) > 0 {
		var r wire.Record
		if r, b, err = wire.NextRecord(b); err != nil {
			return nil, err
		}
		switch r.Type {
		case wire.RecordEnd:
			if !payload {
				return nil, wire.ErrReserved
			}
			return b, nil
		case wire.RecordWindow:
			c.peer.RecvWindow = max(c.peer.RecvWindow, r.Value)
		case wire.RecordPing:
			c.trimIdle(now)
		case wire.RecordClose:
			c.peerClosed(now, r)
		case wire.RecordCrypto, wire.RecordCryptoAck:
			return nil, wire.ErrReserved // only in handshake datagrams
		}
	}
	if payload {
		return nil, wire.ErrTruncated
	}
	return b, nil
}

var errBadAck = errors.New("ack of a number that was never sent")

// handleAckBlock reads the ack block at the start of b and acts on it.
func (c *Conn) handleAckBlock(now Time, b []byte) (rest []byte, err error) {
	if n := len(c.lastAck); n > 0 && len(b) >= n && string(b[:n]) == string(c.lastAck) {
		// An ack block ends itself, so a block that starts like the last one
		// is that one. It rides on each datagram of a train.
		return b[n:], nil
	}
	a := &c.ackIn
	if rest, err = wire.ParseAck(b, c.sent.next, c.send.unsent, a); err != nil {
		return nil, err
	}
	if a.Ranges[0].Hi >= uint64(c.sent.next) || a.Next > c.send.unsent {
		return nil, errBadAck
	}
	for _, r := range a.Symbols {
		if r.Hi >= uint64(c.send.unsent) {
			return nil, errBadAck
		}
	}
	c.lastAck = cloneBytes(c.lastAck, b[:len(b)-len(rest)])
	c.handleAck(now, a)
	return rest, nil
}

// handleAck updates what is known of the packets and symbols on their way.
func (c *Conn) handleAck(now Time, a *wire.Ack) {
	before := c.loss.largestAcked
	hadAcked := c.loss.anyAcked
	highest := wire.PacketNumber(a.Ranges[0].Hi)
	newBytes, newest, newestAt := 0, wire.PacketNumber(0), Time(0)
	lateBytes, lateDue := 0, now
	for i := len(a.Ranges) - 1; i >= 0; i-- {
		lo := max(a.Ranges[i].Lo, uint64(c.sent.base))
		hi := a.Ranges[i].Hi
		for lo <= hi {
			// Skip what was acknowledged before.
			if k := c.sent.acked.search(lo); k < len(c.sent.acked.r) && c.sent.acked.r[k].Lo <= lo {
				lo = c.sent.acked.r[k].Hi + 1
				continue
			}
			end := hi
			if k := c.sent.acked.search(lo); k < len(c.sent.acked.r) {
				end = min(end, c.sent.acked.r[k].Lo-1)
			}
			for pn := wire.PacketNumber(lo); pn <= wire.PacketNumber(end); pn++ {
				p := c.sent.at(pn)
				newBytes += int(p.size)
				if p.lost {
					lateBytes += int(p.size)
					lateDue = min(lateDue, p.overtaken)
				}
				newest, newestAt = pn, p.sent
				c.packetAcked(now, pn, p)
			}
			c.sent.acked.add(lo, end)
			lo = end + 1
		}
	}
	if !hadAcked || highest > before {
		from := before + 1
		if !hadAcked {
			from = 0
		}
		for pn := max(from, c.sent.base); pn < highest; pn++ {
			if p := c.sent.at(pn); !p.acked && p.overtaken == 0 {
				p.overtaken = now
			}
		}
		c.loss.largestAcked, c.loss.anyAcked = highest, true
	}
	var rtt time.Duration
	if newBytes > 0 {
		rtt = min(max(now.sub(newestAt), 1), maxRTT)
		if newest == highest {
			rtt = max(rtt-min(a.Delay, rtt/2), 1)
			if !hadAcked || highest > before {
				c.rtt.sample(now, rtt)
			}
		}
	}
	c.symbolsKnown(a)
	if newBytes > 0 {
		c.ptoCount, c.probes = 0, 0
		c.ackedBytes += uint64(newBytes)
		c.cc.OnAck(now, AckSample{
			Bytes: newBytes, Late: lateBytes, LateDue: lateDue, RTT: rtt, MinRTT: c.rtt.min, Smoothed: c.rtt.smoothed,
			InFlight: c.inFlight, Acked: c.ackedBytes, Reordering: c.loss.extents.value,
			Backlogged: c.send.unsent < c.send.next || len(c.send.missingIDs) > 0,
		})
		c.trace(TraceEvent{Kind: TraceCongestion, Time: now, Window: c.cc.Window(), InFlight: c.inFlight})
	}
	c.detectLosses(now)
	c.recoverLosses(now, int(a.Equations))
	c.forgetSent(now)
	c.afterAck(now)
}

// packetAcked takes the first ack of a packet.
func (c *Conn) packetAcked(now Time, pn wire.PacketNumber, p *sentPacket) {
	var extent time.Duration
	if p.overtaken != 0 {
		extent = now.sub(p.overtaken)
	}
	c.loss.observeExtent(extent, &c.rtt)
	if p.lost {
		c.stats.SpuriousLosses++
		c.trace(TraceEvent{Kind: TraceSpurious, Time: now, Packet: pn})
	} else {
		c.loss.missRate.observe(false)
		c.inFlight -= int(p.size)
		c.trace(TraceEvent{Kind: TraceAcked, Time: now, Packet: pn})
	}
	if p.payload == wire.PayloadData && p.symbol >= c.send.base {
		s := c.send.at(p.symbol)
		if !p.lost {
			s.live--
		}
		c.send.markKnown(p.symbol)
	}
	if p.carries&carriesClose != 0 {
		c.closing.acked = true
	}
	p.acked = true
}

// symbolsKnown takes what an ack says of symbols rather than packets.
func (c *Conn) symbolsKnown(a *wire.Ack) {
	for id := c.send.base; id < a.Next; id++ {
		c.send.markKnown(id)
	}
	for _, r := range a.Symbols {
		for id := wire.SymbolID(max(r.Lo, uint64(c.send.base))); id <= wire.SymbolID(r.Hi); id++ {
			c.send.markKnown(id)
		}
	}
	if c.send.advance() {
		c.events |= EventAcked
		c.repairs.advance(&c.send)
	}
}

// writableAgain tells an application that saw a full queue once half of it has
// left.
func (c *Conn) writableAgain() {
	if !c.blocked {
		return
	}
	limit := c.cfg.SendQueue
	if c.blockedEarly {
		limit = c.queueTarget()
	}
	if c.send.queued < max(c.cfg.SendQueued/2, 1) && c.send.queuedBytes < max(limit/2, 1) {
		c.blocked, c.blockedEarly = false, false
		c.events |= EventWritable
	}
}

// detectLosses declares packets lost whose tolerance is over.
func (c *Conn) detectLosses(now Time) {
	tolerance := c.loss.tolerance(&c.rtt)
	lost, due := 0, now
	l := &c.loss
	l.scan = max(l.scan, c.sent.base)
	for l.anyAcked && l.scan < l.largestAcked {
		p := c.sent.at(l.scan)
		if !p.resolved() {
			if now.sub(p.overtaken) < tolerance {
				break
			}
			lost += int(p.size)
			due = min(due, p.overtaken)
			c.packetLost(now, l.scan, p)
		}
		l.scan++
	}
	if lost > 0 {
		c.cc.OnLoss(now, due, lost)
	}
}

// lossDeadline is when the next packet counts as lost.
func (c *Conn) lossDeadline() Time {
	l := &c.loss
	l.scan = max(l.scan, c.sent.base)
	for l.anyAcked && l.scan < l.largestAcked {
		if p := c.sent.at(l.scan); !p.resolved() {
			return p.overtaken.add(l.tolerance(&c.rtt))
		}
		l.scan++
	}
	return never
}

func (c *Conn) packetLost(now Time, pn wire.PacketNumber, p *sentPacket) {
	p.lost = true
	c.stats.Lost++
	c.loss.missRate.observe(true)
	c.inFlight -= int(p.size)
	c.trace(TraceEvent{Kind: TraceLost, Time: now, Packet: pn})
	if p.payload == wire.PayloadData && p.symbol >= c.send.base {
		c.send.at(p.symbol).live--
		c.send.addMissing(p.symbol)
	}
	c.repeatRecords(p)
}

// repeatRecords schedules the control records of a lost packet again.
func (c *Conn) repeatRecords(p *sentPacket) {
	if p.carries&carriesWindow != 0 {
		c.flow.due = true
	}
	if p.carries&carriesPing != 0 {
		c.pingDue = true
	}
	if p.carries&carriesClose != 0 && !c.closing.acked {
		c.closing.due = true
	}
}

// forgetSent drops old packets from the log. Lost ones are kept for a while to
// notice a late ack.
func (c *Conn) forgetSent(now Time) {
	c.sent.forget(now.add(-(3*c.rtt.smoothed + 20*time.Millisecond)))
}
