package bench

import (
	"math"
	"runtime"
	"time"

	"github.com/openarkstudio/arknet-go/bench/record"
)

// snapshot is the state of all counters at one moment.
type snapshot struct {
	path           pathCounters
	client, server Stats
	completions    uint64
}

func (r *round) snapshot() snapshot {
	s := snapshot{
		path:        r.path.Counters(),
		client:      r.clients.stats(),
		server:      r.servers.stats(),
		completions: r.server.completions().done,
	}
	for _, c := range r.loops {
		s.completions += c.completions().done.Load()
	}
	return s
}

// fill computes the figures of the measured phase.
func (r *round) fill(result *record.Round, before, after snapshot, elapsed, cpu time.Duration) {
	m := &result.Metrics
	result.Relay = after.path.since(before.path)
	result.ElapsedSeconds = round4(elapsed.Seconds())
	m.RoundTrips = r.operations.Load()
	operations := float64(m.RoundTrips)
	if result.ElapsedSeconds <= 0 || operations == 0 {
		return
	}
	m.RoundTripsPerSecond = round4(operations / elapsed.Seconds())
	m.RTTP50, m.RTTP95, m.RTTP99, _ = r.rtt.percentiles()
	result.RTTDistribution = r.rtt.distribution()

	app := operations * float64(r.cfg.payload())
	if r.cfg.Workload != Stream {
		app *= 2 // both directions
	}
	m.GoodputMbit = round4(app * 8 / elapsed.Seconds() / 1e6)
	wire := float64(result.Relay.FromClientsBytes + result.Relay.FromServerBytes)
	m.WireOverheadPercent = round4((wire/app - 1) * 100)

	m.CPUPercent = round4(cpu.Seconds() / elapsed.Seconds() * 100)
	m.MachineSharePercent = round4(m.CPUPercent / float64(runtime.NumCPU()))
	m.CPUPerRoundTrip = round4(cpu.Seconds() * 1e6 / operations)
	m.PeakRSS = peakRSS()

	client, server := after.client.since(before.client), after.server.since(before.server)
	m.FECRestored = round4(float64(client.Restored+server.Restored) * 1000 / operations)
	m.ARQRetransmitted = round4(float64(client.Retransmitted+server.Retransmitted) * 1000 / operations)
	m.FECRetainedPeak = r.peaks.sum
	m.FECRetainedPeakClient = r.peaks.client
	m.FECRetainedPeakServer = r.peaks.server
	m.ParityMaxPercent = round4(max(client.ParityMaxPercent, server.ParityMaxPercent))
	m.ParityMaxShards = max(client.ParityMaxShards, server.ParityMaxShards)
	m.ParityBudgetBoundPercent = share(client.BudgetBoundSymbols+server.BudgetBoundSymbols, client.ParitySymbols+server.ParitySymbols)
	m.PolicyChanges = client.PolicyChanges + server.PolicyChanges

	lost := result.Relay.LostRandom + result.Relay.LostBurst + result.Relay.LostOther + result.Relay.LostQueue
	m.RealizedLossPercent = share(lost, result.Relay.FromClients+result.Relay.FromServer)
	m.SendCompletions = after.completions - before.completions
}

// since returns the counters since an earlier moment; what is no counter stays.
func (s Stats) since(e Stats) Stats {
	s.SentDatagrams -= e.SentDatagrams
	s.SentBytes -= e.SentBytes
	s.ReceivedDatagrams -= e.ReceivedDatagrams
	s.ReceivedBytes -= e.ReceivedBytes
	s.Retransmitted -= e.Retransmitted
	s.Restored -= e.Restored
	s.ParitySymbols -= e.ParitySymbols
	s.BudgetBoundSymbols -= e.BudgetBoundSymbols
	s.PolicyChanges -= e.PolicyChanges
	return s
}

// share is part of whole in percent, 0 when there is no whole.
func share(part, whole uint64) float64 {
	if whole == 0 {
		return 0
	}
	return round4(float64(part) * 100 / float64(whole))
}

// round4 keeps 4 decimals: more would be noise in the records.
func round4(f float64) float64 { return math.Round(f*1e4) / 1e4 }
