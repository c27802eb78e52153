package udpio

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// cmsgOf encodes one control message the way the kernel does, with the x/sys
// types rather than with our writer.
func cmsgOf(level, typ int, data []byte) []byte {
	b := make([]byte, unix.CmsgSpace(len(data)))
	h := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
	h.Level, h.Type = int32(level), int32(typ)
	h.SetLen(unix.CmsgLen(len(data)))
	copy(b[unix.CmsgLen(0):], data)
	return b
}

func native32(v uint32) []byte { return binary.NativeEndian.AppendUint32(nil, v) }

func pktinfo4(specDst, dst string) []byte {
	b := native32(7)
	b = append(b, netip.MustParseAddr(specDst).AsSlice()...)
	return append(b, netip.MustParseAddr(dst).AsSlice()...)
}

func pktinfo6(dst string) []byte {
	a := netip.MustParseAddr(dst).As16()
	return append(a[:], native32(7)...)
}

func join(parts ...[]byte) (out []byte) {
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

func TestParseControl(t *testing.T) {
	gro := cmsgOf(unix.SOL_UDP, unix.UDP_GRO, native32(1200))
	tos := cmsgOf(unix.IPPROTO_IP, unix.IP_TOS, []byte{0xFF})
	tests := []struct {
		name string
		b    []byte
		want received
	}{
		{"nothing", nil, received{}},
		{"gro", gro, received{seg: 1200}},
		{"gro of negative size", cmsgOf(unix.SOL_UDP, unix.UDP_GRO, native32(1<<31)), received{}},
		{"gro too short", cmsgOf(unix.SOL_UDP, unix.UDP_GRO, []byte{1, 0}), received{}},
		{"ipv4", cmsgOf(unix.IPPROTO_IP, unix.IP_PKTINFO, pktinfo4("127.0.0.2", "127.0.0.2")), received{local: netip.MustParseAddr("127.0.0.2")}},
		{"ipv4 multicast", cmsgOf(unix.IPPROTO_IP, unix.IP_PKTINFO, pktinfo4("10.0.0.5", "224.0.0.251")), received{local: netip.MustParseAddr("10.0.0.5")}},
		{"ipv6", cmsgOf(unix.IPPROTO_IPV6, unix.IPV6_PKTINFO, pktinfo6("fd00::2")), received{local: netip.MustParseAddr("fd00::2")}},
		{"ipv6 multicast", cmsgOf(unix.IPPROTO_IPV6, unix.IPV6_PKTINFO, pktinfo6("ff02::fb")), received{}},
		{"mapped", cmsgOf(unix.IPPROTO_IPV6, unix.IPV6_PKTINFO, pktinfo6("::ffff:127.0.0.2")), received{local: netip.MustParseAddr("127.0.0.2")}},
		{"tos", tos, received{ecn: 3}},
		{"traffic class", cmsgOf(unix.IPPROTO_IPV6, unix.IPV6_TCLASS, native32(2)), received{ecn: 2}},
		{"all", join(gro, cmsgOf(unix.IPPROTO_IP, unix.IP_PKTINFO, pktinfo4("127.0.0.2", "127.0.0.2")), tos),
			received{seg: 1200, local: netip.MustParseAddr("127.0.0.2"), ecn: 3}},
		{"behind an unknown one", join(cmsgOf(unix.SOL_SOCKET, 99, []byte{1, 2, 3}), gro), received{seg: 1200}},
		{"length of less than a header", join(make([]byte, 16), gro), received{}},
		{"length of the whole memory", func() []byte {
			b := join(gro, gro)
			copy(b, []byte{255, 255, 255, 255, 255, 255, 255, 255})
			return b
		}(), received{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := parseControl(tt.b); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
	// Cut anywhere, it is read up to the last whole message; the padding
	// behind the last one may be missing.
	all := tests[11].b
	for n := range len(all) {
		var want received
		if n >= unix.CmsgLen(4) {
			want.seg = 1200
		}
		if n >= len(gro)+unix.CmsgLen(12) {
			want.local = netip.MustParseAddr("127.0.0.2")
		}
		if n >= len(gro)+unix.CmsgSpace(12)+unix.CmsgLen(1) {
			want.ecn = 3
		}
		if got := parseControl(all[:n:n]); got != want {
			t.Errorf("cut at %d: got %+v, want %+v", n, got, want)
		}
	}
}

// What the writer writes is what the x/sys package would, and what the parser
// reads.
func TestControlWriter(t *testing.T) {
	var b [sendControlLen]byte
	w := controlWriter{b: b[:]}
	w.segment(1200)
	w.from(netip.MustParseAddr("fd00::2"), unix.AF_INET6)
	w.ecn(1, false)
	want := join(
		cmsgOf(unix.SOL_UDP, unix.UDP_SEGMENT, binary.NativeEndian.AppendUint16(nil, 1200)),
		cmsgOf(unix.IPPROTO_IPV6, unix.IPV6_PKTINFO, append(netip.MustParseAddr("fd00::2").AsSlice(), 0, 0, 0, 0)),
		cmsgOf(unix.IPPROTO_IPV6, unix.IPV6_TCLASS, native32(1)),
	)
	if got := b[:w.len]; string(got) != string(want) {
		t.Errorf("got  %x\nwant %x", got, want)
	}
	if got := parseControl(b[:w.len]); got.local != netip.MustParseAddr("fd00::2") || got.ecn != 1 {
		t.Errorf("parsed %+v", got)
	}

	w = controlWriter{b: b[:]}
	w.from(netip.MustParseAddr("127.0.0.2"), unix.AF_INET)
	w.ecn(2, true)
	want = join(
		cmsgOf(unix.IPPROTO_IP, unix.IP_PKTINFO, []byte{0, 0, 0, 0, 127, 0, 0, 2, 0, 0, 0, 0}),
		cmsgOf(unix.IPPROTO_IP, unix.IP_TOS, native32(2)),
	)
	if got := b[:w.len]; string(got) != string(want) {
		t.Errorf("got  %x\nwant %x", got, want)
	}

	w = controlWriter{b: b[:]}
	w.from(netip.MustParseAddr("127.0.0.2"), unix.AF_INET6)
	if got := parseControl(b[:w.len]); got.local != netip.MustParseAddr("127.0.0.2") {
		t.Errorf("mapped source: parsed %+v", got)
	}
}

func FuzzParseControl(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(cmsgOf(unix.SOL_UDP, unix.UDP_GRO, native32(1200)))
	f.Add(join(
		cmsgOf(unix.IPPROTO_IP, unix.IP_PKTINFO, pktinfo4("127.0.0.2", "127.0.0.2")),
		cmsgOf(unix.IPPROTO_IPV6, unix.IPV6_PKTINFO, pktinfo6("::1")),
		cmsgOf(unix.IPPROTO_IP, unix.IP_TOS, []byte{3}),
		cmsgOf(unix.IPPROTO_IPV6, unix.IPV6_TCLASS, native32(3)),
	))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := parseControl(b)
		if r.seg < 0 || r.ecn > 3 || r.local.Is4In6() || r.local.IsMulticast() {
			t.Errorf("%x: %+v", b, r)
		}
		// Where the standard parser is content, both agree.
		msgs, err := unix.ParseSocketControlMessage(b)
		if err != nil {
			return
		}
		var want received
		for _, m := range msgs {
			want.add(m.Header.Level, m.Header.Type, m.Data)
		}
		if r != want {
			t.Errorf("%x: %+v, the standard parser has %+v", b, r, want)
		}
	})
}
