package arq

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/openarkstudio/arknet-go/internal/wire"
)

// hostile is an open session whose peer may send anything under the right key.
func hostile(t *testing.T) *script {
	return newScript(t, func(c *Config, p *wire.Params) {
		c.RecvWindow, c.RecvSymbols, c.MaxMessage = 20_000, 64, 50_000
		c.SendQueue, c.SendQueued = 100_000, 100
		c.DeadPeerTimeout = time.Minute
		c.FEC.Retain = 64 << 10
		p.SendsRepairs = 1
	})
}

// step hands one datagram, or one act of the application, to the session. The
// first byte says which:
//
//	0..3  the bytes as they are
//	4..7  a short datagram of that payload type, key and destination put right
//	8     the same, of control records; 9 of an ack block; 10 of both
//	11    a handshake datagram with its checksum put right
//	12    the time moves; 13 send; 14 read; 15 the end
func (s *script) step(op byte, b []byte) {
	var sent uint64
	if len(b) >= 3 {
		sent = uint64(b[0])<<16 | uint64(b[1])<<8 | uint64(b[2])
	}
	short := func(h wire.Short) {
		h.Number = uint32(sent)
		s.deliver(s.datagram(h, b[min(3, len(b)):]))
	}
	switch op % 16 {
	case 0, 1, 2, 3:
		s.deliver(b)
	case 4, 5, 6, 7:
		short(wire.Short{Payload: wire.PayloadType(op % 3), Ack: op%16 == 7})
	case 8:
		short(wire.Short{Control: true})
	case 9:
		short(wire.Short{Ack: true})
	case 10:
		short(wire.Short{Ack: true, Control: true, Payload: wire.PayloadData})
	case 11:
		s.deliver(wire.AppendChecksum(append([]byte{0x80}, b...), 0, wire.HandshakeKey))
	case 12:
		s.advance(time.Duration(sent) * us)
	case 13:
		_, _ = s.c.Send(s.now, b) // any error is right here
		s.drain()
	case 14:
		for ok := true; ok; {
			_, ok, _ = s.c.AppendMessage(nil)
		}
		var p [100]byte
		_, _ = s.c.ReadStream(p[:])
		s.drain()
	case 15:
		switch len(b) % 4 {
		case 0:
			s.c.Close(s.now)
		case 1:
			s.c.Abort(s.now, sent, string(b))
		case 2:
			_ = s.c.CloseWrite()
		case 3:
			s.c.Discard()
		}
		s.drain()
	}
}

// FuzzConnDatagram: whatever a peer sends that holds the key, nothing panics,
// no sum goes wrong, memory stays within the windows, and no datagram makes
// more than a bounded number of others.
func FuzzConnDatagram(f *testing.F) {
	ops := func(steps ...[]byte) (b []byte) {
		for _, s := range steps {
			b = binary.BigEndian.AppendUint16(append(b, s[0]), uint16(len(s)-1))
			b = append(b, s[1:]...)
		}
		return b
	}
	f.Add(ops([]byte{13, 1, 2, 3}, []byte{12, 0, 80, 0}, []byte{9, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 1}))
	f.Add(ops(append([]byte{4, 0, 0, 0, 0, 0, 0}, whole("hello")...), []byte{14}, []byte{15, 1}))
	f.Add(ops(append([]byte{4, 0, 0, 5, 0, 0, 9}, record(wire.RecordFirst, 900, "part")...), []byte{12, 1, 0, 0}))
	f.Add(ops([]byte{8, 0, 0, 1, 2, 3, 0xff, 1, 4, 0, 0, 3, 'b', 'y', 'e'}, []byte{12, 9, 9, 9}))
	f.Add(ops([]byte{6, 0, 0, 1, 0, 0, 0, 3, 1, 2, 9, 9, 9, 9, 9, 9, 9, 9}))
	f.Add(ops([]byte{11, 0x41, 0x52, 0x4b, 1, 0x11, 0x11, 0x11, 0x11, 0x22, 0x22, 0x22, 0x22, 0, 0, 0, 0, 6, 0, 0}))
	f.Fuzz(func(t *testing.T, b []byte) {
		s := hostile(t)
		for n := 0; len(b) >= 3 && n < 200; n++ {
			size := min(int(binary.BigEndian.Uint16(b[1:])), len(b)-3)
			s.step(b[0], b[3:3+size])
			b = b[3+size:]
			if out := len(s.took()); out > 2*100+1000 {
				t.Fatalf("%d datagrams left after one step", out)
			}
			if err := checkConn(s.c); err != nil {
				t.Fatal(err)
			}
		}
		s.c.Abort(s.now, 0, "")
		s.drain()
		s.advance(5 * time.Minute)
		if s.c.State() != StateDone {
			t.Fatalf("state %d after the end", s.c.State())
		}
	})
}
