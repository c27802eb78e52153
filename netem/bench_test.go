package netem

import (
	"testing"
	"time"
)

func TestTransmitDoesNotAllocate(t *testing.T) {
	cfg, _ := Profile("sustained")
	cfg.Jitter, cfg.Corrupt, cfg.Rate, cfg.QueuePackets = ms, 0.1, 1e6, 100
	cfg.Outages = []Outage{{Duration: ms, Every: 10 * ms}}
	l := mustLink(t, cfg, 1)
	var now time.Duration
	b := make([]byte, 1200)
	if n := testing.AllocsPerRun(1000, func() {
		now += ms
		f := l.Transmit(now, len(b))
		for _, c := range f.Delivered() {
			c.Damage(b)
		}
	}); n != 0 {
		t.Errorf("%v allocations per datagram", n)
	}
}

func BenchmarkTransmit(b *testing.B) {
	all, _ := Profile("sustained")
	all.Jitter, all.Corrupt, all.Rate = ms, 0.01, 1e9
	all.GilbertElliott = GilbertElliott{GoodToBad: 0.01, BadToGood: 0.3}
	random, _ := Profile("random")
	for _, bb := range []struct {
		name string
		cfg  Config
	}{{"none", Config{}}, {"random", random}, {"everything", all}} {
		b.Run("profile="+bb.name, func(b *testing.B) {
			l := mustLink(b, bb.cfg, 1)
			b.ReportAllocs()
			var now time.Duration
			for b.Loop() {
				now += 10 * time.Microsecond
				f := l.Transmit(now, 1200)
				if f.Cause > numCauses {
					b.Fatal(f)
				}
			}
		})
	}
}
