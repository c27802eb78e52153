package arq

import (
	"testing"
	"time"

	"github.com/openarkstudio/arknet-go/netem"
)

func profile(t testing.TB, name string) netem.Config {
	t.Helper()
	c, err := netem.Profile(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// with returns the condition changed.
func with(c netem.Config, change func(*netem.Config)) netem.Config {
	change(&c)
	return c
}

// The closed loop of four clients keeps its shape: what retransmission alone
// can reach on a path, at what cost in bytes and in the tail. The rates are
// those of four clients; one or more of them are simulated.
func TestEchoShape(t *testing.T) {
	random, burst, sustained := profile(t, "random"), profile(t, "burst"), profile(t, "sustained")
	lossy := func(loss float64) netem.Config {
		return with(random, func(c *netem.Config) { c.Loss = loss })
	}
	jittery := func(jitter time.Duration) netem.Config {
		return netem.Config{Delay: 10 * ms, Jitter: jitter, JitterReorders: true}
	}
	for _, tt := range []struct {
		name            string
		net             netem.Config
		payload, window int
		clients         int
		measure         time.Duration // in milliseconds

		perSecond float64       // at least
		p99       time.Duration // at most
		overhead  float64       // at most, in percent
	}{
		{"random", random, 1024, 16, 4, 4000, 1450, 95 * ms, 16},
		{"burst", burst, 1024, 16, 4, 2000, 1850, 75 * ms, 12},
		{"sustained", sustained, 1024, 16, 4, 2000, 1550, 92 * ms, 15},
		{"sustained 4096 B", sustained, 4096, 16, 2, 1500, 1070, 115 * ms, 15},
		{"random window 64", random, 1024, 64, 3, 2000, 4250, 120 * ms, 15.5},
		{"random 64 B window 1", random, 64, 1, 4, 10000, 157, 62 * ms, 79},
		{"random 64 B window 64", random, 64, 64, 2, 3000, 8000, 85 * ms, 17},
		{"random 1024 B window 1", random, 1024, 1, 4, 10000, 157, 62 * ms, 26},
		{"random 4096 B window 1", random, 4096, 1, 4, 4000, 109, 90 * ms, 15},
		{"random 4096 B window 64", random, 4096, 64, 3, 1500, 3300, 165 * ms, 17},
		{"random 16384 B window 1", random, 16384, 1, 4, 2000, 66, 122 * ms, 15},
		{"random 16384 B window 64", random, 16384, 64, 1, 1500, 2600, 150 * ms, 18},
		{"loss 0", lossy(0), 1024, 16, 2, 2000, 2200, 52 * ms, 8.5},
		{"loss 1", lossy(0.01), 1024, 16, 2, 2000, 2000, 61 * ms, 9.5},
		{"loss 10", lossy(0.10), 1024, 16, 4, 2000, 1120, 130 * ms, 21.5},
		{"loss 20", lossy(0.20), 1024, 16, 4, 4000, 780, 182 * ms, 36.5},
		{"clean", netem.Config{Delay: 10 * ms}, 1024, 16, 1, 1000, 3190, 20100 * us, 3},
		{"jitter 1 ms", jittery(ms), 1024, 16, 1, 2000, 2950, 23 * ms, 4},
		{"jitter 5 ms", jittery(5 * ms), 1024, 16, 2, 2000, 2380, 31 * ms, 10},
		{"jitter 5 ms 64 B window 64", jittery(5 * ms), 64, 64, 2, 2000, 9700, 31 * ms, 10},
		{"jitter 5 ms 4096 B window 64", jittery(5 * ms), 4096, 64, 1, 500, 8500, 33 * ms, 10},
		{"jitter 0.5 ms 4096 B window 64", jittery(500 * us), 4096, 64, 1, 500, 11500, 23 * ms, 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			heavy(t, tt.payload*tt.window >= 64<<10)
			t.Parallel()
			r := runEcho(t, echoLoad{
				net: tt.net, payload: tt.payload, window: tt.window,
				warm: time.Second, measure: tt.measure * ms, clients: tt.clients,
			})
			if r.perSecond < tt.perSecond {
				t.Errorf("%.0f round trips/s, want at least %.0f", r.perSecond, tt.perSecond)
			}
			if r.p99 > tt.p99 {
				t.Errorf("p99 %v, want at most %v", r.p99, tt.p99)
			}
			if 100*r.overhead > tt.overhead {
				t.Errorf("overhead %.1f %%, want at most %.1f", 100*r.overhead, tt.overhead)
			}
			t.Logf("%.0f/s p50 %v p95 %v p99 %v overhead %.1f %%", r.perSecond, r.p50, r.p95, r.p99, 100*r.overhead)
		})
	}
}
