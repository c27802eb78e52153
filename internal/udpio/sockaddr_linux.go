package udpio

import (
	"net"
	"net/netip"
	"strconv"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sockaddr is room for an IPv4 or IPv6 socket address.
type sockaddr = unix.RawSockaddrInet6

// putSockaddr writes addr as a socket of the family wants it and returns its
// length; 0 when such a socket cannot reach it.
func (z *zones) putSockaddr(sa *sockaddr, family int, addr netip.AddrPort) uint32 {
	ip := addr.Addr()
	if !ip.IsValid() {
		return 0
	}
	if family == unix.AF_INET {
		ip = ip.Unmap()
		if !ip.Is4() {
			return 0
		}
		sa4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(sa))
		sa4.Family = unix.AF_INET
		putPort(&sa4.Port, addr.Port())
		sa4.Addr = ip.As4()
		return unix.SizeofSockaddrInet4
	}
	var scope uint32
	if zone := ip.Zone(); zone != "" {
		var ok bool
		if scope, ok = z.index(zone); !ok {
			return 0
		}
	}
	*sa = sockaddr{Family: unix.AF_INET6, Addr: ip.As16(), Scope_id: scope}
	putPort(&sa.Port, addr.Port())
	return unix.SizeofSockaddrInet6
}

// addrPort reads the address that the kernel wrote; IPv4 is never mapped.
func (z *zones) addrPort(sa *sockaddr, n uint32) netip.AddrPort {
	switch {
	case n >= unix.SizeofSockaddrInet4 && sa.Family == unix.AF_INET:
		sa4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(sa))
		return netip.AddrPortFrom(netip.AddrFrom4(sa4.Addr), port(&sa4.Port))
	case n >= unix.SizeofSockaddrInet6 && sa.Family == unix.AF_INET6:
		ip := netip.AddrFrom16(sa.Addr).Unmap()
		if sa.Scope_id != 0 {
			ip = ip.WithZone(z.name(sa.Scope_id))
		}
		return netip.AddrPortFrom(ip, port(&sa.Port))
	}
	return netip.AddrPort{}
}

// A port is in network order in memory, whatever the machine's.
func putPort(dst *uint16, port uint16) {
	b := (*[2]byte)(unsafe.Pointer(dst))
	b[0], b[1] = byte(port>>8), byte(port)
}

func port(src *uint16) uint16 {
	b := (*[2]byte)(unsafe.Pointer(src))
	return uint16(b[0])<<8 | uint16(b[1])
}

// zones translates the zones of link-local addresses, which are interface
// names for Go and indexes for the kernel. It remembers what it looked up, as
// a look-up reads the whole interface list.
type zones struct {
	mu      sync.Mutex
	indexes map[string]uint32
	names   map[uint32]string
}

// maxZones bounds what is remembered; there are never that many interfaces
// with link-local peers.
const maxZones = 256

func (z *zones) index(zone string) (uint32, bool) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if i, ok := z.indexes[zone]; ok {
		return i, true
	}
	var index uint32
	if ifi, err := net.InterfaceByName(zone); err == nil {
		index = uint32(ifi.Index)
	} else if n, err := strconv.ParseUint(zone, 10, 32); err == nil {
		index = uint32(n)
	} else {
		return 0, false
	}
	if z.indexes == nil || len(z.indexes) >= maxZones {
		z.indexes = make(map[string]uint32)
	}
	z.indexes[zone] = index
	return index, true
}

func (z *zones) name(index uint32) string {
	z.mu.Lock()
	defer z.mu.Unlock()
	if name, ok := z.names[index]; ok {
		return name
	}
	name := strconv.FormatUint(uint64(index), 10)
	if ifi, err := net.InterfaceByIndex(int(index)); err == nil {
		name = ifi.Name
	}
	if z.names == nil || len(z.names) >= maxZones {
		z.names = make(map[uint32]string)
	}
	z.names[index] = name
	return name
}
