package udpio

import (
	"sync"

	"golang.org/x/sys/unix"

	"github.com/openarkstudio/arknet-go/internal/bufpool"
)

// How many messages one call receives at most: with small buffers, and with
// buffers that hold a train each (2 MiB, held while they are worked on).
const (
	maxRecv      = 64
	maxRecvLarge = 32
)

// reader is the receiving half of the path. The scratch memory and the buffers
// are there from the moment the socket is readable until the next read.
type reader struct {
	room    int // messages to receive now
	guess   int // messages that the next call makes room for
	limit   int
	bufSize int
	scratch *recvScratch
	waited  bool       // the socket was empty at first
	errno   unix.Errno // of the last call
	try     func(fd uintptr) bool
}

// recvScratch is what recvmmsg needs. It is lent from a pool of the package, as
// it is several times the size of an idle session.
type recvScratch struct {
	hdrs    [maxRecv]mmsghdr
	iovs    [maxRecv]unix.Iovec
	names   [maxRecv]sockaddr
	control [maxRecv][recvControlLen]byte
	bufs    [maxRecv]*bufpool.Buffer
	lent    int // bufs in use
	got     int // messages received
}

var recvScratches = sync.Pool{New: func() any {
	sc := new(recvScratch)
	for i := range sc.hdrs {
		h := &sc.hdrs[i].hdr
		h.Iov = &sc.iovs[i]
		h.SetIovlen(1)
		h.Control = &sc.control[i][0]
	}
	return sc
}}

func (r *reader) init(p *fastPath) {
	r.guess = 1
	r.limit = maxRecv
	r.bufSize = p.max
	if p.gro {
		r.bufSize = bufpool.Large
	}
	if r.bufSize > bufpool.Small {
		r.limit = maxRecvLarge
	}
	r.try = func(fd uintptr) bool { return p.receive(fd) }
}

func (p *fastPath) read(ts []Train) (int, error) {
	p.room = min(p.guess, len(ts))
	p.waited = false
	if err := p.rc.Read(p.try); err != nil {
		return 0, err
	}
	if p.errno != 0 {
		return 0, p.errno
	}
	sc := p.scratch
	p.adapt(sc.got)
	return p.deliver(sc, ts), nil
}

// adapt guesses how many messages the next call will find. One datagram after a
// wait is a peer that sends one at a time, and the plain recvmsg serves it best;
// one that was there already has others behind it.
func (p *fastPath) adapt(got int) {
	switch {
	case got == p.room && (got > 1 || !p.waited):
		p.guess = min(2*p.guess, p.limit)
	case got <= p.room/4, p.waited && got <= p.room/2:
		p.guess = max(p.guess/2, 1)
	}
}

// receive is one try to read the socket. False makes the runtime wait until it
// is readable and call again.
func (p *fastPath) receive(fd uintptr) bool {
	p.lend()
	sc := p.scratch
	for {
		batch := p.batch.Load()
		n, errno := p.kernel.recv(fd, sc.hdrs[:sc.lent], batch)
		p.ctr.syscallsIn.Add(1)
		if errno == 0 {
			sc.got, p.errno = n, 0
			return true
		}
		if errno == unix.EINTR {
			continue
		}
		if errno == unix.ENOSYS && batch { // a sandbox
			p.batch.Store(false)
			continue
		}
		p.release()
		p.errno = errno
		p.waited = true
		return errno != unix.EAGAIN
	}
}

// lend takes scratch memory and buffers for a call.
func (p *fastPath) lend() {
	sc := recvScratches.Get().(*recvScratch)
	sc.lent = p.room
	if !p.batch.Load() {
		sc.lent = 1
	}
	for i := range sc.lent {
		b := p.pool.Get(p.bufSize)
		sc.bufs[i] = b
		sc.iovs[i].Base = &b.Data[0]
		sc.iovs[i].SetLen(len(b.Data))
		h := &sc.hdrs[i].hdr
		h.Flags = 0
		h.SetControllen(recvControlLen)
		h.Name, h.Namelen = nil, 0
		if !p.connected() {
			h.Name = (*byte)(ptr(&sc.names[i]))
			h.Namelen = unix.SizeofSockaddrInet6
		}
	}
	p.scratch = sc
}

func (p *fastPath) release() {
	sc := p.scratch
	if sc == nil {
		return
	}
	for i := range sc.lent {
		sc.bufs[i].Release()
		sc.bufs[i] = nil
		sc.iovs[i].Base = nil
	}
	sc.lent, sc.got = 0, 0
	p.scratch = nil
	recvScratches.Put(sc)
}

// deliver turns the received messages into trains and counts them.
func (p *fastPath) deliver(sc *recvScratch, ts []Train) int {
	var n, datagrams, bytes, trains, empty, truncated int
	for i := range sc.got {
		h := &sc.hdrs[i]
		size := int(h.len)
		r := parseControl(sc.control[i][:min(int(h.hdr.Controllen), recvControlLen)])
		seg := size
		if r.seg > 0 && r.seg < size {
			seg = r.seg
		}
		data := sc.bufs[i].Data[:size:size]
		if seg > p.max || h.hdr.Flags&unix.MSG_TRUNC != 0 {
			// All too long, save the last of a train, which may be shorter.
			lost := datagramsIn(size, seg)
			last := size % seg
			if last == 0 || last > p.max || h.hdr.Flags&unix.MSG_TRUNC != 0 {
				truncated += lost
				continue
			}
			truncated += lost - 1
			data = data[size-last:]
			size, seg = last, last
		}
		count := datagramsIn(size, seg)
		addr := p.remote
		if !p.connected() {
			addr = p.zones.addrPort(&sc.names[i], h.hdr.Namelen)
		}
		ts[n] = Train{Buf: data, SegSize: seg, Addr: addr, Local: r.local, ECN: r.ecn}
		n++
		datagrams += count
		bytes += size
		if count > 1 {
			trains++
		}
		if size == 0 {
			empty++
		}
	}
	p.ctr.datagramsIn.Add(uint64(datagrams))
	p.ctr.bytesIn.Add(uint64(bytes))
	addSome(&p.ctr.trainsIn, trains)
	addSome(&p.ctr.emptyIn, empty)
	addSome(&p.ctr.truncatedIn, truncated)
	return n
}

// datagramsIn tells how many datagrams of seg bytes, the last maybe shorter,
// are in n bytes. The empty datagram counts.
func datagramsIn(n, seg int) int {
	if n == 0 {
		return 1
	}
	return (n + seg - 1) / seg
}
