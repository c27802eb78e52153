package main

import (
	"context"

	"github.com/openarkstudio/arknet-go/bench"
	"github.com/openarkstudio/arknet-go/bench/record"
)

// runRound runs one round of a driver in this process.
func runRound(ctx context.Context, d bench.Driver, o order) (*record.Result, error) {
	config, err := o.Load.config(o.Seed)
	if err != nil {
		return nil, err
	}
	return bench.Run(ctx, d, config)
}
