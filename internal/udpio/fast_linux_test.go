package udpio

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A wildcard socket tells on which address a datagram arrived, and answers
// from there: a connected peer would not see an answer from another address.
func TestReplyFromTheAddressAsked(t *testing.T) {
	tests := []struct{ name, network, bind, asked string }{
		{"ipv4", "udp4", "0.0.0.0", "127.0.0.2"},
		{"dual stack, ipv4", "udp", "::", "127.0.0.3"},
		{"dual stack, ipv6", "udp", "::", "::1"},
		{"ipv6", "udp6", "::", "::1"},
	}
	for _, tt := range tests {
		for _, v := range variants {
			if v.opts.NoFastPath {
				continue
			}
			t.Run(tt.name+"/"+v.name, func(t *testing.T) {
				server := newSocket(t, listen(t, tt.network, tt.bind), v.opts)
				asked := netip.MustParseAddr(tt.asked)
				client := newSocket(t, dial(t, net.UDPAddrFromAddrPort(netip.AddrPortFrom(asked, addrOf(server).Port()))), v.opts)
				for range 3 {
					write(t, client, fill(250, 100, 0))
					got := collect(t, server, 3)
					for _, p := range got {
						if p.local != asked {
							t.Fatalf("arrived on %v, want %v", p.local, asked)
						}
					}
					reply := fill(350, 100, 1)
					reply.Addr, reply.Local = got[0].addr, got[0].local
					write(t, server, reply)
					collect(t, client, 4)
				}
				// The zero address lets the kernel choose; it still leaves.
				write(t, server, Train{Buf: []byte("x"), Addr: addrOf(client)})
			})
		}
	}
}

// A socket that is bound to one address needs no packet info and takes Local
// as it comes.
func TestLocalOfABoundSocket(t *testing.T) {
	server := newSocket(t, listen(t, "udp4", "127.0.0.1"), Options{})
	client := newSocket(t, listen(t, "udp4", "127.0.0.1"), Options{})
	for _, local := range []string{"127.0.0.1", "127.0.0.9", "::1"} {
		write(t, client, Train{Buf: []byte("x"), Addr: addrOf(server), Local: netip.MustParseAddr(local)})
		if p := collect(t, server, 1)[0]; p.local.IsValid() || p.addr != addrOf(client) {
			t.Errorf("%+v, want no local address", p)
		}
	}
}

func TestECN(t *testing.T) {
	for _, tt := range []struct{ name, bind, to string }{
		{"ipv4", "127.0.0.1", "127.0.0.1"}, {"ipv6", "::1", "::1"}, {"dual stack, ipv4", "::", "127.0.0.1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := newSocket(t, listen(t, "udp", tt.bind), Options{ECN: true})
			client := newSocket(t, dial(t, net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(tt.to), addrOf(server).Port()))), Options{ECN: true})
			for ecn := range byte(4) {
				tr := fill(250, 100, 0)
				tr.ECN = ecn
				write(t, client, tr)
				got := collect(t, server, 3)
				for _, p := range got {
					if p.ecn != ecn {
						t.Fatalf("ECN %d arrived as %d", ecn, p.ecn)
					}
				}
				tr.Addr = got[0].addr
				write(t, server, tr)
				if p := collect(t, client, 3)[0]; p.ecn != ecn {
					t.Fatalf("ECN %d came back as %d", ecn, p.ecn)
				}
			}
		})
	}
}

// With both offloads a train crosses the kernel as one message each way, and
// arrives as one Train.
func TestTrainStaysWhole(t *testing.T) {
	server := newSocket(t, listen(t, "udp", "127.0.0.1"), Options{})
	client := newSocket(t, dial(t, server.LocalAddr()), Options{})
	if st := server.Stats(); !st.GSO || !st.GRO || !st.Batch {
		t.Skipf("this kernel has no offloads: %+v", st)
	}
	write(t, client, fill(50*1200+17, 1200, 0))
	ts := make([]Train, 4)
	n, err := server.ReadTrains(ts)
	if n != 1 || err != nil || ts[0].Len() != 51 || ts[0].SegSize != 1200 {
		t.Fatalf("ReadTrains = %d, %v; first train %d x %d", n, err, ts[0].Len(), ts[0].SegSize)
	}
	if out, in := client.Stats(), server.Stats(); out.SyscallsOut != 1 || out.TrainsOut != 1 || in.TrainsIn != 1 {
		t.Errorf("out: %+v\nin: %+v", out, in)
	}
	// Singles to one address go out together, too.
	var singles []Train
	for i := range 64 {
		singles = append(singles, fill(100, 0, i))
	}
	write(t, client, singles...)
	if st := client.Stats(); st.SyscallsOut != 2 || st.TrainsOut != 2 {
		t.Errorf("64 singles: %+v", st)
	}
	collect(t, server, 64)
}

// After Detach the owner reads single datagrams again, whatever the kernel had
// put together before.
func TestDetachSwitchesGROOff(t *testing.T) {
	pc := listen(t, "udp", "127.0.0.1")
	peer := newSocket(t, dial(t, pc.LocalAddr()), Options{})
	for range 3 {
		s := newSocket(t, pc, Options{})
		if !s.Stats().GRO {
			t.Skip("this kernel has no GRO")
		}
		write(t, peer, fill(300, 100, 0))
		collect(t, s, 3)
		write(t, peer, fill(300, 100, 0), fill(50, 0, 0)) // nobody reads these
		if err := s.Detach(); err != nil {
			t.Fatal(err)
		}
		if st := s.Stats(); st.DiscardedIn == 0 {
			t.Errorf("%+v", st)
		}
		write(t, peer, fill(250, 100, 0))
		buf := make([]byte, 1000)
		for _, want := range []int{100, 100, 50} {
			if n, _, err := pc.ReadFrom(buf); n != want || err != nil {
				t.Errorf("owner read %d bytes, %v; want %d", n, err, want)
			}
		}
	}
}

func TestKernelDrops(t *testing.T) {
	server := newSocket(t, listen(t, "udp", "127.0.0.1"), Options{})
	if err := server.PacketConn().(*net.UDPConn).SetReadBuffer(8 << 10); err != nil {
		t.Fatal(err)
	}
	client := newSocket(t, dial(t, server.LocalAddr()), Options{NoGSO: true})
	const sent = 200
	for range sent {
		write(t, client, fill(1200, 0, 0))
	}
	drops := server.Stats().KernelDrops
	if drops == 0 || drops >= sent {
		t.Fatalf("%d of %d dropped, want some", drops, sent)
	}
	collect(t, server, sent-int(drops))
	server.Close()
	if got := server.Stats().KernelDrops; got != drops {
		t.Errorf("%d drops after Close, want %d", got, drops)
	}
}

func TestDontFragment(t *testing.T) {
	for _, loopback := range []string{"127.0.0.1", "::1"} {
		server := newSocket(t, listen(t, "udp", loopback), Options{DontFragment: true})
		if !server.Stats().DontFragment {
			t.Errorf("%s: not set", loopback)
		}
	}
	if newSocket(t, listen(t, "udp", "127.0.0.1"), Options{}).Stats().DontFragment {
		t.Error("reported without being asked for")
	}
}

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

// Errors of recvmmsg are counted and survived.
func TestReceiveErrors(t *testing.T) {
	client, server, _ := scriptedPair(t, Options{}, func(*mmsghdr) unix.Errno { return 0 })
	errnos := []unix.Errno{unix.ECONNREFUSED, unix.ENOMEM, unix.EHOSTUNREACH, unix.ENOBUFS}
	k := &server.path.(*fastPath).kernel
	k.recv = func(fd uintptr, msgs []mmsghdr, batch bool) (int, unix.Errno) {
		if len(errnos) > 0 {
			e := errnos[0]
			errnos = errnos[1:]
			return 0, e
		}
		return recvMessages(fd, msgs, batch)
	}
	write(t, client, fill(10, 0, 0))
	collect(t, server, 1)
	if st := server.Stats(); st.ReadErrors.Total() != 4 || st.ReadErrors[ErrHostUnreachable] != 1 {
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

// An idle socket lends no buffers, and an active one as many as it needs.
func TestReceiveRoomAdapts(t *testing.T) {
	server := newSocket(t, listen(t, "udp", "127.0.0.1"), Options{NoGRO: true, MaxDatagram: 1500})
	client := newSocket(t, dial(t, server.LocalAddr()), Options{})
	p := server.path.(*fastPath)
	for range 10 {
		write(t, client, fill(64*100, 100, 0))
		collect(t, server, 64)
	}
	if st := server.Stats(); p.guess < 8 || st.SyscallsIn > 200 {
		t.Errorf("640 datagrams in bursts: guess %d, %d calls", p.guess, st.SyscallsIn)
	}
	for range 20 {
		write(t, client, fill(100, 0, 0))
		collect(t, server, 1)
	}
	if p.guess > 2 {
		t.Errorf("after single datagrams: guess %d", p.guess)
	}
}

func TestZones(t *testing.T) {
	var z zones
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		t.Skip(err)
	}
	for range 2 { // the second time from memory
		if i, ok := z.index("lo"); !ok || int(i) != lo.Index {
			t.Errorf(`index("lo") = %d, %v; want %d`, i, ok, lo.Index)
		}
		if name := z.name(uint32(lo.Index)); name != "lo" {
			t.Errorf("name(%d) = %q", lo.Index, name)
		}
		if i, ok := z.index("4711"); !ok || i != 4711 {
			t.Errorf(`index("4711") = %d, %v`, i, ok)
		}
		if name := z.name(4711); name != "4711" {
			t.Errorf("name(4711) = %q", name)
		}
		if _, ok := z.index("nosuch0"); ok {
			t.Error("an interface that is not there has an index")
		}
	}
	var sa sockaddr
	addr := netip.MustParseAddrPort("[fe80::1%lo]:99")
	if n := z.putSockaddr(&sa, unix.AF_INET6, addr); n == 0 || z.addrPort(&sa, n) != addr {
		t.Errorf("%v became %v", addr, z.addrPort(&sa, n))
	}
	if got := z.addrPort(&sa, 0); got.IsValid() {
		t.Errorf("no address became %v", got)
	}
}
