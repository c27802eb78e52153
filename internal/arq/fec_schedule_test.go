package arq

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/openarkstudio/arknet-go/internal/bufpool"
	"github.com/openarkstudio/arknet-go/internal/wire"
	"github.com/openarkstudio/arknet-go/netem"
)

var (
	codingSeed  = flag.Uint64("arq.codingseed", 0, "run this one random schedule of erasure coding")
	codingCount = flag.Uint64("arq.codingseeds", 150, "how many random schedules of erasure coding to run; an eighth of them under the race detector")
)

// TestRandomCodingSchedules draws paths, and for each side a policy with its
// limits: erasure coding is always on somewhere. What is read is what was
// written, the state of both sides is sound after every turn, everything
// finishes once the path heals, and all memory is given back.
func TestRandomCodingSchedules(t *testing.T) {
	first, end := uint64(1), *codingCount
	if raceEnabled {
		end /= 8
	}
	if *codingSeed != 0 {
		first, end = *codingSeed, *codingSeed
	}
	restored := uint64(0)
	for seed := first; seed <= end && !t.Failed(); seed++ {
		restored += runCodingSchedule(t, seed)
	}
	if *codingSeed == 0 && restored < 5*end {
		t.Errorf("%d symbols were restored in %d runs", restored, end)
	}
}

// randomCoding draws what one side does.
func randomCoding(rng *rand.Rand, c *Config) {
	c.FEC = FECConfig{
		Policy: []FECPolicy{FECOff, FECFixed, FECAdaptive, FECAdaptive}[rng.IntN(4)], Scheme: FECScheme(rng.IntN(2)),
		Gain: []int{600, 1000, 1600}[rng.IntN(3)], SmallBursts: rng.IntN(2) == 0,
		Data: 1 + rng.IntN(128), Parity: 1 + rng.IntN(64), ParityLimit: 1 + rng.IntN(64),
		GroupWait: time.Duration(1+rng.IntN(1000)) * []time.Duration{100 * us, ms}[rng.IntN(2)],
		Budget:    []int{1, 20, 50, 100, 100, 300, 1000}[rng.IntN(7)],
		Retain:    []int{0, 16 << 10, 128 << 10, 512 << 10, 512 << 10, 4 << 20}[rng.IntN(6)],
	}
	if rng.IntN(2) == 0 {
		c.FEC.Data, c.FEC.Parity = 1+rng.IntN(10), 1+rng.IntN(5)
	}
	c.Retransmit = Retransmit(rng.IntN(2))
	c.MTU = []int{MinMTU, DefaultMTU, DefaultMTU, 9000}[rng.IntN(4)]
	c.SendSymbols = []int{8, 4096}[rng.IntN(2)]
	c.RecvSymbols = []int{16, 200, 4096}[rng.IntN(3)]
	c.RecvWindow = []int{60_000, 4 << 20}[rng.IntN(2)]
	c.KeepAlive = []time.Duration{0, time.Second}[rng.IntN(2)]
	c.DeadPeerTimeout, c.Linger = time.Hour, time.Hour
	if rng.IntN(4) == 0 {
		c.Congestion, c.MaxRate = FixedRate{}, 100_000+rng.IntN(5_000_000)
	}
}

func runCodingSchedule(t *testing.T, seed uint64) (restored uint64) {
	rng := rand.New(rand.NewPCG(seed, 0xfec))
	outstanding := bufpool.Shared().Outstanding()
	faults := (&schedule{rng: rng}).faults()
	shared := &budget{limit: 64<<10 + rng.IntN(1<<20)}
	start := wire.SymbolID(0)
	if rng.IntN(2) == 0 {
		start = wire.SymbolID(1<<24 - rng.IntN(300))
	}
	s, client, server := shiftedPair(t, faults, start, wire.PacketNumber(start), func(cc, sc *Config) {
		randomCoding(rng, cc)
		randomCoding(rng, sc)
		if rng.IntN(2) == 0 {
			cc.CodingMemory, sc.CodingMemory = shared, shared
		}
	})
	sides := [2]*node{client, server}
	fail := func(format string, args ...any) {
		t.Helper()
		for _, x := range sides {
			if x.c != nil {
				t.Logf("%+v\n%+v", x.c.cfg.FEC, x.c.Stats())
			}
		}
		t.Errorf("%+v, at %v", faults, time.Duration(s.now))
		t.Fatalf(format+"\nreplay: go test ./internal/arq -run TestRandomCodingSchedules -arq.codingseed %d", append(args, seed)...)
	}
	turns := 0
	check := func() {
		if turns++; turns > 2000 && turns%13 != 0 {
			return // the checks walk everything
		}
		for i, x := range sides {
			if x.c == nil {
				continue
			}
			err := errors.Join(checkConn(x.c), checkCoding(x.c), checkPair(x.c, sides[1-i].c))
			if err != nil {
				fail("side %d: %v", i, err)
			}
		}
		if shared.held > shared.limit || shared.held < 0 {
			fail("%d bytes of coding memory are reserved of %d", shared.held, shared.limit)
		}
	}
	longest := 1 << (4 + rng.IntN(10))
	pause := time.Duration(1+rng.IntN(60)) * ms
	var written, read [2]uint64
	var msg []byte
	left := 100 + rng.IntN(300)
	for i, x := range sides {
		x.onTurn = check
		x.onMessage = func(m []byte) {
			if len(m) < 8 || binary.BigEndian.Uint64(m) != read[i] || !bytes.Equal(m[8:], messageAt(1-i, read[i], len(m)-8)) {
				fail("side %d: message %d is wrong", i, read[i])
			}
			read[i]++
		}
	}
	write := func(i int, n int) {
		x := sides[i]
		for range n {
			msg = binary.BigEndian.AppendUint64(msg[:0], written[i])
			msg = append(msg, messageAt(i, written[i], rng.IntN(longest))...)
			if _, err := x.c.Send(s.now, msg); err != nil {
				if !errors.Is(err, ErrQueueFull) {
					fail("side %d: %v", i, err)
				}
				return
			}
			written[i]++
		}
	}
	var act func()
	act = func() {
		for i, x := range sides {
			if x.c != nil && x.c.State() == StateOpen && rng.IntN(3) > 0 {
				write(i, 1+rng.IntN(20))
				x.turn()
			}
		}
		if rng.IntN(40) == 0 {
			s.after(12*time.Second, act) // a silence
		} else if left--; left > 0 {
			s.after(pause, act)
		}
	}
	s.after(0, act)
	s.runFor(time.Duration(2+rng.IntN(4)) * time.Second)
	for _, x := range sides {
		if err := x.out.SetConfig(time.Duration(s.now), netem.Config{Delay: 5 * ms}); err != nil {
			t.Fatal(err)
		}
	}
	for limit := s.now.add(20 * time.Minute); ; s.runFor(time.Second) {
		if s.now > limit {
			fail("%d of %d and %d of %d messages came", read[1], written[0], read[0], written[1])
		}
		if left <= 0 && client.c.Flushed() && server.c.Flushed() && read[0] == written[1] && read[1] == written[0] {
			break
		}
		if client.c.State() == StateDone {
			break // the handshake timed out
		}
	}
	for _, x := range sides {
		if x.c == nil {
			continue
		}
		st := x.c.Stats()
		restored += st.Repairs.Restored
		if faults.Corrupt == 0 && st.Dropped.Malformed > 0 || st.Dropped.BadAck > 0 {
			fail("dropped %+v", st.Dropped)
		}
	}
	client.c.Close(s.now)
	client.turn()
	s.runFor(2 * time.Minute)
	for _, x := range sides {
		if x.c != nil && x.c.State() != StateDone && x.c.cfg.KeepAlive > 0 {
			fail("state %d after the close", x.c.State())
		}
		if x.c != nil {
			x.c.Vanish(s.now)
		}
	}
	if shared.held != 0 {
		fail("%d bytes of coding memory were not given back", shared.held)
	}
	if n := bufpool.Shared().Outstanding() - outstanding; n != 0 {
		fail("%d buffers were not released", n)
	}
	return restored
}
