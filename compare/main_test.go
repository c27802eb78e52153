package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openarkstudio/arknet-go/bench"
)

// TestMain lets the test binary stand in for the command's child processes.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == childCommand {
		main()
	}
	os.Exit(m.Run())
}

func TestBadUsage(t *testing.T) {
	cases := []struct {
		args string
		want []string // in the one line on stderr
	}{
		{"", []string{"compare rudp"}},
		{"udp", []string{`"udp"`, "rudp, stream"}},
		{"rudp --speed 3", []string{"--speed"}},
		{"rudp --payload many", []string{"payload", "16 to"}},
		{"rudp --payload 3", []string{"--payload is 3", "16 to"}},
		{"rudp --window 0", []string{"--window is 0", "1 to 1024"}},
		{"rudp --clients 5000", []string{"--clients is 5000", "1 to 1024"}},
		{"rudp --seconds 0", []string{"--seconds is 0", "0.1 to 3600"}},
		{"rudp --seconds NaN", []string{"--seconds is NaN", "0.1 to 3600"}},
		{"rudp --warmup -1", []string{"--warmup is -1", "0 to 3600"}},
		{"rudp --rounds 0", []string{"--rounds is 0", "1 to 100"}},
		{"rudp --rate-mbit -5", []string{"--rate-mbit is -5", "0 to"}},
		{"rudp --queue-bytes 1000", []string{"--queue-bytes", "--rate-mbit"}},
		{"rudp --seed -1", []string{"seed"}},
		{"rudp --profile mars", []string{"--profile", `"mars"`, "none, random, burst, sustained"}},
		{"rudp --workload dance", []string{"--workload is dance", "echo, stream, connect"}},
		{"rudp --drivers carrier-pigeon", []string{"--drivers", `"carrier-pigeon"`, "kcp-turbo"}},
		{"rudp --drivers zebra*", []string{"--drivers", "zebra*"}},
		{"rudp --group some", []string{"--group", `"some"`, "none, loss, sizes, all"}},
		{"rudp --group loss --profile none", []string{"--group", "--profile"}},
		{"rudp --group sizes --payload 64", []string{"--group sizes", "--payload"}},
		{"rudp --clients 1024 --window 1024 --payload 16384", []string{"--clients x --window x --payload"}},
		{"rudp now", []string{`"now"`}},
		{"stream --window 4", []string{"--window"}},
		{"stream --payload 15", []string{"--payload is 15"}},
		{"rudp --out " + filepath.Join("no", "such", "directory", "x.json"), []string{"--out"}},
	}
	for _, c := range cases {
		t.Run(c.args, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			if got := run(t.Context(), strings.Fields(c.args), nil, &stdout, &stderr); got != exitUsage {
				t.Errorf("exit status %d, want %d", got, exitUsage)
			}
			text := stderr.String()
			if c.args != "" && strings.Count(text, "\n") != 1 {
				t.Errorf("want one line on stderr, got %q", text)
			}
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("stderr %q lacks %q", text, want)
				}
			}
			if stdout.Len() > 0 {
				t.Errorf("stdout is not empty: %q", stdout.String())
			}
		})
	}
}

func TestHelp(t *testing.T) {
	for _, args := range []string{"--help", "rudp --help", "stream -h", "rudp --list"} {
		var stdout, stderr bytes.Buffer
		if got := run(t.Context(), strings.Fields(args), nil, &stdout, &stderr); got != exitOK {
			t.Errorf("%s: exit status %d, stderr %q", args, got, stderr.String())
		}
		if stdout.Len() == 0 || stderr.Len() > 0 {
			t.Errorf("%s: %d bytes on stdout, stderr %q", args, stdout.Len(), stderr.String())
		}
	}
}

func TestQuickYieldsToFlags(t *testing.T) {
	p, _, err := rudpPlan([]string{"--quick", "--seconds", "2"})
	if err != nil {
		t.Fatal(err)
	}
	if l := p.loads[0]; l.Seconds != 2 || l.Warmup != 0.5 || p.rounds != 1 {
		t.Errorf("%v s after %v s, %d rounds; want 2, 0.5, 1", l.Seconds, l.Warmup, p.rounds)
	}
}

func TestDefaultsAreTheStandardLoad(t *testing.T) {
	p, _, err := rudpPlan(nil)
	if err != nil {
		t.Fatal(err)
	}
	want := bench.Standard()
	got, err := p.loads[0].config(p.seed)
	if err != nil {
		t.Fatal(err)
	}
	if got.Workload != want.Workload || got.Payload != want.Payload || got.Clients != want.Clients ||
		got.Window != want.Window || got.Warmup != want.Warmup || got.Duration != want.Duration ||
		got.Seed != want.Seed || p.rounds != want.Rounds || got.Profile != want.Profile {
		t.Errorf("defaults %+v, want the standard load %+v", got, want)
	}
}

func TestStreamLoads(t *testing.T) {
	p, _, err := streamPlan([]string{"--quick"})
	if err != nil {
		t.Fatal(err)
	}
	type link struct {
		rate  int64
		loss  float64
		queue int
		delay time.Duration
	}
	var got []link
	for _, l := range p.loads {
		c, err := l.config(1)
		if err != nil {
			t.Fatal(err)
		}
		i := c.Impairment
		got = append(got, link{i.Rate, i.Loss, i.QueueBytes, i.Delay})
	}
	want := []link{
		{},
		{20e6, 0, 50_000, 10 * time.Millisecond},
		{20e6, 0.05, 50_000, 10 * time.Millisecond},
		{100e6, 0, 250_000, 10 * time.Millisecond},
		{100e6, 0.05, 250_000, 10 * time.Millisecond},
	}
	if len(got) != len(want) {
		t.Fatalf("%d loads, want %d", len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("load %d is %+v, want %+v", i, got[i], want[i])
		}
	}
}

func TestChoose(t *testing.T) {
	got, err := choose("pion-sctp, kcp-turbo*,pion-sctp")
	if err != nil {
		t.Fatal(err)
	}
	if names := peerNames(got); names != "pion-sctp, kcp-turbo, kcp-turbo-fec" {
		t.Errorf("chose %s", names)
	}
}

func TestGroupAll(t *testing.T) {
	all, err := groupLoads("all", standardLoad())
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 1+3+8 {
		t.Errorf("%d loads, want 12", len(all))
	}
}
