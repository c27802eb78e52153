package netem

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// jsonConfig is the JSON form of a Config: percent and milliseconds, under the
// names of the command line. Pointers tell a field that is absent from one that
// is 0.
type jsonConfig struct {
	LossPercent      *float64            `json:"loss_percent,omitempty"`
	BurstLoss        *jsonBurst          `json:"burst_loss,omitempty"`
	GilbertElliott   *jsonGilbertElliott `json:"gilbert_elliott,omitempty"`
	DelayMS          *float64            `json:"delay_ms,omitempty"`
	JitterMS         *float64            `json:"jitter_ms,omitempty"`
	JitterReorders   *bool               `json:"jitter_reorders,omitempty"`
	ReorderPercent   *float64            `json:"reorder_percent,omitempty"`
	ReorderDelayMS   *float64            `json:"reorder_delay_ms,omitempty"`
	DuplicatePercent *float64            `json:"duplicate_percent,omitempty"`
	CorruptPercent   *float64            `json:"corrupt_percent,omitempty"`
	CorruptBits      *int                `json:"corrupt_bits,omitempty"`
	RateMbit         *float64            `json:"rate_mbit,omitempty"`
	QueueBytes       *int                `json:"queue_bytes,omitempty"`
	QueuePackets     *int                `json:"queue_packets,omitempty"`
	Police           *bool               `json:"police,omitempty"`
	MTU              *int                `json:"mtu,omitempty"`
	Outages          *[]jsonOutage       `json:"outages,omitempty"`
}

type jsonGilbertElliott struct {
	GoodToBadPercent float64 `json:"good_to_bad_percent"`
	BadToGoodPercent float64 `json:"bad_to_good_percent"`
	LossGoodPercent  float64 `json:"loss_good_percent,omitempty"`
	LossBadPercent   float64 `json:"loss_bad_percent,omitempty"`
}

type jsonOutage struct {
	StartMS    float64 `json:"start_ms"`
	DurationMS float64 `json:"duration_ms"`
	EveryMS    float64 `json:"every_ms,omitempty"`
}

// jsonBurst is written as "3/100".
type jsonBurst Burst

func (b jsonBurst) MarshalText() ([]byte, error) {
	return fmt.Appendf(nil, "%d/%d", b.Lose, b.Every), nil
}

func (b *jsonBurst) UnmarshalText(text []byte) (err error) {
	*(*Burst)(b), err = ParseBurst(string(text))
	return err
}

// ParseBurst reads a burst loss as the command line writes it: "3/100" loses 3
// consecutive datagrams of every 100, "0" and "" none.
func ParseBurst(s string) (Burst, error) {
	if s == "" || s == "0" {
		return Burst{}, nil
	}
	var b Burst
	var rest string
	if n, _ := fmt.Sscanf(s, "%d/%d%s", &b.Lose, &b.Every, &rest); n != 2 {
		return Burst{}, fmt.Errorf("netem: burst loss %q; want LOSE/EVERY, such as 3/100", s)
	}
	c := Config{Burst: b}
	return b, c.Validate()
}

// MarshalJSON writes what differs from a perfect link, with times in
// milliseconds, probabilities in percent and the rate in Mbit/s, as in
// {"loss_percent":5,"delay_ms":10}. Late is reorder_percent and reorder_delay_ms.
func (c Config) MarshalJSON() ([]byte, error) {
	j := jsonConfig{
		LossPercent:      nonZero(percent(c.Loss)),
		DelayMS:          nonZero(millis(c.Delay)),
		JitterMS:         nonZero(millis(c.Jitter)),
		JitterReorders:   nonZero(c.JitterReorders),
		ReorderPercent:   nonZero(percent(c.Late.Share)),
		ReorderDelayMS:   nonZero(millis(c.Late.Delay)),
		DuplicatePercent: nonZero(percent(c.Duplicate)),
		CorruptPercent:   nonZero(percent(c.Corrupt)),
		CorruptBits:      nonZero(c.CorruptBits),
		RateMbit:         nonZero(float64(c.Rate) / 1e6),
		QueueBytes:       nonZero(c.QueueBytes),
		QueuePackets:     nonZero(c.QueuePackets),
		Police:           nonZero(c.Police),
		MTU:              nonZero(c.MTU),
	}
	if c.Burst.Lose > 0 {
		j.BurstLoss = (*jsonBurst)(&c.Burst)
	}
	if g := c.GilbertElliott; g != (GilbertElliott{}) {
		j.GilbertElliott = &jsonGilbertElliott{
			percent(g.GoodToBad), percent(g.BadToGood), percent(g.LossGood), percent(g.LossBad),
		}
	}
	if len(c.Outages) > 0 {
		list := make([]jsonOutage, len(c.Outages))
		for i, o := range c.Outages {
			list[i] = jsonOutage{millis(o.Start), millis(o.Duration), millis(o.Every)}
		}
		j.Outages = &list
	}
	return json.Marshal(j)
}

// UnmarshalJSON changes the fields that the JSON names and leaves the others as
// they are, so that it serves for partial changes too. It refuses unknown names
// and a result that Validate refuses, and then changes nothing.
func (c *Config) UnmarshalJSON(b []byte) error {
	var j jsonConfig
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&j); err != nil {
		return fmt.Errorf("netem: config: %w", err)
	}
	n := *c
	probability := func(dst *float64, p *float64) {
		if p != nil {
			*dst = *p / 100
		}
	}
	duration := func(dst *time.Duration, ms *float64) {
		if ms != nil {
			*dst = fromMillis(*ms)
		}
	}
	probability(&n.Loss, j.LossPercent)
	probability(&n.Late.Share, j.ReorderPercent)
	probability(&n.Duplicate, j.DuplicatePercent)
	probability(&n.Corrupt, j.CorruptPercent)
	duration(&n.Delay, j.DelayMS)
	duration(&n.Jitter, j.JitterMS)
	duration(&n.Late.Delay, j.ReorderDelayMS)
	set(&n.JitterReorders, j.JitterReorders)
	set(&n.CorruptBits, j.CorruptBits)
	set(&n.QueueBytes, j.QueueBytes)
	set(&n.QueuePackets, j.QueuePackets)
	set(&n.Police, j.Police)
	set(&n.MTU, j.MTU)
	set((*jsonBurst)(&n.Burst), j.BurstLoss)
	if j.RateMbit != nil {
		n.Rate = round(*j.RateMbit * 1e6)
	}
	if g := j.GilbertElliott; g != nil {
		n.GilbertElliott = GilbertElliott{
			g.GoodToBadPercent / 100, g.BadToGoodPercent / 100, g.LossGoodPercent / 100, g.LossBadPercent / 100,
		}
	}
	if j.Outages != nil {
		n.Outages = make([]Outage, len(*j.Outages))
		for i, o := range *j.Outages {
			n.Outages[i] = Outage{fromMillis(o.StartMS), fromMillis(o.DurationMS), fromMillis(o.EveryMS)}
		}
	}
	if err := n.Validate(); err != nil {
		return err
	}
	*c = n
	return nil
}

func set[T any](dst *T, v *T) {
	if v != nil {
		*dst = *v
	}
}

func nonZero[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// percent rounds away the noise of the multiplication: 0.07 is 7, not
// 7.000000000000001.
func percent(p float64) float64 {
	const unit = 1e10
	return float64(round(p*100*unit)) / unit
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func fromMillis(ms float64) time.Duration {
	return time.Duration(round(ms * float64(time.Millisecond)))
}

// round keeps what no field allows out of reach of the undefined conversion.
func round(v float64) int64 {
	const limit = 1 << 62
	return int64(max(-limit, min(limit, math.Round(v))))
}
