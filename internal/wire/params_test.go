package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
)

var testNonce = [NonceLen]byte{0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77}

func TestParams(t *testing.T) {
	tests := []struct {
		name string
		p    Params
		hex  string
	}{
		{
			"only what is required", Params{Nonce: testNonce, MaxDatagram: MinDatagram},
			"0108 0011223344556677 0502 c004",
		}, {
			"plain mode",
			Params{Nonce: testNonce, RecvWindow: 4 << 20, SymbolWindow: 4096, MaxMessage: 16 << 20, MaxDatagram: 32767},
			"0108 0011223344556677 0204 80808002 0302 8020 0404 80808008 0503 ffff01",
		}, {
			"all, one byte each but the longest datagram",
			Params{Nonce: testNonce, RecvWindow: 1, SymbolWindow: 2, MaxMessage: 3, MaxDatagram: 1200, MaxRepairSpan: 5, MaxRepairHeld: 6, SendsRepairs: 7},
			"0108 0011223344556677 0201 01 0301 02 0401 03 0502 b009 0601 05 0701 06 0801 07",
		}, {
			"largest numbers",
			Params{RecvWindow: MaxNumber, SymbolWindow: MaxNumber, MaxMessage: MaxNumber, MaxDatagram: MaxNumber, MaxRepairSpan: MaxNumber, MaxRepairHeld: MaxNumber, SendsRepairs: MaxNumber},
			"0108 0000000000000000 0209 ffffffffffffffff7f 0309 ffffffffffffffff7f 0409 ffffffffffffffff7f" +
				"0509 ffffffffffffffff7f 0609 ffffffffffffffff7f 0709 ffffffffffffffff7f 0809 ffffffffffffffff7f",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := unhex(t, tt.hex)
			wantAppended(t, func(b []byte) []byte { return AppendParams(b, &tt.p) }, b)
			got, err := ParseParams(b)
			if err != nil || got != tt.p {
				t.Errorf("read %+v, %v, want %+v", got, err, tt.p)
			}
			// Parameters fill what they are given. A cut between two of them is
			// no damage that they could show, but nothing else passes.
			for n := range len(b) {
				got, err := ParseParams(bytes.Clone(b[:n:n]))
				if err == nil && !bytes.Equal(AppendParams(nil, &got), b[:n]) {
					t.Errorf("cut to %d of %d bytes: read %+v", n, len(b), got)
				}
			}
		})
	}
}

func TestParamsInvalid(t *testing.T) {
	const nonce, datagram = "0108 0011223344556677", "0502 b009"
	tests := []struct {
		name string
		hex  string
		want error
	}{
		{"empty", "", ErrMissing},
		{"no nonce", datagram, ErrMissing},
		{"no longest datagram", nonce, ErrMissing},
		{"longest datagram of zero", nonce + "0501 00", ErrMissing},
		{"longest datagram of one byte", nonce + "0501 01", ErrParam},
		{"longest datagram just too short", nonce + "0502 bf04", ErrParam},
		{"nonce of seven bytes", "0107 00112233445566" + datagram, ErrTruncated},
		{"nonce of nine bytes", "0109 001122334455667788" + datagram, ErrTruncated},
		{"nonce twice", nonce + nonce + datagram, ErrDuplicate},
		{"number twice", nonce + "0201 05 0201 05" + datagram, ErrDuplicate},
		{"unknown twice", nonce + datagram + "7f00 7f00", ErrDuplicate},
		{"descending ids", nonce + "0301 05 0201 05" + datagram, ErrDuplicate},
		{"id of zero", "0000" + nonce + datagram, ErrDuplicate},
		{"id not minimal", nonce + "8200 01 05" + datagram, ErrNotMinimal},
		{"length not minimal", nonce + "02 8100 05" + datagram, ErrNotMinimal},
		{"length cut", nonce + "02", ErrNotMinimal},
		{"value cut", nonce + "0202 ff", ErrTruncated},
		{"length of nearly all numbers", nonce + "02 ffffffffffffffff7f 05", ErrTruncated},
		{"number without bytes", nonce + "0200" + datagram, ErrNotMinimal},
		{"number not minimal", nonce + "0202 8500" + datagram, ErrNotMinimal},
		{"number cut inside its value", nonce + "0201 85" + datagram, ErrNotMinimal},
		{"number with a byte behind", nonce + "0202 0505" + datagram, ErrNotMinimal},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if p, err := ParseParams(unhex(t, tt.hex)); !errors.Is(err, tt.want) {
				t.Errorf("got %+v, %v, want %v", p, err, tt.want)
			}
		})
	}
}

// A later version of the library may announce more.
func TestParamsSkipsUnknown(t *testing.T) {
	want := Params{Nonce: testNonce, MaxMessage: 9, MaxDatagram: 1200}
	b := AppendParams(nil, &want)
	for _, unknown := range []string{"7e00", "7f02 0102", "ffffffffffffffff7f 05 0102030405"} {
		got, err := ParseParams(append(bytes.Clone(b), unhex(t, unknown)...))
		if err != nil || got != want {
			t.Errorf("with parameter %s: read %+v, %v, want %+v", unknown, got, err, want)
		}
	}
}

func TestParamsAreBounded(t *testing.T) {
	b := AppendParams(nil, &Params{Nonce: testNonce, MaxDatagram: 1200})
	fill := func(size int) []byte {
		b := append(bytes.Clone(b), 0x7f)
		n := size - len(b) - 2
		b = binary.AppendUvarint(b, uint64(n))
		return append(b, make([]byte, n)...)
	}
	if b := fill(MaxParamsLen); len(b) != MaxParamsLen {
		t.Fatalf("made %d bytes, want %d", len(b), MaxParamsLen)
	} else if _, err := ParseParams(b); err != nil {
		t.Errorf("%d bytes: %v", len(b), err)
	}
	if _, err := ParseParams(fill(MaxParamsLen + 1)); !errors.Is(err, ErrTooLong) {
		t.Errorf("one byte more: %v, want %v", err, ErrTooLong)
	}
}

func TestVersions(t *testing.T) {
	body := AppendVersions(nil, 7, Version, 9)
	wantAppended(t, func(b []byte) []byte { return AppendVersions(b, 7, Version, 9) }, unhex(t, "00000007 41524b01 00000009"))
	tests := []struct {
		name    string
		body    []byte
		version uint32
		want    bool
	}{
		{"first", body, 7, true},
		{"middle", body, Version, true},
		{"last", body, 9, true},
		{"not listed", body, 8, false},
		{"across two entries", body, 0x00000741, false},
		{"empty list", nil, Version, false},
		{"cut entry", body[:len(body)-1], 9, false},
		{"entry before a cut one", body[:len(body)-1], Version, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := OffersVersion(tt.body, tt.version); got != tt.want {
				t.Errorf("OffersVersion(%x, %#x) is %v", tt.body, tt.version, got)
			}
		})
	}
}
