package fec

// reach learns how far behind the Advance point repairs begin, and so how many
// delivered symbols are worth keeping: a sender whose window is 16 symbols needs
// about 16 of them here, not 128, and one that sends no repairs needs none.
type reach struct {
	keep    int // symbols to keep behind the Advance point
	span    int // upper bound of keep
	deepest int // largest reach in this period
	before  int // and in the one before
	repairs int // repairs in this period
	quiet   int // source symbols since the last repair
}

const (
	reachStart   = 48   // before anything is known: an initial window of 32, and reachSlack
	reachSlack   = 16   // symbols; senders make a repair at least that often in a burst
	reachPeriod  = 64   // repairs; one deep one is remembered for one to two periods
	reachForever = 1024 // source symbols without a repair: the sender makes none
)

// start forgets what was learned.
func (r *reach) start(span int) {
	*r = reach{keep: min(reachStart, span), span: span}
}

// source counts a source symbol. It reports whether keep has just become 0
// because no repair came for long.
func (r *reach) source() bool {
	r.quiet++
	if r.quiet < reachForever || r.keep == 0 {
		return false
	}
	r.keep, r.deepest, r.before, r.repairs = 0, 0, 0, 0
	return true
}

// repair takes how many symbols before the Advance point a repair begins; 0 or
// less when it begins behind it. More than a span cannot be wanted: such a window
// ends before the Advance point.
func (r *reach) repair(depth int64) {
	r.quiet = 0
	r.deepest = max(r.deepest, int(min(depth, int64(r.span))))
	need := max(r.deepest, r.before)
	need = min(need+max(need/4, reachSlack), r.span)
	r.keep = max(r.keep, need)
	if r.repairs++; r.repairs == reachPeriod {
		r.keep = need
		r.before, r.deepest, r.repairs = r.deepest, 0, 0
	}
}
