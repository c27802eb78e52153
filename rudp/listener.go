package rudp

import (
	"context"
	"errors"
	"net"
	"sync"
)

// Listener accepts sessions on one socket. It implements net.Listener. All
// methods may be called at the same time from any goroutine.
type Listener struct {
	ep      *endpoint
	ready   chan *Conn // capacity Config.Backlog, which bounds what is offered
	closed  chan struct{}
	closeMu sync.Mutex
}

// Listen opens a UDP socket and accepts sessions on it. network is "udp",
// "udp4" or "udp6"; address is host:port as for net.ListenPacket. A nil cfg
// stands for the defaults.
func Listen(network, address string, cfg *Config) (*Listener, error) {
	if err := checkNetwork("listen", network); err != nil {
		return nil, err
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	pc, err := net.ListenPacket(network, address)
	if err != nil {
		return nil, err
	}
	l, err := listen(pc, true, cfg)
	if err != nil {
		return nil, errors.Join(err, pc.Close())
	}
	return l, nil
}

// NewListener accepts sessions on a socket of the caller's, or on any other
// net.PacketConn whose addresses are *net.UDPAddr. Nobody else may read from pc
// while the Listener or one of its sessions lives; after that it is the
// caller's again, still open.
func NewListener(pc net.PacketConn, cfg *Config) (*Listener, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return listen(pc, false, cfg)
}

func listen(pc net.PacketConn, owned bool, cfg *Config) (*Listener, error) {
	ep, err := newEndpoint(pc, owned, cfg.withDefaults())
	if err != nil {
		return nil, err
	}
	l := &Listener{
		ep:     ep,
		ready:  make(chan *Conn, ep.cfg.Backlog),
		closed: make(chan struct{}),
	}
	ep.listener = l
	ep.start()
	return l, nil
}

func checkNetwork(op, network string) error {
	switch network {
	case "udp", "udp4", "udp6":
		return nil
	}
	return &net.OpError{Op: op, Net: network, Err: net.UnknownNetworkError(network)}
}

// offer hands an opened session to Accept. Refused when the listener is closed.
func (l *Listener) offer(c *Conn) {
	l.closeMu.Lock()
	defer l.closeMu.Unlock()
	select {
	case <-l.closed:
		go l.refuse(c)
	default:
		l.ready <- c // the backlog bounds the sessions not yet accepted
	}
}

// refuse ends a session that nobody will accept.
func (l *Listener) refuse(c *Conn) {
	c.mu.Lock()
	c.closing = true
	c.core.Discard()
	c.core.Refuse(l.ep.now())
	c.turn(l.ep.now())
}

// Accept implements net.Listener; the value is a *Conn.
func (l *Listener) Accept() (net.Conn, error) {
	c, err := l.AcceptConn(context.Background())
	if err != nil {
		return nil, err
	}
	return c, nil
}

// AcceptConn waits for the next session whose handshake is complete, until ctx
// ends. After Close it returns an error that matches net.ErrClosed.
func (l *Listener) AcceptConn(ctx context.Context) (*Conn, error) {
	select {
	case <-l.closed:
		return nil, l.closedError()
	default:
	}
	select {
	case c := <-l.ready:
		l.ep.mu.Lock()
		c.accepted = true
		l.ep.pending--
		l.ep.mu.Unlock()
		return c, nil
	case <-l.closed:
		return nil, l.closedError()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *Listener) closedError() error {
	return &net.OpError{Op: "accept", Net: "rudp", Addr: l.Addr(), Err: net.ErrClosed}
}

// Addr returns the local address of the socket.
func (l *Listener) Addr() net.Addr { return l.ep.sock.LocalAddr() }

// Close stops accepting. Sessions that were accepted go on until they are
// closed, as with TCP; the socket closes with the last of them. Sessions that
// were not accepted are refused. A second Close returns an error that matches
// net.ErrClosed.
func (l *Listener) Close() error {
	l.closeMu.Lock()
	select {
	case <-l.closed:
		l.closeMu.Unlock()
		return &net.OpError{Op: "close", Net: "rudp", Addr: l.Addr(), Err: net.ErrClosed}
	default:
	}
	close(l.closed)
	l.closeMu.Unlock()
	for _, c := range l.ep.unaccepted() {
		l.refuse(c)
	}
	l.ep.stopNew()
	select {
	case <-l.ep.done:
		<-l.ep.released
	default:
	}
	return nil
}

// socketClosed ends Accept when the socket is gone.
func (l *Listener) socketClosed() {
	l.closeMu.Lock()
	defer l.closeMu.Unlock()
	select {
	case <-l.closed:
	default:
		close(l.closed)
	}
}

// unaccepted lists the server sessions that wait for Accept or are half open.
func (ep *endpoint) unaccepted() []*Conn {
	ep.mu.Lock()
	defer ep.mu.Unlock()
	ep.closed = true
	var list []*Conn
	for _, c := range ep.byPeer {
		if !c.accepted {
			list = append(list, c)
		}
	}
	return list
}
