package rudp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/openarkstudio/arknet-go/internal/arq"
)

// Dial opens a session with the listener at address, over a UDP socket of its
// own. network is "udp", "udp4" or "udp6". It returns when the handshake is
// complete, when ctx ends, or after Config.HandshakeTimeout with an error that
// matches arknet.ErrConnectTimeout; ctx does not bound the session. Nobody
// listening at address looks the same as a lost datagram: the attempt goes on
// until one of the times is over. A listener that refuses gives an
// *arknet.CloseError, one of another protocol version arknet.ErrVersion. A nil
// cfg stands for the defaults.
func Dial(ctx context.Context, network, address string, cfg *Config) (*Conn, error) {
	if err := checkNetwork("dial", network); err != nil {
		return nil, err
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	var d net.Dialer
	nc, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	udp := nc.(*net.UDPConn)
	remote := udp.RemoteAddr().(*net.UDPAddr).AddrPort()
	c, err := dial(ctx, udp, true, remote, cfg)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// DialPacketConn opens a session with the listener at remote over a socket of
// the caller's, or over any other net.PacketConn whose addresses are
// *net.UDPAddr. Nobody else may read from pc while the session lives; after
// that it is the caller's again, still open. Otherwise it is like Dial.
func DialPacketConn(ctx context.Context, pc net.PacketConn, remote net.Addr, cfg *Config) (*Conn, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	udp, ok := remote.(*net.UDPAddr)
	if !ok || udp == nil || !udp.AddrPort().Addr().IsValid() || udp.Port == 0 {
		return nil, &net.OpError{Op: "dial", Net: "rudp", Err: fmt.Errorf("remote address %v is not a *net.UDPAddr with IP and port", remote)}
	}
	return dial(ctx, pc, false, udp.AddrPort(), cfg)
}

func dial(ctx context.Context, pc net.PacketConn, owned bool, remote netip.AddrPort, cfg *Config) (*Conn, error) {
	ep, err := newEndpoint(pc, owned, cfg.withDefaults())
	if err != nil {
		if owned {
			err = errors.Join(err, pc.Close())
		}
		return nil, err
	}
	c := ep.newConn(netip.AddrPortFrom(remote.Addr().Unmap(), remote.Port()), netip.Addr{})
	core := ep.coreConfig()
	core.LocalID = ep.newID()
	core.Trace = c.tracer()
	c.core = arq.NewClient(ep.now(), core)
	ep.byID[core.LocalID] = c
	ep.closed = true // the socket lives as long as this session
	ep.start()
	c.mu.Lock()
	c.turn(ep.now())
	select {
	case <-c.opened:
		return c, nil
	case <-c.failed:
		select {
		case <-c.opened:
			return c, nil // it was short, but it was: what came can be read
		default:
		}
		<-ep.released
		return nil, c.opError("dial", c.reason())
	case <-ctx.Done():
		// The application never saw the session: nothing to flush.
		_ = c.CloseWithError(arq.CodeNone, "dial canceled")
		<-c.gone
		<-ep.released
		return nil, c.opError("dial", ctx.Err())
	}
}

// reason is why the session ended.
func (c *Conn) reason() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return publicError(c.core.Err())
}
