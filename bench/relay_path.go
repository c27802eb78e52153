package bench

import (
	"net"
	"time"

	"github.com/openarkstudio/arknet-go/netem/relay"
)

// Routes of the connect workload: each association is a route of its own with a
// socket, and is not needed any more soon after it ended.
const (
	connectRoutes = 1 << 20
	connectIdle   = 2 * time.Second
)

// relayPath is the impairment relay.
type relayPath struct {
	relay *relay.Relay
}

func newRelayPath(cfg pathConfig) (path, error) {
	config := relay.Config{
		Listen: net.JoinHostPort(cfg.host, "0"),
		Target: cfg.server,
		Up:     cfg.impairment,
		Down:   cfg.impairment,
		Seed:   cfg.seed,
	}
	if cfg.manyRoutes {
		config.MaxRoutes = connectRoutes
		config.RouteIdle = connectIdle
	}
	r, err := relay.Start(config)
	if err != nil {
		return nil, err
	}
	return &relayPath{relay: r}, nil
}

func (p *relayPath) Addr() net.Addr { return p.relay.Addr() }
func (p *relayPath) Close() error   { return p.relay.Close() }

func (p *relayPath) Counters() pathCounters {
	s := p.relay.Stats()
	var c pathCounters
	c.FromClients, c.FromClientsBytes = s.Up.Received.Datagrams, s.Up.Received.Bytes
	c.FromServer, c.FromServerBytes = s.Down.Received.Datagrams, s.Down.Received.Bytes
	c.Routes = s.RoutesEver
	c.peakSum = s.PeakBytes
	for _, f := range []*relay.Flow{&s.Up, &s.Down} {
		c.Sent += f.Sent.Datagrams
		c.SentBytes += f.Sent.Bytes
		c.Duplicated += f.Duplicated.Datagrams
		c.Late += f.Late.Datagrams
		d := &f.Dropped
		c.LostRandom += d.Loss.Datagrams
		c.LostBurst += d.Burst.Datagrams
		c.LostOther += d.Outage.Datagrams + d.MTU.Datagrams + d.GilbertElliott.Datagrams
		c.LostQueue += d.Queue.Datagrams
		c.overflow += d.Overflow.Datagrams
		c.errors += d.Failed.Datagrams
		if !f.Balanced() {
			c.errors++
		}
	}
	// What the kernel dropped because the relay was too slow is an overflow of
	// the relay too: the impairment did not ask for it.
	c.overflow += s.ListenSocket.KernelDrops + s.RouteSockets.KernelDrops
	c.errors += s.Refused.Datagrams
	if err := s.Check(); err != nil {
		c.trouble = err.Error()
	}
	return c
}
