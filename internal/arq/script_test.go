package arq

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openarkstudio/arknet-go/internal/wire"
)

// script holds one Conn whose peer is the test itself: it hands the Conn
// datagrams, moves the time and says what has to leave. Whatever leaves and is
// not asked for fails the test.
type script struct {
	t    *testing.T
	c    *Conn
	now  Time
	key  wire.ChecksumKey
	peer struct {
		next    wire.PacketNumber // of the peer's next ack-eliciting datagram
		ackNext uint64            // of its next ack-only datagram
	}
	out []sentDatagram // not yet asked for
}

const (
	scriptLocal  = wire.ConnID(0x11111111)
	scriptRemote = wire.ConnID(0x22222222)
	scriptRTT    = 20 * time.Millisecond
	ms           = time.Millisecond
	us           = time.Microsecond
)

// sentDatagram is a datagram of the Conn, taken apart.
type sentDatagram struct {
	at      Time
	size    int
	pn      wire.PacketNumber // 0 for a datagram that elicits no ack
	ack     *wire.Ack
	records []wire.Record
	payload wire.PayloadType
	symbol  wire.SymbolID // of a repair, the first of its window
	repair  wire.Repair
	data    []byte
}

// String names what a datagram carries beside a riding ack: "ping", "data 3",
// "repair 3-5", "window 4096 data 3", "close 0 bye", and "ack 0-3,5" for an ack
// alone.
func (d sentDatagram) String() string {
	var parts []string
	for _, r := range d.records {
		switch r.Type {
		case wire.RecordPing:
			parts = append(parts, "ping")
		case wire.RecordWindow:
			parts = append(parts, fmt.Sprint("window ", r.Value))
		case wire.RecordClose:
			who := "close"
			if r.Transport {
				who = "transport close"
			}
			parts = append(parts, strings.TrimSpace(fmt.Sprintf("%s %d %s", who, r.Value, r.Data)))
		default:
			parts = append(parts, fmt.Sprintf("record %#x", r.Type))
		}
	}
	switch d.payload {
	case wire.PayloadData:
		parts = append(parts, fmt.Sprint("data ", d.symbol))
	case wire.PayloadRepair:
		parts = append(parts, fmt.Sprintf("repair %d-%d", d.symbol, int(d.symbol)+d.repair.Span-1))
	}
	if len(parts) == 0 && d.ack != nil {
		parts = append(parts, "ack "+rangesString(d.ack.Ranges))
	}
	return strings.Join(parts, " ")
}

func rangesString(ranges []wire.AckRange) string {
	var b []string
	for _, r := range slices.Backward(ranges) {
		if r.Lo == r.Hi {
			b = append(b, fmt.Sprint(r.Lo))
		} else {
			b = append(b, fmt.Sprintf("%d-%d", r.Lo, r.Hi))
		}
	}
	return strings.Join(b, ",")
}

func peerParams() wire.Params {
	return wire.Params{
		Nonce: [wire.NonceLen]byte{7}, RecvWindow: 4 << 20, SymbolWindow: 4096,
		MaxMessage: 16 << 20, MaxDatagram: wire.MaxRecordLen,
	}
}

// newScript opens a client session over a path of 20 ms. Its first PING is
// acknowledged, so the next packet number of the Conn is 1 and its next symbol 0.
func newScript(t *testing.T, change func(*Config, *wire.Params)) *script {
	t.Helper()
	cfg, p := testConfig(uint32(scriptLocal)), peerParams()
	if change != nil {
		change(&cfg, &p)
	}
	s := &script{t: t, now: Time(time.Second)}
	s.c = NewClient(s.now, cfg)
	b, seg := s.c.AppendDatagrams(s.now, nil, maxTrain)
	if seg != handshakePadding || len(b) != seg {
		t.Fatalf("first flight of %d bytes in segments of %d", len(b), seg)
	}
	s.now = s.now.add(scriptRTT)
	s.c.HandleDatagram(s.now, peerFlight(p, 0))
	s.key = wire.SessionKey(cfg.Nonce, p.Nonce)
	if e := s.c.TakeEvents(); e != EventOpened || s.c.State() != StateOpen {
		t.Fatalf("events %b in state %d after the handshake", e, s.c.State())
	}
	s.drain()
	s.want("ping")
	s.advance(scriptRTT)
	s.ack(0, 0)
	s.want()
	return s
}

// peerFlight is the handshake datagram that answers the client's.
func peerFlight(p wire.Params, number uint32) []byte {
	b := wire.AppendLong(nil, wire.Long{
		Kind: wire.KindHandshake, Version: wire.Version, Dst: scriptLocal, Src: scriptRemote, Number: number,
	})
	b = wire.AppendCryptoAck(b, 1<<10, 1<<10) // of nothing that was sent: no RTT sample
	body := wire.AppendParams(nil, &p)
	b = wire.AppendCrypto(b, 0, append(binary.BigEndian.AppendUint16(nil, uint16(len(body))), body...))
	return wire.AppendChecksum(b, 0, wire.HandshakeKey)
}

// drain takes all that the Conn has to send now, and re-arms as a driver does.
func (s *script) drain() {
	s.t.Helper()
	for {
		b, seg := s.c.AppendDatagrams(s.now, nil, maxTrain)
		if seg == 0 {
			if len(b) != 0 {
				s.t.Fatalf("%d bytes without a segment size", len(b))
			}
			s.c.NextTimeout()
			return
		}
		for len(b) > 0 {
			n := min(seg, len(b))
			if wire.Classify(b) == wire.KindShort {
				s.out = append(s.out, s.decode(b[:n]))
			}
			b = b[n:]
		}
	}
}

// decode takes a datagram of the Conn apart.
func (s *script) decode(b []byte) sentDatagram {
	s.t.Helper()
	d := sentDatagram{at: s.now, size: len(b)}
	body, ok := wire.VerifyChecksum(b, s.key)
	if !ok {
		s.t.Fatal("a datagram left with a wrong checksum")
	}
	h, rest, err := wire.ParseShort(body)
	if err != nil || h.Dst != s.c.RemoteID() {
		s.t.Fatalf("a datagram left with header %+v: %v", h, err)
	}
	if !h.AckOnly() {
		d.pn = wire.PacketNumber(wire.Expand24(h.Number, uint64(s.c.sent.next)))
	}
	if h.Ack {
		d.ack = new(wire.Ack)
		if rest, err = wire.ParseAck(rest, s.c.acks.largest+1, s.c.recv.next, d.ack); err != nil {
			s.t.Fatal(err)
		}
	}
	for h.Control && len(rest) > 0 {
		var r wire.Record
		if r, rest, err = wire.NextRecord(rest); err != nil {
			s.t.Fatal(err)
		}
		if r.Type == wire.RecordEnd {
			break
		}
		d.records = append(d.records, r)
	}
	var truncated uint32
	switch d.payload = h.Payload; h.Payload {
	case wire.PayloadData:
		truncated, rest, err = wire.ParseSymbolID(rest)
	case wire.PayloadRepair:
		d.repair, rest, err = wire.ParseRepair(rest)
		truncated = d.repair.First
	}
	if err != nil {
		s.t.Fatal(err)
	}
	if d.payload != wire.PayloadNone {
		d.symbol = wire.SymbolID(wire.Expand24(truncated, uint64(s.c.send.next)))
		d.data = slices.Clone(rest)
	}
	return d
}

// advance moves the time by d and acts on every deadline on the way.
func (s *script) advance(d time.Duration) {
	s.t.Helper()
	until := s.now.add(d)
	last, same := Time(0), 0
	for {
		at, ok := s.c.NextTimeout()
		if !ok || at > until {
			break
		}
		s.now = max(s.now, at)
		if s.now == last {
			if same++; same > 3 {
				s.t.Fatalf("deadline %v stays in the past", time.Duration(at))
			}
		} else {
			last, same = s.now, 0
		}
		s.c.HandleTimeout(s.now)
		s.drain()
	}
	s.now = until
}

// wantTimeout checks when the Conn wants to be woken, from now.
func (s *script) wantTimeout(d time.Duration) {
	s.t.Helper()
	if at, ok := s.c.NextTimeout(); !ok || at.sub(s.now) != d {
		s.t.Fatalf("next timeout %v in %v, want in %v", ok, at.sub(s.now), d)
	}
}

// want checks what has left since the last call, in order.
func (s *script) want(want ...string) {
	s.t.Helper()
	var got []string
	for _, d := range s.out {
		got = append(got, d.String())
	}
	s.out = nil
	if !slices.Equal(got, want) {
		s.t.Fatalf("sent %q, want %q", got, want)
	}
}

// took returns what has left since the last call or want.
func (s *script) took() []sentDatagram {
	out := s.out
	s.out = nil
	return out
}

// deliver hands the Conn a datagram and drains it.
func (s *script) deliver(b []byte) {
	s.t.Helper()
	s.c.HandleDatagram(s.now, b)
	s.drain()
}

// datagram makes one of the peer under the session's key.
func (s *script) datagram(h wire.Short, body []byte) []byte {
	h.Dst = scriptLocal
	return wire.AppendChecksum(append(wire.AppendShort(nil, h), body...), 0, s.key)
}

// number takes the peer's next packet number.
func (s *script) number() uint32 {
	s.peer.next++
	return wire.Truncate24(uint64(s.peer.next - 1))
}

// ack delivers an ack of packet numbers, given as pairs lo, hi from the oldest
// to the newest, that says nothing of symbols.
func (s *script) ack(pairs ...uint64) {
	s.t.Helper()
	s.deliver(s.ackDatagram(0, pairs...))
}

func (s *script) ackDatagram(next wire.SymbolID, pairs ...uint64) []byte {
	a := wire.Ack{Next: next}
	for i := len(pairs) - 2; i >= 0; i -= 2 {
		a.Ranges = append(a.Ranges, wire.AckRange{Lo: pairs[i], Hi: pairs[i+1]})
	}
	s.peer.ackNext++
	return s.datagram(wire.Short{Number: wire.Truncate24(s.peer.ackNext - 1), Ack: true},
		wire.AppendAck(nil, &a, len(a.Ranges), 0))
}

// data delivers a symbol with the records in a datagram of its own.
func (s *script) data(id wire.SymbolID, records []byte) {
	s.t.Helper()
	s.deliver(s.dataDatagram(id, records))
}

func (s *script) dataDatagram(id wire.SymbolID, records []byte) []byte {
	return s.datagram(wire.Short{Number: s.number(), Payload: wire.PayloadData},
		append(wire.AppendSymbolID(nil, id), records...))
}

// control delivers control records in a datagram of their own.
func (s *script) control(records []byte) {
	s.t.Helper()
	s.deliver(s.datagram(wire.Short{Number: s.number(), Control: true}, records))
}

func whole(m string) []byte {
	return wire.AppendMessageRecord(nil, wire.RecordWhole, 0, []byte(m))
}

// send accepts n messages of one symbol each and lets them leave.
func (s *script) send(n int) {
	s.t.Helper()
	for range n {
		if _, err := s.c.Send(s.now, make([]byte, 1000)); err != nil {
			s.t.Fatal(err)
		}
	}
	s.drain()
}

func TestScriptOpensASession(t *testing.T) {
	s := newScript(t, nil)
	s.send(2)
	s.want("data 0", "data 1")
	s.advance(ms)
	s.data(0, whole("hello"))
	s.advance(scriptRTT / 16)
	s.want("ack 0")
	if m, ok, err := s.c.AppendMessage(nil); string(m) != "hello" || !ok || err != nil {
		t.Fatalf("read %q, %v, %v", m, ok, err)
	}
}
