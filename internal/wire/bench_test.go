package wire

import (
	"fmt"
	"testing"
)

func BenchmarkAppendDatagram(b *testing.B) {
	for _, size := range []int{64, 1024} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			buf := make([]byte, 0, 2048)
			message := make([]byte, size)
			b.ReportAllocs()
			b.SetBytes(int64(size))
			for b.Loop() {
				buf = dataDatagram(buf[:0], 40, message)
			}
		})
	}
}

func BenchmarkParseDatagram(b *testing.B) {
	for _, size := range []int{64, 1024} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			d := dataDatagram(nil, 40, make([]byte, size))
			var a Ack
			b.ReportAllocs()
			b.SetBytes(int64(size))
			for b.Loop() {
				body, ok := VerifyChecksum(d, 0x12345678)
				if !ok {
					b.Fatal("checksum")
				}
				_, rest, err := ParseShort(body)
				if err != nil {
					b.Fatal(err)
				}
				if rest, err = ParseAck(rest, 1<<30+40, 1<<24, &a); err != nil {
					b.Fatal(err)
				}
				if _, rest, err = ParseSymbolID(rest); err != nil {
					b.Fatal(err)
				}
				for len(rest) > 0 {
					if _, rest, err = NextMessageRecord(rest); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

func BenchmarkShortHeader(b *testing.B) {
	h := Short{Dst: 7, Number: 9, Ack: true, Payload: PayloadData}
	buf := make([]byte, 0, 64)
	b.ReportAllocs()
	for b.Loop() {
		buf = AppendShort(buf[:0], h)
		if _, _, err := ParseShort(buf); err != nil {
			b.Fatal(err)
		}
	}
}

func benchmarkAck(ranges int) Ack {
	return Ack{Delay: 1 << 20, Next: 500, Ranges: manyRanges(ranges, 100000)}
}

func BenchmarkAppendAck(b *testing.B) {
	for _, n := range []int{1, 8, MaxAckRanges} {
		b.Run(fmt.Sprintf("ranges=%d", n), func(b *testing.B) {
			a := benchmarkAck(n)
			buf := make([]byte, 0, 512)
			b.ReportAllocs()
			for b.Loop() {
				buf = AppendAck(buf[:0], &a, n, 0)
			}
		})
	}
}

func BenchmarkParseAck(b *testing.B) {
	for _, n := range []int{1, 8, MaxAckRanges} {
		b.Run(fmt.Sprintf("ranges=%d", n), func(b *testing.B) {
			a := benchmarkAck(n)
			block := AppendAck(nil, &a, n, 0)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ParseAck(block, 100001, 501, &a); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// The costliest block that a peer can send.
func BenchmarkParseHostileAck(b *testing.B) {
	a := Ack{Next: 7, Equations: 1, Ranges: manyRanges(MaxAckRanges, 1<<40), Symbols: manySymbols(MaxAckRanges, 7)}
	block := AppendAck(nil, &a, MaxAckRanges, MaxAckRanges)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseAck(block, 1<<40+1, 1<<20, &a); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkChecksum(b *testing.B) {
	for _, size := range []int{64, 1200} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			d := AppendChecksum(make([]byte, size), 0, 77)
			b.ReportAllocs()
			b.SetBytes(int64(size))
			for b.Loop() {
				if _, ok := VerifyChecksum(d, 77); !ok {
					b.Fatal("checksum")
				}
			}
		})
	}
}

func BenchmarkMessageRecords(b *testing.B) {
	for _, size := range []int{16, 64} {
		b.Run(fmt.Sprintf("size=%d/records=16", size), func(b *testing.B) {
			var symbol []byte
			for range 16 {
				symbol = AppendMessageRecord(symbol, RecordWhole, 0, make([]byte, size))
			}
			b.ReportAllocs()
			for b.Loop() {
				for rest := symbol; len(rest) > 0; {
					var err error
					if _, rest, err = NextMessageRecord(rest); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

func BenchmarkParseParams(b *testing.B) {
	p := Params{Nonce: testNonce, RecvWindow: 4 << 20, SymbolWindow: 4096, MaxMessage: 16 << 20, MaxDatagram: 32767}
	d := AppendParams(nil, &p)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseParams(d); err != nil {
			b.Fatal(err)
		}
	}
}
