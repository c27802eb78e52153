// Package record is the result schema of the benchmarks: what a run was, what it
// measured, and whether its checks passed.
//
// A [Result] holds one configuration with all its rounds. [Write] and [Read]
// are its JSON form; [WriteGoBench] writes the text format of Go benchmarks, for
// benchstat and its relatives. [Result.Validate] recomputes what can be
// recomputed, so that an edited, truncated or incomplete record is refused
// instead of being charted.
//
// The package opens no sockets and takes no measurements.
package record
