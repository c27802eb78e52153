package arq

import (
	"testing"
	"time"
)

// A packet counts as lost one tolerance after a later one was acknowledged: at
// least 2 ms and an eighth of the least round trip.
func TestLossByTime(t *testing.T) {
	s := newScript(t, nil)
	s.send(3)
	s.took()
	s.advance(scriptRTT)
	s.ack(2, 2) // packet 1 is overtaken, 3 is not
	const tolerance = scriptRTT / 8
	s.wantTimeout(tolerance)
	s.advance(tolerance - 1)
	s.want()
	s.advance(1)
	s.want("data 0")
	if st := s.c.Stats(); st.Lost != 1 || st.Retransmitted != 1 || st.LossTolerance != tolerance {
		t.Errorf("%d lost, %d sent again, tolerance %v", st.Lost, st.Retransmitted, st.LossTolerance)
	}
}

// The tolerance runs from the moment of being overtaken; further acks do not
// restart it.
func TestLossToleranceIsNotRestarted(t *testing.T) {
	s := newScript(t, nil)
	s.send(4)
	s.took()
	s.advance(scriptRTT)
	s.ack(2, 2)
	s.advance(ms)
	s.ack(2, 3)
	s.advance(ms)
	s.ack(2, 4)
	s.wantTimeout(scriptRTT/8 - 2*ms)
}

// All packets overtaken by one ack are lost at one time, and sent again in
// their order.
func TestLossOfARun(t *testing.T) {
	s := newScript(t, nil)
	s.send(8)
	s.took()
	s.advance(scriptRTT)
	s.ack(1, 1, 3, 3, 7, 7)
	s.advance(scriptRTT / 8)
	s.want("data 1", "data 3", "data 4", "data 5")
	if n := s.c.Stats().Lost; n != 4 {
		t.Errorf("%d packets lost", n)
	}
	s.advance(scriptRTT - scriptRTT/8)
	// Packets 9..12 carry them: acknowledging 11 overtakes 9 and 10, and 8.
	s.ack(11, 11)
	s.advance(scriptRTT / 8)
	s.want("data 1", "data 3", "data 7")
}

// A late ack takes the loss back; the copy that was sent meanwhile is not sent
// once more when it is lost.
func TestSpuriousLoss(t *testing.T) {
	s := newScript(t, nil)
	s.send(3)
	s.took()
	s.advance(scriptRTT)
	s.ack(2, 3)
	s.advance(4 * ms)
	s.want("data 0") // packet 4
	s.deliver(s.ackDatagram(3, 1, 3))
	st := s.c.Stats()
	if st.Lost != 1 || st.SpuriousLosses != 1 || !s.c.Flushed() {
		t.Fatalf("%d lost, %d of them wrongly, flushed %v", st.Lost, st.SpuriousLosses, s.c.Flushed())
	}
	if st.InFlight == 0 {
		t.Error("the copy does not count as in flight")
	}
	s.send(1)
	s.took()
	s.advance(scriptRTT)
	s.deliver(s.ackDatagram(4, 5, 5))
	s.advance(10 * ms)
	s.want()
	if st = s.c.Stats(); st.InFlight != 0 || st.Lost != 2 {
		t.Errorf("%d bytes in flight, %d lost", st.InFlight, st.Lost)
	}
}

// What the peer holds by word of its ack is not sent again even if the packet
// that carried it was lost.
func TestSymbolKnownByTheAck(t *testing.T) {
	s := newScript(t, nil)
	s.send(3)
	s.took()
	s.advance(scriptRTT)
	s.deliver(s.ackDatagram(3, 3, 3)) // packet numbers 1 and 2 are not listed
	s.advance(5 * ms)
	s.want()
	if !s.c.Flushed() || s.c.inFlight != 0 {
		t.Errorf("flushed %v with %d bytes in flight", s.c.Flushed(), s.c.inFlight)
	}
}

// The tolerance grows to the 99th percentile of the reordering that is seen,
// and no further than half the least round trip.
func TestLossToleranceLearns(t *testing.T) {
	for _, tt := range []struct {
		name   string
		min    time.Duration
		extent func(i int) time.Duration
		lo, hi time.Duration
	}{
		{"no reordering", 20 * ms, func(int) time.Duration { return 0 }, 2500 * us, 2500 * us},
		{"short path", 100 * us, func(int) time.Duration { return 0 }, 2 * ms, 2 * ms},
		{"5 ms often", 20 * ms, func(i int) time.Duration { return time.Duration(i%3) * 2500 * us }, 5 * ms, 6300 * us},
		{"5 ms in 1 of 200", 20 * ms, func(i int) time.Duration {
			if i%200 == 0 {
				return 5 * ms
			}
			return 0
		}, 2500 * us, 2500 * us},
		{"15 ms late, not learned", 20 * ms, func(i int) time.Duration { return time.Duration(i%20/19) * 15 * ms }, 2500 * us, 2500 * us},
		{"short path, 4 ms", 100 * us, func(i int) time.Duration { return time.Duration(i%2) * 4 * ms }, 4 * ms, 5 * ms},
		{"short path, 6 ms", 100 * us, func(i int) time.Duration { return time.Duration(i%2) * 6 * ms }, 2 * ms, 2 * ms},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, r := newLossState(), newRTTState()
			r.sample(1, tt.min)
			for i := range 1024 {
				l.observeExtent(tt.extent(i), &r)
			}
			if got := l.tolerance(&r); got < tt.lo || got > tt.hi {
				t.Errorf("tolerance %v, want %v to %v", got, tt.lo, tt.hi)
			}
		})
	}
}

// While the driver wakes late, acks wait in its socket: the tolerance grows at
// once by the lateness, and shrinks again.
func TestLatenessOfTheDriver(t *testing.T) {
	s := newScript(t, nil)
	s.send(4)
	s.took()
	s.advance(scriptRTT)
	s.ack(2, 2)
	const late = 3 * ms
	s.now = s.now.add(scriptRTT/8 + late)
	s.c.HandleTimeout(s.now)
	s.drain()
	s.want("data 0")
	if got := s.c.Stats().LossTolerance; got != scriptRTT/8+late {
		t.Errorf("tolerance %v", got)
	}
	s.ack(2, 2, 4, 4)
	s.wantTimeout(scriptRTT/8 + late)
	var l lossState
	r := newRTTState()
	l.observeLateness(time.Hour, &r)
	if l.lateness != lossToleranceCeiling {
		t.Errorf("lateness %v after an hour", l.lateness)
	}
	for range 100 {
		l.observeLateness(0, &r)
	}
	if l.lateness > 100*us {
		t.Errorf("lateness %v after 100 prompt wake-ups", l.lateness)
	}
}

// A deadline that had passed when it was asked for makes nobody late.
func TestPassedDeadlineIsNotLateness(t *testing.T) {
	s := newScript(t, nil)
	s.deliver(s.dataDatagram(0, whole("x")))
	s.now = s.now.add(5 * ms) // the ack was due
	s.c.HandleDatagram(s.now, s.dataDatagram(1, whole("y")))
	s.c.NextTimeout()
	s.c.HandleTimeout(s.now)
	if s.c.loss.lateness != 0 {
		t.Errorf("late by %v", s.c.loss.lateness)
	}
}

func TestMissRate(t *testing.T) {
	m := newMissRate()
	for i := range 5000 {
		m.observe(i%10 == 0)
	}
	if r := float64(m.rate) / missRateOne; r < 0.06 || r > 0.15 {
		t.Errorf("miss rate %.3f of 1 in 10", r)
	}
	for range 5000 {
		m.observe(false)
	}
	if r := float64(m.rate) / missRateOne; r > 0.001 {
		t.Errorf("miss rate %.4f after 5000 packets without a miss", r)
	}
}
