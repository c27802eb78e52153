package bench

import (
	"context"
	"net"
	"sync"
	"time"
)

// Driver is a transport under test. A Driver holds its own configuration; the
// harness calls Listen once and Dial once per client in each round, or many
// times in the connect workload. Its methods are safe for concurrent use.
type Driver interface {
	// Name is the short name of the transport in records and tables, such as
	// "rudp" or "kcp-turbo".
	Name() string
	// Capabilities says what the harness may expect and check.
	Capabilities() Capabilities
	// Listen binds a server to a UDP address, port 0 included.
	Listen(ctx context.Context, address string) (Listener, error)
	// Dial associates with the server behind address. It returns when the
	// transport's handshake, if it has one, is over. ctx bounds the dialling
	// only, not the life of the Conn.
	Dial(ctx context.Context, address string) (Conn, error)
}

// Capabilities are properties of a transport that change what a run checks and
// which workloads and network profiles it accepts.
type Capabilities struct {
	// Reliable: every accepted message arrives, or the connection ends. An
	// unreliable driver runs the echo workload only, over a path without loss,
	// and what is lost all the same is counted as lost.
	Reliable bool
	// Ordered: messages arrive in the order of sending.
	Ordered bool
	// Completions: done is called when the peer's transport has acknowledged
	// the message. Without it Send calls done before it returns.
	Completions bool
	// Handshake: Dial exchanges datagrams with the server, so that the connect
	// workload measures something.
	Handshake bool
	// MaxMessage is the longest message in bytes; 0 means at least 16 MiB.
	MaxMessage int
}

// Listener accepts associations. Close ends a waiting Accept with an error that
// matches net.ErrClosed; Conns that were accepted stay open.
type Listener interface {
	Accept(ctx context.Context) (Conn, error)
	Addr() net.Addr
	Close() error
}

// Conn is one association that carries whole messages. One goroutine at a time
// calls Send (and TrySend), one at a time calls Receive, and the two may be
// different; Close may be called from anywhere, more than once.
//
// The harness passes the same ctx for a whole phase of a run, so a driver can
// hook its cancellation once per ctx instead of once per call; see [Binder].
// Both calls return an error that matches ctx.Err() or os.ErrDeadlineExceeded
// when ctx ends, and the Conn stays usable for another call with another ctx.
type Conn interface {
	// Send copies msg and queues it, waiting for room if it must. Unless Send
	// returns an error, done is called exactly once, from any goroutine
	// including the caller's, with nil when the transport's completion came and
	// with an error when the connection ended first. done never blocks. done
	// may be nil.
	Send(ctx context.Context, msg []byte, done func(error)) error
	// Receive waits for a whole message, appends it to buf[:0] and returns the
	// result. At the end of the association it returns io.EOF or an error that
	// matches net.ErrClosed.
	Receive(ctx context.Context, buf []byte) ([]byte, error)
	// Close ends the association and unblocks Send and Receive. It may discard
	// what was not acknowledged: the harness drains first.
	Close() error
}

// TrySender is an optional interface of a Conn whose send can be refused instead
// of waiting. With it the closed loop needs one goroutine per client whatever
// the payload; without it a second one sends when payload and window are large.
type TrySender interface {
	// TrySend is Send that never waits: it returns false with a nil error when
	// there is no room now; then done is not called.
	TrySend(msg []byte, done func(error)) (bool, error)
}

// Drainer is an optional interface of a Conn with completions.
type Drainer interface {
	// Drain waits until the peer's transport has acknowledged every accepted
	// message.
	Drain(ctx context.Context) error
}

// StatsReader is an optional interface of a Conn. Stats is called every 100 ms
// while traffic flows and once more before Close; it is safe for concurrent use.
type StatsReader interface {
	Stats() Stats
}

// Stats are the counters of one side of one association since it began. What a
// transport does not have stays 0.
type Stats struct {
	// SentDatagrams and SentBytes are UDP payloads handed to the socket.
	SentDatagrams, SentBytes uint64
	// ReceivedDatagrams and ReceivedBytes are UDP payloads taken from it.
	ReceivedDatagrams, ReceivedBytes uint64
	// Retransmitted counts segments of data that were sent again.
	Retransmitted uint64
	// Restored counts segments (symbols, shards) that this side recovered by
	// forward error correction.
	Restored uint64
	// FECRetainedBytes is the memory that coding holds now, for this side.
	FECRetainedBytes uint64
	// ParityMaxPercent is the largest ratio of parity to data this side has
	// used so far, in percent; ParityMaxShards is the same as a number of
	// parity shards per group for block codes.
	ParityMaxPercent float64
	ParityMaxShards  uint64
	// ParitySymbols counts the parity this side has decided to send, and
	// BudgetBoundSymbols those that the parity budget then forbade.
	ParitySymbols, BudgetBoundSymbols uint64
	// PolicyChanges counts changes of the adaptive policy's decision.
	PolicyChanges uint64
}

// BufferReader is an optional interface of a Listener and of a Conn: the sizes
// of socket buffers that the operating system granted, in bytes as it reports
// them, or 0 where unknown.
type BufferReader interface {
	SocketBuffers() (read, write int)
}

// Describer is an optional interface of a Driver: effective parameters that a
// record should carry, such as "congestion" or "mtu", with values that
// encoding/json can write. The map belongs to the caller.
type Describer interface {
	Describe() map[string]any
}

// Binder connects the end of a context with a deadline method, for drivers over
// a net.Conn-like object. The cost is paid once per context, not per call. The
// zero Binder is ready; it is safe for concurrent use but serves one direction.
type Binder struct {
	mu   sync.Mutex
	ctx  context.Context
	stop func() bool
	gen  uint64
}

// Bind makes setDeadline be called with a time in the past once ctx ends, and
// clears the effect of a context that was bound before. It returns ctx.Err().
func (b *Binder) Bind(ctx context.Context, setDeadline func(time.Time) error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ctx == ctx {
		return ctx.Err()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if b.stop != nil {
		b.stop()
		if err := setDeadline(time.Time{}); err != nil {
			return err
		}
	}
	b.gen++
	gen := b.gen
	b.ctx = ctx
	b.stop = context.AfterFunc(ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.gen == gen {
			// A failure means that the object is closed, which ends the call too.
			_ = setDeadline(time.Unix(1, 0))
		}
	})
	return nil
}
