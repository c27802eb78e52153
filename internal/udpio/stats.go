package udpio

import (
	"iter"
	"sync/atomic"
)

// Stats is a snapshot of the counters of a [Socket]. Counters only grow.
type Stats struct {
	// Datagrams and their bytes (UDP payload) that were delivered by
	// ReadTrains and accepted by the system in WriteTrains.
	DatagramsIn, DatagramsOut uint64
	BytesIn, BytesOut         uint64

	// System calls, or calls of the net.PacketConn on the one-by-one path,
	// those that found nothing to do included.
	SyscallsIn, SyscallsOut uint64

	// Messages of two or more datagrams that crossed the system boundary as
	// one (GRO in, GSO out).
	TrainsIn, TrainsOut uint64

	// GSORefused counts trains that the kernel refused as one message and
	// that were sent again datagram by datagram. Nothing is lost by that.
	GSORefused uint64

	// EmptyIn counts the empty datagrams among DatagramsIn.
	EmptyIn uint64

	// TruncatedIn counts datagrams that were longer than Options.MaxDatagram
	// and were dropped for it. They are not in DatagramsIn. Windows reports
	// them as errors, which count under ErrTooLarge as well.
	TruncatedIn uint64

	// DiscardedIn counts messages that waited in the socket when Detach
	// switched GRO off.
	DiscardedIn uint64

	// LostOut counts datagrams that WriteTrains could not hand to the system.
	LostOut uint64

	// ReadErrors and WriteErrors count error events by kind. One event may
	// stand for several lost datagrams or, on reads, for none.
	ReadErrors, WriteErrors ErrorCounts

	// KernelDrops is the number of datagrams that the kernel dropped because
	// the receive buffer of the socket was full (Linux; 0 where unknown). It
	// counts GRO messages as the kernel does: by message, before the split.
	KernelDrops uint64

	// DontFragment tells whether Options.DontFragment was asked for and could
	// be set.
	DontFragment bool

	// What the fast path uses at present. They fall to false for good when
	// the kernel refuses the feature at run time.
	GSO, GRO, Batch bool

	// ReadBuffer and WriteBuffer are the socket buffer sizes in bytes as the
	// system reports them when the socket is made, or 0 where it does not.
	// Linux reports twice what was asked, because half of it is for its own
	// bookkeeping.
	ReadBuffer, WriteBuffer int
}

// ErrorCounts counts error events, indexed by [ErrorKind].
type ErrorCounts [numErrorKinds]uint64

// Total returns the number of all events.
func (c *ErrorCounts) Total() uint64 {
	var sum uint64
	for _, n := range c {
		sum += n
	}
	return sum
}

// NonZero yields the kinds that happened and how often, in the order of the
// constants.
func (c *ErrorCounts) NonZero() iter.Seq2[ErrorKind, uint64] {
	return func(yield func(ErrorKind, uint64) bool) {
		for k, n := range c {
			if n != 0 && !yield(ErrorKind(k), n) {
				return
			}
		}
	}
}

// counters is the live form of Stats.
type counters struct {
	datagramsIn, datagramsOut atomic.Uint64
	bytesIn, bytesOut         atomic.Uint64
	syscallsIn, syscallsOut   atomic.Uint64
	trainsIn, trainsOut       atomic.Uint64
	emptyIn, truncatedIn      atomic.Uint64
	lostOut, gsoRefused       atomic.Uint64
	discardedIn               atomic.Uint64
	readErrors, writeErrors   [numErrorKinds]atomic.Uint64
}

func (c *counters) snapshot() Stats {
	s := Stats{
		DatagramsIn:  c.datagramsIn.Load(),
		DatagramsOut: c.datagramsOut.Load(),
		BytesIn:      c.bytesIn.Load(),
		BytesOut:     c.bytesOut.Load(),
		SyscallsIn:   c.syscallsIn.Load(),
		SyscallsOut:  c.syscallsOut.Load(),
		TrainsIn:     c.trainsIn.Load(),
		TrainsOut:    c.trainsOut.Load(),
		EmptyIn:      c.emptyIn.Load(),
		TruncatedIn:  c.truncatedIn.Load(),
		DiscardedIn:  c.discardedIn.Load(),
		LostOut:      c.lostOut.Load(),
		GSORefused:   c.gsoRefused.Load(),
	}
	for k := range s.ReadErrors {
		s.ReadErrors[k] = c.readErrors[k].Load()
		s.WriteErrors[k] = c.writeErrors[k].Load()
	}
	return s
}
