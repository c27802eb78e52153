package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/openarkstudio/arknet-go/bench"
	"github.com/openarkstudio/arknet-go/netem"
)

// load is one condition under which the peers are compared. It travels to the
// child process as JSON.
type load struct {
	Workload bench.Workload `json:"workload"`
	Profile  string         `json:"profile"`
	Payload  int            `json:"payload"`
	Clients  int            `json:"clients"`
	Window   int            `json:"window"`
	Seconds  float64        `json:"seconds"`
	Warmup   float64        `json:"warmup"`

	// RateMbit limits both directions; the queue holds QueueBytes. 0 is no limit.
	RateMbit   float64 `json:"rate_mbit"`
	QueueBytes int     `json:"queue_bytes"`

	// Path replaces the profile when it is set: loss and delay alone.
	Path *plainPath `json:"path,omitempty"`
}

// plainPath is an impairment that no profile names.
type plainPath struct {
	LossPercent float64 `json:"loss_percent"`
	DelayMS     float64 `json:"delay_ms"`
}

// standardLoad is the load of the published comparisons.
func standardLoad() load {
	s := bench.Standard()
	return load{
		Workload: s.Workload,
		Profile:  s.Profile,
		Payload:  s.Payload,
		Clients:  s.Clients,
		Window:   s.Window,
		Seconds:  s.Duration.Seconds(),
		Warmup:   s.Warmup.Seconds(),
	}
}

// impairment is what the relay does in each direction.
func (l load) impairment() (netem.Config, error) {
	var config netem.Config
	if l.Path != nil {
		config.Loss = l.Path.LossPercent / 100
		config.Delay = milliseconds(l.Path.DelayMS)
	} else {
		var err error
		if config, err = netem.Profile(l.Profile); err != nil {
			return netem.Config{}, err
		}
	}
	if l.RateMbit > 0 {
		config.Rate = int64(l.RateMbit * 1e6)
		config.QueueBytes = l.QueueBytes
		if config.QueueBytes == 0 {
			config.QueueBytes = bdp(l.RateMbit, config.Delay)
		}
	}
	return config, nil
}

// bdp is the bandwidth-delay product of a path with the delay in each
// direction, at least 16 full datagrams.
func bdp(rateMbit float64, oneWay time.Duration) int {
	return max(int(rateMbit*1e6/8*2*oneWay.Seconds()), 16*1200)
}

func milliseconds(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }
func seconds(s float64) time.Duration       { return time.Duration(s * float64(time.Second)) }

// config makes the harness's configuration of one round.
func (l load) config(seed uint64) (bench.Config, error) {
	impairment, err := l.impairment()
	if err != nil {
		return bench.Config{}, err
	}
	c := bench.Config{
		Workload:   l.Workload,
		Payload:    l.Payload,
		Clients:    l.Clients,
		Window:     l.Window,
		Profile:    l.Profile,
		Impairment: impairment,
		Warmup:     seconds(l.Warmup),
		Duration:   seconds(l.Seconds),
		Rounds:     1,
		Seed:       seed,
	}
	return c, c.Validate()
}

// String describes the load for a table's heading.
func (l load) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, ", l.Workload)
	if l.Path != nil {
		fmt.Fprintf(&b, "loss %v %%, delay %v ms one way", l.Path.LossPercent, l.Path.DelayMS)
	} else {
		fmt.Fprintf(&b, "profile %s", l.Profile)
	}
	if l.RateMbit > 0 {
		fmt.Fprintf(&b, ", %v Mbit/s", l.RateMbit)
		if config, err := l.impairment(); err == nil {
			fmt.Fprintf(&b, " with a queue of %d B", config.QueueBytes)
		}
	}
	fmt.Fprintf(&b, ", %d client", l.Clients)
	if l.Clients != 1 {
		b.WriteByte('s')
	}
	if l.Workload == bench.Echo {
		fmt.Fprintf(&b, " x window %d", l.Window)
	}
	if l.Workload != bench.Connect {
		fmt.Fprintf(&b, " x %d B", l.Payload)
	}
	return b.String()
}

// lossless reports whether an unreliable transport can take part.
func (l load) lossless() bool {
	return l.Workload == bench.Echo && l.Path == nil && l.Profile == "none" && l.RateMbit == 0
}

// groups are named sets of conditions; each condition changes the load that the
// other flags describe.
var groups = []struct {
	name, about string
	loads       func(base load) []load
}{
	{"none", "the perfect path, with the raw UDP floor", func(base load) []load {
		return profiles(base, "none")
	}},
	{"loss", "profiles random, burst and sustained", func(base load) []load {
		return profiles(base, "random", "burst", "sustained")
	}},
	{"sizes", "profile random, payloads 64, 1024, 4096 and 16384 B at windows 1 and 64", func(base load) []load {
		var list []load
		for _, payload := range []int{64, 1024, 4096, 16384} {
			for _, window := range []int{1, 64} {
				l := base
				l.Profile, l.Payload, l.Window = "random", payload, window
				list = append(list, l)
			}
		}
		return list
	}},
	{"all", "none, loss and sizes", nil},
}

func profiles(base load, names ...string) []load {
	list := make([]load, len(names))
	for i, name := range names {
		list[i] = base
		list[i].Profile = name
	}
	return list
}

// groupLoads resolves a group's name.
func groupLoads(name string, base load) ([]load, error) {
	var list []load
	known := false
	for _, g := range groups {
		known = known || g.name == name
		if g.loads != nil && (g.name == name || name == "all") {
			list = append(list, g.loads(base)...)
		}
	}
	if !known {
		names := make([]string, len(groups))
		for i, g := range groups {
			names[i] = g.name
		}
		return nil, fmt.Errorf("--group: unknown group %q; the range is %s", name, strings.Join(names, ", "))
	}
	return list, nil
}
