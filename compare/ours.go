package main

import (
	"maps"

	"github.com/openarkstudio/arknet-go/bench"
	"github.com/openarkstudio/arknet-go/rudp"
)

// ourPeers are package rudp in the configurations that users choose between.
func ourPeers() []peer {
	return []peer{
		ourPeer("rudp", "this project, defaults: adaptive FEC, profile balanced", rudp.Config{}),
		ourPeer("rudp-fast", "the same with FEC profile fast",
			rudp.Config{FEC: rudp.FEC{Profile: rudp.FECFast}}),
		ourPeer("rudp-off", "FEC off",
			rudp.Config{FEC: rudp.FEC{Policy: rudp.FECOff}}),
		ourPeer("rudp-coded", "FEC off, coded retransmission",
			rudp.Config{FEC: rudp.FEC{Policy: rudp.FECOff}, Retransmit: rudp.RetransmitCoded}),
	}
}

func ourPeer(name, about string, config rudp.Config) peer {
	return peer{
		name:  name,
		about: about,
		ours:  true,
		open: func(tuning) bench.Driver {
			d, err := bench.RUDP(&config)
			if err != nil {
				panic("BUG: " + err.Error()) // the configurations above are constants
			}
			return namedDriver{d, name}
		},
	}
}

// namedDriver tells configurations of one driver apart.
type namedDriver struct {
	bench.Driver
	name string
}

// Name implements bench.Driver.
func (d namedDriver) Name() string { return d.name }

// Describe implements bench.Describer.
func (d namedDriver) Describe() map[string]any {
	if inner, ok := d.Driver.(bench.Describer); ok {
		return maps.Clone(inner.Describe())
	}
	return nil
}
