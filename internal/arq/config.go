package arq

import (
	"errors"
	"time"

	"github.com/openarkstudio/arknet-go/internal/wire"
)

// Retransmit names what repairs a loss.
type Retransmit uint8

const (
	// RetransmitSingle sends each lost symbol again, once per loss.
	RetransmitSingle Retransmit = iota
	// RetransmitCoded adds one repair over the lost symbols of each round.
	RetransmitCoded
)

// Config fixes one side of a session. NewClient and NewServer expect every
// field to be set as its comment says; package rudp applies the defaults.
type Config struct {
	LocalID wire.ConnID // non-zero, random: the peer addresses us by it
	Nonce   [wire.NonceLen]byte

	MTU          int    // datagram ceiling in bytes, MinMTU..MaxMTU
	SendWindow   int    // most symbol bytes in flight
	SendSymbols  int    // most symbols in flight
	RecvWindow   int    // most symbol bytes accepted and not read
	RecvSymbols  int    // most symbols accepted ahead of the lowest missing one
	SendQueue    int    // most message bytes waiting for their first transmission
	SendQueued   int    // most messages waiting for their first transmission
	MaxMessage   int    // longest message sent or accepted
	Memory       Budget // shared receive memory, nil = unlimited
	CodingMemory Budget // shared memory of erasure coding, nil = unlimited

	FEC        FECConfig
	Retransmit Retransmit
	Congestion Controller // nil = Copa
	MaxRate    int        // most bytes per second, 0 = unlimited
	MinRate    int        // bytes per second sent whatever the controller says, 0 = none

	KeepAlive        time.Duration // quiet time before a PING, 0 = off
	DeadPeerTimeout  time.Duration // no datagram for so long ends the session, 0 = off
	IdleTimeout      time.Duration // no application message for so long ends it, 0 = off
	HandshakeTimeout time.Duration
	Linger           time.Duration // longest flush of a graceful close

	Trace func(TraceEvent) // nil = off; called inside the Conn's methods
}

// Budget is receive memory that several sessions share. Reserve reports
// whether n more bytes may be held; Release gives bytes back. Both must be
// safe for concurrent use when sessions of several drivers share it.
type Budget interface {
	Reserve(n int) bool
	Release(n int)
}

// Errors of a Conn.
var (
	// ErrQueueFull: the send queue has no room; nothing was taken.
	ErrQueueFull = errors.New("send queue is full")
	// ErrMessageTooLarge: longer than this side or the peer allows; nothing was taken.
	ErrMessageTooLarge = errors.New("message too large")
	// ErrWrongMode: the direction carries a stream, the call wants messages, or
	// the reverse.
	ErrWrongMode = errors.New("direction is in the other mode")
	// ErrClosed: this side has closed the session, or the direction.
	ErrClosed = errors.New("session closed")
	// ErrPeerGone: no datagram came from the peer within the dead-peer time.
	ErrPeerGone = errors.New("peer is gone")
	// ErrIdleTimeout: no application message within the idle time.
	ErrIdleTimeout = errors.New("session is idle")
	// ErrHandshakeTimeout: the peer did not answer the handshake in time.
	ErrHandshakeTimeout = errors.New("handshake timed out")
	// ErrReset: the peer does not know the session (any more).
	ErrReset = errors.New("session reset: the peer does not know it")
	// ErrVersion: the peer does not speak this version of the protocol.
	ErrVersion = errors.New("peer speaks no common protocol version")
	// ErrLinger: the graceful close ran out of time with data unacknowledged.
	ErrLinger = errors.New("linger time is over")
)

// Codes of a CLOSE that the transport decided.
const (
	CodeNone          uint64 = 0
	CodeProtocolError uint64 = 1
	CodeIdle          uint64 = 2
	CodeRefused       uint64 = 3
	CodeInternal      uint64 = 4
	CodeUnflushed     uint64 = 5 // closed with data unacknowledged
)

// CloseError is the end of a session that one side decided.
type CloseError struct {
	Code      uint64
	Reason    string
	Remote    bool // the peer decided
	Transport bool // the transport decided, not the application
}

func (e *CloseError) Error() string {
	who := "locally"
	if e.Remote {
		who = "by the peer"
	}
	if e.Reason == "" {
		return "session closed " + who
	}
	return "session closed " + who + ": " + e.Reason
}

// maxPayload is the room for a source symbol in a datagram of the MTU.
func maxPayload(mtu int) int {
	return mtu - wire.ShortHeaderLen - wire.SymbolIDLen - wire.ChecksumLen - ackReserve
}
