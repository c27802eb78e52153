package arq

import (
	"errors"
	"testing"
	"time"

	"github.com/openarkstudio/arknet-go/internal/wire"
	"github.com/openarkstudio/arknet-go/netem"
)

// opened connects two nodes over a path of 20 ms and runs them until both have
// nothing more to say.
func opened(t *testing.T, net netem.Config, change func(client, server *Config)) (s *sim, client, server *node) {
	t.Helper()
	s = newSim(t)
	up, down := testLinks(t, net, 1)
	cc, sc := testConfig(1), testConfig(2)
	if change != nil {
		change(&cc, &sc)
	}
	client, server = s.pair(cc, sc, up, down)
	s.runFor(2 * time.Second)
	if client.c.State() != StateOpen || server.c.State() != StateOpen {
		t.Fatalf("states %d and %d after the handshake", client.c.State(), server.c.State())
	}
	return s, client, server
}

var path20 = netem.Config{Delay: 10 * ms}

// cut makes the path lose everything from now on.
func (s *sim) cut(nodes ...*node) {
	for _, n := range nodes {
		n.mute = true
	}
}

func TestDeadPeerIsNoticed(t *testing.T) {
	const dead = 30 * time.Second
	for _, tt := range []struct {
		name      string
		keepAlive time.Duration
		load      bool
	}{
		{"idle", 15 * time.Second, false},
		{"sending", 15 * time.Second, true},
		{"sending without keepalive", 0, true},
		{"keepalive longer than the dead-peer time", time.Minute, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, client, server := opened(t, path20, func(cc, sc *Config) {
				cc.DeadPeerTimeout, sc.DeadPeerTimeout = dead, dead
				cc.KeepAlive, sc.KeepAlive = tt.keepAlive, tt.keepAlive
			})
			var failed [2]Time
			for i, n := range []*node{client, server} {
				n.onEvents = func(e Events) {
					if e&EventFailed != 0 {
						failed[i] = s.now
					}
				}
			}
			start := s.now
			s.cut(client, server)
			for at := Time(0); tt.load && at < Time(10*time.Second); at = at.add(100 * ms) {
				s.at(start+at, func() { client.send([]byte("x")); server.send([]byte("y")) })
			}
			s.runFor(2 * dead)
			for i, n := range []*node{client, server} {
				if !errors.Is(n.c.Err(), ErrPeerGone) || n.c.State() != StateDone {
					t.Fatalf("side %d: error %v in state %d", i, n.c.Err(), n.c.State())
				}
				if d := failed[i].sub(start); d < dead*9/10 || d > dead*11/10 {
					t.Errorf("side %d noticed after %v, want %v", i, d, dead)
				}
			}
		})
	}
}

// Keepalive holds an idle session for as long as both sides live, whatever its
// interval, and costs next to nothing.
func TestKeepAliveHoldsAnIdleSession(t *testing.T) {
	for _, interval := range []time.Duration{15 * time.Second, 45 * time.Second} {
		s, client, server := opened(t, netem.Config{Delay: 10 * ms, Loss: 0.1}, func(cc, sc *Config) {
			cc.KeepAlive, sc.KeepAlive = interval, interval
		})
		before := client.sentCount + server.sentCount
		s.runFor(time.Hour)
		if client.c.State() != StateOpen || server.c.State() != StateOpen {
			t.Fatalf("keepalive %v: %v, %v", interval, client.c.Err(), server.c.Err())
		}
		if n := client.sentCount + server.sentCount - before; n > 3*3600/15 {
			t.Errorf("keepalive %v: %d datagrams in an idle hour", interval, n)
		}
	}
}

// Without keepalive an idle session sends nothing and needs no timer.
func TestIdleSessionIsQuiet(t *testing.T) {
	s, client, server := opened(t, path20, func(cc, sc *Config) { cc.KeepAlive, sc.KeepAlive = 0, 0 })
	before := client.sentCount + server.sentCount
	if at, ok := client.c.NextTimeout(); ok {
		t.Errorf("an idle client wants to be woken in %v", at.sub(s.now))
	}
	s.runFor(24 * time.Hour)
	if n := client.sentCount + server.sentCount - before; n != 0 || client.c.State() != StateOpen {
		t.Errorf("%d datagrams, state %d", n, client.c.State())
	}
}

// A process that was stopped for longer than the dead-peer time takes what
// waits in its socket before it judges.
func TestStoppedProcessGoesOn(t *testing.T) {
	s := newScript(t, nil)
	s.wantTimeout(15 * time.Second)
	s.now = s.now.add(40 * time.Second)
	s.c.HandleTimeout(s.now)
	s.drain()
	s.advance(time.Second)
	if s.c.State() != StateOpen || len(s.took()) == 0 {
		t.Fatalf("state %d, error %v: the session ended before it asked", s.c.State(), s.c.Err())
	}
	s.ack(0, uint64(s.c.sent.next-1))
	s.advance(time.Minute)
	if !errors.Is(s.c.Err(), ErrPeerGone) {
		t.Errorf("error %v after another minute of silence", s.c.Err())
	}
}

func TestIdleTimeout(t *testing.T) {
	s, client, server := opened(t, path20, func(cc, sc *Config) { cc.IdleTimeout = time.Minute })
	s.runFor(50 * time.Second)
	server.send([]byte("x"))
	s.runFor(55 * time.Second)
	client.send([]byte("y"))
	s.runFor(59 * time.Second)
	if client.c.State() != StateOpen {
		t.Fatalf("ended early: %v", client.c.Err())
	}
	s.runFor(2 * time.Second)
	if !errors.Is(client.c.Err(), ErrIdleTimeout) {
		t.Errorf("client: %v", client.c.Err())
	}
	var closed *CloseError
	if !errors.As(server.c.Err(), &closed) || !closed.Remote || !closed.Transport || closed.Code != CodeIdle {
		t.Errorf("server: %v", server.c.Err())
	}
}

func TestProbeTimeoutBacksOff(t *testing.T) {
	s := newScript(t, nil)
	s.send(3)
	s.want("data 0", "data 1", "data 2")
	// min_rtt + 2 ms + the peer's longest ack delay.
	pto := scriptRTT + lossToleranceFloor + scriptRTT/16
	s.wantTimeout(pto)
	s.advance(pto)
	s.want("data 0", "data 1") // the two oldest
	s.wantTimeout(pto * 3 / 2)
	s.advance(pto * 3 / 2)
	s.want("data 0", "data 1")
	s.wantTimeout(pto * 9 / 4)
	for range 20 {
		s.advance(maxPTO)
	}
	s.took()
	if at, _ := s.c.NextTimeout(); at.sub(s.now) > maxPTO {
		t.Errorf("next probe in %v", at.sub(s.now))
	}
	s.ack(1, uint64(s.c.sent.next-1))
	if s.c.ptoCount != 0 || s.c.probes != 0 {
		t.Error("an ack does not end the backoff")
	}
}

// Probes that could not leave before the ack came are not sent after it.
func TestAckCallsProbesOff(t *testing.T) {
	s := newScript(t, nil)
	s.send(2)
	s.took()
	s.now = s.now.add(40 * ms)
	s.c.HandleTimeout(s.now)
	s.c.HandleDatagram(s.now, s.ackDatagram(2, 1, 2))
	s.drain()
	s.want()
	s.send(1)
	s.want("data 2")
	s.advance(5 * ms)
	s.want()
}

// The tail of a session that only lost control records is probed with them.
func TestLostControlRecordsAreSentAgain(t *testing.T) {
	s := newScript(t, func(c *Config, _ *wire.Params) { c.RecvWindow = 8000 })
	for id := range wire.SymbolID(3) {
		s.data(id, whole(string(make([]byte, 1000))))
		s.c.AppendMessage(nil)
	}
	s.want("window 10004")
	s.advance(30 * ms)
	s.want("window 11006") // as it stands now
	if st := s.c.Stats(); st.Lost != 1 || s.c.inFlight == 0 {
		t.Errorf("%d packets lost, %d bytes in flight", st.Lost, s.c.inFlight)
	}
}

// The RTT of a session that was cut off for days does not break arithmetic.
func TestRoundTripSamplesAreBounded(t *testing.T) {
	s := newScript(t, func(c *Config, _ *wire.Params) { c.DeadPeerTimeout, c.KeepAlive = 0, 0 })
	s.send(1)
	s.took()
	s.now = s.now.add(1000 * time.Hour)
	s.ack(1, 1)
	if rtt := s.c.Stats().LatestRTT; rtt != maxRTT {
		t.Errorf("sample of %v", rtt)
	}
	if w := s.c.cc.Window(); w < minimumWindow || w > maximumWindow {
		t.Errorf("window %d", w)
	}
}

// The clock may start anywhere and stand still between calls.
func TestDeadlinesAreNeverMissed(t *testing.T) {
	s := newScript(t, nil)
	s.now = s.now.add(1 << 61)
	s.send(1)
	s.advance(time.Minute) // fails on a deadline that stays in the past
	if s.c.State() != StateDone {
		t.Errorf("state %d", s.c.State())
	}
}
