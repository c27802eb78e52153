package arq

import "github.com/openarkstudio/arknet-go/internal/wire"

// TraceKind names what a TraceEvent tells.
type TraceKind uint8

// Trace events of the core.
const (
	TraceSent         TraceKind = iota + 1 // a datagram left: Packet, Symbol, Size, Again
	TraceReceived                          // a datagram was accepted: Packet, Symbol, Size
	TraceDropped                           // a datagram was not used: Size
	TraceAcked                             // Packet was newly acknowledged
	TraceLost                              // Packet was declared lost
	TraceSpurious                          // Packet was declared lost and acknowledged later
	TraceProbe                             // the probe timeout expired
	TraceCongestion                        // Window, InFlight after an ack
	TraceStateChanged                      // State
	TraceRestored                          // Symbol was restored from repairs: Size
)

// TraceEvent is one thing that happened. Only the fields of its kind are set.
type TraceEvent struct {
	Kind     TraceKind
	Time     Time
	Packet   wire.PacketNumber
	Symbol   wire.SymbolID
	Payload  wire.PayloadType
	AckOnly  bool
	Again    bool
	Size     int
	Window   int
	InFlight int
	State    State
}

func (c *Conn) trace(e TraceEvent) {
	if c.cfg.Trace != nil {
		c.cfg.Trace(e)
	}
}
