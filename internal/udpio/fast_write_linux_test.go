package udpio

import (
	"errors"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// scriptKernel answers sends of the fast path with errors before it lets them
// through.
type scriptKernel struct {
	errno func(m *mmsghdr) unix.Errno // 0 lets the message through
	calls atomic.Int32
}

func (k *scriptKernel) send(fd uintptr, msgs []mmsghdr, batch bool) (int, unix.Errno) {
	k.calls.Add(1)
	for i := range msgs {
		errno := k.errno(&msgs[i])
		if errno == 0 {
			continue
		}
		if i == 0 {
			return 0, errno
		}
		msgs = msgs[:i] // as sendmmsg: the error comes with the next call
		break
	}
	return sendMessages(fd, msgs, batch)
}

// gso reads the segment size from the control messages; 0 when there is none.
func (m *mmsghdr) gso() int {
	if m.hdr.Control == nil {
		return 0
	}
	msgs, err := unix.ParseSocketControlMessage(slices.Clone(unsafeBytes(m.hdr.Control, int(m.hdr.Controllen))))
	if err != nil {
		return -1
	}
	for _, c := range msgs {
		if c.Header.Level == unix.SOL_UDP && c.Header.Type == unix.UDP_SEGMENT {
			return int(c.Data[0]) | int(c.Data[1])<<8
		}
	}
	return 0
}

func (m *mmsghdr) size() (n int) {
	for _, v := range unsafeIovecs(m.hdr.Iov, int(m.hdr.Iovlen)) {
		n += int(v.Len)
	}
	return n
}

// scriptedPair makes a server and a client whose sends go through f.
func scriptedPair(t *testing.T, opts Options, f func(m *mmsghdr) unix.Errno) (client, server *Socket, k *scriptKernel) {
	t.Helper()
	server = newSocket(t, listen(t, "udp", "127.0.0.1"), Options{ReadBuffer: 4 << 20})
	client = newSocket(t, dial(t, server.LocalAddr()), opts)
	k = &scriptKernel{errno: f}
	client.path.(*fastPath).kernel.send = k.send
	if !client.Stats().GSO && !opts.NoGSO {
		t.Skip("this kernel has no GSO")
	}
	return client, server, k
}

// A kernel or device that refuses GSO costs nothing but speed: the datagrams go
// out one by one, in order, and GSO stays off.
func TestGSORefused(t *testing.T) {
	for _, errno := range []unix.Errno{unix.EIO, unix.EINVAL, unix.EMSGSIZE, unix.EOPNOTSUPP} {
		t.Run(errno.Error(), func(t *testing.T) {
			client, server, _ := scriptedPair(t, Options{}, func(m *mmsghdr) unix.Errno {
				if m.gso() > 0 {
					return errno
				}
				return 0
			})
			trains := []Train{fill(10, 0, 0), fill(100*1200+5, 1200, 1), fill(7, 0, 2), fill(30*100, 100, 3)}
			write(t, client, trains...)
			i, got := 0, collect(t, server, 1+101+1+30)
			for _, tr := range trains {
				for d := range tr.Datagrams() {
					if got[i].data != string(d) {
						t.Fatalf("datagram %d differs", i)
					}
					i++
				}
			}
			st := client.Stats()
			if st.GSO || st.GSORefused != 1 || st.LostOut != 0 || st.WriteErrors.Total() != 0 || st.TrainsOut != 0 {
				t.Errorf("%+v", st)
			}
		})
	}
}

// Segments above the MTU are sent alone, to be fragmented; shorter ones keep
// GSO.
func TestGSORefusedForLongSegments(t *testing.T) {
	const limit = 1400
	client, server, _ := scriptedPair(t, Options{}, func(m *mmsghdr) unix.Errno {
		if m.gso() > limit {
			return unix.EINVAL
		}
		return 0
	})
	for range 3 {
		write(t, client, fill(5*1500, 1500, 0), fill(5*1400, 1400, 1))
		collect(t, server, 10)
	}
	st := client.Stats()
	if !st.GSO || st.GSORefused != 1 || st.TrainsOut != 3 || st.LostOut != 0 {
		t.Errorf("%+v", st)
	}
}

// A train that is too large with DF set is lost, and says nothing about GSO.
func TestTooLargeIsNotAboutGSO(t *testing.T) {
	client, server, _ := scriptedPair(t, Options{}, func(m *mmsghdr) unix.Errno {
		if seg := m.gso(); seg > 1400 || seg == 0 && m.size() > 1400 {
			return unix.EMSGSIZE
		}
		return 0
	})
	if n, err := client.WriteTrains([]Train{fill(3*1500, 1500, 0), fill(5*1400, 1400, 1)}); n != 5 || err != nil {
		t.Errorf("WriteTrains = %d, %v; want 5, nil", n, err)
	}
	collect(t, server, 5)
	st := client.Stats()
	if !st.GSO || st.LostOut != 3 || st.WriteErrors[ErrTooLarge] != 3 || st.TrainsOut != 1 {
		t.Errorf("%+v", st)
	}
	if p := client.path.(*fastPath); p.maxSeg.Load() != maxGSOBytes {
		t.Errorf("GSO limited to %d bytes", p.maxSeg.Load())
	}
}

// Errors of single messages within a batch cost these messages alone.
func TestSendErrorsWithinABatch(t *testing.T) {
	for _, errno := range []unix.Errno{unix.ENOBUFS, unix.ENOMEM, unix.EPERM, unix.ENETUNREACH, unix.EHOSTUNREACH, unix.ECONNREFUSED, unix.EMSGSIZE} {
		t.Run(errno.Error(), func(t *testing.T) {
			client, server, _ := scriptedPair(t, Options{NoGSO: true}, func(m *mmsghdr) unix.Errno {
				if m.size() == 777 {
					return errno
				}
				return 0
			})
			ts := []Train{fill(777, 0, 0), fill(100, 50, 1), fill(777, 0, 2), fill(776, 0, 3), fill(777, 0, 4), fill(20, 0, 5), fill(777, 0, 6)}
			if n, err := client.WriteTrains(ts); n != 4 || err != nil {
				t.Errorf("WriteTrains = %d, %v; want 4, nil", n, err)
			}
			got := collect(t, server, 4)
			for i, want := range []int{50, 50, 776, 20} {
				if len(got[i].data) != want {
					t.Errorf("datagram %d has %d bytes, want %d", i, len(got[i].data), want)
				}
			}
			if st := client.Stats(); st.LostOut != 4 || st.WriteErrors[kindOfErrno(errno)] < 4 || st.DatagramsOut != 4 {
				t.Errorf("%+v", st)
			}
		})
	}
}

// The pending error of an earlier datagram does not cost the one at hand.
func TestPendingErrorIsRetried(t *testing.T) {
	first := true
	client, server, _ := scriptedPair(t, Options{}, func(*mmsghdr) unix.Errno {
		if first {
			first = false
			return unix.ECONNREFUSED
		}
		return 0
	})
	write(t, client, fill(300, 100, 0))
	collect(t, server, 3)
	if st := client.Stats(); st.WriteErrors[ErrRefused] != 1 || st.LostOut != 0 {
		t.Errorf("%+v", st)
	}
}

// EINTR is nothing, and a sandbox without sendmmsg costs the batching.
func TestInterruptedAndUnknownCalls(t *testing.T) {
	interrupts := 3
	client, server, _ := scriptedPair(t, Options{}, nil)
	k := &client.path.(*fastPath).kernel
	k.send = func(fd uintptr, msgs []mmsghdr, batch bool) (int, unix.Errno) {
		if interrupts--; interrupts >= 0 {
			return 0, unix.EINTR
		}
		if batch {
			return 0, unix.ENOSYS
		}
		return sendMessages(fd, msgs, false)
	}
	write(t, client, fill(10, 0, 0), fill(20, 0, 1), fill(300, 100, 2))
	collect(t, server, 5)
	if st := client.Stats(); st.Batch || !st.GSO || st.LostOut != 0 || st.WriteErrors.Total() != 0 {
		t.Errorf("%+v", st)
	}

	interrupts = 3
	sk := &server.path.(*fastPath).kernel
	sk.recv = func(fd uintptr, msgs []mmsghdr, batch bool) (int, unix.Errno) {
		if interrupts--; interrupts >= 0 {
			return 0, unix.EINTR
		}
		if batch {
			return 0, unix.ENOSYS
		}
		return recvMessages(fd, msgs, false)
	}
	write(t, client, fill(10, 0, 0), fill(20, 0, 1), fill(300, 100, 2))
	collect(t, server, 5)
	if st := server.Stats(); st.Batch || st.ReadErrors.Total() != 0 {
		t.Errorf("%+v", st)
	}
}

// A full send buffer is waited for once, for a short time, and nobody waits
// again before something has gone out.
func TestFullSendBuffer(t *testing.T) {
	full := atomic.Bool{}
	client, server, k := scriptedPair(t, Options{}, func(*mmsghdr) unix.Errno {
		if full.Load() {
			return unix.EAGAIN
		}
		return 0
	})
	full.Store(true)
	start := time.Now()
	if n, err := client.WriteTrains([]Train{fill(20, 10, 0), fill(5, 0, 1)}); n != 0 || err != nil {
		t.Errorf("WriteTrains = %d, %v; want 0, nil", n, err)
	}
	if d := time.Since(start); d < maxWriteWait {
		t.Errorf("gave up after %v, before %v", d, maxWriteWait)
	}
	if st := client.Stats(); st.LostOut != 3 || st.WriteErrors[ErrWouldBlock] == 0 {
		t.Errorf("%+v", st)
	}
	before := k.calls.Load()
	if n, err := client.WriteTrains([]Train{fill(20, 10, 0)}); n != 0 || err != nil {
		t.Errorf("WriteTrains = %d, %v; want 0, nil", n, err)
	}
	if calls := k.calls.Load() - before; calls != 1 {
		t.Errorf("%d calls on a stuck socket, want 1", calls)
	}
	full.Store(false)
	write(t, client, fill(20, 10, 0))
	collect(t, server, 2)
	if client.path.(*fastPath).stuck.Load() {
		t.Error("still stuck")
	}
	// The deadline of the wait is gone.
	if _, err := client.PacketConn().(*net.UDPConn).Write([]byte("x")); err != nil {
		t.Errorf("Write of the connection: %v", err)
	}
}

func TestFullSendBufferThenRoom(t *testing.T) {
	var calls atomic.Int32
	client, server, _ := scriptedPair(t, Options{}, func(*mmsghdr) unix.Errno {
		if calls.Add(1) == 1 {
			return unix.EAGAIN
		}
		return 0
	})
	// No edge comes from a real socket that was never full: the wait ends by
	// its deadline and the try after it succeeds.
	write(t, client, fill(20, 10, 0))
	collect(t, server, 2)
	if st := client.Stats(); st.LostOut != 0 || st.WriteErrors.Total() != 0 {
		t.Errorf("%+v", st)
	}
}

// Writers that meet the deadline of somebody else's wait go on.
func TestWriteDeadlineOfTheOwner(t *testing.T) {
	client, server, _ := scriptedPair(t, Options{}, func(*mmsghdr) unix.Errno { return 0 })
	if err := client.PacketConn().SetWriteDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	write(t, client, fill(20, 10, 0))
	collect(t, server, 2)
}

func TestCloseEndsAWait(t *testing.T) {
	waiting := make(chan struct{})
	var once atomic.Bool
	client, _, _ := scriptedPair(t, Options{}, func(*mmsghdr) unix.Errno {
		if once.CompareAndSwap(false, true) {
			close(waiting)
		}
		return unix.EAGAIN
	})
	done := make(chan error, 1)
	go func() {
		_, err := client.WriteTrains([]Train{fill(20, 10, 0)})
		done <- err
	}()
	<-waiting
	client.Close()
	// It may have given up before Close: then it returned nil.
	if err := <-done; err != nil && !errors.Is(err, net.ErrClosed) {
		t.Errorf("WriteTrains: %v", err)
	}
}
