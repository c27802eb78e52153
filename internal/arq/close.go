package arq

import (
	"github.com/openarkstudio/arknet-go/internal/wire"
)

// closeState is the end of a session as this side tells it.
type closeState struct {
	code      uint64
	reason    string
	transport bool
	due       bool // a CLOSE has to leave
	refusal   bool // as a handshake datagram: the client has no key yet
	acked     bool
	tries     int
	retryAt   Time
	until     Time // end of the flush, or of draining
}

// Close ends the session gracefully: what was accepted is delivered first, for
// at most Config.Linger. Nothing can be written any more.
func (c *Conn) Close(now Time) {
	if c.state >= StateFlushing {
		return
	}
	if c.state == StateHandshake {
		c.Abort(now, CodeNone, "")
		return
	}
	c.setState(now, StateFlushing)
	c.closing.until = now.add(c.cfg.Linger)
	c.afterAck(now)
}

// Abort ends the session at once: what is not yet acknowledged is given up,
// and the peer is told code and reason.
func (c *Conn) Abort(now Time, code uint64, reason string) {
	c.abort(now, &CloseError{Code: code, Reason: reason})
}

func (c *Conn) abort(now Time, err *CloseError) {
	if c.state >= StateClosing {
		return
	}
	c.fail(err)
	if c.state == StateHandshake && (c.client || !c.handshake.heardAny) {
		c.setState(now, StateDone)
		return
	}
	c.closing.refusal = c.state == StateHandshake
	if !err.Transport && err.Code == CodeNone && !c.Flushed() {
		// Code 0 would read as the end of all that was sent.
		c.sendClose(now, true, CodeUnflushed, unflushedReason)
		return
	}
	c.sendClose(now, err.Transport, err.Code, err.Reason)
}

// unflushedReason tells the peer that data is missing.
const unflushedReason = "closed with data unacknowledged"

// end ends the session without a word to the peer, who is gone, silent or
// does not know us.
func (c *Conn) end(now Time, err error) {
	c.fail(err)
	c.setState(now, StateDone)
}

func (c *Conn) sendClose(now Time, transport bool, code uint64, reason string) {
	c.setState(now, StateClosing)
	c.closing.code, c.closing.reason, c.closing.transport = code, reason, transport
	c.closing.due = true
	c.closing.retryAt = never
	c.giveUp()
}

// afterAck moves a graceful close on once all is acknowledged.
func (c *Conn) afterAck(now Time) {
	if c.state == StateFlushing && c.Flushed() {
		c.fail(ErrClosed)
		c.sendClose(now, false, CodeNone, "")
	}
	if c.state == StateClosing && c.closing.acked {
		c.setState(now, StateDone)
	}
}

// peerClosed takes the peer's CLOSE. What is ready can still be read.
func (c *Conn) peerClosed(now Time, r wire.Record) {
	if c.state >= StateDraining {
		return
	}
	unflushed := !c.Flushed()
	c.fail(&CloseError{Code: r.Value, Reason: string(r.Data), Remote: true, Transport: r.Transport})
	c.events |= EventReadable
	if unflushed {
		c.events |= EventWritable
	}
	if c.state == StateHandshake {
		c.setState(now, StateDone)
		return
	}
	c.giveUp()
	c.setState(now, StateDraining)
	c.closing.due = false
	c.closing.until = now.add(3 * c.rtt.pto(now))
}

// closeTimeout acts on the deadlines of a closing session.
func (c *Conn) closeTimeout(now Time) {
	switch c.state {
	case StateFlushing:
		if now >= c.closing.until {
			c.fail(ErrLinger)
			c.sendClose(now, true, CodeUnflushed, unflushedReason)
		}
	case StateClosing:
		if now >= c.closing.retryAt {
			if c.closing.tries >= closeTries {
				c.setState(now, StateDone)
				return
			}
			c.closing.due = true
		}
	case StateDraining:
		if now >= c.closing.until {
			c.setState(now, StateDone)
		}
	}
}

// handleReset takes the word of a peer that it does not know the session. It
// is believed when it quotes a datagram that we sent of late.
func (c *Conn) handleReset(now Time, h wire.Long, rest, b []byte) {
	q, err := wire.ParseReset(rest)
	if err != nil || h.Src != c.remoteID || !c.established() || !c.quotesUs(q) {
		c.drop(now, &c.stats.Dropped.BadReset, b)
		return
	}
	if c.state >= StateClosing {
		c.setState(now, StateDone)
		return
	}
	c.end(now, ErrReset)
}

func (c *Conn) quotesUs(q wire.Quote) bool {
	pn := wire.PacketNumber(wire.Expand24(q.Number, uint64(c.sent.next)))
	return pn >= c.sent.base && pn < c.sent.next && c.sent.at(pn).checksum == q.Checksum
}

// Vanish ends the session without a word to the peer: the way to it is closed.
func (c *Conn) Vanish(now Time) { c.end(now, ErrClosed) }

// Refuse ends a session that the application does not take.
func (c *Conn) Refuse(now Time) {
	c.abort(now, &CloseError{Code: CodeRefused, Reason: "refused", Transport: true})
}
