package bench

import (
	"strings"
	"testing"
	"time"

	"github.com/openarkstudio/arknet-go/bench/record"
	"github.com/openarkstudio/arknet-go/netem"
	"github.com/openarkstudio/arknet-go/netem/relay"
	"github.com/openarkstudio/arknet-go/rudp"
)

// onLoopback is a short run over real sockets and the real relay. Nothing in it
// depends on how fast the machine is.
func onLoopback(workload Workload) Config {
	cfg := Standard()
	cfg.Workload = workload
	cfg.Profile, cfg.Impairment = "none", netem.Config{}
	cfg.Clients = 2
	cfg.Warmup = 20 * time.Millisecond
	cfg.Duration = 100 * time.Millisecond
	cfg.Rounds = 1
	return cfg
}

func mustRun(t *testing.T, d Driver, cfg Config) *record.Result {
	t.Helper()
	r, err := Run(t.Context(), d, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Validate(); err != nil {
		t.Error(err)
	}
	if !r.OK {
		t.Fatalf("errors: %v; %s", r.Errors, r.Rounds[0].Failure)
	}
	if r.Median.RoundTrips == 0 {
		t.Error("no round trips")
	}
	return r
}

func TestRawUDPOnLoopback(t *testing.T) {
	for _, c := range []struct {
		d  Driver
		v6 bool
	}{{RawUDP(), false}, {RawUDP(), true}, {RawUDPBatch(), false}, {RawUDPBatch(), true}} {
		cfg := onLoopback(Echo)
		cfg.IPv6 = c.v6
		r := mustRun(t, c.d, cfg)
		if r.Config.Driver != c.d.Name() {
			t.Errorf("recorded as %q", r.Config.Driver)
		}
		if got := r.Median.WireOverheadPercent; got != 0 {
			t.Errorf("overhead %v %% without any header", got)
		}
		if r.Median.SendCompletions != 2*r.Median.RoundTrips {
			t.Errorf("%d completions for %d round trips", r.Median.SendCompletions, r.Median.RoundTrips)
		}
		if r.Rounds[0].Relay.Routes != 2 {
			t.Errorf("%d routes", r.Rounds[0].Relay.Routes)
		}
	}
}

func TestRUDPOnLoopback(t *testing.T) {
	d, err := RUDP(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, workload := range Workloads() {
		t.Run(string(workload), func(t *testing.T) {
			r := mustRun(t, d, onLoopback(workload))
			m := r.Median
			if m.WireOverheadPercent <= 0 {
				t.Errorf("overhead %v %%", m.WireOverheadPercent)
			}
			if workload == Echo && m.SendCompletions != 2*m.RoundTrips {
				t.Errorf("%d completions for %d round trips", m.SendCompletions, m.RoundTrips)
			}
		})
	}
	t.Run("lossy path", func(t *testing.T) {
		cfg := Standard()
		cfg.Warmup, cfg.Duration, cfg.Rounds = 100*time.Millisecond, 400*time.Millisecond, 1
		r := mustRun(t, d, cfg)
		if r.Median.RealizedLossPercent == 0 || r.Median.ARQRetransmitted == 0 {
			t.Errorf("loss %v %%, retransmitted %v", r.Median.RealizedLossPercent, r.Median.ARQRetransmitted)
		}
	})
	t.Run("large window", func(t *testing.T) {
		cfg := onLoopback(Echo)
		cfg.Payload, cfg.Window = 16384, 64
		mustRun(t, d, cfg)
	})
}

func TestRUDPRefusesABadConfig(t *testing.T) {
	if _, err := RUDP(&rudp.Config{MTU: 1}); err == nil || !strings.Contains(err.Error(), "MTU") {
		t.Errorf("error = %v", err)
	}
}

// TestRelayOverflowIsInvalid runs over a real relay whose routes hold almost
// nothing.
func TestRelayOverflowIsInvalid(t *testing.T) {
	cfg := onLoopback(Echo)
	cfg.Warmup = 0
	cfg.newPath = func(p pathConfig) (path, error) {
		delay := netem.Config{Delay: time.Millisecond}
		r, err := relay.Start(relay.Config{Target: p.server, Up: delay, Down: delay, RouteDatagrams: 4})
		if err != nil {
			return nil, err
		}
		return &relayPath{relay: r}, nil
	}
	r, err := Run(t.Context(), RawUDP(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if e := r.Errors; r.OK || e.RelayOverflow == 0 || e.Lost == 0 || e.Content+e.Order+e.Duplicate+e.Unexpected != 0 {
		t.Errorf("ok %v, errors: %v", r.OK, e)
	}
	if !strings.Contains(r.Rounds[0].Failure, "lost") && !strings.Contains(r.Rounds[0].Failure, "overflow") {
		t.Errorf("failure: %q", r.Rounds[0].Failure)
	}
}
