package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// arknet runs a command line and returns its exit status and output.
func arknet(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	return arknetIn(t.Context(), args...)
}

func arknetIn(ctx context.Context, args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	status = run(ctx, append([]string{"arknet"}, args...), streams{out: &out, err: &errs})
	return status, out.String(), errs.String()
}

// TestBadUsage wants exit status 2, nothing on stdout, and one line on stderr that
// names the flag and what is allowed.
func TestBadUsage(t *testing.T) {
	dir := t.TempDir()
	const bench, raw, relay = "bench rudp ", "bench raw-udp ", "relay --to 127.0.0.1:9 "
	for _, c := range []struct {
		line string
		want []string
	}{
		// Not a flag or a command.
		{bench + "--paiload 64", []string{"--paiload", "--payload"}},
		{bench + "--no-such-flag", []string{"--no-such-flag"}},
		{bench + "extra", []string{"extra"}},
		{"demonstrate", []string{"demonstrate"}},
		{"matrix --dry-run", []string{"matrix"}},
		{"report", []string{"report"}},
		{"serve", []string{"serve"}},
		{"dial", []string{"dial"}},
		{"bench loopback", []string{"loopback"}},
		{"bench", []string{"rudp", "raw-udp"}},
		{"", []string{"bench", "relay"}},

		// Out of range.
		{bench + "--payload 15", []string{"--payload", `"15"`, "16 to 16777216"}},
		{bench + "--payload 16777217", []string{"--payload", "16 to 16777216"}},
		{bench + "--payload -5", []string{"--payload", `"-5"`, "16 to 16777216"}},
		{bench + "--payload many", []string{"--payload", `"many"`, "16 to 16777216"}},
		{bench + "--payload 99999999999999999999", []string{"--payload", "16 to 16777216"}},
		{bench + "--payload", []string{"--payload", "needs a value", "16 to 16777216"}},
		{bench + "--clients 0", []string{"--clients", "1 to 1024"}},
		{bench + "--clients 1025", []string{"--clients", "1 to 1024"}},
		{bench + "--window 0", []string{"--window", "1 to 1024"}},
		{bench + "--rounds 0", []string{"--rounds", "1 to 1000"}},
		{bench + "--seconds 0", []string{"--seconds", "0.05 to 86400"}},
		{bench + "--warmup -1", []string{"--warmup", "0 to 86400"}},
		{bench + "--seed -1", []string{"--seed", "0 to 9007199254740992"}},
		{bench + "--address-family ipx", []string{"--address-family", "ipv4, ipv6"}},
		{bench + "--workload ping", []string{"--workload", "echo, stream, connect"}},
		{bench + "--profile bad", []string{"--profile", "none, random, burst, sustained"}},
		{bench + "--loss-percent 101", []string{"--loss-percent", "0 to 100"}},
		{bench + "--loss-percent NaN", []string{"--loss-percent", "0 to 100"}},
		{bench + "--delay-ms 3600001", []string{"--delay-ms", "0 to 3600000"}},
		{bench + "--jitter-ms x", []string{"--jitter-ms", "0 to 3600000"}},
		{bench + "--duplicate-percent -1", []string{"--duplicate-percent", "0 to 100"}},
		{bench + "--reorder-percent 200", []string{"--reorder-percent", "0 to 100"}},
		{bench + "--reorder-delay-ms -1", []string{"--reorder-delay-ms", "0 to 3600000"}},
		{bench + "--rate-mbit 0", []string{"--rate-mbit", "0.001 to 1000000"}},
		{bench + "--queue-bytes 0", []string{"--queue-bytes", "1 to 1073741824"}},
		{bench + "--burst-loss 3", []string{"--burst-loss", "3/100"}},
		{bench + "--burst-loss 4/3", []string{"--burst-loss", "LOSE <= EVERY"}},
		{bench + "--burst-loss 0/3", []string{"--burst-loss", "1 <= LOSE"}},
		{bench + "--burst-loss 3/100x", []string{"--burst-loss", "3/100"}},
		{bench + "--outage 2s", []string{"--outage", "START+LENGTH"}},
		{bench + "--outage 2s+0s", []string{"--outage", "LENGTH above 0"}},
		{bench + "--outage 2s+1s/1s", []string{"--outage", "PERIOD longer than LENGTH"}},
		{bench + "--outage 2s+1s,4s+x", []string{"--outage", `"4s+x"`}},
		{bench + "--mtu 500", []string{"--mtu", "576 to 16384"}},
		{bench + "--send-window 1", []string{"--send-window", "16384 to 1073741824"}},
		{bench + "--recv-window 1", []string{"--recv-window", "16384 to 1073741824"}},
		{bench + "--congestion cubic", []string{"--congestion", "copa, copa-competitive, newreno, none"}},
		{bench + "--retransmit twice", []string{"--retransmit", "single, coded"}},
		{bench + "--fec on", []string{"--fec", "off, fixed, adaptive"}},
		{bench + "--fec-scheme raptor", []string{"--fec-scheme", "sliding, block"}},
		{bench + "--fec-profile slow", []string{"--fec-profile", "eco, balanced, fast"}},
		{bench + "--fec-parity-budget 0", []string{"--fec-parity-budget", "1 to 1000"}},
		{bench + "--fec-data 129", []string{"--fec-data", "1 to 128"}},
		{bench + "--fec-parity 65", []string{"--fec-parity", "1 to 64"}},
		{bench + "--fec-parity-limit 0", []string{"--fec-parity-limit", "1 to 64"}},
		{bench + "--fec-group-wait-ms 0", []string{"--fec-group-wait-ms", "0.1 to 1000"}},
		{bench + "--fec-retain-bytes 1", []string{"--fec-retain-bytes", "131072 to 67108864"}},
		{bench + "--out " + dir, []string{"--out", "directory", "file name"}},
		{bench + "--out " + filepath.Join(dir, "no", "such"), []string{"--out", "can be written"}},
		{bench + "--out --json", []string{"--out", "file name"}},

		// Not built yet.
		{bench + "--tls", []string{"--tls", "not built yet", "leave it out"}},
		{bench + "--io-model sharded", []string{"--io-model", "not built yet", "allowed: shared"}},
		{bench + "--io-model other", []string{"--io-model", "not possible", "allowed: shared"}},
		{bench + "--io-threads 4", []string{"--io-threads", "not built yet", "allowed: 1"}},
		{bench + "--backend epoll", []string{"--backend", "not built yet", "allowed: std"}},
		{bench + "--placement same", []string{"--placement", "not built yet", "leave it out"}},
		{bench + "--connect host:1", []string{"--connect", "not built yet", "leave it out"}},

		// Contradictions.
		{bench + "--json --gobench", []string{"--json", "--gobench", "one of them"}},
		{bench + "--workload stream --window 4", []string{"--window", "--workload stream", "leave it out"}},
		{bench + "--workload connect --window 4", []string{"--window", "--workload connect", "leave it out"}},
		{bench + "--workload connect --payload 64", []string{"--payload", "--workload connect", "leave it out"}},
		{bench + "--clients 1024 --window 1024", []string{"--payload", "--clients", "--window", "268435456"}},
		{bench + "--queue-bytes 1000", []string{"--queue-bytes", "--rate-mbit"}},
		{bench + "--profile none --reorder-delay-ms 3", []string{"--reorder-delay-ms", "--reorder-percent"}},
		{bench + "--congestion none", []string{"--congestion", "--max-rate-mbit", "0.008 to 800000"}},
		{bench + "--min-rate-mbit 3 --max-rate-mbit 2", []string{"--min-rate-mbit", "--max-rate-mbit", "up to 2"}},
		{bench + "--fec off --fec-scheme block", []string{"--fec-scheme", "--fec off", "fixed or adaptive"}},
		{bench + "--fec off --fec-profile eco", []string{"--fec-profile", "--fec adaptive"}},
		{bench + "--fec off --fec-parity-budget 10", []string{"--fec-parity-budget", "fixed or adaptive"}},
		{bench + "--fec off --fec-retain-bytes 131072", []string{"--fec-retain-bytes", "fixed or adaptive"}},
		{bench + "--fec fixed --fec-profile eco", []string{"--fec-profile", "--fec adaptive"}},
		{bench + "--fec-data 4", []string{"--fec-data", "--fec fixed or --fec-scheme block"}},
		{bench + "--fec-parity 4", []string{"--fec-parity", "--fec fixed"}},
		{bench + "--fec-parity-limit 4", []string{"--fec-parity-limit", "--fec-scheme block"}},
		{bench + "--fec-group-wait-ms 4", []string{"--fec-group-wait-ms", "--fec-scheme block"}},

		// Plain UDP repairs nothing.
		{raw + "--loss-percent 5", []string{"--loss-percent"}},
		{raw + "--profile random", []string{"--profile", "allowed: none"}},
		{raw + "--payload 65508", []string{"--payload", "16 to 65507"}},
		{raw + "--fec off", []string{"--fec"}},

		// The relay.
		{"relay", []string{"--to", "HOST:PORT"}},
		{"relay --to host", []string{"--to", "HOST:PORT"}},
		{"relay --to host:99999", []string{"--to", "0 to 65535"}},
		{relay + "--listen nowhere", []string{"--listen", "HOST:PORT"}},
		{relay + "--network sctp", []string{"--network", "udp, tcp"}},
		{relay + "--direction left", []string{"--direction", "both, up, down"}},
		{relay + "--control 0.0.0.0:9001", []string{"--control", "loopback"}},
		{relay + "--control :9001", []string{"--control", "loopback"}},
		{relay + "--json", []string{"--json", "--self-test"}},
		{relay + "--path-mtu 0", []string{"--path-mtu", "1 to 65535"}},
		{relay + "--corrupt-percent 101", []string{"--corrupt-percent", "0 to 100"}},
		{relay + "--self-test", []string{"--to", "--self-test"}},
		{relay + "--network tcp --loss-percent 1", []string{"--loss-percent", "--network tcp", "--delay-ms"}},
		{relay + "--network tcp --profile random", []string{"--profile random", "--network tcp"}},
		{relay + "--network tcp --path-mtu 1000", []string{"--path-mtu", "--network tcp"}},
	} {
		t.Run(c.line, func(t *testing.T) {
			status, stdout, stderr := arknet(t, strings.Fields(c.line)...)
			if status != statusUsage {
				t.Errorf("exit status %d, want %d", status, statusUsage)
			}
			if stdout != "" {
				t.Errorf("stdout: %q", stdout)
			}
			if strings.Count(stderr, "\n") != 1 || !strings.HasSuffix(stderr, "\n") {
				t.Errorf("stderr is not one line: %q", stderr)
			}
			for _, want := range c.want {
				if !strings.Contains(stderr, want) {
					t.Errorf("stderr %q does not have %q", stderr, want)
				}
			}
		})
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestHelp(t *testing.T) {
	for _, c := range []struct {
		line string
		want []string
	}{
		{"--help", []string{"bench", "relay"}},
		{"bench --help", []string{"rudp", "raw-udp"}},
		{"bench rudp --help", []string{
			"Examples:", "arknet bench rudp --profile none --json", "Exit status: 0",
			"--payload", "16 to 16777216", "--fec", "off, fixed, adaptive", "--tls", "not built yet",
		}},
		{"bench raw-udp --help", []string{"Examples:", "arknet bench raw-udp", "Exit status: 0"}},
		{"relay --help", []string{"Examples:", "arknet relay --listen :9000 --to host:7000", "--control", "--self-test"}},
		{"--version", []string{"arknet"}},
	} {
		t.Run(c.line, func(t *testing.T) {
			status, stdout, stderr := arknet(t, strings.Fields(c.line)...)
			if status != statusOK || stderr != "" {
				t.Errorf("exit status %d, stderr %q", status, stderr)
			}
			for _, want := range c.want {
				if !strings.Contains(stdout, want) {
					t.Errorf("no %q in\n%s", want, stdout)
				}
			}
		})
	}
}

// TestReferenceFlags keeps the flags that other tools of the project rely on.
func TestReferenceFlags(t *testing.T) {
	_, help, _ := arknet(t, "bench", "rudp", "--help")
	for name := range strings.FieldsSeq(`payload clients window io-model io-threads fec profile loss-percent delay-ms
		duplicate-percent reorder-percent seconds warmup rounds seed reorder-delay-ms burst-loss jitter-ms rate-mbit
		queue-bytes outage fec-scheme fec-profile fec-parity-budget fec-data fec-parity fec-group-wait-ms
		fec-retain-bytes retransmit congestion mtu send-window recv-window tls backend placement address-family
		workload connect json out`) {
		if !strings.Contains(help, "--"+name) {
			t.Errorf("no flag --%s", name)
		}
	}
}
