package arq

import "testing"

// With coding on nothing is allocated per message in steady state, at the
// number of symbols in flight that a real path has.
func TestCodingDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes pools forget")
	}
	for _, tt := range []struct {
		name         string
		size, window int
		change       func(*Config)
		limit        float64 // allocations per 50 round trips
	}{
		{"adaptive", 1024, 16, func(c *Config) { c.FEC = balanced }, 1},
		{"adaptive 64 B", 64, 64, func(c *Config) { c.FEC = balanced }, 1},
		{"adaptive window 1", 1024, 1, func(c *Config) { c.FEC = balanced }, 1},
		{"fast", 1024, 16, func(c *Config) { c.FEC = fast }, 1},
		{"fixed", 1024, 16, func(c *Config) { c.FEC = sliding(FECFixed) }, 1},
		{"block", 1024, 16, func(c *Config) { c.FEC = block(FECFixed) }, 1},
		// What a decoder keeps follows how far repairs reach back, which varies here.
		{"coded", 1024, 16, func(c *Config) { c.FEC.Retain, c.Retransmit = 512<<10, RetransmitCoded }, 10},
		{"shared memory", 1024, 16, func(c *Config) { c.FEC, c.CodingMemory = balanced, &budget{limit: 1 << 20} }, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newLossyPath(t, 10*ms, 20, tt.change)
			p.fill(make([]byte, tt.size), tt.window)
			p.roundTrips(4000)
			if n := testing.AllocsPerRun(20, func() { p.roundTrips(50) }); n >= tt.limit {
				t.Errorf("%v allocations per 50 round trips", n)
			}
			for _, c := range p.side {
				if err := checkCoding(c); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
