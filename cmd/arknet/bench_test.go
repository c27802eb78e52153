package main

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/openarkstudio/arknet-go/bench"
	"github.com/openarkstudio/arknet-go/bench/record"
	"github.com/openarkstudio/arknet-go/netem"
)

// short makes a run short. Nothing in these tests depends on speed.
const short = " --rounds 2 --warmup 0.02 --seconds 0.1 --clients 2"

func readRecord(t *testing.T, text string) *record.Result {
	t.Helper()
	r, err := record.Read(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return r
}

func TestBenchRUDP(t *testing.T) {
	for _, c := range []struct{ name, line string }{
		{"echo", "bench rudp --profile none --json"},
		{"stream", "bench rudp --profile none --workload stream --json"},
		{"connect", "bench rudp --profile none --workload connect --json"},
		{"ipv6", "bench rudp --profile none --address-family ipv6 --json"},
		{"random", "bench rudp --fec off --json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := strings.Fields(c.line + short)
			status, stdout, stderr := arknet(t, args...)
			if status != statusOK || stderr != "" {
				t.Fatalf("exit status %d, stderr %q, stdout %s", status, stderr, stdout)
			}
			r := readRecord(t, stdout)
			if !r.OK || r.Errors.Total() != 0 || len(r.Rounds) != 2 || r.Median.RoundTrips == 0 {
				t.Errorf("%+v", r)
			}
			if want := append([]string{"arknet"}, args...); !reflect.DeepEqual(r.Command, want) {
				t.Errorf("command %q, want %q", r.Command, want)
			}
			if r.Rounds[0].Seed != 42 || r.Rounds[1].Seed != 43 {
				t.Errorf("seeds %d, %d", r.Rounds[0].Seed, r.Rounds[1].Seed)
			}
			e := r.Environment
			if e.Go == "" || e.Cores == 0 || e.GOMAXPROCS == 0 || e.GOGC == 0 || len(e.SourceDigest) < 64 {
				t.Errorf("environment %+v", e)
			}
			for _, key := range []string{"fec", "congestion", "retransmit", "mtu", "send_window", "recv_window", "io_model", "io_threads", "backend", "tls"} {
				if _, ok := r.Config.Transport[key]; !ok {
					t.Errorf("no %s in the configuration", key)
				}
			}
		})
	}
}

// TestOverriddenProfile checks that flags change single values of a profile.
func TestOverriddenProfile(t *testing.T) {
	status, stdout, stderr := arknet(t, strings.Fields("bench rudp --json --profile random --loss-percent 0 --delay-ms 1.5 --reorder-delay-ms 2 "+
		"--burst-loss 2/50 --jitter-ms 0.5 --duplicate-percent 2 --rate-mbit 200 --outage 1h+1s/1m,2s+5ms --fec fixed --fec-data 6 --fec-parity 3 --seed 7"+short)...)
	if status != statusOK {
		t.Fatalf("exit status %d: %s", status, stderr)
	}
	got := readRecord(t, stdout).Config
	want := got
	want.LossPercent, want.DelayMS, want.ReorderPercent, want.ReorderDelayMS = 0, 1.5, 5, 2
	want.BurstLoss, want.JitterMS, want.DuplicatePercent = "2/50", 0.5, 2
	want.RateMbit, want.QueueBytes, want.Outage = 200, netem.DefaultQueueBytes, "1h0m0s+1s/1m0s,2s+5ms"
	want.Profile, want.Seed, want.Clients, want.RoundCount = "random", 7, 2, 2
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	for key, want := range map[string]any{"fec": "fixed", "fec_data": 6.0, "fec_parity": 3.0, "fec_scheme": "sliding", "fec_parity_budget": 50.0} {
		if got := got.Transport[key]; got != want {
			t.Errorf("%s = %v, want %v", key, got, want)
		}
	}
}

func TestStandardLoadIsTheDefault(t *testing.T) {
	var g grammar
	parsed, err := newParser(&g, streams{out: os.Stdout, err: os.Stderr}).Parse([]string{"bench", "rudp"})
	if err != nil {
		t.Fatal(err)
	}
	a := &app{given: map[string]bool{}}
	c := &g.Bench.RUDP
	impairment, err := c.apply(a, c.Profile)
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.loadFlags.config(a, c.Workload, c.Profile, impairment)
	if err != nil {
		t.Fatal(err)
	}
	if want := bench.Standard(); !reflect.DeepEqual(got, want) {
		t.Errorf("%s without flags:\n%+v\nwant\n%+v", commandOf(parsed), got, want)
	}
}

func TestBenchRawUDP(t *testing.T) {
	out := filepath.Join(t.TempDir(), "result.json")
	status, stdout, stderr := arknet(t, strings.Fields("bench raw-udp --payload 64 --out "+out+short)...)
	if status != statusOK || stderr != "" {
		t.Fatalf("exit status %d, stderr %q", status, stderr)
	}
	for _, want := range []string{"raw-udp, echo, none, 2 clients x window 16 x 64 B", "round trips/s", "RTT p99, ms", "ok: 2 of 2 rounds passed, errors: none"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if r := readRecord(t, string(b)); r.Median.WireOverheadPercent != 0 || r.Config.Driver != "raw-udp" {
		t.Errorf("%+v", r)
	}
	if entries, err := os.ReadDir(filepath.Dir(out)); err != nil || len(entries) != 1 {
		t.Errorf("files left: %v, %v", entries, err)
	}
}

func TestGoBench(t *testing.T) {
	status, stdout, stderr := arknet(t, strings.Fields("bench raw-udp --gobench"+short)...)
	if status != statusOK || stderr != "" {
		t.Fatalf("exit status %d, stderr %q", status, stderr)
	}
	if n := len(regexp.MustCompile(`(?m)^BenchmarkEcho/driver=raw-udp/\S+ \d+ \S+ ns/op `).FindAllString(stdout, -1)); n != 2 {
		t.Errorf("%d lines for 2 rounds:\n%s", n, stdout)
	}
}

// TestFailedRun runs over a path that loses everything: the record says so, the
// exit status is 1, and stderr has one line.
func TestFailedRun(t *testing.T) {
	out := filepath.Join(t.TempDir(), "result.json")
	// The outage begins after the handshake and lasts longer than the drain.
	status, stdout, stderr := arknet(t, strings.Fields("bench rudp --profile none --outage 300ms+1h --rounds 1 --warmup 0 --seconds 0.6 --clients 1 --out "+out)...)
	if status != statusFailed {
		t.Errorf("exit status %d, want %d", status, statusFailed)
	}
	if strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "round 1 failed") {
		t.Errorf("stderr: %q", stderr)
	}
	if !strings.Contains(stdout, "round 1 (seed 42) FAILED") || !strings.Contains(stdout, "FAILED: 0 of 1 rounds passed") {
		t.Errorf("stdout: %s", stdout)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	r := readRecord(t, string(b))
	if r.OK || r.Median != nil || len(r.Rounds) != 1 || r.Rounds[0].OK || r.Errors.Total() == 0 || r.Rounds[0].Failure == "" {
		t.Errorf("%+v", r)
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	out := filepath.Join(t.TempDir(), "result.json")
	status, stdout, stderr := arknetIn(ctx, strings.Fields("bench raw-udp --seconds 3600 --json --out "+out)...)
	if status != statusFailed || stdout != "" || !strings.Contains(stderr, "interrupted") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("exit status %d, stdout %q, stderr %q", status, stdout, stderr)
	}
	if entries, err := os.ReadDir(filepath.Dir(out)); err != nil || len(entries) != 0 {
		t.Errorf("files left: %v, %v", entries, err)
	}
}

func TestGroup(t *testing.T) {
	for _, c := range []struct {
		f      float64
		digits int
		want   string
	}{
		{0, 0, "0"}, {999, 0, "999"}, {1000, 0, "1,000"}, {1234567.891, 2, "1,234,567.89"}, {-1234, 0, "-1,234"}, {-123, 1, "-123.0"},
	} {
		if got := group(c.f, c.digits); got != c.want {
			t.Errorf("group(%v, %d) = %q, want %q", c.f, c.digits, got, c.want)
		}
	}
}
