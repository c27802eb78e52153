package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/openarkstudio/arknet-go/bench/record"
	"github.com/openarkstudio/arknet-go/report"
	"github.com/openarkstudio/arknet-go/rudp"
)

// TestDemo runs the whole demo, short, and checks what it leaves behind.
func TestDemo(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.html")
	var status int
	var stdout, stderr string
	for try := range 3 {
		pause := longestPause(t, func() {
			status, stdout, stderr = arknet(t, "demo", "--seconds", "0.3", "--seed", "7", "--out", page, "--json")
		})
		if status == statusOK || pause < time.Second {
			break
		}
		// A machine that stood still is no failure of the demo, whose rounds
		// have to be over in time.
		t.Logf("try %d: the machine stood still for %v: %s", try+1, pause, stderr)
	}
	if status != statusOK || stderr != "" {
		t.Fatalf("status %d, stderr %q", status, stderr)
	}
	var out demoJSON
	dec := json.NewDecoder(strings.NewReader(stdout))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&out); err != nil {
		t.Fatal(err)
	}
	if out.Schema != demoSchema || !out.OK || out.Page != page || len(out.Variants) != 4 {
		t.Fatalf("schema %q, ok %v, page %q, %d variants", out.Schema, out.OK, out.Page, len(out.Variants))
	}
	for i, v := range out.Variants {
		r := v.Result
		if err := r.Validate(); err != nil {
			t.Errorf("%s: %v", v.Name, err)
		}
		if len(r.Rounds) != demoRounds || r.Config.Seed != 7 || r.Config.Profile != "random" || r.Config.Clients != 4 {
			t.Errorf("%s: %d rounds of %+v", v.Name, len(r.Rounds), r.Config)
		}
		fec := r.Config.Transport["fec"] != rudp.FECOff
		if fec != (i > 0) {
			t.Errorf("%s: fec is %v", v.Name, r.Config.Transport["fec"])
		}
		if fec != (v.Wire.Repairs > 0) || fec != (r.Median.FECRestored > 0) {
			t.Errorf("%s: %d bytes of repairs, %v restored", v.Name, v.Wire.Repairs, r.Median.FECRestored)
		}
		line := v.Timeline
		if line.Truncated || line.Sent == 0 || fec != (len(line.Repairs) > 0) {
			t.Errorf("%s: time line of %d pieces and %d repairs, truncated %v", v.Name, line.Sent, len(line.Repairs), line.Truncated)
		}
		// What the endpoints say they sent is part of what the relay counted.
		var wire uint64
		for j := range r.Rounds {
			wire += r.Rounds[j].Relay.FromClientsBytes + r.Rounds[j].Relay.FromServerBytes
		}
		if parts := v.Wire.Repairs + v.Wire.Repeated + v.Wire.Acks; parts > wire/2 {
			t.Errorf("%s: %d bytes beside first transmissions, of %d", v.Name, parts, wire)
		}
	}
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := html.Parse(bytes.NewReader(b)); err != nil {
		t.Error(err)
	}
	for _, want := range []string{`id="throughput"`, `id="latency"`, `id="wire"`, `id="timeline"`,
		"arknet demo --seconds 0.3 --seed 7", "arknet bench rudp --fec adaptive --fec-profile fast --warmup 0.3 --seconds 0.3 --rounds 3 --seed 7"} {
		if !strings.Contains(string(b), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// longestPause runs f and returns the longest time in which this process, f or
// not, did not get to run.
func longestPause(t *testing.T, f func()) time.Duration {
	t.Helper()
	stop, longest := make(chan struct{}), make(chan time.Duration)
	go func() {
		const period = 20 * time.Millisecond
		tick := time.NewTicker(period)
		defer tick.Stop()
		var pause time.Duration
		for last := time.Now(); ; {
			select {
			case <-stop:
				longest <- pause
				return
			case <-tick.C:
				now := time.Now()
				pause, last = max(pause, now.Sub(last)-period), now
			}
		}
	}()
	f()
	close(stop)
	return <-longest
}

// TestDemoCommands: the commands that the page shows are good usage.
func TestDemoCommands(t *testing.T) {
	d := (&demoCommand{Seconds: 1.5, Seed: 42}).plan(&app{})
	for _, v := range d.variants {
		var g grammar
		if _, err := newParser(&g, streams{}).Parse(v.command(&d.load)[1:]); err != nil {
			t.Errorf("%v: %v", v.command(&d.load), err)
		}
	}
	if total := d.total(); total > 50*time.Second {
		t.Errorf("the demo is planned to take %v", total)
	}
}

func TestDemoPlan(t *testing.T) {
	d := (&demoCommand{Seconds: 1.5, Seed: 42}).plan(&app{})
	if d.load.Rounds = demoRounds; d.load.Validate() != nil || d.watch.Validate() != nil {
		t.Fatal("the plan is no valid configuration")
	}
	if d.variants[demoMain].name != "adaptive" || d.variants[0].name != "off" {
		t.Error("the page would compare something else")
	}
}

// TestDemoVerdict: a failed round and a failed recording fail the demo, and the
// line says whose they are.
func TestDemoVerdict(t *testing.T) {
	good := func() *demo {
		d := (&demoCommand{Seconds: 1.5, Seed: 42}).plan(&app{})
		for _, v := range d.variants {
			v.result = &record.Result{Rounds: []record.Round{{Round: 1, OK: true}}}
		}
		return d
	}
	if err := good().verdict(); err != nil {
		t.Errorf("good rounds: %v", err)
	}
	d := good()
	d.variants[1].result.Rounds[0] = record.Round{Round: 1, Failure: "a byte differs", Errors: record.Errors{Content: 1}}
	d.variants[3].lost = &failure{"recording failed: no echo"}
	err := d.verdict()
	for _, want := range []string{"fixed: round 1 failed: a byte differs (content 1)", "fast: recording failed: no echo"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error = %v, want one with %q", err, want)
		}
	}
}

func TestDemoOut(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ name, out, want string }{
		{"directory", dir, "--out"},
		{"missing directory", filepath.Join(dir, "no", "page.html"), "--out"},
		{"below a file", filepath.Join(writeFile(t, dir), "page.html"), "--out"},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, stdout, stderr := arknet(t, "demo", "--out", c.out)
			if status != statusUsage || stdout != "" || !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("status %d, stdout %q, stderr %q", status, stdout, stderr)
			}
		})
	}
	for _, args := range [][]string{
		{"demo", "--seconds", "0"}, {"demo", "--seconds", "1e9"}, {"demo", "--seed", "-1"}, {"demo", "extra"},
	} {
		if status, _, stderr := arknet(t, args...); status != statusUsage || stderr == "" {
			t.Errorf("%v: status %d, stderr %q", args, status, stderr)
		}
	}
}

func writeFile(t *testing.T, dir string) string {
	t.Helper()
	name := filepath.Join(dir, "file")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestDemoInterrupted leaves nothing behind.
func TestDemoInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	status, stdout, stderr := arknetIn(ctx, "demo", "--out", filepath.Join(dir, "page.html"))
	if status != statusFailed || stdout != "" || !strings.Contains(stderr, "interrupted") {
		t.Errorf("status %d, stdout %q, stderr %q", status, stdout, stderr)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestWireMeter(t *testing.T) {
	m := newWireMeter(time.Second)
	sent := func(after time.Duration, e rudp.TraceEvent) {
		e.Kind, e.Time, e.Size = rudp.TraceSent, m.start.Add(after), 100
		m.trace(nil, e)
	}
	sent(50*time.Millisecond, rudp.TraceEvent{Repair: true}) // too early
	sent(150*time.Millisecond, rudp.TraceEvent{Repair: true})
	sent(160*time.Millisecond, rudp.TraceEvent{Data: true, Retransmission: true})
	sent(170*time.Millisecond, rudp.TraceEvent{AckOnly: true})
	sent(180*time.Millisecond, rudp.TraceEvent{Data: true})
	sent(500*time.Millisecond, rudp.TraceEvent{Repair: true}) // too late
	sent(-time.Second, rudp.TraceEvent{Repair: true})
	sent(time.Hour, rudp.TraceEvent{Repair: true})
	m.trace(nil, rudp.TraceEvent{Kind: rudp.TraceReceived, Time: m.start.Add(150 * time.Millisecond), Size: 100})
	var w report.Wire
	m.sum(&w, m.start.Add(100*time.Millisecond), 0.2)
	if want := (report.Wire{Repairs: 100, Repeated: 100, Acks: 100}); w != want {
		t.Errorf("got %+v, want %+v", w, want)
	}
}

// TestRecorder plays a session of six pieces of data.
func TestRecorder(t *testing.T) {
	start := time.Date(2025, 11, 30, 12, 0, 0, 0, time.UTC)
	client, server := new(rudp.Conn), new(rudp.Conn)
	r := newRecorder()
	at := func(c *rudp.Conn, ms int, e rudp.TraceEvent) {
		e.Time = start.Add(time.Duration(ms) * time.Millisecond)
		r.trace(c, e)
	}
	send := func(ms int, packet, symbol uint64, again bool) {
		at(client, ms, rudp.TraceEvent{Kind: rudp.TraceSent, Packet: packet, Symbol: symbol, Data: true, Retransmission: again})
	}
	arrive := func(ms int, packet, symbol uint64) {
		at(server, ms, rudp.TraceEvent{Kind: rudp.TraceReceived, Packet: packet, Symbol: symbol, Data: true})
	}
	restore := func(ms int, symbol uint64) {
		at(server, ms, rudp.TraceEvent{Kind: rudp.TraceRestored, Symbol: symbol})
	}
	send(50, 0, 0, false) // before the window of 100 to 500 ms
	send(200, 1, 1, false)
	arrive(210, 1, 1)
	send(220, 2, 2, false) // lost, restored, and sent again in vain
	restore(232, 2)
	send(300, 3, 3, false) // lost and sent again
	at(client, 310, rudp.TraceEvent{Kind: rudp.TraceSent, Packet: 9, Repair: true})
	send(320, 4, 2, true)
	send(340, 5, 3, true)
	arrive(350, 5, 3)
	send(400, 6, 4, false) // late, and restored before
	restore(412, 4)
	arrive(425, 6, 4)
	send(450, 7, 5, false) // lost for good
	send(550, 8, 6, false) // after the window
	// The other direction does not count.
	at(server, 300, rudp.TraceEvent{Kind: rudp.TraceSent, Packet: 1, Data: true})
	at(client, 310, rudp.TraceEvent{Kind: rudp.TraceRestored, Symbol: 3})

	line := r.timeline("x", start, 600*time.Millisecond)
	if line.Sent != 5 || line.Repeats != 2 || len(line.Repairs) != 1 || line.Repairs[0] != 210 || line.LateRestored != 1 || line.Truncated || line.Seconds != 0.4 {
		t.Errorf("got %+v", line)
	}
	want := []report.Loss{
		{At: 120, Wait: 12, Fate: report.FateRestored},
		{At: 200, Wait: 50, Fate: report.FateRepeated},
		{At: 350, Fate: report.FateOpen},
	}
	if len(line.Lost) != len(want) {
		t.Fatalf("losses %+v, want %+v", line.Lost, want)
	}
	for i := range want {
		if line.Lost[i] != want[i] {
			t.Errorf("loss %d is %+v, want %+v", i, line.Lost[i], want[i])
		}
	}
}

// TestRecorderIsBounded: it forgets the oldest and says so.
func TestRecorderIsBounded(t *testing.T) {
	start := time.Date(2025, 11, 30, 12, 0, 0, 0, time.UTC)
	client := new(rudp.Conn)
	r := newRecorder()
	for i := range maxTraced + 1000 {
		r.trace(client, rudp.TraceEvent{Kind: rudp.TraceSent, Time: start.Add(time.Duration(i) * 10 * time.Microsecond), Packet: uint64(i), Data: true})
	}
	if len(r.ring) != maxTraced {
		t.Errorf("%d events kept", len(r.ring))
	}
	if line := r.timeline("x", start.Add(-time.Second), time.Second); !line.Truncated {
		t.Error("the missing beginning is not told")
	}
	if line := r.timeline("x", start, 600*time.Millisecond); line.Truncated || line.Sent != 40_000 {
		t.Errorf("%d pieces, truncated %v", line.Sent, line.Truncated)
	}
}
