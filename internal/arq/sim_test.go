package arq

import (
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/openarkstudio/arknet-go/internal/wire"
	"github.com/openarkstudio/arknet-go/netem"
)

// heavy marks a simulation that runs without the race detector only. It has one
// goroutine: the detector would find nothing and take fifteen times as long.
func heavy(t *testing.T, is bool) {
	t.Helper()
	if is && raceEnabled {
		t.Skip("heavy, and of one goroutine")
	}
}

// sim runs Conns against each other in virtual time over netem links.
type sim struct {
	t      testing.TB
	now    Time
	seq    int
	events eventHeap
	spare  []*simEvent
	nodes  []*node
}

// simEvent is something to come: a call, a datagram that arrives, or the
// timeout of a node.
type simEvent struct {
	at   Time
	seq  int
	run  func()
	node *node
	data []byte // nil for a timeout; reused with the event
}

type eventHeap []*simEvent

func (h eventHeap) before(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].seq < h[j].seq
}

func (h *eventHeap) push(e *simEvent) {
	*h = append(*h, e)
	q := *h
	for i := len(q) - 1; i > 0; {
		up := (i - 1) / 2
		if !q.before(i, up) {
			return
		}
		q[i], q[up] = q[up], q[i]
		i = up
	}
}

func (h *eventHeap) pop() *simEvent {
	q := *h
	first := q[0]
	last := len(q) - 1
	q[0] = q[last]
	q[last] = nil
	q = q[:last]
	*h = q
	for i := 0; ; {
		least := i
		if l := 2*i + 1; l < last && q.before(l, least) {
			least = l
		}
		if r := 2*i + 2; r < last && q.before(r, least) {
			least = r
		}
		if least == i {
			return first
		}
		q[i], q[least] = q[least], q[i]
		i = least
	}
}

// node is one side of a session with its application.
type node struct {
	s    *sim
	c    *Conn
	out  *netem.Link
	peer *node
	wake Time

	onOpen    func()
	onMessage func(m []byte) // m is borrowed
	onEvents  func(e Events)
	readAll   bool                // read messages as they come
	mute      bool                // the peer hears nothing of this node
	tap       func(b []byte) bool // sees each datagram sent; false drops it
	newConn   func(b []byte) *Conn
	buf       []byte
	msg       []byte
	sentBytes int64
	sentCount int64
	turning   bool
	onTurn    func() // after each turn, with the deadline known
	onFate    func(size int, f *netem.Fate)
	timedOut  Time // of the last timeout
	again     int  // timeouts at that very time
}

func newSim(t testing.TB) *sim { return &sim{t: t, now: 1} }

// event makes one to come at a time.
func (s *sim) event(t Time) *simEvent {
	var e *simEvent
	if n := len(s.spare); n > 0 {
		e = s.spare[n-1]
		s.spare = s.spare[:n-1]
	} else {
		e = new(simEvent)
	}
	s.seq++
	e.at, e.seq = max(t, s.now), s.seq
	return e
}

func (s *sim) at(t Time, run func()) {
	e := s.event(t)
	e.run = run
	s.events.push(e)
}

func (s *sim) after(d time.Duration, run func()) { s.at(s.now.add(d), run) }

// run advances virtual time to until.
func (s *sim) run(until Time) {
	for len(s.events) > 0 && s.events[0].at <= until {
		e := s.events.pop()
		s.now = e.at
		switch {
		case e.run != nil:
			e.run()
		case len(e.data) > 0:
			e.node.receive(e.data)
		default:
			e.node.timeout(e.at)
		}
		e.run, e.node, e.data = nil, nil, e.data[:0]
		s.spare = append(s.spare, e)
	}
	s.now = until
}

func (s *sim) runFor(d time.Duration) { s.run(s.now.add(d)) }

func testConfig(id uint32) Config {
	c := Config{
		LocalID: wire.ConnID(id), MTU: DefaultMTU,
		SendWindow: 512 << 10, SendSymbols: 4096, RecvWindow: 4 << 20, RecvSymbols: 4096,
		SendQueue: 16 << 20, SendQueued: 1024, MaxMessage: 16 << 20,
		KeepAlive: 15 * time.Second, DeadPeerTimeout: 30 * time.Second,
		HandshakeTimeout: 10 * time.Second, Linger: 5 * time.Second,
	}
	binary.BigEndian.PutUint32(c.Nonce[:], id*2654435761)
	return c
}

// path makes a fresh link pair with the same condition both ways.
func testLinks(t testing.TB, cfg netem.Config, seed uint64) (up, down *netem.Link) {
	t.Helper()
	up, err := netem.NewLink(cfg, netem.DeriveSeed(seed, 0, netem.Up))
	if err != nil {
		t.Fatal(err)
	}
	down, err = netem.NewLink(cfg, netem.DeriveSeed(seed, 0, netem.Down))
	if err != nil {
		t.Fatal(err)
	}
	return up, down
}

// pair connects a client and a server over the links. The server node exists
// once the first datagram arrives, its settings are made by accept.
func (s *sim) pair(clientCfg, serverCfg Config, up, down *netem.Link) (client, server *node) {
	client = &node{s: s, out: up, readAll: true}
	server = &node{s: s, out: down, readAll: true}
	client.peer, server.peer = server, client
	s.nodes = append(s.nodes, client, server)
	client.c = NewClient(s.now, clientCfg)
	server.newConn = func(b []byte) *Conn {
		body, ok := wire.VerifyChecksum(b, wire.HandshakeKey)
		if !ok || wire.Classify(b) != wire.KindHandshake {
			return nil
		}
		h, _, err := wire.ParseLong(body)
		if err != nil {
			return nil
		}
		return NewServer(s.now, serverCfg, h)
	}
	s.at(s.now, client.turn)
	return client, server
}

// receive takes one datagram from the network.
func (n *node) receive(b []byte) {
	if n.c == nil {
		if n.c = n.newConn(b); n.c == nil {
			return
		}
	}
	if n.c.State() == StateDone {
		n.reset(b)
		return
	}
	n.c.HandleDatagram(n.s.now, b)
	n.turn()
}

// reset answers for a session that is over, as an endpoint does.
func (n *node) reset(b []byte) {
	if q, ok := wire.QuoteOf(b); ok {
		n.transmit(wire.AppendReset(nil, n.c.LocalID(), q))
	}
}

// turn is the driver's turn: events, application, datagrams, deadline.
func (n *node) turn() {
	if n.turning || n.c == nil {
		return
	}
	n.turning = true
	defer func() { n.turning = false }()
	n.drainEvents()
	for {
		var seg int
		n.buf, seg = n.c.AppendDatagrams(n.s.now, n.buf[:0], maxTrain)
		if seg == 0 {
			break
		}
		for b := n.buf; len(b) > 0; {
			d := b[:min(seg, len(b))]
			b = b[len(d):]
			n.transmit(d)
		}
		n.drainEvents()
	}
	at, ok := n.c.NextTimeout()
	if n.onTurn != nil {
		n.onTurn()
	}
	if !ok {
		n.wake = never
		return
	}
	if at != n.wake {
		n.wake = at
		e := n.s.event(at)
		e.node = n
		n.s.events.push(e)
	}
}

func (n *node) timeout(at Time) {
	if n.wake > at {
		return // re-armed meanwhile
	}
	n.wake = 0
	if n.again++; n.timedOut != n.s.now {
		n.timedOut, n.again = n.s.now, 0
	}
	if n.again > 20 {
		n.s.t.Fatalf("deadline %d stays in the past at %d, state %d", at, n.s.now, n.c.State())
	}
	n.c.HandleTimeout(n.s.now)
	n.turn()
}

func (n *node) drainEvents() {
	for {
		e := n.c.TakeEvents()
		if e&EventOpened != 0 && n.onOpen != nil {
			n.onOpen()
		}
		if n.onEvents != nil && e != 0 {
			n.onEvents(e)
		}
		for n.readAll {
			m, ok, err := n.c.AppendMessage(n.msg[:0])
			if err != nil || !ok {
				break
			}
			n.msg = m
			if n.onMessage != nil {
				n.onMessage(m)
			}
		}
		if e == 0 {
			return
		}
	}
}

func (n *node) transmit(d []byte) {
	n.sentBytes += int64(len(d))
	n.sentCount++
	if n.mute || n.tap != nil && !n.tap(d) {
		return
	}
	fate := n.out.Transmit(time.Duration(n.s.now), len(d))
	if n.onFate != nil {
		n.onFate(len(d), &fate)
	}
	for _, c := range fate.Delivered() {
		e := n.s.event(Time(c.At))
		e.node, e.data = n.peer, append(e.data, d...)
		c.Damage(e.data)
		n.s.events.push(e)
	}
}

// send accepts a message and takes the driver's turn.
func (n *node) send(m []byte) {
	n.s.t.Helper()
	if _, err := n.c.Send(n.s.now, m); err != nil {
		n.s.t.Fatalf("send of %d bytes: %v", len(m), err)
	}
	n.turn()
}

// echoResult is what a closed-loop run showed.
type echoResult struct {
	perSecond     float64 // of four clients, as the benchmark counts
	p50, p95, p99 time.Duration
	overhead      float64 // wire bytes / application bytes - 1
	client        Stats
	server        Stats
}

type echoLoad struct {
	net     netem.Config
	payload int
	window  int
	warm    time.Duration
	measure time.Duration
	clients int
	config  func(*Config)
	inspect func(*Conn) // of each side, when the run is over
}

// runEcho keeps window messages of one session in flight, as the benchmark
// does, and merges the sessions of several seeds. Content and order are checked.
func runEcho(t testing.TB, l echoLoad) echoResult {
	t.Helper()
	var rtts []time.Duration
	var res echoResult
	var wireBytes int64
	for seed := range uint64(l.clients) {
		s := newSim(t)
		up, down := testLinks(t, l.net, 42+seed)
		cc, sc := testConfig(1), testConfig(2)
		if l.config != nil {
			l.config(&cc)
			l.config(&sc)
		}
		client, server := s.pair(cc, sc, up, down)
		server.onMessage = func(m []byte) { server.send(m) }
		measured := false
		var sentAt []Time
		next := uint64(0)
		message := make([]byte, l.payload)
		submit := func() {
			binary.BigEndian.PutUint64(message, uint64(len(sentAt)))
			sentAt = append(sentAt, s.now)
			client.send(message)
		}
		client.onOpen = func() {
			for range l.window {
				submit()
			}
		}
		client.onMessage = func(m []byte) {
			if got := binary.BigEndian.Uint64(m); got != next || len(m) != l.payload {
				t.Fatalf("echo %d of %d bytes, want %d of %d", got, len(m), next, l.payload)
			}
			if measured {
				rtts = append(rtts, s.now.sub(sentAt[next]))
			}
			next++
			submit()
		}
		s.runFor(l.warm)
		measured = true
		before := client.sentBytes + server.sentBytes
		s.runFor(l.measure)
		wireBytes += client.sentBytes + server.sentBytes - before
		res.client, res.server = client.c.Stats(), server.c.Stats()
		if l.inspect != nil {
			l.inspect(client.c)
			l.inspect(server.c)
		}
	}
	slices.Sort(rtts)
	n := len(rtts)
	if n == 0 {
		t.Fatal("no echo came back")
	}
	res.perSecond = 4 * float64(n) / float64(l.clients) / l.measure.Seconds()
	res.p50, res.p95, res.p99 = rtts[n/2], rtts[n*95/100], rtts[n*99/100]
	res.overhead = float64(wireBytes)/float64(2*l.payload*n) - 1
	return res
}
