package arq

import "time"

// Controller decides how many bytes may be in flight. A controller belongs to
// one Conn. Windows and rates are integers, so that a run repeats on every CPU.
type Controller interface {
	// OnSent takes a datagram of size bytes that left; inFlight includes it.
	OnSent(now Time, size, inFlight int)
	// OnAck takes what one ack newly acknowledged.
	OnAck(now Time, s AckSample)
	// OnLoss takes bytes that were declared lost, whether or not a repair
	// covers them (the point of RFC 9265). At due they would have been
	// acknowledged.
	OnLoss(now, due Time, size int)
	// Window is the most bytes in flight.
	Window() int
	// Paced reports whether the window's packets are to be spread over time.
	Paced() bool
	// Smooth reports whether to spread them evenly, without bursts.
	Smooth() bool
}

// AckSample is what one ack told.
type AckSample struct {
	Bytes    int           // newly acknowledged
	Late     int           // of them, declared lost before
	LateDue  Time          // when those should have been acknowledged
	RTT      time.Duration // of the latest packet among them, ack delay taken off
	MinRTT   time.Duration // lowest of the last 10 s
	Smoothed time.Duration
	// Reordering is how long the path delays packets that are overtaken: the
	// 99th percentile, 0 on a path that keeps the order.
	Reordering time.Duration
	Backlogged bool   // data waits for the window
	InFlight   int    // left in flight
	Acked      uint64 // bytes acknowledged since the session began
}

const (
	// packetSize is the nominal datagram that windows are counted in.
	packetSize = 1200
	// initialWindow follows RFC 9002's spirit with the larger burst that short
	// messages on long paths need.
	initialWindow = 32 * packetSize
	minimumWindow = 4 * packetSize
	// maximumWindow bounds all arithmetic on windows.
	maximumWindow = 1 << 30
)
