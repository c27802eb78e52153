package record

import (
	"bufio"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
)

// units are the units of the Go benchmark text format, by name in JSON. What is
// not listed is not written: it is the same figure in another unit or not a
// measurement to compare.
var units = map[string]string{
	"roundtrips_per_second":       "rt/s",
	"rtt_p50_us":                  "p50-us",
	"rtt_p95_us":                  "p95-us",
	"rtt_p99_us":                  "p99-us",
	"goodput_mbit_per_second":     "Mbit/s",
	"cpu_percent":                 "cpu%",
	"cpu_us_per_round_trip":       "cpu-us/rt",
	"wire_overhead_percent":       "overhead%",
	"fec_restored_per_1000":       "restored/1000rt",
	"arq_retransmitted_per_1000":  "retransmitted/1000rt",
	"fec_retained_peak_bytes":     "fec-retained-B",
	"relay_route_peak_sum_bytes":  "relay-peak-B",
	"peak_rss_bytes":              "rss-B",
	"realized_loss_percent":       "loss%",
	"parity_budget_bound_percent": "budget-bound%",
}

// WriteGoBench writes the rounds in the text format of Go benchmarks, one line
// per round, so that benchstat can compare results. Failed rounds become
// comments.
func WriteGoBench(w io.Writer, results ...*Result) error {
	out := bufio.NewWriter(w)
	for _, r := range results {
		writeGoBench(out, r)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("record: write Go benchmark text: %w", err)
	}
	return nil
}

func writeGoBench(out *bufio.Writer, r *Result) {
	env := &r.Environment
	for _, line := range [][2]string{
		{"goos", env.OS},
		{"goarch", env.Arch},
		{"cpu", env.CPUModel},
		{"go", env.Go},
		{"kernel", env.Kernel},
		{"revision", env.Revision},
	} {
		if line[1] != "" {
			fmt.Fprintf(out, "%s: %s\n", line[0], strings.Join(strings.Fields(line[1]), " "))
		}
	}
	name := benchName(r)
	for i := range r.Rounds {
		round := &r.Rounds[i]
		if !round.OK {
			fmt.Fprintf(out, "# %s round %d failed: errors: %v\n", name, round.Round, round.Errors)
			continue
		}
		fmt.Fprintf(out, "%s %d", name, round.RoundTrips)
		fmt.Fprintf(out, " %s ns/op", number(round.ElapsedSeconds*1e9/float64(round.RoundTrips)))
		v := reflect.ValueOf(&round.Metrics).Elem()
		for f := range v.NumField() {
			if unit, ok := units[v.Type().Field(f).Tag.Get("json")]; ok {
				fmt.Fprintf(out, " %s %s", number(asFloat(v.Field(f))), unit)
			}
		}
		out.WriteByte('\n')
	}
}

// benchName is "Benchmark" and the workload, with the parameters as key=value
// parts.
func benchName(r *Result) string {
	c := &r.Config
	var b strings.Builder
	workload := c.Workload
	if workload == "" {
		workload = "unknown"
	}
	b.WriteString("Benchmark" + strings.ToUpper(workload[:1]) + workload[1:])
	part := func(key string, value any) {
		fmt.Fprintf(&b, "/%s=%s", key, strings.Map(nameRune, fmt.Sprint(value)))
	}
	part("driver", c.Driver)
	part("profile", c.Profile)
	part("loss", number(c.LossPercent)+"%")
	part("delay", number(c.DelayMS)+"ms")
	if c.RateMbit > 0 {
		part("rate", number(c.RateMbit)+"Mbit")
	}
	part("payload", c.Payload)
	part("clients", c.Clients)
	if c.Window > 0 {
		part("window", c.Window)
	}
	if fec, ok := c.Transport["fec"]; ok {
		part("fec", fec)
	}
	if n := r.Environment.GOMAXPROCS; n > 1 {
		b.WriteString("-" + strconv.Itoa(n))
	}
	return b.String()
}

// nameRune replaces what would end a name or a part of it.
func nameRune(c rune) rune {
	if c <= ' ' || c == '/' || c == 0x7f {
		return '_'
	}
	return c
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
