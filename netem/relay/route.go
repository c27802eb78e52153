package relay

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/openarkstudio/arknet-go/internal/bufpool"
	"github.com/openarkstudio/arknet-go/internal/udpio"
	"github.com/openarkstudio/arknet-go/netem"
)

// limits bound what routes hold.
type limits struct {
	routeBytes, routeDatagrams int
	totalBytes                 int64
	total                      atomic.Int64 // held by all routes
}

// route is the path of one client. Its state knows neither sockets nor the
// clock, apart from what udp.go adds.
type route struct {
	index  uint64
	client netip.AddrPort
	limits *limits
	queue  *queue

	mu                       sync.Mutex
	flows                    [2]flow // by netem.Direction
	heldBytes, heldDatagrams int
	peakBytes, peakDatagrams int
	active                   time.Duration // when it last carried something
	closed                   bool
	udp                      udpRoute
}

// flow is one direction of a route. Its fields are guarded by the route's mu.
type flow struct {
	route *route
	dir   netem.Direction
	link  *netem.Link

	// instant tells that the link adds no time but lateness, so that its
	// datagrams may leave in the turn in which they came.
	instant bool

	// ordered is the number of datagrams held that later ones must not
	// overtake: all but the late ones.
	ordered int

	sent, queued             netem.Count
	overflow, failed, closed netem.Count
	turnedAway               netem.Count // arrived after the end of the route
}

// outbox is what leaves a flow in the present turn. It belongs to the goroutine
// that sends for the flow.
type outbox struct {
	trains    []udpio.Train
	buffers   []*bufpool.Buffer // to be released after sending
	datagrams int
	bytes     int
	late      int // datagrams that came out of the queue, by their kind
	ordered   int
	heldBytes int
}

func newRoute(index uint64, client netip.AddrPort, seed uint64, up, down netem.Config, l *limits, q *queue) (*route, error) {
	rt := &route{index: index, client: client, limits: l, queue: q}
	for d, cfg := range []netem.Config{up, down} {
		dir := netem.Direction(d)
		link, err := netem.NewLink(cfg, netem.DeriveSeed(seed, index, dir))
		if err != nil {
			return nil, err
		}
		rt.flows[d] = flow{route: rt, dir: dir, link: link, instant: isInstant(&cfg)}
	}
	return rt, nil
}

func isInstant(c *netem.Config) bool {
	return c.Delay == 0 && c.Jitter == 0 && (c.Rate == 0 || c.Police)
}

// setImpairment changes both directions; the configs are valid.
func (rt *route) setImpairment(epoch time.Duration, configs [2]netem.Config) error {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	for d := range rt.flows {
		f := &rt.flows[d]
		if err := f.link.SetConfig(epoch, configs[d]); err != nil {
			return err
		}
		f.instant = isInstant(&configs[d])
	}
	return nil
}

// admit decides about a train that came at time now: what leaves at once goes to
// out, which may refer to the train's own memory, the rest to the queue. The
// caller holds the route's mu.
func (f *flow) admit(now time.Duration, t *udpio.Train, out *outbox) {
	f.route.active = now
	r := run{flow: f, buf: t.Buf, seg: segSize(t), out: out}
	for off := 0; ; {
		end := min(off+r.seg, len(t.Buf))
		fate := f.link.Transmit(now, end-off)
		for _, c := range fate.Delivered() {
			direct := c.At <= now && f.ordered == 0 && (f.instant || c.Late)
			switch {
			case c.Corrupted || c.Late || end == off:
				r.flush()
				f.alone(&c, t.Buf[off:end], direct, out)
			default:
				r.add(off, end, direct, c.At)
			}
		}
		if off = end; off >= len(t.Buf) {
			break
		}
	}
	r.flush()
}

// alone passes on a copy that shares no run with its neighbours.
func (f *flow) alone(c *netem.Copy, data []byte, direct bool, out *outbox) {
	size := len(data)
	if !direct && !f.reserve(size, c.Late) {
		return
	}
	f.queued.Add(netem.Count{Datagrams: 1, Bytes: uint64(size)})
	if direct && !c.Corrupted {
		out.add(udpio.Train{Buf: data, SegSize: size}, 1)
		return
	}
	b := bufpool.Get(size)
	copy(b.Data, data)
	c.Damage(b.Data)
	if direct {
		out.add(udpio.Train{Buf: b.Data, SegSize: size}, 1)
		out.buffers = append(out.buffers, b)
		return
	}
	f.hold(c.At, held{flow: f, buf: b, seg: size, n: 1, late: c.Late})
}

// run gathers neighbours within one train that share their fate, so that they
// stay a train.
type run struct {
	flow       *flow
	buf        []byte
	seg        int
	out        *outbox
	start, end int
	n          int
	direct     bool
	at         time.Duration
}

func (r *run) add(off, end int, direct bool, at time.Duration) {
	if r.n > 0 && (off != r.end || direct != r.direct || !direct && at != r.at) {
		r.flush()
	}
	if !direct && !r.flow.reserve(end-off, false) {
		r.flush()
		return
	}
	r.flow.queued.Add(netem.Count{Datagrams: 1, Bytes: uint64(end - off)})
	if r.n == 0 {
		r.start, r.direct, r.at = off, direct, at
	}
	r.end = end
	r.n++
}

func (r *run) flush() {
	if r.n == 0 {
		return
	}
	data, n := r.buf[r.start:r.end], r.n
	r.n = 0
	if r.direct {
		r.out.add(udpio.Train{Buf: data, SegSize: r.seg}, n)
		return
	}
	b := bufpool.Get(len(data))
	copy(b.Data, data)
	r.flow.hold(r.at, held{flow: r.flow, buf: b, seg: r.seg, n: n})
}

// reserve makes room for one datagram in the queue, or counts an overflow.
func (f *flow) reserve(size int, late bool) bool {
	rt, l := f.route, f.route.limits
	if rt.heldBytes+size > l.routeBytes || rt.heldDatagrams >= l.routeDatagrams || l.total.Load()+int64(size) > l.totalBytes {
		f.overflow.Add(netem.Count{Datagrams: 1, Bytes: uint64(size)})
		return false
	}
	l.total.Add(int64(size))
	rt.heldBytes += size
	rt.heldDatagrams++
	rt.peakBytes = max(rt.peakBytes, rt.heldBytes)
	rt.peakDatagrams = max(rt.peakDatagrams, rt.heldDatagrams)
	if !late {
		f.ordered++
	}
	return true
}

// hold queues what was reserved.
func (f *flow) hold(at time.Duration, h held) {
	if !f.route.queue.push(at, h) {
		f.drop(h)
	}
}

// turnAway counts a train that came after the end of the route.
func (f *flow) turnAway(t *udpio.Train) {
	f.turnedAway.Add(netem.Count{Datagrams: uint64(t.Len()), Bytes: uint64(len(t.Buf))})
}

// drop discards what was reserved because the relay ends.
func (f *flow) drop(h held) {
	var o outbox
	o.take(h)
	f.settle(&o, 0, &f.closed)
	o.reset()
}

// settle books what became of an outbox: sent datagrams left, the others are
// lost by the given cause. The caller holds the route's mu.
func (f *flow) settle(o *outbox, sent int, lost *netem.Count) {
	all := netem.Count{Datagrams: uint64(o.datagrams), Bytes: uint64(o.bytes)}
	gone := all
	if sent < o.datagrams {
		// The system does not tell which ones it refused, so their bytes are
		// taken as their share of the datagrams.
		gone.Datagrams = uint64(sent)
		gone.Bytes = uint64(float64(o.bytes) * float64(sent) / float64(o.datagrams))
		lost.Add(netem.Count{Datagrams: all.Datagrams - gone.Datagrams, Bytes: all.Bytes - gone.Bytes})
	}
	f.sent.Add(gone)
	f.queued.Datagrams -= all.Datagrams
	f.queued.Bytes -= all.Bytes
	f.ordered -= o.ordered
	f.route.heldDatagrams -= o.ordered + o.late
	f.route.heldBytes -= o.heldBytes
	f.route.limits.total.Add(-int64(o.heldBytes))
}

// stats returns the counters of a flow. The caller holds the route's mu.
func (f *flow) stats() Flow {
	l := f.link.Stats()
	s := Flow{
		Received:   l.Offered,
		Sent:       f.sent,
		Duplicated: l.Duplicated,
		Late:       l.Late,
		Corrupted:  l.Corrupted,
		Queued:     f.queued,
		Dropped:    Drops{Drops: l.Dropped, Overflow: f.overflow, Failed: f.failed, Closed: f.closed},
	}
	s.Received.Add(f.turnedAway)
	s.Dropped.Closed.Add(f.turnedAway)
	return s
}

func (rt *route) stats() RouteStats {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return RouteStats{
		Index:         rt.index,
		Client:        rt.client,
		Up:            rt.flows[netem.Up].stats(),
		Down:          rt.flows[netem.Down].stats(),
		PeakBytes:     uint64(rt.peakBytes),
		PeakDatagrams: uint64(rt.peakDatagrams),
	}
}

// idle reports whether the route carried nothing since the given time and holds
// nothing. The caller holds mu.
func (rt *route) idle(since time.Duration) bool {
	return rt.active < since && rt.flows[netem.Up].queued.Datagrams+rt.flows[netem.Down].queued.Datagrams == 0
}

// add appends a train of n datagrams.
func (o *outbox) add(t udpio.Train, n int) {
	o.trains = append(o.trains, t)
	o.datagrams += n
	o.bytes += len(t.Buf)
}

// take appends what comes out of the queue and takes its buffer over.
func (o *outbox) take(h held) {
	o.add(udpio.Train{Buf: h.buf.Data, SegSize: h.seg}, h.n)
	o.buffers = append(o.buffers, h.buf)
	o.heldBytes += len(h.buf.Data)
	if h.late {
		o.late += h.n
	} else {
		o.ordered += h.n
	}
}

// reset releases the buffers and empties the outbox, keeping its memory.
func (o *outbox) reset() {
	for i, b := range o.buffers {
		b.Release()
		o.buffers[i] = nil
	}
	clear(o.trains)
	*o = outbox{trains: o.trains[:0], buffers: o.buffers[:0]}
}

// segSize is the length of the train's datagrams; 0 for the empty datagram.
func segSize(t *udpio.Train) int {
	if t.SegSize <= 0 || t.SegSize > len(t.Buf) {
		return len(t.Buf)
	}
	return t.SegSize
}
