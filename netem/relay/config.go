package relay

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/openarkstudio/arknet-go/netem"
)

// Defaults of Config.
const (
	DefaultRouteBytes     = 8 << 20
	DefaultRouteDatagrams = 8192
	DefaultTotalBytes     = 512 << 20
	DefaultMaxRoutes      = 4096
	DefaultRouteIdle      = 5 * time.Minute
	DefaultReadBuffer     = 4 << 20
)

// Config of a relay. Target is mandatory; the zero value of every other field is
// good.
type Config struct {
	// Network is "udp" (the default) or "tcp".
	Network string

	// Listen is the address that clients use in place of the target. The
	// default is a free port on 127.0.0.1.
	Listen string

	// Target is the address of the server.
	Target string

	// Up impairs the way from the clients to the target, Down the way back.
	Up, Down netem.Config

	// Seed decides all random choices. Route number i (from 0, in the order in
	// which clients appear) uses netem.DeriveSeed(Seed, i, direction).
	Seed uint64

	// RouteBytes and RouteDatagrams bound what one route holds in both
	// directions together. 0 means 8 MiB and 8,192. For TCP RouteBytes bounds
	// each direction and holds the sender back.
	RouteBytes, RouteDatagrams int

	// TotalBytes bounds what all routes together hold; 0 means 512 MiB.
	TotalBytes int

	// MaxRoutes bounds the routes at one time; datagrams and connections of
	// more clients are refused and counted. 0 means 4,096.
	MaxRoutes int

	// RouteIdle ends a UDP route that carried nothing for so long; its client
	// gets a new one when it comes back. 0 means 5 min, negative never.
	RouteIdle time.Duration

	// ReadBuffer is asked for on every UDP socket; 0 means 4 MiB.
	ReadBuffer int

	// NoOffload switches GSO, GRO and batched system calls off.
	NoOffload bool

	// ResetAfter resets every TCP connection so long after it was accepted;
	// 0 means never.
	ResetAfter time.Duration

	// Logger hears of refused clients (UDP: level debug, as there may be one
	// for each datagram) and failed dials. nil means silence.
	Logger *slog.Logger
}

// Validate names the first field that is out of range, and the range.
func (c *Config) Validate() error {
	if n := c.network(); n != "udp" && n != "tcp" {
		return fmt.Errorf("relay: Config.Network is %q; allowed: udp, tcp", n)
	}
	if c.Target == "" {
		return errors.New("relay: Config.Target is empty; want host:port")
	}
	for _, f := range []struct {
		name  string
		value int64
		hi    int64
	}{
		{"RouteBytes", int64(c.RouteBytes), 1 << 40},
		{"RouteDatagrams", int64(c.RouteDatagrams), 1 << 30},
		{"TotalBytes", int64(c.TotalBytes), 1 << 40},
		{"MaxRoutes", int64(c.MaxRoutes), 1 << 20},
		{"ReadBuffer", int64(c.ReadBuffer), 1 << 30},
	} {
		if f.value < 0 || f.value > f.hi {
			return fmt.Errorf("relay: Config.%s is %d; allowed: 0 (default) to %d", f.name, f.value, f.hi)
		}
	}
	if c.ResetAfter < 0 {
		return fmt.Errorf("relay: Config.ResetAfter is %v; allowed: 0 (never) or more", c.ResetAfter)
	}
	if c.ResetAfter > 0 && c.network() == "udp" {
		return errors.New("relay: Config.ResetAfter is for network tcp")
	}
	return checkImpairment(c.network(), c.Up, c.Down)
}

// checkImpairment validates both directions for the network.
func checkImpairment(network string, up, down netem.Config) error {
	for d, c := range []netem.Config{up, down} {
		err := c.Validate()
		if err == nil && network == "tcp" {
			err = checkStream(c)
		}
		if err != nil {
			return fmt.Errorf("relay: %v: %w", netem.Direction(d), err)
		}
	}
	return nil
}

// checkStream refuses what has no meaning for a byte stream.
func checkStream(c netem.Config) error {
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"Loss", c.Loss > 0},
		{"Burst", c.Burst.Lose > 0},
		{"GilbertElliott", c.GilbertElliott != netem.GilbertElliott{}},
		{"Jitter", c.Jitter > 0},
		{"JitterReorders", c.JitterReorders},
		{"Late", c.Late.Share > 0},
		{"Duplicate", c.Duplicate > 0},
		{"Corrupt", c.Corrupt > 0},
		{"QueuePackets", c.QueuePackets > 0},
		{"Police", c.Police},
		{"MTU", c.MTU > 0},
	} {
		if f.set {
			return fmt.Errorf("network tcp has no use for Config.%s; allowed: Delay, Rate, QueueBytes, Outages", f.name)
		}
	}
	return nil
}

func (c *Config) network() string {
	if c.Network == "" {
		return "udp"
	}
	return c.Network
}

func (c *Config) listen() string {
	if c.Listen == "" {
		return "127.0.0.1:0"
	}
	return c.Listen
}

func (c *Config) routeIdle() time.Duration {
	switch {
	case c.RouteIdle == 0:
		return DefaultRouteIdle
	case c.RouteIdle < 0:
		return 0
	}
	return c.RouteIdle
}

func (c *Config) logger() *slog.Logger {
	if c.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return c.Logger
}

func orDefault(v, normal int) int {
	if v == 0 {
		return normal
	}
	return v
}
