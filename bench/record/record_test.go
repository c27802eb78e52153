package record_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/openarkstudio/arknet-go/bench/record"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// sample is a result with two good rounds and a failed one.
func sample() *record.Result {
	start := time.Date(2025, 11, 30, 12, 0, 0, 0, time.UTC)
	metrics := func(rate float64, retained uint64) record.Metrics {
		return record.Metrics{
			RoundTripsPerSecond: rate,
			RTTP50:              40_001, RTTP95: 71_000, RTTP99: 95_000,
			GoodputMbit: 24.5, CPUPercent: 12.5, MachineSharePercent: 6.25, CPUPerRoundTrip: 83.1,
			WireOverheadPercent: 15.02, FECRestored: 183, ARQRetransmitted: 166.5,
			FECRetainedPeak: retained, FECRetainedPeakClient: 20_000, FECRetainedPeakServer: 18_000,
			RelayRoutePeakSum: 99_000, PeakRSS: 12 << 20,
			ParityMaxPercent: 25, ParityMaxShards: 2, ParityBudgetBoundPercent: 0.5,
			RealizedLossPercent: 5.01, PolicyChanges: 3,
			RoundTrips: 4_441, SendCompletions: 8_882, Drained: true,
		}
	}
	failed := metrics(9_999, 1)
	failed.Drained = false
	relay := record.Relay{
		FromClients: 4_600, FromClientsBytes: 5_000_000, FromServer: 4_500, FromServerBytes: 5_100_000,
		Sent: 8_700, SentBytes: 9_700_000, LostRandom: 455, Duplicated: 91, Late: 450, Routes: 4,
	}
	r := &record.Result{
		Schema:  record.Schema,
		Command: []string{"arknet", "bench", "rudp", "--json"},
		Config: record.Config{
			Driver: "rudp", Workload: "echo", Payload: 1024, Clients: 4, Window: 16,
			Profile: "random", LossPercent: 5, DelayMS: 10, DuplicatePercent: 1, ReorderPercent: 5, ReorderDelayMS: 15,
			Seconds: 3, Warmup: 2, RoundCount: 3, Seed: 42, AddressFamily: "ipv4",
			Transport: map[string]any{"fec": "off", "congestion": "copa", "mtu": 1200.0},
		},
		Environment: record.Environment{
			Go: "go1.26.8", OS: "linux", Arch: "amd64", Kernel: "6.8.0", CPUModel: "Example CPU @ 3 GHz",
			Cores: 2, MemoryBytes: 8 << 30, GOMAXPROCS: 2, GOGC: 100,
			Dependencies: map[string]string{"golang.org/x/sys": "v0.50.0"},
			Revision:     "0123456789abcdef", SourceDigest: "sha256:00",
			Start: start, End: start.Add(20 * time.Second),
			SocketBuffers: record.SocketBuffers{ServerRead: 8 << 20, ServerWrite: 8 << 20},
		},
		Rounds: []record.Round{
			{Round: 1, Seed: 42, Start: start, ElapsedSeconds: 3.01, WarmupOK: true, Metrics: metrics(1_475, 37_000), Relay: relay, OK: true,
				RTTDistribution: []record.Percentile{{Percent: 0, RTT: 20_100}, {Percent: 50, RTT: 40_001}, {Percent: 95, RTT: 71_000}, {Percent: 99, RTT: 95_000}, {Percent: 100, RTT: 120_500}}},
			{Round: 2, Seed: 43, Start: start.Add(6 * time.Second), ElapsedSeconds: 5, WarmupOK: true, Metrics: failed, Relay: relay,
				Errors: record.Errors{Order: 2, Content: 1}, Failure: "client 3: message 17: a byte differs"},
			{Round: 3, Seed: 44, Start: start.Add(12 * time.Second), ElapsedSeconds: 3.02, WarmupOK: true, Metrics: metrics(1_485.5, 38_000), Relay: relay, OK: true},
		},
	}
	r.Aggregate()
	return r
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want = bytes.ReplaceAll(want, []byte("\r\n"), []byte("\n"))
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; run with -update and look at the difference\ngot:\n%s", name, got)
	}
}

func encode(t *testing.T, r *record.Result) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := record.Write(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestJSONGolden(t *testing.T) {
	golden(t, "result.json", encode(t, sample()))
}

func TestGoBenchGolden(t *testing.T) {
	var b bytes.Buffer
	if err := record.WriteGoBench(&b, sample()); err != nil {
		t.Fatal(err)
	}
	golden(t, "result.bench.txt", b.Bytes())

	line := regexp.MustCompile(`^Benchmark[A-Z]\S* \d+( [0-9.]+ \S+)+$`)
	key := regexp.MustCompile(`^[a-z]+: \S`)
	for l := range strings.Lines(b.String()) {
		l = strings.TrimSuffix(l, "\n")
		if !line.MatchString(l) && !key.MatchString(l) && !strings.HasPrefix(l, "# ") {
			t.Errorf("not a line of the format: %q", l)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	want := sample()
	got, err := record.Read(bytes.NewReader(encode(t, want)))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read back:\n%+v\nwant:\n%+v", got, want)
	}
}

func TestAggregate(t *testing.T) {
	r := sample()
	if r.OK {
		t.Error("ok with a failed round")
	}
	if want := (record.Errors{Order: 2, Content: 1}); r.Errors != want {
		t.Errorf("errors = %v, want %v", r.Errors, want)
	}
	if got := r.Errors.String(); got != "content 1, order 2" {
		t.Errorf("errors in words: %q", got)
	}
	// The failed round has the extreme figures and must not appear in any.
	if got, want := r.Median.RoundTripsPerSecond, 1_480.25; got != want {
		t.Errorf("median = %v, want %v", got, want)
	}
	if r.Min.FECRetainedPeak != 37_000 || r.Max.FECRetainedPeak != 38_000 || r.Median.FECRetainedPeak != 37_500 {
		t.Errorf("retained min, median, max = %d, %d, %d", r.Min.FECRetainedPeak, r.Median.FECRetainedPeak, r.Max.FECRetainedPeak)
	}
	if !r.Min.Drained || !r.Median.Drained {
		t.Error("drained is not true although all good rounds drained")
	}
	for i := range r.Rounds {
		r.Rounds[i].OK = false
	}
	r.Aggregate()
	if r.Median != nil || r.Min != nil || r.Max != nil || r.OK {
		t.Error("figures without a good round")
	}
	if _, err := record.Read(bytes.NewReader(encode(t, r))); err != nil {
		t.Errorf("a result without good rounds must stay readable: %v", err)
	}
}

// TestReadRefusesMissingFields removes every field in turn.
func TestReadRefusesMissingFields(t *testing.T) {
	whole := encode(t, sample())
	var paths [][]any
	var walk func(v any, path []any)
	walk = func(v any, path []any) {
		switch v := v.(type) {
		case map[string]any:
			for k, e := range v {
				at := append(append([]any(nil), path...), k)
				if n := len(path); n > 0 && (path[n-1] == "dependencies" || path[n-1] == "config" && sample().Config.Transport[k] != nil) || k == "failure" || k == "rtt_distribution" {
					continue // open maps and optional fields
				}
				paths = append(paths, at)
				walk(e, at)
			}
		case []any:
			for i, e := range v {
				walk(e, append(append([]any(nil), path...), i))
			}
		}
	}
	var tree any
	if err := json.Unmarshal(whole, &tree); err != nil {
		t.Fatal(err)
	}
	walk(tree, nil)
	if len(paths) < 150 {
		t.Fatalf("only %d fields found", len(paths))
	}
	for _, path := range paths {
		var tree any
		if err := json.Unmarshal(whole, &tree); err != nil {
			t.Fatal(err)
		}
		v := tree
		for _, p := range path[:len(path)-1] {
			if i, ok := p.(int); ok {
				v = v.([]any)[i]
			} else {
				v = v.(map[string]any)[p.(string)]
			}
		}
		delete(v.(map[string]any), path[len(path)-1].(string))
		b, err := json.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := record.Read(bytes.NewReader(b)); err == nil {
			t.Errorf("accepted without %v", path)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	whole := string(encode(t, sample()))
	replace := func(old, new string) string {
		if !strings.Contains(whole, old) {
			t.Fatalf("%q is not in the sample", old)
		}
		return strings.Replace(whole, old, new, 1)
	}
	for _, c := range []struct{ name, in, want string }{
		{"empty", "", "unexpected end"},
		{"truncated", whole[:len(whole)/2], "unexpected end"},
		{"two objects", whole + whole, "after top-level value"},
		{"another schema", replace("arknet.bench.rudp/1", "arknet.bench.rudp/9"), "schema"},
		{"unknown field", replace(`"ok": true`, `"ok": true, "bonus": 1`), "bonus"},
		{"wrong type", replace(`"clients": 4`, `"clients": "four"`), "clients"},
		{"edited median", replace(`"roundtrips_per_second": 1480.25`, `"roundtrips_per_second": 1580.25`), "median"},
		{"failed result called ok", strings.TrimSuffix(whole, "\"ok\": false\n}\n") + "\"ok\": true\n}\n", "ok is true"},
		{"missing round", replace(`"rounds": 3`, `"rounds": 4`), "3 rounds"},
		{"another seed", replace(`"seed": 43`, `"seed": 45`), "rounds[1].seed"},
		{"negative figure", replace(`"cpu_percent": 12.5`, `"cpu_percent": -12.5`), "cpu_percent"},
		{"distribution that falls", replace(`"us": 120500`, `"us": 12050`), "rtt_distribution[4].us"},
		{"distribution out of order", replace(`"percent": 99,`, `"percent": 9,`), "rtt_distribution[3].percent"},
		{"distribution against its percentile", replace(`"us": 71000`, `"us": 71001`), "rtt_p95_us"},
		{"errors in a good round", replace(`"lost": 0`, `"lost": 1`), "ok is true with errors: lost 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := record.Read(strings.NewReader(c.in))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error = %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestWriteRefusesAmbiguousParameter(t *testing.T) {
	r := sample()
	r.Config.Transport["payload"] = 1
	if err := record.Write(new(bytes.Buffer), r); err == nil || !strings.Contains(err.Error(), "payload") {
		t.Errorf("error = %v", err)
	}
}
