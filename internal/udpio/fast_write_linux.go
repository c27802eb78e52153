package udpio

import (
	"errors"
	"net"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// sendScratch is one WriteTrains under way: where it stands, and what sendmmsg
// needs. Like recvScratch it is lent from a pool of the package. run goes
// through it step by step and may be interrupted when the send buffer is full.
type sendScratch struct {
	p     *fastPath
	run   func(fd uintptr) bool
	ts    []Train
	next  cursor // the first datagram that is in no plan yet
	limit cursor // planning goes up to here
	plan  plan
	at    int // the first message of the plan that is not settled

	// alone is the error that made the kernel refuse a GSO message, while its
	// datagrams up to limit are sent alone; refusedSeg is their size.
	alone      unix.Errno
	aloneLost  int
	refusedSeg int

	waiting bool // a deadline for the wait is set
	patient bool // may still wait for room
	retried bool // the message at hand got an error that an earlier one caused

	sent, lost, bytes, trains, calls int

	used    int // pieces of the largest plan so far
	hdrs    [maxMessages]mmsghdr
	iovs    [maxPieces]unix.Iovec
	names   [maxMessages]sockaddr
	control [maxMessages][sendControlLen]byte
}

var sendScratches = sync.Pool{New: func() any {
	w := new(sendScratch)
	w.plan.msgs = make([]message, 0, maxMessages)
	w.plan.pieces = make([][]byte, 0, maxPieces)
	w.run = w.send
	return w
}}

func (p *fastPath) write(ts []Train) (sent int, err error) {
	if len(ts) == 0 {
		return 0, nil
	}
	w := sendScratches.Get().(*sendScratch)
	w.start(p, ts)
	for {
		err = p.rc.Write(w.run)
		if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		// Our wait is over; or the deadline of somebody else's was still set.
		p.endWait(true)
		if w.waiting {
			w.waiting, w.patient = false, false
			p.stuck.Store(true)
		}
	}
	p.ctr.syscallsOut.Add(uint64(w.calls))
	p.ctr.datagramsOut.Add(uint64(w.sent))
	p.ctr.bytesOut.Add(uint64(w.bytes))
	addSome(&p.ctr.trainsOut, w.trains)
	addSome(&p.ctr.lostOut, w.lost)
	sent = w.sent
	w.clear()
	sendScratches.Put(w)
	if err != nil {
		// Nothing but the end of the connection is left: errors of system calls
		// were settled in run.
		return sent, net.ErrClosed
	}
	return sent, nil
}

func (w *sendScratch) start(p *fastPath, ts []Train) {
	w.p, w.ts = p, ts
	w.next, w.limit = cursor{}, cursor{train: len(ts)}
	w.at = 0
	w.alone, w.aloneLost, w.refusedSeg = 0, 0, 0
	w.waiting, w.patient, w.retried = false, true, false
	w.sent, w.lost, w.bytes, w.trains, w.calls = 0, 0, 0, 0, 0
}

// clear drops all pointers to the caller's memory.
func (w *sendScratch) clear() {
	clear(w.plan.pieces[:w.used])
	clear(w.iovs[:w.used])
	w.used = 0
	w.plan.msgs, w.plan.pieces = w.plan.msgs[:0], w.plan.pieces[:0]
	w.p, w.ts = nil, nil
}

// send is called by the runtime while it holds the write lock of the
// connection. False means: wait until the socket is writable and call again.
func (w *sendScratch) send(fd uintptr) bool {
	for {
		if w.at == len(w.plan.msgs) && !w.replan() {
			if w.waiting {
				w.waiting = false
				w.p.endWait(false)
			}
			return true
		}
		batch := w.p.batch.Load()
		n, errno := w.p.kernel.send(fd, w.hdrs[w.at:len(w.plan.msgs)], batch)
		w.calls++
		if n > 0 {
			w.took(n)
			continue
		}
		if errno == unix.EAGAIN && w.mayWait() {
			return false
		}
		w.failed(errno, batch)
	}
}

// replan makes the next batch; false when all is settled.
func (w *sendScratch) replan() bool {
	p := w.p
	for {
		maxSeg := int(p.maxSeg.Load())
		if w.alone != 0 {
			if w.next != w.limit {
				maxSeg = 0
			} else {
				if w.aloneLost == 0 {
					p.refuseGSO(w.alone, w.refusedSeg)
				}
				w.alone, w.limit = 0, cursor{train: len(w.ts)}
				maxSeg = int(p.maxSeg.Load())
			}
		}
		if w.next == w.limit {
			w.plan.msgs, w.at = w.plan.msgs[:0], 0
			return false
		}
		w.next = w.plan.next(w.ts, w.next, w.limit, maxSeg)
		w.at = 0
		w.used = max(w.used, len(w.plan.pieces))
		if w.prepare() > 0 {
			return true
		}
	}
}

// prepare writes the headers of the planned messages and returns how many
// there are; those to an address that the socket cannot reach are lost here.
func (w *sendScratch) prepare() int {
	p := w.p
	keep := w.plan.msgs[:0]
	for _, m := range w.plan.msgs {
		i := len(keep)
		h := &w.hdrs[i].hdr
		t := &w.ts[m.from.train]
		*h = unix.Msghdr{}
		if !p.connected() {
			h.Namelen = p.zones.putSockaddr(&w.names[i], p.family, t.Addr)
			if h.Namelen == 0 {
				w.lose(&m, unix.EAFNOSUPPORT)
				continue
			}
			h.Name = (*byte)(ptr(&w.names[i]))
		}
		for k, b := range w.plan.pieces[m.piece : m.piece+m.pieces] {
			v := &w.iovs[m.piece+k]
			v.Base = nil
			if len(b) > 0 {
				v.Base = &b[0]
			}
			v.SetLen(len(b))
		}
		h.Iov = &w.iovs[m.piece]
		h.SetIovlen(m.pieces)
		c := controlWriter{b: w.control[i][:]}
		if m.seg > 0 {
			c.segment(m.seg)
		}
		if p.wildcard && t.Local.IsValid() && (p.family == unix.AF_INET6 || t.Local.Unmap().Is4()) {
			c.from(t.Local.Unmap(), p.family)
		}
		if t.ECN != 0 {
			c.ecn(t.ECN, p.family == unix.AF_INET || t.Addr.Addr().Unmap().Is4())
		}
		if c.len > 0 {
			h.Control = &w.control[i][0]
			h.SetControllen(c.len)
		}
		keep = append(keep, m)
	}
	w.plan.msgs = keep
	return len(keep)
}

// took settles n messages that the kernel accepted.
func (w *sendScratch) took(n int) {
	for _, m := range w.plan.msgs[w.at : w.at+n] {
		w.sent += m.datagrams
		w.bytes += m.bytes
		if m.datagrams > 1 {
			w.trains++
		}
	}
	w.at += n
	w.retried = false
	if w.p.stuck.Load() {
		w.p.stuck.Store(false)
	}
}

// mayWait decides whether a full send buffer is worth a wait, and begins it.
func (w *sendScratch) mayWait() bool {
	if !w.patient || w.p.stuck.Load() {
		return false
	}
	if !w.waiting {
		w.waiting = true
		w.p.startWait()
	}
	return true
}

// failed settles the message at hand, which the kernel refused.
func (w *sendScratch) failed(errno unix.Errno, batch bool) {
	m := &w.plan.msgs[w.at]
	switch {
	case errno == unix.EINTR:
		return
	case errno == unix.ENOSYS && batch: // a sandbox
		w.p.batch.Store(false)
		return
	case w.p.connected() && !w.retried && pendingError(errno):
		// Most likely the answer to an earlier datagram, which the kernel
		// reports on the next call, without sending anything.
		w.retried = true
		w.p.ctr.writeErrors[kindOfErrno(errno)].Add(1)
		return
	case m.seg > 0 && gsoRefused(errno):
		w.p.ctr.gsoRefused.Add(1)
		w.alone, w.aloneLost, w.refusedSeg = errno, 0, m.seg
		w.next, w.limit = m.from, m.to
		w.at = len(w.plan.msgs)
		return
	}
	w.lose(m, errno)
	w.at++
	w.retried = false
}

func (w *sendScratch) lose(m *message, errno syscall.Errno) {
	w.lost += m.datagrams
	if w.alone != 0 {
		w.aloneLost++
	}
	w.p.ctr.writeErrors[kindOfErrno(errno)].Add(1)
}

// pendingError tells the errors that ICMP answers leave on a connected socket.
func pendingError(errno unix.Errno) bool {
	switch errno {
	case unix.ECONNREFUSED, unix.EHOSTUNREACH, unix.ENETUNREACH:
		return true
	}
	return false
}
