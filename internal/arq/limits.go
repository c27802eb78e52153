package arq

import "time"

// Limits of the protocol core. Each bounds memory, work or time that a peer
// could otherwise choose.
const (
	// MinMTU and MaxMTU bound the datagram ceiling. Below 576 the headers eat
	// the path; a message record has 15 bits of length.
	MinMTU = 576
	MaxMTU = 16384
	// DefaultMTU passes every path that carries IPv6 (1,280 B) with room for
	// tunnels, as in QUIC.
	DefaultMTU = 1200

	// maxSentPackets bounds the packets whose fate is still watched: at 48 B
	// each, 3 MiB for a session at its very limit, allocated on use.
	maxSentPackets = 1 << 16

	// maxReceivedRanges bounds the ranges of received packet numbers. More
	// than an ack can carry are kept, since a pure ack may be lost.
	maxReceivedRanges = 96

	// maxTrain bounds the datagrams of one AppendDatagrams call: the most that
	// the kernel takes as one UDP_SEGMENT message.
	maxTrain = 64

	// dataAckRanges is how many ranges a data datagram carries; a full ack
	// rides at most every fullAckInterval.
	dataAckRanges   = 8
	fullAckInterval = 2 * time.Millisecond

	// ackReserve is the room for the ack block in a full datagram.
	ackReserve = 26

	// freeMemory is received data that a session may hold beside the shared
	// budget, so that one that reads gets on whatever others leave unread;
	// memoryStep is the unit of reservation.
	freeMemory = 8 << 10
	memoryStep = 32 << 10

	// keptSlots is the room that each queue keeps once the session was idle for
	// idleAfter.
	keptSlots = 32
	idleAfter = 1 * time.Second

	// Ack delays: an arrival that shows a gap or fills one is acked within
	// ackUrgentDelay, any other within max(ackUrgentDelay, min_rtt/16), and the
	// ackEvery-th at once.
	ackUrgentDelay = 100 * time.Microsecond
	ackEvery       = 16

	// lossToleranceFloor and lossToleranceCeiling bound the reordering that is
	// waited out before a packet counts as lost, together with shares of the
	// path's round trip.
	lossToleranceFloor   = 2 * time.Millisecond
	lossToleranceCeiling = 5 * time.Millisecond

	// Probe timeout: backoff x1.5 per expiry, up to ptoBackoffMax expiries, and
	// never above maxPTO unless the round trip itself is that long.
	initialPTO    = 60 * time.Millisecond
	ptoBackoffMax = 10
	maxPTO        = 1 * time.Second
	probePackets  = 2

	// Handshake datagrams are repeated after 200 ms, x1.5, at most 1 s.
	handshakeFirstRetry = 200 * time.Millisecond
	handshakeMaxRetry   = 1 * time.Second
	handshakePadding    = 1200
	amplificationFactor = 3

	// An unanswered CLOSE is sent closeTries times, each time waiting twice as
	// long, up to closeMaxRetry: for 0.6 s at least, so that a short outage does
	// not swallow them all, and for 10 s at most, whatever the round trip was.
	closeTries      = 5
	closeFirstRetry = 20 * time.Millisecond
	closeMaxRetry   = 2 * time.Second

	// oversleep is how late a wake-up has to be to mean that the whole process
	// was stopped.
	oversleep = 1 * time.Second

	// maxRTT bounds the samples of a session that slept or was cut off for
	// hours, and with them all arithmetic on round trips.
	maxRTT = 1 * time.Minute

	// minRTTWindow is how long a lowest round trip is believed.
	minRTTWindow = 10 * time.Second
)
