package udpio

import (
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/openarkstudio/arknet-go/internal/bufpool"
)

// fastPath serves a *net.UDPConn with raw system calls. They run inside
// syscall.RawConn, so that waiting is the business of the runtime's poller and
// Close and deadlines of the connection work as always.
type fastPath struct {
	conn   *net.UDPConn
	rc     syscall.RawConn
	ctr    *counters
	pool   *bufpool.Pool
	max    int // longest datagram
	family int // AF_INET or AF_INET6
	zones  zones
	kernel kernel

	remote   netip.AddrPort // of a connected socket
	wildcard bool           // bound to all addresses and not connected

	gro       bool
	groBefore int // the option as the connection came
	// maxSeg is the longest segment that GSO is used for: 0 when it is off,
	// less than all when the kernel refused a size.
	maxSeg atomic.Int32
	batch  atomic.Bool // several messages per system call
	drops  atomic.Uint64

	reader
	writer
}

// lowestMTU is the payload that fits the smallest MTU of IPv6, 1,280 bytes. A
// kernel that refuses GSO for segments of this size does not refuse the size.
const lowestMTU = 1232

func newFastPath(s *Socket, conn *net.UDPConn, opts *Options) (*fastPath, error) {
	rc, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	p := &fastPath{
		conn:   conn,
		rc:     rc,
		ctr:    &s.ctr,
		pool:   opts.pool(),
		max:    opts.maxDatagram(),
		kernel: realKernel,
	}
	if a := conn.RemoteAddr(); !isNilAddr(a) {
		p.remote = addrPortOf(a)
	} else if a, ok := conn.LocalAddr().(*net.UDPAddr); ok {
		p.wildcard = a.IP == nil || a.IP.IsUnspecified()
	}
	p.batch.Store(!opts.NoBatch)
	var probeErr error
	err = rc.Control(func(fd uintptr) { probeErr = p.probe(int(fd), opts) })
	if err == nil {
		err = probeErr
	}
	if err != nil {
		return nil, err
	}
	p.reader.init(p)
	return p, nil
}

// probe learns what the socket is and what the kernel can do.
func (p *fastPath) probe(fd int, opts *Options) error {
	family, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil {
		return fmt.Errorf("address family of the socket: %w", err)
	}
	p.family = family
	if !opts.NoGSO {
		// Reading the option does nothing, and fails where it is unknown.
		if _, err := unix.GetsockoptInt(fd, unix.SOL_UDP, unix.UDP_SEGMENT); err == nil {
			p.maxSeg.Store(maxGSOBytes)
		}
	}
	gro := 0
	if !opts.NoGRO {
		gro = 1
	}
	// Written in both cases, as the connection may come with GRO switched on.
	p.groBefore, _ = unix.GetsockoptInt(fd, unix.SOL_UDP, unix.UDP_GRO)
	p.gro = unix.SetsockoptInt(fd, unix.SOL_UDP, unix.UDP_GRO, gro) == nil && gro == 1

	// Each option belongs to one family; a dual-stack socket has both. What is
	// missing costs the information, nothing else.
	if p.wildcard {
		if family == unix.AF_INET {
			_ = unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
		} else {
			_ = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1)
		}
	}
	if opts.ECN {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_RECVTOS, 1)
		if family == unix.AF_INET6 {
			_ = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_RECVTCLASS, 1)
		}
	}
	return nil
}

func (p *fastPath) connected() bool { return p.remote.IsValid() }

// detach puts the GRO option back. What the kernel queued with GRO on, it would
// now hand out as one datagram each: so the queue is emptied. What it queues
// from then on is single.
func (p *fastPath) detach() {
	_ = p.rc.Control(func(fd uintptr) {
		if now, err := unix.GetsockoptInt(int(fd), unix.SOL_UDP, unix.UDP_GRO); err == nil && now == p.groBefore {
			return
		}
		_ = unix.SetsockoptInt(int(fd), unix.SOL_UDP, unix.UDP_GRO, p.groBefore)
		if !p.gro {
			return
		}
		var b [1]byte
		for range maxQueued {
			_, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_DONTWAIT|unix.MSG_TRUNC)
			switch err {
			case nil:
				p.ctr.discardedIn.Add(1)
			case unix.EAGAIN:
				return
			}
		}
	})
}

// maxQueued bounds the emptying of a socket that is flooded at the same time:
// more messages than any receive buffer holds.
const maxQueued = 1 << 16

func (p *fastPath) fill(st *Stats) {
	st.GSO = p.maxSeg.Load() > 0
	st.GRO = p.gro
	st.Batch = p.batch.Load()
	_ = p.rc.Control(func(fd uintptr) {
		if n, ok := receiveDrops(fd); ok {
			p.drops.Store(n)
		}
	})
	st.KernelDrops = p.drops.Load() // of the last time the socket was open
}

// receiveDrops reads the drop counter of the socket (SO_MEMINFO, Linux 4.12).
func receiveDrops(fd uintptr) (uint64, bool) {
	const drops = 8 // SK_MEMINFO_DROPS
	var info [drops + 1]uint32
	size := uint32(unsafe.Sizeof(info))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
	return uint64(info[drops]), errno == 0 && size >= uint32(unsafe.Sizeof(info))
}

// refuseGSO draws the consequence of a GSO message that the kernel refused and
// whose datagrams then went out one by one. A device without checksum offload
// (EIO) refuses all of them. EINVAL and EMSGSIZE mean a kernel without GSO, or
// segments above the MTU, which only single datagrams can have fragmented: then
// GSO goes on for smaller ones.
func (p *fastPath) refuseGSO(errno unix.Errno, seg int) {
	limit := int32(seg - 1)
	if errno != unix.EINVAL && errno != unix.EMSGSIZE || seg <= lowestMTU {
		limit = 0
	}
	for {
		now := p.maxSeg.Load()
		if limit >= now || p.maxSeg.CompareAndSwap(now, limit) {
			return
		}
	}
}

// gsoRefused tells the errors that may be about the offload, not the datagrams.
func gsoRefused(errno unix.Errno) bool {
	switch errno {
	case unix.EIO, unix.EINVAL, unix.EMSGSIZE, unix.EOPNOTSUPP, unix.ENOPROTOOPT:
		return true
	}
	return false
}

// maxWriteWait bounds the wait for room in a full send buffer, per call.
const maxWriteWait = 10 * time.Millisecond

// writer is the part of the path that waits for room in the send buffer. The
// wait is one of the runtime's poller under a write deadline. Raw writes of one
// connection exclude each other, but the call that clears an expired deadline
// comes after its own; so the deadline has a lock and a time here.
type writer struct {
	mu    sync.Mutex
	until time.Time // the deadline set, or zero

	// stuck is set by a wait that ended without room and cleared by the next
	// datagram that goes out. While it is set nobody waits: one dead network
	// card must not cost each of a thousand peers its own wait.
	stuck atomic.Bool
}

// startWait sets the deadline of a wait that begins.
func (p *fastPath) startWait() {
	p.writer.mu.Lock()
	defer p.writer.mu.Unlock()
	p.until = time.Now().Add(maxWriteWait)
	_ = p.conn.SetWriteDeadline(p.until)
}

// endWait clears the deadline: any, or only one that has passed.
func (p *fastPath) endWait(passedOnly bool) {
	p.writer.mu.Lock()
	defer p.writer.mu.Unlock()
	if passedOnly && !p.until.IsZero() && time.Now().Before(p.until) {
		return // of another call that waits now
	}
	p.until = time.Time{}
	_ = p.conn.SetWriteDeadline(time.Time{})
}

// addSome spares the atomic operation where there is nothing to add, which is
// the rule for the rarer counters.
func addSome(c *atomic.Uint64, n int) {
	if n != 0 {
		c.Add(uint64(n))
	}
}
