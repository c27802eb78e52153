package arq

import (
	"encoding/binary"
	"time"

	"github.com/openarkstudio/arknet-go/internal/wire"
)

// handshake exchanges the parameters of both sides. Its bytes travel in CRYPTO
// records of long datagrams, in order; in plain mode each side sends one
// message: a two-byte length and its parameters. The client repeats its flight
// until it is answered, the server until a datagram under the session key
// proves the client's address.
type handshake struct {
	out      []byte // our flight
	outAcked int    // bytes of it that the peer holds
	in       []byte // the peer's bytes, in order
	done     bool   // the peer's parameters are known

	number    uint32  // of the next handshake datagram
	sentAt    [8]Time // send times of the latest, for RTT samples
	heard     uint64  // latest handshake datagram of the peer
	heardAny  bool    //
	startedAt Time    //
	interval  time.Duration
	retryAt   Time
	due       bool
	received  int // bytes from an unproven address
	spent     int // bytes sent to it
}

func (c *Conn) startHandshake(now Time) {
	h := &c.handshake
	p := wire.Params{
		Nonce:        c.cfg.Nonce,
		RecvWindow:   uint64(c.cfg.RecvWindow),
		SymbolWindow: uint64(c.cfg.RecvSymbols),
		MaxMessage:   uint64(c.cfg.MaxMessage),
		MaxDatagram:  wire.MaxRecordLen,
	}
	if c.cfg.FEC.Retain > 0 {
		p.MaxRepairSpan = wire.MaxRepairSpan
		p.MaxRepairHeld = uint64(c.cfg.FEC.Retain)
		if c.cfg.FEC.Policy != FECOff || c.cfg.Retransmit == RetransmitCoded {
			p.SendsRepairs = 1
		}
	}
	body := wire.AppendParams(nil, &p)
	h.out = append(binary.BigEndian.AppendUint16(nil, uint16(len(body))), body...)
	h.startedAt = now
	h.interval = handshakeFirstRetry
	h.retryAt = never
	h.due = c.client
}

// handleLong takes a handshake, versions or reset datagram.
func (c *Conn) handleLong(now Time, b []byte) {
	body, ok := wire.VerifyChecksum(b, wire.HandshakeKey)
	if !ok {
		c.drop(now, &c.stats.Dropped.Checksum, b)
		return
	}
	h, rest, err := wire.ParseLong(body)
	if err != nil {
		c.drop(now, &c.stats.Dropped.Malformed, b)
		return
	}
	switch h.Kind {
	case wire.KindReset:
		c.handleReset(now, h, rest, b)
		return
	case wire.KindVersions:
		if c.client && c.state == StateHandshake && !c.handshake.done && h.Dst == c.cfg.LocalID &&
			!wire.OffersVersion(rest, wire.Version) {
			c.end(now, ErrVersion)
			return
		}
		c.drop(now, &c.stats.Dropped.Unexpected, b)
		return
	}
	if h.Version != wire.Version || h.Src == 0 || c.remoteID != 0 && h.Src != c.remoteID ||
		h.Dst != c.cfg.LocalID && (c.client || h.Dst != 0) {
		c.drop(now, &c.stats.Dropped.Unexpected, b)
		return
	}
	if c.state >= StateClosing {
		c.drop(now, &c.stats.Dropped.Stale, b)
		return
	}
	hs := &c.handshake
	hs.received += len(b)
	if !hs.heardAny || uint64(h.Number) > hs.heard {
		hs.heard, hs.heardAny = uint64(h.Number), true
	}
	for len(rest) > 0 {
		var r wire.Record
		if r, rest, err = wire.NextRecord(rest); err != nil {
			c.drop(now, &c.stats.Dropped.Malformed, b)
			return
		}
		switch r.Type {
		case wire.RecordPadding, wire.RecordPing:
		case wire.RecordCrypto:
			if err := c.handleCrypto(now, h, r); err != nil {
				c.drop(now, &c.stats.Dropped.Malformed, b)
				return
			}
		case wire.RecordCryptoAck:
			c.handleCryptoAck(now, r)
		case wire.RecordClose:
			if c.client && c.state == StateHandshake {
				c.peerClosed(now, r)
			}
			return
		default:
			c.drop(now, &c.stats.Dropped.Malformed, b)
			return
		}
	}
	if !c.established() {
		return
	}
	c.lastHeard = now
	if !c.client && c.state == StateHandshake {
		// A repeat of the client's flight: our answer may be lost.
		hs.due = true
	}
}

func (c *Conn) handleCrypto(now Time, h wire.Long, r wire.Record) error {
	hs := &c.handshake
	end := r.Value + uint64(len(r.Data))
	have := uint64(len(hs.in))
	if hs.done || end <= have || r.Value > have {
		// Held already, or behind a gap that a repeat will fill.
		return nil
	}
	if end > 2+wire.MaxParamsLen {
		return wire.ErrTooLong
	}
	hs.in = append(hs.in, r.Data[have-r.Value:]...)
	if len(hs.in) < 2 {
		return nil
	}
	n := int(binary.BigEndian.Uint16(hs.in))
	if len(hs.in) < 2+n {
		return nil
	}
	p, err := wire.ParseParams(hs.in[2 : 2+n])
	if err != nil {
		hs.in = hs.in[:have]
		return err
	}
	hs.done = true
	c.peer = p
	c.remoteID = h.Src
	c.limitDatagrams(int(min(p.MaxDatagram, MaxMTU)))
	if c.client {
		c.key = wire.SessionKey(c.cfg.Nonce, p.Nonce)
		c.startCoding()
		c.open(now)
		// The server accepts the session once it hears us under its key.
		c.pingDue = true
		return nil
	}
	c.key = wire.SessionKey(p.Nonce, c.cfg.Nonce)
	c.startCoding()
	hs.due = true
	return nil
}

// limitDatagrams keeps to the longest datagram that the peer accepts. Symbols
// packed before that was known are packed again.
func (c *Conn) limitDatagrams(size int) {
	if size >= c.cfg.MTU {
		return
	}
	c.cfg.MTU = size
	c.send.repack(maxPayload(size))
}

// handleCryptoAck takes the peer's word on our flight, and an RTT sample.
func (c *Conn) handleCryptoAck(now Time, r wire.Record) {
	hs := &c.handshake
	if r.Value > uint64(len(hs.out)) || r.Number >= uint64(hs.number) {
		return
	}
	hs.outAcked = max(hs.outAcked, int(r.Value))
	if age := uint64(hs.number) - r.Number; age <= uint64(len(hs.sentAt)) && !c.rtt.known() {
		if at := hs.sentAt[r.Number%uint64(len(hs.sentAt))]; at != 0 {
			c.rtt.sample(now, now.sub(at))
		}
	}
}

// confirmHandshake is the server's view of the first datagram under the key:
// the client received our nonce at its address.
func (c *Conn) confirmHandshake(now Time) {
	hs := &c.handshake
	if hs.number > 0 && !c.rtt.known() {
		if at := hs.sentAt[(hs.number-1)%uint32(len(hs.sentAt))]; hs.number == 1 {
			c.rtt.sample(now, now.sub(at))
		}
	}
	c.open(now)
}

func (c *Conn) open(now Time) {
	hs := &c.handshake
	hs.retryAt, hs.due = never, false
	c.setState(now, StateOpen)
	c.lastHeard, c.lastMessage = now, now
	c.events |= EventOpened
}

// handshakeTimeout repeats the flight, or gives up.
func (c *Conn) handshakeTimeout(now Time) {
	hs := &c.handshake
	if c.state != StateHandshake {
		return
	}
	if now.sub(hs.startedAt) >= c.cfg.HandshakeTimeout {
		c.end(now, ErrHandshakeTimeout)
		return
	}
	if now >= hs.retryAt {
		hs.due = true
		hs.interval = min(hs.interval*3/2, handshakeMaxRetry)
	}
}

// appendHandshake appends one handshake datagram if one is due and, for a
// server, as long as the address stays within the amplification limit (RFC
// 9000, section 8.1).
func (c *Conn) appendHandshake(now Time, b []byte) ([]byte, bool) {
	hs := &c.handshake
	if !hs.due || c.state != StateHandshake {
		return b, false
	}
	hs.due = false
	hs.retryAt = now.add(hs.interval)
	start := len(b)
	b = wire.AppendLong(b, wire.Long{
		Kind: wire.KindHandshake, Version: wire.Version,
		Dst: c.remoteID, Src: c.cfg.LocalID, Number: hs.number,
	})
	if hs.heardAny {
		b = wire.AppendCryptoAck(b, uint64(len(hs.in)), hs.heard)
	}
	room := min(c.cfg.MTU, handshakePadding) - (len(b) - start) - wire.ChecksumLen - wire.CryptoOverhead
	if rest := hs.out[hs.outAcked:]; len(rest) > 0 {
		b = wire.AppendCrypto(b, uint64(hs.outAcked), rest[:min(len(rest), room)])
	}
	if c.client {
		for len(b)-start < min(c.cfg.MTU, handshakePadding)-wire.ChecksumLen {
			b = append(b, byte(wire.RecordPadding))
		}
	}
	b = wire.AppendChecksum(b, start, wire.HandshakeKey)
	if !c.client && hs.spent+len(b)-start > amplificationFactor*hs.received {
		return b[:start], false
	}
	hs.spent += len(b) - start
	hs.sentAt[hs.number%uint32(len(hs.sentAt))] = now
	hs.number++
	c.stats.DatagramsSent++
	c.stats.BytesSent += uint64(len(b) - start)
	return b, true
}

// appendRefusal appends the CLOSE of a server that takes no session, once: a
// client that misses it asks again.
func (c *Conn) appendRefusal(now Time, b []byte) ([]byte, bool) {
	hs := &c.handshake
	start := len(b)
	b = wire.AppendLong(b, wire.Long{
		Kind: wire.KindHandshake, Version: wire.Version,
		Dst: c.remoteID, Src: c.cfg.LocalID, Number: hs.number,
	})
	b = wire.AppendClose(b, c.closing.transport, c.closing.code, c.closing.reason)
	b = wire.AppendChecksum(b, start, wire.HandshakeKey)
	c.setState(now, StateDone)
	if hs.spent+len(b)-start > amplificationFactor*hs.received {
		return b[:start], false
	}
	c.stats.DatagramsSent++
	c.stats.BytesSent += uint64(len(b) - start)
	return b, true
}

// FirstFlight reads the header of a client's first datagram: undamaged, of
// this version, from a client that names itself, with its whole parameters
// inside. A server makes a Conn for nothing else.
func FirstFlight(b []byte) (wire.Long, bool) {
	body, ok := wire.VerifyChecksum(b, wire.HandshakeKey)
	if !ok || wire.Classify(b) != wire.KindHandshake {
		return wire.Long{}, false
	}
	h, rest, err := wire.ParseLong(body)
	if err != nil || h.Version != wire.Version || h.Src == 0 || h.Dst != 0 {
		return wire.Long{}, false
	}
	for len(rest) > 0 {
		var r wire.Record
		if r, rest, err = wire.NextRecord(rest); err != nil {
			return wire.Long{}, false
		}
		if r.Type == wire.RecordCrypto && r.Value == 0 && len(r.Data) > 2 {
			n := int(binary.BigEndian.Uint16(r.Data))
			if len(r.Data) < 2+n {
				return wire.Long{}, false
			}
			_, err := wire.ParseParams(r.Data[2 : 2+n])
			return h, err == nil
		}
	}
	return wire.Long{}, false
}
