package wire

import (
	"encoding/binary"
	"hash/crc32"
)

// ChecksumLen is the size of the CRC-32C that ends every datagram of plain mode.
const ChecksumLen = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ChecksumKey starts the checksum of a session: datagrams of another session,
// of a former one, or of a sender that never saw the handshake do not match
// it. It is no cryptographic protection: whoever reads one datagram can forge
// the next.
type ChecksumKey uint32

// HandshakeKey is the key of handshake datagrams, which anyone may send.
const HandshakeKey ChecksumKey = 0

// SessionKey derives the key of a session from the nonces of both sides. It is
// never HandshakeKey.
func SessionKey(client, server [NonceLen]byte) ChecksumKey {
	sum := crc32.Update(0, castagnoli, client[:])
	return ChecksumKey(max(crc32.Update(sum, castagnoli, server[:]), 1))
}

// AppendChecksum ends the datagram that starts at b[start] with its CRC-32C.
func AppendChecksum(b []byte, start int, key ChecksumKey) []byte {
	return binary.BigEndian.AppendUint32(b, crc32.Update(uint32(key), castagnoli, b[start:]))
}

// VerifyChecksum returns the datagram without its checksum, or false when it
// is too short or does not match.
func VerifyChecksum(b []byte, key ChecksumKey) ([]byte, bool) {
	if len(b) < ChecksumLen {
		return nil, false
	}
	body := b[:len(b)-ChecksumLen]
	want := binary.BigEndian.Uint32(b[len(b)-ChecksumLen:])
	return body, crc32.Update(uint32(key), castagnoli, body) == want
}
