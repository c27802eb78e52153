package arq

import (
	"fmt"
	"testing"
	"time"

	"github.com/openarkstudio/arknet-go/fec"
	"github.com/openarkstudio/arknet-go/internal/wire"
)

// A peer that wants no repairs gets none, and one that is not wanted them from
// restores nothing.
func TestNoRepairsPlease(t *testing.T) {
	for _, coded := range []Retransmit{RetransmitSingle, RetransmitCoded} {
		s := newCoding(t, ratio(FECSliding, 1, 2), func(c *Config, p *wire.Params) {
			p.MaxRepairSpan = 0
			c.Retransmit = coded
		})
		s.send(20)
		s.advance(5 * ms)
		s.want(dataNames(0, 19)...)
		if n := s.c.retainedBytes(); n != 0 {
			t.Errorf("%d bytes are kept for nothing", n)
		}
	}
	cfg := ratio(FECSliding, 1, 2)
	cfg.Retain = 0
	s := newCoding(t, cfg, nil)
	s.send(20)
	s.advance(5 * ms)
	s.want(dataNames(0, 19)...)
	p := newPeerCoder(t, s)
	p.add(0, whole("zero"))
	p.repair(0, 1)
	if d := s.c.Stats().Dropped.Stale; d != 1 || s.c.recv.next != 0 {
		t.Errorf("%d datagrams dropped, next symbol %d", d, s.c.recv.next)
	}
}

// peerCoder makes the repairs of a script's peer.
type peerCoder struct {
	s   *script
	enc *fec.Encoder
	n   uint64
}

func newPeerCoder(t *testing.T, s *script) *peerCoder {
	t.Helper()
	enc, err := fec.NewEncoder(fec.Config{Epoch: s.c.repairEpoch(false)})
	if err != nil {
		t.Fatal(err)
	}
	return &peerCoder{s: s, enc: enc}
}

func (p *peerCoder) add(id uint64, records []byte) {
	if err := p.enc.Add(id, records); err != nil {
		p.s.t.Fatal(err)
	}
}

// repair delivers the next repair over span symbols.
func (p *peerCoder) repair(first uint64, span int) {
	p.s.t.Helper()
	p.s.deliver(p.s.repairDatagram(p.next(first, span)))
}

func (p *peerCoder) next(first uint64, span int) (fec.Repair, []byte) {
	p.s.t.Helper()
	r := fec.Sliding(first, span, p.n)
	p.n++
	payload, err := p.enc.AppendRepair(nil, r)
	if err != nil {
		p.s.t.Fatal(err)
	}
	return r, payload
}

func (s *script) repairDatagram(r fec.Repair, payload []byte) []byte {
	h := wire.Repair{First: wire.Truncate24(r.First), Span: r.Span, Seed: r.Seed}
	return s.datagram(wire.Short{Number: s.number(), Payload: wire.PayloadRepair}, append(wire.AppendRepair(nil, h), payload...))
}

// Restored symbols are delivered like received ones, and acks tell what packet
// numbers do not: equations, and symbols restored above a gap.
func TestRestoredSymbolsAreAcknowledged(t *testing.T) {
	s := newCoding(t, sliding(FECAdaptive), nil)
	p := newPeerCoder(t, s)
	for id := range uint64(6) {
		p.add(id, whole(fmt.Sprint("message ", id)))
	}
	// 0, 2 and 4 are lost.
	s.data(1, whole("message 1"))
	s.data(3, whole("message 3"))
	s.data(5, whole("message 5"))
	s.advance(ms)
	s.took()
	lastAck := func() *wire.Ack {
		t.Helper()
		s.advance(2 * ms)
		out := s.took()
		if len(out) == 0 || out[len(out)-1].ack == nil {
			t.Fatalf("sent %v, want an ack", out)
		}
		return out[len(out)-1].ack
	}
	p.repair(3, 2)
	if a := lastAck(); a.Next != 0 || a.Equations != 0 || fmt.Sprint(a.Symbols) != "[{4 4}]" {
		t.Errorf("symbol 4 is restored, the ack says next %d, %d equations, symbols %v", a.Next, a.Equations, a.Symbols)
	}
	p.repair(0, 6)
	if a := lastAck(); a.Next != 0 || a.Equations != 1 {
		t.Errorf("one equation is held, the ack says next %d, %d equations", a.Next, a.Equations)
	}
	p.repair(0, 6)
	if a := lastAck(); a.Next != 6 || a.Equations != 0 || len(a.Symbols) != 0 {
		t.Errorf("all is held, the ack says next %d, %d equations, symbols %v", a.Next, a.Equations, a.Symbols)
	}
	for id := range 6 {
		if m, ok, err := s.c.AppendMessage(nil); !ok || err != nil || string(m) != fmt.Sprint("message ", id) {
			t.Errorf("message %d reads %q, %v", id, m, err)
		}
	}
	if st := s.c.Stats().Repairs; st.Received != 3 || st.Used != 3 || st.Restored != 3 || st.Held != 0 {
		t.Errorf("counted %+v", st)
	}
}

// Repairs that were not announced are used all the same, from the first on.
func TestUnannouncedRepairs(t *testing.T) {
	s := newCoding(t, sliding(FECOff), func(_ *Config, p *wire.Params) { p.SendsRepairs = 0 })
	p := newPeerCoder(t, s)
	for id := range uint64(4) {
		p.add(id, whole(fmt.Sprint("message ", id)))
	}
	s.data(0, whole("message 0"))
	s.data(2, whole("message 2"))
	if s.c.restorer.dec != nil {
		t.Error("symbols are kept for repairs that nobody announced")
	}
	p.repair(1, 1)
	p.repair(3, 1)
	if s.c.recv.next != 4 {
		t.Errorf("next symbol %d after two repairs", s.c.recv.next)
	}
	p.repair(0, 2) // over what was not kept
	p.repair(2, 2)
	if st := s.c.Stats().Repairs; st.Restored != 2 || st.Received != 4 {
		t.Errorf("counted %+v", st)
	}
}

// Ten seconds of silence give the memory of both directions back, with a
// wake-up of its own, and the first burst afterwards is protected as ever.
func TestSilenceReleasesTheMemoryOfCoding(t *testing.T) {
	s := newCoding(t, ratio(FECSliding, 4, 1), func(c *Config, _ *wire.Params) { c.KeepAlive, c.DeadPeerTimeout = 0, 0 })
	p := newPeerCoder(t, s)
	next := uint64(0)
	burst := func() {
		t.Helper()
		for i := range uint64(4) {
			p.add(next+i, whole("four"))
			if i != 2 {
				s.data(wire.SymbolID(next+i), whole("four"))
			}
		}
		p.repair(next, 4)
		next += 4
		if got := s.c.recv.next; got != wire.SymbolID(next) {
			t.Fatalf("next symbol %d of %d", got, next)
		}
		s.took()
		first := int(s.c.send.next)
		s.send(4)
		s.advance(repairQuiet)
		if out := fmt.Sprint(repairsOf(s.took())); out != fmt.Sprint(repairNames(1, first, first+3)) {
			t.Fatalf("repairs %v after the burst", out)
		}
		s.advance(scriptRTT)
		s.deliver(s.ackDatagram(s.c.send.next, 1, uint64(s.c.sent.next)-1))
	}
	burst()
	burst()
	if s.c.retainedBytes() == 0 {
		t.Fatal("nothing is kept after a burst")
	}
	s.advance(fecSilence - time.Second)
	if s.c.retainedBytes() == 0 {
		t.Error("all is given back before its time")
	}
	s.advance(time.Second)
	if n := s.c.retainedBytes(); n != 0 {
		t.Errorf("%d bytes are kept after the silence", n)
	}
	if at, ok := s.c.NextTimeout(); ok {
		t.Errorf("an idle session wants to be woken in %v", at.sub(s.now))
	}
	burst()
	s.advance(time.Hour)
	burst()
}

// The memory of symbols that the peer does not hold is not given back: a repair
// may still be wanted.
func TestSilenceKeepsWhatIsUnknown(t *testing.T) {
	s := newCoding(t, ratio(FECSliding, 4, 1), func(c *Config, _ *wire.Params) { c.KeepAlive, c.DeadPeerTimeout = 0, 0 })
	s.send(4)
	s.advance(fecSilence + time.Second)
	if s.c.retainedBytes() == 0 {
		t.Error("the memory is given back while symbols are unknown")
	}
	s.deliver(s.ackDatagram(4, 1, 4))
	s.advance(fecSilence + time.Second)
	if n := s.c.retainedBytes(); n != 0 {
		t.Errorf("%d bytes are kept", n)
	}
}

// The list of repairs on their way does not grow while nothing is lost, so that
// nobody asks for it.
func TestRepairsOnTheirWayAreFew(t *testing.T) {
	s := newCoding(t, ratio(FECSliding, 1, 1), nil)
	for range 4000 {
		s.send(1)
		s.advance(ms)
		s.deliver(s.ackDatagram(s.c.send.next, 1, uint64(s.c.sent.next)-1))
	}
	s.took()
	if n := cap(s.c.repairs.live); n > 16 || s.c.Stats().Repairs.Sent != 4000 {
		t.Errorf("room for %d repairs after %d", n, s.c.Stats().Repairs.Sent)
	}
}
