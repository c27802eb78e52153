// Package wire holds the layout of arknet's RUDP datagrams: append, parse and
// length of headers, ack blocks, control records, handshake parameters and
// message records. It is pure: it does no IO, reads no clock, keeps no state,
// and allocates nothing from a length that a peer claims.
//
// docs/protocol.md describes the same layout in prose, with test vectors that
// this package's tests read.
package wire
