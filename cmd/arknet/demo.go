package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"time"

	"github.com/openarkstudio/arknet-go/bench"
	"github.com/openarkstudio/arknet-go/bench/record"
	"github.com/openarkstudio/arknet-go/report"
	"github.com/openarkstudio/arknet-go/rudp"
)

// demoCommand is arknet demo.
type demoCommand struct {
	Seconds decimal `range:"0.1..600" default:"1.5" placeholder:"S" help:"Measured time of a round; there are three of each policy."`
	Seed    whole   `range:"0..9007199254740992" default:"42" placeholder:"N" help:"Seed of the network: another seed is other weather."`
	Out     outFile `default:"arknet-demo.html" placeholder:"FILE" help:"Where the page goes."`
	JSON    bool    `name:"json" help:"Write one JSON object to stdout instead of a table."`
}

// Help is the text below the flags.
func (demoCommand) Help() string {
	return `
Runs reliable UDP through a relay that behaves like a bad network (5 % of datagrams lost, 10 ms
each way, some late, some twice), with forward error correction off, fixed, adaptive, and adaptive
with more of it. It needs nothing and changes nothing but the page that it writes: everything runs
in this process, on loopback, in less than a minute. Each echo is checked for content and order.

Examples:

    arknet demo
    arknet demo --seed 7 --out weather-7.html
    arknet demo --seconds 10 --json > demo.json

Exit status: 0 all checks passed, 1 a round failed, 2 bad usage.`
}

// demoRounds is odd, so that a median is a round that was measured.
const demoRounds = 3

// demoVariant is a policy with its words and what the harness found.
type demoVariant struct {
	name, title, about string
	ink                report.Ink
	fec                rudp.FEC

	result *record.Result
	wire   report.Wire
	line   *report.Timeline
	lost   error // why there is no line
}

func demoVariants() []*demoVariant {
	return []*demoVariant{
		{
			name: "off", title: "FEC off", ink: report.InkOff, fec: rudp.FEC{Policy: rudp.FECOff},
			about: "Nothing is sent ahead. What is lost is noticed and sent again.",
		},
		{
			name: "fixed", title: "FEC fixed", ink: report.InkFixed, fec: rudp.FEC{Policy: rudp.FECFixed},
			about: "Two repairs for every eight pieces of data, whatever the network does.",
		},
		{
			name: "adaptive", title: "FEC adaptive", ink: report.InkAdaptive, fec: rudp.FEC{Policy: rudp.FECAdaptive},
			about: "As many repairs as the measured share of lost and late datagrams calls for. This is the default.",
		},
		{
			name: "fast", title: "FEC adaptive, fast", ink: report.InkFast, fec: rudp.FEC{Policy: rudp.FECAdaptive, Profile: rudp.FECFast},
			about: "Adaptive, profile fast: more repairs by the same rule, for the shortest waits.",
		},
	}
}

// demoMain is the variant that the page speaks of first.
const demoMain = 2

// command measures the variant alone.
func (v *demoVariant) command(cfg *bench.Config) []string {
	args := []string{"arknet", "bench", "rudp", "--fec", v.fec.Policy}
	if v.fec.Profile != "" {
		args = append(args, "--fec-profile", v.fec.Profile)
	}
	return append(args, "--warmup", shortest(cfg.Warmup.Seconds()), "--seconds", shortest(cfg.Duration.Seconds()),
		"--rounds", strconv.Itoa(demoRounds), "--seed", strconv.FormatUint(cfg.Seed, 10))
}

func shortest(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// Run runs arknet demo.
func (c *demoCommand) Run(a *app) error {
	sink, err := outputFlags{Out: c.Out}.open()
	if err != nil {
		return err
	}
	defer sink.discard()
	d := c.plan(a)
	bar := d.progress(a)
	err = d.run(a, bar)
	bar.finish()
	if err != nil {
		return err
	}
	demo := d.report(c)
	if err := sink.commitText(demo.Page().Write); err != nil {
		return err
	}
	page, err := filepath.Abs(string(c.Out))
	if err != nil {
		page = string(c.Out)
	}
	if err := c.write(a.out, demo, d, page); err != nil {
		return err
	}
	return d.verdict()
}

// demo is a run of arknet demo.
type demo struct {
	load     bench.Config // of one round
	watch    bench.Config // of the recording
	variants []*demoVariant
}

// plan lays the rounds out.
func (c *demoCommand) plan(a *app) *demo {
	load := bench.Standard()
	load.Duration = c.Seconds.seconds()
	load.Warmup = min(load.Duration, time.Second)
	load.Seed = uint64(c.Seed)
	load.Command = a.command
	watch := load
	watch.Clients, watch.Rounds = 1, 1
	watch.Duration = min(load.Duration, 1500*time.Millisecond)
	return &demo{load, watch, demoVariants()}
}

// total is the planned time.
func (d *demo) total() time.Duration {
	n := time.Duration(len(d.variants))
	return n*demoRounds*(d.load.Warmup+d.load.Duration) + n*(d.watch.Warmup+d.watch.Duration)
}

// run measures all rounds. The policies take turns; then each is recorded.
func (d *demo) run(a *app, bar *demoProgress) error {
	for i := range demoRounds {
		for _, v := range d.variants {
			cfg := d.load
			cfg.Rounds, cfg.Seed = 1, d.load.Seed+uint64(i)
			cfg.Progress = bar.step(fmt.Sprintf("%s, round %d of %d", v.name, i+1, demoRounds), cfg.Warmup+cfg.Duration)
			if err := v.round(a, cfg); err != nil {
				return err
			}
		}
	}
	for _, v := range d.variants {
		cfg := d.watch
		cfg.Progress = bar.step(v.name+", recording", cfg.Warmup+cfg.Duration)
		if err := v.record(a, cfg); err != nil {
			return err
		}
	}
	for _, v := range d.variants {
		v.result.Config.RoundCount, v.result.Config.Seed = demoRounds, d.load.Seed
		v.result.Aggregate()
	}
	return nil
}

// round measures one round and adds it to the record.
func (v *demoVariant) round(a *app, cfg bench.Config) error {
	meter := newWireMeter(cfg.Warmup + cfg.Duration)
	r, err := v.bench(a, cfg, meter.trace)
	if err != nil {
		return err
	}
	round := r.Rounds[0]
	if round.OK {
		meter.sum(&v.wire, round.Start, round.ElapsedSeconds)
	}
	if v.result == nil {
		v.result = r
		return nil
	}
	round.Round = len(v.result.Rounds) + 1
	v.result.Rounds = append(v.result.Rounds, round)
	v.result.Environment.End = r.Environment.End
	return nil
}

// record records a session of one client. A recording whose round failed its
// checks is not shown, and fails the demo like any other round.
func (v *demoVariant) record(a *app, cfg bench.Config) error {
	rec := newRecorder()
	r, err := v.bench(a, cfg, rec.trace)
	if err != nil {
		return err
	}
	round := &r.Rounds[0]
	if !round.OK {
		v.lost = &failure{fmt.Sprintf("recording failed: %s (%v)", firstLine(round.Failure), round.Errors)}
		return nil
	}
	v.line = rec.timeline(v.name, round.Start, cfg.Duration)
	return nil
}

func (v *demoVariant) bench(a *app, cfg bench.Config, trace func(*rudp.Conn, rudp.TraceEvent)) (*record.Result, error) {
	driver, err := bench.RUDP(&rudp.Config{FEC: v.fec, Trace: trace})
	if err != nil {
		return nil, err
	}
	return bench.Run(a.ctx, driver, cfg)
}

// report gathers what the page needs.
func (d *demo) report(c *demoCommand) *report.Demo {
	out := &report.Demo{
		Command: []string{"arknet", "demo", "--seconds", shortest(float64(c.Seconds)), "--seed", strconv.FormatInt(int64(c.Seed), 10)},
		Main:    demoMain,
	}
	for _, v := range d.variants {
		out.Variants = append(out.Variants, report.Variant{
			Name: v.name, Title: v.title, About: v.about, Ink: v.ink,
			Result: v.result, Wire: v.wire, Line: v.line,
			Command: v.command(&d.load),
		})
	}
	return out
}

// demoSchema names the layout of demoJSON.
const demoSchema = "arknet.demo/1"

// demoJSON is what --json writes. Result is a record as arknet bench rudp writes
// it; its command is the argv of the demo.
type demoJSON struct {
	Schema   string            `json:"schema"`
	Page     string            `json:"page"`
	Variants []demoVariantJSON `json:"variants"`
	OK       bool              `json:"ok"`
}

type demoVariantJSON struct {
	Name     string           `json:"name"`
	Command  []string         `json:"command"` // that measures it alone
	Result   *record.Result   `json:"result"`
	Wire     report.Wire      `json:"wire"`
	Timeline *report.Timeline `json:"timeline"`
}

// write writes the result to stdout.
func (c *demoCommand) write(w io.Writer, r *report.Demo, d *demo, page string) error {
	if c.JSON {
		out := demoJSON{Schema: demoSchema, Page: page, OK: d.verdict() == nil}
		for _, v := range r.Variants {
			out.Variants = append(out.Variants, demoVariantJSON{v.Name, v.Command, v.Result, v.Wire, v.Line})
		}
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(out)
	}
	config := &d.variants[0].result.Config
	_, err := fmt.Fprintf(w, "Reliable UDP through a relay. For each direction: %s.\n%d clients x window %d x %s B, %d rounds of %s s; fec:\n\n",
		report.Impairment(config), config.Clients, config.Window, group(float64(config.Payload), 0), demoRounds, shortest(config.Seconds))
	if err != nil {
		return err
	}
	if err := r.Table().WriteText(w); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "\nCharts, and what they mean: %s\n", page)
	return err
}

// verdict is an error that names the rounds that failed.
func (d *demo) verdict() error {
	var all []error
	for _, v := range d.variants {
		for _, err := range []error{verdict(v.result), v.lost} {
			if err != nil {
				all = append(all, fmt.Errorf("%s: %w", v.name, err))
			}
		}
	}
	return errors.Join(all...)
}

// demoProgress adds the rounds up to one progress bar.
type demoProgress struct {
	view *progressView
	done time.Duration // before the current round
}

func (d *demo) progress(a *app) *demoProgress {
	return &demoProgress{view: a.progress(bench.Config{Rounds: 1, Duration: d.total()})}
}

// step starts a round that takes so long.
func (p *demoProgress) step(what string, d time.Duration) func(bench.Progress) {
	start := p.done
	p.done += d
	return func(now bench.Progress) {
		if bar := p.view.bar; bar != nil {
			bar.Describe(what)
			_ = bar.Set64((start + min(now.Done, d)).Milliseconds()) // progress is decoration
		}
	}
}

func (p *demoProgress) finish() { p.view.finish() }
