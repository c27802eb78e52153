package wire

import (
	"fmt"
	"testing"
)

// dataDatagram appends a plain data datagram with an ack block of one range
// over span numbers, and whole messages of n bytes.
func dataDatagram(b []byte, span uint64, messages ...[]byte) []byte {
	start := len(b)
	b = AppendShort(b, Short{Dst: 7, Number: 0xffffff, Ack: true, Payload: PayloadData})
	a := Ack{Delay: 1 << 20, Next: 0xffffff, Ranges: []AckRange{{1 << 30, 1<<30 + span - 1}}}
	b = AppendAck(b, &a, 1, 0)
	b = AppendSymbolID(b, 0xffffff)
	for _, m := range messages {
		b = AppendMessageRecord(b, RecordWhole, 0, m)
	}
	return AppendChecksum(b, start, 0x12345678)
}

// A data datagram costs at most 24 bytes, its ack block and CRC-32C included,
// and each message 2 bytes more. A longer ack range costs its digits.
func TestDataDatagramOverhead(t *testing.T) {
	tests := []struct {
		span     uint64
		messages int
		want     int
	}{
		{1, 1, 24 + 2},
		{128, 1, 24 + 2},
		{129, 1, 25 + 2},
		{16384, 1, 25 + 2},
		{16385, 1, 26 + 2},
		{128, 0, 24},
		{128, 2, 24 + 2*2},
		{128, 15, 24 + 15*2},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("span=%d/messages=%d", tt.span, tt.messages), func(t *testing.T) {
			message := make([]byte, 64)
			var all [][]byte
			for range tt.messages {
				all = append(all, message)
			}
			n := len(dataDatagram(nil, tt.span, all...)) - tt.messages*len(message)
			if n != tt.want {
				t.Errorf("costs %d bytes, want %d", n, tt.want)
			}
		})
	}
}

// The sizes that docs/protocol.md quotes.
func TestDatagramSizes(t *testing.T) {
	one := Ack{Ranges: []AckRange{{1, 1}}}
	tests := []struct {
		name string
		b    []byte
		want int
	}{
		{"ack only, one range", AppendAck(AppendShort(nil, Short{Ack: true}), &one, 1, 0), 17},
		{"ping", AppendPing(AppendShort(nil, Short{Control: true})), 9},
		{"data without ack, one message", AppendMessageRecord(AppendSymbolID(AppendShort(nil, Short{Payload: PayloadData}), 0), RecordWhole, 0, nil), 13},
		{"reset", AppendReset(nil, 1, Quote{})[:ResetLen], 24},
		{"versions, one listed", AppendVersions(AppendLong(nil, Long{Kind: KindVersions}), Version), 21},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if len(tt.b) != tt.want {
				t.Errorf("%d bytes without checksum, want %d", len(tt.b), tt.want)
			}
		})
	}
}
