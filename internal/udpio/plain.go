package udpio

import (
	"errors"
	"net"
	"net/netip"
	"sync"

	"github.com/openarkstudio/arknet-go/internal/bufpool"
)

// plainPath serves any net.PacketConn datagram by datagram. It blocks in the
// connection only, so that a fake clock can move over an in-memory one.
type plainPath struct {
	pc     net.PacketConn
	quick  addrPortConn   // pc, when it has these methods
	dialed net.Conn       // pc, when it is connected
	remote netip.AddrPort // the peer of dialed
	max    int            // longest datagram
	pool   *bufpool.Pool
	buf    *bufpool.Buffer // lent for the read under way or just done
	ctr    *counters
	addrs  addrCache
}

// addrPortConn is what *net.UDPConn has beyond net.PacketConn, free of
// allocation.
type addrPortConn interface {
	ReadFromUDPAddrPort(b []byte) (int, netip.AddrPort, error)
	WriteToUDPAddrPort(b []byte, addr netip.AddrPort) (int, error)
}

func newPlainPath(s *Socket, pc net.PacketConn, opts *Options) *plainPath {
	p := &plainPath{pc: pc, max: opts.maxDatagram(), pool: opts.pool(), ctr: &s.ctr}
	p.quick, _ = pc.(addrPortConn)
	if c, ok := pc.(net.Conn); ok && !isNilAddr(c.RemoteAddr()) {
		p.dialed = c
		p.remote = addrPortOf(c.RemoteAddr())
	}
	return p
}

func (p *plainPath) read(ts []Train) (int, error) {
	if p.buf == nil {
		// One byte more than is allowed, to tell a datagram that is too long.
		p.buf = p.pool.Get(p.max + 1)
	}
	buf := p.buf.Data
	var n int
	var from netip.AddrPort
	var err error
	if p.quick != nil {
		n, from, err = p.quick.ReadFromUDPAddrPort(buf)
		from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
	} else {
		var addr net.Addr
		n, addr, err = p.pc.ReadFrom(buf)
		if err == nil {
			from = addrPortOf(addr)
		}
	}
	p.ctr.syscallsIn.Add(1)
	if err != nil {
		p.release()
		if kindOf(err) == ErrTooLarge { // Windows' way to say that it was cut
			p.ctr.truncatedIn.Add(1)
		}
		return 0, err
	}
	if n > p.max {
		p.ctr.truncatedIn.Add(1)
		return 0, nil
	}
	if p.dialed != nil {
		from = p.remote
	}
	ts[0] = Train{Buf: buf[:n:n], SegSize: n, Addr: from}
	p.ctr.datagramsIn.Add(1)
	p.ctr.bytesIn.Add(uint64(n))
	if n == 0 {
		p.ctr.emptyIn.Add(1)
	}
	return 1, nil
}

func (p *plainPath) release() {
	p.buf.Release()
	p.buf = nil
}

func (p *plainPath) write(ts []Train) (sent int, err error) {
	var bytes, lost, calls int
	for i := range ts {
		t := &ts[i]
		seg, rest := t.seg(), t.Buf
		for more := true; more; {
			d := rest
			if more = len(rest) > seg; more {
				d, rest = rest[:seg], rest[seg:]
			}
			calls++
			switch e := p.writeOne(d, t.Addr); {
			case e == nil:
				sent++
				bytes += len(d)
			case errors.Is(e, net.ErrClosed):
				err = net.ErrClosed
			default:
				lost++
				p.ctr.writeErrors[kindOf(e)].Add(1)
			}
			if err != nil {
				break
			}
		}
		if err != nil {
			break
		}
	}
	p.ctr.syscallsOut.Add(uint64(calls))
	p.ctr.datagramsOut.Add(uint64(sent))
	p.ctr.bytesOut.Add(uint64(bytes))
	p.ctr.lostOut.Add(uint64(lost))
	return sent, err
}

func (p *plainPath) writeOne(d []byte, to netip.AddrPort) (err error) {
	switch {
	case p.dialed != nil:
		_, err = p.dialed.Write(d)
	case !to.IsValid():
		err = wsaEADDRNOTAVAIL
	case p.quick != nil:
		_, err = p.quick.WriteToUDPAddrPort(d, to)
	default:
		_, err = p.pc.WriteTo(d, p.addrs.get(to))
	}
	return err
}

func (p *plainPath) detach() {}

func (p *plainPath) fill(*Stats) {}

// addrCache keeps the net.Addr values of recent peers, which WriteTo wants on
// the heap.
type addrCache struct {
	mu sync.Mutex
	m  map[netip.AddrPort]*net.UDPAddr
}

// maxCachedAddrs bounds the cache; a full one is dropped as a whole.
const maxCachedAddrs = 4096

func (c *addrCache) get(ap netip.AddrPort) *net.UDPAddr {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.m[ap]
	if a == nil {
		if c.m == nil || len(c.m) >= maxCachedAddrs {
			c.m = make(map[netip.AddrPort]*net.UDPAddr)
		}
		a = net.UDPAddrFromAddrPort(ap)
		c.m[ap] = a
	}
	return a
}

// addrPortOf converts an address of any kind; zero when it is not IP and port.
func addrPortOf(a net.Addr) netip.AddrPort {
	var ap netip.AddrPort
	switch a := a.(type) {
	case nil:
	case *net.UDPAddr:
		if a != nil {
			ap = a.AddrPort()
		}
	case interface{ AddrPort() netip.AddrPort }:
		ap = a.AddrPort()
	default:
		ap, _ = netip.ParseAddrPort(a.String())
	}
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}

// isNilAddr sees through the typed nil that net gives for an unconnected
// socket.
func isNilAddr(a net.Addr) bool {
	u, ok := a.(*net.UDPAddr)
	return a == nil || ok && u == nil
}
