package arq

import (
	"fmt"
	"testing"
	"time"

	"github.com/openarkstudio/arknet-go/internal/wire"
)

// Acks leave as soon as the sender can use them and no sooner: within 100 us
// where something is missing or fills a gap, else within a sixteenth of the
// least round trip, or with the sixteenth datagram.
func TestAckSchedule(t *testing.T) {
	const inOrder = scriptRTT / 16
	for _, tt := range []struct {
		name  string
		order []int           // packet numbers as they arrive
		apart []time.Duration // before each, the last value repeats
		after time.Duration   // of the ack, from the first arrival
		ack   string
	}{
		{"one", []int{0}, []time.Duration{0}, inOrder, "0"},
		{"two", []int{0, 1}, []time.Duration{0, ms}, inOrder, "0-1"},
		{"not restarted", []int{0, 1, 2, 3}, []time.Duration{0, 400 * us}, inOrder, "0-3"},
		{"sixteenth", []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, []time.Duration{0, 10 * us}, 150 * us, "0-15"},
		{"gap", []int{0, 2}, []time.Duration{0, 200 * us}, 300 * us, "0,2"},
		{"gap at the start", []int{1}, []time.Duration{0}, 100 * us, "1"},
		{"gap not restarted", []int{0, 2, 4, 6}, []time.Duration{0, 40 * us}, 140 * us, "0,2,4,6"},
		{"gap just before the timer", []int{0, 2}, []time.Duration{0, inOrder - 50*us}, inOrder, "0,2"},
		{"reordered", []int{1, 0}, []time.Duration{0, 90 * us}, 100 * us, "0-1"},
		{"in order after a gap was told", []int{0, 2, 3}, []time.Duration{0, 0, 200 * us}, 100 * us, "0,2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScript(t, nil)
			start := s.now
			for i, pn := range tt.order {
				s.advance(tt.apart[min(i, len(tt.apart)-1)])
				s.peer.next = wire.PacketNumber(pn)
				s.control(wire.AppendPing(nil))
			}
			s.advance(inOrder)
			out := s.took()
			if len(out) == 0 {
				t.Fatal("no ack left")
			}
			if got := rangesString(out[0].ack.Ranges); got != tt.ack {
				t.Errorf("ack of %s, want %s", got, tt.ack)
			}
			if got := out[0].at.sub(start); got != tt.after {
				t.Errorf("the ack left after %v, want %v", got, tt.after)
			}
		})
	}
}

// On a short path the in-order delay is 100 us.
func TestAckDelayOnAShortPath(t *testing.T) {
	s := newScript(t, nil)
	s.send(1)
	s.took()
	s.advance(200 * us)
	s.ack(1, 1)
	s.control(wire.AppendPing(nil))
	s.wantTimeout(100 * us)
}

// A fast flow one way gets an ack for every sixteenth datagram, and none of
// them waits for a pause.
func TestAcksOfAFastFlow(t *testing.T) {
	s := newScript(t, nil)
	for i := range 160 {
		s.data(wire.SymbolID(i), whole("x"))
		s.advance(10 * us)
	}
	if out := s.took(); len(out) != 10 || out[9].ack.Next != 160 {
		t.Errorf("%d acks of 160 datagrams, want 10", len(out))
	}
}

func TestDataCarriesTheAck(t *testing.T) {
	s := newScript(t, nil)
	s.data(0, whole("request"))
	s.send(1)
	out := s.took()
	if len(out) != 1 || out[0].ack == nil || rangesString(out[0].ack.Ranges) != "0" || out[0].ack.Next != 1 {
		t.Fatalf("sent %+v, want data with an ack", out)
	}
	s.advance(10 * ms)
	s.want() // no other ack
}

// The peer may have lost our ack when it sends a datagram twice.
func TestDuplicatesAreAckedAgain(t *testing.T) {
	s := newScript(t, nil)
	d := s.dataDatagram(0, whole("x"))
	s.deliver(d)
	s.advance(2 * ms)
	s.want("ack 0")
	s.deliver(d)
	s.wantTimeout(ackUrgentDelay)
	s.advance(ackUrgentDelay)
	s.want("ack 0")
	if n := s.c.Stats().Dropped.Duplicate; n != 1 {
		t.Errorf("%d duplicates counted", n)
	}
}

func TestAckDelayIsReported(t *testing.T) {
	s := newScript(t, nil)
	s.control(wire.AppendPing(nil))
	s.advance(ms)
	s.send(1)
	if d := s.took()[0].ack.Delay; d > ms || d < ms-16*us {
		t.Errorf("reported delay %v, want 1 ms", d)
	}
}

// A data datagram has room for eight ranges. The others follow in an ack of
// their own within 2 ms, also when nothing else happens.
func TestManyRangesAreReportedInFull(t *testing.T) {
	s := newScript(t, nil)
	for pn := range 20 {
		s.peer.next = wire.PacketNumber(2 * pn)
		s.control(wire.AppendPing(nil))
	}
	s.advance(3 * ms)
	s.peer.next = 40
	s.control(wire.AppendPing(nil))
	s.advance(ackUrgentDelay)
	s.took()
	s.peer.next = 42
	s.control(wire.AppendPing(nil))
	s.send(1)
	out := s.took()
	if len(out) != 1 || len(out[0].ack.Ranges) != dataAckRanges {
		t.Fatalf("sent %v with %d ranges", out, len(out[0].ack.Ranges))
	}
	s.advance(fullAckInterval)
	if out = s.took(); len(out) != 1 || len(out[0].ack.Ranges) != 22 {
		t.Fatalf("sent %v, want an ack of 22 ranges", out)
	}
	s.advance(10 * ms)
	s.want()
}

// Ranges that the peer was told of for one and a half to three round trips are
// left out, but never the newest one.
func TestOldRangesAreForgotten(t *testing.T) {
	s := newScript(t, nil)
	for pn := range 5 {
		s.peer.next = wire.PacketNumber(2 * pn)
		s.control(wire.AppendPing(nil))
	}
	for range 8 {
		s.peer.next = 8
		s.advance(scriptRTT)
		s.control(wire.AppendPing(nil)) // a duplicate
	}
	s.advance(ms)
	out := s.took()
	if got := rangesString(out[len(out)-1].ack.Ranges); got != "8" {
		t.Errorf("ack of %s after 8 round trips, want 8", got)
	}
	if got := rangesString(out[0].ack.Ranges); got != "0,2,4,6,8" {
		t.Errorf("first ack of %s", got)
	}
}

func TestReceivedRangesAreBounded(t *testing.T) {
	s := newScript(t, nil)
	for i := range 10_000 {
		s.peer.next = wire.PacketNumber(2 * i)
		s.control(wire.AppendPing(nil))
	}
	if n := len(s.c.acks.received.r); n > maxReceivedRanges {
		t.Errorf("%d ranges kept", n)
	}
	for _, d := range s.took() {
		if len(d.ack.Ranges) > wire.MaxAckRanges || d.size > s.c.cfg.MTU {
			t.Fatalf("an ack of %d ranges in %d bytes", len(d.ack.Ranges), d.size)
		}
	}
}

// Truncated packet numbers are told apart over the wrap at 2^24.
func TestPacketNumbersWrap(t *testing.T) {
	s := newScript(t, nil)
	const wrap = 1 << 24
	for pn := wire.PacketNumber(0); pn <= wrap; pn += wrap / 4 {
		s.peer.next = pn
		s.control(wire.AppendPing(nil))
	}
	for pn := wire.PacketNumber(wrap - 3); pn < wrap+3; pn++ {
		s.peer.next = pn
		s.control(wire.AppendPing(nil))
	}
	if s.c.acks.largest != wrap+2 {
		t.Fatalf("largest packet number %d, want %d", s.c.acks.largest, wrap+2)
	}
	if want := (wire.AckRange{Lo: wrap - 3, Hi: wrap + 2}); s.c.acks.received.r[len(s.c.acks.received.r)-1] != want {
		t.Errorf("received %v", s.c.acks.received.r)
	}
}

// A driver that wakes in time is never counted as late, even when a deadline
// has passed already as it moves.
func TestPromptDriverIsNeverLate(t *testing.T) {
	for _, name := range []string{"random", "sustained"} {
		r := runEcho(t, echoLoad{
			net: profile(t, name), payload: 4096, window: 16,
			warm: 0, measure: 3 * time.Second, clients: 1,
			inspect: func(c *Conn) {
				if c.loss.lateness != 0 {
					t.Error(fmt.Sprint(name, ": counted as late by ", c.loss.lateness))
				}
			},
		})
		if r.perSecond == 0 {
			t.Fatal("nothing came back")
		}
	}
}
