package arq

import (
	"slices"

	"github.com/openarkstudio/arknet-go/internal/wire"
)

// State is where a session stands.
type State uint8

// States in the order of a session's life; none is entered twice.
const (
	StateHandshake State = iota // no keys yet, or the peer's address is unproven
	StateOpen
	StateFlushing // closed by the application, data still on its way
	StateClosing  // CLOSE is sent and not acknowledged
	StateDraining // closed by the peer: only its repeats are acknowledged
	StateDone     // nothing left to do; the Conn may be dropped
)

// Events tells a driver what changed; several may be set.
type Events uint8

const (
	// EventOpened: the handshake is complete and the peer's address proven.
	EventOpened Events = 1 << iota
	// EventReadable: a message, stream bytes or the end of the direction can be read.
	EventReadable
	// EventWritable: the send queue has room again after ErrQueueFull.
	EventWritable
	// EventAcked: Acknowledged moved, and MessagesAcked may have.
	EventAcked
	// EventFailed: the session has ended; Err tells why. Reading what is ready goes on.
	EventFailed
	// EventDone: the state is StateDone.
	EventDone
)

// Conn is one side of a session. See the package comment for its use.
type Conn struct {
	cfg    Config
	client bool
	state  State
	err    error // set once, when the session ends
	events Events
	stats  Stats

	remoteID wire.ConnID
	key      wire.ChecksumKey
	peer     wire.Params

	handshake handshake
	send      sendQueue
	recv      recvQueue
	repairs   repairSender
	restorer  restorer
	acks      ackState
	sent      sentLog
	loss      lossState
	rtt       rttState
	cc        Controller
	pacer     pacer
	rateLimit pacer
	minRate   pacer
	flow      flowState
	timers    timers
	memory    int // bytes reserved from cfg.Memory

	inFlight     int    // bytes of packets neither acked nor lost
	ackedBytes   uint64 // bytes acknowledged since the session began
	lastSent     Time   // last ack-eliciting packet
	lastHeard    Time   // last accepted datagram
	awaiting     Time   // first unanswered ack-eliciting packet since lastHeard
	backlog      Time   // since when new data waits to be sent without a pause, 0 = it does not
	lastMessage  Time   // last message written, or received
	ackNumber    uint64 // packet numbers of ack-only datagrams
	ptoCount     int
	abandoned    int  // bytes given up at the end of the session
	lastProbe    Time // last expiry of the probe or keepalive timer
	probes       int  // datagrams to send regardless of the window
	probed       int  // of them, sent
	pingDue      bool
	blocked      bool // the application saw ErrQueueFull
	blockedEarly bool // it was the target that was full, not the limit

	closing  closeState
	ackIn    wire.Ack // scratch, its slices are reused
	ackOut   wire.Ack
	lastAck  []byte // the ack block processed last, to skip repeats
	ackCache []byte // the ack block of this AppendDatagrams call
}

// NewClient starts a session; its first datagrams carry the handshake.
func NewClient(now Time, cfg Config) *Conn {
	c := newConn(now, cfg)
	c.client = true
	c.startHandshake(now)
	return c
}

// NewServer answers the client whose first datagram has the header h. The
// datagram itself goes to HandleDatagram next.
func NewServer(now Time, cfg Config, h wire.Long) *Conn {
	c := newConn(now, cfg)
	c.remoteID = h.Src
	c.startHandshake(now)
	return c
}

func newConn(now Time, cfg Config) *Conn {
	c := &Conn{
		cfg:  cfg,
		loss: newLossState(),
		rtt:  newRTTState(),
		cc:   cfg.Congestion,
	}
	if c.cc == nil {
		c.cc = NewCopa()
	}
	c.send.payload = maxPayload(cfg.MTU)
	c.send.stream = -1
	c.sent.limit = maxSentPackets
	c.recv.limit = cfg.RecvSymbols
	c.recv.maxMessage = cfg.MaxMessage
	c.flow.announced = uint64(cfg.RecvWindow)
	c.flow.window = cfg.RecvWindow
	c.lastHeard, c.lastMessage, c.lastSent = now, now, now
	c.acks.deadline = never
	c.timers.pacing = never
	c.repairs.flushAt = never
	c.closing.retryAt = never
	return c
}

// LocalID is the id by which the peer addresses this side.
func (c *Conn) LocalID() wire.ConnID { return c.cfg.LocalID }

// RemoteID is the id by which this side addresses the peer, zero while unknown.
func (c *Conn) RemoteID() wire.ConnID { return c.remoteID }

// State returns where the session stands.
func (c *Conn) State() State { return c.state }

// Err tells why the session ended: nil while it lives, io.EOF semantics are
// left to the driver. A graceful close by the peer is a *CloseError with
// Remote set and Code zero.
func (c *Conn) Err() error { return c.err }

// TakeEvents returns what changed since the last call, and clears it.
func (c *Conn) TakeEvents() Events {
	e := c.events
	c.events = 0
	return e
}

// MessagesAcked is how many messages the peer's transport holds, in the order
// they were accepted: a message is complete when it and all before it are held.
func (c *Conn) MessagesAcked() uint64 { return c.send.acked }

// Flushed reports whether all that was accepted is held by the peer.
func (c *Conn) Flushed() bool { return c.send.base == c.send.next }

// Accepted marks what was accepted so far. It is held by the peer once
// Acknowledged is not below the mark.
func (c *Conn) Accepted() uint64 { return uint64(c.send.next) }

// Acknowledged is the mark up to which all that was accepted is held by the peer.
func (c *Conn) Acknowledged() uint64 { return uint64(c.send.base) }

// Queued is what waits for its first transmission.
func (c *Conn) Queued() (bytes, messages int) { return c.send.queuedBytes, c.send.queued }

// PeerMaxMessage is the longest message that the peer accepts; before the
// handshake it is this side's own limit.
func (c *Conn) PeerMaxMessage() int {
	limit := c.cfg.MaxMessage
	if c.established() {
		limit = int(min(uint64(limit), c.peer.MaxMessage))
	}
	return limit
}

// established reports whether the session's key is known.
func (c *Conn) established() bool { return c.key != 0 }

// Send accepts one message; m is copied. It returns its sequence number: the
// message is acknowledged when MessagesAcked reaches it.
func (c *Conn) Send(now Time, m []byte) (seq uint64, err error) {
	if err := c.writable(modeMessages); err != nil {
		return 0, err
	}
	if len(m) > c.PeerMaxMessage() {
		return 0, ErrMessageTooLarge
	}
	if c.send.queued >= c.cfg.SendQueued || c.send.queued > 0 && c.send.queuedBytes+len(m) > c.cfg.SendQueue {
		c.blocked = true
		return 0, ErrQueueFull
	}
	c.send.mode = modeMessages
	c.send.addMessage(m)
	c.lastMessage = now
	return c.send.messages, nil
}

// minQueueTarget keeps a writer ahead of a short path with a small window.
const minQueueTarget = 256 << 10

// queueTarget is what a writer that can wait should leave in the send queue:
// two windows keep the path busy, more would only age there.
func (c *Conn) queueTarget() int {
	return min(c.cfg.SendQueue, max(minQueueTarget, 2*c.cc.Window()))
}

// SendPatiently is Send for a caller that can wait: it returns ErrQueueFull
// once enough is queued to keep the path busy, rather than at the limit.
func (c *Conn) SendPatiently(now Time, m []byte) (seq uint64, err error) {
	if c.send.queued > 0 && c.send.queuedBytes+len(m) > c.queueTarget() && c.writable(modeMessages) == nil {
		c.blocked, c.blockedEarly = true, true
		return 0, ErrQueueFull
	}
	return c.Send(now, m)
}

// WriteStream accepts bytes of the stream, as many as the queue has room for.
// It returns ErrQueueFull when enough is queued to keep the path busy.
func (c *Conn) WriteStream(now Time, b []byte) (n int, err error) {
	if err := c.writable(modeStream); err != nil {
		return 0, err
	}
	if len(b) == 0 {
		return 0, nil
	}
	n = min(len(b), c.queueTarget()-c.send.queuedBytes)
	if n <= 0 {
		c.blocked, c.blockedEarly = true, true
		return 0, ErrQueueFull
	}
	c.send.mode = modeStream
	c.send.addStream(b[:n])
	c.lastMessage = now
	return n, nil
}

func (c *Conn) writable(mode directionMode) error {
	switch {
	case c.err != nil:
		return c.err
	case c.state > StateOpen || c.send.sealed:
		return ErrClosed
	case c.send.mode != modeOpen && c.send.mode != mode:
		return ErrWrongMode
	}
	return nil
}

// CloseWrite ends this side's direction; what was accepted is still delivered.
func (c *Conn) CloseWrite() error {
	if c.err != nil {
		return c.err
	}
	if c.state > StateOpen {
		return ErrClosed
	}
	if !c.send.sealed {
		c.send.addFin()
	}
	return nil
}

// AppendMessage appends the oldest message that is ready to dst. ok is false
// when there is none; ReadDone tells whether one can still come.
func (c *Conn) AppendMessage(dst []byte) (out []byte, ok bool, err error) {
	if c.recv.mode == modeStream {
		return dst, false, ErrWrongMode
	}
	out, ok = c.recv.appendMessage(dst)
	if ok {
		c.afterRead()
	}
	return out, ok, nil
}

// MessageLen is the length of the oldest message that is ready.
func (c *Conn) MessageLen() (n int, ok bool) { return c.recv.messageLen() }

// WindowDue reports whether reading has opened the window so far that the peer
// should be told.
func (c *Conn) WindowDue() bool { return c.flow.due }

// ReadStream copies ready bytes of the stream to p.
func (c *Conn) ReadStream(p []byte) (n int, err error) {
	if c.recv.mode == modeMessages {
		return 0, ErrWrongMode
	}
	n = c.recv.readStream(p)
	if n > 0 {
		c.afterRead()
	}
	return n, nil
}

// ReadDone reports whether the peer has ended its direction and all of it was
// read.
func (c *Conn) ReadDone() bool {
	return c.recv.fin && c.recv.messages == 0 && c.recv.streamBytes == 0
}

// Readable reports whether a message or stream bytes are ready.
func (c *Conn) Readable() bool { return c.recv.messages > 0 || c.recv.streamBytes > 0 }

// afterRead returns memory and widens the peer's window.
func (c *Conn) afterRead() {
	c.updateMemory()
	c.flow.update(&c.recv)
}

// chargedMemory is what counts against the shared budget when held bytes are held.
func chargedMemory(held int) int { return max(held-freeMemory, 0) }

// updateMemory keeps the reservation of the shared budget in steps, so that
// the common datagram does not touch it.
func (c *Conn) updateMemory() {
	if c.cfg.Memory == nil {
		return
	}
	held := chargedMemory(c.recv.memory())
	if c.memory > held+2*memoryStep || held == 0 && c.memory > 0 {
		keep := (held + memoryStep - 1) / memoryStep * memoryStep
		c.cfg.Memory.Release(c.memory - keep)
		c.memory = keep
	}
}

// reserve makes sure that n more bytes may be held.
func (c *Conn) reserve(n int) bool {
	if c.cfg.Memory == nil {
		return true
	}
	need := chargedMemory(c.recv.memory()+n) - c.memory
	if need <= 0 {
		return true
	}
	need = (need + memoryStep - 1) / memoryStep * memoryStep
	if !c.cfg.Memory.Reserve(need) {
		return false
	}
	c.memory += need
	return true
}

// release gives back what an ended session no longer needs. What is ready to be
// read stays.
func (c *Conn) release() {
	c.giveUp()
	c.recv.end()
	c.updateMemory()
	c.sent = sentLog{base: c.sent.next, next: c.sent.next, limit: c.sent.limit}
	c.inFlight = 0
}

// giveUp drops what was accepted and is not acknowledged.
func (c *Conn) giveUp() {
	c.abandoned += c.send.inFlight + c.send.queuedBytes
	c.send.release()
	c.releaseCoding()
}

// Unacknowledged is what was accepted and is not known to be held by the peer:
// whole messages, and bytes with their headers. It stays readable after the
// end of the session.
func (c *Conn) Unacknowledged() (messages uint64, bytes int) {
	return c.send.messages - c.send.acked, c.abandoned + c.send.inFlight + c.send.queuedBytes
}

// Discard drops what is ready and all that still arrives: the application
// reads no more.
func (c *Conn) Discard() {
	c.recv.discard = true
	c.recv.dropReady()
	c.updateMemory()
	c.flow.update(&c.recv)
}

// flowState is the receiver's side of flow control.
type flowState struct {
	window    int
	announced uint64 // limit last sent
	limit     uint64 // limit that could be sent now
	due       bool
}

// update raises the limit; an update is due once it grew by a quarter window.
func (f *flowState) update(q *recvQueue) {
	limit := q.ordered - uint64(q.unread()) + uint64(f.window)
	f.limit = max(f.limit, limit)
	if f.limit >= f.announced+uint64(f.window)/4 {
		f.due = true
	}
}

// sendRoom is how many symbol bytes may be sent for the first time.
func (c *Conn) sendRoom() int {
	if !c.established() {
		return 0
	}
	room := min(c.cfg.SendWindow-c.send.inFlight, int(min(c.peer.RecvWindow-c.send.sentBytes, 1<<30)))
	symbols := min(uint64(c.cfg.SendSymbols), c.peer.SymbolWindow)
	if uint64(c.send.unsent-c.send.base) >= symbols || c.sent.full() {
		return 0
	}
	return room
}

func (c *Conn) setState(now Time, s State) {
	if s <= c.state {
		return
	}
	c.state = s
	c.trace(TraceEvent{Kind: TraceStateChanged, Time: now, State: s})
	if s == StateDone {
		c.release()
		c.events |= EventDone
	}
}

// fail ends the session with err, the reason given first.
func (c *Conn) fail(err error) {
	if c.err == nil {
		c.err = err
		c.events |= EventFailed | EventReadable | EventWritable
	}
}

func cloneBytes(dst, src []byte) []byte { return append(slices.Grow(dst[:0], len(src)), src...) }
