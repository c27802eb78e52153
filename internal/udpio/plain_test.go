package udpio

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// scriptConn is a net.PacketConn in memory. ReadFrom gives what was put into
// it, blocking on channels only; WriteTo answers with the scripted errors, and
// keeps what it took.
type scriptConn struct {
	in     chan scripted
	closed chan struct{}

	mu       sync.Mutex
	deadline chan struct{} // closed when the read deadline has passed
	noDL     error         // what SetReadDeadline answers

	writeErr func(n int) error // of the n-th WriteTo
	writes   int
	sent     []packet
}

type scripted struct {
	data string
	addr net.Addr
	err  error
}

func newScriptConn() *scriptConn {
	return &scriptConn{in: make(chan scripted, 1000), closed: make(chan struct{}), deadline: make(chan struct{})}
}

func (c *scriptConn) ReadFrom(b []byte) (int, net.Addr, error) {
	c.mu.Lock()
	deadline := c.deadline
	c.mu.Unlock()
	select {
	case <-c.closed:
		return 0, nil, &net.OpError{Op: "read", Err: net.ErrClosed}
	case <-deadline:
		return 0, nil, &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}
	default:
	}
	select {
	case s := <-c.in:
		return copy(b, s.data), s.addr, s.err
	case <-c.closed:
		return 0, nil, &net.OpError{Op: "read", Err: net.ErrClosed}
	case <-deadline:
		return 0, nil, &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}
	}
}

func (c *scriptConn) WriteTo(b []byte, addr net.Addr) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writes++
	if c.writeErr != nil {
		if err := c.writeErr(c.writes); err != nil {
			return 0, err
		}
	}
	c.sent = append(c.sent, packet{data: string(b), addr: addrPortOf(addr)})
	return len(b), nil
}

func (c *scriptConn) Close() error        { close(c.closed); return nil }
func (c *scriptConn) LocalAddr() net.Addr { return &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func (c *scriptConn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.noDL != nil {
		return c.noDL
	}
	select {
	case <-c.deadline:
		c.deadline = make(chan struct{})
	default:
	}
	if !t.IsZero() && !t.After(time.Now()) {
		close(c.deadline)
	}
	return nil
}

func (c *scriptConn) SetWriteDeadline(time.Time) error { return nil }

func (c *scriptConn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

var (
	scriptPeer = &net.UDPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 7}
	scriptAddr = netip.MustParseAddrPort("10.0.0.1:7")
)

// No error of a read but net.ErrClosed ends the reading, whatever system it
// comes from, and an empty datagram is a datagram.
func TestReadErrorsAreSurvived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newScriptConn()
		errs := map[ErrorKind][]error{
			ErrReset:          {syscall.Errno(10054), syscall.Errno(10052)},
			ErrTooLarge:       {syscall.Errno(10040)},
			ErrRefused:        {&net.OpError{Op: "read", Err: os.NewSyscallError("recvfrom", syscall.ECONNREFUSED)}},
			ErrInterrupted:    {syscall.EINTR},
			ErrNoMemory:       {syscall.ENOMEM},
			ErrTimeout:        {os.ErrDeadlineExceeded},
			ErrOther:          {io.EOF, io.ErrUnexpectedEOF, errors.New("odd")},
			ErrNetUnreachable: {syscall.ENETUNREACH},
		}
		total := 0
		for kind, list := range errs {
			for i, err := range list {
				c.in <- scripted{data: "lost", addr: scriptPeer, err: err}
				c.in <- scripted{data: fmt.Sprint(kind, i), addr: scriptPeer}
				total++
			}
			c.in <- scripted{addr: scriptPeer} // empty
		}
		s := newSocket(t, c, Options{})
		start := time.Now()
		empty := 0
		for _, p := range collect(t, s, total+len(errs)) {
			if p.data == "lost" {
				t.Error("the data of a failed read was delivered")
			}
			if p.data == "" {
				empty++
			}
			if p.addr != scriptAddr {
				t.Errorf("peer %v, want %v", p.addr, scriptPeer)
			}
		}
		if empty != len(errs) {
			t.Errorf("%d empty datagrams, want %d", empty, len(errs))
		}
		if d := time.Since(start); d != 0 {
			t.Errorf("single errors took %v", d)
		}
		st := s.Stats()
		for kind, list := range errs {
			if st.ReadErrors[kind] != uint64(len(list)) {
				t.Errorf("%v counted %d times, want %d", kind, st.ReadErrors[kind], len(list))
			}
		}
		if st.EmptyIn != uint64(empty) || st.DatagramsIn != uint64(total+empty) {
			t.Errorf("counted %d empty of %d, want %d of %d", st.EmptyIn, st.DatagramsIn, empty, total+empty)
		}
	})
}

// A connection that only gives errors is asked ten times a second, and at full
// speed again after it has recovered.
func TestPermanentReadErrorsDoNotSpin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newScriptConn()
		for range 116 {
			c.in <- scripted{err: syscall.ENOBUFS}
		}
		c.in <- scripted{data: "good", addr: scriptPeer}
		for range freeErrors {
			c.in <- scripted{err: syscall.ENOBUFS}
		}
		c.in <- scripted{data: "good", addr: scriptPeer}
		s := newSocket(t, c, Options{})
		start := time.Now()
		collect(t, s, 1)
		// 16 errors without delay, then 1, 2, 4, ... 64 ms, then 93 times 100 ms.
		if d, want := time.Since(start), 127*time.Millisecond+93*100*time.Millisecond; d != want {
			t.Errorf("116 errors took %v, want %v", d, want)
		}
		start = time.Now()
		collect(t, s, 1)
		if d := time.Since(start); d != 0 {
			t.Errorf("%d errors after a good datagram took %v", freeErrors, d)
		}

		// Close ends the wait between two attempts.
		for range freeErrors + 20 {
			c.in <- scripted{err: syscall.ENOBUFS}
		}
		done := make(chan error)
		go func() {
			_, err := s.ReadTrains(make([]Train, 1))
			done <- err
		}()
		time.Sleep(250 * time.Millisecond)
		start = time.Now()
		s.Close()
		if err := <-done; err != net.ErrClosed || time.Since(start) != 0 {
			t.Errorf("%v, %v after Close", err, time.Since(start))
		}
	})
}

// No error of a write but net.ErrClosed is told to the caller; the datagrams
// are lost and counted, the ones around them are not.
func TestWriteErrorsAreLosses(t *testing.T) {
	errs := []struct {
		err  error
		kind ErrorKind
	}{
		{syscall.ENOBUFS, ErrNoBuffers},
		{syscall.EAGAIN, ErrWouldBlock},
		{syscall.EPERM, ErrNotPermitted},
		{syscall.ECONNREFUSED, ErrRefused},
		{syscall.ENETUNREACH, ErrNetUnreachable},
		{syscall.EHOSTUNREACH, ErrHostUnreachable},
		{syscall.EMSGSIZE, ErrTooLarge},
		{syscall.ECONNRESET, ErrReset},
		{syscall.EINTR, ErrInterrupted},
		{syscall.ENOMEM, ErrNoMemory},
		{syscall.Errno(10054), ErrReset},
		{syscall.Errno(10052), ErrReset},
		{syscall.Errno(10040), ErrTooLarge},
		{os.ErrDeadlineExceeded, ErrTimeout},
		{io.ErrShortWrite, ErrOther},
	}
	for _, tt := range errs {
		t.Run(tt.err.Error(), func(t *testing.T) {
			c := newScriptConn()
			c.writeErr = func(n int) error {
				if n%2 == 1 {
					return &net.OpError{Op: "write", Err: tt.err}
				}
				return nil
			}
			s := newSocket(t, c, Options{})
			train := Train{Buf: []byte("aabbccdd"), SegSize: 2, Addr: peerA}
			if n, err := s.WriteTrains([]Train{train, {Buf: []byte("ee"), Addr: peerB}, {Buf: []byte("ff"), Addr: peerB}}); n != 3 || err != nil {
				t.Errorf("WriteTrains = %d, %v; want 3, nil", n, err)
			}
			want := []packet{{data: "bb", addr: peerA}, {data: "dd", addr: peerA}, {data: "ff", addr: peerB}}
			if fmt.Sprint(c.sent) != fmt.Sprint(want) {
				t.Errorf("sent %v, want %v", c.sent, want)
			}
			if st := s.Stats(); st.WriteErrors[tt.kind] != 3 || st.LostOut != 3 || st.DatagramsOut != 3 || st.BytesOut != 6 {
				t.Errorf("%+v", st)
			}
		})
	}
}

func TestWriteToClosedConnection(t *testing.T) {
	c := newScriptConn()
	c.writeErr = func(n int) error {
		if n == 3 {
			return &net.OpError{Op: "write", Err: net.ErrClosed}
		}
		return nil
	}
	s := newSocket(t, c, Options{})
	if n, err := s.WriteTrains([]Train{{Buf: make([]byte, 10), SegSize: 1, Addr: peerA}, {Addr: peerA}}); n != 2 || err != net.ErrClosed {
		t.Errorf("WriteTrains = %d, %v; want 2, net.ErrClosed", n, err)
	}
	if c.writes != 3 {
		t.Errorf("%d writes, want none after net.ErrClosed", c.writes)
	}
}

// pairConn is a connected net.PacketConn that is no *net.UDPConn.
type pairConn struct {
	*scriptConn
	wrote []string
}

func (c *pairConn) Read(b []byte) (int, error) { n, _, err := c.ReadFrom(b); return n, err }
func (c *pairConn) RemoteAddr() net.Addr       { return scriptPeer }
func (c *pairConn) Write(b []byte) (int, error) {
	c.wrote = append(c.wrote, string(b))
	return len(b), nil
}

func TestForeignConnected(t *testing.T) {
	c := &pairConn{scriptConn: newScriptConn()}
	s := newSocket(t, c, Options{})
	c.in <- scripted{data: "in"} // such a connection may give no address
	if p := collect(t, s, 1)[0]; p.data != "in" || p.addr != scriptAddr {
		t.Errorf("got %+v", p)
	}
	write(t, s, Train{Buf: []byte("aab"), SegSize: 2}, Train{Buf: []byte("c"), Addr: peerB})
	if fmt.Sprint(c.wrote) != "[aa b c]" || len(c.sent) != 0 {
		t.Errorf("written %q, sent %v", c.wrote, c.sent)
	}
}

func TestAddrPortOf(t *testing.T) {
	want := scriptAddr
	tests := []struct {
		addr net.Addr
		want netip.AddrPort
	}{
		{nil, netip.AddrPort{}},
		{(*net.UDPAddr)(nil), netip.AddrPort{}},
		{scriptPeer, want}, // 16-byte form
		{&net.UDPAddr{IP: net.IPv4(10, 0, 0, 1).To4(), Port: 7}, want},
		{&net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 7}, want},
		{textAddr("10.0.0.1:7"), want},
		{textAddr("[::ffff:10.0.0.1]:7"), want},
		{textAddr("[fe80::1%eth0]:7"), netip.MustParseAddrPort("[fe80::1%eth0]:7")},
		{textAddr("somewhere"), netip.AddrPort{}},
	}
	for _, tt := range tests {
		if got := addrPortOf(tt.addr); got != tt.want {
			t.Errorf("addrPortOf(%v) = %v, want %v", tt.addr, got, tt.want)
		}
	}
}

type textAddr string

func (textAddr) Network() string  { return "test" }
func (a textAddr) String() string { return string(a) }

// The address cache is bounded, and right after it was dropped.
func TestAddrCache(t *testing.T) {
	var c addrCache
	for i := range 3 * maxCachedAddrs {
		ap := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 9)
		if got := c.get(ap).AddrPort(); got != ap {
			t.Fatalf("get(%v) = %v", ap, got)
		}
		if first, second := c.get(ap), c.get(ap); first != second {
			t.Fatal("no cache")
		}
		if len(c.m) > maxCachedAddrs {
			t.Fatalf("%d entries", len(c.m))
		}
	}
}
