package bench

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/openarkstudio/arknet-go/bench/record"
)

// Run runs all rounds of one configuration and returns the record. What goes
// wrong inside a round is in the record, whose OK is then false; the error is
// for a configuration that does not fit, and for the end of ctx.
func Run(ctx context.Context, d Driver, cfg Config) (*record.Result, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if err := cfg.fits(d); err != nil {
		return nil, err
	}
	if cfg.newPath == nil {
		cfg.newPath = newRelayPath
	}
	result := &record.Result{
		Schema:      record.Schema,
		Command:     append([]string{}, cfg.Command...),
		Config:      describe(d, &cfg),
		Environment: environment(),
	}
	can := d.Capabilities()
	for i := range cfg.Rounds {
		r := &round{
			cfg:    &cfg,
			driver: d,
			can:    can,
			pat:    newPattern(cfg.payload(), cfg.Seed+uint64(i)),
			number: i + 1,
			seed:   cfg.Seed + uint64(i),
		}
		if cfg.Progress != nil {
			per := cfg.Warmup + cfg.Duration
			r.progress = func(phase string, done time.Duration, operations uint64) {
				done += time.Duration(i) * per
				cfg.Progress(Progress{
					Round: i + 1, Rounds: cfg.Rounds, Phase: phase,
					Done: done, Total: time.Duration(cfg.Rounds) * per, Operations: operations,
				})
			}
		}
		runtime.GC()
		round, err := r.run(ctx)
		if err != nil {
			return nil, fmt.Errorf("bench: interrupted in round %d of %d: %w", i+1, cfg.Rounds, err)
		}
		result.Rounds = append(result.Rounds, round)
		r.buffers(&result.Environment.SocketBuffers)
	}
	result.Environment.End = time.Now().UTC()
	result.Aggregate()
	return result, nil
}

// buffers records the socket buffers that this round was granted. They are the
// same in every round; the last one stays.
func (r *round) buffers(b *record.SocketBuffers) {
	c, s := &r.clients.buffers, &r.servers.buffers
	b.ClientReadMin, b.ClientReadMax = c[0].low, c[0].high
	b.ClientWriteMin, b.ClientWriteMax = c[1].low, c[1].high
	b.ServerRead, b.ServerWrite = s[0].high, s[1].high
	if l, ok := r.listener.(BufferReader); ok {
		b.ServerRead, b.ServerWrite = l.SocketBuffers()
	}
}

// describe writes down the effective configuration.
func describe(d Driver, cfg *Config) record.Config {
	i := &cfg.Impairment
	c := record.Config{
		Driver:           d.Name(),
		Workload:         string(cfg.Workload),
		Payload:          cfg.payload(),
		Clients:          cfg.Clients,
		Profile:          cfg.Profile,
		LossPercent:      round4(i.Loss * 100),
		DelayMS:          milliseconds(i.Delay),
		JitterMS:         milliseconds(i.Jitter),
		DuplicatePercent: round4(i.Duplicate * 100),
		ReorderPercent:   round4(i.Late.Share * 100),
		ReorderDelayMS:   milliseconds(i.Late.Delay),
		RateMbit:         float64(i.Rate) / 1e6,
		QueueBytes:       i.QueueBytes,
		Seconds:          cfg.Duration.Seconds(),
		Warmup:           cfg.Warmup.Seconds(),
		RoundCount:       cfg.Rounds,
		Seed:             cfg.Seed,
		AddressFamily:    "ipv4",
	}
	if cfg.Workload == Echo {
		c.Window = cfg.Window
	}
	if cfg.IPv6 {
		c.AddressFamily = "ipv6"
	}
	if i.Burst.Lose > 0 {
		c.BurstLoss = strconv.Itoa(i.Burst.Lose) + "/" + strconv.Itoa(i.Burst.Every)
	}
	var outages []string
	for _, o := range i.Outages {
		s := o.Start.String() + "+" + o.Duration.String()
		if o.Every > 0 {
			s += "/" + o.Every.String()
		}
		outages = append(outages, s)
	}
	c.Outage = strings.Join(outages, ",")
	if describer, ok := d.(Describer); ok {
		c.Transport = maps.Clone(describer.Describe())
	}
	return c
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
