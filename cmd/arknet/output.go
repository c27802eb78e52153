package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/openarkstudio/arknet-go/bench"
	"github.com/openarkstudio/arknet-go/bench/record"
)

// outputFlags say how a result is written.
type outputFlags struct {
	JSON    bool    `name:"json" help:"Write one JSON object instead of a table." group:"Output:"`
	GoBench bool    `name:"gobench" help:"Write the text format of Go benchmarks instead of a table." group:"Output:"`
	Out     outFile `placeholder:"FILE" help:"Write the JSON object to a file as well." group:"Output:"`
}

// write writes the result to stdout.
func (f outputFlags) write(w io.Writer, r *record.Result) error {
	switch {
	case f.JSON:
		return record.Write(w, r)
	case f.GoBench:
		return record.WriteGoBench(w, r)
	default:
		return writeTable(w, r)
	}
}

// fileSink is the file of --out. It appears under its name when it is complete.
type fileSink struct {
	name string
	file *os.File
}

// open finds out before the run that the file can be written. A nil sink takes
// no file.
func (f outputFlags) open() (*fileSink, error) {
	if f.JSON && f.GoBench {
		return nil, usagef("--json and --gobench exclude each other; allowed: one of them")
	}
	if f.Out == "" {
		return nil, nil
	}
	name := string(f.Out)
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target // what the link points to is replaced, not the link
	}
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return nil, usagef("--out: %q is no regular file (a directory or a device); allowed: a file name", name)
	}
	file, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*")
	if err != nil {
		return nil, usagef("--out: %v; allowed: a file in a directory that can be written", err)
	}
	return &fileSink{name, file}, nil
}

func (s *fileSink) commit(r *record.Result) error {
	return s.commitText(func(w io.Writer) error { return record.Write(w, r) })
}

func (s *fileSink) commitText(write func(io.Writer) error) error {
	if s == nil {
		return nil
	}
	if err := write(s.file); err != nil {
		return err
	}
	if err := s.file.Chmod(0o644); err != nil {
		return err
	}
	if err := s.file.Close(); err != nil {
		return err
	}
	return os.Rename(s.file.Name(), s.name)
}

// discard removes what was not committed.
func (s *fileSink) discard() {
	if s != nil {
		_ = s.file.Close()
		_ = os.Remove(s.file.Name()) // gone already after commit
	}
}

// row is one line of the table.
type row struct {
	name   string
	value  func(*record.Metrics) float64
	digits int
}

var rows = []row{
	{"RTT p50, ms", func(m *record.Metrics) float64 { return m.RTTP50 / 1000 }, 3},
	{"RTT p95, ms", func(m *record.Metrics) float64 { return m.RTTP95 / 1000 }, 3},
	{"RTT p99, ms", func(m *record.Metrics) float64 { return m.RTTP99 / 1000 }, 3},
	{"goodput, Mbit/s", func(m *record.Metrics) float64 { return m.GoodputMbit }, 2},
	{"wire overhead, %", func(m *record.Metrics) float64 { return m.WireOverheadPercent }, 2},
	{"realized loss, %", func(m *record.Metrics) float64 { return m.RealizedLossPercent }, 2},
	{"retransmitted / 1,000", func(m *record.Metrics) float64 { return m.ARQRetransmitted }, 1},
	{"restored by FEC / 1,000", func(m *record.Metrics) float64 { return m.FECRestored }, 1},
	{"FEC memory peak, KiB", func(m *record.Metrics) float64 { return float64(m.FECRetainedPeak) / 1024 }, 1},
	{"CPU, % of one", func(m *record.Metrics) float64 { return m.CPUPercent }, 1},
	{"CPU, us per round trip", func(m *record.Metrics) float64 { return m.CPUPerRoundTrip }, 2},
	{"peak RSS, MiB", func(m *record.Metrics) float64 { return float64(m.PeakRSS) / (1 << 20) }, 1},
}

// operationNames say what is counted in each workload.
var operationNames = map[string]string{
	string(bench.Echo):    "round trips/s",
	string(bench.Stream):  "messages/s",
	string(bench.Connect): "handshakes/s",
}

// writeTable writes the result for people.
func writeTable(w io.Writer, r *record.Result) error {
	var b strings.Builder
	fmt.Fprintln(&b, headline(&r.Config))
	if r.Median != nil {
		t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(t, "\tmedian\tmin\tmax\t")
		operations := row{operationNames[r.Config.Workload], func(m *record.Metrics) float64 { return m.RoundTripsPerSecond }, 0}
		for _, line := range append([]row{operations}, rows...) {
			if r.Max.RTTP50 == 0 && strings.HasPrefix(line.name, "RTT") {
				continue
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t\n", line.name,
				group(line.value(r.Median), line.digits), group(line.value(r.Min), line.digits), group(line.value(r.Max), line.digits))
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	good := 0
	for i := range r.Rounds {
		if round := &r.Rounds[i]; round.OK {
			good++
		} else {
			fmt.Fprintf(&b, "round %d (seed %d) FAILED: %s\n", round.Round, round.Seed, firstLine(round.Failure))
		}
	}
	state := "ok"
	if !r.OK {
		state = "FAILED"
	}
	fmt.Fprintf(&b, "%s: %d of %d rounds passed, errors: %v\n", state, good, len(r.Rounds), r.Errors)
	_, err := io.WriteString(w, b.String())
	return err
}

// headline names the configuration.
func headline(c *record.Config) string {
	parts := []string{c.Driver, c.Workload, c.Profile + networkOf(c)}
	load := fmt.Sprintf("%d clients", c.Clients)
	if c.Window > 0 {
		load += fmt.Sprintf(" x window %d", c.Window)
	}
	parts = append(parts, load+" x "+group(float64(c.Payload), 0)+" B")
	if fec, ok := c.Transport["fec"]; ok {
		parts = append(parts, fmt.Sprintf("fec %v", fec))
	}
	return strings.Join(parts, ", ")
}

// networkOf spells the impairment out.
func networkOf(c *record.Config) string {
	var parts []string
	add := func(on bool, format string, args ...any) {
		if on {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(c.LossPercent > 0, "%v %% loss", c.LossPercent)
	add(c.BurstLoss != "", "bursts %s", c.BurstLoss)
	add(c.DelayMS > 0, "%v ms", c.DelayMS)
	add(c.JitterMS > 0, "jitter %v ms", c.JitterMS)
	add(c.DuplicatePercent > 0, "%v %% twice", c.DuplicatePercent)
	add(c.ReorderPercent > 0, "%v %% late by %v ms", c.ReorderPercent, c.ReorderDelayMS)
	add(c.RateMbit > 0, "%v Mbit/s with %d B of queue", c.RateMbit, c.QueueBytes)
	add(c.Outage != "", "outage %s", c.Outage)
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, "; ") + ")"
}

// group writes a number with so many decimals and commas between thousands.
func group(f float64, digits int) string {
	s := strconv.FormatFloat(f, 'f', digits, 64)
	whole, fraction, _ := strings.Cut(s, ".")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if fraction != "" {
		fraction = "." + fraction
	}
	return sign + whole + fraction
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// longRun is the planned time above which there is a progress bar.
const longRun = 2 * time.Second

// progressView shows progress on stderr, if that is a terminal and the run is
// long. The zero value shows nothing.
type progressView struct {
	bar *progressbar.ProgressBar
}

func (a *app) progress(cfg bench.Config) *progressView {
	total := time.Duration(cfg.Rounds) * (cfg.Warmup + cfg.Duration)
	if !a.errTerminal || total <= longRun {
		return &progressView{}
	}
	return &progressView{bar: progressbar.NewOptions64(total.Milliseconds(),
		progressbar.OptionSetWriter(a.err),
		progressbar.OptionSetWidth(30),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionThrottle(100*time.Millisecond),
	)}
}

func (v *progressView) update(p bench.Progress) {
	if v.bar == nil {
		return
	}
	v.bar.Describe(fmt.Sprintf("round %d of %d, %s", p.Round, p.Rounds, p.Phase))
	_ = v.bar.Set64(min(p.Done, p.Total).Milliseconds()) // progress is decoration
}

func (v *progressView) finish() {
	if v.bar != nil {
		_ = v.bar.Finish()
	}
}
