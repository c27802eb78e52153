package bench

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/openarkstudio/arknet-go/bench/record"
)

// samplePeriod is the distance of the samples of statistics.
const samplePeriod = 100 * time.Millisecond

// round is one round. Its life: listen, relay, server, dial; warmup; barrier;
// measured phase; drain; close everything; count.
type round struct {
	cfg    *Config
	driver Driver
	can    Capabilities
	pat    *pattern
	number int // from 1
	seed   uint64
	epoch  time.Time

	listener Listener
	path     path
	server   *server
	clients  side
	servers  side
	loops    []workloadClient

	faults     faults
	rtt        *rttRecorder
	tag        atomic.Uint32 // of the current phase
	operations atomic.Uint64 // verified in the current phase
	finished   atomic.Int64  // time of the last operation of the phase
	closing    atomic.Bool   // associations may end from now on

	peaks    peaks
	progress func(phase string, done time.Duration, operations uint64)
}

// peaks are maxima over the samples.
type peaks struct{ sum, client, server uint64 }

// workloadClient is one client of any workload.
type workloadClient interface {
	phase(ctx context.Context, measured bool, deadline int64)
	completions() *completions
}

func (c *echoClient) completions() *completions    { return &c.comp }
func (c *streamClient) completions() *completions  { return &c.comp }
func (c *connectClient) completions() *completions { return &c.comp }

// now is the time since the start of the round in nanoseconds, and never 0.
func (r *round) now() int64 { return int64(time.Since(r.epoch)) + 1 }

// finish moves the end of the phase to t if it is later.
func (r *round) finish(t int64) {
	for {
		old := r.finished.Load()
		if t <= old || r.finished.CompareAndSwap(old, t) {
			return
		}
	}
}

// run runs the round. The error is of the context only: everything else that
// goes wrong is part of the result.
func (r *round) run(ctx context.Context) (record.Round, error) {
	r.epoch = time.Now()
	r.rtt = newRTTRecorder(r.cfg.Clients)
	result := record.Round{Round: r.number, Seed: r.seed, Start: r.epoch.UTC()}
	f := &r.faults

	serving, stop := context.WithCancel(context.Background())
	defer stop()
	up := r.start(ctx, serving)
	if up && r.cfg.Warmup > 0 {
		r.phase(ctx, "warmup", false, r.cfg.Warmup)
		r.settle(ctx)
	}
	result.WarmupOK = up && !f.any()
	if result.WarmupOK {
		r.measure(ctx, &result)
	}
	if r.path != nil {
		end := r.path.Counters()
		f.note(&f.errs.RelayOverflow, end.overflow, "the run is invalid: %s", end.trouble)
		f.note(&f.errs.Relay, end.errors, "the run is invalid: %s", end.trouble)
		result.RelayRoutePeakSum = end.peakSum
	}
	r.stop(stop)

	r.count(&result)
	if result.WarmupOK && result.RoundTrips == 0 {
		f.note(&f.errs.Unfinished, 1, "no operation was completed in the measured phase")
	}
	result.Errors, result.Failure = f.result()
	result.OK = result.Errors.Total() == 0
	return result, ctx.Err()
}

// start brings everything up and reports whether it did.
func (r *round) start(ctx, serving context.Context) bool {
	f := &r.faults
	var err error
	if r.listener, err = r.driver.Listen(ctx, net.JoinHostPort(r.cfg.host(), "0")); err != nil {
		f.note(&f.errs.Server, 1, "server: listen: %v", err)
		return false
	}
	r.path, err = r.cfg.newPath(pathConfig{
		host:       r.cfg.host(),
		server:     r.listener.Addr().String(),
		impairment: r.cfg.Impairment,
		seed:       r.seed,
		manyRoutes: r.cfg.Workload == Connect,
	})
	if err != nil {
		f.note(&f.errs.Relay, 1, "relay: %v", err)
		return false
	}
	r.server = &server{r: r}
	r.server.group.Add(1)
	go r.server.run(serving)

	r.loops = make([]workloadClient, r.cfg.Clients)
	if r.cfg.Workload == Connect {
		for i := range r.loops {
			r.loops[i] = newConnectClient(r, i)
		}
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	var group sync.WaitGroup
	for i := range r.loops {
		group.Go(func() {
			defer f.guard(fmt.Sprintf("client %d", i))
			conn, err := r.driver.Dial(ctx, r.path.Addr().String())
			if err != nil {
				f.note(&f.errs.Dial, 1, "client %d: dial: %v", i, err)
				return
			}
			r.clients.add(conn)
			if r.cfg.Workload == Stream {
				r.loops[i] = newStreamClient(r, i, conn)
			} else {
				r.loops[i] = newEchoClient(r, i, conn)
			}
		})
	}
	group.Wait()
	return !f.any()
}

// phase runs all clients once, and the sampler beside them.
func (r *round) phase(ctx context.Context, name string, measured bool, d time.Duration) {
	r.tag.Store(phaseTag(r.number, measured))
	r.operations.Store(0)
	start := time.Now()
	r.finished.Store(r.now())
	deadline := r.now() + int64(d)
	ctx, cancel := context.WithDeadline(ctx, start.Add(d+drainLimit))
	defer cancel()

	var clients, sampler sync.WaitGroup
	done := make(chan struct{})
	sampler.Go(func() {
		defer r.faults.guard("sampler")
		r.sample(done, name, start, d)
	})
	for i, c := range r.loops {
		clients.Go(func() {
			defer r.faults.guard(fmt.Sprintf("client %d", i))
			c.phase(ctx, measured, deadline)
		})
	}
	clients.Wait()
	close(done)
	sampler.Wait()
}

// sample takes the statistics every samplePeriod and once at the end.
func (r *round) sample(done <-chan struct{}, name string, start time.Time, d time.Duration) {
	tick := time.NewTicker(samplePeriod)
	defer tick.Stop()
	for running := true; running; {
		select {
		case <-tick.C:
		case <-done:
			running = false
		}
		client, server := r.clients.stats().FECRetainedBytes, r.servers.stats().FECRetainedBytes
		r.peaks.sum = max(r.peaks.sum, client+server)
		r.peaks.client = max(r.peaks.client, client)
		r.peaks.server = max(r.peaks.server, server)
		if r.progress != nil {
			shown, elapsed := name, time.Since(start)
			if elapsed > d {
				shown, elapsed = "drain", d
			}
			if name != "warmup" {
				elapsed += r.cfg.Warmup
			}
			r.progress(shown, elapsed, r.operations.Load())
		}
	}
}

// measure runs the measured phase and fills in its figures.
func (r *round) measure(ctx context.Context, result *record.Round) {
	// The heap of the warmup is not charged to the measured phase.
	runtime.GC()
	r.peaks = peaks{}
	before := r.snapshot()
	result.Start = time.Now().UTC()
	start := r.now()
	cpu := processCPU()
	r.phase(ctx, "measured", true, r.cfg.Duration)
	cpu = processCPU() - cpu
	elapsed := time.Duration(r.finished.Load() - start)
	settled := r.settle(ctx)
	r.fill(result, before, r.snapshot(), elapsed, cpu)
	errs, _ := r.faults.result()
	result.Drained = settled && errs.DrainTimeouts+errs.Unfinished+errs.Lost == 0
}

// settle waits until the transport has acknowledged what it accepted, at most
// drainLimit and hardly at all once messages are known to be missing, and reports
// whether it did.
func (r *round) settle(ctx context.Context) bool {
	f := &r.faults
	limit := drainLimit
	if e, _ := f.result(); e.DrainTimeouts+e.Unfinished+e.Disconnects > 0 {
		limit = samplePeriod
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for _, side := range []*side{&r.clients, &r.servers} {
		for _, c := range side.all() {
			d, ok := c.(Drainer)
			if !ok {
				continue
			}
			if err := d.Drain(ctx); err != nil && r.cfg.Workload != Connect {
				f.note(&f.errs.DrainTimeouts, 1, "drain: %v", err)
				return false
			}
		}
	}
	// Drain may return a moment before the last completion is called.
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !r.settled() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false // counted as missing completions
		}
	}
	return true
}

func (r *round) settled() bool {
	for _, c := range r.loops {
		if !c.completions().settled() {
			return false
		}
	}
	return r.server.completions().missing == 0
}

// stop closes everything and waits for all goroutines.
func (r *round) stop(cancel context.CancelFunc) {
	r.closing.Store(true)
	r.clients.removeAll(&r.faults)
	r.servers.removeAll(&r.faults)
	cancel()
	if r.listener != nil {
		_ = r.listener.Close()
	}
	if r.server != nil {
		r.server.group.Wait()
	}
	if r.path != nil {
		if err := r.path.Close(); err != nil {
			r.faults.note(&r.faults.errs.Relay, 1, "relay: close: %v", err)
		}
	}
}

// count adds up the completions of both ends.
func (r *round) count(result *record.Round) {
	var client completionSum
	for _, c := range r.loops {
		if c != nil {
			client.add(c.completions())
		}
	}
	var server completionSum
	if r.server != nil {
		server = r.server.completions()
	}
	f := &r.faults
	if r.cfg.Workload != Connect {
		// There an association is closed as soon as its echo is verified, and
		// the close may overtake the last acknowledgement.
		f.note(&f.errs.CompletionErrorsClient, client.failed, "clients: %d completions report an error", client.failed)
		f.note(&f.errs.CompletionErrorsServer, server.failed, "server: %d completions report an error", server.failed)
	}
	f.note(&f.errs.MissingCompletions, client.missing, "clients: %d of %d completions did not come", client.missing, client.sent)
	f.note(&f.errs.MissingCompletions, server.missing, "server: %d of %d completions did not come", server.missing, server.sent)
	f.note(&f.errs.DuplicateCompletions, client.duplicate, "clients: %d completions came more than once or for refused sends", client.duplicate)
	f.note(&f.errs.DuplicateCompletions, server.duplicate, "server: %d completions came more than once or for refused sends", server.duplicate)
}
