package relay

import (
	"errors"
	"io"
	"net"
	"time"

	"github.com/openarkstudio/arknet-go/internal/bufpool"
	"github.com/openarkstudio/arknet-go/internal/hrtime"
	"github.com/openarkstudio/arknet-go/netem"
)

// stream is one direction of a TCP route. A reader goroutine takes bytes in and
// writes them at once when nothing waits and none is due later; else they wait for
// the writer goroutine. The route's mu guards all but the channels.
type stream struct {
	rt     *tcpRoute
	flow   *flow
	shaper *shaper
	alarm  *hrtime.Alarm

	fifo []chunk // from head on
	head int
	held int // bytes in the fifo and in the writer's hands

	more chan struct{} // token: the fifo grew
	room chan struct{} // token: the fifo shrank
	done chan struct{} // the route has ended
}

// chunk is what one read gave; a nil buf is the end of the stream.
type chunk struct {
	buf *bufpool.Buffer
	at  time.Duration
}

func newStream(rt *tcpRoute, d netem.Direction) (*stream, error) {
	alarm, err := hrtime.NewAlarm()
	if err != nil {
		return nil, err
	}
	f := &rt.flows[d]
	return &stream{
		rt:     rt,
		flow:   f,
		shaper: newShaper(f.link, rt.limits.routeBytes),
		alarm:  alarm,
		more:   make(chan struct{}, 1),
		room:   make(chan struct{}, 1),
		done:   make(chan struct{}),
	}, nil
}

// read moves bytes in until the end of the stream or of the route.
func (s *stream) read(src io.Reader, dst io.Writer) {
	size := minChunk
	for {
		if !s.waitForRoom(size) {
			return
		}
		b := bufpool.Get(size)
		n, err := src.Read(b.Data)
		if n > 0 {
			b.Data = b.Data[:n]
			size = s.admit(b, size, dst)
		} else {
			b.Release()
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			s.push(chunk{at: s.endTime()})
			return
		default: // a reset, or the end of the route
			s.rt.end(true)
			return
		}
	}
}

// waitForRoom blocks while too much is under way; false when the route has ended.
func (s *stream) waitForRoom(n int) bool {
	for {
		s.rt.mu.Lock()
		l := s.rt.limits
		full := s.held > 0 && (s.held+n > s.shaper.limit() || l.total.Load()+int64(n) > l.totalBytes)
		s.rt.mu.Unlock()
		if !full {
			return true
		}
		select {
		case <-s.room:
		case <-s.done:
			return false
		}
	}
}

// admit takes b over: it is written at once or queued. It returns the size for
// the next read.
func (s *stream) admit(b *bufpool.Buffer, size int, dst io.Writer) int {
	n := len(b.Data)
	now := s.rt.relay.now()
	s.rt.mu.Lock()
	at := s.shaper.admit(now, n)
	next := s.shaper.chunk(n, size)
	s.take(n)
	direct := at <= now && s.held == n
	if !direct {
		s.append(chunk{b, at})
	}
	s.rt.mu.Unlock()
	if direct {
		s.deliver(b, dst)
	}
	return next
}

// take counts n bytes as under way. The caller holds mu.
func (s *stream) take(n int) {
	rt := s.rt
	s.held += n
	s.flow.queued.Add(netem.Count{Datagrams: 1, Bytes: uint64(n)})
	rt.limits.total.Add(int64(n))
	rt.heldBytes += n
	rt.heldDatagrams++
	rt.peakBytes = max(rt.peakBytes, rt.heldBytes)
	rt.peakDatagrams = max(rt.peakDatagrams, rt.heldDatagrams)
}

// settle counts n bytes as gone to the given counter. The caller holds mu.
func (s *stream) settle(n int, to *netem.Count) {
	rt := s.rt
	s.held -= n
	to.Add(netem.Count{Datagrams: 1, Bytes: uint64(n)})
	s.flow.queued.Datagrams--
	s.flow.queued.Bytes -= uint64(n)
	rt.limits.total.Add(-int64(n))
	rt.heldBytes -= n
	rt.heldDatagrams--
}

// deliver writes b, books it and releases it.
func (s *stream) deliver(b *bufpool.Buffer, dst io.Writer) {
	n := len(b.Data)
	written, err := dst.Write(b.Data)
	b.Release()
	s.rt.mu.Lock()
	if err == nil {
		s.settle(n, &s.flow.sent)
	} else {
		s.settle(n, &s.flow.closed)
		s.flow.closed.Bytes -= uint64(written)
		s.flow.sent.Bytes += uint64(written)
	}
	s.rt.mu.Unlock()
	if err != nil {
		s.rt.end(true)
	}
	signal(s.room)
}

// endTime is when the end of the stream arrives: not before what was sent.
func (s *stream) endTime() time.Duration {
	s.rt.mu.Lock()
	defer s.rt.mu.Unlock()
	at := s.rt.relay.now() + s.shaper.config.Delay
	if n := len(s.fifo); n > s.head {
		at = max(at, s.fifo[n-1].at)
	}
	return at
}

func (s *stream) push(c chunk) {
	s.rt.mu.Lock()
	s.append(c)
	s.rt.mu.Unlock()
}

// append queues c. The caller holds mu.
func (s *stream) append(c chunk) {
	if s.head > 64 && s.head > len(s.fifo)/2 {
		n := copy(s.fifo, s.fifo[s.head:])
		clear(s.fifo[n:])
		s.fifo, s.head = s.fifo[:n], 0
	}
	s.fifo = append(s.fifo, c)
	signal(s.more)
}

// write moves bytes out, each at its time.
func (s *stream) write(dst *net.TCPConn) {
	for {
		c, ok := s.next()
		if !ok {
			return
		}
		for s.rt.relay.now() < c.at {
			s.alarm.Set(s.rt.relay.start.Add(c.at))
			if !s.alarm.Wait() {
				s.discard(c)
				return
			}
		}
		if c.buf == nil {
			if dst.CloseWrite() != nil {
				s.rt.end(true)
			}
			return
		}
		s.deliver(c.buf, dst)
	}
}

// next waits for the head of the fifo and takes it.
func (s *stream) next() (chunk, bool) {
	for {
		s.rt.mu.Lock()
		if s.head < len(s.fifo) {
			c := s.fifo[s.head]
			s.fifo[s.head] = chunk{}
			if s.head++; s.head == len(s.fifo) {
				s.fifo, s.head = s.fifo[:0], 0
			}
			s.rt.mu.Unlock()
			return c, true
		}
		s.rt.mu.Unlock()
		select {
		case <-s.more:
		case <-s.done:
			return chunk{}, false
		}
	}
}

func (s *stream) discard(c chunk) {
	if c.buf == nil {
		return
	}
	s.rt.mu.Lock()
	s.settle(len(c.buf.Data), &s.flow.closed)
	s.rt.mu.Unlock()
	c.buf.Release()
}

// drain discards what is left when reader and writer have ended.
func (s *stream) drain() {
	s.rt.mu.Lock()
	left := s.fifo[s.head:]
	s.fifo, s.head = nil, 0
	s.rt.mu.Unlock()
	for _, c := range left {
		s.discard(c)
	}
}

// end wakes everything that waits. It is called once.
func (s *stream) end() {
	close(s.done)
	s.closeAlarm()
}

func (s *stream) closeAlarm() {
	if s != nil {
		s.alarm.Close()
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
