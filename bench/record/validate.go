package record

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
)

// Validate checks that r is complete and agrees with itself: as many rounds as
// configured, numbered and seeded in order, figures finite and not negative,
// distributions ascending and in line with the percentiles, errors and OK
// consistent, at least as much on the wire as was verified, and Median, Min,
// Max, Errors and OK as Aggregate computes them.
func (r *Result) Validate() error {
	if r.Schema != Schema {
		return fmt.Errorf("record: schema is %q; allowed: %q", r.Schema, Schema)
	}
	if r.Config.RoundCount < 1 || len(r.Rounds) != r.Config.RoundCount {
		return fmt.Errorf("record: %d rounds; the configuration says %d", len(r.Rounds), r.Config.RoundCount)
	}
	for i := range r.Rounds {
		round := &r.Rounds[i]
		if round.Round != i+1 {
			return fmt.Errorf("record: rounds[%d].round is %d; allowed: %d", i, round.Round, i+1)
		}
		if want := r.Config.Seed + uint64(i); round.Seed != want {
			return fmt.Errorf("record: rounds[%d].seed is %d; allowed: %d", i, round.Seed, want)
		}
		if err := round.validate(); err != nil {
			return fmt.Errorf("record: rounds[%d].%w", i, err)
		}
	}
	again := Result{Rounds: r.Rounds}
	again.Aggregate()
	switch {
	case again.OK != r.OK:
		return fmt.Errorf("record: ok is %v; the rounds say %v", r.OK, again.OK)
	case again.Errors != r.Errors:
		return fmt.Errorf("record: errors are not the sums over the rounds")
	case !reflect.DeepEqual(again.Median, r.Median):
		return fmt.Errorf("record: median is not the median of the rounds")
	case !reflect.DeepEqual(again.Min, r.Min):
		return fmt.Errorf("record: min is not the minimum of the rounds")
	case !reflect.DeepEqual(again.Max, r.Max):
		return fmt.Errorf("record: max is not the maximum of the rounds")
	}
	return nil
}

func (r *Round) validate() error {
	v := reflect.ValueOf(&r.Metrics).Elem()
	for i := range v.NumField() {
		f := asFloat(v.Field(i))
		name := v.Type().Field(i).Tag.Get("json")
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return fmt.Errorf("%s is not a finite number", name)
		}
		if f < 0 {
			return fmt.Errorf("%s is %v; allowed: 0 or more", name, f)
		}
	}
	if err := r.validateDistribution(); err != nil {
		return err
	}
	if r.OK {
		switch {
		case r.Errors.Total() != 0:
			return fmt.Errorf("ok is true with errors: %v", r.Errors)
		case r.RoundTrips == 0:
			return fmt.Errorf("ok is true without any round trip")
		case !r.WarmupOK, !r.Drained:
			return fmt.Errorf("ok is true with a failed warmup or drain")
		case r.ElapsedSeconds <= 0:
			return fmt.Errorf("ok is true without measured time")
		}
	}
	return nil
}

// validateDistribution checks that both columns ascend and agree with the
// percentiles among the metrics.
func (r *Round) validateDistribution() error {
	known := map[float64]float64{50: r.RTTP50, 95: r.RTTP95, 99: r.RTTP99}
	last := Percentile{Percent: -1}
	for i, p := range r.RTTDistribution {
		switch want, ok := known[p.Percent]; {
		case !(p.Percent > last.Percent && p.Percent <= 100): // no number is not above another
			return fmt.Errorf("rtt_distribution[%d].percent is %v; allowed: above the one before, 0 to 100", i, p.Percent)
		case !(p.RTT >= last.RTT) || math.IsInf(p.RTT, 0):
			return fmt.Errorf("rtt_distribution[%d].us is %v; allowed: a finite number, at least the one before", i, p.RTT)
		case ok && p.RTT != want:
			return fmt.Errorf("rtt_distribution[%d].us is %v; rtt_p%v_us is %v", i, p.RTT, p.Percent, want)
		}
		last = p
	}
	return nil
}

func appendCounter(b []byte, name string, n uint64) []byte {
	b = append(b, name...)
	b = append(b, ' ')
	return strconv.AppendUint(b, n, 10)
}
