package arq

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openarkstudio/arknet-go/fec"
	"github.com/openarkstudio/arknet-go/internal/wire"
)

// newCoding opens a script whose peer takes repairs and announces its own.
func newCoding(t *testing.T, cfg FECConfig, change func(*Config, *wire.Params)) *script {
	t.Helper()
	return newScript(t, func(c *Config, p *wire.Params) {
		c.FEC = cfg
		p.MaxRepairSpan, p.SendsRepairs = wire.MaxRepairSpan, 1
		if change != nil {
			change(c, p)
		}
	})
}

// ratio is a fixed policy of parity repairs per data symbols.
func ratio(scheme FECScheme, data, parity int) FECConfig {
	c := sliding(FECFixed)
	c.Scheme, c.Data, c.Parity, c.ParityLimit, c.Budget = scheme, data, parity, 64, 1000
	return c
}

func dataNames(from, to int) (names []string) {
	for id := from; id <= to; id++ {
		names = append(names, fmt.Sprint("data ", id))
	}
	return names
}

func repairNames(n, from, to int) []string {
	return slices.Repeat([]string{fmt.Sprintf("repair %d-%d", from, to)}, n)
}

// repairsOf returns the repairs among datagrams.
func repairsOf(sent []sentDatagram) []sentDatagram {
	return slices.DeleteFunc(sent, func(d sentDatagram) bool { return d.payload != wire.PayloadRepair })
}

// A burst is paid for 100 us after its last symbol, to the last fraction: what
// it got too much the next one goes without.
func TestRepairsFollowABurst(t *testing.T) {
	s := newCoding(t, ratio(FECSliding, 4, 1), nil)
	s.send(3)
	s.want("data 0", "data 1", "data 2")
	s.advance(repairQuiet - 1)
	s.want()
	s.advance(1)
	s.want("repair 0-2")
	s.advance(ms)
	s.send(1)
	s.advance(repairQuiet)
	s.want("data 3") // 0.75 were owed for the burst before, and one was paid
	s.send(1)
	s.advance(repairQuiet)
	s.want("data 4", "repair 0-4")
	if st := s.c.Stats().Repairs; st.Sent != 2 || st.BytesSent == 0 {
		t.Errorf("%d repairs of %d bytes are counted as sent", st.Sent, st.BytesSent)
	}
}

// A burst that does not pause is paid for at every 16th symbol.
func TestRepairsInsideALongBurst(t *testing.T) {
	s := newCoding(t, ratio(FECSliding, 4, 1), nil)
	s.send(20)
	s.want(slices.Concat(dataNames(0, 15), repairNames(4, 0, 15), dataNames(16, 19))...)
	s.advance(repairQuiet)
	s.want("repair 0-19")
}

// A stream of symbols without a pause gets its repairs as well.
func TestRepairsWithoutAPause(t *testing.T) {
	s := newCoding(t, ratio(FECSliding, 32, 1), func(c *Config, _ *wire.Params) {
		c.Congestion, c.MaxRate = FixedRate{}, 100<<20
	})
	for range 640 {
		s.send(1)
		s.now = s.now.add(50 * us)
		if at, ok := s.c.NextTimeout(); ok && at <= s.now {
			s.c.HandleTimeout(s.now)
			s.drain()
		}
	}
	if n := len(repairsOf(s.took())); n < 17 || n > 21 {
		t.Errorf("%d repairs of 640 symbols at 1 to 32", n)
	}
}

// Repairs cover what the peer is not known to hold, no more, and the latest of
// it if the peer's window is shorter.
func TestWindowOfARepair(t *testing.T) {
	for _, tt := range []struct {
		widest uint64
		sent   int
		acked  uint64 // packets 1 to acked
		want   string
	}{
		{wire.MaxRepairSpan, 8, 0, "repair 0-7"},
		{wire.MaxRepairSpan, 8, 5, "repair 5-7"},
		{wire.MaxRepairSpan, 150, 0, "repair 22-149"},
		{3, 8, 0, "repair 5-7"},
		{1, 8, 0, "repair 7-7"},
		{wire.MaxNumber, 150, 0, "repair 22-149"}, // no peer can take so much; a window has 128
	} {
		t.Run(fmt.Sprint(tt), func(t *testing.T) {
			s := newCoding(t, ratio(FECSliding, 128, 1), func(c *Config, p *wire.Params) {
				p.MaxRepairSpan = tt.widest
				c.Congestion, c.MaxRate = FixedRate{}, 100<<20
			})
			s.send(tt.sent)
			s.advance(5 * ms)
			if tt.acked > 0 {
				s.ack(1, tt.acked)
			}
			s.took()
			s.c.repairs.debt = missRateOne
			s.c.repairs.flushAt = s.now
			s.advance(0)
			s.want(tt.want)
		})
	}
}

// Profile fast repairs each burst of a nearly idle session, however good the
// path is; but not where the window is what is small.
func TestSmallBurstsGetARepair(t *testing.T) {
	s := newCoding(t, fast, nil)
	s.c.loss.missRate.rate, s.c.repairs.unknown = 0, 256
	for id := range 4 {
		s.send(1)
		s.advance(repairQuiet)
		s.want(fmt.Sprint("data ", id), fmt.Sprintf("repair 0-%d", id))
	}
	s.send(1)
	s.advance(repairQuiet)
	s.want("data 4") // five symbols are unknown
	s.deliver(s.ackDatagram(5, 1, uint64(s.c.sent.next)-1))
	s.c.cc = &NewReno{window: 3 * packetSize}
	s.send(4)
	s.advance(repairQuiet)
	s.want("data 5", "data 6", "data 7") // the fourth waits for the window
}

// What leaves as a repair restores what it says it does.
func TestRepairsRestore(t *testing.T) {
	for _, scheme := range []FECScheme{FECSliding, FECBlock} {
		s := newCoding(t, ratio(scheme, 4, 2), nil)
		for i := range 4 {
			if _, err := s.c.Send(s.now, bytes.Repeat([]byte{byte(i)}, 200*i)); err != nil {
				t.Fatal(err)
			}
			s.drain()
		}
		s.advance(ms)
		dec, err := fec.NewDecoder(fec.Config{Epoch: s.c.repairEpoch(true)})
		if err != nil {
			t.Fatal(err)
		}
		var lost [][]byte
		for _, d := range s.took() {
			switch {
			case d.payload == wire.PayloadRepair:
				dec.AddRepair(fec.Repair{First: uint64(d.symbol), Span: d.repair.Span, Seed: d.repair.Seed}, d.data)
			case d.symbol == 1 || d.symbol == 3:
				lost = append(lost, d.data)
			default:
				dec.AddSource(uint64(d.symbol), d.data)
			}
		}
		for _, want := range lost {
			if _, got, ok := dec.Next(); !ok || !bytes.Equal(got, want) {
				t.Errorf("scheme %d: restored %d bytes, want %d", scheme, len(got), len(want))
			}
		}
	}
}

// On a full congestion window repairs do not leave, and are not owed later.
func TestRepairsKeepToTheCongestionWindow(t *testing.T) {
	s := newCoding(t, ratio(FECSliding, 4, 4), nil)
	window := s.c.cc.Window()
	s.send(100)
	s.advance(repairQuiet)
	sent := s.took()
	st := s.c.Stats()
	if st.InFlight > window || st.Repairs.WindowBound == 0 {
		t.Errorf("%d bytes in flight, %d repairs kept back", st.InFlight, st.Repairs.WindowBound)
	}
	if n := len(repairsOf(sent)); uint64(n) != st.Repairs.Sent {
		t.Errorf("%d repairs left, %d are counted", n, st.Repairs.Sent)
	}
	if s.c.repairs.owed != 0 || s.c.repairs.debt > missRateOne {
		t.Errorf("%d repairs are owed, debt %d", s.c.repairs.owed, s.c.repairs.debt)
	}
}

// The parity budget bounds the bytes of repairs, however many the policy asks for.
func TestParityBudget(t *testing.T) {
	for _, percent := range []int{1, 10, 50, 100, 300} {
		t.Run(fmt.Sprint(percent), func(t *testing.T) {
			cfg := ratio(FECSliding, 4, 16)
			cfg.Budget = percent
			s := newCoding(t, cfg, func(c *Config, _ *wire.Params) { c.Congestion, c.MaxRate = FixedRate{}, 100<<20 })
			data, parity := 0, 0
			for range 100 {
				s.send(5)
				s.advance(ms)
				for _, d := range s.took() {
					if d.payload == wire.PayloadRepair {
						parity += len(d.data) - fec.Overhead
					} else {
						data += len(d.data)
					}
				}
			}
			want := data * min(percent, 400) / 100
			if parity > want+1000 || parity < want*98/100-4000 {
				t.Errorf("%d bytes of repairs to %d of data, want %d", parity, data, want)
			}
			if bound := s.c.Stats().Repairs.BudgetBound; bound == 0 {
				t.Error("no repair was forbidden")
			}
		})
	}
}

// A block group is closed when it is full or its time is over; its parities are
// those of a Reed-Solomon code over it.
func TestBlockGroups(t *testing.T) {
	s := newCoding(t, ratio(FECBlock, 4, 2), nil)
	s.send(4)
	sent := s.took()
	if names := fmt.Sprint(sent); names != "[data 0 data 1 data 2 data 3 repair 0-3 repair 0-3]" {
		t.Fatalf("sent %s", names)
	}
	if a, b := sent[4].repair.Seed, sent[5].repair.Seed; a != 0 || b != 1 {
		t.Errorf("parities %d and %d", a, b)
	}
	s.send(2)
	s.advance(2*ms - 1)
	s.want("data 4", "data 5")
	s.advance(1)
	s.want("repair 4-5")
	s.send(5)
	s.want(slices.Concat(dataNames(6, 9), repairNames(2, 6, 9), dataNames(10, 10))...)
	if n := s.c.Stats().Repairs.MaxGroupParity; n != 2 {
		t.Errorf("%d parities of a group at most", n)
	}
}

// A group whose first symbols are acknowledged by the time it is closed
// protects the rest of it.
func TestBlockGroupPartlyAcknowledged(t *testing.T) {
	cfg := ratio(FECBlock, 8, 8)
	cfg.GroupWait = 30 * ms
	s := newCoding(t, cfg, nil)
	s.send(2)
	s.advance(scriptRTT)
	s.took()
	s.deliver(s.ackDatagram(2, 1, 2))
	s.send(2)
	s.want("data 2", "data 3")
	s.advance(10 * ms)
	s.want(repairNames(4, 2, 3)...)
	s.send(1)
	s.deliver(s.ackDatagram(5, 1, uint64(s.c.sent.next)-1))
	s.took()
	s.advance(30 * ms)
	s.want() // all of the group is held
}

// Groups follow the peer's widest window when that is shorter than they are.
func TestBlockGroupsOfAShortWindow(t *testing.T) {
	s := newCoding(t, ratio(FECBlock, 8, 4), func(_ *Config, p *wire.Params) { p.MaxRepairSpan = 2 })
	s.send(4)
	s.want("data 0", "data 1", "repair 0-1", "data 2", "data 3", "repair 2-3")
}

// What the limit of a group forbids is not owed to the groups after it.
func TestGroupLimitLeavesNoDebt(t *testing.T) {
	cfg := ratio(FECBlock, 4, 64)
	cfg.ParityLimit = 2
	s := newCoding(t, cfg, func(c *Config, _ *wire.Params) { c.Congestion, c.MaxRate = FixedRate{}, 100<<20 })
	for i := range 10 {
		s.send(4)
		s.advance(ms)
		s.want(slices.Concat(dataNames(4*i, 4*i+3), repairNames(2, 4*i, 4*i+3))...)
	}
	s.c.cfg.FEC.Parity = 1
	repairs := 0
	for range 10 {
		s.send(4)
		s.advance(ms)
		repairs += len(repairsOf(s.took()))
	}
	if repairs > 11 {
		t.Errorf("%d parities of 10 groups at 1 per group", repairs)
	}
}

// The pacer may hold a group's parities back; new symbols then wait behind
// them, so that each group gets its own.
func TestPacedGroupsKeepTheirParities(t *testing.T) {
	cfg := ratio(FECBlock, 4, 2)
	cfg.GroupWait = time.Second
	s := newCoding(t, cfg, func(c *Config, _ *wire.Params) { c.Congestion, c.MaxRate = FixedRate{}, 200_000 })
	s.send(40)
	s.advance(400 * ms)
	groups := map[wire.SymbolID]int{}
	for _, d := range repairsOf(s.took()) {
		if d.repair.Span != 4 || d.symbol%4 != 0 {
			t.Errorf("sent %v", d)
		}
		groups[d.symbol]++
	}
	for first := wire.SymbolID(0); first < 40; first += 4 {
		if groups[first] != 2 {
			t.Errorf("group %d got %d parities", first, groups[first])
		}
	}
}

// A missing symbol under a repair whose fate is open is not sent again.
func TestRepairCoversALoss(t *testing.T) {
	lose := func(t *testing.T) *script {
		s := newCoding(t, ratio(FECSliding, 4, 1), nil)
		s.send(4)
		s.advance(repairQuiet)
		s.want("data 0", "data 1", "data 2", "data 3", "repair 0-3") // packets 1 to 5
		s.advance(scriptRTT - repairQuiet)
		s.ack(1, 1, 3, 4)
		s.advance(2500*us - 1)
		s.want()
		return s
	}
	t.Run("that restores it", func(t *testing.T) {
		s := lose(t)
		s.deliver(s.ackDatagram(4, 1, 1, 3, 5))
		s.advance(100 * ms)
		s.want()
	})
	t.Run("that is judged by now", func(t *testing.T) {
		s := lose(t)
		s.deliver(s.ackDatagram(1, 1, 1, 3, 5)) // it came and restored nothing
		s.advance(1)
		s.want("data 1")
	})
	t.Run("that is late", func(t *testing.T) {
		s := lose(t)
		s.advance(1)
		s.want() // only the repair can tell
		s.advance(10 * ms)
		got := fmt.Sprint(s.took())
		if !strings.Contains(got, "data 1") {
			t.Errorf("sent %s a probe timeout later", got)
		}
	})
}

// Equations that the peer holds restore as many symbols as they are once the
// others arrive.
func TestEquationsSpareRetransmissions(t *testing.T) {
	for _, tt := range []struct {
		equations uint8
		want      []string
	}{
		{0, []string{"data 0", "data 1", "data 2"}},
		{1, []string{"data 0", "data 1"}},
		{2, []string{"data 0"}},
		{3, []string{"data 0"}}, // more than can be: something has to be sent
		{255, []string{"data 0"}},
	} {
		s := newCoding(t, ratio(FECSliding, 128, 1), nil)
		s.c.repairs.debt = -missRateOne
		s.send(6)
		s.took()
		s.advance(scriptRTT)
		ack := func(largest uint64) []byte {
			a := wire.Ack{Equations: tt.equations, Ranges: []wire.AckRange{{Lo: 4, Hi: largest}}}
			s.peer.ackNext++
			return s.datagram(wire.Short{Number: wire.Truncate24(s.peer.ackNext - 1), Ack: true},
				wire.AppendAck(nil, &a, 1, 0))
		}
		s.deliver(ack(5))
		s.now = s.now.add(2500 * us)
		s.deliver(ack(6))
		s.want(tt.want...)
	}
}

// Coded retransmission sends one repair over the symbols of a round, and none
// ahead of a loss.
func TestCodedRetransmission(t *testing.T) {
	cfg := sliding(FECOff)
	s := newCoding(t, cfg, func(c *Config, _ *wire.Params) { c.Retransmit = RetransmitCoded })
	s.send(8)
	s.advance(repairQuiet)
	s.want(dataNames(0, 7)...)
	s.advance(scriptRTT)
	s.ack(1, 2, 4, 5, 7, 8) // symbols 2 and 5 are missing
	s.advance(2500 * us)
	s.want("data 2", "data 5", "repair 2-5")
	s.advance(scriptRTT)
	s.ack(1, 2, 4, 5, 7, 8, 10, 10) // and 2 again; the repair did not come either
	s.advance(2500 * us)
	s.want("data 2", "repair 2-2")
	if st := s.c.Stats().Repairs; st.SentCoded != 2 || st.Sent != 0 {
		t.Errorf("%d repairs guard retransmissions, %d are ahead of losses", st.SentCoded, st.Sent)
	}
}
