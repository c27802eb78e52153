package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/openarkstudio/arknet-go/bench"
)

// fakeStream is a byteStream whose other end is the test.
type fakeStream struct {
	mu      sync.Mutex
	pieces  [][]byte // what was handed over, call by call
	offered int      // how much an offer takes; -1 is everything
	blocked chan struct{}
	failing error

	arrivals chan []byte
	ended    chan struct{}
}

func newFakeStream() *fakeStream {
	return &fakeStream{offered: -1, arrivals: make(chan []byte, 100), ended: make(chan struct{})}
}

func (s *fakeStream) read(ctx context.Context, p []byte) (int, error) {
	select {
	case b := <-s.arrivals:
		return copy(p, b), nil
	case <-s.ended:
		return 0, io.ErrClosedPipe
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func (s *fakeStream) readable(p []byte) (int, error) {
	select {
	case b := <-s.arrivals:
		return copy(p, b), nil
	default:
		return 0, nil
	}
}

func (s *fakeStream) offer(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failing != nil {
		return 0, s.failing
	}
	n := len(p)
	if s.offered >= 0 {
		n = min(n, s.offered)
	}
	if n > 0 {
		s.pieces = append(s.pieces, bytes.Clone(p[:n]))
	}
	return n, nil
}

func (s *fakeStream) write(p []byte) error {
	if s.blocked != nil {
		select {
		case <-s.blocked:
		case <-s.ended:
			return io.ErrClosedPipe
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pieces = append(s.pieces, bytes.Clone(p))
	return nil
}

func (s *fakeStream) close() error                     { close(s.ended); return nil }
func (s *fakeStream) stats() bench.Stats               { return bench.Stats{} }
func (s *fakeStream) socketBuffers() (read, write int) { return 0, 0 }

func (s *fakeStream) taken() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pieces
}

func frame(messages ...string) []byte {
	var b []byte
	for _, m := range messages {
		b = binary.AppendUvarint(b, uint64(len(m)))
		b = append(b, m...)
	}
	return b
}

func mustReceive(t *testing.T, c *framedConn, want string) {
	t.Helper()
	got, err := c.Receive(t.Context(), nil)
	if err != nil || string(got) != want {
		t.Fatalf("Receive: %q, %v; want %q", got, err, want)
	}
}

func mustSend(t *testing.T, c *framedConn, msg string) {
	t.Helper()
	if err := c.Send(t.Context(), []byte(msg), nil); err != nil {
		t.Fatalf("Send(%q): %v", msg, err)
	}
}

func wantPieces(t *testing.T, s *fakeStream, want ...[]byte) {
	t.Helper()
	got := s.taken()
	if len(got) != len(want) {
		t.Fatalf("the stream got %d pieces %q, want %d", len(got), got, len(want))
	}
	for i := range got {
		if !bytes.Equal(got[i], want[i]) {
			t.Fatalf("piece %d is %q, want %q", i, got[i], want[i])
		}
	}
}

func TestFramesInAnyPieces(t *testing.T) {
	long := string(bytes.Repeat([]byte("x"), 3*readSize))
	whole := frame("a", "", "second", long, "end")
	for _, step := range []int{1, 2, 7, 1000, len(whole)} {
		s := newFakeStream()
		s.arrivals = make(chan []byte, len(whole)+1)
		c := newFramedConn(s, tuning{queue: 1 << 20}, nil)
		for rest := whole; len(rest) > 0; {
			n := min(step, len(rest), readSize/2)
			s.arrivals <- rest[:n]
			rest = rest[n:]
		}
		for _, want := range []string{"a", "", "second", long, "end"} {
			mustReceive(t, c, want)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestAnswersToOneArrivalLeaveTogether(t *testing.T) {
	s := newFakeStream()
	c := newFramedConn(s, tuning{queue: 1 << 20}, nil)
	defer c.Close()
	mustSend(t, c, "alone")
	wantPieces(t, s, frame("alone"))

	s.arrivals <- frame("1", "2", "3")
	mustReceive(t, c, "1")
	mustSend(t, c, "A")
	mustReceive(t, c, "2")
	mustSend(t, c, "B")
	wantPieces(t, s, frame("alone"))
	// Nothing is left behind the third, so its answer takes the others along.
	mustReceive(t, c, "3")
	wantPieces(t, s, frame("alone"), frame("A", "B"))
	mustSend(t, c, "C")
	wantPieces(t, s, frame("alone"), frame("A", "B"), frame("C"))
}

func TestAnswersLeaveWhenTheReaderStopsHalfway(t *testing.T) {
	s := newFakeStream()
	c := newFramedConn(s, tuning{queue: 1 << 20}, nil)
	defer c.Close()
	both := frame("1", "2")
	s.arrivals <- both[:3] // the second message is not complete
	mustReceive(t, c, "1")
	mustSend(t, c, "A")
	wantPieces(t, s, frame("A"))
}

func TestPartialOfferIsFinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStream()
		s.offered = 3
		s.blocked = make(chan struct{})
		c := newFramedConn(s, tuning{queue: 1 << 20}, nil)
		mustSend(t, c, "abcdef")
		mustSend(t, c, "next") // while the finisher waits
		synctest.Wait()
		wantPieces(t, s, frame("abcdef")[:3])
		close(s.blocked)
		synctest.Wait()
		if got, want := bytes.Join(s.taken(), nil), frame("abcdef", "next"); !bytes.Equal(got, want) {
			t.Errorf("the stream got %q, want %q", got, want)
		}
		s.mu.Lock()
		s.offered = -1
		s.mu.Unlock()
		mustSend(t, c, "direct")
		if got := s.taken(); !bytes.Equal(got[len(got)-1], frame("direct")) {
			t.Errorf("last piece is %q, want the message by itself", got[len(got)-1])
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestFullQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStream()
		s.offered = 0
		s.blocked = make(chan struct{})
		c := newFramedConn(s, tuning{queue: 10}, nil)
		mustSend(t, c, "0123456789") // goes to the finisher, which waits
		synctest.Wait()
		mustSend(t, c, "0123456789") // fills the queue
		if ok, err := c.TrySend([]byte("x"), nil); ok || err != nil {
			t.Errorf("TrySend with a full queue: %v, %v; want false, nil", ok, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan error, 1)
		go func() { got <- c.Send(ctx, []byte("x"), nil) }()
		synctest.Wait()
		cancel()
		if err := <-got; !errors.Is(err, context.Canceled) {
			t.Errorf("Send with an ended context: %v, want context.Canceled", err)
		}
		go func() { got <- c.Send(t.Context(), []byte("y"), nil) }()
		synctest.Wait()
		close(s.blocked)
		if err := <-got; err != nil {
			t.Errorf("Send after room came: %v", err)
		}
		synctest.Wait()
		if got, want := bytes.Join(s.taken(), nil), frame("0123456789", "0123456789", "y"); !bytes.Equal(got, want) {
			t.Errorf("the stream got %q, want %q", got, want)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestCloseEndsWaitingCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStream()
		s.offered = 0
		s.blocked = make(chan struct{})
		closes := 0
		c := newFramedConn(s, tuning{queue: 1}, func() { closes++ })
		mustSend(t, c, "a")
		synctest.Wait()
		mustSend(t, c, "b")
		sent, received := make(chan error, 1), make(chan error, 1)
		go func() { sent <- c.Send(t.Context(), []byte("c"), nil) }()
		go func() {
			_, err := c.Receive(t.Context(), nil)
			received <- err
		}()
		synctest.Wait()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		for name, err := range map[string]error{"Send": <-sent, "Receive": <-received} {
			if !errors.Is(err, net.ErrClosed) {
				t.Errorf("%s after Close: %v, want net.ErrClosed", name, err)
			}
		}
		if err := c.Close(); err != nil || closes != 1 {
			t.Errorf("second Close: %v, %d clean-ups; want nil and 1", err, closes)
		}
		if err := c.Send(t.Context(), []byte("d"), nil); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Send after Close: %v, want net.ErrClosed", err)
		}
	})
}

func TestStreamFailureReachesSend(t *testing.T) {
	s := newFakeStream()
	s.failing = errors.New("no route")
	c := newFramedConn(s, tuning{queue: 1 << 20}, nil)
	defer c.Close()
	mustSend(t, c, "accepted before anybody knew")
	if err := c.Send(t.Context(), []byte("next"), nil); !errors.Is(err, s.failing) {
		t.Errorf("Send on a failed stream: %v, want %v", err, s.failing)
	}
}

func TestClaimedLengthIsBounded(t *testing.T) {
	for name, head := range map[string][]byte{
		"over the limit": binary.AppendUvarint(nil, maxMessage+1),
		"no varint":      bytes.Repeat([]byte{0xff}, 11),
	} {
		s := newFakeStream()
		c := newFramedConn(s, tuning{queue: 1 << 20}, nil)
		s.arrivals <- head
		if _, err := c.Receive(t.Context(), nil); err == nil {
			t.Errorf("%s: Receive gave no error", name)
		}
		if len(c.in) > readSize {
			t.Errorf("%s: %d bytes of buffer", name, len(c.in))
		}
		_ = c.Close()
	}
}
