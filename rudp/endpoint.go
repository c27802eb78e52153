package rudp

import (
	"crypto/rand"
	"encoding/binary"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/openarkstudio/arknet-go/internal/arq"
	"github.com/openarkstudio/arknet-go/internal/hrtime"
	"github.com/openarkstudio/arknet-go/internal/udpio"
	"github.com/openarkstudio/arknet-go/internal/wire"
)

// endpoint is one socket with its sessions.
//
// Three goroutines serve it: readLoop takes batches of datagrams, hands each to
// its session and flushes the sessions touched; timerLoop does the same for
// sessions whose deadline has passed; flushLoop for sessions that the
// application wrote to without waiting for anything afterwards.
//
// Locks: Conn.mu, then endpoint.mu or schedule.mu. Nothing blocks under
// endpoint.mu or schedule.mu; under Conn.mu datagrams are sent.
type endpoint struct {
	cfg      Config
	sock     *udpio.Socket
	owned    bool // Close may close the connection
	listener *Listener
	schedule schedule
	memory   memoryBudget // of received data
	coding   memoryBudget // of erasure coding
	log      *slog.Logger

	mu      sync.Mutex
	byID    map[wire.ConnID]*Conn
	byPeer  map[peerKey]*Conn // server sessions, to recognise a repeated first flight
	pending int               // server sessions that were not accepted yet
	closed  bool              // takes no further sessions

	dirtyMu sync.Mutex
	dirty   []*Conn
	kick    chan struct{} // capacity 1: dirty is not empty
	done    chan struct{} // closed when the last session has ended

	released chan struct{} // closed when the socket is closed or its owner's again

	stats endpointCounters
}

// peerKey recognises the client behind a first flight.
type peerKey struct {
	addr netip.AddrPort
	id   wire.ConnID
}

type endpointCounters struct {
	unknownSession, badHandshake, overBacklog, versions, resets, malformed atomic.Uint64
	resetAt                                                                atomic.Int64
}

// Sizes of the read path.
const (
	readTrains    = 32
	resetInterval = 100 * time.Microsecond // at most one reset in that time
)

func newEndpoint(pc net.PacketConn, owned bool, cfg Config) (*endpoint, error) {
	sock, err := udpio.New(pc, udpio.Options{
		ReadBuffer:   max(cfg.ReadBuffer, 0),
		WriteBuffer:  max(cfg.WriteBuffer, 0),
		DontFragment: true,
	})
	if err != nil {
		return nil, err
	}
	var alarm *hrtime.Alarm
	if _, real := pc.(*net.UDPConn); real {
		if alarm, err = hrtime.NewAlarm(); err != nil {
			return nil, err
		}
	} else {
		// A connection of the caller's making may live under a fake clock.
		alarm = hrtime.NewPortable()
	}
	ep := &endpoint{
		cfg:      cfg,
		sock:     sock,
		owned:    owned,
		schedule: schedule{alarm: alarm, epoch: time.Now().Add(-time.Nanosecond)},
		memory:   memoryBudget{limit: cfg.Limits.ReceiveMemory},
		coding:   memoryBudget{limit: cfg.FEC.RetainTotal},
		log:      cfg.Logger,
		byID:     make(map[wire.ConnID]*Conn),
		byPeer:   make(map[peerKey]*Conn),
		kick:     make(chan struct{}, 1),
		done:     make(chan struct{}),
		released: make(chan struct{}),
	}
	if ep.log == nil {
		ep.log = slog.New(slog.DiscardHandler)
	}
	return ep, nil
}

func (ep *endpoint) start() {
	go ep.readLoop()
	go ep.timerLoop()
	go ep.flushLoop()
}

// now is the time of the protocol core.
func (ep *endpoint) now() arq.Time { return arq.Time(time.Since(ep.schedule.epoch)) }

// coreConfig makes the configuration of one more session.
func (ep *endpoint) coreConfig() arq.Config {
	c := ep.cfg.core()
	c.Memory = &ep.memory
	c.CodingMemory = &ep.coding
	// The source of crypto/rand does not fail.
	_, _ = rand.Read(c.Nonce[:])
	return c
}

// newID draws an id that no session uses; ep.mu is held.
func (ep *endpoint) newID() wire.ConnID {
	for {
		var b [4]byte
		_, _ = rand.Read(b[:])
		id := wire.ConnID(binary.BigEndian.Uint32(b[:]))
		if _, taken := ep.byID[id]; !taken && id != 0 {
			return id
		}
	}
}

// readLoop feeds datagrams to sessions until the socket is closed.
func (ep *endpoint) readLoop() {
	trains := make([]udpio.Train, readTrains)
	var batch inputBatch
	for {
		n, err := ep.sock.ReadTrains(trains)
		if err != nil {
			ep.socketClosed()
			return
		}
		batch.now = ep.now()
		for i := range trains[:n] {
			t := &trains[i]
			for d := range t.Datagrams() {
				ep.input(&batch, t, d)
			}
		}
		batch.unlock()
		for i, c := range batch.touched {
			batch.touched[i] = nil
			c.mu.Lock()
			c.touched = false
			c.loopTurn(batch.now)
		}
		batch.touched = batch.touched[:0]
	}
}

// inputBatch is the state of one read batch. Neighbouring datagrams mostly
// belong to one session, which stays locked between them.
type inputBatch struct {
	now     arq.Time
	conn    *Conn // locked
	id      wire.ConnID
	touched []*Conn
}

func (b *inputBatch) unlock() {
	if b.conn != nil {
		b.conn.mu.Unlock()
		b.conn = nil
	}
}

func (b *inputBatch) lock(c *Conn, id wire.ConnID) {
	b.unlock()
	c.mu.Lock()
	b.conn, b.id = c, id
	if !c.touched {
		c.touched = true
		b.touched = append(b.touched, c)
	}
}

// input hands one datagram to its session.
func (ep *endpoint) input(b *inputBatch, t *udpio.Train, d []byte) {
	id, ok := wire.Destination(d)
	if !ok {
		ep.stats.malformed.Add(1)
		return
	}
	if b.conn == nil || b.id != id || id == 0 {
		c := ep.find(b, id, t, d)
		if c == nil {
			return
		}
		b.lock(c, id)
	}
	b.conn.core.HandleDatagram(b.now, d)
}

// find returns the session that a datagram is for, making it if the datagram
// is a client's first flight to a listener.
func (ep *endpoint) find(b *inputBatch, id wire.ConnID, t *udpio.Train, d []byte) *Conn {
	ep.mu.Lock()
	c := ep.byID[id]
	ep.mu.Unlock()
	if c != nil {
		return c
	}
	switch wire.Classify(d) {
	case wire.KindShort:
		ep.stats.unknownSession.Add(1)
		b.unlock()
		ep.sendReset(t, d)
	case wire.KindReset:
		b.unlock()
		return ep.findByReset(t, d)
	case wire.KindHandshake:
		if id == 0 && ep.listener != nil {
			b.unlock()
			return ep.answer(b.now, t, d)
		}
		ep.stats.unknownSession.Add(1)
	default:
		ep.stats.unknownSession.Add(1)
	}
	return nil
}

// answer finds or makes the server session of a first flight.
func (ep *endpoint) answer(now arq.Time, t *udpio.Train, d []byte) *Conn {
	h, ok := arq.FirstFlight(d)
	if !ok {
		if !ep.offerVersions(t, d) {
			ep.stats.badHandshake.Add(1)
		}
		return nil
	}
	key := peerKey{t.Addr, h.Src}
	ep.mu.Lock()
	defer ep.mu.Unlock()
	if c := ep.byPeer[key]; c != nil {
		return c
	}
	if ep.closed || ep.pending >= ep.cfg.Backlog {
		ep.stats.overBacklog.Add(1)
		return nil
	}
	c := ep.newConn(t.Addr, t.Local)
	cfg := ep.coreConfig()
	cfg.LocalID = ep.newID()
	cfg.Trace = c.tracer()
	c.core = arq.NewServer(now, cfg, h)
	c.server = true
	c.key = key
	ep.byID[cfg.LocalID] = c
	ep.byPeer[key] = c
	ep.pending++
	return c
}

// offerVersions answers a first flight of another version, once per datagram
// and with less than was received.
func (ep *endpoint) offerVersions(t *udpio.Train, d []byte) bool {
	body, ok := wire.VerifyChecksum(d, wire.HandshakeKey)
	if !ok {
		return false
	}
	h, _, err := wire.ParseLong(body)
	if err != nil || h.Version == wire.Version || h.Src == 0 || len(d) < 2*wire.LongHeaderLen {
		return false
	}
	ep.stats.versions.Add(1)
	b := wire.AppendLong(nil, wire.Long{Kind: wire.KindVersions, Version: wire.Version, Dst: h.Src, Src: h.Dst})
	b = wire.AppendVersions(b, wire.Version)
	ep.reply(t, wire.AppendChecksum(b, 0, wire.HandshakeKey))
	return true
}

// sendReset tells a peer that its session is unknown here, not more often than
// resetInterval allows.
func (ep *endpoint) sendReset(t *udpio.Train, d []byte) {
	q, ok := wire.QuoteOf(d)
	if !ok {
		return
	}
	now, last := int64(ep.now()), ep.stats.resetAt.Load()
	if last != 0 && now-last < int64(resetInterval) || !ep.stats.resetAt.CompareAndSwap(last, now) {
		return
	}
	ep.stats.resets.Add(1)
	id, _ := wire.Destination(d)
	ep.reply(t, wire.AppendReset(nil, id, q))
}

func (ep *endpoint) reply(t *udpio.Train, b []byte) {
	// Only a closed socket is an error, and then nobody waits for the answer.
	_, _ = ep.sock.WriteTrains([]udpio.Train{{Buf: b, Addr: t.Addr, Local: t.Local}})
}

// findByReset finds the session that a reset is about: the one that addresses
// its peer by the id that the peer does not know. Resets are rare, and the
// session checks the proof.
func (ep *endpoint) findByReset(t *udpio.Train, d []byte) *Conn {
	if len(d) != wire.ResetLen+wire.ChecksumLen {
		ep.stats.malformed.Add(1)
		return nil
	}
	unknown := wire.ConnID(binary.BigEndian.Uint32(d[9:]))
	ep.mu.Lock()
	conns := make([]*Conn, 0, 1)
	for _, c := range ep.byID {
		if c.remote == t.Addr || ep.listener == nil {
			conns = append(conns, c)
		}
	}
	ep.mu.Unlock()
	for _, c := range conns {
		c.mu.Lock()
		match := c.core.RemoteID() == unknown
		c.mu.Unlock()
		if match {
			return c
		}
	}
	ep.stats.unknownSession.Add(1)
	return nil
}

// timerLoop wakes sessions at their deadlines.
func (ep *endpoint) timerLoop() {
	var due []*Conn
	for ep.schedule.alarm.Wait() {
		now := ep.now()
		due = ep.schedule.take(now, due[:0])
		for i, c := range due {
			due[i] = nil
			c.mu.Lock()
			if at, ok := c.core.NextTimeout(); ok && at <= now {
				c.core.HandleTimeout(now)
			}
			c.loopTurn(now)
		}
		ep.schedule.rearm()
	}
}

// markDirty hands a session to the flush loop. c.mu is held.
func (ep *endpoint) markDirty(c *Conn) {
	if c.dirty {
		return
	}
	c.dirty = true
	ep.dirtyMu.Lock()
	ep.dirty = append(ep.dirty, c)
	ep.dirtyMu.Unlock()
	select {
	case ep.kick <- struct{}{}:
	default:
	}
}

// flushLoop sends for sessions whose application went on to something else
// after a write, and runs completions that became due on its goroutines.
func (ep *endpoint) flushLoop() {
	var list []*Conn
	for open := true; open; {
		select {
		case <-ep.done:
			open = false // completions of the last session may be left
		case <-ep.kick:
		}
		ep.dirtyMu.Lock()
		list, ep.dirty = ep.dirty, list[:0]
		ep.dirtyMu.Unlock()
		for i, c := range list {
			list[i] = nil
			c.mu.Lock()
			if !c.dirty {
				c.mu.Unlock()
				continue
			}
			c.loopTurn(ep.now())
		}
	}
}

// noteOffered keeps the place of a session in the backlog until Accept takes it.
func (ep *endpoint) noteOffered(c *Conn) {
	ep.mu.Lock()
	c.offered = true
	ep.mu.Unlock()
}

// sessionDone forgets a session that has ended, and the endpoint with its last
// one once nothing new can come.
func (ep *endpoint) sessionDone(c *Conn) {
	ep.schedule.remove(c)
	ep.mu.Lock()
	delete(ep.byID, c.core.LocalID())
	if c.server {
		delete(ep.byPeer, c.key)
		if !c.offered {
			ep.pending-- // else Accept takes it off the backlog
		}
	}
	last := ep.closed && len(ep.byID) == 0
	ep.mu.Unlock()
	if last {
		ep.shut()
	}
}

// stopNew ends the taking of sessions; the socket closes with the last one.
func (ep *endpoint) stopNew() {
	ep.mu.Lock()
	ep.closed = true
	last := len(ep.byID) == 0
	ep.mu.Unlock()
	if last {
		ep.shut()
	}
}

// shut closes the socket, or gives it back to its owner.
func (ep *endpoint) shut() {
	ep.mu.Lock()
	select {
	case <-ep.done:
		ep.mu.Unlock()
		return
	default:
	}
	close(ep.done)
	ep.mu.Unlock()
	if err := ep.schedule.alarm.Close(); err != nil {
		ep.log.Debug("rudp: closing the timer", "error", err)
	}
	if ep.owned {
		ep.release(ep.sock.Close())
		return
	}
	// Detach waits for the reader, which may be the goroutine that calls.
	go func() { ep.release(ep.sock.Detach()) }()
}

func (ep *endpoint) release(err error) {
	if err != nil {
		ep.log.Debug("rudp: closing the socket", "error", err)
	}
	close(ep.released)
}

// socketClosed ends what is left when the socket was closed, by shut or by its
// owner.
func (ep *endpoint) socketClosed() {
	ep.mu.Lock()
	ep.closed = true
	conns := make([]*Conn, 0, len(ep.byID))
	for _, c := range ep.byID {
		conns = append(conns, c)
	}
	ep.mu.Unlock()
	for _, c := range conns {
		c.mu.Lock()
		c.core.Vanish(ep.now())
		c.loopTurn(ep.now())
	}
	if ep.listener != nil {
		ep.listener.socketClosed()
	}
	ep.shut()
}
