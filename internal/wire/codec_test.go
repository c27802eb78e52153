package wire

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"
)

// unhex decodes hexadecimal digits; blanks are ignored.
func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatalf("hex %q: %v", s, err)
	}
	return b
}

// refuseCuts gives parse every proper prefix of b and wants each one refused.
// The prefixes have no capacity beyond their end, so that a read behind it
// panics.
func refuseCuts(t *testing.T, b []byte, parse func([]byte) error) {
	t.Helper()
	for n := range len(b) {
		if err := parse(bytes.Clone(b[:n:n])); err == nil {
			t.Errorf("cut to %d of %d bytes (%x): accepted", n, len(b), b[:n])
		}
	}
}

// tail is put behind an encoding to see that its parser stops where it ends.
var tail = []byte{0xde, 0xad}

// wantRest checks what a parser left of an encoding with tail behind it.
func wantRest(t *testing.T, rest []byte) {
	t.Helper()
	if !bytes.Equal(rest, tail) {
		t.Errorf("the parser left %x, want %x", rest, tail)
	}
}

// wantAppended checks that an append function kept what was in the slice.
func wantAppended(t *testing.T, appended func(b []byte) []byte, want []byte) {
	t.Helper()
	if got := appended(nil); !bytes.Equal(got, want) {
		t.Errorf("appended %x, want %x", got, want)
	}
	head := []byte{1, 2, 3}
	if got := appended(head[:3:3]); !bytes.Equal(got[:3], head) || !bytes.Equal(got[3:], want) {
		t.Errorf("appended %x behind %x, want %x", got[3:], got[:3], want)
	}
}
