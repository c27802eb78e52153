package main

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/openarkstudio/arknet-go/report"
	"github.com/openarkstudio/arknet-go/rudp"
)

// wireMeter counts bytes that are sent, by what they carry and when. It is fed by
// the trace of all sessions of a round, each under its own lock.
type wireMeter struct {
	start time.Time
	bins  []wireBin
}

// wireBin is what was sent in a short time.
type wireBin struct{ repairs, repeated, acks atomic.Uint64 }

const (
	wireBinTime = 10 * time.Millisecond
	// wireSlack is time beyond the plan of a round: for dialling and draining.
	wireSlack = 30 * time.Second
	// wireTail is how long after the last answer datagrams still belong to it:
	// its acknowledgements and the last repairs.
	wireTail = 50 * time.Millisecond
)

func newWireMeter(planned time.Duration) *wireMeter {
	return &wireMeter{start: time.Now(), bins: make([]wireBin, (planned+wireSlack)/wireBinTime)}
}

func (m *wireMeter) trace(_ *rudp.Conn, e rudp.TraceEvent) {
	if e.Kind != rudp.TraceSent {
		return
	}
	i := int(e.Time.Sub(m.start) / wireBinTime)
	if i < 0 || i >= len(m.bins) {
		return
	}
	switch size := uint64(e.Size); {
	case e.Repair:
		m.bins[i].repairs.Add(size)
	case e.Retransmission:
		m.bins[i].repeated.Add(size)
	case e.AckOnly:
		m.bins[i].acks.Add(size)
	}
}

// sum adds the bytes of a time to w.
func (m *wireMeter) sum(w *report.Wire, from time.Time, seconds float64) {
	first := max(0, int(from.Sub(m.start)/wireBinTime))
	length := time.Duration(seconds*float64(time.Second)) + wireTail
	last := min(len(m.bins), first+int(length/wireBinTime))
	for i := first; i < last; i++ {
		w.Repairs += m.bins[i].repairs.Load()
		w.Repeated += m.bins[i].repeated.Load()
		w.Acks += m.bins[i].acks.Load()
	}
}

// recorder keeps the latest events of the only client of a round and of its
// server that tell what became of the client's data.
type recorder struct {
	mu     sync.Mutex
	client *rudp.Conn // the session that spoke first
	ring   []traced
	next   int
	full   bool
}

// traced is one event.
type traced struct {
	at             time.Time
	what           tracedKind
	packet, symbol uint64
}

type tracedKind uint8

const (
	sentData tracedKind = iota // by the client
	sentAgain
	sentRepair
	arrived // at the server
	restored
)

// maxTraced bounds the memory of a recording. One client at 3,000 messages per
// second needs some 10,000 events per second.
const maxTraced = 1 << 16

func newRecorder() *recorder { return &recorder{} }

func (r *recorder) trace(c *rudp.Conn, e rudp.TraceEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.client == nil {
		r.client = c // a server speaks when it was spoken to
	}
	t := traced{at: e.Time, packet: e.Packet, symbol: e.Symbol}
	switch mine := c == r.client; {
	case mine && e.Kind == rudp.TraceSent && e.Repair:
		t.what = sentRepair
	case mine && e.Kind == rudp.TraceSent && e.Data && e.Retransmission:
		t.what = sentAgain
	case mine && e.Kind == rudp.TraceSent && e.Data:
		t.what = sentData
	case !mine && e.Kind == rudp.TraceReceived && e.Data:
		t.what = arrived
	case !mine && e.Kind == rudp.TraceRestored:
		t.what = restored
	default:
		return
	}
	if len(r.ring) < maxTraced {
		r.ring = append(r.ring, t)
		return
	}
	r.full = true
	r.ring[r.next] = t
	r.next = (r.next + 1) % maxTraced
}

// timeline is what happened in the middle two thirds, one second at most, of a
// phase. What came later than that still says how it ended.
func (r *recorder) timeline(name string, start time.Time, phase time.Duration) *report.Timeline {
	r.mu.Lock()
	defer r.mu.Unlock()
	events := append(append([]traced{}, r.ring[r.next:]...), r.ring[:r.next]...)
	from, length := start.Add(phase/6), min(phase*2/3, time.Second)
	line := &report.Timeline{
		Name:      name,
		Seconds:   length.Seconds(),
		Truncated: r.full && len(events) > 0 && events[0].at.After(from),
		Lost:      []report.Loss{},
		Repairs:   []float64{},
	}

	here := map[uint64]time.Time{} // packet number -> arrival
	held := map[uint64]traced{}    // symbol -> what brought it first
	for _, e := range events {
		if e.what == arrived {
			here[e.packet] = e.at
		}
		if _, known := held[e.symbol]; !known && (e.what == arrived || e.what == restored) {
			held[e.symbol] = e
		}
	}
	milliseconds := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	for _, e := range events {
		at := e.at.Sub(from)
		if at < 0 || at >= length {
			continue
		}
		switch e.what {
		case sentAgain:
			line.Repeats++
		case sentRepair:
			line.Repairs = append(line.Repairs, milliseconds(at))
		case sentData:
			line.Sent++
			by, known := held[e.symbol]
			arrival, came := here[e.packet]
			switch {
			case came && known && by.what == restored && by.at.Before(arrival):
				line.LateRestored++
			case came:
			case !known:
				line.Lost = append(line.Lost, report.Loss{At: milliseconds(at), Fate: report.FateOpen})
			default:
				loss := report.Loss{At: milliseconds(at), Wait: milliseconds(by.at.Sub(e.at)), Fate: report.FateRepeated}
				if by.what == restored {
					loss.Fate = report.FateRestored
				}
				line.Lost = append(line.Lost, loss)
			}
		}
	}
	return line
}
