package relay

import (
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/openarkstudio/arknet-go/netem"
)

// The classic faults of impairment tools: reordering that loses, jitter that
// reorders unasked, a fixed delay in place of a queue. 10,000 numbered datagrams
// each way, in simulated time.
func TestEachKnobDoesWhatItSaysAndNothingElse(t *testing.T) {
	const n = 10_000
	for _, tt := range []struct {
		name                     string
		cfg                      netem.Config
		reorders, loses, repeats bool
		minDelay, maxDelay       time.Duration
	}{
		{name: "reorder", cfg: netem.Config{Delay: 10 * ms, Late: netem.Late{Share: 0.5, Delay: 5 * ms}}, reorders: true, minDelay: 10 * ms, maxDelay: 15 * ms},
		{name: "jitter, order kept", cfg: netem.Config{Jitter: 20 * ms}, maxDelay: 20 * ms},
		{name: "jitter, order free", cfg: netem.Config{Jitter: 20 * ms, JitterReorders: true}, reorders: true, maxDelay: 20 * ms},
		{name: "duplicate", cfg: netem.Config{Duplicate: 0.05}, repeats: true},
		{name: "fixed delay", cfg: netem.Config{Delay: 250 * ms}, minDelay: 250 * ms, maxDelay: 250 * ms},
		{name: "loss", cfg: netem.Config{Loss: 0.05}, loses: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSimulation(t)
			rt := s.route(42, tt.cfg, tt.cfg)
			for i := range n {
				s.offer(rt, netem.Up, numbered(i, 1, 100))
				s.offer(rt, netem.Down, numbered(i, 1, 100))
				s.advance(s.now + ms)
			}
			s.advance(time.Hour)
			for _, d := range []netem.Direction{netem.Up, netem.Down} {
				copies := make([]int, n)
				last, reordered, sent := -1, 0, 0
				for _, x := range s.sent {
					if x.dir != d {
						continue
					}
					sent++
					i := int(binary.BigEndian.Uint32([]byte(x.data)))
					if delay := x.at - time.Duration(i)*ms; delay < tt.minDelay || delay > tt.maxDelay {
						t.Fatalf("%v: datagram %d took %v", d, i, delay)
					}
					if i < last {
						reordered++
					}
					last = max(last, i)
					copies[i]++
				}
				lost, repeated := 0, 0
				for _, k := range copies {
					switch {
					case k == 0:
						lost++
					case k > 1:
						repeated++
					}
				}
				if tt.reorders != (reordered > 0) || tt.loses != (lost > 0) || tt.repeats != (repeated > 0) {
					t.Errorf("%v: %d reordered, %d lost, %d repeated", d, reordered, lost, repeated)
				}
				st := rt.flows[d].stats()
				if st.Received.Datagrams != n || st.Sent.Datagrams != uint64(sent) || st.Dropped.Total().Datagrams != uint64(lost) || st.Duplicated.Datagrams != uint64(repeated) {
					t.Errorf("%v: %+v", d, st)
				}
			}
		})
	}
}

// A bottleneck delays by what waits in its queue, up to tail drop.
func TestRateLimitShowsBufferbloat(t *testing.T) {
	s := newSimulation(t)
	rt := s.route(42, netem.Config{Rate: 1_000_000, QueueBytes: 100_000}, netem.Config{})
	for i := range 2000 { // 8 times the rate
		s.offer(rt, netem.Up, numbered(i, 1, 1000))
		s.advance(s.now + ms)
	}
	s.advance(time.Hour)
	var delays []time.Duration
	for _, x := range s.sent {
		delays = append(delays, x.at-time.Duration(binary.BigEndian.Uint32([]byte(x.data)))*ms)
	}
	if first, most := delays[0], slices.Max(delays); first != 8*ms || most < 780*ms || most > 800*ms {
		t.Errorf("delay grows from %v to %v, want 8 ms to 800 ms", first, most)
	}
	if st := rt.flows[netem.Up].stats(); st.Dropped.Queue.Datagrams == 0 || st.Dropped.Total() != st.Dropped.Queue {
		t.Errorf("%+v", st)
	}
}

func TestTwoRunsWithOneSeedAreTheSame(t *testing.T) {
	once := func(clients int) []sentDatagram {
		cfg, _ := netem.Profile("sustained")
		cfg.Jitter, cfg.Corrupt = 3*ms, 0.01
		s := newSimulation(t)
		s.lazy = true // with so many routes
		for range clients {
			s.route(7, cfg, cfg)
		}
		for i := range 10 {
			for _, rt := range s.routes {
				f := &rt.flows[netem.Up]
				in := numbered(i, 3, 60)
				f.admit(s.now, &in, &s.out[0])
				s.send(f, &s.out[0])
			}
			s.advance(s.now + ms)
		}
		s.advance(time.Hour)
		s.check()
		return s.sent
	}
	if a, b := once(2000), once(2000); len(a) == 0 || !slices.Equal(a, b) {
		t.Errorf("%d and %d datagrams differ", len(a), len(b))
	}
}

// A client that goes on through a restart of the relay is served by the new one.
func TestRestartInMidFlow(t *testing.T) {
	server := echo(t, "127.0.0.1:0")
	first := start(t, Config{Target: server.LocalAddr().String()})
	client := listenUDP(t, "127.0.0.1:0")
	address := first.Addr().(*net.UDPAddr)
	round := func(i int) error {
		want := fmt.Sprint("datagram ", i)
		if _, err := client.WriteTo([]byte(want), address); err != nil {
			return err
		}
		_ = client.SetReadDeadline(time.Now().Add(patience))
		b := make([]byte, 100)
		n, _, err := client.ReadFrom(b)
		if err == nil && string(b[:n]) != want {
			err = fmt.Errorf("%q came back as %q", want, b[:n])
		}
		return err
	}
	for i := range 20 {
		if err := round(i); err != nil {
			t.Fatal(err)
		}
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := Start(Config{Target: server.LocalAddr().String(), Listen: address.String()})
	if err != nil {
		t.Skipf("somebody took the port meanwhile: %v", err)
	}
	defer second.Close()
	for i := range 20 {
		if err := round(20 + i); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, second, "counted", func(s Stats) bool { return s.Up.Sent.Datagrams == 20 && s.Down.Sent.Datagrams == 20 })
}
