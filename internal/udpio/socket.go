package udpio

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// Socket moves trains over one connection. Make it with [New].
type Socket struct {
	pc   net.PacketConn
	path path
	ctr  counters

	// reading holds a token while a ReadTrains is under way, so that Detach
	// can tell when the connection is no longer read. It is a channel, not a
	// mutex, so that a fake clock sees who waits.
	reading chan struct{}

	// done is closed when the socket ends; mu orders that against the changes
	// of the read deadline.
	done  chan struct{}
	mu    sync.Mutex
	ended bool

	readBuffer, writeBuffer int
	dontFragment            bool
}

// path is one way to move datagrams. The Socket above it does the counting of
// transient errors, the back-off and the life cycle.
type path interface {
	// read blocks until it has at least one train or an error. Neither means
	// that all that came was dropped. Only one read or release runs at a time.
	read(ts []Train) (int, error)

	// release gives back the buffers of the last read.
	release()

	// write sends all trains and returns the number of datagrams that the
	// system took, and net.ErrClosed or nil. It runs concurrently.
	write(ts []Train) (sent int, err error)

	// detach gives the connection back as it was, once nobody reads any more.
	detach()

	// fill adds what only the path knows.
	fill(*Stats)
}

// New makes a Socket over pc. A *net.UDPConn, connected or not, gets the fast
// path where there is one. Any other net.PacketConn is served with ReadFrom
// and WriteTo, or with the methods ReadFromUDPAddrPort and WriteToUDPAddrPort
// of *net.UDPConn where it has them; its addresses must be IP and port. One
// that is also a net.Conn with a remote address counts as connected.
//
// New clears deadlines that are set on pc. It does not own pc before Close.
func New(pc net.PacketConn, opts Options) (*Socket, error) {
	if pc == nil {
		return nil, errors.New("udpio: the net.PacketConn is nil")
	}
	if err := opts.validate(); err != nil {
		return nil, err
	}
	s := &Socket{
		pc:      pc,
		reading: make(chan struct{}, 1),
		done:    make(chan struct{}),
	}
	// A connection without deadlines says so here; Detach copes.
	_ = pc.SetDeadline(time.Time{})
	s.readBuffer, s.writeBuffer = setBuffers(pc, opts.ReadBuffer, opts.WriteBuffer)
	if opts.DontFragment {
		s.dontFragment = setDontFragment(pc)
	}
	p, err := newPath(s, pc, &opts)
	if err != nil {
		return nil, fmt.Errorf("udpio: %w", err)
	}
	s.path = p
	return s, nil
}

// ReadTrains blocks until at least one datagram is there, fills ts with what
// one system call gives, and returns the number of trains. A train that the
// kernel put together (GRO) is one Train. The buffers belong to the socket and
// are valid until the next ReadTrains, whatever it returns.
//
// The only error is net.ErrClosed, after Close, Detach, or the end of the
// underlying connection. Everything else is counted and survived; when errors
// follow one another without a datagram between them, ReadTrains slows down to
// one attempt in 100 ms.
//
// Only one goroutine may read. ts must not be empty.
func (s *Socket) ReadTrains(ts []Train) (int, error) {
	if len(ts) == 0 {
		panic("BUG: udpio: ReadTrains without room for a train")
	}
	s.reading <- struct{}{}
	n, err := s.readTrains(ts)
	<-s.reading
	return n, err
}

func (s *Socket) readTrains(ts []Train) (int, error) {
	var trouble backoff
	for {
		s.path.release()
		select {
		case <-s.done:
			return 0, net.ErrClosed
		default:
		}
		n, err := s.path.read(ts)
		if n > 0 {
			return n, nil
		}
		if err == nil {
			continue
		}
		if errors.Is(err, net.ErrClosed) {
			return 0, net.ErrClosed
		}
		if errors.Is(err, os.ErrDeadlineExceeded) && s.clearReadDeadline() {
			return 0, net.ErrClosed
		}
		s.ctr.readErrors[kindOf(err)].Add(1)
		if !trouble.wait(s.done) {
			return 0, net.ErrClosed
		}
	}
}

// WriteTrains sends all trains in order and returns the number of datagrams
// that the system took. The rest is lost and counted in [Stats]. The buffers
// are only read, and are the caller's again when WriteTrains returns.
// Neighbouring trains to one address share a kernel message where their
// lengths allow it, so that a caller need not put them together. (The slice
// escapes: a caller on a hot path keeps it, as it keeps the buffers.)
//
// When the send buffer of the socket is full, WriteTrains waits until the
// kernel has room, at most 10 ms per call, then gives the datagrams up: a
// sender that is faster than its own network card should be slowed, not told
// of losses; a card that is stuck should not stop the caller's timers.
//
// The only error is net.ErrClosed. Any number of goroutines may write.
func (s *Socket) WriteTrains(ts []Train) (sent int, err error) {
	select {
	case <-s.done:
		return 0, net.ErrClosed
	default:
	}
	return s.path.write(ts)
}

// Close closes the connection. A blocked ReadTrains and WriteTrains return
// net.ErrClosed. Closing twice, or after Detach, closes nothing and returns
// nil.
func (s *Socket) Close() error {
	if !s.end(func() {}) {
		return nil
	}
	return s.pc.Close()
}

// Detach ends the use of the connection without closing it: ReadTrains and
// WriteTrains return net.ErrClosed from now on, and when Detach returns nil,
// no goroutine reads the connection any more, its read deadline is cleared,
// and all datagrams that arrive from now on are for its owner. A write that is
// under way may still finish. GRO is switched off again, lest the owner read
// several datagrams as one; those that wait in the socket at that moment may be
// such, so they are dropped and counted. The sizes of the socket buffers, DF and
// the reporting of addresses stay as New set them.
//
// A blocked reader is woken through the read deadline. Detach gives an error
// when the connection has none, or does not obey it within a second; then the
// reader takes one more datagram before it ends. Detach after Close, or a
// second time, does nothing.
func (s *Socket) Detach() error {
	var err error
	if !s.end(func() { err = s.pc.SetReadDeadline(time.Unix(1, 0)) }) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("udpio: cannot wake the reader of a borrowed connection: %w", err)
	}
	patience := time.NewTimer(time.Second)
	defer patience.Stop()
	select {
	case s.reading <- struct{}{}:
		s.path.detach()
		<-s.reading
	case <-patience.C:
		err = errors.New("udpio: the borrowed connection ignores its read deadline")
	}
	if e := s.pc.SetReadDeadline(time.Time{}); err == nil && e != nil {
		err = fmt.Errorf("udpio: clear the read deadline of a borrowed connection: %w", e)
	}
	return err
}

// Stats returns a snapshot of the counters.
func (s *Socket) Stats() Stats {
	st := s.ctr.snapshot()
	st.ReadBuffer, st.WriteBuffer = s.readBuffer, s.writeBuffer
	st.DontFragment = s.dontFragment
	s.path.fill(&st)
	return st
}

// LocalAddr returns the local address of the connection.
func (s *Socket) LocalAddr() net.Addr { return s.pc.LocalAddr() }

// PacketConn returns the connection that the socket was made over.
func (s *Socket) PacketConn() net.PacketConn { return s.pc }

// end marks the socket as ended and runs f before anybody else can touch the
// read deadline. It reports whether this call was the first.
func (s *Socket) end(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return false
	}
	s.ended = true
	close(s.done)
	f()
	return true
}

// clearReadDeadline removes a deadline that ended a read, unless it is our own
// of Detach. It reports whether the socket has ended.
func (s *Socket) clearReadDeadline() (ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		_ = s.pc.SetReadDeadline(time.Time{})
	}
	return s.ended
}

// How reads go on after errors. The first ones are free: a burst of ICMP
// errors leaves one error each, and behind them wait good datagrams. A
// connection that gives nothing but errors must not burn a core.
const (
	freeErrors    = 16
	firstErrorGap = time.Millisecond
	maxErrorGap   = 100 * time.Millisecond
)

// backoff slows down a loop that gets nothing but errors.
type backoff struct{ errors int }

// wait reports false when done ended the wait.
func (b *backoff) wait(done <-chan struct{}) bool {
	b.errors++
	if b.errors <= freeErrors {
		return true
	}
	gap := maxErrorGap
	if n := b.errors - freeErrors - 1; n < 7 {
		gap = min(firstErrorGap<<n, maxErrorGap)
	}
	t := time.NewTimer(gap)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-done:
		return false
	}
}
