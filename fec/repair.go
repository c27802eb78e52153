package fec

// A Repair says what a repair payload is: the sum of the coded source symbols
// First to First+Span-1, each times [Coefficient](Seed, id). It travels beside
// the payload; how is up to the protocol.
//
// Two repairs help each other as long as they differ in window or seed. So
// give each repair of a flow the next seed, modulo [Seeds] ([Sliding]); or, over
// fixed groups of symbols, number the repairs of a group from 0 ([Block]).
type Repair struct {
	First uint64 // id of the first source symbol of the window
	Span  int    // number of source symbols in the window, 1 to 128
	Seed  uint8  // row of the generator, 0 to 127
}

// Sliding returns the n-th repair of a flow, over span symbols from first on. It
// is the sliding-window code: windows of successive repairs may overlap in any
// way.
func Sliding(first uint64, span int, n uint64) Repair {
	return Repair{First: first, Span: span, Seed: uint8(n % Seeds)}
}

// Block returns parity number index, 0 to 127, of the group of k symbols that
// starts with first. It is the Reed-Solomon block code: any k of the group's
// symbols and parities restore the group.
func Block(first uint64, k, index int) Repair {
	return Repair{First: first, Span: k, Seed: uint8(index)}
}

// End returns the id one behind the window.
func (r Repair) End() uint64 { return r.First + uint64(r.Span) }

// valid reports whether r names a window of at most span symbols and a row of the
// generator.
func (r Repair) valid(span int) bool {
	return r.Span >= 1 && r.Span <= span && r.Seed < Seeds
}
