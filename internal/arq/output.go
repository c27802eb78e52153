package arq

import (
	"github.com/openarkstudio/arknet-go/internal/wire"
)

// AppendDatagrams appends a train of datagrams to buf: all of segSize bytes,
// only the last may be shorter, at most limit of them. It returns segSize 0
// when there is nothing to send now. The driver calls it until then, after
// every input, timeout, write and read.
func (c *Conn) AppendDatagrams(now Time, buf []byte, limit int) (out []byte, segSize int) {
	limit = min(max(limit, 1), maxTrain)
	c.timers.now = now
	c.ackCache = c.ackCache[:0]
	for n := 0; n < limit; n++ {
		before := len(buf)
		var ok bool
		if buf, ok = c.appendNext(now, buf, segSize); !ok {
			break
		}
		size := len(buf) - before
		if segSize == 0 {
			segSize = size
		}
		if size < segSize {
			break
		}
	}
	c.noteBacklog(now)
	return buf, segSize
}

// appendNext appends the most urgent datagram, unless it is longer than limit
// (0 = no limit), in which case it has to begin the next train.
func (c *Conn) appendNext(now Time, b []byte, limit int) ([]byte, bool) {
	switch c.state {
	case StateDone:
		return b, false
	case StateHandshake:
		if limit > 0 {
			return b, false
		}
		return c.appendHandshake(now, b)
	case StateClosing:
		if c.closing.refusal {
			return c.appendRefusal(now, b)
		}
	case StateOpen, StateFlushing:
		switch out, r := c.appendSymbol(now, b, limit); r {
		case appended:
			return out, true
		case nextTrain:
			return b, false
		}
	}
	if c.controlDue() && limit == 0 {
		return c.appendControl(now, b), true
	}
	if c.ackDue(now) && limit == 0 {
		return c.appendAckOnly(now, b), true
	}
	return b, false
}

// outcome of the attempt to append a datagram of one sort.
type outcome uint8

const (
	nothing   outcome = iota // none to send, or not now
	appended                 // one was appended
	nextTrain                // one is ready that does not fit this train
)

// appendSymbol appends a datagram with a source symbol: a probe first, then
// what was lost, then new data, as far as the windows and the pacer allow.
func (c *Conn) appendSymbol(now Time, b []byte, limit int) ([]byte, outcome) {
	if c.sent.full() {
		return b, nothing
	}
	var id wire.SymbolID
	again := true
	probe := false
	q := &c.send
	switch {
	case c.probes > 0 && q.unknownCount > 0:
		id, probe = c.probeSymbol(), true
	case q.granted > 0:
		id = q.nextGranted()
	case c.repairs.owed > 0:
		if out, r := c.appendRepair(now, b, limit); r != nothing || c.repairs.owed > 0 {
			return out, r
		}
		return c.appendSymbol(now, b, limit)
	case q.unsent < q.next:
		id, again = q.unsent, false
		if len(q.at(id).buf.Data) > c.sendRoom() {
			return b, nothing
		}
	default:
		return b, nothing
	}
	ack := c.ackBlock(now, dataAckRanges)
	body := q.at(id).buf.Data
	size := wire.ShortHeaderLen + wire.SymbolIDLen + len(body) + wire.ChecksumLen
	if size+len(ack) > c.cfg.MTU {
		ack = c.shorterAck(now, c.cfg.MTU-size)
	}
	size += len(ack)
	control := c.controlDue()
	if limit > 0 && (size > limit || control) {
		return b, nextTrain
	}
	if control && size+maxRidingControl > c.cfg.MTU {
		return c.appendControl(now, b), appended
	}
	if !probe && !c.maySend(now, size) {
		return b, nothing
	}
	switch {
	case probe:
		c.probes--
		c.probed++
		q.markNotMissing(id)
	case again:
		q.markNotMissing(id)
	default:
		q.takeUnsent()
		c.writableAgain()
		c.sourceSent(now, id, body)
	}
	start := len(b)
	b = c.appendShortHeader(b, wire.Short{Ack: len(ack) > 0, Control: control, Payload: wire.PayloadData})
	b = append(b, ack...)
	var carries carriedRecords
	if control {
		b, carries = c.appendRecords(b)
		b = wire.AppendEnd(b)
	}
	b = wire.AppendSymbolID(b, id)
	b = append(b, body...)
	b = wire.AppendChecksum(b, start, c.key)
	q.at(id).live++
	if again {
		c.stats.Retransmitted++
	} else {
		c.stats.DataSent++
	}
	c.packetSent(now, b[start:], sentPacket{payload: wire.PayloadData, symbol: id, carries: carries, again: again})
	c.ackTold(now, len(ack) > 0)
	return b, appended
}

// maxRidingControl is the room that riding control records may need.
const maxRidingControl = 1 + 9 + 1 + 1

// probeSymbol picks the oldest symbol that the peer is not known to hold; a
// second probe of the same timeout takes the next one.
func (c *Conn) probeSymbol() wire.SymbolID {
	q := &c.send
	skip := c.probed
	var found wire.SymbolID
	for id := q.base; id < q.unsent; id++ {
		if q.at(id).known {
			continue
		}
		found = id
		if skip == 0 {
			break
		}
		skip--
	}
	return found
}

// appendControl appends a datagram of control records alone.
func (c *Conn) appendControl(now Time, b []byte) []byte {
	start := len(b)
	ack := c.ackBlock(now, dataAckRanges)
	b = c.appendShortHeader(b, wire.Short{Ack: len(ack) > 0, Control: true})
	b = append(b, ack...)
	b, carries := c.appendRecords(b)
	b = wire.AppendChecksum(b, start, c.key)
	c.packetSent(now, b[start:], sentPacket{carries: carries})
	c.ackTold(now, len(ack) > 0)
	return b
}

// controlDue reports whether control records wait to be sent.
func (c *Conn) controlDue() bool {
	switch {
	case !c.established():
		return false
	case c.state == StateClosing:
		// closeTries bounds these, so they may exceed the log.
		return c.closing.due
	}
	return c.state <= StateFlushing && (c.flow.due || c.pingDue) && !c.sent.full()
}

func (c *Conn) appendRecords(b []byte) ([]byte, carriedRecords) {
	var carries carriedRecords
	if c.state == StateClosing {
		c.closing.due = false
		c.closing.tries++
		return wire.AppendClose(b, c.closing.transport, c.closing.code, c.closing.reason), carriesClose
	}
	if c.flow.due {
		c.flow.due = false
		c.flow.announced = c.flow.limit
		b = wire.AppendWindow(b, c.flow.announced)
		carries |= carriesWindow
	}
	if c.pingDue {
		c.pingDue = false
		b = wire.AppendPing(b)
		carries |= carriesPing
	}
	return b, carries
}

func (c *Conn) appendShortHeader(b []byte, h wire.Short) []byte {
	h.Dst = c.remoteID
	n := uint64(c.sent.next)
	if h.AckOnly() {
		n = c.ackNumber
		c.ackNumber++
	}
	h.Number = wire.Truncate24(n)
	return wire.AppendShort(b, h)
}

// packetSent logs an ack-eliciting datagram.
func (c *Conn) packetSent(now Time, b []byte, p sentPacket) {
	pn, slot := c.sent.push()
	q, ok := wire.QuoteOf(b)
	if !ok {
		panic("BUG: sent a datagram without a short header")
	}
	p.sent, p.size, p.checksum = now, int32(len(b)), q.Checksum
	*slot = p
	if c.awaiting <= c.lastHeard {
		c.awaiting = now
	}
	c.inFlight += len(b)
	c.lastSent = now
	if p.carries&carriesClose != 0 {
		wait := max(c.rtt.pto(now), closeFirstRetry) << min(c.closing.tries-1, closeTries)
		c.closing.retryAt = now.add(min(wait, closeMaxRetry))
	}
	c.cc.OnSent(now, len(b), c.inFlight)
	c.spend(len(b))
	c.count(now, b, TraceEvent{Packet: pn, Symbol: p.symbol, Payload: p.payload, Again: p.again})
}

func (c *Conn) count(now Time, b []byte, e TraceEvent) {
	c.stats.DatagramsSent++
	c.stats.BytesSent += uint64(len(b))
	e.Kind, e.Time, e.Size = TraceSent, now, len(b)
	c.trace(e)
}

// windowOpen asks the congestion window.
func (c *Conn) windowOpen(size int) bool { return c.inFlight+size <= c.cc.Window() }

// maySend asks the congestion window, the pacer and the rate limit, and arms
// the pacing timer when time alone is missing.
func (c *Conn) maySend(now Time, size int) bool {
	window := c.cc.Window()
	// A datagram longer than the whole window leaves when nothing else is on
	// its way.
	if c.inFlight > 0 && c.inFlight+size > window && !c.belowMinRate(now, size) {
		return false
	}
	at := now
	if c.cc.Paced() && c.rtt.known() {
		rate, burst := pacing(window, c.rtt.smoothed, c.isBulk(now), c.cc.Smooth())
		c.pacer.refill(now, rate, max(burst, int64(c.cfg.MTU)))
		at = max(at, c.pacer.until(now, size, rate))
	}
	if c.cfg.MaxRate > 0 {
		rate := int64(c.cfg.MaxRate)
		c.rateLimit.refill(now, rate, max(pacerRateBurst, int64(c.cfg.MTU)))
		at = max(at, c.rateLimit.until(now, size, rate))
	}
	if at > now {
		c.timers.pacing = at
		return false
	}
	return true
}

// isBulk reports whether new data has waited for the window without a pause
// for a round trip: then the flow is limited by the path, not by its
// application.
func (c *Conn) isBulk(now Time) bool {
	return c.backlog != 0 && now.sub(c.backlog) > c.rtt.smoothed
}

// noteBacklog is called once per output turn, after what could be sent was.
func (c *Conn) noteBacklog(now Time) {
	switch {
	case c.send.unsent == c.send.next:
		c.backlog = 0
	case c.backlog == 0:
		c.backlog = now
	}
}

// belowMinRate lets packets leave against the controller's word as long as
// they keep within the configured minimum rate.
func (c *Conn) belowMinRate(now Time, size int) bool {
	if c.cfg.MinRate <= 0 {
		return false
	}
	rate := int64(c.cfg.MinRate)
	c.minRate.refill(now, rate, max(2*packetSize, int64(c.cfg.MTU)))
	at := c.minRate.until(now, size, rate)
	if at > now {
		c.timers.pacing = at
		return false
	}
	return true
}

// spend takes the bytes of a sent packet off all buckets.
func (c *Conn) spend(size int) {
	c.pacer.spend(size)
	c.rateLimit.spend(size)
	c.minRate.spend(size)
}

// ackBlock returns the encoded ack for a datagram with other content, empty
// when the peer knows all of it. It is made once per train.
func (c *Conn) ackBlock(now Time, limit int) []byte {
	a := &c.acks
	if !a.any {
		return nil
	}
	if a.deadline == never && now.sub(a.largestAt) > 2*max(c.rtt.smoothed, ackUrgentDelay) {
		return nil
	}
	if len(c.ackCache) == 0 {
		a.age(now, c.rtt.smoothed)
		a.truncated = !a.fill(now, c.recv.next, limit, &c.ackOut)
		c.fillRestored(limit)
		c.ackCache = wire.AppendAck(c.ackCache, &c.ackOut, len(c.ackOut.Ranges), len(c.ackOut.Symbols))
	}
	return c.ackCache
}

// shorterAck encodes as many ranges as fit, none at all if the first does not.
func (c *Conn) shorterAck(now Time, room int) []byte {
	n := len(c.ackOut.Ranges)
	symbols := min(len(c.ackOut.Symbols), 1) // the lowest one matters most
	for n > 0 && wire.AckLen(&c.ackOut, n, symbols) > room {
		n--
	}
	c.acks.truncated = true
	if n == 0 {
		return nil
	}
	c.ackCache = wire.AppendAck(c.ackCache[:0], &c.ackOut, n, symbols)
	return c.ackCache
}

func (c *Conn) ackTold(now Time, told bool) {
	if told {
		c.acks.told(now, !c.acks.truncated)
	}
}

// ackDue reports whether an ack has to leave by itself: its time has come, or
// data datagrams could not carry all ranges for a while.
func (c *Conn) ackDue(now Time) bool {
	return c.established() && c.state != StateHandshake && c.acks.due() <= now
}

func (c *Conn) appendAckOnly(now Time, b []byte) []byte {
	start := len(b)
	a := &c.acks
	a.age(now, c.rtt.smoothed)
	all := a.fill(now, c.recv.next, wire.MaxAckRanges, &c.ackOut)
	c.fillRestored(wire.MaxAckRanges)
	n := len(c.ackOut.Ranges)
	room := c.cfg.MTU - wire.ShortHeaderLen - wire.ChecksumLen
	symbols := len(c.ackOut.Symbols)
	for n > 1 && wire.AckLen(&c.ackOut, n, symbols) > room {
		n--
	}
	b = c.appendShortHeader(b, wire.Short{Ack: true})
	number := c.ackNumber - 1
	b = wire.AppendAck(b, &c.ackOut, n, symbols)
	b = wire.AppendChecksum(b, start, c.key)
	a.truncated = false
	a.told(now, all || n > dataAckRanges)
	c.stats.AcksSent++
	c.count(now, b[start:], TraceEvent{Packet: wire.PacketNumber(number), AckOnly: true})
	return b
}
