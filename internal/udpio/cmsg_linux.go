package udpio

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Room for the control messages of one kernel message, in bytes. Received at
// most: UDP_GRO, IP_PKTINFO or IPV6_PKTINFO (a dual-stack socket may get both),
// IP_TOS or IPV6_TCLASS. Sent at most: UDP_SEGMENT, one of the packet infos,
// one traffic class.
const (
	recvControlLen = 256
	sendControlLen = 96
)

// The layout of struct cmsghdr: a length of the machine's word, which counts
// the header, then level and type of 4 bytes each; data and next header are
// aligned to a word.
const (
	cmsgAlign  = unix.SizeofPtr
	cmsgHeader = (unix.SizeofCmsghdr + cmsgAlign - 1) &^ (cmsgAlign - 1)
)

// received is what the control messages of a received message tell.
type received struct {
	seg   int        // UDP_GRO: the length of the segments; 0 when there is none
	local netip.Addr // where a reply should leave from
	ecn   byte
}

// parseControl reads the control messages in b. It trusts no length in them:
// whatever is malformed ends the parse and leaves what was read before.
func parseControl(b []byte) (r received) {
	for len(b) >= cmsgHeader {
		n := cmsgLen(b)
		if n < cmsgHeader || n > uint64(len(b)) {
			return r
		}
		level := int32(binary.NativeEndian.Uint32(b[cmsgAlign:]))
		typ := int32(binary.NativeEndian.Uint32(b[cmsgAlign+4:]))
		r.add(level, typ, b[cmsgHeader:n])
		next := (n + cmsgAlign - 1) &^ (cmsgAlign - 1)
		if next >= uint64(len(b)) {
			return r
		}
		b = b[next:]
	}
	return r
}

func cmsgLen(b []byte) uint64 {
	if cmsgAlign == 8 {
		return binary.NativeEndian.Uint64(b)
	}
	return uint64(binary.NativeEndian.Uint32(b))
}

// add takes one control message. Unknown ones are somebody else's.
func (r *received) add(level, typ int32, data []byte) {
	switch {
	case level == unix.SOL_UDP && typ == unix.UDP_GRO:
		if len(data) >= 4 { // an int, though the value is a uint16
			if seg := int32(binary.NativeEndian.Uint32(data)); seg > 0 {
				r.seg = int(seg)
			}
		}
	case level == unix.IPPROTO_IP && typ == unix.IP_PKTINFO:
		if len(data) >= unix.SizeofInet4Pktinfo { // ifindex, spec_dst, addr
			// spec_dst is the address to reply from, also when addr is a
			// multicast group or a broadcast address (ip(7)).
			r.setLocal(netip.AddrFrom4([4]byte(data[4:8])))
		}
	case level == unix.IPPROTO_IPV6 && typ == unix.IPV6_PKTINFO:
		if len(data) >= unix.SizeofInet6Pktinfo { // addr, ifindex
			r.setLocal(netip.AddrFrom16([16]byte(data[:16])).Unmap())
		}
	case level == unix.IPPROTO_IP && typ == unix.IP_TOS:
		if len(data) >= 1 { // a byte on receiving
			r.ecn = data[0] & 3
		}
	case level == unix.IPPROTO_IPV6 && typ == unix.IPV6_TCLASS:
		if len(data) >= 4 {
			r.ecn = byte(binary.NativeEndian.Uint32(data)) & 3
		}
	}
}

func (r *received) setLocal(a netip.Addr) {
	if !a.IsMulticast() && !a.IsUnspecified() {
		r.local = a
	}
}

// controlWriter appends control messages to a buffer that has room for them.
type controlWriter struct {
	b   []byte // sendControlLen bytes
	len int
}

// space appends a header and returns the n bytes of its data, zeroed.
func (w *controlWriter) space(level, typ, n int) []byte {
	b := w.b[w.len:]
	size := cmsgHeader + (n+cmsgAlign-1)&^(cmsgAlign-1)
	clear(b[:size])
	if cmsgAlign == 8 {
		binary.NativeEndian.PutUint64(b, uint64(cmsgHeader+n))
	} else {
		binary.NativeEndian.PutUint32(b, uint32(cmsgHeader+n))
	}
	binary.NativeEndian.PutUint32(b[cmsgAlign:], uint32(level))
	binary.NativeEndian.PutUint32(b[cmsgAlign+4:], uint32(typ))
	w.len += size
	return b[cmsgHeader : cmsgHeader+n]
}

// segment makes the kernel cut the message every size bytes.
func (w *controlWriter) segment(size int) {
	binary.NativeEndian.PutUint16(w.space(unix.SOL_UDP, unix.UDP_SEGMENT, 2), uint16(size))
}

// from sets the source address. A socket of family AF_INET6 takes an IPv4
// source in mapped form.
func (w *controlWriter) from(local netip.Addr, family int) {
	if family == unix.AF_INET {
		a := local.As4()
		copy(w.space(unix.IPPROTO_IP, unix.IP_PKTINFO, unix.SizeofInet4Pktinfo)[4:8], a[:])
		return
	}
	a := local.As16()
	copy(w.space(unix.IPPROTO_IPV6, unix.IPV6_PKTINFO, unix.SizeofInet6Pktinfo), a[:])
}

// ecn sets the congestion field; which option applies depends on the version
// of the packet, not of the socket.
func (w *controlWriter) ecn(bits byte, ipv4 bool) {
	level, typ := unix.IPPROTO_IPV6, unix.IPV6_TCLASS
	if ipv4 {
		level, typ = unix.IPPROTO_IP, unix.IP_TOS
	}
	binary.NativeEndian.PutUint32(w.space(level, typ, 4), uint32(bits&3))
}
