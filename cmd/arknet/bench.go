package main

import (
	"errors"
	"fmt"

	"github.com/openarkstudio/arknet-go/bench"
	"github.com/openarkstudio/arknet-go/bench/record"
)

// rudpCommand is arknet bench rudp.
type rudpCommand struct {
	Workload choice `choices:"echo,stream,connect" default:"echo" placeholder:"NAME" help:"Closed loop, one way, or handshakes." group:"Load:"`
	loadFlags
	Profile choice `choices:"none,random,burst,sustained" default:"random" placeholder:"NAME" help:"What the path does; other flags change single values of it." group:"Network, each direction:"`
	impairmentFlags
	transportFlags
	outputFlags
}

// Help is the text below the flags.
func (rudpCommand) Help() string {
	return `
Server, relay and clients run in this process, on loopback. Each echo is checked for content
and order, each send for its completion, and a run in which the relay overflowed is invalid.

Profiles, for each direction:

    none       a perfect link
    random     5 % loss, 10 ms, 1 % duplicated, 5 % delayed by a further 15 ms
    burst      as random, but 3 consecutive datagrams of every 100 lost instead
    sustained  as burst, plus 2 % loss of the rest

Examples:

    arknet bench rudp
    arknet bench rudp --profile none --json > result.json
    arknet bench rudp --profile burst --payload 64 --window 64 --rounds 1
    arknet bench rudp --workload stream --profile none --rate-mbit 20 --delay-ms 20 --clients 1
    arknet bench rudp --workload connect --profile none --delay-ms 10 --clients 16

Exit status: 0 all checks passed, 1 a round failed, 2 bad usage.`
}

// rawUDPCommand is arknet bench raw-udp.
type rawUDPCommand struct {
	Batch bool `help:"Read and write several datagrams with one system call, where there is one." group:"Load:"`
	loadFlags
	Profile choice `choices:"none" default:"none" placeholder:"NAME" help:"Nothing here repairs loss." group:"Network, each direction:"`

	DelayMS  *decimal `name:"delay-ms" range:"0..3600000" placeholder:"MS" help:"Delay, one way." group:"Network, each direction:"`
	JitterMS *decimal `name:"jitter-ms" range:"0..3600000" placeholder:"MS" help:"Largest extra delay; the order is kept." group:"Network, each direction:"`
	outputFlags
}

// Help is the text below the flags.
func (rawUDPCommand) Help() string {
	return `
One datagram per message, one system call per datagram unless --batch is given, no headers, no
repair: what reliable transports are measured against. It loses nothing on a path without loss unless a socket buffer
overflows; that is counted as lost and fails the run.

Examples:

    arknet bench raw-udp
    arknet bench raw-udp --batch
    arknet bench raw-udp --payload 64 --window 1 --clients 1 --json

Exit status: 0 all checks passed, 1 a round failed, 2 bad usage.`
}

// Run runs arknet bench rudp.
func (c *rudpCommand) Run(a *app) error {
	impairment, err := c.apply(a, c.Profile)
	if err != nil {
		return err
	}
	cfg, err := c.loadFlags.config(a, c.Workload, c.Profile, impairment)
	if err != nil {
		return err
	}
	transport, err := c.transportFlags.config(a)
	if err != nil {
		return err
	}
	d, err := bench.RUDP(transport)
	if err != nil {
		return usagef("%v", err)
	}
	return a.bench(placed{d, &c.transportFlags}, cfg, c.outputFlags)
}

// Run runs arknet bench raw-udp.
func (c *rawUDPCommand) Run(a *app) error {
	changes := impairmentFlags{DelayMS: c.DelayMS, JitterMS: c.JitterMS}
	impairment, err := changes.apply(a, c.Profile)
	if err != nil {
		return err
	}
	cfg, err := c.loadFlags.config(a, choice(bench.Echo), c.Profile, impairment)
	if err != nil {
		return err
	}
	if can := bench.RawUDP().Capabilities(); cfg.Payload > can.MaxMessage {
		return usagef("--payload is %d; allowed with raw-udp: %d to %d", cfg.Payload, bench.MinPayload, can.MaxMessage)
	}
	d := bench.RawUDP()
	if c.Batch {
		d = bench.RawUDPBatch()
	}
	return a.bench(d, cfg, c.outputFlags)
}

// bench runs a configuration and writes its result.
func (a *app) bench(d bench.Driver, cfg bench.Config, out outputFlags) error {
	if err := cfg.Validate(); err != nil {
		return usagef("%v", err)
	}
	sink, err := out.open()
	if err != nil {
		return err
	}
	defer sink.discard()
	bar := a.progress(cfg)
	cfg.Progress = bar.update
	result, err := bench.Run(a.ctx, d, cfg)
	bar.finish()
	if err != nil {
		return err
	}
	if err := errors.Join(out.write(a.out, result), sink.commit(result)); err != nil {
		return err
	}
	return verdict(result)
}

// verdict is an error that names the first failed round.
func verdict(r *record.Result) error {
	failed := 0
	var text string
	for i := range r.Rounds {
		round := &r.Rounds[i]
		if round.OK {
			continue
		}
		failed++
		if text == "" {
			text = fmt.Sprintf("round %d failed: %s (%v)", round.Round, firstLine(round.Failure), round.Errors)
		}
	}
	if failed == 0 {
		return nil
	}
	if failed > 1 {
		text = fmt.Sprintf("%d rounds failed, the first: %s", failed, text)
	}
	return &failure{text}
}
