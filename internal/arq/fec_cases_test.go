package arq

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/openarkstudio/arknet-go/internal/wire"
	"github.com/openarkstudio/arknet-go/netem"
)

// someCoding is a FECConfig with the defaults of package rudp.
func someCoding(change func(*FECConfig)) FECConfig {
	f := FECConfig{
		Policy: FECAdaptive, Gain: 1000, Data: 8, Parity: 2, ParityLimit: 4,
		GroupWait: 2 * ms, Budget: 100, Retain: 512 << 10,
	}
	if change != nil {
		change(&f)
	}
	return f
}

// Whatever the two ends are set to, each direction goes by what its sender wants
// and its receiver takes, and data flows without a pause.
func TestDifferentCodingOnTheTwoEnds(t *testing.T) {
	settings := []struct {
		name string
		fec  FECConfig
	}{
		{"off", someCoding(func(f *FECConfig) { f.Policy = FECOff })},
		{"off and takes none", FECConfig{Data: 8, Parity: 2}},
		{"adaptive", someCoding(nil)},
		{"fixed 10+3", someCoding(func(f *FECConfig) { f.Policy, f.Data, f.Parity = FECFixed, 10, 3 })},
		{"fixed 1+1", someCoding(func(f *FECConfig) { f.Policy, f.Data, f.Parity = FECFixed, 1, 1 })},
		{"fixed 128+1", someCoding(func(f *FECConfig) { f.Policy, f.Data, f.Parity = FECFixed, 128, 1 })},
		{"block 8+2", someCoding(func(f *FECConfig) { f.Policy, f.Scheme = FECFixed, FECBlock })},
	}
	for _, a := range settings {
		for _, b := range settings {
			t.Run(a.name+" and "+b.name, func(t *testing.T) {
				s := newSim(t)
				up, down := testLinks(t, netem.Config{Delay: 10 * ms, Loss: 0.05}, 5)
				cc, sc := testConfig(1), testConfig(2)
				cc.FEC, sc.FEC = a.fec, b.fec
				client, server := s.pair(cc, sc, up, down)
				server.onMessage = func(m []byte) { server.send(m) }
				echoes, last, pause := 0, Time(0), time.Duration(0)
				client.onOpen = func() {
					last = s.now
					for range 8 {
						client.send(make([]byte, 500))
					}
				}
				client.onMessage = func(m []byte) {
					echoes++
					pause, last = max(pause, s.now.sub(last)), s.now
					client.send(m)
				}
				s.runFor(3 * time.Second)
				if echoes < 500 || pause > time.Second {
					t.Errorf("%d echoes, longest pause %v", echoes, pause)
				}
				for _, side := range []struct {
					name string
					from *node
					to   *node
					own  FECConfig
					peer FECConfig
				}{{"up", client, server, a.fec, b.fec}, {"down", server, client, b.fec, a.fec}} {
					sent, got := side.from.c.Stats().Repairs.Sent, side.to.c.Stats().Repairs.Received
					wanted := side.own.Policy != FECOff && side.peer.Retain > 0
					if (sent > 0) != wanted || (got > 0) != wanted {
						t.Errorf("%s: %d repairs sent, %d received", side.name, sent, got)
					}
				}
			})
		}
	}
}

// At five messages a second a repair follows each of them, and the tail is that
// of the path and not that of a retransmission.
func TestRepairsAtALowRate(t *testing.T) {
	delays := func(fec FECConfig) []time.Duration {
		s := newSim(t)
		up, down := testLinks(t, netem.Config{Delay: 100 * ms, Loss: 0.2}, 9)
		cc, sc := testConfig(1), testConfig(2)
		cc.FEC, sc.FEC = fec, fec
		client, server := s.pair(cc, sc, up, down)
		var all []time.Duration
		server.onMessage = func(m []byte) {
			all = append(all, s.now.sub(Time(binary.BigEndian.Uint64(m))))
		}
		var next func()
		next = func() {
			m := make([]byte, 128)
			binary.BigEndian.PutUint64(m, uint64(s.now))
			client.send(m)
			s.after(200*ms, next)
		}
		client.onOpen = next
		s.runFor(10 * time.Minute)
		slices.Sort(all)
		return all
	}
	at := func(d []time.Duration, percent int) time.Duration { return d[len(d)*percent/100] }
	off := delays(someCoding(func(f *FECConfig) { f.Policy = FECOff }))
	on := delays(someCoding(func(f *FECConfig) { f.Gain, f.SmallBursts = 1600, true }))
	t.Logf("off p95 %v p99 %v, on p95 %v p99 %v", at(off, 95), at(off, 99), at(on, 95), at(on, 99))
	// Where the message and its repair are lost, the next repair helps 200 ms on.
	if at(on, 95) > 310*ms || at(off, 95) < 2*at(on, 95) {
		t.Errorf("p95 %v with repairs, %v without", at(on, 95), at(off, 95))
	}
	if at(on, 99) > 520*ms || at(off, 99) < 2*at(on, 99) {
		t.Errorf("p99 %v with repairs, %v without", at(on, 99), at(off, 99))
	}
}

// Restoration goes on across the wrap of the truncated symbol ids and packet
// numbers as it did before.
func TestRepairsAcrossTheWrap(t *testing.T) {
	const before = 4000
	for _, scheme := range []FECScheme{FECSliding, FECBlock} {
		s := newSim(t)
		up, down := testLinks(t, netem.Config{Delay: 10 * ms, Loss: 0.05}, 3)
		cc, sc := testConfig(1), testConfig(2)
		cc.FEC = someCoding(func(f *FECConfig) { f.Policy, f.Scheme = FECFixed, scheme })
		sc.FEC = cc.FEC
		client, server := s.pair(cc, sc, up, down)
		s.runFor(time.Second)
		// Both ends agree that nearly 2^24 symbols and packets went by.
		at := wire.SymbolID(1<<24 - before)
		client.c.send.base, client.c.send.unsent, client.c.send.next = at, at, at
		server.c.recv.next, server.c.recv.top = at, at
		server.c.restorer.dec = nil
		server.c.makeDecoder()
		pn := wire.PacketNumber(1<<24 - before)
		client.c.sent.base, client.c.sent.next = pn, pn
		client.c.sent.acked = rangeSet{}
		client.c.loss.largestAcked, client.c.loss.scan = pn-1, pn
		server.c.acks.received = rangeSet{}
		server.c.acks.largest, server.c.acks.any = pn-1, true
		client.c.lastAck = nil

		var restored []uint64
		count := 0
		server.onMessage = func(m []byte) {
			if got := int(binary.BigEndian.Uint32(m)); got != count {
				t.Fatalf("message %d, want %d", got, count)
			}
			count++
			if count%2000 == 0 {
				restored = append(restored, server.c.Stats().Repairs.Restored)
			}
		}
		sent := 0
		var next func()
		next = func() {
			m := make([]byte, 1000)
			binary.BigEndian.PutUint32(m, uint32(sent))
			sent++
			client.send(m)
			if sent < 10_000 {
				s.after(ms, next)
			}
		}
		next()
		s.runFor(15 * time.Second)
		if count != 10_000 {
			t.Fatalf("scheme %d: %d messages arrived", scheme, count)
		}
		first := restored[0]
		for i := 1; i < len(restored); i++ {
			if n := restored[i] - restored[i-1]; n < first/2 || first == 0 {
				t.Errorf("scheme %d: %d restored of the messages %d to %d, %d of the first 2000", scheme, n, 2000*i, 2000*(i+1), first)
			}
		}
	}
}

// A long time on a bad path does not grow what a session holds, and silence
// gives it back.
func TestABadPathDoesNotGrowMemory(t *testing.T) {
	s := newSim(t)
	up, down := testLinks(t, netem.Config{
		Delay: 200 * ms, Jitter: 200 * ms, JitterReorders: true, Loss: 0.05, Duplicate: 0.02,
		Late: netem.Late{Share: 0.25, Delay: 100 * ms},
	}, 8)
	cc, sc := testConfig(1), testConfig(2)
	cc.FEC, sc.FEC = someCoding(nil), someCoding(nil)
	client, server := s.pair(cc, sc, up, down)
	server.onMessage = func(m []byte) { server.send(m) }
	sending := true
	var next func()
	next = func() {
		if sending {
			if _, err := client.c.Send(s.now, make([]byte, 1000)); err == nil {
				client.turn()
			}
			s.after(10*ms, next)
		}
	}
	client.onOpen = next
	held := func() string {
		out := ""
		for _, n := range []*node{client, server} {
			c := n.c
			if r := c.Stats().Repairs.RetainedBytes; r > 2*(512<<10) {
				t.Errorf("%d bytes are kept for coding", r)
			}
			if l := c.sent.len(); l > 4096 {
				t.Errorf("%d packets are watched", l)
			}
			if m := c.recv.memory(); m > 4<<20 {
				t.Errorf("%d bytes wait for a gap", m)
			}
			out += fmt.Sprint(c.sent.len(), " packets, ", c.recv.memory(), " bytes early, ", c.Stats().Repairs.RetainedBytes, " bytes coded; ")
		}
		return out
	}
	for range 10 {
		s.runFor(time.Minute)
		t.Log(held())
	}
	sending = false
	s.runFor(2 * time.Minute)
	for _, n := range []*node{client, server} {
		if r := n.c.Stats().Repairs.RetainedBytes; r > 16<<10 || n.c.sent.len() > 8 || n.c.recv.memory() != 0 {
			t.Errorf("after silence: %s", held())
		}
	}
}

// Repairs that lie, in datagrams with the right checksum, change no byte.
func TestLyingRepairsChangeNothing(t *testing.T) {
	s := newSim(t)
	up, down := testLinks(t, netem.Config{Delay: 10 * ms, Loss: 0.05}, 4)
	cc, sc := testConfig(1), testConfig(2)
	cc.FEC, sc.FEC = someCoding(nil), someCoding(nil)
	client, server := s.pair(cc, sc, up, down)
	rng := rand.New(rand.NewPCG(1, 2))
	count := 0
	server.onMessage = func(m []byte) {
		if n := int(binary.BigEndian.Uint32(m)); n != count || len(m) != 600 || m[599] != byte(n) {
			t.Fatalf("message %d of %d bytes, want %d", n, len(m), count)
		}
		count++
	}
	lies := uint64(0)
	// On the way every repair becomes a lie under a right checksum: garbage,
	// another window or another row.
	client.tap = func(b []byte) bool {
		if wire.Classify(b) != wire.KindShort || wire.PayloadType(b[0]&3) != wire.PayloadRepair {
			return true
		}
		body := b[:len(b)-wire.ChecksumLen]
		h, rest, err := wire.ParseShort(body)
		if err != nil {
			t.Fatal(err)
		}
		if h.Ack {
			var a wire.Ack
			if rest, err = wire.ParseAck(rest, 1, 1, &a); err != nil {
				t.Fatal(err)
			}
		}
		switch rng.IntN(3) {
		case 0:
			for i := wire.RepairHeaderLen; i < len(rest); i++ {
				rest[i] = byte(rng.Uint32())
			}
		case 1:
			rest[2] += byte(1 + rng.IntN(16)) // first symbol
			rest[3] = byte(rng.IntN(wire.MaxRepairSpan))
		case 2:
			rest[4] ^= byte(1 + rng.IntN(127)) // seed
		}
		lies++
		copy(b, wire.AppendChecksum(slices.Clone(body), 0, client.c.key))
		return true
	}
	sent := 0
	var next func()
	next = func() {
		m := make([]byte, 600)
		binary.BigEndian.PutUint32(m, uint32(sent))
		m[599] = byte(sent)
		sent++
		client.send(m)
		if sent < 3000 {
			s.after(ms, next)
		}
	}
	client.onOpen = next
	s.runFor(20 * time.Second)
	r := server.c.Stats().Repairs
	if count != 3000 {
		t.Errorf("%d messages arrived, want 3000", count)
	}
	if r.Restored > 0 || r.Rejected == 0 || lies < 100 || r.RetainedPeakBytes > 2*(512<<10) {
		t.Errorf("%d lies, counted %+v", lies, r)
	}
}
