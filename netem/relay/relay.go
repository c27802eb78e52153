package relay

import (
	"net"
	"sync"
	"time"

	"github.com/openarkstudio/arknet-go/netem"
)

// Relay is a running relay. Make it with Start and end it with Close. All
// methods are safe for concurrent use.
type Relay struct {
	network string
	start   time.Time
	engine  engine

	mu     sync.Mutex // orders changes of the impairment
	impair [2]netem.Config
}

// engine is what UDP and TCP do differently.
type engine interface {
	addr() net.Addr
	stats() Stats
	routes() []RouteStats
	setImpairment(epoch time.Duration, configs [2]netem.Config) error
	reset() int
	close() error
}

// Start opens the listening socket and relays until Close.
func Start(cfg Config) (*Relay, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	r := &Relay{network: cfg.network(), start: time.Now(), impair: [2]netem.Config{cfg.Up, cfg.Down}}
	var err error
	if r.network == "tcp" {
		r.engine, err = startTCP(&cfg, r.start)
	} else {
		r.engine, err = startUDP(&cfg, r.start)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Addr returns the address that clients use: *net.UDPAddr or *net.TCPAddr.
func (r *Relay) Addr() net.Addr { return r.engine.addr() }

// Stats returns a snapshot of the counters; also after Close.
func (r *Relay) Stats() Stats {
	s := r.engine.stats()
	s.Network = r.network
	s.Elapsed = time.Since(r.start)
	return s
}

// Routes returns a snapshot of each present route, in the order of their index.
func (r *Relay) Routes() []RouteStats { return r.engine.routes() }

// Impairment returns what SetImpairment or the Config set last.
func (r *Relay) Impairment() (up, down netem.Config) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.impair[netem.Up], r.impair[netem.Down]
}

// SetImpairment changes both directions of all routes, present and future, for
// what arrives from now on. What waits keeps its time. Counters and random
// streams go on; outages are counted from now. On an error nothing changes.
func (r *Relay) SetImpairment(up, down netem.Config) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.setImpairment([2]netem.Config{up, down})
}

func (r *Relay) setImpairment(configs [2]netem.Config) error {
	if err := checkImpairment(r.network, configs[netem.Up], configs[netem.Down]); err != nil {
		return err
	}
	if err := r.engine.setImpairment(time.Since(r.start), configs); err != nil {
		return err
	}
	r.impair = configs
	return nil
}

// ResetConnections resets every TCP connection (RST to both ends) and returns
// how many there were. Over UDP it does nothing.
func (r *Relay) ResetConnections() int { return r.engine.reset() }

// Close ends the relay and its goroutines. What waits is dropped and counted. A
// second Close does nothing.
func (r *Relay) Close() error { return r.engine.close() }
