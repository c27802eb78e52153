package bench

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openarkstudio/arknet-go/bench/record"
)

// run runs a configuration under a fake clock, so that deadlines and drains
// take no time and cannot be late.
func run(t *testing.T, d *fakeDriver, change func(*Config)) *record.Result {
	t.Helper()
	var result *record.Result
	synctest.Test(t, func(t *testing.T) {
		cfg := quick(d)
		if change != nil {
			change(&cfg)
		}
		var err error
		result, err = Run(t.Context(), d, cfg)
		if err != nil {
			t.Fatal(err)
		}
	})
	if n := d.open.Load(); n != 0 {
		t.Errorf("%d associations were left open", n)
	}
	if err := result.Validate(); err != nil {
		t.Errorf("the record is not valid: %v", err)
	}
	var b bytes.Buffer
	if err := record.Write(&b, result); err != nil {
		t.Fatal(err)
	}
	if _, err := record.Read(&b); err != nil {
		t.Errorf("the record does not read back: %v", err)
	}
	return result
}

func TestEchoGoodRun(t *testing.T) {
	d := reliableFake()
	r := run(t, d, func(c *Config) {
		c.Rounds = 3
		c.Command = []string{"arknet", "bench"}
	})
	if !r.OK || r.Errors != (record.Errors{}) {
		t.Fatalf("not ok: %v, %q", r.Errors, r.Rounds[0].Failure)
	}
	for i, round := range r.Rounds {
		// 2 clients keep 4 messages in flight over a round trip of 2 ms for
		// 20 ms: 10 windows each.
		if round.RoundTrips != 2*4*10 {
			t.Errorf("round %d: %d round trips, want 80", i, round.RoundTrips)
		}
		if round.SendCompletions != 2*round.RoundTrips {
			t.Errorf("round %d: %d completions for %d round trips", i, round.SendCompletions, round.RoundTrips)
		}
		if !round.Drained || !round.WarmupOK {
			t.Errorf("round %d: drained %v, warmup ok %v", i, round.Drained, round.WarmupOK)
		}
		if round.RTTP50 != 2000 || round.RTTP99 != 2000 {
			t.Errorf("round %d: p50 %v, p99 %v, want 2,000 us", i, round.RTTP50, round.RTTP99)
		}
		if round.WireOverheadPercent != 0 {
			t.Errorf("round %d: overhead %v %% on a transport without any", i, round.WireOverheadPercent)
		}
		if round.RelayRoutePeakSum != 77 {
			t.Errorf("round %d: route peak %d", i, round.RelayRoutePeakSum)
		}
		if want := uint64(7 + i); round.Seed != want {
			t.Errorf("round %d: seed %d, want %d", i, round.Seed, want)
		}
	}
	want := record.SocketBuffers{ServerRead: 4096, ServerWrite: 2048, ClientReadMin: 1000, ClientReadMax: 1000, ClientWriteMin: 500, ClientWriteMax: 500}
	if got := r.Environment.SocketBuffers; got != want {
		t.Errorf("socket buffers %+v, want %+v", got, want)
	}
	if r.Config.Transport["fec"] != "off" || r.Config.Window != 4 || r.Command[0] != "arknet" {
		t.Errorf("config %+v, command %v", r.Config, r.Command)
	}
	if r.Environment.Go == "" || r.Environment.Cores == 0 || r.Environment.Start.IsZero() || r.Environment.End.Before(r.Environment.Start) {
		t.Errorf("environment %+v", r.Environment)
	}
}

// TestFaultsAreCaught makes the transport misbehave once, in the measured phase,
// and asserts which counters see it.
func TestFaultsAreCaught(t *testing.T) {
	const at = 20 // index of the message per association; warmup takes 12
	flip := func(i int) func(int, []byte) [][]byte {
		return func(n int, msg []byte) [][]byte {
			if n == at {
				msg[i] ^= 1
			}
			return [][]byte{msg}
		}
	}
	drop := func(n int, msg []byte) [][]byte {
		if n == at {
			return nil
		}
		return [][]byte{msg}
	}
	swap := func() func(n int, msg []byte) [][]byte {
		var kept [2][]byte // per client, told apart by the header
		return func(n int, msg []byte) [][]byte {
			c := msg[2] & 1
			switch n {
			case at:
				kept[c] = msg
				return nil
			case at + 1:
				return [][]byte{msg, kept[c]}
			}
			return [][]byte{msg}
		}
	}
	unreliable := Capabilities{Ordered: true}
	for _, c := range []struct {
		name   string
		driver *fakeDriver
		change func(*Config)
		want   record.Errors
	}{
		{"first byte of the body differs", &fakeDriver{deliver: flip(headerLen)}, nil, record.Errors{Content: 2}},
		{"last byte differs", &fakeDriver{deliver: flip(127)}, nil, record.Errors{Content: 2}},
		{"a byte differs on the way to the server", &fakeDriver{upload: flip(64)}, nil, record.Errors{Content: 2}},
		{"message cut short", &fakeDriver{deliver: func(n int, msg []byte) [][]byte {
			if n == at {
				msg = msg[:len(msg)-1]
			}
			return [][]byte{msg}
		}}, nil, record.Errors{Content: 2}},
		{"message too long", &fakeDriver{deliver: func(n int, msg []byte) [][]byte {
			if n == at {
				msg = append(msg, 0)
			}
			return [][]byte{msg}
		}}, nil, record.Errors{Content: 2}},
		{"echo of another client", &fakeDriver{deliver: func(n int, msg []byte) [][]byte {
			if n == at {
				other := bytes.Clone(msg)
				other[2] ^= 1
				return [][]byte{msg, other}
			}
			return [][]byte{msg}
		}}, nil, record.Errors{Unexpected: 2}},
		{"echo of another phase", &fakeDriver{deliver: func(n int, msg []byte) [][]byte {
			if n == at {
				other := bytes.Clone(msg)
				other[4] ^= 1
				return [][]byte{msg, other}
			}
			return [][]byte{msg}
		}}, nil, record.Errors{Unexpected: 2}},
		{"message that was never sent", &fakeDriver{deliver: func(n int, msg []byte) [][]byte {
			if n == at {
				other := bytes.Clone(msg)
				other[14] = 9
				return [][]byte{msg, other}
			}
			return [][]byte{msg}
		}}, nil, record.Errors{Unexpected: 2}},
		{"noise", &fakeDriver{deliver: func(n int, msg []byte) [][]byte {
			if n == at {
				return [][]byte{msg, []byte("noise"), {}}
			}
			return [][]byte{msg}
		}}, nil, record.Errors{Unexpected: 4}},
		{"noise at the server", &fakeDriver{upload: func(n int, msg []byte) [][]byte {
			if n == at {
				return [][]byte{msg, []byte("noise")}
			}
			return [][]byte{msg}
		}}, nil, record.Errors{Unexpected: 2}},
		{"echo twice", &fakeDriver{deliver: func(n int, msg []byte) [][]byte {
			if n == at {
				return [][]byte{msg, msg}
			}
			return [][]byte{msg}
		}}, nil, record.Errors{Duplicate: 2}},
		{"two echoes swapped", &fakeDriver{deliver: swap()}, nil, record.Errors{Order: 2}},
		{"last echoes missing", &fakeDriver{deliver: func(n int, msg []byte) [][]byte {
			if n >= 48 {
				return nil
			}
			return [][]byte{msg}
		}}, nil, record.Errors{Unfinished: 8, DrainTimeouts: 2}},
		{"unreliable transport loses one", &fakeDriver{caps: unreliable, deliver: drop}, nil, record.Errors{Lost: 2}},
		{"unreliable transport loses the last", &fakeDriver{caps: unreliable, deliver: func(n int, msg []byte) [][]byte {
			if n >= 48 {
				return nil
			}
			return [][]byte{msg}
		}}, nil, record.Errors{Lost: 8}},
		{"completion twice", &fakeDriver{complete: func(n int, done func(error)) {
			done(nil)
			if n == at {
				done(nil)
			}
		}}, nil, record.Errors{DuplicateCompletions: 2}},
		{"completion missing", &fakeDriver{complete: func(n int, done func(error)) {
			if n != at {
				done(nil)
			}
		}}, nil, record.Errors{MissingCompletions: 2}},
		{"completion with an error", &fakeDriver{complete: func(n int, done func(error)) {
			if n == at {
				done(errFake)
			} else {
				done(nil)
			}
		}}, nil, record.Errors{CompletionErrorsClient: 2}},
		{"drain fails", &fakeDriver{drain: context.DeadlineExceeded}, func(c *Config) { c.Warmup = 0 }, record.Errors{DrainTimeouts: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.driver.caps == (Capabilities{}) {
				c.driver.caps = reliableFake().caps
			}
			r := run(t, c.driver, c.change)
			if r.OK || r.Rounds[0].OK || r.Median != nil {
				t.Error("a faulty run is called ok")
			}
			if r.Errors != c.want {
				t.Errorf("errors: %v; want: %v", r.Errors, c.want)
			}
			if r.Rounds[0].Failure == "" {
				t.Error("the failure has no words")
			}
			if drained := r.Rounds[0].Drained; drained != (c.want.Unfinished+c.want.Lost+c.want.DrainTimeouts+c.want.MissingCompletions == 0) {
				t.Errorf("drained is %v", drained)
			}
		})
	}
}

// TestMissingEcho has a transport that swallows one message and goes on: all
// later ones overtake it.
func TestMissingEcho(t *testing.T) {
	d := reliableFake()
	d.deliver = func(n int, msg []byte) [][]byte {
		if n == 20 {
			return nil
		}
		return [][]byte{msg}
	}
	r := run(t, d, nil)
	if r.OK || r.Errors.Order == 0 || r.Errors.Unfinished != 2 || r.Errors.DrainTimeouts != 2 || r.Errors.Content != 0 {
		t.Errorf("errors: %v", r.Errors)
	}
}

// TestMissingEchoForLong goes on until the ring of outstanding messages laps.
func TestMissingEchoForLong(t *testing.T) {
	d := reliableFake()
	d.deliver = func(n int, msg []byte) [][]byte {
		if n == 20 {
			return nil
		}
		return [][]byte{msg}
	}
	r := run(t, d, func(c *Config) { c.Duration = 300 * time.Millisecond })
	if r.OK || r.Errors.Lost != 2 || r.Errors.Order == 0 || r.Errors.Unfinished != 0 {
		t.Errorf("errors: %v", r.Errors)
	}
}

// TestEveryByteIsChecked flips each byte of a message in turn.
func TestEveryByteIsChecked(t *testing.T) {
	p := newPattern(200, 1)
	h := header{kind: kindEcho, client: 3, tag: phaseTag(2, true), seq: 1 << 40}
	msg := make([]byte, 200)
	p.fill(msg, h)
	good := func() bool {
		got, ok := parseHeader(msg)
		return ok && got == h && p.same(msg, h)
	}
	if !good() {
		t.Fatal("the message itself is refused")
	}
	for i := range msg {
		for bit := range 8 {
			msg[i] ^= 1 << bit
			if good() {
				t.Errorf("bit %d of byte %d is not checked", bit, i)
			}
			msg[i] ^= 1 << bit
		}
	}
	// Messages of other senders and numbers differ in the body too.
	for _, other := range []header{
		{kindEcho, 4, h.tag, h.seq}, {kindEcho, 3, h.tag, h.seq + 1}, {kindEcho, 3, h.tag ^ 1, h.seq},
	} {
		if p.same(msg, other) {
			t.Errorf("the body of %+v is the same as that of %+v", other, h)
		}
	}
}

func TestRelayTroubleMakesTheRunInvalid(t *testing.T) {
	for _, c := range []struct {
		name string
		path fakePath
		want record.Errors
	}{
		{"overflow", fakePath{overflow: 3}, record.Errors{RelayOverflow: 3}},
		{"socket error", fakePath{errors: 1}, record.Errors{Relay: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := reliableFake()
			c.path.d = d
			r := run(t, d, func(cfg *Config) {
				cfg.newPath = func(pathConfig) (path, error) { return &c.path, nil }
			})
			if r.OK || r.Errors != c.want || r.Rounds[0].RoundTrips == 0 {
				t.Errorf("ok %v, errors: %v, %d round trips", r.OK, r.Errors, r.Rounds[0].RoundTrips)
			}
		})
	}
	t.Run("cannot start", func(t *testing.T) {
		d := reliableFake()
		r := run(t, d, func(cfg *Config) {
			cfg.newPath = func(pathConfig) (path, error) { return nil, errFake }
		})
		if r.OK || r.Errors.Relay != 1 {
			t.Errorf("ok %v, errors: %v", r.OK, r.Errors)
		}
	})
}

func TestFailedRoundIsLeftOut(t *testing.T) {
	d := reliableFake()
	d.dial = func(n int) error {
		if n == 2 { // the first client of the second round
			return errFake
		}
		return nil
	}
	r := run(t, d, func(c *Config) { c.Rounds = 3 })
	if r.OK || r.Errors != (record.Errors{Dial: 1}) {
		t.Errorf("ok %v, errors: %v", r.OK, r.Errors)
	}
	if len(r.Rounds) != 3 || !r.Rounds[0].OK || r.Rounds[1].OK || !r.Rounds[2].OK {
		t.Fatal("want the second of three rounds to fail")
	}
	if r.Rounds[1].WarmupOK || !strings.Contains(r.Rounds[1].Failure, "made up") {
		t.Errorf("warmup ok %v, failure %q", r.Rounds[1].WarmupOK, r.Rounds[1].Failure)
	}
	if r.Median == nil || r.Median.RoundTrips != 80 {
		t.Errorf("median over the good rounds: %+v", r.Median)
	}
}

func TestTransportEndsEarly(t *testing.T) {
	d := reliableFake()
	d.send = func(n int) error {
		if n == 30 {
			return errFake
		}
		return nil
	}
	r := run(t, d, nil)
	if r.OK || r.Errors.Disconnects != 2 || r.Errors.Unfinished != 6 {
		t.Errorf("errors: %v", r.Errors)
	}
}

func TestPanicInATransport(t *testing.T) {
	d := reliableFake()
	d.send = func(n int) error {
		if n == 30 {
			panic("made up panic")
		}
		return nil
	}
	r := run(t, d, nil)
	if r.OK || r.Errors.Exceptions != 2 || !strings.Contains(r.Rounds[0].Failure, "made up panic") {
		t.Errorf("errors: %v, failure %q", r.Errors, r.Rounds[0].Failure)
	}
}

// TestNoRoom has a transport that refuses every other TrySend.
func TestNoRoom(t *testing.T) {
	d := reliableFake()
	var refused atomic.Int64
	d.room = func(n int) bool {
		if n%2 == 0 {
			refused.Add(1)
			return false
		}
		return true
	}
	r := run(t, d, nil)
	if !r.OK || refused.Load() == 0 {
		t.Errorf("ok %v with %d refusals: %v", r.OK, refused.Load(), r.Errors)
	}
	if round := r.Rounds[0]; round.SendCompletions != 2*round.RoundTrips {
		t.Errorf("%d completions for %d round trips", round.SendCompletions, round.RoundTrips)
	}
}

// TestLargeWindowWithoutTrySend has more in flight than the transport holds: with
// one goroutine per client both ends would wait in Send for ever.
func TestLargeWindowWithoutTrySend(t *testing.T) {
	d := reliableFake()
	r := run(t, d, func(c *Config) {
		c.Window = 3 * inboxRoom
		c.Payload = 1024
	})
	if !r.OK || r.Rounds[0].RoundTrips == 0 {
		t.Errorf("ok %v, errors: %v, %q", r.OK, r.Errors, r.Rounds[0].Failure)
	}
	d = reliableFake()
	d.send = func(n int) error {
		if n == 3000 {
			return errFake
		}
		return nil
	}
	r = run(t, d, func(c *Config) {
		c.Window = 3 * inboxRoom
		c.Payload = 1024
	})
	if r.OK || r.Errors.Disconnects != 2 || !strings.Contains(r.Rounds[0].Failure, "made up") {
		t.Errorf("ok %v, errors: %v, %q", r.OK, r.Errors, r.Rounds[0].Failure)
	}
}

func TestStream(t *testing.T) {
	d := reliableFake()
	r := run(t, d, func(c *Config) { c.Workload = Stream })
	if !r.OK {
		t.Fatalf("errors: %v, %q", r.Errors, r.Rounds[0].Failure)
	}
	m := r.Median
	if m.RoundTrips == 0 || m.GoodputMbit == 0 || m.RTTP50 != 0 {
		t.Errorf("%+v", m)
	}
	// Each client sends its messages and one end, the server one report.
	if want := m.RoundTrips + 2 + 2; m.SendCompletions != want {
		t.Errorf("%d completions, want %d", m.SendCompletions, want)
	}
	if got := r.Config.Window; got != 0 {
		t.Errorf("window %d recorded for a workload without one", got)
	}
}

func TestStreamFaultsAreCaught(t *testing.T) {
	const at = 600 // the warmup takes fewer
	for _, c := range []struct {
		name   string
		upload func(n int, msg []byte) [][]byte
		check  func(record.Errors) bool
	}{
		{"a byte differs", func(n int, msg []byte) [][]byte {
			if n == at {
				msg[100] ^= 8
			}
			return [][]byte{msg}
		}, func(e record.Errors) bool { return e.Content == 2 && e.Unfinished == 2 && e.Total() == 4 }},
		{"a message is missing", func(n int, msg []byte) [][]byte {
			if n == at {
				return nil
			}
			return [][]byte{msg}
		}, func(e record.Errors) bool { return e.Order == 2 && e.Unfinished == 4 && e.Total() == 6 }},
		{"a message comes twice", func(n int, msg []byte) [][]byte {
			if n == at {
				return [][]byte{msg, msg}
			}
			return [][]byte{msg}
		}, func(e record.Errors) bool { return e.Duplicate == 2 && e.Total() == 2 }},
		{"the end does not arrive", func(n int, msg []byte) [][]byte {
			if n >= at && msg[1] == kindEnd {
				return nil
			}
			return [][]byte{msg}
		}, func(e record.Errors) bool { return e.DrainTimeouts == 2 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := reliableFake()
			d.upload = c.upload
			r := run(t, d, func(c *Config) {
				c.Workload = Stream
				c.Warmup = time.Millisecond
			})
			if r.OK || !c.check(r.Errors) {
				t.Errorf("ok %v, errors: %v", r.OK, r.Errors)
			}
		})
	}
}

func TestConnect(t *testing.T) {
	d := reliableFake()
	r := run(t, d, func(c *Config) { c.Workload = Connect })
	if !r.OK {
		t.Fatalf("errors: %v, %q", r.Errors, r.Rounds[0].Failure)
	}
	if m := r.Median; m.RoundTrips != 2*10 || m.RTTP50 != 2000 {
		t.Errorf("%d associations with a p50 of %v us, want 20 and 2,000", m.RoundTrips, m.RTTP50)
	}

	d = reliableFake()
	d.dial = func(n int) error {
		if n > 10 {
			return errFake
		}
		return nil
	}
	if r := run(t, d, func(c *Config) { c.Workload = Connect }); r.OK || r.Errors.Dial != 2 {
		t.Errorf("ok %v, errors: %v", r.OK, r.Errors)
	}

	d = reliableFake()
	var n atomic.Int64
	d.deliver = func(_ int, msg []byte) [][]byte {
		if n.Add(1) == 15 {
			msg[40] ^= 1
		}
		return [][]byte{msg}
	}
	if r := run(t, d, func(c *Config) { c.Workload = Connect }); r.OK || r.Errors.Content != 1 {
		t.Errorf("ok %v, errors: %v", r.OK, r.Errors)
	}
}

func TestStatsBecomeMetrics(t *testing.T) {
	d := reliableFake()
	d.stats = func() Stats {
		n := d.upCount.Load() // grows with traffic
		return Stats{Retransmitted: n, Restored: 2 * n, PolicyChanges: n, FECRetainedBytes: 100,
			ParityMaxPercent: 25, ParityMaxShards: 4, ParitySymbols: 4 * n, BudgetBoundSymbols: n}
	}
	r := run(t, d, nil)
	if !r.OK {
		t.Fatal(r.Errors)
	}
	m := r.Median
	// Each of the 4 ends adds 1 retransmission per client message.
	if m.ARQRetransmitted != 4000 || m.FECRestored != 8000 || m.PolicyChanges != 4*m.RoundTrips {
		t.Errorf("retransmitted %v, restored %v, policy changes %v for %d round trips", m.ARQRetransmitted, m.FECRestored, m.PolicyChanges, m.RoundTrips)
	}
	if m.FECRetainedPeak != 400 || m.FECRetainedPeakClient != 200 || m.FECRetainedPeakServer != 200 {
		t.Errorf("retained %d, client %d, server %d", m.FECRetainedPeak, m.FECRetainedPeakClient, m.FECRetainedPeakServer)
	}
	if m.ParityMaxPercent != 25 || m.ParityMaxShards != 4 || m.ParityBudgetBoundPercent != 25 {
		t.Errorf("parity %v %%, %d shards, bound %v %%", m.ParityMaxPercent, m.ParityMaxShards, m.ParityBudgetBoundPercent)
	}
}

func TestProgress(t *testing.T) {
	d := reliableFake()
	var seen []Progress
	run(t, d, func(c *Config) {
		c.Rounds = 2
		c.Duration = 250 * time.Millisecond
		c.Progress = func(p Progress) { seen = append(seen, p) }
	})
	if len(seen) < 8 {
		t.Fatalf("progress came %d times", len(seen))
	}
	for i, p := range seen {
		if i > 0 && p.Done < seen[i-1].Done {
			t.Errorf("progress goes back from %v to %v", seen[i-1].Done, p.Done)
		}
		if p.Total != 510*time.Millisecond || p.Rounds != 2 {
			t.Errorf("total %v of %d rounds", p.Total, p.Rounds)
		}
	}
	if last := seen[len(seen)-1]; last.Done != last.Total || last.Round != 2 {
		t.Errorf("last progress %+v", last)
	}
}

func TestCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := reliableFake()
		ctx, cancel := context.WithCancel(t.Context())
		cfg := quick(d)
		cfg.Duration = time.Hour
		time.AfterFunc(time.Second, cancel)
		if _, err := Run(ctx, d, cfg); !errors.Is(err, context.Canceled) {
			t.Errorf("error = %v", err)
		}
		if n := d.open.Load(); n != 0 {
			t.Errorf("%d associations were left open", n)
		}
	})
}

func TestValidate(t *testing.T) {
	lossy := Standard()
	if err := lossy.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		field  string
		change func(*Config)
	}{
		{"Workload", func(c *Config) { c.Workload = "ping" }},
		{"Payload", func(c *Config) { c.Payload = 15 }},
		{"Payload", func(c *Config) { c.Payload = MaxPayload + 1 }},
		{"Clients", func(c *Config) { c.Clients = 0 }},
		{"Window", func(c *Config) { c.Window = MaxWindow + 1 }},
		{"Rounds", func(c *Config) { c.Rounds = 0 }},
		{"Warmup", func(c *Config) { c.Warmup = -1 }},
		{"Duration", func(c *Config) { c.Duration = 0 }},
		{"in flight", func(c *Config) { c.Clients, c.Window, c.Payload = 1024, 1024, 1024 }},
		{"Loss", func(c *Config) { c.Impairment.Loss = 2 }},
	} {
		cfg := Standard()
		c.change(&cfg)
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), c.field) {
			t.Errorf("error = %v, want one that names %s", err, c.field)
		}
		if _, err := Run(t.Context(), RawUDP(), cfg); err == nil {
			t.Errorf("Run takes a bad %s", c.field)
		}
	}
	for _, c := range []struct {
		want   string
		change func(*Config)
	}{
		{"loss, duplicates, reordering", func(*Config) {}},
		{"reliable", func(c *Config) { c.Workload = Stream }},
		{"handshake", func(c *Config) { c.Workload = Connect }},
		{"65507", func(c *Config) { c.Payload = 65508 }},
	} {
		cfg := Standard()
		c.change(&cfg)
		if _, err := Run(t.Context(), RawUDP(), cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("raw UDP: error = %v, want one with %q", err, c.want)
		}
	}
	if !reflect.DeepEqual(lossy, Standard()) {
		t.Error("Validate changes the configuration")
	}
}

// TestCompletionsAllocateNothing pins the steady state of the harness itself.
func TestCompletionsAllocateNothing(t *testing.T) {
	var c completions
	n := testing.AllocsPerRun(1000, func() {
		token := c.arm()
		token.call(nil)
	})
	if n != 0 {
		t.Errorf("%v allocations per send", n)
	}
	if !c.settled() || c.sent.Load() != c.done.Load() || c.duplicate.Load() != 0 {
		t.Errorf("sent %d, done %d, duplicate %d", c.sent.Load(), c.done.Load(), c.duplicate.Load())
	}
}
