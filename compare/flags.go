package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/openarkstudio/arknet-go/bench"
	"github.com/openarkstudio/arknet-go/netem"
)

// usageError ends the program with exit status 2.
type usageError struct{ error }

func usagef(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

// plan is what a command line asks for: every peer under every load.
type plan struct {
	peers  []peer
	loads  []load
	rounds int
	seed   uint64
	json   bool
	out    string
	argv   []string
	// automatic: the peers are the default list, so one that cannot take part
	// in a load is left out instead of failing there.
	automatic bool
}

// options are the flags of both commands.
type options struct {
	set        *flag.FlagSet
	load       load
	workload   string
	rounds     int
	seed       uint64
	drivers    string
	group      string
	json       bool
	quick      bool
	list       bool
	out        string
	rateMbit   float64
	queueBytes int
}

// limits of the numeric flags. The harness has its own, wider ones.
var numericLimits = []struct {
	flag      string
	low, high float64
	value     func(o *options) float64
}{
	{"payload", bench.MinPayload, bench.MaxPayload, func(o *options) float64 { return float64(o.load.Payload) }},
	{"clients", 1, bench.MaxClients, func(o *options) float64 { return float64(o.load.Clients) }},
	{"window", 1, bench.MaxWindow, func(o *options) float64 { return float64(o.load.Window) }},
	{"seconds", 0.1, 3600, func(o *options) float64 { return o.load.Seconds }},
	{"warmup", 0, 3600, func(o *options) float64 { return o.load.Warmup }},
	{"rounds", 1, 100, func(o *options) float64 { return float64(o.rounds) }},
	{"rate-mbit", 0, 1e6, func(o *options) float64 { return o.rateMbit }},
	{"queue-bytes", 0, 1 << 30, func(o *options) float64 { return float64(o.queueBytes) }},
}

func newOptions(command string, base load) *options {
	o := &options{load: base, set: flag.NewFlagSet(command, flag.ContinueOnError)}
	f := o.set
	f.SetOutput(io.Discard)
	f.Usage = func() {}
	f.StringVar(&o.drivers, "drivers", "", "comma-separated `names`, or a prefix and *; default: all that can carry the load")
	f.IntVar(&o.load.Payload, "payload", base.Payload, "`bytes` per message")
	f.IntVar(&o.load.Clients, "clients", base.Clients, "`number` of clients")
	f.Float64Var(&o.load.Seconds, "seconds", base.Seconds, "measured `seconds` per round")
	f.Float64Var(&o.load.Warmup, "warmup", base.Warmup, "`seconds` before that")
	f.IntVar(&o.rounds, "rounds", 3, "`number` of rounds; the peers alternate within each")
	f.Uint64Var(&o.seed, "seed", 42, "`seed` of the first round; the next ones add 1 each")
	f.BoolVar(&o.quick, "quick", false, "0.5 s warmup, 1 s, 1 round, where no flag says otherwise")
	f.BoolVar(&o.json, "json", false, "print the records as one JSON object")
	f.BoolVar(&o.list, "list", false, "list the drivers and stop")
	f.StringVar(&o.out, "out", "", "write the records to this `file` too")
	return o
}

// parse reads the arguments and checks every number against its range.
func (o *options) parse(args []string) error {
	if err := o.set.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return usagef("%s", rewriteFlagError(err.Error()))
	}
	if o.set.NArg() > 0 {
		return usagef("unexpected argument %q; every option begins with --", o.set.Arg(0))
	}
	if o.quick {
		o.quickly()
	}
	for _, l := range numericLimits {
		if o.set.Lookup(l.flag) == nil {
			continue
		}
		if v := l.value(o); math.IsNaN(v) || v < l.low || v > l.high {
			return usagef("--%s is %v; the range is %v to %v", l.flag, v, l.low, l.high)
		}
	}
	return nil
}

// given reports whether the command line sets a flag.
func (o *options) given(names ...string) bool {
	found := false
	o.set.Visit(func(f *flag.Flag) {
		for _, name := range names {
			found = found || f.Name == name
		}
	})
	return found
}

func (o *options) quickly() {
	if !o.given("warmup") {
		o.load.Warmup = 0.5
	}
	if !o.given("seconds") {
		o.load.Seconds = 1
	}
	if !o.given("rounds") {
		o.rounds = 1
	}
}

// rewriteFlagError names the range where the flag package names none.
func rewriteFlagError(text string) string {
	for _, l := range numericLimits {
		if strings.Contains(text, "flag -"+l.flag+":") {
			return fmt.Sprintf("%s; the range is %v to %v", text, l.low, l.high)
		}
	}
	return strings.ReplaceAll(text, "not defined: -", "not defined: --")
}

// rudpPlan is the command rudp: the closed loop.
func rudpPlan(args []string) (*plan, *options, error) {
	o := newOptions("rudp", standardLoad())
	f := o.set
	f.StringVar(&o.load.Profile, "profile", o.load.Profile, "path condition: "+strings.Join(netem.ProfileNames(), ", "))
	f.StringVar(&o.workload, "workload", string(bench.Echo), "echo, stream or connect")
	f.IntVar(&o.load.Window, "window", o.load.Window, "`messages` in flight per client (echo)")
	f.Float64Var(&o.rateMbit, "rate-mbit", 0, "limit of each direction in `Mbit/s`; 0 is none")
	f.IntVar(&o.queueBytes, "queue-bytes", 0, "queue of the limit in `bytes`; 0 is one bandwidth-delay product")
	f.StringVar(&o.group, "group", "", "a named set of conditions: none, loss, sizes, all")
	if err := o.parse(args); err != nil {
		return nil, o, err
	}
	o.load.Workload = bench.Workload(o.workload)
	o.load.RateMbit, o.load.QueueBytes = o.rateMbit, o.queueBytes
	if o.queueBytes > 0 && o.rateMbit == 0 {
		return nil, o, usagef("--queue-bytes needs --rate-mbit; its range is 0 to 1e+06")
	}
	loads := []load{o.load}
	if o.group != "" {
		if o.given("profile") {
			return nil, o, usagef("--group and --profile exclude each other; the group names its profiles")
		}
		if (o.group == "sizes" || o.group == "all") && o.given("payload", "window") {
			return nil, o, usagef("--group %s names its payloads and windows; --payload and --window exclude it", o.group)
		}
		var err error
		if loads, err = groupLoads(o.group, o.load); err != nil {
			return nil, o, usageError{err}
		}
	}
	p, err := o.finish(loads)
	return p, o, err
}

// streamDrivers are the peers of the command stream: those that can compete for
// goodput, in their settings without a bound by design.
const streamDrivers = "rudp,rudp-off,quic-go,kcp-turbo"

// streamPlan is the command stream: one-way goodput on clean loopback and on
// limited links with and without loss.
func streamPlan(args []string) (*plan, *options, error) {
	base := standardLoad()
	base.Workload, base.Profile = bench.Stream, "none"
	base.Clients, base.Payload, base.Window = 1, 16384, 0
	o := newOptions("stream", base)
	if err := o.parse(args); err != nil {
		return nil, o, err
	}
	loads := []load{o.load}
	for _, rate := range []float64{20, 100} {
		for _, loss := range []float64{0, 5} {
			l := o.load
			l.Profile = fmt.Sprintf("link-%v-loss-%v", rate, loss)
			l.Path = &plainPath{LossPercent: loss, DelayMS: 10}
			l.RateMbit = rate
			loads = append(loads, l)
		}
	}
	if o.drivers == "" {
		o.drivers = streamDrivers
	}
	p, err := o.finish(loads)
	return p, o, err
}

func (o *options) finish(loads []load) (*plan, error) {
	chosen, err := choose(o.drivers)
	if err != nil {
		return nil, usageError{err}
	}
	for _, l := range loads {
		// The harness knows more rules than the ranges above.
		if _, err := l.config(o.seed); err != nil {
			return nil, usageError{flagWords(err)}
		}
	}
	return &plan{
		peers:     chosen,
		loads:     loads,
		rounds:    o.rounds,
		seed:      o.seed,
		json:      o.json,
		out:       o.out,
		automatic: !o.given("drivers"),
	}, nil
}

// flagWords turns the harness's field names into flags.
func flagWords(err error) error { return errors.New(fieldsToFlags.Replace(err.Error())) }

// fieldsToFlags tries its pairs in order, so the longer ones come first.
var fieldsToFlags = strings.NewReplacer(
	"bench: ", "", "netem: ", "", "Config.", "",
	"Clients x Window x Payload", "--clients x --window x --payload",
	"Workload is", "--workload is",
	"Payload is", "--payload is",
	"Window is", "--window is",
	"Clients is", "--clients is",
	"unknown profile", "--profile: unknown profile",
	"QueueBytes is", "--queue-bytes is",
	"Rate is", "--rate-mbit in bit/s is",
)

// estimate is the time the plan takes when every round runs its full time.
func (p *plan) estimate() time.Duration {
	var total time.Duration
	for _, l := range p.loads {
		total += time.Duration(len(p.entrants(l))*p.rounds) * (seconds(l.Warmup+l.Seconds) + roundSetup)
	}
	return total
}

// roundSetup is about what a child process, its handshakes and its drain take.
const roundSetup = 300 * time.Millisecond

// entrants are the peers that run under a load.
func (p *plan) entrants(l load) []peer {
	if !p.automatic {
		return p.peers
	}
	var list []peer
	for _, c := range p.peers {
		can := c.open(l.tuning()).Capabilities()
		if (can.Reliable || l.lossless()) && (can.Handshake || l.Workload != bench.Connect) {
			list = append(list, c)
		}
	}
	return list
}
