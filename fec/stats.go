package fec

// Outcome says what became of a repair at the moment it was handed in. A repair
// that is held may still be used, or dropped, later: DecoderStats has the account.
type Outcome uint8

// The outcomes of [Decoder.AddRepair].
const (
	// Restored means that the repair solved at least one symbol at once.
	Restored Outcome = iota + 1

	// Held means that it is one more independent equation, not solvable yet.
	Held

	// Useless means that it says nothing new: all symbols of its window are known,
	// or it follows from the equations held, as a duplicate does.
	Useless

	// Late means that its whole window is below the Advance point.
	Late

	// Forgotten means that it covers symbols which are known but no longer kept.
	Forgotten

	// BadWindow means a span or seed out of range, or a window further ahead than
	// Limits.Symbols.
	BadWindow

	// BadLength means a payload that is too short for a symbol of the window, or
	// larger than Limits.SymbolBytes allows.
	BadLength

	// BadChecksum means that the solution is no valid symbol, so that this repair or
	// one it was combined with is wrong. All of those were dropped.
	BadChecksum

	// OverLimit means that Limits.Work or Limits.Bytes did not allow it.
	OverLimit
)

// String returns the name of o in lower case.
func (o Outcome) String() string {
	switch o {
	case Restored:
		return "restored"
	case Held:
		return "held"
	case Useless:
		return "useless"
	case Late:
		return "late"
	case Forgotten:
		return "forgotten"
	case BadWindow:
		return "bad window"
	case BadLength:
		return "bad length"
	case BadChecksum:
		return "bad checksum"
	case OverLimit:
		return "over limit"
	}
	return "unknown outcome"
}

// DecoderStats counts what a [Decoder] did since it was made. Each repair handed
// in is in exactly one of the fields from Used to Rows:
//
//	Repairs = Used + Useless + Late + Forgotten + BadWindow + BadLength +
//	          BadChecksum + OverLimit + Evicted + Expired + Rows
type DecoderStats struct {
	Sources  uint64 // source symbols handed in that were not known before
	Restored uint64 // source symbols restored that were still wanted
	Repairs  uint64 // repairs handed in

	Used        uint64 // repairs that a symbol was solved with
	Useless     uint64 // nothing new: see Outcome Useless
	Late        uint64 // window below the Advance point
	Forgotten   uint64 // window touches symbols no longer kept
	BadWindow   uint64 // span, seed or distance out of range
	BadLength   uint64 // payload too short for its window, or too long
	BadChecksum uint64 // dropped because a solution was no valid symbol
	OverLimit   uint64 // refused by Limits.Work or Limits.Bytes
	Evicted     uint64 // dropped unsolved: Limits.Rows or Limits.Bytes
	Expired     uint64 // dropped unsolved: Advance or Release
	Rows        int    // held now: independent equations, not solved yet

	SourcesEvicted uint64 // source symbols dropped by Limits.Symbols or Limits.Bytes
	SourcesRefused uint64 // source symbols above Limits.SymbolBytes
	MulAdds        uint64 // multiply-and-add passes over one payload

	Symbols   int // source symbols kept now, received and restored
	Bytes     int // memory held now, in bytes; never above Limits.Bytes
	PeakBytes int // at least the largest value that Bytes had, at most Limits.Bytes
}
