package bench

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/openarkstudio/arknet-go/netem"
)

// Workload names what the clients do.
type Workload string

// The workloads.
const (
	// Echo is a closed loop: every client keeps Window messages in flight, and
	// every echo is checked and answered with the next message.
	Echo Workload = "echo"
	// Stream is one-way goodput: every client sends as fast as the transport
	// takes it, and the server checks every message.
	Stream Workload = "stream"
	// Connect is handshakes per second: every client dials, checks one small
	// echo and closes, one association after the other.
	Connect Workload = "connect"
)

// Workloads lists all workloads.
func Workloads() []Workload { return []Workload{Echo, Stream, Connect} }

// Limits of a run.
const (
	MinPayload = headerLen        // bytes
	MaxPayload = 16 << 20         // bytes
	MaxClients = 1024             //
	MaxWindow  = 1024             // messages
	MaxRounds  = 1000             //
	MaxTime    = 24 * time.Hour   // of warmup and of the measured phase
	maxFlight  = 256 << 20        // bytes in flight, over all clients
	drainLimit = 2 * time.Second  // after the deadline of a phase
	dialLimit  = 15 * time.Second // for the clients of a round to come up
)

// connectPayload is the size of the echo that proves an association.
const connectPayload = 64

// Config is one configuration. Standard returns a complete one to start from.
type Config struct {
	Workload Workload
	Payload  int // bytes per message; MinPayload to MaxPayload. Connect ignores it
	Clients  int // 1 to MaxClients
	Window   int // messages in flight per client; 1 to MaxWindow. Echo only

	// Profile is the name under which the impairment is recorded; Impairment is
	// what the relay does, in both directions.
	Profile    string
	Impairment netem.Config

	Warmup   time.Duration // 0 to MaxTime
	Duration time.Duration // measured, without the drain; above 0, up to MaxTime
	Rounds   int           // 1 to MaxRounds
	Seed     uint64        // of the first round; the others add 1 each
	IPv6     bool          // loopback address family

	// Command is recorded as the command that asked for the run.
	Command []string

	// Progress, if set, is called about every 100 ms from one goroutine at a
	// time, and must not block.
	Progress func(Progress)

	newPath func(pathConfig) (path, error) // the relay unless a test replaces it
}

// Progress says how far a run is.
type Progress struct {
	Round, Rounds int
	Phase         string        // "warmup", "measured" or "drain"
	Done, Total   time.Duration // planned time of the whole run; drains are extra
	Operations    uint64        // verified so far in this phase
}

// Standard is the standard load: 4 clients with 16 messages of 1,024 bytes in
// flight each, the random profile, 2 s warmup, 3 s measured, 3 rounds, seed 42.
func Standard() Config {
	impairment, err := netem.Profile("random")
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return Config{
		Workload:   Echo,
		Payload:    1024,
		Clients:    4,
		Window:     16,
		Profile:    "random",
		Impairment: impairment,
		Warmup:     2 * time.Second,
		Duration:   3 * time.Second,
		Rounds:     3,
		Seed:       42,
	}
}

// Validate checks the configuration by itself and names the first field that is
// out of range, with the range.
func (c *Config) Validate() error {
	if !slices.Contains(Workloads(), c.Workload) {
		return outOfRange("Workload", string(c.Workload), "echo, stream, connect")
	}
	type limit struct {
		field     string
		value     int
		low, high int
	}
	limits := []limit{
		{"Clients", c.Clients, 1, MaxClients},
		{"Rounds", c.Rounds, 1, MaxRounds},
	}
	if c.Workload != Connect {
		limits = append(limits, limit{"Payload", c.Payload, MinPayload, MaxPayload})
	}
	if c.Workload == Echo {
		limits = append(limits, limit{"Window", c.Window, 1, MaxWindow})
	}
	for _, l := range limits {
		if l.value < l.low || l.value > l.high {
			return outOfRange(l.field, l.value, fmt.Sprintf("%d to %d", l.low, l.high))
		}
	}
	if c.Workload == Echo {
		if flight := int64(c.Clients) * int64(c.Window) * int64(c.Payload); flight > maxFlight {
			return fmt.Errorf("bench: Clients x Window x Payload is %d bytes in flight; allowed: up to %d", flight, int64(maxFlight))
		}
	}
	if c.Warmup < 0 || c.Warmup > MaxTime {
		return outOfRange("Warmup", c.Warmup, "0 to "+MaxTime.String())
	}
	if c.Duration <= 0 || c.Duration > MaxTime {
		return outOfRange("Duration", c.Duration, "above 0, up to "+MaxTime.String())
	}
	return c.Impairment.Validate()
}

// fits checks the configuration against a driver.
func (c *Config) fits(d Driver) error {
	can := d.Capabilities()
	name := d.Name()
	if c.Workload == Stream && !can.Reliable {
		return fmt.Errorf("bench: workload stream needs a reliable transport; %s is not", name)
	}
	if c.Workload == Connect && !can.Handshake {
		return fmt.Errorf("bench: workload connect needs a transport with a handshake; %s has none", name)
	}
	if can.MaxMessage > 0 && c.payload() > can.MaxMessage {
		return fmt.Errorf("bench: Payload is %d; allowed with %s: %d to %d", c.payload(), name, MinPayload, can.MaxMessage)
	}
	if !can.Reliable {
		if harm := harm(&c.Impairment); harm != "" {
			return fmt.Errorf("bench: %s has no reliability and needs a path without loss, duplicates and reordering; the impairment has %s", name, harm)
		}
	}
	return nil
}

// harm names what in the impairment an unreliable transport cannot mend, or "".
func harm(c *netem.Config) string {
	var list []string
	for _, h := range []struct {
		name string
		on   bool
	}{
		{"loss", c.Loss > 0 || c.Burst.Lose > 0 || c.GilbertElliott != (netem.GilbertElliott{})},
		{"a rate limit", c.Rate > 0},
		{"an MTU", c.MTU > 0},
		{"outages", len(c.Outages) > 0},
		{"duplicates", c.Duplicate > 0},
		{"corruption", c.Corrupt > 0},
		{"reordering", c.Late.Share > 0 || c.JitterReorders},
	} {
		if h.on {
			list = append(list, h.name)
		}
	}
	return strings.Join(list, ", ")
}

// payload is the size of the messages that the workload sends.
func (c *Config) payload() int {
	if c.Workload == Connect {
		return connectPayload
	}
	return c.Payload
}

func (c *Config) host() string {
	if c.IPv6 {
		return "::1"
	}
	return "127.0.0.1"
}

func outOfRange(field string, value any, allowed string) error {
	return fmt.Errorf("bench: Config.%s is %v; allowed: %s", field, value, allowed)
}
