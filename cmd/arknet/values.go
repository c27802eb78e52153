package main

import (
	"errors"
	"fmt"
	"math"
	"net"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/openarkstudio/arknet-go/netem"
)

// notBuilt lists the flags of which not every value is built yet, with what is
// allowed until then; nothing means that the flag itself is refused. Deleting
// a line enables the rest.
var notBuilt = map[string][]string{
	"io-model":   {"shared"},
	"io-threads": {"1"},
	"backend":    {"std"},
	"tls":        nil,
	"placement":  nil,
	"connect":    nil,
}

// allowedNow returns what is built of a flag, and false when all of it is.
func allowedNow(flag string) (allowed []string, restricted bool) {
	allowed, restricted = notBuilt[flag]
	return allowed, restricted
}

// helpText adds to the help of a flag what is allowed.
func helpText(v *kong.Value) string {
	text := kong.DefaultHelpValueFormatter(v)
	var notes []string
	if v.HasDefault && v.Default != "" {
		notes = append(notes, "default "+v.Default)
	}
	if low, high, ok := strings.Cut(v.Tag.Get("range"), ".."); ok {
		notes = append(notes, low+" to "+high)
	}
	if choices := v.Tag.Get("choices"); choices != "" {
		notes = append(notes, strings.ReplaceAll(choices, ",", ", "))
	}
	if allowed, restricted := allowedNow(v.Name); restricted && len(allowed) == 0 {
		notes = []string{"not built yet"}
	} else if restricted {
		notes = append(notes, "so far only "+strings.Join(allowed, ", "))
	}
	if len(notes) == 0 {
		return text
	}
	return strings.TrimSuffix(text, ".") + " (" + strings.Join(notes, "; ") + ")."
}

// The types of flags. Their struct tags say what is allowed, and the text of
// each error repeats it:
//
//	whole    range:"LOW..HIGH"
//	decimal  range:"LOW..HIGH"
//	choice   choices:"a,b,c"
type (
	whole   int64
	decimal float64
	choice  string
	burst   netem.Burst
	outages []netem.Outage
	outFile string
	address string // host:port
	later   bool   // a switch that is not built yet
)

func mappers() []kong.Option {
	return []kong.Option{
		kong.TypeMapper(reflect.TypeFor[whole](), mapper(parseWhole)),
		kong.TypeMapper(reflect.TypeFor[decimal](), mapper(parseDecimal)),
		kong.TypeMapper(reflect.TypeFor[choice](), mapper(parseChoice)),
		kong.TypeMapper(reflect.TypeFor[burst](), mapper(parseBurst)),
		kong.TypeMapper(reflect.TypeFor[outages](), mapper(parseOutages)),
		kong.TypeMapper(reflect.TypeFor[outFile](), mapper(parseOutFile)),
		kong.TypeMapper(reflect.TypeFor[address](), mapper(parseAddress)),
		kong.TypeMapper(reflect.TypeFor[later](), laterMapper{}),
	}
}

// mapper adapts a parser of one value.
func mapper[T any](parse func(tag *kong.Tag, s string) (T, error)) kong.MapperFunc {
	return func(ctx *kong.DecodeContext, target reflect.Value) error {
		token := ctx.Scan.Pop()
		if token.IsEOL() {
			_, err := parse(ctx.Value.Tag, "")
			return fmt.Errorf("needs a value%s", allowedPart(err))
		}
		s := token.String()
		v, err := parse(ctx.Value.Tag, s)
		allowed, restricted := allowedNow(ctx.Value.Name)
		switch {
		case restricted && len(allowed) == 0:
			return errors.New("is not built yet; allowed: leave it out")
		case restricted && !slices.Contains(allowed, s):
			what := "is not built yet"
			if err != nil {
				what = "is not possible"
			}
			return fmt.Errorf("%q %s; allowed: %s", s, what, strings.Join(allowed, ", "))
		case err != nil:
			return err
		}
		target.Set(reflect.ValueOf(v))
		return nil
	}
}

// allowedPart is the tail "; allowed: ..." of an error.
func allowedPart(err error) string {
	if err == nil {
		return ""
	}
	if _, tail, ok := strings.Cut(err.Error(), "; allowed: "); ok {
		return "; allowed: " + tail
	}
	return ""
}

func bounds(tag *kong.Tag) (low, high string) {
	low, high, ok := strings.Cut(tag.Get("range"), "..")
	if !ok {
		panic("BUG: a number without a range")
	}
	return low, high
}

func parseWhole(tag *kong.Tag, s string) (whole, error) {
	low, high := bounds(tag)
	lo, err1 := strconv.ParseInt(low, 10, 64)
	hi, err2 := strconv.ParseInt(high, 10, 64)
	if err1 != nil || err2 != nil {
		panic("BUG: range " + tag.Get("range"))
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < lo || n > hi {
		return 0, fmt.Errorf("%q is not possible; allowed: %d to %d", s, lo, hi)
	}
	return whole(n), nil
}

func parseDecimal(tag *kong.Tag, s string) (decimal, error) {
	low, high := bounds(tag)
	lo, err1 := strconv.ParseFloat(low, 64)
	hi, err2 := strconv.ParseFloat(high, 64)
	if err1 != nil || err2 != nil {
		panic("BUG: range " + tag.Get("range"))
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(f) || f < lo || f > hi {
		return 0, fmt.Errorf("%q is not possible; allowed: %s to %s", s, low, high)
	}
	return decimal(f), nil
}

func parseChoice(tag *kong.Tag, s string) (choice, error) {
	choices := strings.Split(tag.Get("choices"), ",")
	if !slices.Contains(choices, s) {
		return "", fmt.Errorf("%q is not possible; allowed: %s", s, strings.Join(choices, ", "))
	}
	return choice(s), nil
}

func parseBurst(_ *kong.Tag, s string) (burst, error) {
	lose, every, ok := strings.Cut(s, "/")
	k, err1 := strconv.Atoi(lose)
	n, err2 := strconv.Atoi(every)
	if !ok || err1 != nil || err2 != nil || k < 1 || n < k || n > 1<<30 {
		return burst{}, fmt.Errorf("%q is not possible; allowed: LOSE/EVERY such as 3/100, with 1 <= LOSE <= EVERY <= %d", s, 1<<30)
	}
	return burst{Lose: k, Every: n}, nil
}

// parseOutages reads START+LENGTH[/PERIOD],... with durations such as 500ms.
func parseOutages(_ *kong.Tag, s string) (outages, error) {
	var list outages
	for part := range strings.SplitSeq(s, ",") {
		window, period, periodic := strings.Cut(part, "/")
		start, length, ok := strings.Cut(window, "+")
		var o netem.Outage
		var err [3]error
		o.Start, err[0] = time.ParseDuration(start)
		o.Duration, err[1] = time.ParseDuration(length)
		if periodic {
			o.Every, err[2] = time.ParseDuration(period)
		}
		if ok && err == [3]error{} {
			c := netem.Config{Outages: []netem.Outage{o}}
			ok = c.Validate() == nil && !(periodic && o.Every == 0)
		} else {
			ok = false
		}
		if !ok {
			return nil, fmt.Errorf("%q is not possible; allowed: START+LENGTH[/PERIOD],... such as 2s+500ms/10s, with START up to 1h, LENGTH above 0 and up to 1h, PERIOD longer than LENGTH and up to 24h", part)
		}
		list = append(list, o)
	}
	return list, nil
}

func parseOutFile(_ *kong.Tag, s string) (outFile, error) {
	if s == "" || strings.HasPrefix(s, "-") {
		return "", fmt.Errorf("%q is not possible; allowed: a file name", s)
	}
	return outFile(s), nil
}

func parseAddress(_ *kong.Tag, s string) (address, error) {
	_, port, err := net.SplitHostPort(s)
	if err == nil {
		_, err = net.LookupPort("udp", port)
	}
	if err != nil {
		return "", fmt.Errorf("%q is not possible; allowed: HOST:PORT with PORT 0 to 65535", s)
	}
	return address(s), nil
}

// laterMapper reads a switch that notBuilt may refuse.
type laterMapper struct{}

func (laterMapper) IsBool() bool { return true }

func (laterMapper) Decode(ctx *kong.DecodeContext, target reflect.Value) error {
	ctx.Scan.Pop()
	if _, restricted := allowedNow(ctx.Value.Name); restricted {
		return errors.New("is not built yet; allowed: leave it out")
	}
	target.SetBool(true)
	return nil
}

// milliseconds turns a flag in milliseconds into a duration.
func (d decimal) milliseconds() time.Duration { return time.Duration(float64(d) * 1e6) }

// seconds turns a flag in seconds into a duration.
func (d decimal) seconds() time.Duration { return time.Duration(float64(d) * 1e9) }
