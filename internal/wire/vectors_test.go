package wire

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// vectorFile holds the test vectors of docs/protocol.md, which describes their
// form.
const vectorFile = "testdata/vectors.txt"

// vector is one stanza of the file.
type vector struct {
	name  string
	line  int
	lines []string // below the name, without their indentation
}

// value returns what follows the key of the first line with that key.
func (v *vector) value(key string) (string, bool) {
	for _, l := range v.lines {
		if k, value, _ := strings.Cut(l, " "); k == key {
			return strings.TrimSpace(value), true
		}
	}
	return "", false
}

// fields splits "a=1 b=2".
func fields(s string) map[string]string {
	m := map[string]string{}
	for f := range strings.FieldsSeq(s) {
		k, v, _ := strings.Cut(f, "=")
		m[k] = v
	}
	return m
}

func readVectors(t testing.TB) (text string, all []*vector) {
	t.Helper()
	b, err := os.ReadFile(vectorFile)
	if err != nil {
		t.Fatal(err)
	}
	text = strings.ReplaceAll(string(b), "\r\n", "\n")
	names := map[string]bool{}
	for i, l := range strings.Split(text, "\n") {
		name, isName := strings.CutPrefix(l, "vector   ")
		switch {
		case l == "":
		case isName:
			if names[name] {
				t.Errorf("%s:%d: %q is there twice", vectorFile, i+1, name)
			}
			names[name] = true
			all = append(all, &vector{name: name, line: i + 1})
		case strings.HasPrefix(l, "  ") && len(all) > 0:
			v := all[len(all)-1]
			v.lines = append(v.lines, l[2:])
		default:
			t.Fatalf("%s:%d: neither a name nor a field: %q", vectorFile, i+1, l)
		}
	}
	if len(all) == 0 {
		t.Fatalf("%s holds no vector", vectorFile)
	}
	return text, all
}

// vectorBytes decodes hexadecimal digits with blanks, separators, and runs of one
// byte written as 00*1143.
func vectorBytes(t testing.TB, s string) (b []byte) {
	t.Helper()
	for f := range strings.FieldsSeq(s) {
		if f == "|" {
			continue
		}
		digits, count, isRun := strings.Cut(f, "*")
		part := unhex(t, digits)
		if isRun {
			n, err := strconv.Atoi(count)
			if err != nil {
				t.Fatal(err)
			}
			part = bytes.Repeat(part, n)
		}
		b = append(b, part...)
	}
	return b
}

// datagram returns what the vector of a datagram says of it.
func (v *vector) datagram(t testing.TB) (d []byte, key ChecksumKey, e expectation) {
	t.Helper()
	digits, ok := v.value("hex")
	if !ok {
		t.Fatalf("%s:%d: no hex", vectorFile, v.line)
	}
	keyDigits, _ := v.value("key")
	k, err := strconv.ParseUint(keyDigits, 16, 32)
	if err != nil {
		t.Fatal(err)
	}
	expect, _ := v.value("expect")
	for name, s := range fields(expect) {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		switch name {
		case "packet":
			e.packet = n
		case "symbol":
			e.symbol = n
		case "sent-packets":
			e.sentPackets = n
		case "sent-symbols":
			e.sentSymbols = n
		default:
			t.Fatalf("%s:%d: unknown expectation %q", vectorFile, v.line, name)
		}
	}
	return vectorBytes(t, digits), ChecksumKey(k), e
}

// TestVectors reads each vector as a receiver does, compares every field, and
// makes the same bytes from the fields.
func TestVectors(t *testing.T) {
	_, all := readVectors(t)
	for _, v := range all {
		t.Run(v.name, func(t *testing.T) {
			if _, ok := v.value("hex"); !ok {
				for _, l := range v.lines {
					checkFunctionVector(t, l)
				}
				return
			}
			d, key, e := v.datagram(t)
			in, err := inspect(d, key, e)
			if why, refused := v.value("refused"); refused {
				if want := refusals[why]; want == nil || err != want {
					t.Errorf("got %v, want the reason %q", err, why)
				}
				return
			}
			if err != nil {
				t.Fatalf("refused: %v", err)
			}
			want := withoutKeys(v.lines, "key", "expect", "hex")
			if got := strings.Join(in.lines, "\n"); got != want {
				t.Errorf("fields are\n%s\nwant\n%s", got, want)
			}
			if !bytes.Equal(in.rebuilt, d) {
				t.Errorf("appended again:\n%x\nwant\n%x", in.rebuilt, d)
			}
		})
	}
}

func withoutKeys(lines []string, keys ...string) string {
	var kept []string
next:
	for _, l := range lines {
		for _, k := range keys {
			if strings.HasPrefix(l, k+" ") {
				continue next
			}
		}
		kept = append(kept, l)
	}
	return strings.Join(kept, "\n")
}

// checkFunctionVector checks a line that names the arguments and the result of
// a function.
func checkFunctionVector(t *testing.T, line string) {
	t.Helper()
	key, rest, _ := strings.Cut(line, " ")
	f := fields(rest)
	number := func(name string, base int) uint64 {
		n, err := strconv.ParseUint(f[name], base, 64)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		return n
	}
	switch key {
	case "checksum":
		data := unhex(t, f["data"])
		sum := AppendChecksum(data, 0, ChecksumKey(number("key", 16)))[len(data):]
		if got := hex.EncodeToString(sum); got != f["crc"] {
			t.Errorf("%s: got %s", line, got)
		}
	case "session-key":
		key := SessionKey([NonceLen]byte(unhex(t, f["client"])), [NonceLen]byte(unhex(t, f["server"])))
		if got := fmt.Sprintf("%08x", uint32(key)); got != f["key"] {
			t.Errorf("%s: got %s", line, got)
		}
	case "expand":
		if got := Expand24(uint32(number("truncated", 16)), number("expected", 16)); got != number("full", 16) {
			t.Errorf("%s: got %x", line, got)
		}
	case "delay":
		b, d := byte(number("byte", 16)), time.Duration(number("us", 10))*time.Microsecond
		if got := ackDelay(b); got != d {
			t.Errorf("%s: got %v", line, got)
		}
		if got := ackDelayByte(d); got != b {
			t.Errorf("%s: %v is sent as %02x", line, d, got)
		}
	case "coefficient":
		if got := coefficient(byte(number("seed", 10)), number("id", 10)); got != byte(number("value", 16)) {
			t.Errorf("%s: got %02x", line, got)
		}
	case "coded":
		got := hex.EncodeToString(codedSymbol(number("epoch", 16), number("id", 10), unhex(t, f["data"])))
		if got != f["symbol"] {
			t.Errorf("%s: got %s", line, got)
		}
	default:
		t.Errorf("unknown function %q", key)
	}
}

// TestVectorsCoverTheProtocol wants at least one vector per kind, record and
// reason to refuse.
func TestVectorsCoverTheProtocol(t *testing.T) {
	text, _ := readVectors(t)
	var want []string
	for _, kind := range kindNames {
		want = append(want, `long +kind=`+kind)
	}
	for _, payload := range []string{"none", "data", "repair"} {
		want = append(want, `short .* payload=`+payload)
	}
	for _, flags := range []string{"-", "key-phase,control", "ack", "control", "ack,control"} {
		want = append(want, `short .* flags=`+flags+` `)
	}
	want = append(want,
		"padding", "end", "ping", "window", "close +space=application", "close +space=transport", "crypto",
		"crypto-ack", "path-challenge", "path-response", "params", "ack .* equations=[1-9]", "ack .* symbols=[0-9]",
		"ack .* ranges=[0-9]+-[0-9]+,", "symbol", "versions", "reset", "retry", "repair",
		"checksum", "session-key", "expand", "delay", "coefficient", "coded",
	)
	for _, kind := range messageNames {
		want = append(want, kind)
	}
	for why := range refusals {
		want = append(want, "refused +"+why+"$")
	}
	for _, w := range want {
		if !regexp.MustCompile(`(?m)^  ` + w).MatchString(text) {
			t.Errorf("no vector has a line %q", w)
		}
	}
}
