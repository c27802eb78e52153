package main

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openarkstudio/arknet-go/bench"
	"github.com/openarkstudio/arknet-go/bench/record"
)

// fakePeers are three transports, the first one ours.
func fakePeers() []peer {
	open := func(t tuning) bench.Driver { return quicGoDriver{t} }
	return []peer{
		{name: "ours", open: open, ours: true},
		{name: "fast", open: open, caveats: []string{"cannot whistle"}},
		{name: "slow", open: open, caveats: []string{"cannot whistle"}},
	}
}

func fakePlan(rounds int) *plan {
	return &plan{
		peers: fakePeers(), loads: []load{standardLoad()}, rounds: rounds, seed: 7,
		argv: []string{"compare", "rudp"},
	}
}

// fakeRecord is a good round with the given rate.
func fakeRecord(o order, rate float64) outcome {
	r := &record.Result{
		Schema: record.Schema,
		Config: record.Config{Driver: o.Driver, RoundCount: 1, Seed: o.Seed},
		Rounds: []record.Round{{
			Round: 1, Seed: o.Seed, ElapsedSeconds: 1, WarmupOK: true, OK: true,
			Metrics: record.Metrics{
				RoundTripsPerSecond: rate, RTTP50: 20_000, RTTP99: 40_000, CPUPerRoundTrip: 1e6 / rate,
				WireOverheadPercent: 12.5, RoundTrips: 100, Drained: true,
			},
		}},
	}
	r.Aggregate()
	return outcome{result: r}
}

var fakeRates = map[string]float64{"ours": 3000, "fast": 2000, "slow": 500}

func TestRoundsAlternate(t *testing.T) {
	var order_ []string
	var seeds []uint64
	p := fakePlan(3)
	result, err := p.run(t.Context(), func(_ context.Context, o order) (outcome, error) {
		order_ = append(order_, o.Driver)
		seeds = append(seeds, o.Seed)
		// Rounds differ, so that the ratio of medians is not the median of ratios.
		return fakeRecord(o, fakeRates[o.Driver]*float64(o.Seed)), nil
	}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"ours", "fast", "slow", "fast", "slow", "ours", "slow", "ours", "fast"}
	if !slices.Equal(order_, want) {
		t.Errorf("order %v, want %v", order_, want)
	}
	if want := []uint64{7, 7, 7, 8, 8, 8, 9, 9, 9}; !slices.Equal(seeds, want) {
		t.Errorf("seeds %v, want %v", seeds, want)
	}
	if !result.OK {
		t.Error("not ok")
	}
	c := &result.Conditions[0]
	for _, r := range c.Rows {
		if err := r.Result.Validate(); err != nil {
			t.Errorf("%s: %v", r.Driver, err)
		}
	}
	if len(c.Ratios) != 2 {
		t.Fatalf("%d ratios, want 2", len(c.Ratios))
	}
	for i, want := range []float64{1.5, 6} {
		m := c.Ratios[i].Metrics[0]
		if m.Metric != "roundtrips_per_second" || m.Median != want || m.Min != want || m.Max != want {
			t.Errorf("ratio %d: %+v, want %v in every round", i, m, want)
		}
	}
}

func TestFailedPeerStaysVisibleWithoutRatio(t *testing.T) {
	p := fakePlan(2)
	result, err := p.run(t.Context(), func(_ context.Context, o order) (outcome, error) {
		switch {
		case o.Driver == "slow":
			return outcome{}, errors.New("panic: out of luck")
		case o.Driver == "fast" && o.Seed == 8:
			r := fakeRecord(o, 1).result
			r.Rounds[0].OK = false
			r.Rounds[0].Errors.Order = 3
			r.Aggregate()
			return outcome{result: r, pause: 512 * time.Millisecond}, nil
		}
		return fakeRecord(o, fakeRates[o.Driver]), nil
	}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if result.OK || len(result.Conditions[0].Ratios) != 0 {
		t.Errorf("ok %v with ratios %v; want not ok and none", result.OK, result.Conditions[0].Ratios)
	}
	var b strings.Builder
	if err := result.print(&b, p.peers, p.rounds); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"slow failed: round 1: panic: out of luck",
		"fast failed: round 2: errors: order 3",
		"failed (1 of 2 rounds)",
		"the machine stood still for 150ms and more: 2 rounds run again",
		"and again during fast round 2 (512 ms)",
		"- fast, slow: cannot whistle",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "divided") {
		t.Errorf("a failed peer has a ratio:\n%s", b.String())
	}
}

// TestLateFirstRecord: rounds before the first record count as failed, and the
// record stays complete.
func TestLateFirstRecord(t *testing.T) {
	p := fakePlan(3)
	result, err := p.run(t.Context(), func(_ context.Context, o order) (outcome, error) {
		if o.Driver == "fast" && o.Seed < 9 {
			return outcome{}, errors.New("no socket")
		}
		return fakeRecord(o, fakeRates[o.Driver]), nil
	}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	fast := result.Conditions[0].Rows[1]
	if err := fast.Result.Validate(); err != nil {
		t.Error(err)
	}
	if fast.ok() || len(fast.Failures) != 2 {
		t.Errorf("failures %q, want two", fast.Failures)
	}
}

func TestTable(t *testing.T) {
	p := fakePlan(2)
	result, err := p.run(t.Context(), func(_ context.Context, o order) (outcome, error) {
		return fakeRecord(o, fakeRates[o.Driver]+float64(o.Seed)), nil
	}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := result.print(&b, p.peers, p.rounds); err != nil {
		t.Fatal(err)
	}
	want := `echo, profile random, 4 clients x window 16 x 1024 B, 2 rounds of 3 s

  driver                rt/s                 p50 ms                 p99 ms                 CPU us/rt          overhead %  errors
    ours  3008 (3007 - 3008)  20.00 (20.00 - 20.00)  40.00 (40.00 - 40.00)     332.5 (332.4 - 332.6)  12.5 (12.5 - 12.5)    none
    fast  2008 (2007 - 2008)  20.00 (20.00 - 20.00)  40.00 (40.00 - 40.00)     498.1 (498.0 - 498.3)  12.5 (12.5 - 12.5)    none
    slow     508 (507 - 508)  20.00 (20.00 - 20.00)  40.00 (40.00 - 40.00)  1970.4 (1968.5 - 1972.4)  12.5 (12.5 - 12.5)    none

ours divided by the other, rt/s / p99 / CPU: medians of the ratios in each round

  other                ours
   fast  1.50 / 1.00 / 0.67
   slow  5.93 / 1.00 / 0.17

Read with care:
- fast, slow: cannot whistle
`
	if b.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", b.String(), want)
	}
}

func TestInterruptEndsThePlan(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	_, err := fakePlan(3).run(ctx, func(ctx context.Context, o order) (outcome, error) {
		calls++
		cancel()
		return outcome{}, ctx.Err()
	}, io.Discard)
	if !errors.Is(err, context.Canceled) || calls != 1 {
		t.Errorf("%v after %d calls, want context.Canceled after 1", err, calls)
	}
}

func TestEntrants(t *testing.T) {
	p := fakePlan(1)
	p.automatic = true
	lossy := standardLoad()
	if got := p.entrants(lossy); len(got) != 3 {
		t.Errorf("%d reliable peers on a lossy path, want all 3", len(got))
	}
	connect := lossy
	connect.Workload = bench.Connect
	p.peers = append(p.peers, peer{name: "kcp", open: func(t tuning) bench.Driver { return kcpDriver{kcpTurbo(0, 0), t} }})
	if got := p.entrants(connect); len(got) != 3 {
		t.Errorf("%d peers connect, want those with a handshake", len(got))
	}
	p.automatic = false
	if got := p.entrants(connect); len(got) != 4 {
		t.Errorf("%d peers, want whoever the user named", len(got))
	}
}

// TestPausedRoundIsRunAgain: what happened while the machine stood still does
// not count.
func TestPausedRoundIsRunAgain(t *testing.T) {
	p := fakePlan(1)
	tries := 0
	result, err := p.run(t.Context(), func(_ context.Context, o order) (outcome, error) {
		got := fakeRecord(o, fakeRates[o.Driver])
		if o.Driver == "slow" {
			if tries++; tries == 1 {
				got = fakeRecord(o, 1)
				got.pause = pauseWorth
			}
		}
		return got, nil
	}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	slow := result.Conditions[0].Rows[2]
	if tries != 2 || slow.Repeats != 1 || slow.Result.Median.RoundTripsPerSecond != fakeRates["slow"] {
		t.Errorf("%d tries, %d repeats, %v rt/s; want 2, 1 and the second try's figure", tries, slow.Repeats, slow.Result.Median.RoundTripsPerSecond)
	}
}
