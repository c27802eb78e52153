package main

import (
	"github.com/openarkstudio/arknet-go/bench"
	"github.com/openarkstudio/arknet-go/netem"
)

// loadFlags are the load and the measurement; their defaults are the standard
// load. A seed is an integer that every reader of JSON can hold.
type loadFlags struct {
	Payload       whole   `range:"16..16777216" default:"1024" placeholder:"BYTES" help:"Size of a message." group:"Load:"`
	Clients       whole   `range:"1..1024" default:"4" placeholder:"N" help:"Number of clients." group:"Load:"`
	Window        whole   `range:"1..1024" default:"16" placeholder:"N" help:"Messages that each client keeps in flight." group:"Load:"`
	Seconds       decimal `range:"0.05..86400" default:"3" placeholder:"S" help:"Measured time, without the drain." group:"Load:"`
	Warmup        decimal `range:"0..86400" default:"2" placeholder:"S" help:"Time before that." group:"Load:"`
	Rounds        whole   `range:"1..1000" default:"3" placeholder:"N" help:"Rounds; figures are their medians." group:"Load:"`
	Seed          whole   `range:"0..9007199254740992" default:"42" placeholder:"N" help:"Seed of the first round; the next ones add 1 each." group:"Load:"`
	AddressFamily choice  `choices:"ipv4,ipv6" default:"ipv4" placeholder:"FAMILY" help:"Loopback addresses." group:"Load:"`
}

// config builds the configuration of the harness.
func (f *loadFlags) config(a *app, workload, profile choice, impairment netem.Config) (bench.Config, error) {
	for _, c := range []struct {
		flag      string
		workloads []bench.Workload // that have no use for it
	}{
		{"window", []bench.Workload{bench.Stream, bench.Connect}},
		{"payload", []bench.Workload{bench.Connect}},
	} {
		for _, w := range c.workloads {
			if a.given[c.flag] && workload == choice(w) {
				return bench.Config{}, usagef("--%s has no meaning with --workload %s; allowed: leave it out", c.flag, w)
			}
		}
	}
	const maxFlight = 256 << 20
	if flight := f.Clients * f.Window * f.Payload; workload == choice(bench.Echo) && flight > maxFlight {
		return bench.Config{}, usagef("--payload x --clients x --window is %d bytes in flight; allowed: up to %d", flight, maxFlight)
	}
	return bench.Config{
		Workload:   bench.Workload(workload),
		Payload:    int(f.Payload),
		Clients:    int(f.Clients),
		Window:     int(f.Window),
		Profile:    string(profile),
		Impairment: impairment,
		Warmup:     f.Warmup.seconds(),
		Duration:   f.Seconds.seconds(),
		Rounds:     int(f.Rounds),
		Seed:       uint64(f.Seed),
		IPv6:       f.AddressFamily == "ipv6",
		Command:    a.command,
	}, nil
}
