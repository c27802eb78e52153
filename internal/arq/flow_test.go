package arq

import (
	"bytes"
	"testing"
	"time"

	"github.com/openarkstudio/arknet-go/internal/wire"
	"github.com/openarkstudio/arknet-go/netem"
)

// What arrived ahead of a gap was acknowledged, so the peer never sends it
// again: an application that stops reading must not make the Conn forget it.
func TestDiscardKeepsWhatWasAcknowledged(t *testing.T) {
	s := newScript(t, nil)
	s.data(1, whole("b"))
	s.data(2, whole("c"))
	s.c.Discard()
	s.data(0, whole("a"))
	if s.c.recv.next != 3 || s.c.recv.memory() != 0 {
		t.Fatalf("next symbol %d with %d bytes held, want 3 and 0", s.c.recv.next, s.c.recv.memory())
	}
	s.data(3, whole("d"))
	s.advance(scriptRTT / 16)
	if last := s.took()[0]; last.ack.Next != 4 {
		t.Errorf("the ack says that symbol %d is missing, want 4", last.ack.Next)
	}
	if d := s.c.Stats().Dropped.Discarded; d != 4 {
		t.Errorf("%d symbols discarded, want 4", d)
	}
}

// What is discarded does not fill the window.
func TestDiscardLeavesTheWindowOpen(t *testing.T) {
	s := newScript(t, func(c *Config, _ *wire.Params) { c.RecvWindow = 4 * 1002 })
	s.c.Discard()
	for id := range wire.SymbolID(20) {
		s.data(id, whole(string(make([]byte, 1000))))
	}
	if w := s.c.Stats().Dropped.Window; w != 0 || s.c.recv.next != 20 {
		t.Errorf("%d symbols were beyond the window, next is %d", w, s.c.recv.next)
	}
}

// budget is receive memory that counts.
type budget struct{ limit, held, peak int }

func (b *budget) Reserve(n int) bool {
	if b.held+n > b.limit {
		return false
	}
	b.held += n
	b.peak = max(b.peak, b.held)
	return true
}

func (b *budget) Release(n int) { b.held -= n }

// Sessions that share a small receive memory stay within it, and go on once
// another one gives some back. All of it is given back in the end, whatever
// was never read.
func TestReceiveMemoryIsShared(t *testing.T) {
	shared := &budget{limit: 256 << 10}
	s := newSim(t)
	var clients, servers []*node
	got := make([]int, 3)
	for i := range got {
		up, down := testLinks(t, netem.Config{Delay: 5 * ms, Loss: 0.02}, uint64(i))
		cc, sc := testConfig(uint32(10+i)), testConfig(uint32(20+i))
		sc.Memory = shared
		client, server := s.pair(cc, sc, up, down)
		server.readAll = false
		server.onMessage = func([]byte) { got[i]++ }
		client.onOpen = func() {
			for range 400 {
				client.send(make([]byte, 1000))
			}
		}
		clients, servers = append(clients, client), append(servers, server)
	}
	s.runFor(2 * time.Second)
	if shared.held < 200<<10 || servers[0].c.Stats().Dropped.Memory+servers[1].c.Stats().Dropped.Memory == 0 {
		t.Fatalf("%d bytes are held of %d: the test fills nothing", shared.held, shared.limit)
	}
	for i, server := range servers {
		server.readAll = true
		server.turn()
		s.runFor(3 * time.Second)
		if got[i] != 400 {
			t.Errorf("session %d received %d messages of 400", i, got[i])
		}
	}
	for i := range servers {
		servers[i].readAll = false
		clients[i].send(make([]byte, 20_000))
		clients[i].send(make([]byte, 1<<20))
	}
	s.runFor(100 * ms)
	for i := range servers {
		clients[i].c.Abort(s.now, 1, "")
		clients[i].turn()
	}
	s.runFor(5 * time.Second)
	for i, server := range servers {
		if server.c.State() != StateDone {
			t.Fatalf("session %d is in state %d", i, server.c.State())
		}
		for ok := true; ok; {
			_, ok, _ = server.c.AppendMessage(nil)
		}
	}
	if shared.held != 0 || shared.peak > shared.limit {
		t.Errorf("%d bytes are still reserved, peak %d of %d", shared.held, shared.peak, shared.limit)
	}
}

// The window is the sum of symbol bytes from the start of the session. What
// exceeds it is dropped, counted and not acknowledged.
func TestWindowIsEnforced(t *testing.T) {
	s := newScript(t, func(c *Config, _ *wire.Params) { c.RecvWindow, c.RecvSymbols = 3*1002, 8 })
	m := whole(string(make([]byte, 1000)))
	s.data(0, m)
	s.data(2, m)
	s.data(1, m)
	s.data(3, m)            // beyond the bytes
	s.data(11, whole(""))   // beyond the symbols
	s.data(3, []byte("xx")) // the same in two bytes
	s.advance(2 * ms)
	s.want("ack 0-2")
	if st := s.c.Stats(); st.Dropped.Window != 3 || st.ReceiveBuffered != 3*1002 {
		t.Errorf("%d datagrams beyond the window, %d bytes held", st.Dropped.Window, st.ReceiveBuffered)
	}
	s.c.AppendMessage(nil)
	s.drain()
	s.want("window 4008")
	s.data(3, m)
	s.advance(2 * ms)
	if s.c.recv.next != 4 {
		t.Errorf("next symbol %d after the window opened", s.c.recv.next)
	}
}

// A sender stops at the window's edge and goes on when it moves.
func TestSenderKeepsTheWindow(t *testing.T) {
	s := newScript(t, func(_ *Config, p *wire.Params) { p.RecvWindow, p.SymbolWindow = 2*1002+1001, 100 })
	s.send(4)
	s.want("data 0", "data 1")
	s.advance(scriptRTT)
	s.deliver(s.ackDatagram(2, 1, 2))
	s.want()
	s.control(wire.AppendWindow(nil, 4*1002-1))
	s.want("data 2")
	s.control(wire.AppendWindow(nil, 100)) // never shrinks
	s.advance(ms)
	s.took()
	s.control(wire.AppendWindow(nil, 4*1002))
	s.want("data 3")
}

// The same for the number of symbols, which only acks move.
func TestSenderKeepsTheSymbolWindow(t *testing.T) {
	s := newScript(t, func(_ *Config, p *wire.Params) { p.SymbolWindow = 2 })
	s.send(4)
	s.want("data 0", "data 1")
	s.advance(scriptRTT)
	s.ack(2, 2)
	s.want() // symbol 0 is missing
	s.advance(4 * ms)
	s.want("data 0")
	s.advance(scriptRTT)
	s.deliver(s.ackDatagram(2, 2, 3))
	s.want("data 2", "data 3")
}

// A message longer than the window completes, for nobody could read its
// beginning; the one behind it waits until it was read.
func TestMessageLongerThanTheWindow(t *testing.T) {
	for _, symbols := range []int{31, 32, 33, 127, 128, 255, 256, 900} {
		s := newSim(t)
		up, down := testLinks(t, profile(t, "random"), uint64(symbols))
		cc, sc := testConfig(1), testConfig(2)
		sc.RecvSymbols, sc.RecvWindow = 32, 32*1200
		client, server := s.pair(cc, sc, up, down)
		long := make([]byte, symbols*(maxPayload(cc.MTU)-wire.RecordOverhead(wire.RecordContinue, 0))-4)
		for i := range long {
			long[i] = byte(i >> 3)
		}
		var got [][]byte
		server.onMessage = func(m []byte) { got = append(got, bytes.Clone(m)) }
		client.onOpen = func() {
			client.send(long)
			client.send([]byte("0123456789"))
		}
		s.runFor(time.Minute)
		if len(got) != 2 || !bytes.Equal(got[0], long) || string(got[1]) != "0123456789" {
			t.Errorf("%d symbols: %d messages arrived", symbols, len(got))
		}
		if sent := client.c.Stats().DataSent; sent != uint64(symbols)+1 {
			t.Errorf("%d symbols were sent for a message of %d and one of 10 bytes", sent, symbols)
		}
	}
}

// A reader that is slow, or pauses, stops the writer and never deadlocks it.
func TestSlowReader(t *testing.T) {
	s := newSim(t)
	up, down := testLinks(t, profile(t, "random"), 3)
	cc, sc := testConfig(1), testConfig(2)
	sc.RecvWindow = 64 << 10
	client, server := s.pair(cc, sc, up, down)
	feed(client, 1000)
	server.readAll = false
	read := 0
	peak := 0
	var step func()
	step = func() {
		for range 5 {
			if _, ok, _ := server.c.AppendMessage(nil); ok {
				read++
			}
		}
		server.turn()
		peak = max(peak, server.c.Stats().ReceiveBuffered)
		s.after(10*ms, step)
	}
	s.after(5*time.Second, step) // the window is full by then
	s.runFor(25 * time.Second)
	if want := 5 * 2000; read < want*95/100 {
		t.Errorf("%d messages were read, want %d", read, want)
	}
	if peak > 64<<10+2000 {
		t.Errorf("%d bytes were held with a window of 64 KiB", peak)
	}
}
