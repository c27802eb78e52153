package netem

import (
	"testing"
	"time"
)

func TestRateSpacesDatagrams(t *testing.T) {
	// 1,250 B at 10 Mbit/s take 1 ms.
	l := mustLink(t, Config{Rate: 10_000_000, QueueBytes: 1 << 20, Delay: 10 * ms}, 1)
	for i := range 100 {
		f := l.Transmit(0, 1250)
		if at := f.Delivered()[0].At; at != time.Duration(i+1)*ms+10*ms {
			t.Fatalf("datagram %d arrives at %v", i, at)
		}
	}
	f := l.Transmit(500*ms, 1250)
	if at := f.Delivered()[0].At; at != 511*ms {
		t.Errorf("after an idle time: %v", at)
	}
}

func TestRateIsExactOverLongRuns(t *testing.T) {
	// Each datagram takes 1/3 of a nanosecond more than a whole number.
	l := mustLink(t, Config{Rate: 3_000_000_000, QueueBytes: 1 << 30}, 1)
	var last time.Duration
	const n = 300_000
	for range n {
		f := l.Transmit(0, 1)
		last = f.Delivered()[0].At
	}
	if want := time.Duration(n * 8 / 3); last != want {
		t.Errorf("the last of %d leaves at %v, want %v", n, last, want)
	}
}

func TestQueueingDelayGrowsToTailDrop(t *testing.T) {
	// 1 Mbit/s and 100 KB: 0.8 s of queue, then drops; never a fixed delay.
	cfg := Config{Rate: 1_000_000, QueueBytes: 100_000}
	l := mustLink(t, cfg, 1)
	var delay, largest time.Duration
	dropped := false
	for i := range 2000 { // 1,000 B per ms is 8 times the rate
		now := time.Duration(i) * ms
		f := l.Transmit(now, 1000)
		if f.Cause == LostQueue {
			dropped = true
			continue
		}
		d := f.Delivered()[0].At - now
		if !dropped && d <= delay {
			t.Fatalf("datagram %d: delay %v after %v while the queue fills", i, d, delay)
		}
		delay = d
		largest = max(largest, d)
	}
	if !dropped {
		t.Error("no tail drop at 8 times the rate")
	}
	if largest < 790*ms || largest > 800*ms {
		t.Errorf("largest delay %v, want just under 800 ms", largest)
	}
	s := l.Stats()
	if s.QueuePeakBytes > 100_000 || s.QueuePeakBytes < 99_000 {
		t.Errorf("peak %d B", s.QueuePeakBytes)
	}
	// 2 s at 125,000 B/s, and what is queued at the end.
	if d := s.Delivered.Bytes; d < 345_000 || d > 351_000 {
		t.Errorf("%d B delivered, want about 350,000", d)
	}
}

func TestQueuePackets(t *testing.T) {
	l := mustLink(t, Config{Rate: 8_000_000, QueuePackets: 5}, 1) // 1,000 B take 1 ms
	for i := range 7 {
		f := l.Transmit(0, 1000)
		if (f.Cause == LostQueue) != (i >= 5) {
			t.Errorf("datagram %d: %v", i, f.Cause)
		}
	}
	if f := l.Transmit(ms, 1000); f.Cause != None {
		t.Error("dropped although one has left")
	}
	if f := l.Transmit(ms, 1000); f.Cause != LostQueue {
		t.Error("accepted beyond the limit")
	}
	if err := l.SetConfig(ms, Config{Rate: 8_000_000, QueuePackets: 6}); err != nil {
		t.Fatal(err)
	}
	if f := l.Transmit(ms, 1000); f.Cause != None {
		t.Error("dropped although the limit was raised")
	}
	if f := l.Transmit(ms, 1000); f.Cause != LostQueue {
		t.Error("the raised limit forgot what waits")
	}
}

func TestIdleLinkTakesDatagramLargerThanItsQueue(t *testing.T) {
	l := mustLink(t, Config{Rate: 1_000_000, QueueBytes: 500}, 1)
	if f := l.Transmit(0, 1200); f.Cause != None {
		t.Errorf("dropped: %v", f.Cause)
	}
	if f := l.Transmit(0, 1200); f.Cause != LostQueue {
		t.Errorf("accepted behind another: %v", f.Cause)
	}
}

func TestPolicerDropsAndDoesNotDelay(t *testing.T) {
	l := mustLink(t, Config{Rate: 8_000_000, QueueBytes: 10_000, Police: true, Delay: ms}, 1)
	n := 10_000
	for i := range n { // 2,000 B per ms is twice the rate
		now := time.Duration(i) * ms / 2
		f := l.Transmit(now, 1000)
		for _, c := range f.Delivered() {
			if c.At != now+ms {
				t.Fatalf("datagram %d delayed to %v", i, c.At)
			}
		}
	}
	got := l.Stats().Delivered.Datagrams
	if want := uint64(n/2 + 10); got < want-2 || got > want+2 {
		t.Errorf("%d passed, want about %d", got, want)
	}
}

func TestDuplicatesTakeNoRoomInTheQueue(t *testing.T) {
	l := mustLink(t, Config{Rate: 8_000_000, Duplicate: 1}, 1)
	for i := range 10 {
		f := l.Transmit(0, 1000)
		for _, c := range f.Delivered() {
			if c.At != time.Duration(i+1)*ms {
				t.Fatalf("copy of %d at %v", i, c.At)
			}
		}
	}
}

func TestExtremeRatesDoNotOverflow(t *testing.T) {
	for _, rate := range []int64{minRate, maxRate} {
		l := mustLink(t, Config{Rate: rate, QueueBytes: maxQueueBytes}, 1)
		var last time.Duration
		for range 20 {
			f := l.Transmit(0, maxSize)
			for _, c := range f.Delivered() {
				if c.At <= last {
					t.Fatalf("rate %d: %v after %v", rate, c.At, last)
				}
				last = c.At
			}
		}
		if s := l.Stats(); !s.Balanced() {
			t.Errorf("rate %d: %+v", rate, s)
		}
	}
}
