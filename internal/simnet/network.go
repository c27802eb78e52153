package simnet

import (
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/openarkstudio/arknet-go/netem"
)

// maxInFlight bounds the datagrams that are on their way in one network.
const maxInFlight = 1 << 18

// firstPort is where the search for a free port begins, as on real systems.
const firstPort = 49152

// Network joins sockets. All methods are safe for concurrent use.
type Network struct {
	seed  uint64
	start time.Time

	mu      sync.Mutex
	closed  bool
	normal  netem.Config // of pairs that SetPath does not name
	links   map[pair]*netem.Link
	sockets map[netip.AddrPort]*Conn
	port    uint16
	nat     natTable
	flight  netem.Schedule[Datagram]
	timer   *time.Timer
	timerAt time.Duration // what the timer is set to; 0 when it is not
	filters []*hook[func(*Datagram) bool]
	taps    []*hook[func(Datagram)]
	stats   Stats
}

type pair struct{ from, to netip.Addr }

type hook[F any] struct{ f F }

// Stats counts the datagrams of a whole network. Sent + the links' duplicates =
// Delivered + Filtered + NoSocket + Overflow + the links' drops + InFlight, where
// forged datagrams count as sent.
type Stats struct {
	Sent      uint64 // written to sockets or forged
	Filtered  uint64 // dropped by a filter
	Delivered uint64 // put into a socket's receive queue
	NoSocket  uint64 // arrived where no socket, or one of another peer, listens
	Overflow  uint64 // dropped because a receive queue or the network was full
	InFlight  uint64 // on their way now
}

// Datagram is one datagram on its way.
type Datagram struct {
	From, To netip.AddrPort // as the receiver sees them, after NAT
	Data     []byte         // owned by the network; a filter may change it
	copy     netem.Copy
}

// New returns a network whose links are perfect until SetDefault or SetPath says
// otherwise. Its clock starts now.
func New(seed uint64) *Network {
	return &Network{
		seed:    seed,
		start:   time.Now(),
		links:   make(map[pair]*netem.Link),
		sockets: make(map[netip.AddrPort]*Conn),
		port:    firstPort,
	}
}

// Close closes every socket and forgets what is in flight.
func (n *Network) Close() error {
	n.mu.Lock()
	n.closed = true
	if n.timer != nil {
		n.timer.Stop()
	}
	n.flight = netem.Schedule[Datagram]{}
	var open []*Conn
	for _, c := range n.sockets {
		open = append(open, c)
	}
	n.mu.Unlock()
	for _, c := range open {
		c.Close()
	}
	return nil
}

// SetDefault sets the condition of all links that SetPath has not set, now and
// later. It panics on an invalid config, as do the other setters: the mistake is
// the test's.
func (n *Network) SetDefault(cfg netem.Config) {
	n.mu.Lock()
	defer n.mu.Unlock()
	must(cfg.Validate())
	n.normal = cfg
	now := n.now()
	for _, l := range n.links {
		must(l.SetConfig(now, cfg))
	}
}

// SetPath sets the condition from one host to another; the way back has its own.
// Outages are counted from now.
func (n *Network) SetPath(from, to netip.Addr, cfg netem.Config) {
	n.mu.Lock()
	defer n.mu.Unlock()
	must(n.link(from, to).SetConfig(n.now(), cfg))
}

// PathStats returns the counters of the link from one host to another.
func (n *Network) PathStats(from, to netip.Addr) netem.Stats {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.link(from, to).Stats()
}

// Stats returns the counters of the network.
func (n *Network) Stats() Stats {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.stats
	s.InFlight = uint64(n.flight.Len())
	return s
}

// Listen opens a socket on a literal address such as "10.0.0.1:7000" or
// "[fd00::1]:0"; port 0 picks a free one. The address must name a host: there is
// no wildcard.
func (n *Network) Listen(address string) (*Conn, error) {
	return n.open("listen", address, netip.AddrPort{})
}

// Dial opens a socket on a literal local address that exchanges datagrams with
// one remote address only, as net.DialUDP does. Read and Write work on it.
func (n *Network) Dial(local, remote string) (*Conn, error) {
	peer, err := netip.ParseAddrPort(remote)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: "udp", Err: err}
	}
	return n.open("dial", local, unmap(peer))
}

func (n *Network) open(op, address string, peer netip.AddrPort) (*Conn, error) {
	local, err := netip.ParseAddrPort(address)
	if err == nil && local.Addr().IsUnspecified() {
		err = errors.New("an address of the simulated network must name a host")
	}
	local = unmap(local)
	if err == nil && peer.IsValid() && peer.Addr().Is4() != local.Addr().Is4() {
		err = errFamily
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if err == nil && n.closed {
		err = net.ErrClosed
	}
	if err == nil && local.Port() == 0 {
		local, err = n.freePort(local.Addr())
	}
	if err == nil && n.sockets[local] != nil {
		err = fmt.Errorf("address %v is in use", local)
	}
	if err != nil {
		return nil, &net.OpError{Op: op, Net: "udp", Addr: stringAddr(address), Err: err}
	}
	c := newConn(n, local, peer)
	n.sockets[local] = c
	return c, nil
}

func (n *Network) freePort(a netip.Addr) (netip.AddrPort, error) {
	for range 1 << 16 {
		p := netip.AddrPortFrom(a, n.port)
		if n.port++; n.port < firstPort {
			n.port = firstPort
		}
		if n.sockets[p] == nil {
			return p, nil
		}
	}
	return netip.AddrPort{}, errors.New("no free port")
}

func (n *Network) now() time.Duration { return time.Since(n.start) }

// link returns the link of a pair of hosts and makes it when needed.
func (n *Network) link(from, to netip.Addr) *netem.Link {
	key := pair{from.Unmap(), to.Unmap()}
	l := n.links[key]
	if l == nil {
		h := fnv.New64a()
		a, b := key.from.As16(), key.to.As16()
		h.Write(a[:])
		h.Write(b[:])
		var err error
		l, err = netem.NewLink(n.normal, netem.DeriveSeed(n.seed, h.Sum64(), netem.Up))
		must(err)
		n.links[key] = l
	}
	return l
}

// send carries a datagram from a socket onto its link. from is the address of
// the socket itself; d.Data must be private.
func (n *Network) send(from netip.AddrPort, d Datagram) {
	n.mu.Lock()
	n.stats.Sent++
	d.From = n.nat.outside(from)
	filters := n.filters
	n.mu.Unlock()

	// Filters run unlocked, so that they may use the network.
	pass := true
	for _, h := range filters {
		pass = pass && h.f(&d)
	}

	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return
	}
	if !pass {
		n.stats.Filtered++
		return
	}
	now := n.now()
	n.arrivals(now) // what is due must not be overtaken
	inside, _ := n.nat.inside(d.To)
	fate := n.link(from.Addr(), inside.Addr()).Transmit(now, len(d.Data))
	copies := fate.Delivered()
	for i, c := range copies {
		e := d
		if i < len(copies)-1 {
			e.Data = slices.Clone(d.Data) // each copy may be damaged on its own
		}
		e.copy = c
		switch {
		case c.At <= now:
			n.arrive(e)
		case n.flight.Len() >= maxInFlight:
			n.stats.Overflow++
		default:
			n.flight.Push(c.At, e)
		}
	}
	n.arm(now)
}

// arrivals delivers what is due.
func (n *Network) arrivals(now time.Duration) {
	for {
		d, _, ok := n.flight.PopDue(now)
		if !ok {
			return
		}
		n.arrive(d)
	}
}

func (n *Network) arrive(d Datagram) {
	d.copy.Damage(d.Data)
	for _, h := range n.taps {
		h.f(d)
	}
	to, known := n.nat.inside(d.To)
	c := n.sockets[to]
	if !known || c == nil || !c.accepts(d.From) {
		n.stats.NoSocket++
		return
	}
	if !c.deliver(d) {
		n.stats.Overflow++
		return
	}
	n.stats.Delivered++
}

// arm sets the timer to the next arrival. Arrivals are released by one timer in
// one loop: a timer each would hand those of the same instant to goroutines that
// race.
func (n *Network) arm(now time.Duration) {
	next, ok := n.flight.Next()
	if !ok || n.timerAt != 0 && n.timerAt <= next {
		return
	}
	n.timerAt = next
	if n.timer == nil {
		n.timer = time.AfterFunc(next-now, n.expire)
		return
	}
	n.timer.Reset(next - now)
}

func (n *Network) expire() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return
	}
	now := n.now()
	n.timerAt = 0
	n.arrivals(now)
	n.arm(now)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func unmap(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

// stringAddr is an address that did not parse, for error texts.
type stringAddr string

func (stringAddr) Network() string  { return "udp" }
func (a stringAddr) String() string { return string(a) }
