package main

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/openarkstudio/arknet-go/bench"
	"github.com/openarkstudio/arknet-go/bench/record"
)

// column is one figure of the main table.
type column struct {
	head   string
	format string
	value  func(m *record.Metrics) float64
}

var (
	columnRate     = column{"rt/s", "%.0f", func(m *record.Metrics) float64 { return m.RoundTripsPerSecond }}
	columnDials    = column{"handshakes/s", "%.0f", func(m *record.Metrics) float64 { return m.RoundTripsPerSecond }}
	columnGoodput  = column{"Mbit/s", "%.1f", func(m *record.Metrics) float64 { return m.GoodputMbit }}
	columnP50      = column{"p50 ms", "%.2f", func(m *record.Metrics) float64 { return m.RTTP50 / 1000 }}
	columnP99      = column{"p99 ms", "%.2f", func(m *record.Metrics) float64 { return m.RTTP99 / 1000 }}
	columnCPU      = column{"CPU us/rt", "%.1f", func(m *record.Metrics) float64 { return m.CPUPerRoundTrip }}
	columnMessage  = column{"CPU us/message", "%.1f", func(m *record.Metrics) float64 { return m.CPUPerRoundTrip }}
	columnOverhead = column{"overhead %", "%.1f", func(m *record.Metrics) float64 { return m.WireOverheadPercent }}
)

func columns(w bench.Workload) []column {
	switch w {
	case bench.Stream:
		return []column{columnGoodput, columnMessage, columnOverhead}
	case bench.Connect:
		return []column{columnDials, columnP50, columnP99, columnCPU}
	default:
		return []column{columnRate, columnP50, columnP99, columnCPU, columnOverhead}
	}
}

// ratioHeads are the columns of the ratio table: the workload's own figure, and
// what is worth a ratio beside it.
func ratioHeads(w bench.Workload) (heads, metrics []string) {
	switch w {
	case bench.Stream:
		return []string{"goodput", "CPU"}, []string{"goodput_mbit_per_second", "cpu_us_per_round_trip"}
	case bench.Connect:
		return []string{"handshakes/s", "p99", "CPU"}, []string{"roundtrips_per_second", "rtt_p99_us", "cpu_us_per_round_trip"}
	default:
		return []string{"rt/s", "p99", "CPU"}, []string{"roundtrips_per_second", "rtt_p99_us", "cpu_us_per_round_trip"}
	}
}

// print writes every condition as text.
func (c *comparison) print(w io.Writer, all []peer, rounds int) error {
	var b bytes.Buffer
	for i := range c.Conditions {
		if i > 0 {
			b.WriteByte('\n')
		}
		c.Conditions[i].print(&b, rounds)
	}
	c.caveats(&b, all)
	_, err := w.Write(b.Bytes())
	return err
}

func (c *condition) print(b *bytes.Buffer, rounds int) {
	fmt.Fprintf(b, "%s, %d round%s of %v s\n\n", c.Load, rounds, plural(rounds), c.Load.Seconds)
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	cols := columns(c.Load.Workload)
	line := []string{"driver"}
	for _, col := range cols {
		line = append(line, col.head)
	}
	writeRow(w, append(line, "errors"))
	for i := range c.Rows {
		writeRow(w, c.Rows[i].cells(cols, rounds))
	}
	flush(w)
	for i := range c.Rows {
		for _, f := range c.Rows[i].Failures {
			fmt.Fprintf(b, "  %s failed: %s\n", c.Rows[i].Driver, f)
		}
	}
	if n := c.repeats(); n > 0 {
		fmt.Fprintf(b, "  the machine stood still for %v and more: %d round%s run again\n", pauseWorth, n, plural(n))
	}
	if text := c.pauses(); text != "" {
		fmt.Fprintf(b, "  and again during %s: repeat the run before judging those\n", text)
	}
	c.printRatios(b)
}

func (c *condition) repeats() int {
	n := 0
	for i := range c.Rows {
		n += c.Rows[i].Repeats
	}
	return n
}

// pauses names the rounds that count although the machine stood still.
func (c *condition) pauses() string {
	var list []string
	for i := range c.Rows {
		for round, ms := range c.Rows[i].PausesMS {
			if milliseconds(ms) >= pauseWorth {
				list = append(list, fmt.Sprintf("%s round %d (%.0f ms)", c.Rows[i].Driver, round+1, ms))
			}
		}
	}
	return strings.Join(list, ", ")
}

// cells are median (min - max) of each column.
func (r *row) cells(cols []column, rounds int) []string {
	line := []string{r.Driver}
	for _, col := range cols {
		cell := "-"
		if res := r.Result; res != nil && res.Median != nil {
			cell = fmt.Sprintf(col.format, col.value(res.Median))
			if rounds > 1 {
				cell += fmt.Sprintf(" ("+col.format+" - "+col.format+")", col.value(res.Min), col.value(res.Max))
			}
		}
		line = append(line, cell)
	}
	switch {
	case r.ok():
		return append(line, "none")
	case r.Result == nil:
		return append(line, "failed")
	default:
		return append(line, fmt.Sprintf("failed (%d of %d rounds)", len(r.Failures), rounds))
	}
}

// printRatios writes one table: a row for each other peer, a column for each of
// ours. The ranges of the ratios are in the JSON.
func (c *condition) printRatios(b *bytes.Buffer) {
	if len(c.Ratios) == 0 {
		return
	}
	heads, metrics := ratioHeads(c.Load.Workload)
	fmt.Fprintf(b, "\nours divided by the other, %s: medians of the ratios in each round\n\n", strings.Join(heads, " / "))
	var ours, others []string
	cells := make(map[[2]string]string)
	for _, r := range c.Ratios {
		if !slices.Contains(ours, r.Ours) {
			ours = append(ours, r.Ours)
		}
		if !slices.Contains(others, r.Peer) {
			others = append(others, r.Peer)
		}
		cells[[2]string{r.Ours, r.Peer}] = r.text(metrics)
	}
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	writeRow(w, append([]string{"other"}, ours...))
	for _, other := range others {
		line := []string{other}
		for _, name := range ours {
			line = append(line, cells[[2]string{name, other}])
		}
		writeRow(w, line)
	}
	flush(w)
}

// text joins the medians of the metrics.
func (r *ratio) text(metrics []string) string {
	parts := make([]string, len(metrics))
	for i, name := range metrics {
		parts[i] = "-"
		if k := slices.IndexFunc(r.Metrics, func(s span) bool { return s.Metric == name }); k >= 0 {
			parts[i] = fmt.Sprintf("%.2f", r.Metrics[k].Median)
		}
	}
	return strings.Join(parts, " / ")
}

// caveats names what the peers of the tables above cannot do.
func (c *comparison) caveats(b *bytes.Buffer, all []peer) {
	seen := make(map[string][]string)
	var order []string
	for _, p := range all {
		appears := slices.ContainsFunc(c.Conditions, func(c condition) bool {
			return slices.ContainsFunc(c.Rows, func(r row) bool { return r.Driver == p.name })
		})
		if !appears {
			continue
		}
		for _, caveat := range p.caveats {
			if seen[caveat] == nil {
				order = append(order, caveat)
			}
			seen[caveat] = append(seen[caveat], p.name)
		}
	}
	if len(order) > 0 {
		b.WriteString("\nRead with care:\n")
	}
	for _, caveat := range order {
		fmt.Fprintf(b, "- %s: %s\n", strings.Join(seen[caveat], ", "), caveat)
	}
}

func writeRow(w io.Writer, cells []string) {
	// The trailing tab gives the last cell the same alignment.
	fmt.Fprintln(w, strings.Join(cells, "\t")+"\t")
}

// flush writes to a bytes.Buffer, which does not fail.
func flush(w *tabwriter.Writer) { _ = w.Flush() }

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}
