package wire

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// What docs/protocol.md says of the format is held against the package here.

const document = "../../docs/protocol.md"

// section returns the text of a section of the document, without its heading,
// down to the next heading of any level.
func section(t *testing.T, heading string) string {
	t.Helper()
	b, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(b), "\r\n", "\n")
	_, after, ok := strings.Cut(text, "\n"+heading+"\n")
	if !ok {
		t.Fatalf("%s has no heading %q", document, heading)
	}
	if end := regexp.MustCompile(`(?m)^#+ `).FindStringIndex(after); end != nil {
		after = after[:end[0]]
	}
	return after
}

// table returns the first two columns of the tables in a section, for rows that
// begin with a code span.
func table(t *testing.T, heading string) map[string]string {
	t.Helper()
	rows := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([^|]*?) +\\|").FindAllStringSubmatch(section(t, heading), -1) {
		if _, twice := rows[m[1]]; twice {
			t.Errorf("%s: two rows %q", heading, m[1])
		}
		rows[m[1]] = m[2]
	}
	return rows
}

func wantTable(t *testing.T, heading string, want map[string]string) {
	t.Helper()
	got := table(t, heading)
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if got[key] != want[key] {
			t.Errorf("%s: row %q says %q, the code %q", heading, key, got[key], want[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[key]; !ok {
			t.Errorf("%s: row %q is not in the code", heading, key)
		}
	}
}

func TestDocumentHoldsTheVectors(t *testing.T) {
	file, _ := readVectors(t)
	s := section(t, "## Test vectors")
	_, block, ok := strings.Cut(s, "\n```text\n")
	if !ok {
		t.Fatal("the section of the test vectors has no text block")
	}
	block, after, _ := strings.Cut(block, "```")
	if block != file {
		got, want := strings.Split(block, "\n"), strings.Split(file, "\n")
		for i := range min(len(got), len(want)) {
			if got[i] != want[i] {
				t.Fatalf("line %d of the block in %s is\n%s\n%s has\n%s", i+1, document, got[i], vectorFile, want[i])
			}
		}
		t.Fatalf("the block in %s has %d lines, %s %d", document, len(got), vectorFile, len(want))
	}
	if strings.TrimSpace(after) != "" {
		t.Errorf("text behind the vectors: %q", after)
	}
}

// constants are the values that the document quotes, and all there are.
var constants = map[string]uint64{
	"Version": uint64(Version), "LongHeaderLen": LongHeaderLen, "ShortHeaderLen": ShortHeaderLen, "SymbolIDLen": SymbolIDLen,
	"ChecksumLen": ChecksumLen, "ResetLen": ResetLen, "HandshakeKey": uint64(HandshakeKey), "NonceLen": NonceLen,
	"MaxNumber": MaxNumber, "MaxAckRanges": MaxAckRanges, "MaxReasonLen": MaxReasonLen, "MaxCryptoLen": MaxCryptoLen,
	"CryptoOverhead": CryptoOverhead, "PathDataLen": PathDataLen, "MaxParamsLen": MaxParamsLen, "MinDatagram": MinDatagram,
	"RecordHeaderLen": RecordHeaderLen, "MaxRecordLen": MaxRecordLen, "RepairHeaderLen": RepairHeaderLen, "MaxRepairSpan": MaxRepairSpan,
}

func TestDocumentQuotesTheConstants(t *testing.T) {
	got := table(t, "## Constants of the format")
	for _, name := range slices.Sorted(maps.Keys(constants)) {
		v, err := strconv.ParseUint(strings.ReplaceAll(got[name], ",", ""), 0, 64)
		if err != nil || v != constants[name] {
			t.Errorf("%s is quoted as %q, the code has %d", name, got[name], constants[name])
		}
	}
	for name := range got {
		if _, ok := constants[name]; !ok {
			t.Errorf("%s is quoted and not in the code", name)
		}
	}
}

// A constant that is added to the package has to be added to the document, or
// to one of its other tables.
func TestConstantsAreComplete(t *testing.T) {
	elsewhere := regexp.MustCompile(`^(Kind|Payload|Record(Padding|End|Ping|Window|Close|Crypto|CryptoAck|PathChallenge|PathResponse|Whole|Stream|First|Continue|Fin)$)`)
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			gen, ok := d.(*ast.GenDecl)
			if !ok || gen.Tok != token.CONST {
				continue
			}
			for _, spec := range gen.Specs {
				for _, id := range spec.(*ast.ValueSpec).Names {
					if !id.IsExported() || elsewhere.MatchString(id.Name) {
						continue
					}
					seen++
					if _, ok := constants[id.Name]; !ok {
						t.Errorf("%s: constant %s is not among those that the document quotes", name, id.Name)
					}
				}
			}
		}
	}
	if seen != len(constants) {
		t.Errorf("%d constants in the package, %d in the table of this test", seen, len(constants))
	}
}

func TestDocumentListsTheKinds(t *testing.T) {
	rows := table(t, "### Kinds")
	names := maps.Clone(kindNames)
	names[KindShort] = "short"
	for pattern, name := range rows {
		first, err := strconv.ParseUint(strings.Map(func(r rune) rune {
			if r == '1' {
				return r
			}
			return '0'
		}, pattern), 2, 8)
		if err != nil {
			t.Errorf("first byte %q: %v", pattern, err)
			continue
		}
		if got := names[Classify([]byte{byte(first)})]; got != name {
			t.Errorf("first byte %s is of kind %q, the document says %q", pattern, got, name)
		}
	}
	if len(rows) != len(names) {
		t.Errorf("%d kinds in the document, %d in the code", len(rows), len(names))
	}
	// The bits of a short header, from the top.
	bits := map[rune]byte{'K': shortKeyPhase, 'R': shortReserved, 'A': shortAck, 'C': shortControl, 'T': shortPayload}
	for pattern, name := range rows {
		if name != "short" {
			continue
		}
		for letter, want := range bits {
			got := byte(0)
			for i, r := range pattern {
				if r == letter {
					got |= 0x80 >> i
				}
			}
			if got != want {
				t.Errorf("bits %c of %s are %#02x, the code has %#02x", letter, pattern, got, want)
			}
		}
	}
}

func TestDocumentListsTheRecords(t *testing.T) {
	want := map[string]string{}
	for typ, name := range map[RecordType]string{
		RecordPadding: "PADDING", RecordEnd: "END", RecordPing: "PING", RecordWindow: "WINDOW", RecordClose: "CLOSE",
		RecordCrypto: "CRYPTO", RecordCryptoAck: "CRYPTO_ACK",
		RecordPathChallenge: "PATH_CHALLENGE", RecordPathResponse: "PATH_RESPONSE",
	} {
		want[fmt.Sprintf("0x%02x", uint8(typ))] = name
	}
	wantTable(t, "## Control records", want)
}

func TestDocumentListsTheAttributes(t *testing.T) {
	want := map[string]string{}
	for bit, name := range map[int]string{
		attrStream: "STREAM", attrFin: "FIN", attrFirst: "FIRST", attrContinue: "CONTINUE", attrChannel: "CHANNEL", attrMode: "MODE",
	} {
		want[fmt.Sprintf("0x%02x", bit)] = name
	}
	wantTable(t, "## Data and message records", want)
}

func TestDocumentListsTheParameters(t *testing.T) {
	want := map[string]string{}
	for id := paramNonce; id <= paramLast; id++ {
		if paramNames[id] == "" {
			t.Errorf("parameter %d has no name", id)
		}
		want[strconv.FormatUint(uint64(id), 10)] = paramNames[id]
	}
	wantTable(t, "## Parameters", want)
}
