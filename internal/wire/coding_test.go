package wire

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"strconv"
	"testing"
)

// The coding of repairs as docs/protocol.md describes it, in the plainest form,
// to check the vectors. Package fec has the one in use.

// product multiplies in GF(2^8) with the polynomial 0x11d.
func product(a, b byte) (p byte) {
	for ; b > 0; b >>= 1 {
		if b&1 != 0 {
			p ^= a
		}
		carry := a&0x80 != 0
		if a <<= 1; carry {
			a ^= 0x1d
		}
	}
	return p
}

// coefficient is y/(seed XOR y) with y = 128 + id mod 128.
func coefficient(seed byte, id uint64) byte {
	y := byte(128 + id%128)
	for c := range 256 {
		if product(byte(c), seed^y) == y {
			return byte(c)
		}
	}
	return 0
}

// codedSymbol puts checksum and length before a source symbol.
func codedSymbol(epoch, id uint64, data []byte) []byte {
	mix := func(z uint64) uint64 {
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		return z ^ z>>31
	}
	body := append(binary.BigEndian.AppendUint16(nil, uint16(len(data))), data...)
	sum := mix(mix(mix(epoch+0x9e3779b97f4a7c15)^id) + uint64(crc32.Checksum(body, castagnoli)))
	return append(binary.BigEndian.AppendUint32(nil, uint32(sum>>32)), body...)
}

// TestRepairVectors makes the coded symbols of the repairs in the vectors from
// the coded source symbols there.
func TestRepairVectors(t *testing.T) {
	_, all := readVectors(t)
	sources := map[string]map[uint64][]byte{} // by epoch and id
	checked := 0
	for _, v := range all {
		for _, l := range v.lines {
			f := fields(l)
			switch {
			case f["epoch"] != "":
				if sources[f["epoch"]] == nil {
					sources[f["epoch"]] = map[uint64][]byte{}
				}
				id, err := strconv.ParseUint(f["id"], 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				sources[f["epoch"]][id] = unhex(t, f["symbol"])
			case f["span"] == "3":
				first, err := strconv.ParseUint(f["first"], 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				seed, err := strconv.ParseUint(f["seed"], 10, 8)
				if err != nil {
					t.Fatal(err)
				}
				// The client's direction: the epoch is odd.
				_, key, _ := v.datagram(t)
				coded := sources[strconv.FormatUint(uint64(key)*2+1, 16)]
				want := unhex(t, f["data"])
				got := make([]byte, len(want))
				for id := first; id < first+3; id++ {
					for i, b := range coded[id] {
						got[i] ^= product(coefficient(byte(seed), id), b)
					}
				}
				if !bytes.Equal(got, want) {
					t.Errorf("%s: coded symbol is %x, want %x", v.name, got, want)
				}
				checked++
			}
		}
	}
	if checked < 2 {
		t.Errorf("%d repairs over three symbols among the vectors, want at least 2", checked)
	}
}
