package bench

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
)

// A message is a header and a body. Header, little endian:
//
//	0  magic
//	1  kind
//	2  client, uint16
//	4  round tag, uint32: tells rounds and phases apart
//	8  sequence number within the phase, uint64
//
// The body is a slice of a fixed pseudo-random pattern, at an offset that depends
// on the client and the sequence number. So header and body together are a pure
// function of who sent the message when, and checking every byte is one
// comparison of memory.
const (
	headerLen  = 16
	magic      = 0xA7
	patternPad = 4096 // offsets into the pattern; a power of two
)

// Kinds of message.
const (
	kindEcho   = iota + 1 // to be sent back as it is
	kindData              // stream workload: to be checked by the server
	kindEnd               // stream workload: no more data in this phase; sequence = number of data messages
	kindReport            // stream workload: answer to kindEnd; sequence = number of verified messages
)

// header identifies a message.
type header struct {
	kind   byte
	client uint16
	tag    uint32
	seq    uint64
}

// pattern makes and checks the messages of a run. It is read-only after
// newPattern and safe for concurrent use.
type pattern struct {
	body []byte
	size int // of a message
}

func newPattern(size int, seed uint64) *pattern {
	p := &pattern{size: size, body: make([]byte, size-headerLen+patternPad+8)}
	r := rand.New(rand.NewPCG(seed, 0x6172_6b6e_6574))
	for i := 0; i+8 <= len(p.body); i += 8 {
		binary.LittleEndian.PutUint64(p.body[i:], r.Uint64())
	}
	return p
}

func (p *pattern) at(h header) []byte {
	off := (h.seq*61 + uint64(h.client)*977 + uint64(h.tag)*13) % patternPad
	return p.body[off : off+uint64(p.size-headerLen)]
}

// fill writes the message of h over buf, which has the size of a message.
func (p *pattern) fill(buf []byte, h header) {
	h.put(buf)
	copy(buf[headerLen:], p.at(h))
}

// same reports whether the body of msg is the one of h, byte for byte. It does
// not look at the header.
func (p *pattern) same(msg []byte, h header) bool {
	return len(msg) == p.size && bytes.Equal(msg[headerLen:], p.at(h))
}

func (h header) put(buf []byte) {
	_ = buf[headerLen-1]
	buf[0] = magic
	buf[1] = h.kind
	binary.LittleEndian.PutUint16(buf[2:], h.client)
	binary.LittleEndian.PutUint32(buf[4:], h.tag)
	binary.LittleEndian.PutUint64(buf[8:], h.seq)
}

// parseHeader reports false when msg cannot be a message of ours.
func parseHeader(msg []byte) (header, bool) {
	if len(msg) < headerLen || msg[0] != magic {
		return header{}, false
	}
	return header{
		kind:   msg[1],
		client: binary.LittleEndian.Uint16(msg[2:]),
		tag:    binary.LittleEndian.Uint32(msg[4:]),
		seq:    binary.LittleEndian.Uint64(msg[8:]),
	}, true
}

// phaseTag tells apart the messages of rounds and of their phases.
func phaseTag(round int, measured bool) uint32 {
	tag := uint32(round) << 1
	if measured {
		tag |= 1
	}
	return tag
}
