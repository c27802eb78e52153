package bench

import (
	"net"

	"github.com/openarkstudio/arknet-go/bench/record"
	"github.com/openarkstudio/arknet-go/netem"
)

// path is what lies between the clients and the server: the relay, or a fake in
// tests.
type path interface {
	Addr() net.Addr // where clients dial
	Counters() pathCounters
	Close() error
}

type pathConfig struct {
	host       string // loopback address to listen on
	server     string // address of the server
	impairment netem.Config
	seed       uint64
	manyRoutes bool // every association is a route of its own
}

// pathCounters are totals since the path began.
type pathCounters struct {
	record.Relay

	overflow uint64 // datagrams that found a route or a socket buffer full
	errors   uint64 // datagrams that could not be sent, refused clients
	trouble  string // the two in words
	peakSum  uint64 // bytes, over the routes
}

// since returns what happened after the earlier counters; the number of
// routes stays.
func (c pathCounters) since(earlier pathCounters) record.Relay {
	d := c.Relay
	e := &earlier.Relay
	d.FromClients -= e.FromClients
	d.FromClientsBytes -= e.FromClientsBytes
	d.FromServer -= e.FromServer
	d.FromServerBytes -= e.FromServerBytes
	d.Sent -= e.Sent
	d.SentBytes -= e.SentBytes
	d.LostRandom -= e.LostRandom
	d.LostBurst -= e.LostBurst
	d.LostOther -= e.LostOther
	d.LostQueue -= e.LostQueue
	d.Duplicated -= e.Duplicated
	d.Late -= e.Late
	return d
}
