package relay

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/openarkstudio/arknet-go/internal/hrtime"
	"github.com/openarkstudio/arknet-go/internal/udpio"
	"github.com/openarkstudio/arknet-go/netem"
)

// The goroutines of a UDP relay, and who touches what:
//
//	listen loop   reads the listening socket, makes routes, admits and sends
//	              what goes up at once
//	return loop   one per route; reads the route's socket, admits and sends
//	              what goes down at once
//	release loop  sleeps on the alarm, sends what waited, in both directions
//	janitor       ends idle routes
//
// A datagram of one direction is sent by the admitting loop only while nothing
// that it must not overtake is held, and by the release loop otherwise; so the two
// never send for one direction in the wrong order. Locks: udpRelay.mu before
// route.mu before queue.mu.

// Datagrams per system call and per turn of the release loop.
const (
	listenTrains  = 64
	returnTrains  = 32
	releaseTrains = 512
)

type udpRelay struct {
	cfg    Config
	log    *slog.Logger
	start  time.Time
	target *net.UDPAddr
	socket *udpio.Socket // faces the clients
	alarm  *hrtime.Alarm
	queue  *queue
	limits limits
	done   chan struct{}
	wg     sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	closeErr error
	impair   [2]netem.Config
	epoch    time.Duration
	byClient map[netip.AddrPort]*route
	ending   map[*route]struct{} // idle ones whose return loop has not ended yet
	ever     uint64
	retired  Stats // sums of ended routes
	refused  netem.Count
}

// udpRoute is the part of a route that knows sockets.
type udpRoute struct {
	socket  *udpio.Socket // connected to the target
	local   netip.Addr    // the address that the client uses, on a wildcard listener
	turn    [2]outbox     // of the loop that admits in the direction
	waited  [2]outbox     // of the release loop
	touched bool          // listen loop: turn[Up] is to be sent
}

func startUDP(cfg *Config, start time.Time) (engine, error) {
	target, err := net.ResolveUDPAddr("udp", cfg.Target)
	if err != nil {
		return nil, fmt.Errorf("relay: Config.Target: %w", err)
	}
	listen, err := net.ResolveUDPAddr("udp", cfg.listen())
	if err != nil {
		return nil, fmt.Errorf("relay: Config.Listen: %w", err)
	}
	r := &udpRelay{
		cfg:      *cfg,
		log:      cfg.logger(),
		start:    start,
		target:   target,
		done:     make(chan struct{}),
		impair:   [2]netem.Config{cfg.Up, cfg.Down},
		byClient: make(map[netip.AddrPort]*route),
		ending:   make(map[*route]struct{}),
	}
	r.limits.routeBytes = orDefault(cfg.RouteBytes, DefaultRouteBytes)
	r.limits.routeDatagrams = orDefault(cfg.RouteDatagrams, DefaultRouteDatagrams)
	r.limits.totalBytes = int64(orDefault(cfg.TotalBytes, DefaultTotalBytes))
	conn, err := net.ListenUDP("udp", listen)
	if err != nil {
		return nil, fmt.Errorf("relay: Config.Listen: %w", err)
	}
	if r.socket, err = r.newSocket(conn); err != nil {
		return nil, err
	}
	if r.alarm, err = hrtime.NewAlarm(); err != nil {
		return nil, errors.Join(fmt.Errorf("relay: %w", err), r.socket.Close())
	}
	r.queue = newQueue(func(at time.Duration) { r.alarm.Set(start.Add(at)) })
	r.wg.Go(r.listenLoop)
	r.wg.Go(r.releaseLoop)
	if idle := cfg.routeIdle(); idle > 0 {
		r.wg.Go(func() { r.janitor(idle) })
	}
	return r, nil
}

// newSocket takes the connection over, also when it fails.
func (r *udpRelay) newSocket(conn *net.UDPConn) (*udpio.Socket, error) {
	size := orDefault(r.cfg.ReadBuffer, DefaultReadBuffer)
	s, err := udpio.New(conn, udpio.Options{ReadBuffer: size, WriteBuffer: size, NoFastPath: r.cfg.NoOffload})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("relay: %w", err), conn.Close())
	}
	return s, nil
}

func (r *udpRelay) now() time.Duration { return time.Since(r.start) }

func (r *udpRelay) listenLoop() {
	trains := make([]udpio.Train, listenTrains)
	var touched []*route
	for {
		n, err := r.socket.ReadTrains(trains)
		if err != nil {
			return
		}
		now := r.now()
		for i := range trains[:n] {
			t := &trains[i]
			rt := r.lockRoute(t, now)
			if rt == nil {
				continue
			}
			rt.udp.local = t.Local
			rt.flows[netem.Up].admit(now, t, &rt.udp.turn[netem.Up])
			rt.mu.Unlock()
			if !rt.udp.touched && len(rt.udp.turn[netem.Up].trains) > 0 {
				rt.udp.touched = true
				touched = append(touched, rt)
			}
		}
		for i, rt := range touched {
			r.send(&rt.flows[netem.Up], &rt.udp.turn[netem.Up])
			rt.udp.touched = false
			touched[i] = nil
		}
		touched = touched[:0]
	}
}

func (r *udpRelay) returnLoop(rt *route) {
	trains := make([]udpio.Train, returnTrains)
	f, out := &rt.flows[netem.Down], &rt.udp.turn[netem.Down]
	for {
		n, err := rt.udp.socket.ReadTrains(trains)
		if err != nil {
			break
		}
		now := r.now()
		rt.mu.Lock()
		for i := range trains[:n] {
			if rt.closed {
				f.turnAway(&trains[i])
			} else {
				f.admit(now, &trains[i], out)
			}
		}
		rt.mu.Unlock()
		if len(out.trains) > 0 {
			r.send(f, out)
		}
	}
	r.retire(rt)
}

func (r *udpRelay) releaseLoop() {
	buf := make([]held, 0, releaseTrains)
	var touched []*flow
	for r.alarm.Wait() {
		for {
			due := r.queue.due(r.now(), buf)
			if len(due) == 0 {
				break
			}
			for _, h := range due {
				out := &h.flow.route.udp.waited[h.flow.dir]
				if len(out.trains) == 0 {
					touched = append(touched, h.flow)
				}
				out.take(h)
			}
			for i, f := range touched {
				r.send(f, &f.route.udp.waited[f.dir])
				touched[i] = nil
			}
			touched = touched[:0]
			clear(due)
		}
		r.queue.rest()
	}
}

// send sends what is in the outbox, books it and empties the outbox.
func (r *udpRelay) send(f *flow, o *outbox) {
	rt := f.route
	socket := rt.udp.socket
	if f.dir == netem.Down {
		socket = r.socket
		rt.mu.Lock()
		local := rt.udp.local
		rt.mu.Unlock()
		for i := range o.trains {
			o.trains[i].Addr = rt.client
			o.trains[i].Local = local
		}
	}
	sent, err := socket.WriteTrains(o.trains)
	rt.mu.Lock()
	lost := &f.failed
	if err != nil {
		lost = &f.closed
	}
	f.settle(o, sent, lost)
	rt.mu.Unlock()
	o.reset()
}

// lockRoute returns the route of the train's sender with its mu held, and makes
// it when needed; nil when that is refused.
func (r *udpRelay) lockRoute(t *udpio.Train, now time.Duration) *route {
	r.mu.Lock()
	defer r.mu.Unlock()
	rt := r.byClient[t.Addr]
	if rt == nil {
		var err error
		if rt, err = r.open(t.Addr); err != nil {
			r.refused.Add(netem.Count{Datagrams: uint64(t.Len()), Bytes: uint64(len(t.Buf))})
			// For each train: a quiet level, or a stranger could fill the log.
			r.log.Debug("relay: route refused", slog.Any("client", t.Addr), slog.Any("error", err))
			return nil
		}
	}
	rt.mu.Lock()
	return rt
}

// open makes a route. The caller holds mu.
func (r *udpRelay) open(client netip.AddrPort) (*route, error) {
	if r.closed {
		return nil, net.ErrClosed
	}
	if limit := orDefault(r.cfg.MaxRoutes, DefaultMaxRoutes); len(r.byClient)+len(r.ending) >= limit {
		return nil, fmt.Errorf("all %d routes of Config.MaxRoutes are in use", limit)
	}
	rt, err := newRoute(r.ever, client, r.cfg.Seed, r.impair[netem.Up], r.impair[netem.Down], &r.limits, r.queue)
	if err != nil {
		return nil, err
	}
	if err := rt.setImpairment(r.epoch, r.impair); err != nil {
		return nil, err
	}
	conn, err := net.DialUDP("udp", nil, r.target)
	if err != nil {
		return nil, err
	}
	if rt.udp.socket, err = r.newSocket(conn); err != nil {
		return nil, err
	}
	r.ever++
	r.byClient[client] = rt
	r.wg.Go(func() { r.returnLoop(rt) })
	return rt, nil
}

// janitor ends routes that carried nothing for the given time.
func (r *udpRelay) janitor(idle time.Duration) {
	tick := time.NewTicker(max(idle/4, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			r.expire(r.now() - idle)
		case <-r.done:
			return
		}
	}
}

// expire ends the routes that carried nothing since the given time.
func (r *udpRelay) expire(since time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for client, rt := range r.byClient {
		rt.mu.Lock()
		if rt.idle(since) {
			rt.closed = true
			delete(r.byClient, client)
			r.ending[rt] = struct{}{}
			rt.udp.socket.Close() // ends the return loop, which retires the route
		}
		rt.mu.Unlock()
	}
}

// retire moves the counters of an idle route that has ended to the sums.
func (r *udpRelay) retire(rt *route) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.ending[rt]; ok {
		delete(r.ending, rt)
		r.retired.include(rt)
	}
}

// include adds a route to sums.
func (s *Stats) include(rt *route) {
	rs := rt.stats()
	s.Up.Add(rs.Up)
	s.Down.Add(rs.Down)
	s.PeakBytes += rs.PeakBytes
	s.PeakDatagrams += rs.PeakDatagrams
	s.RouteSockets.add(rt.udp.socket.Stats())
}

func (r *udpRelay) addr() net.Addr { return r.socket.LocalAddr() }

func (r *udpRelay) stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.retired
	for _, rt := range r.byClient {
		s.include(rt)
	}
	for rt := range r.ending {
		s.include(rt)
	}
	s.Routes = len(r.byClient)
	s.RoutesEver = r.ever
	s.Refused = r.refused
	s.ListenSocket.add(r.socket.Stats())
	return s
}

func (r *udpRelay) routes() []RouteStats {
	r.mu.Lock()
	routes := slices.Collect(maps.Values(r.byClient))
	r.mu.Unlock()
	list := make([]RouteStats, len(routes))
	for i, rt := range routes {
		list[i] = rt.stats()
	}
	slices.SortFunc(list, func(a, b RouteStats) int { return cmp.Compare(a.Index, b.Index) })
	return list
}

func (r *udpRelay) setImpairment(epoch time.Duration, configs [2]netem.Config) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rt := range r.byClient {
		if err := rt.setImpairment(epoch, configs); err != nil {
			return err
		}
	}
	r.impair, r.epoch = configs, epoch
	return nil
}

func (r *udpRelay) reset() int { return 0 }

func (r *udpRelay) close() error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		r.wg.Wait()
		return r.closeErr
	}
	r.closed = true
	close(r.done)
	r.closeErr = errors.Join(r.socket.Close(), r.alarm.Close())
	for _, rt := range r.byClient {
		rt.udp.socket.Close()
	}
	r.mu.Unlock()
	r.wg.Wait()
	for _, h := range r.queue.close() {
		rt := h.flow.route
		rt.mu.Lock()
		h.flow.drop(h)
		rt.mu.Unlock()
	}
	return r.closeErr
}
