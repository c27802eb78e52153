package record

import (
	"math"
	"reflect"
	"slices"
)

// Aggregate sets Median, Min, Max, Errors and OK from the rounds. Failed rounds
// count in Errors and are left out of the figures.
func (r *Result) Aggregate() {
	r.Errors = Errors{}
	r.OK = len(r.Rounds) > 0
	r.Median, r.Min, r.Max = nil, nil, nil
	var good []Metrics
	for i := range r.Rounds {
		r.Errors.Add(r.Rounds[i].Errors)
		if r.Rounds[i].OK {
			good = append(good, r.Rounds[i].Metrics)
		} else {
			r.OK = false
		}
	}
	if len(good) == 0 {
		return
	}
	r.Median, r.Min, r.Max = new(Metrics), new(Metrics), new(Metrics)
	med, lo, hi := reflect.ValueOf(r.Median).Elem(), reflect.ValueOf(r.Min).Elem(), reflect.ValueOf(r.Max).Elem()
	for f := range med.NumField() {
		values := make([]float64, len(good))
		for i := range good {
			values[i] = asFloat(reflect.ValueOf(&good[i]).Elem().Field(f))
		}
		slices.Sort(values)
		n := len(values)
		setFloat(lo.Field(f), values[0])
		setFloat(hi.Field(f), values[n-1])
		setFloat(med.Field(f), (values[(n-1)/2]+values[n/2])/2)
	}
}

// asFloat reads a field of Metrics; false is 0 and true is 1, so that the
// minimum of flags is "all" and the maximum is "any".
func asFloat(v reflect.Value) float64 {
	switch v.Kind() {
	case reflect.Float64:
		return v.Float()
	case reflect.Uint64:
		return float64(v.Uint())
	default:
		if v.Bool() {
			return 1
		}
		return 0
	}
}

func setFloat(v reflect.Value, f float64) {
	switch v.Kind() {
	case reflect.Float64:
		v.SetFloat(f)
	case reflect.Uint64:
		v.SetUint(uint64(math.Round(f)))
	default:
		v.SetBool(f > 0.5)
	}
}

// Add adds o to e.
func (e *Errors) Add(o Errors) {
	sum, add := reflect.ValueOf(e).Elem(), reflect.ValueOf(o)
	for i := range sum.NumField() {
		sum.Field(i).SetUint(sum.Field(i).Uint() + add.Field(i).Uint())
	}
}

// Total is the sum of all counters.
func (e Errors) Total() uint64 {
	var total uint64
	e.each(func(_ string, n uint64) { total += n })
	return total
}

// each calls f for every counter in the order of the struct, with its name in
// JSON.
func (e Errors) each(f func(name string, n uint64)) {
	v := reflect.ValueOf(e)
	for i := range v.NumField() {
		f(v.Type().Field(i).Tag.Get("json"), v.Field(i).Uint())
	}
}

// String lists the counters that are not 0, as "content 2, order 1", or returns
// "none".
func (e Errors) String() string {
	var b []byte
	e.each(func(name string, n uint64) {
		if n == 0 {
			return
		}
		if b != nil {
			b = append(b, ", "...)
		}
		b = appendCounter(b, name, n)
	})
	if b == nil {
		return "none"
	}
	return string(b)
}
