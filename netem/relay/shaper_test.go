package relay

import (
	"testing"
	"time"

	"github.com/openarkstudio/arknet-go/netem"
)

func shaperOf(t *testing.T, cfg netem.Config) *shaper {
	t.Helper()
	link, err := netem.NewLink(netem.Config{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	s := newShaper(link, DefaultRouteBytes)
	if err := s.set(0, cfg); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestShaperDelayAndRate(t *testing.T) {
	s := shaperOf(t, netem.Config{Delay: 10 * ms, Rate: 8_000_000}) // 1,000 B/ms
	for i := range 100 {
		if at := s.admit(0, 1000); at != time.Duration(i+1)*ms+10*ms {
			t.Fatalf("chunk %d arrives at %v", i, at)
		}
	}
	if at := s.admit(time.Second, 2000); at != 1012*ms {
		t.Errorf("after an idle time: %v", at)
	}
}

func TestShaperNeverDrops(t *testing.T) {
	s := shaperOf(t, netem.Config{Rate: 1000, QueueBytes: 1})
	for range 1000 {
		s.admit(0, 65536)
	}
	if st := s.link.Stats(); st.Delivered != st.Offered {
		t.Errorf("%+v", st)
	}
}

func TestShaperHoldsDataThroughOutages(t *testing.T) {
	s := shaperOf(t, netem.Config{Delay: ms, Outages: []netem.Outage{
		{Start: 10 * ms, Duration: 10 * ms},
		{Start: 20 * ms, Duration: 5 * ms}, // follows at once
	}})
	for _, tt := range []struct{ now, want time.Duration }{
		{0, ms}, {9 * ms, 10 * ms}, {10 * ms, 26 * ms}, {15 * ms, 26 * ms}, {24 * ms, 26 * ms}, {25 * ms, 26 * ms}, {30 * ms, 31 * ms},
	} {
		if at := s.admit(tt.now, 1); at != tt.want {
			t.Errorf("at %v: arrives at %v, want %v", tt.now, at, tt.want)
		}
	}
}

func TestShaperLimit(t *testing.T) {
	for _, tt := range []struct {
		cfg  netem.Config
		want int
	}{
		{netem.Config{}, DefaultRouteBytes},
		{netem.Config{Delay: time.Second}, DefaultRouteBytes},
		{netem.Config{Rate: 8_000_000, QueueBytes: 1000}, 1000},
		{netem.Config{Rate: 8_000_000, QueueBytes: 1000, Delay: 10 * ms}, 11_000},
		{netem.Config{Rate: 8_000_000}, netem.DefaultQueueBytes},
		{netem.Config{Rate: 1_000_000_000_000, Delay: time.Hour}, DefaultRouteBytes},
	} {
		if got := shaperOf(t, tt.cfg).limit(); got != tt.want {
			t.Errorf("%+v: limit %d, want %d", tt.cfg, got, tt.want)
		}
	}
}

func TestShaperChunk(t *testing.T) {
	s := shaperOf(t, netem.Config{})
	size := minChunk
	for range 10 {
		size = s.chunk(size, size)
	}
	if size != maxChunk {
		t.Errorf("full reads lead to %d", size)
	}
	for range 10 {
		size = s.chunk(1, size)
	}
	if size != minChunk {
		t.Errorf("short reads lead to %d", size)
	}
	slow := shaperOf(t, netem.Config{Rate: 8_000_000})
	if got := slow.chunk(maxChunk, maxChunk); got != 10_000 {
		t.Errorf("chunk %d at 1,000 B/ms", got)
	}
	slowest := shaperOf(t, netem.Config{Rate: 1000})
	if got := slowest.chunk(512, 512); got != 512 {
		t.Errorf("chunk %d at 1 kbit/s", got)
	}
}
