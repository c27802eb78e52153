package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/openarkstudio/arknet-go/netem"
)

// dialTimeout bounds the connect to the target.
const dialTimeout = 10 * time.Second

// tcpRelay runs an accept loop, and for each connection two goroutines per
// direction (see stream). Locks: tcpRelay.mu before route.mu before stream.mu.
type tcpRelay struct {
	cfg      Config
	log      *slog.Logger
	start    time.Time
	listener *net.TCPListener
	limits   limits
	ctx      context.Context // ends with the relay
	cancel   context.CancelFunc
	wg       sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	closeErr error
	impair   [2]netem.Config
	epoch    time.Duration
	conns    map[*tcpRoute]struct{}
	ever     uint64
	retired  Stats
	refused  netem.Count
}

// tcpRoute is one connection through the relay.
type tcpRoute struct {
	*route
	relay   *tcpRelay
	streams [2]*stream

	endOnce sync.Once
	client  *net.TCPConn
	target  *net.TCPConn
}

func startTCP(cfg *Config, start time.Time) (engine, error) {
	if _, err := net.ResolveTCPAddr("tcp", cfg.Target); err != nil {
		return nil, fmt.Errorf("relay: Config.Target: %w", err)
	}
	listen, err := net.ResolveTCPAddr("tcp", cfg.listen())
	if err != nil {
		return nil, fmt.Errorf("relay: Config.Listen: %w", err)
	}
	l, err := net.ListenTCP("tcp", listen)
	if err != nil {
		return nil, fmt.Errorf("relay: Config.Listen: %w", err)
	}
	r := &tcpRelay{
		cfg:      *cfg,
		log:      cfg.logger(),
		start:    start,
		listener: l,
		impair:   [2]netem.Config{cfg.Up, cfg.Down},
		conns:    make(map[*tcpRoute]struct{}),
	}
	r.limits.routeBytes = orDefault(cfg.RouteBytes, DefaultRouteBytes)
	r.limits.totalBytes = int64(orDefault(cfg.TotalBytes, DefaultTotalBytes))
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.wg.Go(r.acceptLoop)
	return r, nil
}

func (r *tcpRelay) now() time.Duration { return time.Since(r.start) }

func (r *tcpRelay) acceptLoop() {
	for {
		conn, err := r.listener.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // such as too many open files: let others finish
			r.log.Warn("relay: accept", slog.Any("error", err))
			select {
			case <-time.After(50 * time.Millisecond):
			case <-r.ctx.Done():
			}
			continue
		}
		rt, err := r.open(conn)
		if err != nil {
			r.refuse(conn, err)
			continue
		}
		r.wg.Go(func() { r.serve(rt) })
	}
}

func (r *tcpRelay) refuse(conn *net.TCPConn, err error) {
	r.mu.Lock()
	r.refused.Datagrams++
	r.mu.Unlock()
	r.log.Warn("relay: connection refused", slog.Any("client", conn.RemoteAddr()), slog.Any("error", err))
	resetConn(conn)
}

// open makes a route for a client, without its connection to the target.
func (r *tcpRelay) open(conn *net.TCPConn) (*tcpRoute, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, net.ErrClosed
	}
	if limit := orDefault(r.cfg.MaxRoutes, DefaultMaxRoutes); len(r.conns) >= limit {
		return nil, fmt.Errorf("all %d routes of Config.MaxRoutes are in use", limit)
	}
	var client netip.AddrPort
	if a, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		client = netip.AddrPortFrom(a.AddrPort().Addr().Unmap(), a.AddrPort().Port())
	}
	base, err := newRoute(r.ever, client, r.cfg.Seed, netem.Config{}, netem.Config{}, &r.limits, nil)
	if err != nil {
		return nil, err
	}
	rt := &tcpRoute{route: base, relay: r, client: conn}
	for d := range rt.streams {
		if rt.streams[d], err = newStream(rt, netem.Direction(d)); err == nil {
			err = rt.streams[d].shaper.set(r.epoch, r.impair[d])
		}
		if err != nil {
			rt.streams[0].closeAlarm()
			rt.streams[1].closeAlarm()
			return nil, err
		}
	}
	r.ever++
	r.conns[rt] = struct{}{}
	return rt, nil
}

// serve connects to the target, moves bytes until both directions have ended,
// and retires the route.
func (r *tcpRelay) serve(rt *tcpRoute) {
	defer r.retire(rt)
	ctx, cancel := context.WithTimeout(r.ctx, dialTimeout)
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", r.cfg.Target)
	cancel()
	if err != nil {
		r.log.Warn("relay: dial", slog.Any("target", r.cfg.Target), slog.Any("error", err))
		rt.end(true)
		return
	}
	rt.setTarget(conn.(*net.TCPConn))
	if r.cfg.ResetAfter > 0 {
		t := time.AfterFunc(r.cfg.ResetAfter, func() { rt.end(true) })
		defer t.Stop()
	}
	stop := context.AfterFunc(r.ctx, func() { rt.end(true) })
	defer stop()

	var wg sync.WaitGroup
	for d, s := range rt.streams {
		src, dst := rt.client, rt.target
		if netem.Direction(d) == netem.Down {
			src, dst = dst, src
		}
		wg.Go(func() { s.read(src, dst) })
		wg.Go(func() { s.write(dst) })
	}
	wg.Wait()
	rt.end(false)
	for _, s := range rt.streams {
		s.drain()
	}
}

// setTarget completes the route, or closes the connection if it has ended.
func (rt *tcpRoute) setTarget(conn *net.TCPConn) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.target = conn
	if rt.closed {
		resetConn(conn)
	}
}

// end closes both connections, with a reset or in peace, and everything that
// waits for them.
func (rt *tcpRoute) end(reset bool) {
	rt.endOnce.Do(func() {
		rt.mu.Lock()
		rt.closed = true
		conns := []*net.TCPConn{rt.client, rt.target}
		rt.mu.Unlock()
		for _, c := range conns {
			switch {
			case c == nil:
			case reset:
				resetConn(c)
			default:
				c.Close()
			}
		}
		for _, s := range rt.streams {
			s.end()
		}
	})
}

func (r *tcpRelay) retire(rt *tcpRoute) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, rt)
	r.retired.addRoute(rt.stats())
}

func (s *Stats) addRoute(rs RouteStats) {
	s.Up.Add(rs.Up)
	s.Down.Add(rs.Down)
	s.PeakBytes += rs.PeakBytes
	s.PeakDatagrams += rs.PeakDatagrams
}

func (r *tcpRelay) addr() net.Addr { return r.listener.Addr() }

func (r *tcpRelay) stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.retired
	for rt := range r.conns {
		s.addRoute(rt.stats())
	}
	s.Routes = len(r.conns)
	s.RoutesEver = r.ever
	s.Refused = r.refused
	return s
}

func (r *tcpRelay) routes() []RouteStats {
	var list []RouteStats
	for _, rt := range r.present() {
		list = append(list, rt.stats())
	}
	slices.SortFunc(list, func(a, b RouteStats) int { return cmp.Compare(a.Index, b.Index) })
	return list
}

func (r *tcpRelay) present() []*tcpRoute {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.conns))
}

func (r *tcpRelay) setImpairment(epoch time.Duration, configs [2]netem.Config) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for rt := range r.conns {
		rt.mu.Lock()
		for d, s := range rt.streams {
			if err := s.shaper.set(epoch, configs[d]); err != nil {
				rt.mu.Unlock()
				return err
			}
		}
		rt.mu.Unlock()
	}
	r.impair, r.epoch = configs, epoch
	return nil
}

func (r *tcpRelay) reset() int {
	present := r.present()
	for _, rt := range present {
		rt.end(true)
	}
	return len(present)
}

func (r *tcpRelay) close() error {
	r.mu.Lock()
	if !r.closed {
		r.closed = true
		r.closeErr = r.listener.Close()
		r.cancel()
	}
	r.mu.Unlock()
	r.wg.Wait()
	return r.closeErr
}

// resetConn closes a connection so that its peer sees a reset.
func resetConn(c *net.TCPConn) {
	_ = c.SetLinger(0)
	c.Close()
}
