package udpio

import (
	"net"
	"net/netip"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openarkstudio/arknet-go/internal/bufpool"
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
	sent := uint64(200)
	for range sent {
		write(t, client, fill(1200, 0, 0))
	}
	// One more datagram at a time until all are accounted for; the reader finds
	// that one, or others before it.
	ts := make([]Train, 64)
	for {
		write(t, client, fill(1, 0, 0))
		sent++
		if _, err := server.ReadTrains(ts); err != nil {
			t.Fatal(err)
		}
		if st := server.Stats(); st.DatagramsIn+st.KernelDrops == sent {
			break
		}
	}
	drops := server.Stats().KernelDrops
	if drops == 0 || drops >= sent {
		t.Fatalf("%d of %d dropped, want some", drops, sent)
	}
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

// The room for messages follows what was found: alternating single datagrams
// keep it at one, a backlog doubles it, single ones bring it down again.
func TestReceiveRoomAdapts(t *testing.T) {
	p := &fastPath{}
	p.guess, p.limit = 1, 64
	found := func(got int, waited bool, want int) {
		t.Helper()
		p.room, p.waited = p.guess, waited
		p.adapt(min(got, p.room))
		if p.guess != want {
			t.Errorf("found %d of %d, waited %v: guess %d, want %d", got, p.room, waited, p.guess, want)
		}
	}
	for range 3 {
		found(1, true, 1)
	}
	for _, want := range []int{2, 4, 8, 16, 32, 64, 64} {
		found(1000, false, want)
	}
	found(30, false, 64) // a burst that ends
	for _, want := range []int{32, 16, 8, 4, 2, 2} {
		found(1, false, want)
	}
	for _, want := range []int{1, 1} {
		found(1, true, want)
	}
}

// A socket that waits lends no receive buffers.
func TestIdleSocketHoldsNoBuffers(t *testing.T) {
	var pool bufpool.Pool
	s, err := New(listen(t, "udp", "127.0.0.1"), Options{Pool: &pool})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	tried := make(chan struct{})
	k := &s.path.(*fastPath).kernel
	k.recv = func(uintptr, []mmsghdr, bool) (int, unix.Errno) {
		if pool.Outstanding() == 0 {
			t.Error("a try without a buffer")
		}
		// Once this returns, the path gives up what it holds and waits.
		defer close(tried)
		return 0, unix.EAGAIN
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = s.ReadTrains(make([]Train, 4))
	}()
	<-tried
	for pool.Outstanding() != 0 {
		runtime.Gosched()
	}
	s.Close()
	<-done
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
