package wire

import (
	"bytes"
	"errors"
	"testing"
)

func TestMessageRecords(t *testing.T) {
	long := bytes.Repeat([]byte{7}, MaxRecordLen)
	tests := []struct {
		name  string
		kind  RecordKind
		total uint64
		data  []byte
		hex   string // "" = too long to spell out
	}{
		{"empty message", RecordWhole, 0, nil, "0000"},
		{"whole message", RecordWhole, 0, []byte("hello"), "0005 68656c6c6f"},
		{"longest record", RecordWhole, 0, long, ""},
		{"stream", RecordStream, 0, []byte("abc"), "8003 01 616263"},
		{"longest stream record", RecordStream, 0, long, ""},
		{"first piece", RecordFirst, 5, []byte("abcd"), "8004 04 05 61626364"},
		{"first piece of a long message", RecordFirst, 70000, []byte("a"), "8001 04 f0a204 61"},
		{"first piece of the longest message", RecordFirst, MaxNumber, []byte("a"), "8001 04 ffffffffffffffff7f 61"},
		{"further piece", RecordContinue, 0, []byte("ef"), "8002 08 6566"},
		{"end of the direction", RecordFin, 0, nil, "8000 02"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := AppendMessageRecord(nil, tt.kind, tt.total, tt.data)
			if tt.hex != "" {
				wantAppended(t, func(b []byte) []byte {
					return AppendMessageRecord(b, tt.kind, tt.total, tt.data)
				}, unhex(t, tt.hex))
			}
			if n := RecordOverhead(tt.kind, tt.total); n != len(b)-len(tt.data) {
				t.Errorf("RecordOverhead is %d, the header has %d bytes", n, len(b)-len(tt.data))
			}
			header := AppendRecordHeader(nil, tt.kind, tt.total, len(tt.data))
			if !bytes.Equal(header, b[:len(b)-len(tt.data)]) {
				t.Errorf("header alone is %x", header)
			}
			got, rest, err := NextMessageRecord(append(bytes.Clone(b), tail...))
			if err != nil || got.Kind != tt.kind || got.Total != tt.total || !bytes.Equal(got.Data, tt.data) {
				t.Errorf("read %+v, %v", got, err)
			}
			wantRest(t, rest)
			if len(b) > 1000 {
				b = b[:1000]
			}
			refuseCuts(t, b, func(b []byte) error { _, _, err := NextMessageRecord(b); return err })
		})
	}
}

func TestMessageRecordsInvalid(t *testing.T) {
	tests := []struct {
		name string
		hex  string
		want error
	}{
		{"empty", "", ErrTruncated},
		{"length cut", "00", ErrTruncated},
		{"bytes cut", "0005 68656c6c", ErrTruncated},
		{"attributes missing", "8005", ErrTruncated},
		{"no attribute", "8001 00 61", ErrReserved},
		{"channel", "8001 10 05 61", ErrReserved},
		{"mode", "8001 20 05 61", ErrReserved},
		{"unknown attributes", "8001 40 61", ErrReserved},
		{"all attributes", "8001 ff 61", ErrReserved},
		{"two attributes", "8001 09 61", ErrReserved},
		{"first and further piece", "8001 0c 05 61", ErrReserved},
		{"stream without bytes", "8000 01", ErrRecordShape},
		{"further piece without bytes", "8000 08", ErrRecordShape},
		{"first piece without bytes", "8000 04 05", ErrRecordShape},
		{"first piece of the whole message", "8004 04 04 61626364", ErrRecordShape},
		{"first piece longer than the message", "8004 04 03 61626364", ErrRecordShape},
		{"first piece of an empty message", "8000 04 00", ErrRecordShape},
		{"first piece, length not minimal", "8001 04 8500 61", ErrNotMinimal},
		{"first piece, length cut", "8001 04", ErrNotMinimal},
		{"first piece of nearly everything, cut", "ffff 04 ffffffffffffffff7f 61", ErrTruncated},
		{"fin with bytes", "8001 02 61", ErrRecordShape},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if r, _, err := NextMessageRecord(unhex(t, tt.hex)); !errors.Is(err, tt.want) {
				t.Errorf("got %+v, %v, want %v", r, err, tt.want)
			}
		})
	}
}

// Exactly one attribute is set, or no attribute byte is there.
func TestMessageRecordAttributes(t *testing.T) {
	known := map[byte]RecordKind{
		attrStream: RecordStream, attrFin: RecordFin, attrFirst: RecordFirst, attrContinue: RecordContinue,
	}
	for attr := range 256 {
		b := []byte{0x80, 1, byte(attr)}
		if byte(attr) == attrFin {
			b[1] = 0
		}
		if byte(attr) == attrFirst {
			b = append(b, 200, 1)
		}
		r, _, err := NextMessageRecord(append(b, 'a'))
		kind, ok := known[byte(attr)]
		switch {
		case ok && (err != nil || r.Kind != kind):
			t.Errorf("attributes %#02x: kind %d, %v, want %d", attr, r.Kind, err, kind)
		case !ok && !errors.Is(err, ErrReserved):
			t.Errorf("attributes %#02x: %v, want %v", attr, err, ErrReserved)
		}
	}
}

// A stream record grows while its symbol is open.
func TestSetRecordLen(t *testing.T) {
	for _, kind := range []RecordKind{RecordWhole, RecordStream} {
		b := AppendMessageRecord(nil, kind, 0, []byte("abc"))
		b = append(b, "defg"...)
		SetRecordLen(b, 7)
		r, rest, err := NextMessageRecord(b)
		if err != nil || r.Kind != kind || string(r.Data) != "abcdefg" || len(rest) != 0 {
			t.Errorf("kind %d: read %+v, %d bytes left, %v", kind, r, len(rest), err)
		}
	}
}
