package bench

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
)

// server accepts associations and answers each from a goroutine of its own.
type server struct {
	r     *round
	group sync.WaitGroup

	mu    sync.Mutex
	conns []*serverConn  // of the echo and stream workloads, in order of arrival
	comps completionSum  // of associations that are over and settled
	late  []*completions // of associations that are over, not settled when last looked at
}

type serverConn struct {
	conn Conn
	comp completions
}

// completionSum is the sum over several completions.
type completionSum struct {
	sent, done, failed, duplicate, missing uint64
}

func (s *completionSum) add(c *completions) {
	s.sent += c.sent.Load()
	s.done += c.done.Load()
	s.failed += c.failed.Load()
	s.duplicate += c.duplicate.Load()
	s.missing += c.missing()
}

// run accepts until the listener is closed.
func (s *server) run(ctx context.Context) {
	f := &s.r.faults
	defer s.group.Done()
	defer f.guard("server")
	for {
		conn, err := s.r.listener.Accept(ctx)
		if err != nil {
			if !s.r.closing.Load() {
				f.note(&f.errs.Server, 1, "server: accept: %v", err)
			}
			return
		}
		sc := &serverConn{conn: conn}
		s.r.servers.add(conn)
		s.mu.Lock()
		s.conns = append(s.conns, sc)
		s.mu.Unlock()
		s.group.Go(func() {
			defer s.r.servers.remove(conn)
			defer f.guard("server")
			s.serve(ctx, sc)
			if s.r.cfg.Workload == Connect {
				s.forget(sc)
			}
		})
	}
}

// forget keeps the counts of an association that is over, and nothing else.
func (s *server) forget(sc *serverConn) {
	s.r.servers.remove(sc.conn)
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.conns, sc); i >= 0 {
		s.conns = slices.Delete(s.conns, i, i+1)
		s.late = append(s.late, &sc.comp)
	}
	s.late = slices.DeleteFunc(s.late, func(c *completions) bool {
		settled := c.settled()
		if settled {
			s.comps.add(c)
		}
		return settled
	})
}

// completions sums over all associations, past ones included.
func (s *server) completions() completionSum {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := s.comps
	for _, c := range s.late {
		sum.add(c)
	}
	for _, sc := range s.conns {
		sum.add(&sc.comp)
	}
	return sum
}

// serve answers one association until it ends.
func (s *server) serve(ctx context.Context, sc *serverConn) {
	f := &s.r.faults
	sink := sink{r: s.r}
	var report [headerLen]byte
	buf := make([]byte, 0, s.r.pat.size)
	for {
		msg, err := sc.conn.Receive(ctx, buf)
		if err != nil {
			s.ended(err, "receive")
			return
		}
		buf = msg
		h, ok := parseHeader(msg)
		if !ok {
			f.note(&f.errs.Unexpected, 1, "server: unexpected message of %d bytes: %x", len(msg), msg[:min(len(msg), headerLen)])
			continue
		}
		reply := msg
		switch {
		case h.kind == kindEcho && s.r.cfg.Workload != Stream:
		case h.kind == kindData && s.r.cfg.Workload == Stream:
			sink.data(msg, h)
			continue
		case h.kind == kindEnd && s.r.cfg.Workload == Stream && len(msg) == headerLen:
			sink.end(h).put(report[:])
			reply = report[:]
		default:
			f.note(&f.errs.Unexpected, 1, "server: unexpected message of kind %d, %d bytes", h.kind, len(msg))
			continue
		}
		token := sc.comp.arm()
		if err := sc.conn.Send(ctx, reply, token.call); err != nil {
			token.disarm()
			s.ended(err, "send")
			return
		}
	}
}

// ended judges the end of an association: expected at the end of a round, and
// at any time in the connect workload.
func (s *server) ended(err error, op string) {
	if s.r.closing.Load() {
		return
	}
	f := &s.r.faults
	if s.r.cfg.Workload == Connect && (errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed)) {
		return
	}
	f.note(&f.errs.Server, 1, "server: %s: %v", op, err)
}

// side is a set of associations of one end, for statistics.
type side struct {
	mu      sync.Mutex
	live    map[Conn]struct{}
	past    Stats // of associations that are over
	buffers [2]bufferRange
	count   int
}

type bufferRange struct{ low, high int }

func (b *bufferRange) add(n int) {
	if n <= 0 {
		return
	}
	if b.low == 0 || n < b.low {
		b.low = n
	}
	b.high = max(b.high, n)
}

func (s *side) add(c Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live == nil {
		s.live = make(map[Conn]struct{})
	}
	s.live[c] = struct{}{}
	s.count++
	if b, ok := c.(BufferReader); ok && s.count <= MaxClients {
		read, write := b.SocketBuffers()
		s.buffers[0].add(read)
		s.buffers[1].add(write)
	}
}

// remove closes an association and keeps its counters. It may be called again.
func (s *side) remove(c Conn) {
	if s.retire(c) {
		// An error says that not everything was acknowledged, or that the
		// association had ended; both are judged elsewhere.
		_ = c.Close()
	}
}

func (s *side) retire(c Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.live[c]; !ok {
		return false
	}
	delete(s.live, c)
	if r, ok := c.(StatsReader); ok {
		s.past.add(r.Stats())
		s.past.FECRetainedBytes = 0
	}
	return true
}

// removeAll closes all associations at the same time.
func (s *side) removeAll(f *faults) {
	var group sync.WaitGroup
	for _, c := range s.all() {
		group.Go(func() {
			defer f.guard("close")
			s.remove(c)
		})
	}
	group.Wait()
}

// all returns the live associations.
func (s *side) all() []Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Conn, 0, len(s.live))
	for c := range s.live {
		list = append(list, c)
	}
	return list
}

// stats sums over all associations, past ones included.
func (s *side) stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := s.past
	for c := range s.live {
		if r, ok := c.(StatsReader); ok {
			sum.add(r.Stats())
		}
	}
	return sum
}

// add adds counters; of the largest parity the larger one stays.
func (s *Stats) add(o Stats) {
	s.SentDatagrams += o.SentDatagrams
	s.SentBytes += o.SentBytes
	s.ReceivedDatagrams += o.ReceivedDatagrams
	s.ReceivedBytes += o.ReceivedBytes
	s.Retransmitted += o.Retransmitted
	s.Restored += o.Restored
	s.FECRetainedBytes += o.FECRetainedBytes
	s.ParityMaxPercent = max(s.ParityMaxPercent, o.ParityMaxPercent)
	s.ParityMaxShards = max(s.ParityMaxShards, o.ParityMaxShards)
	s.ParitySymbols += o.ParitySymbols
	s.BudgetBoundSymbols += o.BudgetBoundSymbols
	s.PolicyChanges += o.PolicyChanges
}
