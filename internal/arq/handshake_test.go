package arq

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/openarkstudio/arknet-go/internal/wire"
	"github.com/openarkstudio/arknet-go/netem"
)

// newPair is a client and a server node over the condition.
func newPair(t testing.TB, net netem.Config, seed uint64, change func(client, server *Config)) (s *sim, client, server *node) {
	t.Helper()
	s = newSim(t)
	up, down := testLinks(t, net, seed)
	cc, sc := testConfig(1), testConfig(2)
	if change != nil {
		change(&cc, &sc)
	}
	client, server = s.pair(cc, sc, up, down)
	return s, client, server
}

func TestHandshakeTakesOneRoundTrip(t *testing.T) {
	s, client, server := newPair(t, path20, 1, nil)
	var clientOpen, serverOpen, got Time
	client.onOpen = func() {
		clientOpen = s.now
		client.send([]byte("first"))
	}
	server.onOpen = func() { serverOpen = s.now }
	server.onMessage = func(m []byte) {
		if string(m) == "first" {
			got = s.now
		}
	}
	s.runFor(time.Second)
	if clientOpen != Time(1).add(20*ms) || serverOpen != Time(1).add(30*ms) || got != serverOpen {
		t.Errorf("client open at %v, server at %v, first message at %v",
			clientOpen.sub(1), serverOpen.sub(1), got.sub(1))
	}
	for _, n := range []*node{client, server} {
		if st := n.c.Stats(); st.MinRTT != 20*ms || st.SmoothedRTT > 25*ms {
			t.Errorf("round trip %v, smoothed %v", st.MinRTT, st.SmoothedRTT)
		}
	}
}

// Whichever of the first datagrams are lost, the session opens once on both
// sides and the first bytes arrive in order.
func TestHandshakeSurvivesLoss(t *testing.T) {
	for mask := range 1 << 6 {
		s, client, server := newPair(t, path20, 1, nil)
		drop := func(n *node, bits int) {
			i := 0
			n.tap = func([]byte) bool {
				i++
				return bits>>(i-1)&1 == 0
			}
		}
		drop(client, mask&7)
		drop(server, mask>>3)
		opened, accepted := 0, 0
		var got []byte
		client.onOpen = func() {
			opened++
			client.send([]byte("a"))
			client.send([]byte("b"))
		}
		server.onOpen = func() {
			accepted++
			server.send([]byte("c"))
		}
		server.onMessage = func(m []byte) { got = append(got, m...) }
		client.onMessage = func(m []byte) { got = append(got, m...) }
		s.runFor(5 * time.Second)
		want := "abc"
		if string(got) == "acb" || string(got) == "cab" { // of two directions
			want = string(got)
		}
		if opened != 1 || accepted != 1 || string(got) != want {
			t.Errorf("losses %06b: opened %d times, accepted %d times, received %q", mask, opened, accepted, got)
		}
	}
}

func TestHandshakeUnderEveryCondition(t *testing.T) {
	for seed := range uint64(100) {
		s, client, server := newPair(t, netem.Config{
			Delay: 10 * ms, Jitter: 30 * ms, JitterReorders: true, Loss: 0.2, Duplicate: 0.5, Corrupt: 0.1,
			Late: netem.Late{Share: 0.1, Delay: 500 * ms},
		}, seed, nil)
		opened, accepted, got := 0, 0, 0
		client.onOpen = func() {
			opened++
			for i := range 20 {
				client.send(binary.BigEndian.AppendUint32(nil, uint32(i)))
			}
		}
		server.onOpen = func() { accepted++ }
		server.onMessage = func(m []byte) {
			if int(binary.BigEndian.Uint32(m)) != got {
				t.Fatalf("seed %d: message %x after %d", seed, m, got)
			}
			got++
		}
		s.runFor(9 * time.Second)
		if opened != 1 || accepted != 1 || got != 20 {
			t.Errorf("seed %d: opened %d times, accepted %d times, %d messages", seed, opened, accepted, got)
		}
	}
}

func TestHandshakeRetries(t *testing.T) {
	s, client, server := newPair(t, path20, 1, nil)
	var at []time.Duration
	client.tap = func(b []byte) bool {
		if len(b) != handshakePadding || wire.Classify(b) != wire.KindHandshake {
			t.Errorf("a first flight of %d bytes", len(b))
		}
		at = append(at, s.now.sub(1))
		return false
	}
	s.runFor(30 * time.Second)
	if !errors.Is(client.c.Err(), ErrHandshakeTimeout) || client.c.State() != StateDone || server.c != nil {
		t.Fatalf("error %v in state %d", client.c.Err(), client.c.State())
	}
	want := []time.Duration{0, 200 * ms, 500 * ms, 950 * ms, 1625 * ms, 2625 * ms, 3625 * ms}
	for i, w := range want {
		if i >= len(at) || at[i] != w {
			t.Fatalf("flights at %v, want %v, then every second", at, want)
		}
	}
	if last := at[len(at)-1]; last < 9*time.Second || last > 10*time.Second {
		t.Errorf("the last flight left after %v", last)
	}
}

// Until the client has proven its address it gets at most three times what it
// sent, and the server forgets it at the handshake timeout.
func TestHandshakeAmplification(t *testing.T) {
	for _, first := range []int{MinMTU, DefaultMTU} {
		s, client, server := newPair(t, path20, 1, func(cc, sc *Config) {
			cc.MTU = first
			sc.HandshakeTimeout = time.Hour
		})
		server.mute = true
		flights := 0
		client.tap = func([]byte) bool {
			flights++
			return flights == 1
		}
		s.runFor(2 * time.Hour)
		if server.sentBytes > int64(3*first) || server.sentBytes < int64(3*first-200) {
			t.Errorf("%d bytes answered %d", server.sentBytes, first)
		}
		if !errors.Is(server.c.Err(), ErrHandshakeTimeout) || server.c.State() != StateDone {
			t.Errorf("server: %v in state %d", server.c.Err(), server.c.State())
		}
	}
}

// versions is an answer to the client's first flight that lists the versions.
func versions(dst wire.ConnID, list ...uint32) []byte {
	b := wire.AppendLong(nil, wire.Long{Kind: wire.KindVersions, Version: wire.Version, Dst: dst})
	return wire.AppendChecksum(wire.AppendVersions(b, list...), 0, wire.HandshakeKey)
}

func TestVersions(t *testing.T) {
	for _, tt := range []struct {
		name string
		b    []byte
		want error
	}{
		{"none in common", versions(scriptLocal, 1, 2), ErrVersion},
		{"no version at all", versions(scriptLocal), ErrVersion},
		{"ours among them", versions(scriptLocal, 1, wire.Version), nil},
		{"for another session", versions(scriptLocal+1, 1), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := NewClient(1, testConfig(uint32(scriptLocal)))
			c.AppendDatagrams(1, nil, 1)
			c.HandleDatagram(2, tt.b)
			if !errors.Is(c.Err(), tt.want) || tt.want == nil && c.State() != StateHandshake {
				t.Errorf("error %v in state %d", c.Err(), c.State())
			}
		})
	}
	s := newScript(t, nil)
	s.deliver(versions(scriptLocal, 1))
	if s.c.State() != StateOpen || s.c.Stats().Dropped.Unexpected != 1 {
		t.Error("an open session took a list of versions")
	}
	server := NewServer(1, testConfig(2), wire.Long{Src: 1})
	server.HandleDatagram(1, versions(2, 1))
	if server.State() != StateHandshake {
		t.Error("a server took a list of versions")
	}
}

// Handshake datagrams that do not belong to the session are counted and
// change nothing.
func TestForeignHandshakeDatagrams(t *testing.T) {
	p := peerParams()
	long := func(h wire.Long, body []byte) []byte {
		if h.Version == 0 {
			h.Version = wire.Version
		}
		h.Kind = wire.KindHandshake
		return wire.AppendChecksum(append(wire.AppendLong(nil, h), body...), 0, wire.HandshakeKey)
	}
	params := wire.AppendParams(nil, &p)
	crypto := wire.AppendCrypto(nil, 0, append(binary.BigEndian.AppendUint16(nil, uint16(len(params))), params...))
	for name, b := range map[string][]byte{
		"other destination":   long(wire.Long{Dst: scriptLocal + 1, Src: scriptRemote}, crypto),
		"no destination":      long(wire.Long{Src: scriptRemote}, crypto),
		"no source":           long(wire.Long{Dst: scriptLocal}, crypto),
		"other version":       long(wire.Long{Dst: scriptLocal, Src: scriptRemote, Version: 9}, crypto),
		"window record":       long(wire.Long{Dst: scriptLocal, Src: scriptRemote}, wire.AppendWindow(nil, 1)),
		"gap before":          long(wire.Long{Dst: scriptLocal, Src: scriptRemote}, wire.AppendCrypto(nil, 5, params)),
		"beyond the limit":    long(wire.Long{Dst: scriptLocal, Src: scriptRemote}, wire.AppendCrypto(nil, 0, make([]byte, 2000))),
		"parameters cut":      long(wire.Long{Dst: scriptLocal, Src: scriptRemote}, wire.AppendCrypto(nil, 0, []byte{0, 3, 1, 8, 1})),
		"retry":               wire.AppendChecksum(wire.AppendLong(nil, wire.Long{Kind: wire.KindRetry, Version: wire.Version, Dst: scriptLocal, Src: scriptRemote}), 0, wire.HandshakeKey),
		"under a session key": wire.AppendChecksum(bytes.Clone(long(wire.Long{Dst: scriptLocal, Src: scriptRemote}, crypto)), 0, 7),
	} {
		t.Run(name, func(t *testing.T) {
			c := NewClient(1, testConfig(uint32(scriptLocal)))
			c.AppendDatagrams(1, nil, 1)
			c.HandleDatagram(2, b)
			if c.State() != StateHandshake || c.Err() != nil {
				t.Fatalf("state %d, error %v", c.State(), c.Err())
			}
			c.HandleDatagram(3, peerFlight(p, 0))
			if c.State() != StateOpen {
				t.Errorf("state %d after the true answer", c.State())
			}
		})
	}
}

// Datagrams of a former session fail the checksum of the next one, also when
// the ids are the same.
func TestFormerSessionCannotTouchTheNext(t *testing.T) {
	old := newScript(t, nil)
	d := old.dataDatagram(0, whole("old"))
	s := newScript(t, func(c *Config, _ *wire.Params) { c.Nonce = [wire.NonceLen]byte{1, 2, 3} })
	s.deliver(d)
	s.deliver(old.datagram(wire.Short{Control: true}, wire.AppendClose(nil, false, 0, "")))
	if st := s.c.Stats(); st.Dropped.Checksum != 2 || s.c.State() != StateOpen || s.c.Readable() {
		t.Errorf("%d datagrams failed the checksum, state %d", st.Dropped.Checksum, s.c.State())
	}
}

// Messages queued before the handshake are kept, and cut again when the peer
// accepts shorter datagrams only.
func TestPeerLimitsDatagrams(t *testing.T) {
	cfg := testConfig(uint32(scriptLocal))
	c := NewClient(1, cfg)
	var want [][]byte
	for _, n := range []int{0, 10, 500, 600, 1100, 20_000, 3} {
		m := bytes.Repeat([]byte{byte(n)}, n)
		want = append(want, m)
		if _, err := c.Send(1, m); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	bytesBefore, messagesBefore := c.Queued()
	c.AppendDatagrams(1, nil, 1)
	p := peerParams()
	p.MaxDatagram = MinMTU
	c.HandleDatagram(2, peerFlight(p, 0))
	if b, m := c.Queued(); b != bytesBefore || m != messagesBefore {
		t.Errorf("%d bytes of %d messages are queued, %d of %d were", b, m, bytesBefore, messagesBefore)
	}
	s := &script{t: t, c: c, now: 2, key: wire.SessionKey(cfg.Nonce, p.Nonce)}
	s.drain()
	in := newRecvQueue()
	for _, d := range s.took() {
		if d.size > MinMTU {
			t.Fatalf("a datagram of %d bytes, the peer takes %d", d.size, MinMTU)
		}
		if d.payload == wire.PayloadData {
			if err := in.accept(d.symbol, d.data); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, m := range want {
		got, ok := in.appendMessage(nil)
		if !ok || !bytes.Equal(got, m) {
			t.Fatalf("message %d of %d bytes came out with %d, %v", i, len(m), len(got), ok)
		}
	}
	if !in.fin {
		t.Error("the end of the direction was lost")
	}
}

func TestServerLimitsDatagramsToo(t *testing.T) {
	s, client, server := newPair(t, path20, 1, nil)
	inner := server.newConn
	server.newConn = func(b []byte) *Conn {
		c := inner(b)
		c.limitDatagrams(MinMTU)
		return c
	}
	longest := 0
	server.tap = func(b []byte) bool {
		longest = max(longest, len(b))
		return true
	}
	server.onOpen = func() { server.send(make([]byte, 50_000)) }
	got := 0
	client.onMessage = func(m []byte) { got = len(m) }
	s.runFor(time.Second)
	if longest > MinMTU || got != 50_000 {
		t.Errorf("datagrams of %d bytes, message of %d", longest, got)
	}
}

func TestPeerLimitsMessages(t *testing.T) {
	s := newScript(t, func(_ *Config, p *wire.Params) { p.MaxMessage = 1000 })
	if s.c.PeerMaxMessage() != 1000 {
		t.Errorf("longest message %d", s.c.PeerMaxMessage())
	}
	if _, err := s.c.Send(s.now, make([]byte, 1001)); !errors.Is(err, ErrMessageTooLarge) {
		t.Errorf("error %v", err)
	}
	s.drain()
	s.want()
	if _, err := s.c.Send(s.now, make([]byte, 1000)); err != nil {
		t.Error(err)
	}
	s.drain()
	s.want("data 0")
}

// A server that takes no session says so at once, and costs the client one
// round trip.
func TestServerRefuses(t *testing.T) {
	for _, answered := range []bool{false, true} {
		t.Run(fmt.Sprint("answered ", answered), func(t *testing.T) {
			s, client, server := newPair(t, path20, 1, nil)
			inner := server.newConn
			server.newConn = func(b []byte) *Conn {
				c := inner(b)
				c.HandleDatagram(s.now, b)
				if answered { // and the answer is lost
					c.AppendDatagrams(s.now, nil, maxTrain)
				}
				c.Abort(s.now, CodeRefused, "too many sessions")
				return c
			}
			s.runFor(25 * ms)
			var closed *CloseError
			if !errors.As(client.c.Err(), &closed) || !closed.Remote || closed.Code != CodeRefused || closed.Reason != "too many sessions" {
				t.Errorf("client: %v", client.c.Err())
			}
			if client.c.State() != StateDone || server.c.State() != StateDone {
				t.Errorf("states %d and %d", client.c.State(), server.c.State())
			}
		})
	}
}

// An open client is beyond being refused.
func TestRefusalComesTooLate(t *testing.T) {
	s := newScript(t, nil)
	b := wire.AppendLong(nil, wire.Long{Kind: wire.KindHandshake, Version: wire.Version, Dst: scriptLocal, Src: scriptRemote})
	b = wire.AppendClose(b, false, CodeRefused, "")
	s.deliver(wire.AppendChecksum(b, 0, wire.HandshakeKey))
	if s.c.State() != StateOpen {
		t.Error("whoever knows the id ends the session without the key")
	}
}

func TestClientGivesUpTheHandshake(t *testing.T) {
	s, client, _ := newPair(t, path20, 1, nil)
	s.runFor(5 * ms)
	client.c.Close(s.now)
	client.turn()
	if client.c.State() != StateDone || client.c.Err() == nil {
		t.Errorf("state %d, error %v", client.c.State(), client.c.Err())
	}
}

func TestFirstFlight(t *testing.T) {
	c := NewClient(1, testConfig(7))
	b, _ := c.AppendDatagrams(1, nil, 1)
	h, ok := FirstFlight(b)
	if !ok || h.Src != 7 || h.Dst != 0 {
		t.Fatalf("header %+v, %v", h, ok)
	}
	for n := range len(b) {
		if _, ok := FirstFlight(b[:n]); ok {
			t.Fatalf("taken when cut at %d bytes", n)
		}
	}
	for _, change := range []func(h *wire.Long){
		func(h *wire.Long) { h.Src = 0 },
		func(h *wire.Long) { h.Dst = 1 },
		func(h *wire.Long) { h.Version++ },
		func(h *wire.Long) { h.Kind = wire.KindReset },
	} {
		h := wire.Long{Kind: wire.KindHandshake, Version: wire.Version, Src: 7}
		change(&h)
		d := append(wire.AppendLong(nil, h), b[wire.LongHeaderLen:len(b)-wire.ChecksumLen]...)
		if _, ok := FirstFlight(wire.AppendChecksum(d, 0, wire.HandshakeKey)); ok {
			t.Errorf("taken with header %+v", h)
		}
	}
}
