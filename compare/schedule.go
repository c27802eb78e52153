package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/openarkstudio/arknet-go/bench/record"
)

// schema names the layout of comparison.
const schema = "arknet.compare/1"

// comparison is the result of a plan.
type comparison struct {
	Schema     string      `json:"schema"`
	Command    []string    `json:"command"`
	Conditions []condition `json:"conditions"`
	OK         bool        `json:"ok"` // every round of every peer passed its checks
}

// condition is one load with all its peers.
type condition struct {
	Load   load    `json:"load"`
	Rows   []row   `json:"rows"`
	Ratios []ratio `json:"ratios"`
}

// row is one peer under one load.
type row struct {
	Driver string `json:"driver"`
	// Result holds the rounds, failed ones included; nil when no child of this
	// peer gave a record.
	Result *record.Result `json:"result"`
	// Failures says what went wrong, one entry per failed round.
	Failures []string `json:"failures"`
	// Repeats counts rounds that were run again because the machine stood still.
	Repeats int `json:"repeats"`
	// PausesMS are the longest pauses of the machine, per round that counts.
	PausesMS []float64 `json:"pauses_ms"`
}

func (r *row) ok() bool { return r.Result != nil && len(r.Failures) == 0 && r.Result.OK }

// ratio is ours divided by a peer: medians of per-round ratios, with the range.
type ratio struct {
	Ours    string `json:"ours"`
	Peer    string `json:"peer"`
	Metrics []span `json:"metrics"`
}

// span is a figure over the rounds.
type span struct {
	Metric string  `json:"metric"`
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// runner runs one round of one driver.
type runner func(context.Context, order) (outcome, error)

// run carries out the plan. Within each round the peers follow each other, and
// each round begins with another one (A B C, B C A, ...), so that a machine
// that warms up or slows down favours nobody. It returns early, with what it
// has, only when ctx ends.
func (p *plan) run(ctx context.Context, runOne runner, progress io.Writer) (*comparison, error) {
	result := &comparison{Schema: schema, Command: p.argv, OK: true}
	total := 0
	for _, l := range p.loads {
		total += len(p.entrants(l)) * p.rounds
	}
	step, began := 0, time.Now()
	for _, l := range p.loads {
		entrants := p.entrants(l)
		rows := make([]row, len(entrants))
		for i, e := range entrants {
			rows[i] = row{Driver: e.name, Failures: []string{}, PausesMS: []float64{}}
		}
		for round := range p.rounds {
			for k := range entrants {
				i := (k + round) % len(entrants)
				seed := p.seed + uint64(round)
				got, err := rows[i].try(ctx, runOne, order{Driver: entrants[i].name, Seed: seed, Load: l})
				if ctx.Err() != nil {
					return nil, ctx.Err()
				}
				rows[i].add(p, round, seed, got, err)
				step++
				fmt.Fprintf(progress, "[%d/%d, %v] round %d: %s, profile %s: %s\n", step, total,
					time.Since(began).Round(time.Second), round+1, entrants[i].name, l.Profile, headline(got.result, err))
			}
		}
		c := condition{Load: l, Rows: rows}
		for i := range c.Rows {
			if r := c.Rows[i].Result; r != nil {
				r.Aggregate()
			}
			result.OK = result.OK && c.Rows[i].ok()
		}
		c.Ratios = c.ratios(entrants)
		result.Conditions = append(result.Conditions, c)
	}
	return result, nil
}

// maxRepeats bounds how often a round is run again.
const maxRepeats = 2

// try runs a round, and again when the machine stood still meanwhile: neither a
// figure nor a failure of such a round says anything about a transport.
func (r *row) try(ctx context.Context, runOne runner, o order) (outcome, error) {
	for repeats := 0; ; repeats++ {
		got, err := runOne(ctx, o)
		if err != nil || got.pause < pauseWorth || repeats == maxRepeats || ctx.Err() != nil {
			return got, err
		}
		r.Repeats++
	}
}

// add appends a child's round to the row.
func (r *row) add(p *plan, round int, seed uint64, from outcome, err error) {
	one := record.Round{Round: round + 1, Seed: seed}
	got := from.result
	r.PausesMS = append(r.PausesMS, float64(from.pause.Microseconds())/1000)
	switch {
	case err != nil:
		one.Failure = err.Error()
	case len(got.Rounds) != 1:
		one.Failure = fmt.Sprintf("the record has %d rounds", len(got.Rounds))
	default:
		one = got.Rounds[0]
		one.Round = round + 1
		if r.Result == nil {
			r.Result = got
			r.Result.Command = p.argv
			r.Result.Config.RoundCount = p.rounds
			r.Result.Config.Seed = p.seed
			r.Result.Rounds = r.missed(p.seed, round)
		}
		r.Result.Environment.End = got.Environment.End
	}
	if !one.OK {
		reason := one.Failure
		if reason == "" {
			reason = "errors: " + one.Errors.String()
		}
		r.Failures = append(r.Failures, fmt.Sprintf("round %d: %s", round+1, reason))
	}
	if r.Result != nil {
		r.Result.Rounds = append(r.Result.Rounds, one)
	}
}

// missed makes the rounds that gave no record before the first that did.
func (r *row) missed(seed uint64, count int) []record.Round {
	rounds := make([]record.Round, count)
	for i := range rounds {
		rounds[i] = record.Round{Round: i + 1, Seed: seed + uint64(i), Failure: "no record"}
	}
	return rounds
}

// headline is the progress text of a round.
func headline(got *record.Result, err error) string {
	switch {
	case err != nil:
		return "failed: " + err.Error()
	case len(got.Rounds) != 1 || !got.Rounds[0].OK:
		return "failed"
	default:
		m := got.Rounds[0].Metrics
		return fmt.Sprintf("%.0f/s, %.1f Mbit/s", m.RoundTripsPerSecond, m.GoodputMbit)
	}
}

// compared are the figures of which ratios are taken, 0 where a workload has
// none.
var compared = []struct {
	name  string
	value func(m *record.Metrics) float64
}{
	{"roundtrips_per_second", func(m *record.Metrics) float64 { return m.RoundTripsPerSecond }},
	{"goodput_mbit_per_second", func(m *record.Metrics) float64 { return m.GoodputMbit }},
	{"rtt_p99_us", func(m *record.Metrics) float64 { return m.RTTP99 }},
	{"cpu_us_per_round_trip", func(m *record.Metrics) float64 { return m.CPUPerRoundTrip }},
}

// ratios compares each of ours with every other peer, leaving out whoever
// failed a round.
func (c *condition) ratios(entrants []peer) []ratio {
	list := []ratio{}
	for i := range c.Rows {
		if !entrants[i].ours || !c.Rows[i].ok() {
			continue
		}
		for k := range c.Rows {
			if entrants[k].ours || !c.Rows[k].ok() {
				continue
			}
			list = append(list, divide(&c.Rows[i], &c.Rows[k]))
		}
	}
	return list
}

func divide(ours, theirs *row) ratio {
	r := ratio{Ours: ours.Driver, Peer: theirs.Driver, Metrics: []span{}}
	for _, m := range compared {
		var values []float64
		for i := range ours.Result.Rounds {
			a, b := m.value(&ours.Result.Rounds[i].Metrics), m.value(&theirs.Result.Rounds[i].Metrics)
			if a > 0 && b > 0 {
				values = append(values, a/b)
			}
		}
		if len(values) > 0 {
			r.Metrics = append(r.Metrics, spanOf(m.name, values))
		}
	}
	return r
}

// spanOf sorts values.
func spanOf(name string, values []float64) span {
	slices.Sort(values)
	n := len(values)
	return span{
		Metric: name,
		Median: (values[(n-1)/2] + values[n/2]) / 2,
		Min:    values[0],
		Max:    values[n-1],
	}
}
