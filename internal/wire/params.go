package wire

import (
	"encoding/binary"
)

// NonceLen is the size of the random number that each side brings to the
// handshake; both together key the session's checksum.
const NonceLen = 8

// MaxParamsLen bounds the encoded parameters of one side.
const MaxParamsLen = 1024

// MinDatagram is the least that MaxDatagram may be: a smaller datagram is mostly
// headers.
const MinDatagram = 576

// Params is what a side announces in its handshake. A receiver skips
// parameters that it does not know, so that new ones need no new version.
type Params struct {
	Nonce         [NonceLen]byte
	RecvWindow    uint64 // initial flow control limit in symbol bytes
	SymbolWindow  uint64 // how far a symbol id may run ahead of the lowest missing one
	MaxMessage    uint64 // longest message accepted, in bytes
	MaxDatagram   uint64 // longest datagram accepted, in bytes, at least MinDatagram
	MaxRepairSpan uint64 // widest repair window that can be decoded; 0 = no repairs, please
	MaxRepairHeld uint64 // bytes retained for decoding; informative
	SendsRepairs  uint64 // 1 = this side may send repairs: keep what they may cover
}

type paramID uint64

const (
	paramNonce         paramID = 1
	paramRecvWindow    paramID = 2
	paramSymbolWindow  paramID = 3
	paramMaxMessage    paramID = 4
	paramMaxDatagram   paramID = 5
	paramMaxRepairSpan paramID = 6
	paramMaxRepairHeld paramID = 7
	paramSendsRepairs  paramID = 8
	paramLast                  = paramSendsRepairs
)

func (p *Params) number(id paramID) *uint64 {
	switch id {
	case paramRecvWindow:
		return &p.RecvWindow
	case paramSymbolWindow:
		return &p.SymbolWindow
	case paramMaxMessage:
		return &p.MaxMessage
	case paramMaxDatagram:
		return &p.MaxDatagram
	case paramMaxRepairSpan:
		return &p.MaxRepairSpan
	case paramMaxRepairHeld:
		return &p.MaxRepairHeld
	case paramSendsRepairs:
		return &p.SendsRepairs
	}
	return nil
}

// AppendParams appends the parameters: for each an id, a length and the
// value, ids ascending, zero numbers left out.
func AppendParams(b []byte, p *Params) []byte {
	b = binary.AppendUvarint(b, uint64(paramNonce))
	b = binary.AppendUvarint(b, NonceLen)
	b = append(b, p.Nonce[:]...)
	for id := paramRecvWindow; id <= paramLast; id++ {
		v := *p.number(id)
		if v == 0 {
			continue
		}
		b = binary.AppendUvarint(b, uint64(id))
		b = binary.AppendUvarint(b, uint64(uvarintLen(v)))
		b = binary.AppendUvarint(b, v)
	}
	return b
}

// ParseParams reads parameters that fill b. Ids must ascend, so none is given
// twice; nonce and longest datagram are required.
func ParseParams(b []byte) (p Params, err error) {
	if len(b) > MaxParamsLen {
		return p, ErrTooLong
	}
	last := uint64(0)
	nonce := false
	for len(b) > 0 {
		var id, n uint64
		var ok bool
		if id, b, ok = uvarint(b); !ok {
			return p, ErrNotMinimal
		}
		if n, b, ok = uvarint(b); !ok {
			return p, ErrNotMinimal
		}
		if n > uint64(len(b)) {
			return p, ErrTruncated
		}
		if id <= last {
			return p, ErrDuplicate
		}
		last = id
		value := b[:n]
		b = b[n:]
		if paramID(id) == paramNonce {
			if n != NonceLen {
				return p, ErrTruncated
			}
			copy(p.Nonce[:], value)
			nonce = true
			continue
		}
		field := p.number(paramID(id))
		if field == nil {
			continue
		}
		v, rest, ok := uvarint(value)
		if !ok || len(rest) > 0 {
			return p, ErrNotMinimal
		}
		*field = v
	}
	switch {
	case !nonce || p.MaxDatagram == 0:
		return p, ErrMissing
	case p.MaxDatagram < MinDatagram:
		return p, ErrParam
	}
	return p, nil
}

// AppendVersions appends the versions that the sender speaks.
func AppendVersions(b []byte, versions ...uint32) []byte {
	for _, v := range versions {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return b
}

// OffersVersion reports whether the body of a versions datagram lists v.
func OffersVersion(b []byte, v uint32) bool {
	for ; len(b) >= 4; b = b[4:] {
		if binary.BigEndian.Uint32(b) == v {
			return true
		}
	}
	return false
}
