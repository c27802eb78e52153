package rudp

import (
	"time"

	"github.com/openarkstudio/arknet-go/internal/arq"
	"github.com/openarkstudio/arknet-go/internal/wire"
)

// TraceKind names what a TraceEvent tells.
type TraceKind uint8

// Kinds of trace events.
const (
	TraceSent       = TraceKind(arq.TraceSent)         // a datagram left: Packet, Symbol, Size, Retransmission
	TraceReceived   = TraceKind(arq.TraceReceived)     // a datagram was used: Packet, Symbol, Size
	TraceDropped    = TraceKind(arq.TraceDropped)      // a datagram was not used: Size
	TraceAcked      = TraceKind(arq.TraceAcked)        // Packet was acknowledged
	TraceLost       = TraceKind(arq.TraceLost)         // Packet was declared lost
	TraceSpurious   = TraceKind(arq.TraceSpurious)     // Packet was acknowledged after that
	TraceProbe      = TraceKind(arq.TraceProbe)        // the probe timeout expired
	TraceCongestion = TraceKind(arq.TraceCongestion)   // Window and InFlight after an ack
	TraceState      = TraceKind(arq.TraceStateChanged) // the session entered State
	TraceRestored   = TraceKind(arq.TraceRestored)     // Symbol was restored from repairs
)

// TraceEvent is one protocol event of a session. Fields that do not belong to
// its kind are zero.
type TraceEvent struct {
	Kind           TraceKind
	Time           time.Time
	Packet         uint64 // packet number
	Symbol         uint64 // number of the piece of data inside
	Data           bool   // the datagram carries data
	Repair         bool   // it carries a repair
	AckOnly        bool   // it carries an ack and nothing else
	Retransmission bool   // its data was sent before
	Size           int    // bytes of UDP payload
	Window         int    // congestion window in bytes
	InFlight       int    // bytes sent, neither acknowledged nor lost
	State          string
}

var stateNames = [...]string{
	arq.StateHandshake: "handshake",
	arq.StateOpen:      "open",
	arq.StateFlushing:  "flushing",
	arq.StateClosing:   "closing",
	arq.StateDraining:  "draining",
	arq.StateDone:      "done",
}

func (ep *endpoint) traceEvent(e arq.TraceEvent) TraceEvent {
	t := TraceEvent{
		Kind:           TraceKind(e.Kind),
		Time:           ep.schedule.epoch.Add(time.Duration(e.Time)),
		Packet:         uint64(e.Packet),
		Symbol:         uint64(e.Symbol),
		Data:           e.Payload == wire.PayloadData,
		Repair:         e.Payload == wire.PayloadRepair,
		AckOnly:        e.AckOnly,
		Retransmission: e.Again,
		Size:           e.Size,
		Window:         e.Window,
		InFlight:       e.InFlight,
	}
	if e.Kind == arq.TraceStateChanged {
		t.State = stateNames[e.State]
	}
	return t
}
