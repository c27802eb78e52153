package arq

import "time"

// Stats are the counters of one side of a session. Bytes are UDP payload bytes
// unless a field says otherwise.
type Stats struct {
	DatagramsSent, DatagramsReceived uint64
	BytesSent, BytesReceived         uint64

	DataSent       uint64 // datagrams with a source symbol for the first time
	Retransmitted  uint64 // datagrams with a symbol sent before
	Probes         uint64 // probe timeouts that sent something
	AcksSent       uint64 // datagrams that carry an ack and nothing else
	Lost           uint64 // packets declared lost
	SpuriousLosses uint64 // of them, acknowledged later

	MessagesSent     uint64 // accepted from the application
	MessagesAcked    uint64
	MessagesReceived uint64 // complete and in order

	Repairs RepairStats
	Dropped DropStats

	MinRTT, SmoothedRTT, LatestRTT, RTTVariance time.Duration
	LossTolerance                               time.Duration
	CongestionWindow                            int // bytes
	InFlight                                    int // bytes
	SendQueued                                  int // application bytes waiting for their first transmission
	SendQueuedMessages                          int
	ReceiveBuffered                             int // symbol bytes held for the application
	MissRate                                    float64
}

// DropStats counts datagrams, or parts of them, that were received and not
// used, by reason.
type DropStats struct {
	Checksum   uint64 // damaged, or of another session
	Malformed  uint64 // a field is cut, reserved or contradicts itself
	Stale      uint64 // not of the state the session is in
	Duplicate  uint64 // packet number seen before
	BadAck     uint64 // acknowledges what was never sent
	OldSymbol  uint64 // symbol held already
	Window     uint64 // symbol beyond the window announced
	Memory     uint64 // no receive memory left
	Discarded  uint64 // symbols that arrived after the application closed
	BadReset   uint64 // reset without proof
	Unexpected uint64 // handshake that does not fit
}

// Total is the sum of all reasons.
func (d DropStats) Total() uint64 {
	return d.Checksum + d.Malformed + d.Stale + d.Duplicate + d.BadAck + d.OldSymbol +
		d.Window + d.Memory + d.Discarded + d.BadReset + d.Unexpected
}

// Stats returns a snapshot.
func (c *Conn) Stats() Stats {
	s := c.stats
	s.MinRTT, s.SmoothedRTT, s.LatestRTT, s.RTTVariance = c.rtt.min, c.rtt.smoothed, c.rtt.latest, c.rtt.variance
	s.LossTolerance = c.loss.tolerance(&c.rtt)
	s.CongestionWindow = c.cc.Window()
	s.InFlight = c.inFlight
	s.SendQueued, s.SendQueuedMessages = c.send.queuedBytes, c.send.queued
	s.ReceiveBuffered = c.recv.ready.len + c.recv.earlyBytes
	s.MessagesSent, s.MessagesAcked = c.send.messages, c.send.acked
	s.MessagesReceived = c.recv.received
	s.Repairs = c.repairStats()
	s.Dropped.Discarded = c.recv.discarded
	s.MissRate = float64(c.loss.missRate.rate) / missRateOne
	return s
}
