package rudp

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/openarkstudio/arknet-go"
	"github.com/openarkstudio/arknet-go/internal/arq"
	"github.com/openarkstudio/arknet-go/internal/udpio"
)

// Conn is one session. It implements net.Conn for byte streams and has methods
// for messages; see the package comment. All methods may be called at the same
// time from any goroutine.
type Conn struct {
	ep     *endpoint
	remote netip.AddrPort
	local  netip.Addr // the address that the peer talks to, zero = any
	server bool
	key    peerKey

	// A server session is offered to Accept when it opens and accepted when it
	// left the backlog; both guarded by ep.mu.
	offered, accepted bool

	due dueSession // schedule.mu

	mu          sync.Mutex
	core        *arq.Conn
	touched     bool // in the read loop's batch; only the read loop uses it
	dirty       bool // in the flush loop's list
	unflushed   int  // bytes written since the last turn
	readers     int  // goroutines that wait to read
	trains      [flushTrains]udpio.Train
	completions completionQueue
	closing     bool // Close or CloseWithError was called

	readable chan struct{} // capacity 1, passed on by whoever leaves something
	writable chan struct{} // likewise
	opened   chan struct{} // closed when the handshake is complete
	failed   chan struct{} // closed when the session has ended for the application
	gone     chan struct{} // closed when nothing of it is left

	readDeadline  deadline
	writeDeadline deadline
}

func (ep *endpoint) newConn(remote netip.AddrPort, local netip.Addr) *Conn {
	c := &Conn{
		ep:       ep,
		remote:   remote,
		local:    local,
		readable: make(chan struct{}, 1),
		writable: make(chan struct{}, 1),
		opened:   make(chan struct{}),
		failed:   make(chan struct{}),
		gone:     make(chan struct{}),
	}
	c.due = dueSession{conn: c, index: -1}
	return c
}

func (c *Conn) tracer() func(arq.TraceEvent) {
	if c.ep.cfg.Trace == nil {
		return nil
	}
	return func(e arq.TraceEvent) { c.ep.cfg.Trace(c, c.ep.traceEvent(e)) }
}

// turn ends every visit of the application to the protocol core: it sends what
// is ready, passes events on, schedules the next deadline, and unlocks c.mu,
// which the caller holds. Completions are left to the endpoint's goroutines: the
// application may hold locks that they take.
func (c *Conn) turn(now arq.Time) { c.endVisit(now, false) }

// loopTurn is turn on a goroutine of the endpoint; it runs completions too.
func (c *Conn) loopTurn(now arq.Time) { c.endVisit(now, true) }

func (c *Conn) endVisit(now arq.Time, loop bool) {
	c.dirty, c.unflushed = false, 0
	c.flush(now)
	events := c.core.TakeEvents()
	if events&(arq.EventAcked|arq.EventFailed) != 0 {
		c.completions.collect(c.core)
	}
	run := c.completions.pending()
	if run && !loop {
		c.ep.markDirty(c)
	}
	if events&arq.EventOpened != 0 && c.server {
		c.ep.noteOffered(c)
	}
	if at, ok := c.core.NextTimeout(); ok {
		c.ep.schedule.set(c, at)
	}
	err := c.core.Err()
	c.mu.Unlock()

	if events&arq.EventReadable != 0 {
		signal(c.readable)
	}
	if events&arq.EventWritable != 0 {
		signal(c.writable)
	}
	if events&arq.EventOpened != 0 {
		close(c.opened)
		if c.server {
			c.ep.listener.offer(c)
		}
	}
	if events&arq.EventFailed != 0 {
		c.ep.log.Debug("rudp: session ended", "remote", c.remote, "error", err)
		close(c.failed)
	}
	if run && loop {
		c.runCompletions()
	}
	if events&arq.EventDone != 0 {
		c.ep.sessionDone(c)
		close(c.gone)
	}
}

// signal leaves a token that wakes one waiter.
func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// LocalAddr returns the local address of the session.
func (c *Conn) LocalAddr() net.Addr {
	addr := c.ep.sock.LocalAddr()
	if udp, ok := addr.(*net.UDPAddr); ok && c.local.IsValid() {
		return net.UDPAddrFromAddrPort(netip.AddrPortFrom(c.local, udp.AddrPort().Port()))
	}
	return addr
}

// RemoteAddr returns the address of the peer.
func (c *Conn) RemoteAddr() net.Addr { return net.UDPAddrFromAddrPort(c.remote) }

// SetDeadline implements net.Conn; it holds for messages too. Reads and writes
// that wait return os.ErrDeadlineExceeded; the session stays usable.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline implements net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error {
	if c.isClosed() {
		return c.opError("set", net.ErrClosed)
	}
	c.readDeadline.set(t)
	return nil
}

// SetWriteDeadline implements net.Conn.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	if c.isClosed() {
		return c.opError("set", net.ErrClosed)
	}
	c.writeDeadline.set(t)
	return nil
}

func (c *Conn) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closing
}

// Flush waits until the peer's transport has acknowledged everything that was
// accepted before the call. It returns the error of ctx or the write deadline,
// or the reason why the session ended first.
func (c *Conn) Flush(ctx context.Context) error {
	done := make(chan error, 1)
	c.mu.Lock()
	mark := c.core.Accepted()
	if _, open := c.core.Unacknowledged(); open == 0 && c.core.Acknowledged() >= mark {
		c.mu.Unlock()
		return nil
	}
	if err := c.core.Err(); err != nil {
		c.mu.Unlock()
		return c.opError("flush", publicError(err))
	}
	c.completions.addMark(mark, func(err error) { done <- err })
	c.turn(c.ep.now())
	select {
	case err := <-done:
		return c.opError("flush", err)
	case <-ctx.Done():
		return c.opError("flush", ctx.Err())
	case <-c.writeDeadline.wait():
		return c.opError("flush", os.ErrDeadlineExceeded)
	}
}

// CloseWrite ends this side's direction: the peer reads io.EOF behind all that
// was written before. Reading goes on.
func (c *Conn) CloseWrite() error {
	c.mu.Lock()
	if err := c.core.CloseWrite(); err != nil {
		c.mu.Unlock()
		return c.opError("close", publicError(err))
	}
	c.turn(c.ep.now())
	return nil
}

// Close ends the session. Data accepted before is still delivered: Close waits
// for that, at most Limits.Linger, and returns an *arknet.UnacknowledgedError
// when the peer is not known to hold all of it. Blocked calls of this side
// return net.ErrClosed at once; the peer reads what was delivered, then io.EOF.
// When delivery was cut short the peer gets an *arknet.CloseError of the
// transport in place of io.EOF. A second Close returns net.ErrClosed.
//
// For bulk data over a slow path call CloseWrite and Flush first, which wait as
// long as their context allows.
func (c *Conn) Close() error {
	c.mu.Lock()
	if c.closing {
		c.mu.Unlock()
		<-c.gone
		return c.opError("close", net.ErrClosed)
	}
	c.closing = true
	ended := c.core.Err()
	c.core.Discard()
	if c.ep.cfg.Limits.Linger < 0 {
		c.core.Abort(c.ep.now(), arq.CodeNone, "")
	} else {
		c.core.Close(c.ep.now())
	}
	c.turn(c.ep.now())
	c.wakeAll()
	// The protocol core ends the flush after Linger; a machine that stands still
	// shall not keep the caller longer.
	patience := time.NewTimer(max(c.ep.cfg.Limits.Linger, 0) + closePatience)
	defer patience.Stop()
	select {
	case <-c.failed:
	case <-patience.C:
	}
	c.mu.Lock()
	messages, bytes := c.core.Unacknowledged()
	err := c.core.Err()
	c.mu.Unlock()
	if bytes > 0 || messages > 0 {
		if ended == nil {
			ended = err
		}
		cause := publicError(ended)
		if ended == nil || errors.Is(ended, arq.ErrLinger) {
			cause = os.ErrDeadlineExceeded
		}
		return c.opError("close", &arknet.UnacknowledgedError{Messages: messages, Bytes: bytes, Cause: cause})
	}
	if ended == nil {
		// The peer should know of the end before the process may exit.
		select {
		case <-c.gone:
		case <-patience.C:
		}
	}
	c.release()
	return nil
}

// closePatience is how long beyond Linger Close waits for the end itself to be
// acknowledged.
const closePatience = time.Second

// CloseWithError ends the session at once: what is not acknowledged is given
// up, and the peer's calls return an *arknet.CloseError with the code (0 to
// 2^63-1) and the reason, of which 255 bytes travel. Code 0 is that of Close and
// reads as io.EOF; if it gives data up, the peer gets a CloseError of the
// transport instead, so that it never takes a part for the whole. A second
// close of any kind returns net.ErrClosed.
func (c *Conn) CloseWithError(code uint64, reason string) error {
	c.mu.Lock()
	if c.closing {
		c.mu.Unlock()
		return c.opError("close", net.ErrClosed)
	}
	c.closing = true
	c.core.Discard()
	c.core.Abort(c.ep.now(), code, reason)
	c.turn(c.ep.now())
	c.wakeAll()
	c.release()
	return nil
}

// wakeAll lets blocked calls see that the session was closed.
func (c *Conn) wakeAll() {
	signal(c.readable)
	signal(c.writable)
}

// release frees the timers of the deadlines and, of a dialled session that is
// gone, waits for its socket.
func (c *Conn) release() {
	c.readDeadline.stop()
	c.writeDeadline.stop()
	if c.server {
		return
	}
	select {
	case <-c.gone:
		<-c.ep.released
	default:
	}
}

// opError dresses an error as net does, unless callers test for it by value.
func (c *Conn) opError(op string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	return &net.OpError{Op: op, Net: "rudp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
}
