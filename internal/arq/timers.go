package arq

import "github.com/openarkstudio/arknet-go/internal/wire"

// timer names one reason to wake up. A Conn has one deadline: the earliest.
type timer uint8

const (
	timerAck timer = iota
	timerLoss
	timerProbe
	timerPacing
	timerRepair
	timerHandshake
	timerClose
	timerKeepAlive
	timerDeadPeer
	timerIdle
	timerCount
)

// timers is the table of deadlines as of the last NextTimeout.
type timers struct {
	at      [timerCount]Time
	pacing  Time // set by the output path when a packet has to wait
	pending Time // the deadline given to the driver
	now     Time // of the latest call
}

// NextTimeout returns when HandleTimeout has to be called, if nothing else
// happens before. The deadline may lie in the past.
func (c *Conn) NextTimeout() (at Time, ok bool) {
	t := &c.timers
	for i := range t.at {
		t.at[i] = never
	}
	if c.state != StateDone {
		c.setDeadlines(t)
	}
	at = never
	for _, d := range t.at {
		at = min(at, d)
	}
	// A deadline that had passed when it was asked for makes nobody late.
	t.pending = max(at, t.now)
	return at, at != never
}

func (c *Conn) setDeadlines(t *timers) {
	t.at[timerAck] = c.acks.due()
	t.at[timerPacing] = t.pacing
	switch c.state {
	case StateHandshake:
		t.at[timerHandshake] = min(c.handshake.retryAt, c.handshake.startedAt.add(c.cfg.HandshakeTimeout))
		return
	case StateFlushing:
		t.at[timerClose] = c.closing.until
	case StateClosing:
		t.at[timerClose] = c.closing.retryAt
		return
	case StateDraining:
		t.at[timerClose] = c.closing.until
		return
	}
	t.at[timerLoss] = c.lossDeadline()
	t.at[timerProbe] = c.probeDeadline()
	t.at[timerRepair] = c.repairDeadline()
	t.at[timerKeepAlive] = c.keepAliveDeadline()
	t.at[timerDeadPeer] = c.deadPeerDeadline()
	if c.cfg.IdleTimeout > 0 && c.state == StateOpen {
		t.at[timerIdle] = c.lastMessage.add(c.cfg.IdleTimeout)
	}
}

// HandleTimeout acts on every deadline that has passed.
func (c *Conn) HandleTimeout(now Time) {
	if c.state == StateDone {
		return
	}
	t := &c.timers
	t.now = now
	if t.pending <= now {
		late := now.sub(t.pending)
		c.loss.observeLateness(late, &c.rtt)
		if late > oversleep {
			// The process stood still. What the peer sent meanwhile may wait in
			// the socket: it gets another chance.
			c.lastHeard = max(c.lastHeard, now.add(-c.cfg.DeadPeerTimeout/2))
			c.awaiting = max(c.awaiting, c.lastHeard)
		}
	}
	if t.pacing <= now {
		t.pacing = never
	}
	switch c.state {
	case StateHandshake:
		c.handshakeTimeout(now)
		return
	case StateFlushing, StateClosing, StateDraining:
		c.closeTimeout(now)
	}
	if c.state > StateFlushing {
		return
	}
	c.detectLosses(now)
	c.recoverLosses(now, 0)
	c.repairTimeout(now)
	if now >= c.probeDeadline() {
		c.probeTimeout(now)
	}
	switch {
	case now >= c.deadPeerDeadline():
		c.end(now, ErrPeerGone)
	case c.cfg.IdleTimeout > 0 && c.state == StateOpen && now.sub(c.lastMessage) >= c.cfg.IdleTimeout:
		c.fail(ErrIdleTimeout)
		c.sendClose(now, true, CodeIdle, "idle")
	case now >= c.keepAliveDeadline():
		c.pingDue, c.lastProbe = true, now
		c.trimIdle(now)
	}
}

// trimIdle gives up the room of a busier time when a keepalive leaves or comes.
// It is not done whenever queues run empty, which those of a request and
// response session do all the time.
func (c *Conn) trimIdle(now Time) {
	if now.sub(c.lastMessage) < idleAfter {
		return
	}
	if c.send.len() == 0 && len(c.send.ring) > keptSlots {
		c.send.ring = nil
	}
	if c.sent.len() == 0 && len(c.sent.ring) > keptSlots {
		c.sent.ring = nil
	}
	if q := &c.recv; q.held == 0 && len(q.early) > keptSlots {
		q.early = nil
	}
	if q := &c.recv.ready; q.len == 0 && cap(q.chunks) > keptSlots {
		q.chunks = nil
	}
}

// keepAliveDeadline is when a PING leaves. Whatever the interval, the peer gets
// half the dead-peer time to answer.
func (c *Conn) keepAliveDeadline() Time {
	d := c.cfg.KeepAlive
	if d <= 0 {
		return never
	}
	if c.cfg.DeadPeerTimeout > 0 {
		d = min(d, c.cfg.DeadPeerTimeout/2)
	}
	return max(c.lastHeard, c.lastSent, c.lastProbe).add(d)
}

// deadPeerDeadline is when the peer counts as gone. With keepalive both sides
// hear each other, and silence alone tells; without it, only an unanswered
// packet does.
func (c *Conn) deadPeerDeadline() Time {
	switch {
	case c.cfg.DeadPeerTimeout <= 0:
		return never
	case c.cfg.KeepAlive > 0:
		return c.lastHeard.add(c.cfg.DeadPeerTimeout)
	case c.awaiting > c.lastHeard && (c.inFlight > 0 || c.send.unknownCount > 0):
		return c.awaiting.add(c.cfg.DeadPeerTimeout)
	}
	return never
}

// probeDeadline is when a probe leaves: one probe timeout after the last
// ack-eliciting packet while anything is unacknowledged.
func (c *Conn) probeDeadline() Time {
	if c.inFlight == 0 && c.send.unknownCount == 0 {
		return never
	}
	d := c.rtt.pto(c.lastSent) + c.loss.lateness
	limit := max(maxPTO, d)
	for range min(c.ptoCount, ptoBackoffMax) {
		d += d / 2
	}
	return max(c.lastSent, c.lastProbe).add(min(d, limit))
}

// probeTimeout sends probes: the oldest symbols that the peer is not known to
// hold (RFC 9002, section 6.2.4, with the data that helps most).
func (c *Conn) probeTimeout(now Time) {
	c.ptoCount++
	c.lastProbe = now
	c.stats.Probes++
	c.trace(TraceEvent{Kind: TraceProbe, Time: now})
	if c.sent.full() {
		c.giveUpOldest(now)
	}
	if c.send.unknownCount > 0 {
		c.probes = min(probePackets, c.send.unknownCount)
		c.probed = 0
		return
	}
	// Nothing to send again but control records.
	for pn := c.sent.base; pn < c.sent.next; pn++ {
		if p := c.sent.at(pn); !p.resolved() {
			c.packetLost(now, pn, p)
		}
	}
}

// giveUpOldest declares the oldest quarter of a full log lost, so that probes
// can leave: in a long outage nothing is acknowledged that could tell.
func (c *Conn) giveUpOldest(now Time) {
	end := c.sent.base + wire.PacketNumber(max(c.sent.len()/4, probePackets))
	for pn := c.sent.base; pn < min(end, c.sent.next); pn++ {
		if p := c.sent.at(pn); !p.resolved() {
			c.packetLost(now, pn, p)
		}
	}
	c.sent.forget(never)
}
