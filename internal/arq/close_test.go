package arq

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/openarkstudio/arknet-go/internal/wire"
	"github.com/openarkstudio/arknet-go/netem"
)

// wantClosedByPeer checks that the session ended gracefully by the peer's word.
func wantClosedByPeer(t *testing.T, who string, err error) {
	t.Helper()
	var closed *CloseError
	if !errors.As(err, &closed) || !closed.Remote || closed.Transport || closed.Code != CodeNone {
		t.Errorf("%s: error %v, want a graceful close by the peer", who, err)
	}
}

func TestCloseFlushes(t *testing.T) {
	s, client, server := opened(t, path20, nil)
	got := 0
	server.onMessage = func([]byte) { got++ }
	for range 100 {
		client.send(make([]byte, 1000))
	}
	start := s.now
	client.c.Close(s.now)
	client.turn()
	if _, err := client.c.Send(s.now, []byte("late")); !errors.Is(err, ErrClosed) {
		t.Errorf("a message after Close: %v", err)
	}
	s.run(start.add(200 * ms))
	if got != 100 || !errors.Is(client.c.Err(), ErrClosed) {
		t.Errorf("%d messages arrived, client: %v", got, client.c.Err())
	}
	wantClosedByPeer(t, "server", server.c.Err())
	if n, b := client.c.Unacknowledged(); n != 0 || b != 0 {
		t.Errorf("%d messages, %d bytes unacknowledged", n, b)
	}
	if client.c.State() != StateDone || server.c.State() != StateDone {
		t.Errorf("states %d and %d", client.c.State(), server.c.State())
	}
}

// What was accepted before Close arrives, or the error says that it did not:
// never a silent loss.
func TestCloseNeverLosesSilently(t *testing.T) {
	for _, load := range []struct{ size, runs int }{{6, 1000}, {100_000, 40}, {1 << 20, 4}} {
		complete := 0
		for seed := range uint64(load.runs) {
			s, client, server := newPair(t, netem.Config{Delay: 50 * ms, Loss: 0.1}, seed, nil)
			want := bytes.Repeat([]byte{1, 2, 3, 4, 5, 6, 7}, load.size/7+1)[:load.size]
			var got []byte
			server.onMessage = func(m []byte) { got = bytes.Clone(m) }
			client.onOpen = func() {
				client.send(want)
				client.c.Close(s.now)
			}
			s.runFor(30 * time.Second)
			if client.c.State() != StateDone || server.c.State() != StateDone {
				t.Fatalf("%d bytes, seed %d: states %d and %d", load.size, seed, client.c.State(), server.c.State())
			}
			left, _ := client.c.Unacknowledged()
			switch {
			case errors.Is(client.c.Err(), ErrClosed):
				complete++
				if !bytes.Equal(got, want) || left != 0 {
					t.Errorf("%d bytes, seed %d: closed in peace, %d bytes arrived, %d messages unacknowledged", load.size, seed, len(got), left)
				}
			case errors.Is(client.c.Err(), ErrLinger):
				if left != 1 {
					t.Errorf("%d bytes, seed %d: %v with %d messages unacknowledged", load.size, seed, client.c.Err(), left)
				}
			default:
				t.Errorf("%d bytes, seed %d: error %v", load.size, seed, client.c.Err())
			}
		}
		if complete < load.runs*99/100 {
			t.Errorf("%d bytes: %d of %d sessions closed within the linger time", load.size, complete, load.runs)
		}
	}
}

func TestHalfClose(t *testing.T) {
	s, client, server := newPair(t, netem.Config{Delay: 50 * ms, Loss: 0.1}, 3, nil)
	answer := make([]byte, 1<<20)
	got := 0
	server.onMessage = func(m []byte) {
		if len(m) != 1000 {
			t.Errorf("request of %d bytes", len(m))
		}
		s.after(200*ms, func() {
			if !server.c.ReadDone() {
				t.Error("the server has not read the end of the request")
			}
			server.send(answer)
			server.c.Close(s.now)
			server.turn()
		})
	}
	client.onMessage = func(m []byte) { got += len(m) }
	client.onOpen = func() {
		client.send(make([]byte, 1000))
		if err := client.c.CloseWrite(); err != nil {
			t.Error(err)
		}
		if _, err := client.c.Send(s.now, []byte("late")); !errors.Is(err, ErrClosed) {
			t.Errorf("a message after CloseWrite: %v", err)
		}
		if err := client.c.CloseWrite(); err != nil {
			t.Errorf("a second CloseWrite: %v", err)
		}
		client.turn()
	}
	s.runFor(10 * time.Second)
	if got != len(answer) {
		t.Errorf("%d bytes of the answer arrived", got)
	}
	wantClosedByPeer(t, "client", client.c.Err())
}

func TestSimultaneousClose(t *testing.T) {
	for seed := range uint64(20) {
		s, client, server := newPair(t, netem.Config{Delay: 10 * ms, Loss: 0.1}, seed, nil)
		s.runFor(2 * time.Second)
		got := 0
		client.onMessage = func([]byte) { got++ }
		server.onMessage = func([]byte) { got++ }
		for range 10 {
			client.send(make([]byte, 2000))
			server.send(make([]byte, 2000))
		}
		for _, n := range []*node{client, server} {
			n.c.Close(s.now)
			n.turn()
		}
		s.runFor(10 * time.Second)
		if client.c.State() != StateDone || server.c.State() != StateDone {
			t.Fatalf("seed %d: states %d and %d", seed, client.c.State(), server.c.State())
		}
		clientLeft, _ := client.c.Unacknowledged()
		serverLeft, _ := server.c.Unacknowledged()
		if got+int(clientLeft+serverLeft) < 20 {
			t.Errorf("seed %d: %d messages arrived, %d and %d are owned up to", seed, got, clientLeft, serverLeft)
		}
	}
}

func TestAbort(t *testing.T) {
	s, client, server := opened(t, path20, nil)
	for range 500 {
		client.send(make([]byte, 1000))
	}
	s.runFor(15 * ms)
	client.c.Abort(s.now, 42, "no more")
	client.turn()
	var closed *CloseError
	if !errors.As(client.c.Err(), &closed) || closed.Remote || closed.Code != 42 {
		t.Errorf("client: %v", client.c.Err())
	}
	if n, b := client.c.Unacknowledged(); n != 500 || b < 500_000 {
		t.Errorf("%d messages, %d bytes unacknowledged", n, b)
	}
	s.runFor(11 * ms)
	if !errors.As(server.c.Err(), &closed) || !closed.Remote || closed.Transport || closed.Code != 42 || closed.Reason != "no more" {
		t.Errorf("server: %v", server.c.Err())
	}
	client.c.Abort(s.now, 43, "again")
	client.c.Close(s.now)
	client.turn()
	s.runFor(200 * ms)
	if client.c.State() != StateDone || server.c.State() != StateDone {
		t.Errorf("states %d and %d", client.c.State(), server.c.State())
	}
	if !errors.As(client.c.Err(), &closed) || closed.Code != 42 {
		t.Errorf("the second reason replaced the first: %v", client.c.Err())
	}
}

// A peer that does not read holds a graceful close up for the linger time and
// no longer, and both sides learn that data is missing.
func TestLingerEnds(t *testing.T) {
	s, client, server := opened(t, path20, func(cc, sc *Config) {
		cc.Linger = 3 * time.Second
		sc.RecvWindow = 20_000
	})
	server.readAll = false
	for range 100 {
		client.send(make([]byte, 1000))
	}
	start := s.now
	client.c.Close(s.now)
	client.turn()
	var ended Time
	client.onEvents = func(e Events) {
		if e&EventFailed != 0 {
			ended = s.now
		}
	}
	s.runFor(5 * time.Second)
	if !errors.Is(client.c.Err(), ErrLinger) || ended.sub(start) != 3*time.Second {
		t.Errorf("error %v after %v", client.c.Err(), ended.sub(start))
	}
	if n, _ := client.c.Unacknowledged(); n < 80 || n > 81 {
		t.Errorf("%d messages unacknowledged", n)
	}
	var closed *CloseError
	if !errors.As(server.c.Err(), &closed) || !closed.Remote || !closed.Transport || closed.Code != CodeUnflushed {
		t.Errorf("server: %v", server.c.Err())
	}
	read := 0
	for _, ok, _ := server.c.AppendMessage(nil); ok; _, ok, _ = server.c.AppendMessage(nil) {
		read++
	}
	if left, _ := client.c.Unacknowledged(); read+int(left) != 100 {
		t.Errorf("%d messages were readable after the end, %d unacknowledged", read, left)
	}
}

// An unanswered CLOSE is repeated with growing distance, then the session ends.
func TestCloseIsRepeated(t *testing.T) {
	s := newScript(t, nil)
	s.c.Close(s.now)
	s.drain()
	start := s.now
	pto := s.c.rtt.pto(s.now)
	s.advance(time.Minute)
	out := s.took()
	if len(out) != closeTries || s.c.State() != StateDone {
		t.Fatalf("%d tries, state %d", len(out), s.c.State())
	}
	wait := time.Duration(0)
	for i, d := range out {
		if d.String() != "close 0" || d.at.sub(start) != wait {
			t.Errorf("try %d: %q after %v, want after %v", i, d, d.at.sub(start), wait)
		}
		wait += pto << i
	}
	if s.c.TakeEvents()&EventDone == 0 {
		t.Error("the end is not told")
	}
	if _, ok := s.c.NextTimeout(); ok {
		t.Error("a session that is done wants to be woken")
	}
}

// A round trip of minutes, seen after an outage, does not make the close one.
func TestCloseEndsSoon(t *testing.T) {
	s := newScript(t, func(c *Config, _ *wire.Params) { c.DeadPeerTimeout, c.KeepAlive = 0, 0 })
	s.send(1)
	s.now = s.now.add(10 * time.Minute)
	s.ack(0, 1)
	s.c.Abort(s.now, 0, "")
	s.drain()
	s.advance(closeTries * closeMaxRetry)
	if s.c.State() != StateDone {
		t.Errorf("state %d", s.c.State())
	}
}

// The acknowledged CLOSE ends it at once; repeats of the peer's are acknowledged
// for a while.
func TestCloseIsAcknowledged(t *testing.T) {
	s := newScript(t, nil)
	s.c.Close(s.now)
	s.drain()
	s.want("close 0")
	s.advance(scriptRTT)
	s.ack(0, 1)
	if s.c.State() != StateDone {
		t.Errorf("state %d", s.c.State())
	}

	s = newScript(t, nil)
	s.control(wire.AppendClose(nil, false, 0, ""))
	s.advance(2 * ms)
	s.want("ack 0")
	if s.c.State() != StateDraining {
		t.Fatalf("state %d", s.c.State())
	}
	s.control(wire.AppendClose(nil, false, 0, ""))
	s.advance(2 * ms)
	s.want("ack 0-1")
	s.advance(time.Second)
	s.want()
	if s.c.State() != StateDone {
		t.Errorf("state %d", s.c.State())
	}
}

// Data that comes after the close is not acknowledged: the peer must not
// believe that somebody holds it.
func TestDataAfterTheCloseIsNotAcknowledged(t *testing.T) {
	for _, state := range []State{StateClosing, StateDraining} {
		t.Run(fmt.Sprint("state ", state), func(t *testing.T) {
			s := newScript(t, nil)
			if state == StateClosing {
				s.c.Abort(s.now, 0, "")
			} else {
				s.control(wire.AppendClose(nil, false, 0, ""))
			}
			s.drain()
			s.advance(2 * ms)
			s.took()
			s.data(0, whole("x"))
			s.advance(3 * ms)
			for _, d := range s.took() {
				if d.ack != nil && d.ack.Ranges[0].Hi >= uint64(s.peer.next-1) {
					t.Errorf("sent %v with an ack of %s", d, rangesString(d.ack.Ranges))
				}
			}
			if n := s.c.Stats().Dropped.Stale; n != 1 || s.c.Readable() {
				t.Errorf("%d datagrams dropped as stale", n)
			}
		})
	}
}

// What is ready can still be read after the peer's close; a writer that waits
// for room is released by it.
func TestCloseReleasesBothSides(t *testing.T) {
	s, client, server := opened(t, path20, func(cc, _ *Config) { cc.SendQueued = 4 })
	server.readAll = false
	client.readAll = false
	server.send([]byte("last words"))
	for blocked := false; !blocked; {
		_, err := client.c.Send(s.now, make([]byte, 100_000))
		blocked = errors.Is(err, ErrQueueFull)
	}
	client.turn()
	woken := Time(0)
	client.onEvents = func(e Events) {
		if e&EventFailed != 0 && e&EventWritable != 0 && e&EventReadable != 0 {
			woken = s.now
		}
	}
	s.runFor(100 * ms) // until the last words are acknowledged
	server.c.Abort(s.now, 0, "")
	server.turn()
	start := s.now
	s.runFor(time.Second)
	if woken == 0 || woken.sub(start) > 20*ms+100*ms {
		t.Errorf("woken after %v", woken.sub(start))
	}
	_, err := client.c.Send(s.now, nil)
	wantClosedByPeer(t, "a further write", err)
	if m, ok, _ := client.c.AppendMessage(nil); !ok || string(m) != "last words" {
		t.Errorf("read %q, %v", m, ok)
	}
}

func TestResetIsBelievedWithItsProof(t *testing.T) {
	s := newScript(t, nil)
	s.send(2)
	s.took()
	good := wire.Quote{Number: 2, Checksum: s.c.sent.at(2).checksum}
	for _, bad := range [][]byte{
		wire.AppendReset(nil, scriptRemote+1, good),
		wire.AppendReset(nil, scriptRemote, wire.Quote{Number: 2, Checksum: good.Checksum + 1}),
		wire.AppendReset(nil, scriptRemote, wire.Quote{Number: 1, Checksum: good.Checksum}),
		wire.AppendReset(nil, scriptRemote, wire.Quote{Number: 900, Checksum: good.Checksum}),
		wire.AppendReset(nil, scriptRemote, good)[:20],
	} {
		s.deliver(bad)
	}
	if st := s.c.Stats(); s.c.State() != StateOpen || st.Dropped.BadReset+st.Dropped.Checksum != 5 {
		t.Fatalf("state %d, %d bad resets", s.c.State(), st.Dropped.BadReset)
	}
	s.deliver(wire.AppendReset(nil, scriptRemote, good))
	if !errors.Is(s.c.Err(), ErrReset) || s.c.State() != StateDone {
		t.Errorf("error %v in state %d", s.c.Err(), s.c.State())
	}
	s.want()
	if n, _ := s.c.Unacknowledged(); n != 2 {
		t.Errorf("%d messages unacknowledged", n)
	}

	s = newScript(t, nil)
	s.c.Close(s.now)
	s.drain()
	s.deliver(wire.AppendReset(nil, scriptRemote, wire.Quote{Number: 1, Checksum: s.c.sent.at(1).checksum}))
	if s.c.State() != StateDone || !errors.Is(s.c.Err(), ErrClosed) {
		t.Errorf("a reset of a closing session: state %d, error %v", s.c.State(), s.c.Err())
	}
}

func TestVanish(t *testing.T) {
	s := newScript(t, nil)
	s.send(1)
	s.took()
	s.c.Vanish(s.now)
	s.drain()
	s.want()
	if s.c.State() != StateDone || !errors.Is(s.c.Err(), ErrClosed) {
		t.Errorf("state %d, error %v", s.c.State(), s.c.Err())
	}
	s.deliver(s.dataDatagram(0, whole("x")))
	s.want()
}

// A direction is messages or a stream from its first write; the empty ones of
// either kind count too, and an empty stream write decides nothing.
func TestDirectionModes(t *testing.T) {
	s := newScript(t, nil)
	if n, err := s.c.WriteStream(s.now, nil); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	if _, err := s.c.Send(s.now, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.c.WriteStream(s.now, []byte("x")); !errors.Is(err, ErrWrongMode) {
		t.Errorf("stream bytes after a message: %v", err)
	}
	s.data(0, wire.AppendMessageRecord(nil, wire.RecordStream, 0, []byte("abc")))
	if _, _, err := s.c.AppendMessage(nil); !errors.Is(err, ErrWrongMode) {
		t.Errorf("a message of a stream: %v", err)
	}
	p := make([]byte, 2)
	if n, err := s.c.ReadStream(p); n != 2 || err != nil || string(p) != "ab" {
		t.Errorf("read %d, %v", n, err)
	}
	s.data(1, whole("x"))
	var closed *CloseError
	if !errors.As(s.c.Err(), &closed) || closed.Remote || !closed.Transport || closed.Code != CodeProtocolError {
		t.Errorf("a message inside a stream: %v", s.c.Err())
	}
	if n, _ := s.c.ReadStream(p); n != 1 || p[0] != 'c' {
		t.Errorf("read %d bytes after the end", n)
	}
}
