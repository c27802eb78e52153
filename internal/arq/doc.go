// Package arq is the protocol core of RUDP: one Conn is one side of a session.
//
// It is sans IO. Datagrams, messages and the time go in; datagrams, events and
// the next deadline come out. It reads no clock, starts no goroutine and is
// not safe for concurrent use. Randomness comes from Config alone, so a run is
// repeated exactly by its inputs.
//
// A driver's turn has one order: HandleDatagram for what arrived, HandleTimeout
// if the deadline passed, TakeEvents, AppendDatagrams until it yields nothing,
// NextTimeout. After any call that takes now, events, datagrams and the
// deadline may have changed.
//
// # Terms
//
// Application messages are packed into source symbols, the unit of
// retransmission and of erasure coding. A symbol travels in a datagram under a
// packet number that is never reused; its id stays the same. Acks name packet
// numbers, and the lowest symbol that is missing.
//
// The rules and their constants come from the protocol description in
// docs/protocol.md; where a rule follows an RFC or a paper, the code says which.
package arq
