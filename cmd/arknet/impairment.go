package main

import (
	"math"

	"github.com/openarkstudio/arknet-go/netem"
)

// impairmentFlags change what a profile says. They hold for each direction.
type impairmentFlags struct {
	LossPercent      *decimal `range:"0..100" placeholder:"PERCENT" help:"Independent loss." group:"Network, each direction:"`
	BurstLoss        burst    `placeholder:"K/N" help:"Loss of K consecutive datagrams of every N." group:"Network, each direction:"`
	DelayMS          *decimal `name:"delay-ms" range:"0..3600000" placeholder:"MS" help:"Delay, one way." group:"Network, each direction:"`
	JitterMS         *decimal `name:"jitter-ms" range:"0..3600000" placeholder:"MS" help:"Largest extra delay; the order is kept." group:"Network, each direction:"`
	DuplicatePercent *decimal `range:"0..100" placeholder:"PERCENT" help:"Datagrams that arrive twice." group:"Network, each direction:"`
	ReorderPercent   *decimal `range:"0..100" placeholder:"PERCENT" help:"Datagrams that are delayed further, so that others overtake them." group:"Network, each direction:"`
	ReorderDelayMS   *decimal `name:"reorder-delay-ms" range:"0..3600000" placeholder:"MS" help:"By how much; 15 unless given." group:"Network, each direction:"`
	RateMbit         *decimal `range:"0.001..1000000" placeholder:"MBIT" help:"Rate limit in 10^6 bit/s of datagram payload." group:"Network, each direction:"`
	QueueBytes       *whole   `range:"1..1073741824" placeholder:"BYTES" help:"Queue of the rate limit; 262144 unless given." group:"Network, each direction:"`
	Outage           outages  `placeholder:"START+LENGTH[/PERIOD]" help:"Times in which everything is lost, such as 2s+500ms/10s; a list with commas. Counted from the start of the relay." group:"Network, each direction:"`
}

// defaultReorderDelay is in milliseconds.
const defaultReorderDelay = 15

// apply returns the profile with the changes.
func (f *impairmentFlags) apply(a *app, profile choice) (netem.Config, error) {
	c, err := netem.Profile(string(profile))
	if err != nil {
		return c, usagef("--profile: %v", err)
	}
	percent := func(dst *float64, p *decimal) {
		if p != nil {
			*dst = float64(*p) / 100
		}
	}
	percent(&c.Loss, f.LossPercent)
	percent(&c.Duplicate, f.DuplicatePercent)
	percent(&c.Late.Share, f.ReorderPercent)
	if a.given["burst-loss"] {
		c.Burst = netem.Burst(f.BurstLoss)
	}
	if f.DelayMS != nil {
		c.Delay = f.DelayMS.milliseconds()
	}
	if f.JitterMS != nil {
		c.Jitter = f.JitterMS.milliseconds()
	}
	switch {
	case f.ReorderDelayMS != nil && c.Late.Share == 0:
		return c, usagef("--reorder-delay-ms has no meaning without reordering; allowed: together with --reorder-percent above 0")
	case f.ReorderDelayMS != nil:
		c.Late.Delay = f.ReorderDelayMS.milliseconds()
	case c.Late.Share == 0:
		c.Late.Delay = 0
	case c.Late.Delay == 0:
		c.Late.Delay = decimal(defaultReorderDelay).milliseconds()
	}
	if f.RateMbit != nil {
		c.Rate = int64(math.Round(float64(*f.RateMbit) * 1e6))
	}
	if f.QueueBytes != nil {
		if c.Rate == 0 {
			return c, usagef("--queue-bytes has no meaning without a rate limit; allowed: together with --rate-mbit")
		}
		c.QueueBytes = int(*f.QueueBytes)
	}
	if c.Rate > 0 && c.QueueBytes == 0 {
		c.QueueBytes = netem.DefaultQueueBytes
	}
	c.Outages = append(c.Outages, f.Outage...)
	if err := c.Validate(); err != nil {
		return c, usagef("%v", err)
	}
	return c, nil
}
