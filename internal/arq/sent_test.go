package arq

import (
	"testing"
	"time"

	"github.com/openarkstudio/arknet-go/internal/wire"
)

func TestSentLogKeepsUnresolvedPackets(t *testing.T) {
	l := sentLog{limit: 1 << 10}
	for range 100 {
		l.push()
	}
	for pn := range wire.PacketNumber(100) {
		p := l.at(pn)
		p.sent = Time(pn) + 1
		switch {
		case pn < 10:
			p.acked = true
		case pn < 20:
			p.lost = true
		case pn > 20:
			p.acked = true
		}
	}
	l.acked.add(0, 9)
	l.acked.add(21, 99)
	l.forget(15)
	if l.base != 14 {
		t.Errorf("base %d, want 14: lost packets stay until a late ack is unlikely", l.base)
	}
	l.forget(never)
	if l.base != 20 || l.len() != 80 || l.acked.contains(9) || !l.acked.contains(21) {
		t.Errorf("base %d with %d packets, want 20 with 80", l.base, l.len())
	}
	l.at(20).acked = true
	l.forget(0)
	if l.len() != 0 || l.base != 100 {
		t.Errorf("%d packets left from %d", l.len(), l.base)
	}
}

// A log full of packets that were lost a moment ago makes room at once.
func TestFullLogForgetsSettledPackets(t *testing.T) {
	s := newScript(t, nil)
	s.c.sent.limit = 8
	s.send(12)
	if n := len(s.took()); n != 8 {
		t.Fatalf("%d packets left, the log holds 8", n)
	}
	s.advance(scriptRTT)
	s.ack(8, 8) // 1..7 are overtaken, and lost 2.5 ms later
	s.advance(3 * ms)
	if n := len(s.took()); n != 8 {
		t.Fatalf("%d packets left after the losses, want 8", n)
	}
	if n := s.c.sent.len(); n != 8 {
		t.Errorf("%d packets watched, want 8", n)
	}
}

// An outage without an end fills the log with probes. They go on, and the
// session heals.
func TestProbesGoOnWhenTheLogIsFull(t *testing.T) {
	s := newScript(t, func(c *Config, _ *wire.Params) { c.DeadPeerTimeout = 0 })
	s.c.sent.limit = 32
	s.send(4)
	s.advance(10 * time.Minute)
	out := s.took()
	if last := out[len(out)-1]; s.now.sub(last.at) > maxPTO+scriptRTT {
		t.Fatalf("no probe for %v", s.now.sub(last.at))
	}
	if n := s.c.sent.len(); n > 32 {
		t.Errorf("%d packets watched, the log holds 32", n)
	}
	last := uint64(s.c.sent.next - 1)
	s.advance(scriptRTT)
	s.deliver(s.ackDatagram(4, last, last))
	if !s.c.Flushed() {
		t.Error("the data is acknowledged and still counts as unsent")
	}
	s.advance(time.Second)
	if s.c.inFlight != 0 {
		t.Errorf("%d bytes in flight after all was acknowledged", s.c.inFlight)
	}
}

// The CLOSE leaves although the log is full, and the session ends.
func TestCloseWithAFullLog(t *testing.T) {
	s := newScript(t, nil)
	s.c.sent.limit = 4
	s.send(8)
	s.took()
	s.c.Abort(s.now, 7, "bye")
	s.drain()
	s.want("close 7 bye")
	s.advance(time.Minute)
	if n := len(s.took()); n != closeTries-1 || s.c.State() != StateDone {
		t.Errorf("%d repeats, state %d", n, s.c.State())
	}
}
