package relay

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/openarkstudio/arknet-go/internal/udpio"
	"github.com/openarkstudio/arknet-go/netem"
)

// Stats is a snapshot of a relay's counters. All but the present routes and
// what is queued count from the start.
type Stats struct {
	Network string        `json:"network"`
	Elapsed time.Duration `json:"elapsed_ns"`

	// Routes is the number of routes now, RoutesEver of all since the start.
	Routes     int    `json:"routes"`
	RoutesEver uint64 `json:"routes_ever"`

	// Up and Down are the sums over all routes, ended ones included.
	Up   Flow `json:"up"`
	Down Flow `json:"down"`

	// Refused is what came from clients that got no route. It is not part of
	// Up.
	Refused netem.Count `json:"refused"`

	// PeakBytes and PeakDatagrams are the sums of the peaks of all routes:
	// the most that each held at one time, in both directions together.
	PeakBytes     uint64 `json:"route_peak_sum_bytes"`
	PeakDatagrams uint64 `json:"route_peak_sum_datagrams"`

	// ListenSocket faces the clients, RouteSockets the target (UDP only).
	ListenSocket SocketStats `json:"listen_socket"`
	RouteSockets SocketStats `json:"route_sockets"`
}

// Flow counts one direction. A datagram of a TCP route is one read of the relay.
type Flow struct {
	Received   netem.Count `json:"received"`
	Sent       netem.Count `json:"sent"`
	Duplicated netem.Count `json:"duplicated"`
	Late       netem.Count `json:"late"`
	Corrupted  netem.Count `json:"corrupted"`
	Queued     netem.Count `json:"queued"`
	Dropped    Drops       `json:"dropped"`
}

// Drops counts what a direction lost, by cause.
type Drops struct {
	netem.Drops             // what the link lost
	Overflow    netem.Count `json:"overflow"` // the route, or all routes together, held too much
	// Failed is what the system did not take. Where it took a part of a batch
	// it does not tell which: the bytes are then the failed share of the batch.
	Failed netem.Count `json:"failed"`
	Closed netem.Count `json:"closed"` // queued when the route or the relay ended
}

// Total is the sum over all causes.
func (d *Drops) Total() netem.Count {
	t := d.Drops.Total()
	t.Add(d.Overflow)
	t.Add(d.Failed)
	t.Add(d.Closed)
	return t
}

// SocketStats is what the sockets of the relay met.
type SocketStats struct {
	// KernelDrops is what the system dropped because the relay did not read
	// fast enough, where it tells. It is never part of Received.
	KernelDrops uint64 `json:"kernel_drops"`
	ReadErrors  uint64 `json:"read_errors"`  // such as ICMP messages; the socket goes on
	WriteErrors uint64 `json:"write_errors"` // each may stand for several datagrams
}

// RouteStats is a snapshot of one route.
type RouteStats struct {
	Index         uint64         `json:"index"`
	Client        netip.AddrPort `json:"client"`
	Up            Flow           `json:"up"`
	Down          Flow           `json:"down"`
	PeakBytes     uint64         `json:"peak_bytes"`
	PeakDatagrams uint64         `json:"peak_datagrams"`
}

// Balanced reports whether received + duplicated = sent + dropped + queued.
func (f *Flow) Balanced() bool {
	in, out := f.Received, f.Sent
	in.Add(f.Duplicated)
	out.Add(f.Dropped.Total())
	out.Add(f.Queued)
	return in == out
}

// Add adds o to f.
func (f *Flow) Add(o Flow) {
	f.Received.Add(o.Received)
	f.Sent.Add(o.Sent)
	f.Duplicated.Add(o.Duplicated)
	f.Late.Add(o.Late)
	f.Corrupted.Add(o.Corrupted)
	f.Queued.Add(o.Queued)
	f.Dropped.Drops.Add(o.Dropped.Drops)
	f.Dropped.Overflow.Add(o.Dropped.Overflow)
	f.Dropped.Failed.Add(o.Dropped.Failed)
	f.Dropped.Closed.Add(o.Dropped.Closed)
}

// Check returns an error that names everything that makes the relay an unfaithful
// model of its links: overflow, drops of the kernel or failed sends, refused
// clients, and counters that do not balance. A measurement through a relay that
// fails the check is invalid.
func (s *Stats) Check() error {
	var errs []error
	complain := func(n uint64, what string) {
		if n > 0 {
			errs = append(errs, fmt.Errorf("relay: %d %s", n, what))
		}
	}
	for _, d := range []struct {
		dir    netem.Direction
		flow   *Flow
		socket SocketStats
	}{{netem.Up, &s.Up, s.ListenSocket}, {netem.Down, &s.Down, s.RouteSockets}} {
		complain(d.flow.Dropped.Overflow.Datagrams, fmt.Sprintf("datagrams overflowed the routes' capacity (%v)", d.dir))
		complain(d.flow.Dropped.Failed.Datagrams, fmt.Sprintf("datagrams could not be sent (%v)", d.dir))
		complain(d.socket.KernelDrops, fmt.Sprintf("datagrams dropped by the kernel at the relay's sockets (%v)", d.dir))
		if !d.flow.Balanced() {
			errs = append(errs, fmt.Errorf("relay: BUG: counters do not balance (%v): %+v", d.dir, *d.flow))
		}
	}
	complain(s.Refused.Datagrams, "datagrams of refused clients")
	return errors.Join(errs...)
}

func (s *SocketStats) add(u udpio.Stats) {
	s.KernelDrops += u.KernelDrops
	s.ReadErrors += u.ReadErrors.Total()
	s.WriteErrors += u.WriteErrors.Total()
}
