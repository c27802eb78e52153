package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/openarkstudio/arknet-go/bench/record"
)

// Demo is what arknet demo measured: the same load over the same network, under
// some policies of error correction.
type Demo struct {
	Command  []string  // that made it
	Variants []Variant // the first one is what the others are compared with
	Main     int       // the variant that the first lines speak of
}

// Variant is one policy.
type Variant struct {
	Name    string // short: the head of a column
	Title   string // the same with the word of which it is a kind
	About   string // what it does, as a sentence
	Ink     Ink
	Result  *record.Result
	Wire    Wire
	Line    *Timeline // nil: there is none
	Command []string  // that measures this variant alone
}

// Wire counts bytes of UDP payload by what they carry, over the measured time of
// all rounds that passed. What remains of the relay's count is data that was sent
// for the first time, with its headers and the acknowledgements that ride along.
type Wire struct {
	Repairs  uint64 `json:"repair_bytes"`
	Repeated uint64 `json:"repeated_bytes"` // datagrams with data that was sent before
	Acks     uint64 `json:"ack_bytes"`      // datagrams with an acknowledgement and nothing else
}

// OK says whether every round of every variant passed its checks.
func (d *Demo) OK() bool {
	return !slices.ContainsFunc(d.Variants, func(v Variant) bool { return !v.Result.OK })
}

// demoRows are the rows of the table of values.
var demoRows = []struct {
	name   string
	digits int
	value  func(*record.Metrics) float64
}{
	{"answers per second", 0, func(m *record.Metrics) float64 { return m.RoundTripsPerSecond }},
	{"half of them within, ms", 1, func(m *record.Metrics) float64 { return m.RTTP50 / 1000 }},
	{"95 % within, ms", 1, func(m *record.Metrics) float64 { return m.RTTP95 / 1000 }},
	{"99 % within, ms", 1, func(m *record.Metrics) float64 { return m.RTTP99 / 1000 }},
	{"bytes beyond the data, %", 1, func(m *record.Metrics) float64 { return m.WireOverheadPercent }},
	{"restored by repairs, per 1,000", 0, func(m *record.Metrics) float64 { return m.FECRestored }},
	{"sent again, per 1,000", 0, func(m *record.Metrics) float64 { return m.ARQRetransmitted }},
	{"lost by the network, %", 2, func(m *record.Metrics) float64 { return m.RealizedLossPercent }},
	{"processor, % of one core", 0, func(m *record.Metrics) float64 { return m.CPUPercent }},
}

// Table returns the values: medians over the rounds that passed, one column per
// variant.
func (d *Demo) Table() *Table {
	t := &Table{Columns: []string{"median of the rounds"}}
	for _, v := range d.Variants {
		t.Columns = append(t.Columns, v.Name)
	}
	for i, r := range demoRows {
		row := []string{r.name}
		for _, v := range d.Variants {
			cell := "-"
			if m := v.Result.Median; m != nil {
				cell = number(r.value(m), r.digits)
			}
			row = append(row, cell)
		}
		t.Rows = append(t.Rows, row)
		if i == 0 {
			t.Rows = append(t.Rows, d.ratios())
		}
	}
	passed := []string{"rounds that passed"}
	for _, v := range d.Variants {
		good := 0
		for i := range v.Result.Rounds {
			if v.Result.Rounds[i].OK {
				good++
			}
		}
		passed = append(passed, fmt.Sprintf("%d/%d", good, len(v.Result.Rounds)))
	}
	t.Rows = append(t.Rows, passed)
	return t
}

// ratios is the row that compares with the first variant.
func (d *Demo) ratios() []string {
	row := []string{"times as many as " + d.Variants[0].Name}
	base := d.Variants[0].Result.Median
	for _, v := range d.Variants {
		cell := "-"
		if m := v.Result.Median; m != nil && base != nil && base.RoundTripsPerSecond > 0 {
			cell = number(m.RoundTripsPerSecond/base.RoundTripsPerSecond, 2)
		}
		row = append(row, cell)
	}
	return row
}

// Page returns the page.
func (d *Demo) Page() *Page {
	p := &Page{
		Title:   "arknet demo: reliable UDP over a bad network",
		Lead:    d.lead(),
		Warning: d.warning(),
		Sections: []Section{
			d.introduction(),
			{Title: "All values", Table: d.Table()},
			d.throughput(),
			d.tail(),
			d.wire(),
		},
		Footer: []string{"Made by arknet demo. Figures belong to one machine, one load and one network: measure yours."},
	}
	if s, ok := d.timeline(); ok {
		p.Sections = append(p.Sections, s)
	}
	p.Sections = append(p.Sections, d.network(), d.method(), d.reproduce(), d.environment())
	return p
}

// lead is the result in words.
func (d *Demo) lead() []string {
	base, v := &d.Variants[0], &d.Variants[d.Main]
	b, m := base.Result.Median, v.Result.Median
	if b == nil || m == nil || b.RoundTripsPerSecond == 0 {
		return []string{"There is nothing to compare: not enough rounds passed their checks."}
	}
	tail := "99 of 100 answers came within %s ms instead of %s ms. "
	if m.RTTP99 >= b.RTTP99 {
		tail = "But 99 of 100 answers took up to %s ms, no less than without: %s ms. "
	}
	lead := []string{fmt.Sprintf(
		"With %s error correction the same programs got %s answers per second, %s with error correction %s (%s). "+
			tail+
			"It put %s %% more bytes on the wire than the messages have; %s: %s %%.",
		v.Name, number(m.RoundTripsPerSecond, 0), times(m.RoundTripsPerSecond/b.RoundTripsPerSecond), base.Name, number(b.RoundTripsPerSecond, 0),
		number(m.RTTP99/1000, 0), number(b.RTTP99/1000, 0),
		number(m.WireOverheadPercent, 0), base.Name, number(b.WireOverheadPercent, 0))}
	if noise := d.noise(); noise != "" {
		lead = append(lead, noise)
	}
	return lead
}

// noise warns of a machine that did other things meanwhile, or is empty.
func (d *Demo) noise() string {
	spread := d.spread()
	if spread <= 0.2 {
		return ""
	}
	return fmt.Sprintf("The rounds of one policy differ by up to %s %%: this machine did other things meanwhile. Run it again when it is idle.", number(spread*100, 0))
}

func (d *Demo) warning() string {
	var failed []string
	for _, v := range d.Variants {
		for i := range v.Result.Rounds {
			if r := &v.Result.Rounds[i]; !r.OK {
				first, _, _ := strings.Cut(r.Failure, "\n")
				failed = append(failed, fmt.Sprintf("%s, round %d: %s (%v)", v.Name, r.Round, first, r.Errors))
			}
		}
	}
	if failed == nil {
		return ""
	}
	return "Not every round passed its checks; the figures leave out those that did not. " + strings.Join(failed, "; ") + "."
}

func (d *Demo) introduction() Section {
	c := &d.Variants[0].Result.Config
	s := Section{
		Title: "What you see",
		Text: []string{
			fmt.Sprintf("%d clients send messages of %s bytes to a server on the same machine and get every one back; each keeps %d on the way. "+
				"Between them stands a relay that treats datagrams as a bad network would: it loses, delays, repeats and reorders them.",
				c.Clients, number(float64(c.Payload), 0), c.Window),
			"A reliable transport has to hide that, and messages are to arrive in order, so one that is missing holds up those behind it. " +
				"It can notice the gap and send the data again, which takes one more round trip at least. " +
				"Or it sends a few repairs ahead of any loss, sums of recent data, from which the receiver computes at once what is missing: " +
				"forward error correction, FEC. It costs bytes and saves time. How many repairs to send is the policy:",
		},
	}
	for _, v := range d.Variants {
		s.Facts = append(s.Facts, Fact{v.Name, v.About})
	}
	return s
}

func (d *Demo) throughput() Section {
	chart := &BarChart{
		Figure: Figure{
			ID: "throughput", Title: "Answers per second",
			Note: fmt.Sprintf("Bars are medians of %d rounds, whiskers the least and the most.", d.Variants[0].Result.Config.RoundCount),
		},
		Axis: "answers per second",
	}
	t := &Table{Caption: "answers per second", Columns: []string{"", "median", "least", "most"}}
	var said []string
	for _, v := range d.Variants {
		r := v.Result
		if r.Median == nil {
			chart.Bars = append(chart.Bars, Bar{Name: v.Title, Ink: v.Ink, Missing: true})
			t.Rows = append(t.Rows, []string{v.Name, "-", "-", "-"})
			continue
		}
		med, low, high := r.Median.RoundTripsPerSecond, r.Min.RoundTripsPerSecond, r.Max.RoundTripsPerSecond
		chart.Bars = append(chart.Bars, Bar{Name: v.Title, Ink: v.Ink, Value: med, Low: low, High: high})
		t.Rows = append(t.Rows, []string{v.Name, number(med, 0), number(low, 0), number(high, 0)})
		said = append(said, v.Name+" "+number(med, 0))
	}
	chart.Description = "Bars from 0. Medians: " + list(said) + "."
	s := Section{
		Title: chart.Title,
		Text:  []string{"How many messages came back per second, all clients together. Higher is better."},
		Chart: chart,
		Table: t,
	}
	if limit := d.pathLimit(); limit > 0 {
		chart.Limit, chart.LimitName = limit, "no loss: "+number(limit, 0)
		chart.Description += " A line marks what the path would allow without any loss: " + number(limit, 0) + "."
		c := &d.Variants[0].Result.Config
		s.Text = append(s.Text, fmt.Sprintf("The broken line is what the path allows at most: %d x %d messages on the way, and one trip there and back takes %s ms even if nothing is lost.",
			c.Clients, c.Window, number(2*c.DelayMS, 0)))
	}
	return s
}

// spread is the largest difference between rounds of one policy, as a share of
// their median.
func (d *Demo) spread() (share float64) {
	for _, v := range d.Variants {
		if r := v.Result; r.Median != nil && r.Median.RoundTripsPerSecond > 0 {
			share = max(share, (r.Max.RoundTripsPerSecond-r.Min.RoundTripsPerSecond)/r.Median.RoundTripsPerSecond)
		}
	}
	return share
}

// pathLimit is what a closed loop gets from a path that only delays.
func (d *Demo) pathLimit() float64 {
	c := &d.Variants[0].Result.Config
	if c.DelayMS <= 0 || c.RateMbit > 0 {
		return 0
	}
	return float64(c.Clients*c.Window) * 1000 / (2 * c.DelayMS)
}

// tailPercents are the percents with a row in the table of the distribution.
var tailPercents = []float64{50, 75, 90, 95, 99, 99.9}

func (d *Demo) tail() Section {
	chart := &TailChart{
		Figure: Figure{
			ID: "latency", Title: "Time until the answer",
			Note: "Each point is the median over the rounds. The axis is stretched to the right, where the slow answers are: 90, 99 and 99.9 are as far apart as 0 and 90.",
		},
		XAxis: "% of the answers, fastest first",
		YAxis: "came within so many ms",
		Marks: []float64{50, 95, 99},
	}
	t := &Table{Caption: "milliseconds", Columns: []string{"%"}}
	var said []string
	byVariant := make([][]record.Percentile, len(d.Variants))
	for i, v := range d.Variants {
		byVariant[i] = MedianDistribution(v.Result)
		chart.Tails = append(chart.Tails, Tail{v.Title, v.Ink, byVariant[i]})
		t.Columns = append(t.Columns, v.Name)
		if m := v.Result.Median; m != nil {
			said = append(said, fmt.Sprintf("%s %s, %s and %s ms", v.Name, number(m.RTTP50/1000, 1), number(m.RTTP95/1000, 1), number(m.RTTP99/1000, 1)))
		}
	}
	for _, percent := range tailPercents {
		row := []string{number(percent, digitsOf(percent))}
		for i := range d.Variants {
			cell := "-"
			if at := slices.IndexFunc(byVariant[i], func(p record.Percentile) bool { return p.Percent == percent }); at >= 0 {
				cell = number(byVariant[i][at].RTT/1000, 1)
			}
			row = append(row, cell)
		}
		t.Rows = append(t.Rows, row)
	}
	chart.Description = "One line per policy. Half, 95 and 99 of 100 answers came within: " + strings.Join(said, "; ") + "."
	return Section{
		Title: chart.Title,
		Text: []string{
			"From sending a message to its answer. Lower and flatter is better. Read it as: so many percent of the answers came within so many milliseconds. " +
				"What is lost shows in the steep part to the right: there an answer waited for data that had to be sent again.",
		},
		Chart: chart,
		Table: t,
	}
}

// MedianDistribution is the median over the rounds that passed, percent by percent.
// It has those percents that all these rounds have.
func MedianDistribution(r *record.Result) []record.Percentile {
	times := map[float64][]float64{}
	good := 0
	for i := range r.Rounds {
		if round := &r.Rounds[i]; round.OK {
			good++
			for _, p := range round.RTTDistribution {
				times[p.Percent] = append(times[p.Percent], p.RTT)
			}
		}
	}
	var out []record.Percentile
	for percent, values := range times {
		if len(values) == good {
			out = append(out, record.Percentile{Percent: percent, RTT: median(values)})
		}
	}
	slices.SortFunc(out, func(a, b record.Percentile) int {
		if a.Percent < b.Percent {
			return -1
		}
		return 1
	})
	return out
}

// median sorts its values.
func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// digitsOf is how many decimals a percent needs.
func digitsOf(percent float64) int {
	if percent == math.Trunc(percent) {
		return 0
	}
	return 1
}

// wireShares are the parts of what was sent, in percent of the application data:
// the data, headers with acknowledgements, repairs, and what was sent again.
func (v *Variant) wireShares() []float64 {
	var app, total float64
	for i := range v.Result.Rounds {
		if r := &v.Result.Rounds[i]; r.OK {
			app += float64(r.RoundTrips) * 2 * float64(v.Result.Config.Payload)
			total += float64(r.Relay.FromClientsBytes + r.Relay.FromServerBytes)
		}
	}
	if app == 0 {
		return nil
	}
	repairs, repeated := float64(v.Wire.Repairs), float64(v.Wire.Repeated)
	headers := max(0, total-app-repairs-repeated)
	shares := []float64{100, headers / app * 100, repairs / app * 100, repeated / app * 100}
	return shares
}

func (d *Demo) wire() Section {
	chart := &StackChart{
		Figure: Figure{
			ID: "wire", Title: "Bytes on the wire",
			Note: "All rounds that passed, both directions, UDP payload as the relay received it. Headers are what is neither data nor repair nor repetition: headers of first transmissions and all acknowledgements.",
		},
		Axis: "bytes per 100 bytes of messages",
		Parts: []Part{
			{"messages", InkData}, {"headers, acks", InkHeaders}, {"repairs", InkRepairs}, {"sent again", InkRepeated},
		},
	}
	t := &Table{Caption: "bytes per 100 bytes of messages", Columns: []string{""}}
	for _, v := range d.Variants {
		t.Columns = append(t.Columns, v.Name)
	}
	names := []string{"messages", "headers, acks", "repairs", "sent again", "all"}
	for _, name := range names {
		t.Rows = append(t.Rows, []string{name})
	}
	var said []string
	for _, v := range d.Variants {
		shares := v.wireShares()
		bar := Stack{Name: v.Title, Values: shares}
		chart.Bars = append(chart.Bars, bar)
		if shares == nil {
			for i := range t.Rows {
				t.Rows[i] = append(t.Rows[i], "-")
			}
			continue
		}
		for i, share := range append(slices.Clone(shares), bar.total()) {
			t.Rows[i] = append(t.Rows[i], number(share, 1))
		}
		said = append(said, fmt.Sprintf("%s %s, of it %s repairs and %s sent again", v.Name, number(bar.total(), 0), number(shares[2], 0), number(shares[3], 0)))
	}
	chart.Description = "Stacked bars from 0; 100 is the messages themselves. " + strings.Join(said, "; ") + "."
	return Section{
		Title: chart.Title,
		Text: []string{
			"What the endpoints sent for each 100 bytes of messages. Shorter is cheaper. Repairs buy time with bytes; what repairs restored did not have to be sent again.",
		},
		Chart: chart,
		Table: t,
	}
}

// timeline reports false if there are no time lines.
func (d *Demo) timeline() (Section, bool) {
	chart := &TimelineChart{Figure: Figure{
		ID: "timeline", Title: "What became of lost data",
		Note: "A recording of its own, right after the rounds of each policy: one client alone, the same load and network, all data from the client to the server. " +
			"A cross is a datagram with new data that the network dropped, at the time of its sending; the stem ends at the time that passed until the server had the data after all. " +
			"Without a loss that is half a round trip.",
	}}
	t := &Table{Caption: "from the client to the server", Columns: []string{""}}
	rows := []struct {
		name string
		cell func(*Timeline) string
	}{
		{"datagrams of new data", func(l *Timeline) string { return number(float64(l.Sent), 0) }},
		{"lost", func(l *Timeline) string { return number(float64(len(l.Lost)), 0) }},
		{"restored from repairs", func(l *Timeline) string { return number(float64(l.count(FateRestored)), 0) }},
		{"replaced by sending again", func(l *Timeline) string { return number(float64(l.count(FateRepeated)), 0) }},
		{"still open at the end", func(l *Timeline) string { return number(float64(l.count(FateOpen)), 0) }},
		{"median wait, ms", func(l *Timeline) string { w := l.waits(); return number(median(w), 1) }},
		{"longest wait, ms", func(l *Timeline) string {
			if w := l.waits(); len(w) > 0 {
				return number(slices.Max(w), 1)
			}
			return "-"
		}},
		{"late, restored before it came", func(l *Timeline) string { return number(float64(l.LateRestored), 0) }},
		{"datagrams sent again, needed or not", func(l *Timeline) string { return number(float64(l.Repeats), 0) }},
		{"repairs sent", func(l *Timeline) string { return number(float64(len(l.Repairs)), 0) }},
	}
	for _, r := range rows {
		t.Rows = append(t.Rows, []string{r.name})
	}
	var said []string
	seconds := 0.0
	for _, v := range d.Variants {
		if v.Line == nil {
			continue
		}
		seconds = max(seconds, v.Line.Seconds)
		one := *v.Line
		one.Name = v.Title
		chart.Lines = append(chart.Lines, one)
		t.Columns = append(t.Columns, v.Name)
		for i, r := range rows {
			t.Rows[i] = append(t.Rows[i], r.cell(v.Line))
		}
		said = append(said, fmt.Sprintf("%s: %d lost, %d of them restored, %d replaced by sending again, median wait %s ms",
			v.Name, len(v.Line.Lost), v.Line.count(FateRestored), v.Line.count(FateRepeated), number(median(v.Line.waits()), 1)))
		if v.Line.Truncated {
			chart.Note += " The recorder was full for " + v.Name + ": its beginning is missing."
		}
	}
	if len(chart.Lines) == 0 {
		return Section{}, false
	}
	chart.Description = fmt.Sprintf("%s s of one session. %s.", number(seconds, 2), strings.Join(said, "; "))
	return Section{
		Title: chart.Title,
		Text: []string{
			"Every cross is data that the network lost. The higher its stem, the longer the server, and all messages behind it, had to wait. " +
				"A round head: computed from repairs that had come anyway. A triangle: noticed, and sent again.",
		},
		Chart: chart,
		Table: t,
	}, true
}

// waits are the times until lost pieces were replaced.
func (t *Timeline) waits() (out []float64) {
	for _, l := range t.Lost {
		if l.Fate != FateOpen {
			out = append(out, l.Wait)
		}
	}
	return out
}

// network says what was asked of the network and what it did.
func (d *Demo) network() Section {
	c := &d.Variants[0].Result.Config
	s := Section{
		Title: "What the network did",
		Text: []string{
			fmt.Sprintf("Profile %q, for each client and each direction: %s. "+
				"Which datagram is lost follows from the seed and the datagram's number on its path, so that every policy meets the same weather.",
				c.Profile, Impairment(c)),
		},
	}
	t := &Table{Caption: "measured time of all rounds, both directions", Columns: []string{"datagrams"}}
	rows := []struct {
		name string
		n    func(*record.Relay) uint64
	}{
		{"sent by the endpoints", func(r *record.Relay) uint64 { return r.FromClients + r.FromServer }},
		{"dropped by the network", func(r *record.Relay) uint64 { return r.LostRandom + r.LostBurst + r.LostOther + r.LostQueue }},
		{"delivered twice", func(r *record.Relay) uint64 { return r.Duplicated }},
		{"delayed further", func(r *record.Relay) uint64 { return r.Late }},
	}
	for _, r := range rows {
		t.Rows = append(t.Rows, []string{r.name})
	}
	t.Rows = append(t.Rows, []string{"dropped, %"})
	for _, v := range d.Variants {
		t.Columns = append(t.Columns, v.Name)
		counts := make([]uint64, len(rows))
		for i := range v.Result.Rounds {
			for j, r := range rows {
				counts[j] += r.n(&v.Result.Rounds[i].Relay)
			}
		}
		for j, n := range counts {
			t.Rows[j] = append(t.Rows[j], number(float64(n), 0))
		}
		share := math.NaN()
		if counts[0] > 0 {
			share = float64(counts[1]) * 100 / float64(counts[0])
		}
		t.Rows[len(rows)] = append(t.Rows[len(rows)], number(share, 2))
	}
	s.Table = t
	return s
}

// Impairment words what a configuration does to datagrams.
func Impairment(c *record.Config) string {
	var parts []string
	add := func(on bool, format string, args ...any) {
		if on {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(c.DelayMS > 0, "%v ms of delay", c.DelayMS)
	add(c.JitterMS > 0, "up to %v ms of jitter", c.JitterMS)
	add(c.LossPercent > 0, "%v %% of datagrams lost at random", c.LossPercent)
	add(c.BurstLoss != "", "bursts of %s lost", c.BurstLoss)
	add(c.DuplicatePercent > 0, "%v %% delivered twice", c.DuplicatePercent)
	add(c.ReorderPercent > 0, "%v %% delayed by a further %v ms, so that others overtake them", c.ReorderPercent, c.ReorderDelayMS)
	add(c.RateMbit > 0, "at most %v Mbit/s with %d bytes of queue", c.RateMbit, c.QueueBytes)
	add(c.Outage != "", "outages %s", c.Outage)
	if parts == nil {
		return "nothing"
	}
	return list(parts)
}

func (d *Demo) method() Section {
	c := &d.Variants[0].Result.Config
	return Section{
		Title: "How it was measured",
		Text: []string{
			fmt.Sprintf("Clients, relay and server are one process and talk over real UDP sockets on loopback. "+
				"Each policy had %d rounds of %s s after %s s of warm-up; the policies took turns, so that a change of the machine meets all of them. "+
				"A round's seed is %d or one of the numbers after it.", c.RoundCount, number(c.Seconds, 2), number(c.Warmup, 2), c.Seed),
			"Every echo was compared byte by byte with what was sent and checked for its order; every send had to complete exactly once; everything had to be back at the end; and a round in which the relay itself dropped anything does not count. " +
				"An answer is counted when it was verified. Processor time is that of the whole process, relay and checks included.",
		},
		Remark: []string{
			"What this does not show: more than one machine, encryption, a link that is full, or your network. On a full link repairs give way by themselves; on a clean path error correction gains nothing.",
		},
	}
}

func (d *Demo) reproduce() Section {
	s := Section{
		Title: "Do it again",
		Text:  []string{"The same again, then each policy alone, with more figures. Another seed is other weather. In a checkout of the sources, go run ./cmd/arknet stands for arknet."},
		Code:  []string{shellLine(d.Command)},
	}
	for _, v := range d.Variants {
		s.Code = append(s.Code, shellLine(v.Command))
	}
	return s
}

func (d *Demo) environment() Section {
	first := d.Variants[0].Result
	return Section{Title: "Where", Facts: Environment(&first.Environment)}
}

// Environment words where and with what a result was made.
func Environment(e *record.Environment) []Fact {
	facts := []Fact{
		{"Machine", fmt.Sprintf("%s, %d logical cores, %s of memory", orUnknown(e.CPUModel), e.Cores, bytesText(e.MemoryBytes))},
		{"System", strings.TrimSpace(fmt.Sprintf("%s/%s, kernel %s", e.OS, e.Arch, orUnknown(e.Kernel)))},
		{"Go", fmt.Sprintf("%s, GOMAXPROCS %d, GOGC %d", e.Go, e.GOMAXPROCS, e.GOGC)},
		{"Revision", orUnknown(e.Revision)},
		{"Time", e.Start.UTC().Format("2006-01-02 15:04:05 UTC")},
	}
	if e.Modified {
		facts[3].Text += ", with changes"
	}
	if e.Race {
		facts[2].Text += ", with the race detector, which costs time"
	}
	return facts
}

func orUnknown(s string) string {
	if strings.TrimSpace(s) == "" {
		return "unknown"
	}
	return s
}
