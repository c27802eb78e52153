package arq

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/openarkstudio/arknet-go/netem"
)

// Whatever the two ends are set to, data flows both ways without a stall, and
// each direction has the repairs that its sender makes and its receiver takes.
func TestDifferentSettings(t *testing.T) {
	settings := []struct {
		name  string
		sends bool // repairs, if the peer takes them
		takes bool
		set   func(*Config)
	}{
		{"no retention", false, false, func(c *Config) { c.FEC = ratio(FECSliding, 10, 3); c.FEC.Retain = 0 }},
		{"off", false, true, func(c *Config) { c.FEC.Retain = 512 << 10 }},
		{"coded", true, true, func(c *Config) { c.FEC.Retain, c.Retransmit = 512<<10, RetransmitCoded }},
		{"adaptive", true, true, func(c *Config) { c.FEC = balanced }},
		{"adaptive block", true, true, func(c *Config) { c.FEC = block(FECAdaptive) }},
		{"fixed 10+3", true, true, func(c *Config) { c.FEC = ratio(FECSliding, 10, 3) }},
		{"block 20+10", true, true, func(c *Config) { c.FEC = ratio(FECBlock, 20, 10) }},
		{"block 1+1", true, true, func(c *Config) { c.FEC = ratio(FECBlock, 1, 1) }},
		{"block 128+64", true, true, func(c *Config) { c.FEC = ratio(FECBlock, 128, 64) }},
		{"small retention, small MTU", true, true, func(c *Config) {
			c.FEC = balanced
			c.FEC.Retain, c.MTU = 16<<10, MinMTU
		}},
		{"large MTU", true, true, func(c *Config) { c.FEC, c.MTU = balanced, 9000 }},
	}
	for i, a := range settings {
		for j, b := range settings {
			for _, both := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s and %s, both ways %v", a.name, b.name, both), func(t *testing.T) {
					s, client, server := newPair(t, netem.Config{Delay: 10 * ms, Loss: 0.05}, uint64(1+i*len(settings)+j), func(cc, sc *Config) {
						a.set(cc)
						b.set(sc)
					})
					sides := []*node{client, server}
					var next [2]uint64
					var last, stall [2]Time
					for k, x := range sides {
						x.onMessage = func(m []byte) {
							if got := binary.BigEndian.Uint64(m); got != next[k] || len(m) != 700+int(got)%900 {
								t.Fatalf("message %d of %d bytes, want %d", got, len(m), next[k])
							}
							next[k]++
							stall[k] = max(stall[k], s.now-last[k])
							last[k] = s.now
						}
					}
					m := make([]byte, 2000)
					sent := uint64(0)
					var tick func()
					tick = func() {
						for k, x := range sides {
							if k == 1 && !both || x.c == nil || x.c.State() != StateOpen || server.c == nil || server.c.State() != StateOpen {
								continue
							}
							binary.BigEndian.PutUint64(m, sent)
							x.send(m[:700+int(sent)%900])
							last[1-k] = max(last[1-k], 1)
						}
						if server.c != nil && server.c.State() == StateOpen {
							sent++
						}
						if sent < 150 {
							s.after(5*ms, tick)
						}
					}
					s.after(0, tick)
					s.runFor(3 * time.Second)
					if next[1] != 150 || both && next[0] != 150 {
						t.Errorf("%d and %d messages came of 150", next[1], next[0])
					}
					for k := range stall {
						if stall[k].sub(0) > time.Second {
							t.Errorf("a stall of %v", stall[k].sub(0))
						}
					}
					for k, from := range []struct{ sends, takes bool }{{a.sends, b.takes}, {b.sends, a.takes}} {
						st := sides[k].c.Stats().Repairs
						got := sides[1-k].c.Stats().Repairs
						if want := from.sends && from.takes && (both || k == 0); want != (st.Sent+st.SentCoded > 0) || want != (got.Received > 0) {
							t.Errorf("side %d: %d repairs sent, %d received", k, st.Sent+st.SentCoded, got.Received)
						}
						if err := errors.Join(checkConn(sides[k].c), checkCoding(sides[k].c)); err != nil {
							t.Error(err)
						}
						if d := sides[k].c.Stats().Dropped; d.Malformed+d.Stale+d.Window+d.Memory > 0 {
							t.Errorf("side %d dropped %+v", k, d)
						}
					}
				})
			}
		}
	}
}
