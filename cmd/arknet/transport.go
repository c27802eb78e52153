package main

import (
	"maps"

	"github.com/openarkstudio/arknet-go/bench"
	"github.com/openarkstudio/arknet-go/rudp"
)

// transportFlags are the parameters of rudp.
type transportFlags struct {
	FEC             choice   `name:"fec" choices:"off,fixed,adaptive" default:"adaptive" placeholder:"POLICY" help:"Forward error correction." group:"Transport:"`
	FECScheme       choice   `name:"fec-scheme" choices:"sliding,block" default:"sliding" placeholder:"NAME" help:"Kind of code." group:"Transport:"`
	FECProfile      choice   `name:"fec-profile" choices:"eco,balanced,fast" placeholder:"NAME" help:"How much adaptive coding spends; balanced unless given." group:"Transport:"`
	FECParityBudget *whole   `name:"fec-parity-budget" range:"1..1000" placeholder:"PERCENT" help:"Most parity, of data bytes; 100 for adaptive sliding and 50 else unless given." group:"Transport:"`
	FECData         *whole   `name:"fec-data" range:"1..128" placeholder:"N" help:"Data symbols of the fixed ratio or of a block; 8 unless given." group:"Transport:"`
	FECParity       *whole   `name:"fec-parity" range:"1..64" placeholder:"N" help:"Parity symbols of the fixed ratio; 2 unless given." group:"Transport:"`
	FECParityLimit  *whole   `name:"fec-parity-limit" range:"1..64" placeholder:"N" help:"Most parity symbols of an adaptive block; 4 unless given." group:"Transport:"`
	FECGroupWaitMS  *decimal `name:"fec-group-wait-ms" range:"0.1..1000" placeholder:"MS" help:"How long a block may wait to fill; 2 unless given." group:"Transport:"`
	FECRetainBytes  *whole   `name:"fec-retain-bytes" range:"131072..67108864" placeholder:"BYTES" help:"Memory for coding per session and direction; 524288 unless given." group:"Transport:"`

	Retransmit  choice   `choices:"single,coded" default:"single" placeholder:"NAME" help:"How losses are repaired." group:"Transport:"`
	Congestion  choice   `choices:"copa,copa-competitive,newreno,none" default:"copa" placeholder:"NAME" help:"Congestion control; none needs --max-rate-mbit." group:"Transport:"`
	MaxRateMbit *decimal `range:"0.008..800000" placeholder:"MBIT" help:"Most that a session sends, in 10^6 bit/s." group:"Transport:"`
	MinRateMbit *decimal `range:"0.008..800000" placeholder:"MBIT" help:"Rate that congestion control does not go below." group:"Transport:"`
	MTU         whole    `name:"mtu" range:"576..16384" default:"1200" placeholder:"BYTES" help:"Longest datagram." group:"Transport:"`
	SendWindow  whole    `range:"16384..1073741824" default:"524288" placeholder:"BYTES" help:"Most on its way per session and direction." group:"Transport:"`
	RecvWindow  whole    `range:"16384..1073741824" default:"4194304" placeholder:"BYTES" help:"Most received and not read." group:"Transport:"`
	TLS         later    `name:"tls" help:"Encrypt with TLS 1.3." group:"Transport:"`

	IOModel   choice  `name:"io-model" choices:"shared,sharded" default:"shared" placeholder:"NAME" help:"One socket on the server, or several." group:"Transport:"`
	IOThreads whole   `name:"io-threads" range:"1..64" default:"1" placeholder:"N" help:"Receive lanes per socket." group:"Transport:"`
	Backend   choice  `choices:"std,epoll" default:"std" placeholder:"NAME" help:"IO backend." group:"Transport:"`
	Placement choice  `choices:"same,split" placeholder:"NAME" help:"Whether both ends of a session share a loop." group:"Transport:"`
	Connect   address `placeholder:"HOST:PORT" help:"Measure against a server elsewhere." group:"Transport:"`
}

// config builds the configuration of the endpoints.
func (f *transportFlags) config(a *app) (*rudp.Config, error) {
	if err := f.checkFEC(a); err != nil {
		return nil, err
	}
	c := &rudp.Config{
		MTU:        int(f.MTU),
		SendWindow: int(f.SendWindow),
		RecvWindow: int(f.RecvWindow),
		Congestion: string(f.Congestion),
		Retransmit: string(f.Retransmit),
		FEC: rudp.FEC{
			Policy:       string(f.FEC),
			Scheme:       string(f.FECScheme),
			Profile:      string(f.FECProfile),
			Data:         orZero(f.FECData),
			Parity:       orZero(f.FECParity),
			ParityLimit:  orZero(f.FECParityLimit),
			ParityBudget: orZero(f.FECParityBudget),
			Retain:       orZero(f.FECRetainBytes),
		},
	}
	if f.FECGroupWaitMS != nil {
		c.FEC.GroupWait = f.FECGroupWaitMS.milliseconds()
	}
	if f.MaxRateMbit != nil {
		c.MaxRate = int(float64(*f.MaxRateMbit) * 1e6 / 8)
	}
	if f.MinRateMbit != nil {
		c.MinRate = int(float64(*f.MinRateMbit) * 1e6 / 8)
	}
	if c.Congestion == rudp.CongestionNone && c.MaxRate == 0 {
		return nil, usagef("--congestion none needs --max-rate-mbit; allowed: 0.008 to 800000")
	}
	if c.MaxRate > 0 && c.MinRate > c.MaxRate {
		return nil, usagef("--min-rate-mbit is above --max-rate-mbit; allowed: up to %v", float64(*f.MaxRateMbit))
	}
	if err := c.Validate(); err != nil {
		return nil, usagef("%v", err)
	}
	return c, nil
}

// checkFEC refuses parameters of a policy or a scheme that is not in use.
func (f *transportFlags) checkFEC(a *app) error {
	off, fixed, block := f.FEC == rudp.FECOff, f.FEC == rudp.FECFixed, f.FECScheme == rudp.FECBlock
	for _, c := range []struct {
		flag    string
		useless bool
		needs   string
	}{
		{"fec-scheme", off, "--fec fixed or adaptive"},
		{"fec-profile", off || fixed, "--fec adaptive"},
		{"fec-parity-budget", off, "--fec fixed or adaptive"},
		{"fec-data", off || !fixed && !block, "--fec fixed or --fec-scheme block"},
		{"fec-parity", !fixed, "--fec fixed"},
		{"fec-parity-limit", off || fixed || !block, "--fec adaptive with --fec-scheme block"},
		{"fec-group-wait-ms", off || !block, "--fec-scheme block"},
		{"fec-retain-bytes", off, "--fec fixed or adaptive"},
	} {
		if c.useless && a.given[c.flag] {
			return usagef("--%s has no meaning with --fec %s --fec-scheme %s; allowed: with %s", c.flag, f.FEC, f.FECScheme, c.needs)
		}
	}
	return nil
}

func orZero(n *whole) int {
	if n == nil {
		return 0
	}
	return int(*n)
}

// placed adds to what a driver says about itself where it runs.
type placed struct {
	bench.Driver
	flags *transportFlags
}

func (p placed) Describe() map[string]any {
	m := map[string]any{}
	if d, ok := p.Driver.(bench.Describer); ok {
		m = maps.Clone(d.Describe())
	}
	m["io_model"] = string(p.flags.IOModel)
	m["io_threads"] = int(p.flags.IOThreads)
	m["backend"] = string(p.flags.Backend)
	return m
}
