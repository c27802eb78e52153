package udpio

import (
	"iter"
	"net/netip"
)

// Train is a run of datagrams to or from one address.
type Train struct {
	// Buf holds the datagrams back to back. An empty Buf is one empty
	// datagram, which UDP allows: it is delivered, and it is sent.
	Buf []byte

	// SegSize is the length of each datagram in bytes; the last one may be
	// shorter. Zero, or anything not below len(Buf), means that Buf is one
	// datagram. ReadTrains always sets it (zero for the empty datagram).
	SegSize int

	// Addr is the peer. ReadTrains gives IPv4 peers in plain form, never
	// IPv4-mapped, whatever the family of the socket; WriteTrains takes both.
	// WriteTrains ignores it on a connected socket.
	Addr netip.AddrPort

	// Local is the local address that the datagrams arrived on, or should
	// leave from. The zero value means any. ReadTrains sets it on wildcard
	// sockets where the system tells (Linux); to answer from the address that
	// was asked, copy it to the reply. A multicast or broadcast destination is
	// given as the unicast address that a reply should carry, or as zero.
	Local netip.Addr

	// ECN is the congestion notification field (RFC 3168), two bits.
	// ReadTrains sets it when Options.ECN is on and the system tells.
	ECN byte
}

// Len returns the number of datagrams, at least 1.
func (t *Train) Len() int {
	seg := t.seg()
	if seg == 0 {
		return 1
	}
	return (len(t.Buf) + seg - 1) / seg
}

// Datagrams yields each datagram in order. They are slices of Buf whose
// capacity ends with them.
func (t *Train) Datagrams() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		seg := t.seg()
		rest := t.Buf
		for len(rest) > seg {
			if !yield(rest[:seg:seg]) {
				return
			}
			rest = rest[seg:]
		}
		yield(rest[:len(rest):len(rest)])
	}
}

// seg is the effective segment size: 0 only for the empty datagram.
func (t *Train) seg() int {
	if t.SegSize <= 0 || t.SegSize > len(t.Buf) {
		return len(t.Buf)
	}
	return t.SegSize
}
