package arq

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/openarkstudio/arknet-go/fec"
	"github.com/openarkstudio/arknet-go/internal/wire"
	"github.com/openarkstudio/arknet-go/netem"
)

// liar is the peer of a script that sends true symbols, of which some are lost,
// and repairs of any sort between them. Whatever is read has to be true.
type liar struct {
	t     *testing.T
	s     *script
	coder *peerCoder
	alien *fec.Encoder // another session's, or the other direction's
	sent  uint64       // symbols made
	read  uint64
}

func newLiar(t *testing.T, change func(*Config, *wire.Params)) *liar {
	t.Helper()
	s := newCoding(t, balanced, func(c *Config, p *wire.Params) {
		c.FEC.Retain = 128 << 10
		c.RecvWindow, c.RecvSymbols = 1<<20, 512
		if change != nil {
			change(c, p)
		}
	})
	l := &liar{t: t, s: s, coder: newPeerCoder(t, s)}
	var err error
	if l.alien, err = fec.NewEncoder(fec.Config{Epoch: s.c.repairEpoch(true)}); err != nil {
		t.Fatal(err)
	}
	return l
}

// truth is the message of symbol id.
func truth(id uint64) []byte {
	m := binary.BigEndian.AppendUint64(nil, id)
	return append(m, pattern[id*131%5000:][:id*37%700]...)
}

// symbol makes the next symbol and delivers it unless it is lost.
func (l *liar) symbol(lost bool) {
	if l.sent >= uint64(l.s.c.recv.next)+400 {
		return
	}
	b := whole(string(truth(l.sent)))
	l.coder.add(l.sent, b)
	if err := l.alien.Add(l.sent, whole(string(truth(l.sent+7)))); err != nil {
		l.t.Fatal(err)
	}
	if !lost {
		l.s.data(wire.SymbolID(l.sent), b)
	}
	l.sent++
}

// again delivers a symbol that may have been lost.
func (l *liar) again(id uint64) {
	if id < l.sent {
		l.s.data(wire.SymbolID(id), whole(string(truth(id))))
	}
}

// honest makes a true repair, as far as symbols are kept.
func (l *liar) honest(back, span int) (fec.Repair, []byte, bool) {
	first, n := l.coder.enc.Window()
	if n == 0 {
		return fec.Repair{}, nil, false
	}
	span = 1 + span%min(n, fec.MaxSpan)
	from := first + uint64(back%(n-span+1))
	r, payload := l.coder.next(from, span)
	return r, payload, true
}

// check reads what can be read and looks at the state.
func (l *liar) check() {
	l.t.Helper()
	for {
		m, ok, err := l.s.c.AppendMessage(nil)
		if err != nil {
			l.t.Fatal(err)
		}
		if !ok {
			break
		}
		if !bytes.Equal(m, truth(l.read)) {
			l.t.Fatalf("message %d is wrong", l.read)
		}
		l.read++
	}
	l.s.drain()
	l.s.took()
	if l.s.c.State() != StateOpen {
		l.t.Fatalf("state %d, error %v", l.s.c.State(), l.s.c.Err())
	}
	if err := errors.Join(checkConn(l.s.c), checkCoding(l.s.c)); err != nil {
		l.t.Fatal(err)
	}
}

// finish delivers all that was lost: nothing that lied keeps it back.
func (l *liar) finish() {
	l.t.Helper()
	for id := uint64(l.s.c.recv.next); id < l.sent; id++ {
		l.again(id)
		l.check()
	}
	if l.read != l.sent {
		l.t.Fatalf("%d messages read of %d", l.read, l.sent)
	}
}

// Each kind of lie about repairs, among losses: never a wrong byte, the memory
// stays within its limits, and every repair is accounted for.
func TestRepairsThatLie(t *testing.T) {
	type lie func(l *liar, rng *rand.Rand) []byte // a datagram
	honest := func(change func(r *fec.Repair, payload []byte, rng *rand.Rand) []byte) lie {
		return func(l *liar, rng *rand.Rand) []byte {
			r, payload, ok := l.honest(rng.IntN(200), rng.IntN(40))
			if !ok {
				return nil
			}
			payload = change(&r, payload, rng)
			return l.s.repairDatagram(r, payload)
		}
	}
	var replayed [][]byte
	lies := map[string]lie{
		"window": honest(func(r *fec.Repair, p []byte, rng *rand.Rand) []byte {
			r.First += uint64(rng.IntN(9)) - 4
			return p
		}),
		"span": honest(func(r *fec.Repair, p []byte, rng *rand.Rand) []byte {
			r.Span = 1 + rng.IntN(fec.MaxSpan)
			return p
		}),
		"far window": honest(func(r *fec.Repair, p []byte, rng *rand.Rand) []byte {
			r.First += uint64(rng.IntN(1 << 24))
			return p
		}),
		"seed": honest(func(r *fec.Repair, p []byte, rng *rand.Rand) []byte {
			r.Seed = uint8(rng.IntN(fec.Seeds))
			return p
		}),
		"shorter": honest(func(_ *fec.Repair, p []byte, rng *rand.Rand) []byte { return p[:rng.IntN(len(p)+1)] }),
		"longer": honest(func(_ *fec.Repair, p []byte, rng *rand.Rand) []byte {
			return append(p, make([]byte, rng.IntN(900))...)
		}),
		"bit": honest(func(_ *fec.Repair, p []byte, rng *rand.Rand) []byte {
			p[rng.IntN(len(p))] ^= 1 << rng.IntN(8)
			return p
		}),
		"length inside": honest(func(_ *fec.Repair, p []byte, rng *rand.Rand) []byte {
			binary.BigEndian.PutUint16(p[4:], uint16(rng.Uint32()))
			return p
		}),
		"zeros": honest(func(_ *fec.Repair, p []byte, _ *rand.Rand) []byte {
			clear(p)
			return p
		}),
		"garbage": func(l *liar, rng *rand.Rand) []byte {
			p := make([]byte, rng.IntN(1400))
			for i := range p {
				p[i] = byte(rng.Uint32())
			}
			r := fec.Repair{First: uint64(rng.IntN(1 << 24)), Span: 1 + rng.IntN(128), Seed: uint8(rng.IntN(128))}
			if rng.IntN(4) > 0 {
				r.First = max(uint64(l.s.c.recv.next)+uint64(rng.IntN(40)), 20) - 20
			}
			return l.s.repairDatagram(r, p)
		},
		"header": func(l *liar, rng *rand.Rand) []byte {
			b := binary.BigEndian.AppendUint64(nil, rng.Uint64())
			return l.s.datagram(wire.Short{Number: l.s.number(), Payload: wire.PayloadRepair}, b[:rng.IntN(9)])
		},
		"another session": func(l *liar, rng *rand.Rand) []byte {
			first, n := l.alien.Window()
			if n == 0 {
				return nil
			}
			r := fec.Sliding(first+uint64(max(n-20, 0)), min(n, 20), rng.Uint64())
			p, err := l.alien.AppendRepair(nil, r)
			if err != nil {
				l.t.Fatal(err)
			}
			return l.s.repairDatagram(r, p)
		},
		"replay": func(l *liar, rng *rand.Rand) []byte {
			if r, p, ok := l.honest(rng.IntN(200), rng.IntN(40)); ok && rng.IntN(3) == 0 {
				replayed = append(replayed, wire.AppendRepair(nil, wire.Repair{First: wire.Truncate24(r.First), Span: r.Span, Seed: r.Seed}))
				replayed[len(replayed)-1] = append(replayed[len(replayed)-1], p...)
			}
			if len(replayed) == 0 {
				return nil
			}
			return l.s.datagram(wire.Short{Number: l.s.number(), Payload: wire.PayloadRepair}, replayed[rng.IntN(len(replayed))])
		},
	}
	for name, lie := range lies {
		t.Run(name, func(t *testing.T) {
			replayed = nil
			rng := rand.New(rand.NewPCG(uint64(len(name)), 3))
			l := newLiar(t, nil)
			for range 1500 {
				switch rng.IntN(6) {
				case 0, 1:
					l.symbol(rng.IntN(5) == 0)
				case 2:
					if r, p, ok := l.honest(1000, rng.IntN(30)); ok && rng.IntN(3) == 0 {
						l.s.deliver(l.s.repairDatagram(r, p))
					}
				case 3:
					if rng.IntN(10) == 0 {
						l.again(uint64(l.s.c.recv.next))
					}
				default:
					if b := lie(l, rng); b != nil {
						l.s.deliver(b)
					}
				}
				l.check()
			}
			st := l.s.c.Stats()
			if st.Repairs.Received+st.Dropped.Window+st.Dropped.Malformed < 500 {
				t.Errorf("received %+v, dropped %+v", st.Repairs, st.Dropped)
			}
			l.finish()
		})
	}
}

// A path that damages datagrams beneath a checksum that is put right: the
// damage is caught inside the symbols.
func TestDamageBelowTheChecksum(t *testing.T) {
	for _, cfg := range []FECConfig{balanced, fast, block(FECFixed)} {
		s, client, server := newPair(t, with(profile(t, "random"), func(c *netem.Config) { c.Loss = 0.1 }), 3, func(cc, sc *Config) {
			cc.FEC, sc.FEC = cfg, cfg
		})
		rng := rand.New(rand.NewPCG(9, 9))
		damaged := 0
		client.tap = func(b []byte) bool {
			h, _, err := wire.ParseShort(b)
			if err == nil && h.Payload == wire.PayloadRepair && rng.IntN(2) == 0 {
				damaged++
				b[len(b)-wire.ChecksumLen-1-rng.IntN(40)] ^= byte(1 + rng.IntN(255))
				wire.AppendChecksum(b[:len(b)-wire.ChecksumLen], 0, client.c.key)
			}
			return true
		}
		next := uint64(0)
		server.onMessage = func(m []byte) {
			if !bytes.Equal(m, truth(next)) {
				t.Fatalf("message %d is wrong", next)
			}
			next++
		}
		sent := uint64(0)
		var tick func()
		tick = func() {
			for range 8 {
				if client.c.State() == StateOpen && sent < 4000 {
					client.send(truth(sent))
					sent++
				}
			}
			s.after(8*ms, tick)
		}
		s.after(0, tick)
		s.runFor(8 * time.Second)
		st := server.c.Stats().Repairs
		if next != 4000 || damaged < 100 || st.Rejected == 0 {
			t.Errorf("%d messages of 4000 came, %d repairs were damaged: %+v", next, damaged, st)
		}
		if err := errors.Join(checkConn(server.c), checkCoding(server.c)); err != nil {
			t.Error(err)
		}
	}
}

// An ack that lies about equations and restored symbols harms the liar alone:
// what it claims is believed, the rest is still sent, and nothing stands still.
func TestAcksThatLieAboutCoding(t *testing.T) {
	s := newCoding(t, ratio(FECSliding, 4, 1), nil)
	rng := rand.New(rand.NewPCG(4, 4))
	for range 300 {
		if s.c.send.unsent-s.c.send.base < 200 {
			s.send(1 + rng.IntN(8))
		}
		s.advance(time.Duration(rng.IntN(20)) * ms)
		a := wire.Ack{
			Next: s.c.send.base, Equations: uint8(rng.IntN(256)),
			Ranges: []wire.AckRange{{Lo: uint64(s.c.sent.next) - 1, Hi: uint64(s.c.sent.next) - 1}},
		}
		at := uint64(a.Next)
		for n := 0; n < rng.IntN(10) && at+20 < uint64(s.c.send.unsent); n++ {
			lo := at + 1 + uint64(rng.IntN(8))
			a.Symbols = append(a.Symbols, wire.AckRange{Lo: lo, Hi: lo + uint64(rng.IntN(5))})
			at = a.Symbols[n].Hi + 1
		}
		s.peer.ackNext++
		s.deliver(s.datagram(wire.Short{Number: wire.Truncate24(s.peer.ackNext - 1), Ack: true},
			wire.AppendAck(nil, &a, 1, len(a.Symbols))))
		if err := errors.Join(checkConn(s.c), checkCoding(s.c)); err != nil {
			t.Fatal(err)
		}
	}
	s.took()
	// All that it did not claim is sent until it does.
	for range 1000 {
		if s.c.Flushed() {
			break
		}
		s.advance(50 * ms)
		s.took()
		s.deliver(s.ackDatagram(s.c.send.unsent, uint64(s.c.sent.next)-1, uint64(s.c.sent.next)-1))
	}
	if !s.c.Flushed() {
		t.Errorf("symbols from %d on are not known to be held", s.c.send.base)
	}
}

// The memory of a session that is sent nothing but repairs stays within its
// limit, and so does that of one whose first symbol never comes.
func TestRepairsAloneAreBounded(t *testing.T) {
	for _, retain := range []int{128 << 10, 512 << 10} {
		s := newCoding(t, balanced, func(c *Config, _ *wire.Params) { c.FEC.Retain = retain })
		rng := rand.New(rand.NewPCG(1, 8))
		p := make([]byte, 1100)
		for i := range uint64(20_000) {
			binary.BigEndian.PutUint64(p[rng.IntN(1000):], rng.Uint64())
			r := fec.Repair{First: 1 + i*3%2000, Span: 1 + rng.IntN(128), Seed: uint8(i % fec.Seeds)}
			s.c.HandleDatagram(s.now, s.repairDatagram(r, p))
			if i%100 == 0 {
				s.now = s.now.add(ms)
				s.drain()
				s.took()
				if err := checkCoding(s.c); err != nil {
					t.Fatal(err)
				}
			}
		}
		if n := s.c.Stats().Repairs; n.RetainedPeakBytes > retain || n.Received != 20_000 || n.Restored != 0 {
			t.Errorf("retention of %d: %+v", retain, n)
		}
	}
}

// FuzzRepairs: whatever repairs a peer makes of true symbols, by changing them
// in any way, nothing but the truth is read, and all counters and limits hold.
//
// Each step takes three bytes, and some more:
//
//	0, 1  the next symbol comes; it is lost
//	2     the symbol that is missing comes after all
//	3     a true repair, over a window of the two bytes
//	4     the same, with one byte of header or payload changed
//	5     the same, of another session
//	6     a repair of arbitrary bytes, as long as the second byte says
//	7     time passes
func FuzzRepairs(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 0, 0, 3, 0, 1})
	f.Add([]byte{1, 0, 0, 0, 0, 0, 1, 0, 0, 3, 0, 2, 4, 0, 2, 9, 9, 3, 0, 2, 2, 0, 0})
	f.Add([]byte{1, 0, 0, 0, 0, 0, 5, 0, 1, 6, 9, 0, 0, 0, 0, 1, 0, 9, 9, 9, 9, 7, 0, 9, 3, 0, 1})
	f.Add([]byte{1, 0, 0, 1, 0, 0, 1, 0, 0, 4, 0, 2, 4, 1, 3, 0, 2, 3, 0, 2, 3, 0, 2, 2, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		l := newLiar(t, func(c *Config, _ *wire.Params) {
			c.FEC.Retain, c.KeepAlive, c.DeadPeerTimeout = 64<<10, 0, 0
		})
		for n := 0; len(b) >= 3 && n < 300; n++ {
			op, x, y := b[0], int(b[1]), int(b[2])
			b = b[3:]
			switch op % 8 {
			case 0, 1:
				l.symbol(op%8 == 1)
			case 2:
				l.again(uint64(l.s.c.recv.next))
			case 3, 4:
				r, p, ok := l.honest(x, y)
				if !ok {
					break
				}
				if op%8 == 4 && len(b) >= 2 {
					switch b[0] % 4 {
					case 0:
						r.First += uint64(int8(b[1]))
					case 1:
						r.Span = 1 + int(b[1])%fec.MaxSpan
					case 2:
						r.Seed = b[1] % fec.Seeds
					default:
						p[int(b[0]/4)%len(p)] ^= b[1]
					}
					b = b[2:]
				}
				l.s.deliver(l.s.repairDatagram(r, p))
			case 5:
				first, n := l.alien.Window()
				if n == 0 {
					break
				}
				r := fec.Sliding(first+uint64(x%n), 1+y%min(n-x%n, fec.MaxSpan), uint64(x*y))
				p, err := l.alien.AppendRepair(nil, r)
				if err != nil {
					t.Fatal(err)
				}
				l.s.deliver(l.s.repairDatagram(r, p))
			case 6:
				n := min(x, len(b))
				l.s.deliver(l.s.datagram(wire.Short{Number: l.s.number(), Payload: wire.PayloadRepair}, b[:n]))
				b = b[n:]
			case 7:
				l.s.advance(time.Duration(x*y) * ms)
			}
			l.check()
		}
		l.finish()
	})
}
