package simnet

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Defaults of a socket's receive queue.
const (
	DefaultReadBuffer = 4 << 20 // bytes
	maxReadPackets    = 8192
	// packetCost is counted for each datagram besides its bytes, as kernels do,
	// so that empty datagrams are bounded too.
	packetCost = 64
	// maxDatagram is the largest UDP payload over IPv4.
	maxDatagram = 65507
)

var (
	errFamily       = errors.New("addresses of different families")
	errNotConnected = errors.New("destination address required")
	errConnected    = net.ErrWriteToConnected
	errBadAddress   = errors.New("not a UDP address")
)

// Conn is a socket of the network. It is a net.PacketConn, and a net.Conn when
// it was dialled. All methods are safe for concurrent use. Writes never block.
type Conn struct {
	network *Network
	local   netip.AddrPort
	peer    netip.AddrPort // of a dialled socket

	closed   chan struct{}
	readable chan struct{} // holds a token while the queue has data or an error
	readBy   *deadline
	writeBy  *deadline

	mu         sync.Mutex
	isClosed   bool
	queue      []Datagram // from head on
	head       int
	queueBytes int
	limit      int
	readErrs   []error
	writeHook  func(to netip.AddrPort, b []byte) error
	stats      ConnStats
}

// ConnStats counts the datagrams of one socket.
type ConnStats struct {
	Sent      uint64 // accepted by a write
	SentBytes uint64
	Received  uint64 // put into the receive queue
	Read      uint64 // returned by a read
	Overflow  uint64 // dropped because the receive queue was full
	Truncated uint64 // longer than the buffer of the read
	Queued    int    // wait to be read now
}

var (
	_ net.PacketConn = (*Conn)(nil)
	_ net.Conn       = (*Conn)(nil)
)

func newConn(n *Network, local, peer netip.AddrPort) *Conn {
	return &Conn{
		network:  n,
		local:    local,
		peer:     peer,
		closed:   make(chan struct{}),
		readable: make(chan struct{}, 1),
		readBy:   newDeadline(),
		writeBy:  newDeadline(),
		limit:    DefaultReadBuffer,
	}
}

// ReadFromUDPAddrPort waits for a datagram and copies it to b; what does not fit
// is lost. After Close the error matches net.ErrClosed, after the deadline
// os.ErrDeadlineExceeded.
func (c *Conn) ReadFromUDPAddrPort(b []byte) (int, netip.AddrPort, error) {
	for {
		// A socket that is closed or late fails even when data waits.
		deadline := c.readBy.wait()
		switch {
		case isClosed(c.closed):
			return 0, netip.AddrPort{}, c.opError("read", net.ErrClosed)
		case isClosed(deadline):
			return 0, netip.AddrPort{}, c.opError("read", os.ErrDeadlineExceeded)
		}
		if n, from, ok, err := c.take(b); ok {
			return n, from, err
		}
		select {
		case <-c.readable:
		case <-c.closed:
		case <-deadline:
			// The deadline may have been moved meanwhile; look again.
		}
	}
}

// take pops the queue; ok is false when there is nothing.
func (c *Conn) take(b []byte) (n int, from netip.AddrPort, ok bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.signal()
	if len(c.readErrs) > 0 {
		err = c.readErrs[0]
		c.readErrs = c.readErrs[1:]
		return 0, netip.AddrPort{}, true, c.opError("read", err)
	}
	if c.head == len(c.queue) {
		return 0, netip.AddrPort{}, false, nil
	}
	d := c.queue[c.head]
	c.queue[c.head] = Datagram{}
	if c.head++; c.head == len(c.queue) {
		c.queue, c.head = c.queue[:0], 0
	}
	c.queueBytes -= len(d.Data) + packetCost
	c.stats.Read++
	n = copy(b, d.Data)
	if n < len(d.Data) {
		c.stats.Truncated++
	}
	return n, d.From, true, nil
}

// signal leaves a token for the next reader if there is something to take.
func (c *Conn) signal() {
	if c.head < len(c.queue) || len(c.readErrs) > 0 {
		select {
		case c.readable <- struct{}{}:
		default:
		}
	}
}

// accepts reports whether the socket takes datagrams from there.
func (c *Conn) accepts(from netip.AddrPort) bool { return !c.peer.IsValid() || c.peer == from }

// deliver puts a datagram into the receive queue; false when that is full.
func (c *Conn) deliver(d Datagram) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	cost := len(d.Data) + packetCost
	queued := len(c.queue) - c.head
	if c.isClosed || queued >= maxReadPackets || queued > 0 && c.queueBytes+cost > c.limit {
		c.stats.Overflow++
		return false
	}
	if c.head > 1024 && c.head > len(c.queue)/2 {
		n := copy(c.queue, c.queue[c.head:])
		clear(c.queue[n:])
		c.queue, c.head = c.queue[:n], 0
	}
	c.queue = append(c.queue, d)
	c.queueBytes += cost
	c.stats.Received++
	c.signal()
	return true
}

// WriteToUDPAddrPort sends a datagram. It never blocks; what happens after the
// link is told by counters only.
func (c *Conn) WriteToUDPAddrPort(b []byte, to netip.AddrPort) (int, error) {
	if c.peer.IsValid() {
		return 0, c.opError("write", errConnected)
	}
	return c.send(b, unmap(to))
}

func (c *Conn) send(b []byte, to netip.AddrPort) (int, error) {
	switch {
	case isClosed(c.closed):
		return 0, c.opError("write", net.ErrClosed)
	case isClosed(c.writeBy.wait()):
		return 0, c.opError("write", os.ErrDeadlineExceeded)
	case !to.IsValid():
		return 0, c.opError("write", errBadAddress)
	case to.Addr().Is4() != c.local.Addr().Is4():
		return 0, c.opError("write", errFamily)
	case len(b) > maxDatagram:
		return 0, c.opError("write", syscall.EMSGSIZE)
	}
	c.mu.Lock()
	hook := c.writeHook
	c.mu.Unlock()
	if hook != nil {
		if err := hook(to, b); err != nil {
			return 0, c.opError("write", err)
		}
	}
	c.mu.Lock()
	c.stats.Sent++
	c.stats.SentBytes += uint64(len(b))
	c.mu.Unlock()
	c.network.send(c.local, Datagram{To: to, Data: slices.Clone(b)})
	return len(b), nil
}

// ReadFrom is ReadFromUDPAddrPort with a *net.UDPAddr.
func (c *Conn) ReadFrom(b []byte) (int, net.Addr, error) {
	n, from, err := c.ReadFromUDPAddrPort(b)
	if err != nil {
		return 0, nil, err
	}
	return n, net.UDPAddrFromAddrPort(from), nil
}

// WriteTo is WriteToUDPAddrPort for a *net.UDPAddr or any address whose text is
// an IP address and port.
func (c *Conn) WriteTo(b []byte, addr net.Addr) (int, error) {
	var to netip.AddrPort
	switch a := addr.(type) {
	case nil:
	case *net.UDPAddr:
		to = a.AddrPort()
	default:
		to, _ = netip.ParseAddrPort(a.String())
	}
	if !to.IsValid() {
		return 0, c.opError("write", errBadAddress)
	}
	return c.WriteToUDPAddrPort(b, to)
}

// Read reads a datagram of a dialled socket's peer.
func (c *Conn) Read(b []byte) (int, error) {
	n, _, err := c.ReadFromUDPAddrPort(b)
	return n, err
}

// Write sends a datagram to a dialled socket's peer.
func (c *Conn) Write(b []byte) (int, error) {
	if !c.peer.IsValid() {
		return 0, c.opError("write", errNotConnected)
	}
	return c.send(b, c.peer)
}

// Close closes the socket and ends blocked calls. What it sent before still
// arrives. A second Close returns an error that matches net.ErrClosed.
func (c *Conn) Close() error {
	// The lock order is network before socket, as on delivery.
	c.network.mu.Lock()
	defer c.network.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isClosed {
		return c.opError("close", net.ErrClosed)
	}
	c.isClosed = true
	delete(c.network.sockets, c.local)
	close(c.closed)
	c.readBy.stop()
	c.writeBy.stop()
	c.queue, c.head, c.queueBytes = nil, 0, 0
	return nil
}

// LocalAddr returns the *net.UDPAddr of the socket itself, whatever Rebind says.
func (c *Conn) LocalAddr() net.Addr { return net.UDPAddrFromAddrPort(c.local) }

// LocalAddrPort returns the socket's address.
func (c *Conn) LocalAddrPort() netip.AddrPort { return c.local }

// RemoteAddr returns the peer of a dialled socket, else nil.
func (c *Conn) RemoteAddr() net.Addr {
	if !c.peer.IsValid() {
		return nil
	}
	return net.UDPAddrFromAddrPort(c.peer)
}

// SetDeadline sets both deadlines.
func (c *Conn) SetDeadline(t time.Time) error { return c.setDeadline(t, c.readBy, c.writeBy) }

// SetReadDeadline ends blocked and later reads at a time; the zero time never.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.setDeadline(t, c.readBy) }

// SetWriteDeadline makes writes fail from a time on; the zero time never.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.setDeadline(t, c.writeBy) }

func (c *Conn) setDeadline(t time.Time, ds ...*deadline) error {
	if isClosed(c.closed) {
		return c.opError("set", net.ErrClosed)
	}
	for _, d := range ds {
		d.set(t)
	}
	return nil
}

// SetReadBuffer bounds the receive queue in bytes; each datagram counts 64 more
// than its length. The default is DefaultReadBuffer, and never more than 8,192
// datagrams wait.
func (c *Conn) SetReadBuffer(bytes int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limit = max(bytes, 0)
	return nil
}

// SetWriteBuffer does nothing: writes are not buffered.
func (c *Conn) SetWriteBuffer(int) error { return nil }

// FailRead makes the next read return an error, as a pending ICMP message does;
// several are returned one by one.
func (c *Conn) FailRead(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readErrs = append(c.readErrs, err)
	c.signal()
}

// OnWrite sets a function that is asked before each write, with the bytes
// borrowed for the call; its error is returned by the write and nothing is sent.
// nil removes it.
func (c *Conn) OnWrite(f func(to netip.AddrPort, b []byte) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writeHook = f
}

// Stats returns the socket's counters.
func (c *Conn) Stats() ConnStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stats
	s.Queued = len(c.queue) - c.head
	return s
}

func (c *Conn) opError(op string, err error) error {
	e := &net.OpError{Op: op, Net: "udp", Source: c.LocalAddr(), Err: err}
	if remote := c.RemoteAddr(); remote != nil {
		e.Addr = remote
	}
	return e
}
