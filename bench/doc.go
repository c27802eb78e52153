// Package bench drives verified workloads over a transport and measures them.
//
// A transport takes part by implementing [Driver]; the built-in drivers are
// package rudp and, as the floor, plain UDP. The harness starts a server, an
// impairment relay and a number of clients in one process on loopback, runs one
// workload for a number of rounds and returns a record.
//
// Every byte that comes back is checked, completions are counted, and a run in
// which the relay overflowed is invalid: a fast run that is not correct is a
// failed run.
package bench
