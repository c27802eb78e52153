package fec

import (
	"encoding/binary"
	"hash/crc32"
)

// Overhead is what a coded symbol has beyond the bytes of the source symbol, and
// so what a repair payload has beyond the longest source symbol of its window:
// a checksum of 4 bytes and a length of 2.
const Overhead = 6

// MaxSymbolBytes is the largest source symbol: coded, it is 65,535 bytes long.
const MaxSymbolBytes = 1<<16 - 1 - Overhead

// A coded symbol is what the code multiplies and adds, all fields in network
// byte order:
//
//	checksum  4 bytes
//	length    2 bytes, of the source symbol
//	bytes     the source symbol
//	zeros     to the end of the longest symbol in the window
//
// The fixed fields come first because a decoder learns the length only from the
// solved symbol itself. RFC 6865, section 4.3, puts a length in front for the
// same reason.

// putHeader fills in the header of the coded symbol v.
func putHeader(v []byte, epoch, id uint64) {
	binary.BigEndian.PutUint16(v[4:], uint16(len(v)-Overhead))
	binary.BigEndian.PutUint32(v, checksum(v[4:], epoch, id))
}

// validLength returns the length of the coded symbol at the start of v, and
// whether v is one: length within v, zeros behind it, matching checksum.
func validLength(v []byte, epoch, id uint64) (n int, ok bool) {
	n = Overhead + int(binary.BigEndian.Uint16(v[4:]))
	if n > len(v) {
		return 0, false
	}
	for _, b := range v[n:] {
		if b != 0 {
			return 0, false
		}
	}
	return n, binary.BigEndian.Uint32(v) == checksum(v[4:n], epoch, id)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum returns the checksum of a source symbol: body is its length field and
// its bytes.
//
//	key      = mix(mix(epoch + 0x9e3779b97f4a7c15) XOR id)
//	checksum = upper 32 bits of mix(key + CRC-32C(body))    modulo 2^64
//
// The CRC alone would not do. It is linear: the XOR of three symbols of one
// length has the XOR of their three CRCs, so a repair with seed 0 whose header
// names the wrong window could pass. The mix is not linear and makes the epoch
// and the id part of the sum, so that a symbol restored at the wrong place, or
// from a repair of another session, is caught as surely as damaged bytes. All 32
// bits are kept: they travel only in repairs, and a decoder that is fed wrong
// repairs for years must not let one through.
func checksum(body []byte, epoch, id uint64) uint32 {
	key := mix(mix(epoch+0x9e3779b97f4a7c15) ^ id)
	return uint32(mix(key+uint64(crc32.Checksum(body, castagnoli))) >> 32)
}

// mix is the finalizer of SplitMix64, a bijection without linear structure over
// GF(2).
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
