package simnet

import (
	"net/netip"
	"slices"
)

// Filter adds a predicate that sees each datagram after it was sent and before
// the link. It may change the datagram; when it returns false the datagram is
// dropped and counted, and no later filter sees it. It runs on the sender's
// goroutine and may use the network. The result removes it.
func (n *Network) Filter(f func(*Datagram) bool) (remove func()) {
	h := &hook[func(*Datagram) bool]{f}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.filters = append(slices.Clone(n.filters), h)
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.filters = slices.DeleteFunc(slices.Clone(n.filters), func(o *hook[func(*Datagram) bool]) bool { return o == h })
	}
}

// Observe adds a function that sees each datagram as it arrives, in order,
// whether or not a socket takes it. It must not keep Data and must not call the
// network or its sockets. The result removes it.
func (n *Network) Observe(f func(Datagram)) (remove func()) {
	h := &hook[func(Datagram)]{f}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.taps = append(slices.Clone(n.taps), h)
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.taps = slices.DeleteFunc(slices.Clone(n.taps), func(o *hook[func(Datagram)]) bool { return o == h })
	}
}

// Forge makes a datagram arrive at once, past filters and links, from whatever
// address it claims.
func (n *Network) Forge(from, to netip.AddrPort, data []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return
	}
	n.stats.Sent++
	n.arrivals(n.now())
	n.arrive(Datagram{From: unmap(from), To: unmap(to), Data: slices.Clone(data)})
}

// Rebind makes datagrams of the socket at inside appear to come from outside, and
// gives it what is sent to outside, as a NAT does. Calling it again with another
// outside address is a rebinding: the old one leads nowhere from then on, also for
// what is in flight. The zero outside removes the translation. While it holds,
// inside cannot be reached under its own address. Links stay those of the real
// hosts.
func (n *Network) Rebind(inside, outside netip.AddrPort) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.nat.set(unmap(inside), unmap(outside))
}

// natTable maps the addresses of sockets to those that others see.
type natTable struct {
	out, in map[netip.AddrPort]netip.AddrPort
}

func (t *natTable) set(inside, outside netip.AddrPort) {
	if t.out == nil {
		t.out = make(map[netip.AddrPort]netip.AddrPort)
		t.in = make(map[netip.AddrPort]netip.AddrPort)
	}
	if old, ok := t.out[inside]; ok {
		delete(t.in, old)
		delete(t.out, inside)
	}
	if outside.IsValid() {
		t.out[inside] = outside
		t.in[outside] = inside
	}
}

// outside is what others see instead of a socket's address.
func (t *natTable) outside(a netip.AddrPort) netip.AddrPort {
	if o, ok := t.out[a]; ok {
		return o
	}
	return a
}

// inside is the socket address behind a destination; ok is false for one that is
// hidden by a translation.
func (t *natTable) inside(a netip.AddrPort) (_ netip.AddrPort, ok bool) {
	if i, ok := t.in[a]; ok {
		return i, true
	}
	_, hidden := t.out[a]
	return a, !hidden
}
