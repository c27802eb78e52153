package rudp

import "time"

// Stats are the counters of a session since it began, and its state now.
// Datagram bytes are UDP payload.
type Stats struct {
	DatagramsSent, DatagramsReceived uint64
	BytesSent, BytesReceived         uint64

	// DataSent counts datagrams that carry data for the first time,
	// Retransmitted those that carry it again, AcksSent those that carry
	// nothing but an acknowledgement.
	DataSent, Retransmitted, AcksSent uint64
	// Probes counts expiries of the probe timeout.
	Probes uint64
	// Lost counts datagrams that were declared lost, SpuriousLosses those of
	// them that were acknowledged later.
	Lost, SpuriousLosses uint64

	// Messages accepted from the application, acknowledged by the peer's
	// transport, and received complete and in order.
	MessagesSent, MessagesAcked, MessagesReceived uint64

	// Repairs counts forward error correction.
	Repairs RepairStats

	// Dropped counts datagrams that were received and not used, and symbols
	// (pieces of data) that were, by reason.
	Dropped DropStats

	// Round trip estimates; 0 before the first sample. MinRTT is the lowest of
	// the last 10 s.
	MinRTT, SmoothedRTT, LatestRTT, RTTVariance time.Duration
	// LossTolerance is how long a datagram may be overtaken before it counts
	// as lost.
	LossTolerance time.Duration
	// CongestionWindow and InFlight are in bytes.
	CongestionWindow, InFlight int
	// SendQueuedBytes and SendQueuedMessages wait for their first transmission.
	SendQueuedBytes, SendQueuedMessages int
	// ReceiveBufferedBytes are held for the application.
	ReceiveBufferedBytes int
	// MissRate is the share of datagrams that were lost or late of late, 0 to 1.
	MissRate float64
}

// RepairStats tell what forward error correction cost and what it did.
type RepairStats struct {
	Sent        uint64 // repairs sent ahead of a loss
	SentCoded   uint64 // repairs sent along with a retransmission round
	BytesSent   uint64 // coded bytes of both, without datagram headers
	BudgetBound uint64 // repairs that the parity budget forbade
	WindowBound uint64 // repairs that the congestion window had no room for

	MaxRatio       int    // most repairs per 1,000 pieces of data that the policy asked for
	MaxGroupParity int    // most repairs of one group of the block scheme
	PolicyChanges  uint64 // times the adaptive rate moved by more than an eighth

	Received uint64 // repairs of the peer
	Used     uint64 // that restored something
	Useless  uint64 // that told nothing new
	Late     uint64 // for data that was held already, or is no longer kept
	Rejected uint64 // wrong window, length or checksum, or over a limit
	Evicted  uint64 // dropped unsolved at a limit
	Held     uint64 // waiting for more
	Restored uint64 // pieces of data restored

	MemoryBound uint64 // times that FEC.RetainTotal had no more for this session

	RetainedBytes     int // held for coding now, both directions
	RetainedPeakBytes int // the most that was held
}

// DropStats counts what was received and not used, by reason.
type DropStats struct {
	Checksum   uint64 // damaged, or of another session
	Malformed  uint64 // a field is cut, reserved or contradicts itself
	Stale      uint64 // does not belong to the session's state
	Duplicate  uint64 // datagram seen before
	BadAck     uint64 // acknowledges what was never sent
	OldSymbol  uint64 // data held already
	Window     uint64 // data beyond the window announced
	Memory     uint64 // no receive memory left
	Discarded  uint64 // data that arrived after Close
	BadReset   uint64 // reset without proof
	Unexpected uint64 // handshake that does not fit
}

// Stats returns a snapshot. It stays valid after the end of the session.
func (c *Conn) Stats() Stats {
	c.mu.Lock()
	s := c.core.Stats()
	c.mu.Unlock()
	return Stats{
		DatagramsSent: s.DatagramsSent, DatagramsReceived: s.DatagramsReceived,
		BytesSent: s.BytesSent, BytesReceived: s.BytesReceived,
		DataSent: s.DataSent, Retransmitted: s.Retransmitted, AcksSent: s.AcksSent,
		Probes: s.Probes, Lost: s.Lost, SpuriousLosses: s.SpuriousLosses,
		MessagesSent: s.MessagesSent, MessagesAcked: s.MessagesAcked, MessagesReceived: s.MessagesReceived,
		Repairs: RepairStats(s.Repairs),
		Dropped: DropStats(s.Dropped),
		MinRTT:  s.MinRTT, SmoothedRTT: s.SmoothedRTT, LatestRTT: s.LatestRTT, RTTVariance: s.RTTVariance,
		LossTolerance:    s.LossTolerance,
		CongestionWindow: s.CongestionWindow, InFlight: s.InFlight,
		SendQueuedBytes: s.SendQueued, SendQueuedMessages: s.SendQueuedMessages,
		ReceiveBufferedBytes: s.ReceiveBuffered,
		MissRate:             s.MissRate,
	}
}

// ListenerStats are the counters of a Listener and its socket.
type ListenerStats struct {
	// Sessions that exist, half-open and closing ones included, and those of
	// them that Accept has not returned yet.
	Sessions, Pending int
	// Datagrams that belong to no session.
	UnknownSession uint64
	// Datagrams that are too short or of no known kind.
	Malformed uint64
	// First datagrams of clients that are damaged or not understood.
	BadHandshake uint64
	// First datagrams dropped because the backlog was full or the listener closed.
	OverBacklog uint64
	// Answers to other protocol versions, and resets sent.
	VersionAnswers, Resets uint64
	// Datagrams and their UDP payload bytes that crossed the socket.
	DatagramsIn, DatagramsOut uint64
	BytesIn, BytesOut         uint64
	// Datagrams that the system did not take, and read and write errors of
	// the socket; all of them count as losses.
	LostOut, ReadErrors, WriteErrors uint64
	// Datagrams that the kernel dropped because the receive buffer was full;
	// 0 where unknown.
	KernelDrops uint64
	// Granted socket buffers in bytes; 0 where unknown.
	ReadBuffer, WriteBuffer int
	// Whether segmentation offload on sending (GSO) and receiving (GRO) and
	// batched system calls are in use.
	GSO, GRO, Batch bool
	// ReceiveMemory is what all sessions have reserved of Limits.ReceiveMemory.
	ReceiveMemory int64
}

// Stats returns a snapshot.
func (l *Listener) Stats() ListenerStats { return l.ep.snapshot() }

// SocketStats returns the counters of the session's socket, which the sessions
// of a Listener share.
func (c *Conn) SocketStats() ListenerStats { return c.ep.snapshot() }

func (ep *endpoint) snapshot() ListenerStats {
	io := ep.sock.Stats()
	ep.mu.Lock()
	sessions, pending := len(ep.byID), ep.pending
	ep.mu.Unlock()
	return ListenerStats{
		Sessions: sessions, Pending: pending,
		UnknownSession: ep.stats.unknownSession.Load(),
		Malformed:      ep.stats.malformed.Load(),
		BadHandshake:   ep.stats.badHandshake.Load(),
		OverBacklog:    ep.stats.overBacklog.Load(),
		VersionAnswers: ep.stats.versions.Load(),
		Resets:         ep.stats.resets.Load(),
		DatagramsIn:    io.DatagramsIn, DatagramsOut: io.DatagramsOut,
		BytesIn: io.BytesIn, BytesOut: io.BytesOut,
		LostOut: io.LostOut, ReadErrors: io.ReadErrors.Total(), WriteErrors: io.WriteErrors.Total(),
		KernelDrops: io.KernelDrops,
		ReadBuffer:  io.ReadBuffer, WriteBuffer: io.WriteBuffer,
		GSO: io.GSO, GRO: io.GRO, Batch: io.Batch,
		ReceiveMemory: ep.memory.used.Load(),
	}
}

// Total is the sum of all reasons.
func (d DropStats) Total() uint64 {
	return d.Checksum + d.Malformed + d.Stale + d.Duplicate + d.BadAck + d.OldSymbol +
		d.Window + d.Memory + d.Discarded + d.BadReset + d.Unexpected
}
