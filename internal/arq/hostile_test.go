package arq

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/openarkstudio/arknet-go/internal/wire"
	"github.com/openarkstudio/arknet-go/netem"
)

// An ack of what was never sent, or of ranges over the whole number space, is
// dropped and counted, and costs no walk over what it claims.
func TestAcksOfWhatWasNeverSent(t *testing.T) {
	s := newScript(t, nil)
	s.send(200)
	s.took()
	all := make([]wire.AckRange, wire.MaxAckRanges)
	for i := range all {
		hi := uint64(1)<<40 - uint64(i)<<33
		all[i] = wire.AckRange{Lo: hi - 1<<32, Hi: hi}
	}
	blocks := map[string][]byte{
		"largest number": wire.AppendAck(nil, &wire.Ack{Ranges: []wire.AckRange{{Lo: 0xffffff, Hi: 0xffffff}}}, 1, 0),
		"half way round": wire.AppendAck(nil, &wire.Ack{Ranges: []wire.AckRange{{Lo: 1 << 23, Hi: 1 << 23}}}, 1, 0),
		"next number":    wire.AppendAck(nil, &wire.Ack{Ranges: []wire.AckRange{{Lo: 0, Hi: uint64(s.c.sent.next)}}}, 1, 0),
		"all numbers":    wire.AppendAck(nil, &wire.Ack{Ranges: all}, len(all), 0),
		"next symbol": wire.AppendAck(nil, &wire.Ack{
			Next: s.c.send.unsent + 1, Ranges: []wire.AckRange{{Lo: 1, Hi: 1}},
		}, 1, 0),
		"symbols to come": wire.AppendAck(nil, &wire.Ack{
			Ranges:  []wire.AckRange{{Lo: 1, Hi: 1}},
			Symbols: []wire.AckRange{{Lo: 5, Hi: 10_000_000}},
		}, 1, 1),
	}
	before := s.c.Stats()
	for _, b := range blocks {
		d := s.datagram(wire.Short{Ack: true}, b)
		for range 1000 { // a walk over what is claimed would never end
			s.c.HandleDatagram(s.now, d)
		}
	}
	st := s.c.Stats()
	if n := st.Dropped.BadAck + st.Dropped.Malformed; n != uint64(1000*len(blocks)) {
		t.Errorf("%d datagrams were dropped of %d", n, 1000*len(blocks))
	}
	if s.c.State() != StateOpen || st.InFlight != before.InFlight || s.c.Acknowledged() != 0 {
		t.Errorf("state %d, %d bytes in flight", s.c.State(), st.InFlight)
	}
}

// A first fragment that claims a long message reserves nothing, and a message
// beyond the limit ends the session with a reason.
func TestClaimedSizesReserveNothing(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range 50 {
		s := newScript(t, nil)
		s.data(0, record(wire.RecordFirst, 16<<20, string(make([]byte, 200))))
		for id := wire.SymbolID(1); id < 100; id++ {
			s.data(id+4000, record(wire.RecordFirst, 16<<20, string(make([]byte, 200))))
		}
		if held := s.c.recv.memory(); held > 100*2100+1000 {
			t.Fatalf("session %d holds %d bytes", i, held)
		}
	}
	runtime.ReadMemStats(&after)
	if grown := int64(after.TotalAlloc) - int64(before.TotalAlloc); grown > 64<<20 {
		t.Errorf("%d bytes were allocated for 50 sessions", grown)
	}
	for _, claim := range []uint64{16<<20 + 1, 1 << 32, wire.MaxNumber} {
		s := newScript(t, nil)
		s.data(0, record(wire.RecordFirst, claim, "x"))
		var closed *CloseError
		if !errors.As(s.c.Err(), &closed) || closed.Code != CodeProtocolError {
			t.Errorf("claim of %d: error %v", claim, s.c.Err())
		}
		if out := s.took(); len(out) != 1 || out[0].records[0].Type != wire.RecordClose {
			t.Errorf("claim of %d: sent %v", claim, out)
		}
	}
}

// Datagrams of every length, of any bytes, in every state: dropped, counted and
// without effect.
func TestDatagramsOfEveryLength(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	states := map[string]func() *Conn{
		"client in the handshake": func() *Conn { return NewClient(1, testConfig(1)) },
		"server in the handshake": func() *Conn { return NewServer(1, testConfig(1), wire.Long{Src: 2}) },
		"open":                    func() *Conn { return newScript(t, nil).c },
		"closing": func() *Conn {
			s := newScript(t, nil)
			s.c.Abort(s.now, 0, "")
			return s.c
		},
		"done": func() *Conn {
			c := NewClient(1, testConfig(1))
			c.Vanish(1)
			return c
		},
	}
	for name, make := range states {
		t.Run(name, func(t *testing.T) {
			c := make()
			state, before := c.State(), c.Stats()
			n := uint64(0)
			now := Time(10 * time.Second)
			for size := range 70 {
				for _, b := range garbage(rng, size) {
					c.HandleDatagram(now, b)
					n++
				}
			}
			for _, size := range []int{DefaultMTU, DefaultMTU + 1, 65_507} {
				for _, b := range garbage(rng, size) {
					c.HandleDatagram(now, b)
					n++
				}
			}
			st := c.Stats()
			if got := st.Dropped.Total() - before.Dropped.Total(); got != n {
				t.Errorf("%d of %d datagrams were counted as dropped", got, n)
			}
			if c.State() != state || c.Readable() {
				t.Errorf("state %d became %d", state, c.State())
			}
		})
	}
}

// garbage is a few datagrams of the size.
func garbage(rng *rand.Rand, size int) (all [][]byte) {
	all = append(all, make([]byte, size), bytes.Repeat([]byte{0xff}, size))
	for _, first := range []byte{0x41, 0x4c, 0x80, 0x90, 0xa0, 0xb0} {
		b := make([]byte, size)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		if size > 0 {
			b[0] = first
		}
		all = append(all, b)
	}
	return all
}

// The same under the right key: malformed, and never a panic.
func TestDatagramsCutAtEveryLength(t *testing.T) {
	full := func(s *script) []byte {
		b := wire.AppendAck(nil, &wire.Ack{Next: 1, Ranges: []wire.AckRange{{Lo: 1, Hi: 1}}}, 1, 0)
		b = wire.AppendWindow(wire.AppendPing(b), 5<<20)
		b = wire.AppendEnd(b)
		return append(wire.AppendSymbolID(b, 0), whole("hello")...)
	}
	s := newScript(t, nil)
	n := len(full(s))
	for cut := range n {
		s := newScript(t, nil)
		s.send(1)
		s.took()
		s.deliver(s.datagram(wire.Short{Ack: true, Control: true, Payload: wire.PayloadData}, full(s)[:cut]))
		if s.c.Readable() {
			t.Errorf("a message was read from %d of %d bytes", cut, n)
		}
		if d := s.c.Stats().Dropped.Total(); d == 0 && cut != n-len(whole("hello")) {
			t.Errorf("cut at %d of %d: nothing was counted", cut, n)
		}
	}
}

// A receiver that does not read holds at most a window, and the sender's queue
// its limit, however much the application writes.
func TestUnreadDataIsBounded(t *testing.T) {
	for _, answered := range []bool{true, false} {
		t.Run(fmt.Sprint("answered ", answered), func(t *testing.T) {
			s, client, server := newPair(t, path20, 1, func(cc, sc *Config) {
				sc.RecvWindow, cc.SendQueue = 128*1200, 256<<10
			})
			server.readAll = false
			server.mute = !answered
			accepted := 0
			m := make([]byte, 1024)
			for range 1000 { // 100 MB in the end
				for range 100 {
					if _, err := client.c.Send(s.now, m); err == nil {
						accepted += len(m)
					} else if !errors.Is(err, ErrQueueFull) && !errors.Is(err, ErrHandshakeTimeout) {
						t.Fatal(err)
					}
				}
				client.turn()
				s.runFor(20 * ms)
			}
			limit := 256<<10 + len(m)
			if answered {
				limit += 128 * 1200
				if held := server.c.Stats().ReceiveBuffered; held > 128*1200 {
					t.Errorf("%d bytes are held with a window of %d", held, 128*1200)
				}
			}
			if accepted > limit || accepted < limit*8/10 {
				t.Errorf("%d bytes were accepted, at most %d can be held", accepted, limit)
			}
		})
	}
}

// A peer that asks a million times and acknowledges nothing gets one answer at
// a time, nothing piles up, and its silence ends the session in time.
func TestRequestsDoNotPileUp(t *testing.T) {
	s := newScript(t, func(c *Config, _ *wire.Params) { c.DeadPeerTimeout, c.KeepAlive = 10*time.Second, 5*time.Second })
	requests := [][]byte{
		wire.AppendPing(nil),
		wire.AppendPathChallenge(nil, [wire.PathDataLen]byte{1}),
		wire.AppendWindow(nil, 1),
		bytes.Repeat([]byte{byte(wire.RecordPing)}, 1000),
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	datagrams, most := 0, 0
	buf := make([]byte, 0, 1<<16)
	d := make([]byte, 0, 2000)
	for i := range 50_000 {
		d = wire.AppendShort(d[:0], wire.Short{Dst: scriptLocal, Number: s.number(), Control: true})
		d = append(d, requests[i%len(requests)]...)
		d = wire.AppendChecksum(d, 0, s.key)
		s.now = s.now.add(20 * us)
		s.c.HandleDatagram(s.now, d)
		if at, ok := s.c.NextTimeout(); ok && at <= s.now {
			s.c.HandleTimeout(s.now)
		}
		n := 0
		for {
			out, seg := s.c.AppendDatagrams(s.now, buf, maxTrain)
			if seg == 0 {
				break
			}
			n += (len(out) + seg - 1) / seg
		}
		datagrams += n
		most = max(most, n)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if most > 1 || datagrams > 50_000/ackEvery+2000 {
		t.Errorf("%d datagrams answered 50000, up to %d at once", datagrams, most)
	}
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 1<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
	start := s.now
	s.advance(11 * time.Second)
	if !errors.Is(s.c.Err(), ErrPeerGone) {
		t.Errorf("error %v %v after the last request", s.c.Err(), s.now.sub(start))
	}
}

// A message that is refused leaves nothing behind: what was accepted around it
// arrives as if it had never been.
func TestRefusedMessagesLeaveNothing(t *testing.T) {
	s, client, server := opened(t, profile(t, "random"), func(cc, sc *Config) {
		cc.MaxMessage, sc.MaxMessage = 5000, 5000
		cc.SendQueue = 8000
	})
	var got []string
	server.onMessage = func(m []byte) { got = append(got, string(m)) }
	long := make([]byte, 5001)
	full := make([]byte, 4000)
	for _, step := range []struct {
		m    []byte
		want error
	}{
		{[]byte("0123456789"), nil}, {long, ErrMessageTooLarge}, {full, nil}, {full, ErrQueueFull},
		{long, ErrMessageTooLarge}, {[]byte("OK"), nil},
	} {
		bytesBefore, queuedBefore := client.c.Queued()
		if _, err := client.c.Send(s.now, step.m); !errors.Is(err, step.want) {
			t.Fatalf("message of %d bytes: %v, want %v", len(step.m), err, step.want)
		}
		if b, n := client.c.Queued(); step.want != nil && (b != bytesBefore || n != queuedBefore) {
			t.Fatalf("a refused message left %d bytes in the queue", b-bytesBefore)
		}
	}
	client.turn()
	s.runFor(time.Second)
	if len(got) != 3 || got[0] != "0123456789" || len(got[1]) != 4000 || got[2] != "OK" {
		t.Errorf("%d messages arrived", len(got))
	}
}

// The same for a stream: what WriteStream says it took arrives, and nothing else.
func TestStreamWritesAreTakenInPart(t *testing.T) {
	s, client, server := opened(t, profile(t, "random"), func(cc, _ *Config) { cc.SendQueue = 8000 })
	server.readAll = false
	var want, got []byte
	for i := range 50 {
		b := bytes.Repeat([]byte{byte(i)}, 1000*(i%13))
		n, err := client.c.WriteStream(s.now, b)
		if err != nil && (!errors.Is(err, ErrQueueFull) || n != 0) {
			t.Fatalf("took %d: %v", n, err)
		}
		want = append(want, b[:n]...)
		if i%3 == 0 {
			client.turn()
			s.runFor(10 * ms)
		}
	}
	if err := client.c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	client.turn()
	s.runFor(2 * time.Second)
	for !server.c.ReadDone() {
		var p [4000]byte
		n, err := server.c.ReadStream(p[:])
		if n == 0 || err != nil {
			t.Fatalf("read %d, %v after %d of %d bytes", n, err, len(got), len(want))
		}
		got = append(got, p[:n]...)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%d bytes arrived, %d were taken", len(got), len(want))
	}
}

// Traffic of another session, damaged or repeated, changes nothing: the state
// stays sound under a storm of it.
func TestStormOfGarbage(t *testing.T) {
	s, client, server := opened(t, netem.Config{Delay: 10 * ms, Corrupt: 0.3, CorruptBits: 3, Duplicate: 0.5}, nil)
	got := 0
	server.onMessage = func([]byte) { got++ }
	rng := rand.New(rand.NewPCG(5, 5))
	for i := range 200 {
		s.after(time.Duration(i)*5*ms, func() {
			client.send(make([]byte, 500))
			for _, b := range garbage(rng, 1+rng.IntN(1400)) {
				server.receive(b)
			}
		})
	}
	s.runFor(5 * time.Second)
	if got != 200 {
		t.Errorf("%d messages arrived of 200", got)
	}
	if err := errors.Join(checkConn(client.c), checkConn(server.c)); err != nil {
		t.Error(err)
	}
}
