package rudp

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/openarkstudio/arknet-go/internal/arq"
)

// FEC policies.
const (
	// FECAdaptive sends repairs at a rate that follows the measured share of
	// datagrams that are lost or late.
	FECAdaptive = "adaptive"
	// FECFixed sends repairs at a constant rate.
	FECFixed = "fixed"
	// FECOff sends no repairs.
	FECOff = "off"
)

// FEC schemes.
const (
	// FECSliding is a systematic sliding-window code over GF(256), in the
	// manner of RFC 8681: each repair covers what the peer is not yet known to
	// hold.
	FECSliding = "sliding"
	// FECBlock is a Reed-Solomon code over closed groups of data.
	FECBlock = "block"
)

// FEC profiles of the adaptive policy.
const (
	// FECEco spends fewer bytes and restores less.
	FECEco = "eco"
	// FECBalanced is the default.
	FECBalanced = "balanced"
	// FECFast spends more bytes for the shortest tail: at least one repair
	// after each burst of data on a nearly idle session.
	FECFast = "fast"
)

var (
	fecPolicies = []string{FECAdaptive, FECFixed, FECOff}
	fecSchemes  = []string{FECSliding, FECBlock}
	fecProfiles = []string{FECEco, FECBalanced, FECFast}
)

// FEC configures forward error correction: repairs that are sent ahead of any
// loss, from which the peer restores data that was lost or is late. Each side
// decides for what it sends; the peer takes repairs unless it has set Retain
// to a negative value. Repairs are part of the congestion window, so that they
// fade out on a full link. The zero value stands for the defaults.
type FEC struct {
	// Policy is "adaptive" (default), "fixed" or "off".
	Policy string
	// Scheme is "sliding" (default) or "block".
	Scheme string
	// Profile sets the rate of the adaptive policy: "eco", "balanced"
	// (default) or "fast".
	Profile string
	// Data and Parity are the ratio of the fixed policy: Parity repairs per
	// Data pieces of data. Default 8 and 2, range 1 to 128 and 1 to 64. Data is
	// the size of a group of the block scheme too.
	Data, Parity int
	// ParityLimit is the most repairs of one group of the block scheme.
	// Default 4, range 1 to 64.
	ParityLimit int
	// GroupWait is how long a group of the block scheme waits to fill. Default
	// 2 ms, range 100 us to 1 s.
	GroupWait time.Duration
	// ParityBudget is the most repair bytes per data bytes, in percent, on
	// average. Default 100 for the adaptive policy with the sliding scheme, 50
	// else; range 1 to 1,000.
	ParityBudget int
	// Retain is the memory per session and direction that is kept for coding,
	// in bytes. Default 512 KiB, range 128 KiB to 64 MiB. Negative means that
	// this side neither makes nor takes repairs.
	Retain int
	// RetainTotal is the memory that all sessions of a socket keep for coding.
	// Beyond it a session drops what it kept and goes on. Default 64 MiB, range
	// 1 MiB to 64 GiB.
	RetainTotal int64
}

func (f FEC) withDefaults() FEC {
	setDefault(&f.Policy, FECAdaptive)
	setDefault(&f.Scheme, FECSliding)
	setDefault(&f.Profile, FECBalanced)
	setDefault(&f.Data, 8)
	setDefault(&f.Parity, 2)
	setDefault(&f.ParityLimit, 4)
	setDefault(&f.GroupWait, 2*time.Millisecond)
	budget := 50
	if f.Policy == FECAdaptive && f.Scheme == FECSliding {
		budget = 100
	}
	setDefault(&f.ParityBudget, budget)
	setDefault(&f.Retain, 512<<10)
	setDefault(&f.RetainTotal, 64<<20)
	return f
}

// validate checks a FEC with its defaults.
func (f FEC) validate() error {
	for _, n := range []struct {
		name, value string
		allowed     []string
	}{
		{"Policy", f.Policy, fecPolicies},
		{"Scheme", f.Scheme, fecSchemes},
		{"Profile", f.Profile, fecProfiles},
	} {
		if !slices.Contains(n.allowed, n.value) {
			return fmt.Errorf("rudp: Config.FEC.%s is %q, allowed are %s", n.name, n.value, strings.Join(n.allowed, ", "))
		}
	}
	for _, n := range []struct {
		name            string
		value, min, max int64
	}{
		{"Data", int64(f.Data), 1, 128},
		{"Parity", int64(f.Parity), 1, 64},
		{"ParityLimit", int64(f.ParityLimit), 1, 64},
		{"ParityBudget", int64(f.ParityBudget), 1, 1000},
		{"RetainTotal", f.RetainTotal, 1 << 20, 64 << 30},
	} {
		if n.value < n.min || n.value > n.max {
			return fmt.Errorf("rudp: Config.FEC.%s is %d, allowed are %d to %d", n.name, n.value, n.min, n.max)
		}
	}
	if f.Retain > 0 && (f.Retain < 128<<10 || f.Retain > 64<<20) {
		return fmt.Errorf("rudp: Config.FEC.Retain is %d, allowed are %d to %d, or negative for none", f.Retain, 128<<10, 64<<20)
	}
	if f.GroupWait < 100*time.Microsecond || f.GroupWait > time.Second {
		return fmt.Errorf("rudp: Config.FEC.GroupWait is %v, allowed are 100us to 1s", f.GroupWait)
	}
	return nil
}

var fecGain = map[string]int{FECEco: 600, FECBalanced: 1000, FECFast: 1600}

// core is the configuration of the protocol core.
func (f FEC) core() arq.FECConfig {
	c := arq.FECConfig{
		Gain:        fecGain[f.Profile],
		SmallBursts: f.Profile == FECFast && f.Policy == FECAdaptive,
		Data:        f.Data, Parity: f.Parity,
		ParityLimit: f.ParityLimit,
		GroupWait:   f.GroupWait,
		Budget:      f.ParityBudget,
		Retain:      max(f.Retain, 0),
	}
	switch f.Policy {
	case FECFixed:
		c.Policy = arq.FECFixed
		// A fixed group gets what its ratio says.
		c.ParityLimit = max(c.ParityLimit, f.Parity)
	case FECAdaptive:
		c.Policy = arq.FECAdaptive
	}
	if f.Scheme == FECBlock {
		c.Scheme = arq.FECBlock
	}
	return c
}
