package fec

import "fmt"

// Config configures an [Encoder] or a [Decoder]. The zero value works.
type Config struct {
	// First is the id of the first source symbol of the flow. Default 0. Ids are
	// serial numbers modulo 2^64, so any start is good.
	First uint64

	// Epoch goes into the checksum of every symbol; both ends need the same. Give
	// each session its own, and repairs that stray in from another session can
	// never restore anything. Default 0.
	Epoch uint64

	// Limits bound what the peer can make this end hold and do.
	Limits Limits
}

// Limits bound memory and work. A field that is 0 takes its default.
type Limits struct {
	// SymbolBytes is the size of the largest source symbol, in bytes: 1 to
	// 65,529, default 1,500. Both ends may differ; a repair that is larger than
	// the decoder's limit allows is rejected.
	SymbolBytes int

	// Span is the largest number of source symbols under one repair: 1 to 128,
	// default 128.
	Span int

	// Symbols is the range of ids within which source symbols are held: 1 to
	// 16,384, default 1,024. The oldest are dropped first. It is also how far a
	// repair may reach ahead of the highest id that the decoder has seen.
	Symbols int

	// Bytes is the memory for symbols, equations and their tables: 32 KiB to
	// 1 GiB and at least 4 times SymbolBytes, default 512 KiB. At the limit the
	// oldest symbols and equations are dropped first, and counted. Nothing is
	// allocated before it is needed.
	Bytes int

	// Rows is the number of equations a decoder holds while it cannot solve them:
	// 1 to 255, default 128. The oldest are dropped first, and counted.
	Rows int

	// Work is how many multiply-and-add passes over one payload a repair may cost
	// the decoder: 1 to 1,024, default 256. A repair that needs more is rejected
	// before the first pass. What one call costs at most is in the package
	// documentation.
	Work int
}

const (
	defaultSymbolBytes = 1500
	defaultSymbols     = 1024
	defaultBytes       = 512 << 10
	defaultRows        = 128
	defaultWork        = 256

	maxSymbols = 1 << 14
	minBytes   = 32 << 10
	maxBytes   = 1 << 30
	maxRows    = 255 // a row and one being added are named by one byte
	maxWork    = 1 << 10
)

// Validate returns an error that names the first field out of range. NewEncoder
// and NewDecoder call it.
func (c Config) Validate() error { return c.Limits.Validate() }

// Validate returns an error that names the first field out of range.
func (l Limits) Validate() error {
	for _, f := range []struct {
		name          string
		value, lo, hi int
	}{
		{"SymbolBytes", l.SymbolBytes, 1, MaxSymbolBytes},
		{"Span", l.Span, 1, MaxSpan},
		{"Symbols", l.Symbols, 1, maxSymbols},
		{"Bytes", l.Bytes, minBytes, maxBytes},
		{"Rows", l.Rows, 1, maxRows},
		{"Work", l.Work, 1, maxWork},
	} {
		if f.value != 0 && (f.value < f.lo || f.value > f.hi) {
			return fmt.Errorf("fec: Limits.%s is %d, want %d to %d, or 0 for the default", f.name, f.value, f.lo, f.hi)
		}
	}
	if d := l.withDefaults(); d.Bytes < 4*d.SymbolBytes {
		return fmt.Errorf("fec: Limits.Bytes is %d, want at least 4 times Limits.SymbolBytes, %d", d.Bytes, 4*d.SymbolBytes)
	}
	return nil
}

// withDefaults returns l with defaults in place of zeros.
func (l Limits) withDefaults() Limits {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	def(&l.SymbolBytes, defaultSymbolBytes)
	def(&l.Span, MaxSpan)
	def(&l.Symbols, defaultSymbols)
	def(&l.Bytes, defaultBytes)
	def(&l.Rows, defaultRows)
	def(&l.Work, defaultWork)
	return l
}
