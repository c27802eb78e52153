package arq

import (
	"fmt"
	"testing"
	"time"

	"github.com/openarkstudio/arknet-go/internal/wire"
	"github.com/openarkstudio/arknet-go/netem"
)

// startAt moves a Conn that has sent and received nothing to later numbers: as
// if so many symbols and packets had been exchanged before.
func startAt(c *Conn, symbols wire.SymbolID, packets wire.PacketNumber) {
	c.send.base, c.send.unsent, c.send.next = symbols, symbols, symbols
	c.recv.next, c.recv.top = symbols, symbols
	c.sent.base, c.sent.next = packets, packets
	if packets > 0 {
		c.acks.largest, c.acks.any = packets-1, true
		c.acks.received.add(uint64(packets-1), uint64(packets-1))
	}
}

// shiftedPair connects two sides whose numbers start late.
func shiftedPair(t *testing.T, net netem.Config, symbols wire.SymbolID, packets wire.PacketNumber, change func(client, server *Config)) (s *sim, client, server *node) {
	t.Helper()
	s, client, server = newPair(t, net, 42, change)
	startAt(client.c, symbols, packets)
	make := server.newConn
	server.newConn = func(b []byte) *Conn {
		c := make(b)
		if c != nil {
			startAt(c, symbols, packets)
		}
		return c
	}
	return s, client, server
}

// Where numbers wrap on the wire, or pass any other power of two, nothing
// changes: to the last counter a session does what one from zero does.
func TestCodingAcrossTheWrap(t *testing.T) {
	for _, cfg := range []FECConfig{balanced, fast, ratio(FECSliding, 10, 3), ratio(FECBlock, 10, 3), {Retain: 512 << 10}} {
		type outcome struct{ client, server Stats }
		run := func(symbols wire.SymbolID, packets wire.PacketNumber) (o outcome) {
			s, client, server := shiftedPair(t, profile(t, "random"), symbols, packets, func(cc, sc *Config) {
				cc.FEC, sc.FEC = cfg, cfg
				if cfg.Policy == FECOff {
					cc.Retransmit, sc.Retransmit = RetransmitCoded, RetransmitCoded
				}
			})
			server.onMessage = func(m []byte) { server.send(m) }
			client.onMessage = func(m []byte) { client.send(m) }
			client.onOpen = func() {
				for range 16 {
					client.send(make([]byte, 1024))
				}
			}
			s.runFor(4 * time.Second)
			o.client, o.server = client.c.Stats(), server.c.Stats()
			if o.client.MessagesReceived < 1000 || o.client.Repairs.Restored < 5 {
				t.Errorf("from symbol %d: %d round trips, %d symbols restored", symbols, o.client.MessagesReceived, o.client.Repairs.Restored)
			}
			for _, c := range []*Conn{client.c, server.c} {
				if err := checkCoding(c); err != nil {
					t.Error(err)
				}
				if n := c.send.unsent - symbols; n < 1000 {
					t.Errorf("%d symbols were sent", n)
				}
			}
			return o
		}
		want := run(0, 1) // a packet number above zero, so that both know of an earlier one
		wraps, starts := []uint64{1 << 24, 1 << 23, 1 << 32, 1 << 40}, []uint64{512, 128, 896}
		if raceEnabled {
			wraps, starts = wraps[:1], starts[:1]
		}
		for _, wrap := range wraps {
			for _, before := range starts {
				// The coefficients repeat every 128 symbols.
				got := run(wire.SymbolID(wrap-before), wire.PacketNumber(wrap-before))
				if got != want {
					t.Errorf("policy %d scheme %d, %d before %#x:\n%+v\nwant\n%+v", cfg.Policy, cfg.Scheme, before, wrap, got, want)
				}
			}
		}
	}
}

// One datagram of each group is lost: each is restored, none is sent again, on
// both sides of the wrap.
func TestEachLossIsRestoredAcrossTheWrap(t *testing.T) {
	for _, group := range []struct{ data, parity int }{{10, 3}, {8, 2}, {20, 5}, {4, 2}} {
		for _, scheme := range []FECScheme{FECSliding, FECBlock} {
			t.Run(fmt.Sprint(group, scheme), func(t *testing.T) {
				cfg := ratio(scheme, group.data, group.parity)
				start := wire.SymbolID(1<<24 - 20*group.data)
				var fates []bool // of the datagrams about to leave, in order
				s, client, server := shiftedPair(t, path20, start, 1<<24-500, func(cc, sc *Config) {
					cc.FEC, sc.FEC = cfg, cfg
					cc.Trace = func(e TraceEvent) {
						if e.Kind == TraceSent {
							lost := e.Payload == wire.PayloadData && int(e.Symbol-start)%group.data == 1
							fates = append(fates, !lost)
						}
					}
				})
				received := 0
				server.onMessage = func([]byte) { received++ }
				s.runFor(100 * ms)
				fates = nil
				client.tap = func([]byte) bool {
					ok := fates[0]
					fates = fates[1:]
					return ok
				}
				for range 100 {
					for range group.data {
						client.send(make([]byte, 500))
					}
					s.runFor(30 * ms)
				}
				st, at := client.c.Stats(), server.c.Stats().Repairs
				if received != 100*group.data || at.Restored != 100 || st.Retransmitted != 0 {
					t.Errorf("%d messages of %d, %d symbols restored of 100, %d sent again", received, 100*group.data, at.Restored, st.Retransmitted)
				}
				if client.c.send.base < 1<<24 {
					t.Errorf("symbol %#x is before the wrap", client.c.send.base)
				}
			})
		}
	}
}
