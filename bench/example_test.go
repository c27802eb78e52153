package bench_test

import (
	"context"
	"fmt"
	"time"

	"github.com/openarkstudio/arknet-go/bench"
	"github.com/openarkstudio/arknet-go/netem"
)

// A short run of the floor: plain UDP through a relay that changes nothing.
func Example() {
	cfg := bench.Standard()
	cfg.Profile, cfg.Impairment = "none", netem.Config{}
	cfg.Warmup, cfg.Duration, cfg.Rounds = 10*time.Millisecond, 50*time.Millisecond, 1
	result, err := bench.Run(context.Background(), bench.RawUDP(), cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	m := result.Median
	fmt.Println("ok:", result.OK, "errors:", result.Errors)
	fmt.Println("overhead:", m.WireOverheadPercent, "%; every round trip completed two sends:", m.SendCompletions == 2*m.RoundTrips)
	// Output:
	// ok: true errors: none
	// overhead: 0 %; every round trip completed two sends: true
}
