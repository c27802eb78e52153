package wire

import (
	"bytes"
	"testing"
)

func TestChecksum(t *testing.T) {
	// The check value of CRC-32C (RFC 3720, appendix B.4, names its own vectors).
	b := AppendChecksum([]byte("123456789"), 0, HandshakeKey)
	if want := unhex(t, "313233343536373839 e3069283"); !bytes.Equal(b, want) {
		t.Errorf("got %x, want %x", b, want)
	}
	b = AppendChecksum(make([]byte, 32), 0, HandshakeKey)
	if want := unhex(t, "8a9136aa"); !bytes.Equal(b[32:], want) {
		t.Errorf("32 zero bytes: got %x, want %x", b[32:], want)
	}
}

func TestVerifyChecksum(t *testing.T) {
	const key ChecksumKey = 0x48dfe982
	before := []byte("another datagram of the train")
	body := []byte("datagram")
	b := AppendChecksum(append(bytes.Clone(before), body...), len(before), key)[len(before):]
	got, ok := VerifyChecksum(b, key)
	if !ok || !bytes.Equal(got, body) {
		t.Errorf("got %q, %v", got, ok)
	}
	refuseCuts(t, b, func(b []byte) error {
		if _, ok := VerifyChecksum(b, key); !ok {
			return ErrTruncated
		}
		return nil
	})
	for i := range b {
		for bit := range 8 {
			damaged := bytes.Clone(b)
			damaged[i] ^= 1 << bit
			if _, ok := VerifyChecksum(damaged, key); ok {
				t.Errorf("bit %d of byte %d flipped: accepted", bit, i)
			}
		}
	}
}

// The checksum of a datagram is different under each key, whatever the datagram
// is: what one session sent is never taken by another one.
func TestChecksumKeysNeverMeet(t *testing.T) {
	keys := []ChecksumKey{HandshakeKey, 1, 2, 3, 0x48dfe982, 0x80000000, 0xfffffffe, 0xffffffff}
	datagrams := [][]byte{nil, {0}, {0x40}, make([]byte, 1200), bytes.Repeat([]byte{0xff}, 1200), []byte("datagram")}
	for _, d := range datagrams {
		for _, sent := range keys {
			b := AppendChecksum(bytes.Clone(d), 0, sent)
			for _, key := range keys {
				if _, ok := VerifyChecksum(b, key); ok != (key == sent) {
					t.Errorf("%d bytes sent under %#x, received under %#x: accepted is %v", len(d), sent, key, ok)
				}
			}
		}
	}
}

func TestSessionKey(t *testing.T) {
	server := [NonceLen]byte{0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}
	key := SessionKey(testNonce, server)
	if want := ChecksumKey(0x48dfe982); key != want {
		t.Errorf("key is %#x, want %#x", key, want)
	}
	if SessionKey(server, testNonce) == key {
		t.Error("the key does not tell client from server")
	}
	for i := range 2 * NonceLen {
		c, s := testNonce, server
		if i < NonceLen {
			c[i] ^= 1
		} else {
			s[i-NonceLen] ^= 1
		}
		if SessionKey(c, s) == key {
			t.Errorf("byte %d of the nonces does not change the key", i)
		}
	}
	// Nonces whose checksum is that of handshake datagrams get another key.
	if got := SessionKey(nonceOfZero(t)); got == HandshakeKey {
		t.Error("a session has the key of handshake datagrams")
	}
}

// nonceOfZero searches nonces whose CRC-32C is zero: the map from the last four
// bytes to the checksum is one to one, and linear over bits.
func nonceOfZero(t *testing.T) (client, server [NonceLen]byte) {
	t.Helper()
	sum := func(last uint32) uint32 {
		b := make([]byte, 2*NonceLen)
		for i := range 4 {
			b[len(b)-1-i] = byte(last >> (8 * i))
		}
		b = AppendChecksum(b, 0, HandshakeKey)
		return uint32(b[16])<<24 | uint32(b[17])<<16 | uint32(b[18])<<8 | uint32(b[19])
	}
	// Gauss-Jordan over GF(2): rows are the effects of single bits.
	base := sum(0)
	var effect, bits [32]uint32
	for i := range 32 {
		v, who := sum(1<<i)^base, uint32(1)<<i
		for j := 31; j >= 0; j-- {
			if v>>j&1 == 0 {
				continue
			}
			if effect[j] == 0 {
				effect[j], bits[j] = v, who
				break
			}
			v, who = v^effect[j], who^bits[j]
		}
	}
	left, last := base, uint32(0)
	for j := 31; j >= 0; j-- {
		if left>>j&1 == 1 {
			left, last = left^effect[j], last^bits[j]
		}
	}
	if sum(last) != 0 {
		t.Fatalf("no nonce found: checksum of %#x is %#x", last, sum(last))
	}
	for i := range 4 {
		server[NonceLen-1-i] = byte(last >> (8 * i))
	}
	return client, server
}
