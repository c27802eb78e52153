package report

import (
	"time"

	"github.com/openarkstudio/arknet-go/bench/record"
)

// sample is a demo of made-up figures: all four policies, three rounds each.
func sample() *Demo {
	return &Demo{
		Command: []string{"arknet", "demo", "--seconds", "2", "--seed", "42"},
		Main:    2,
		Variants: []Variant{
			sampleVariant("off", InkOff, 1500, 92_000, 14, 0, 110),
			sampleVariant("fixed", InkFixed, 2700, 41_000, 30, 260, 12),
			sampleVariant("adaptive", InkAdaptive, 2850, 39_000, 33, 290, 11),
			sampleVariant("fast", InkFast, 3000, 35_000, 49, 455, 4),
		},
	}
}

// sampleVariant has medians rate and p99, and so many bytes of repairs and of
// repetitions per 1,000 bytes of messages.
func sampleVariant(name string, ink Ink, rate, p99, overhead float64, repairs, repeated uint64) Variant {
	start := time.Date(2025, 11, 30, 12, 0, 0, 0, time.UTC)
	r := &record.Result{
		Schema:  record.Schema,
		Command: []string{"arknet", "demo"},
		Config: record.Config{
			Driver: "rudp", Workload: "echo", Payload: 1024, Clients: 4, Window: 16,
			Profile: "random", LossPercent: 5, DelayMS: 10, DuplicatePercent: 1, ReorderPercent: 5, ReorderDelayMS: 15,
			Seconds: 2, Warmup: 1, RoundCount: 3, Seed: 42, AddressFamily: "ipv4",
		},
		Environment: record.Environment{
			Go: "go1.26.8", OS: "linux", Arch: "amd64", Kernel: "6.8.0", CPUModel: "Example CPU @ 3 GHz",
			Cores: 2, MemoryBytes: 8 << 30, GOMAXPROCS: 2, GOGC: 100, Revision: "0123456789abcdef", Start: start, End: start.Add(time.Minute),
		},
	}
	for i := range 3 {
		scale := 1 + 0.05*float64(i-1)
		trips := uint64(rate * scale * 2)
		sent := float64(trips) * 2 * 1024 * (1 + overhead/100)
		r.Rounds = append(r.Rounds, record.Round{
			Round: i + 1, Seed: 42 + uint64(i), Start: start, ElapsedSeconds: 2, WarmupOK: true, OK: true,
			Metrics: record.Metrics{
				RoundTripsPerSecond: rate * scale, RoundTrips: trips, Drained: true,
				RTTP50: 21_000, RTTP95: p99 * 0.66, RTTP99: p99, WireOverheadPercent: overhead, CPUPercent: 20,
				FECRestored: float64(repairs) / 2, ARQRetransmitted: float64(repeated), RealizedLossPercent: 5,
			},
			RTTDistribution: []record.Percentile{
				{Percent: 0, RTT: 20_100}, {Percent: 50, RTT: 21_000}, {Percent: 75, RTT: 22_000}, {Percent: 90, RTT: p99 * 0.64},
				{Percent: 95, RTT: p99 * 0.66}, {Percent: 99, RTT: p99}, {Percent: 99.9, RTT: p99 * 1.4}, {Percent: 100, RTT: p99 * 2},
			},
			Relay: record.Relay{FromClients: 10_000, FromClientsBytes: uint64(sent) / 2, FromServer: 10_000, FromServerBytes: uint64(sent) / 2, LostRandom: 1000, Duplicated: 200, Late: 1000, Routes: 4},
		})
	}
	r.Aggregate()
	line := &Timeline{Name: name, Seconds: 1, Sent: 700, LateRestored: 20, Repeats: 10}
	for i := range 30 {
		loss := Loss{At: float64(i)*33 + 5, Wait: 12 + float64(i%5)*5, Fate: FateRestored}
		if repairs == 0 || i%11 == 10 {
			loss.Fate, loss.Wait = FateRepeated, 40+float64(i%7)*9
		}
		if i == 29 {
			loss = Loss{At: 990, Fate: FateOpen}
		}
		line.Lost = append(line.Lost, loss)
	}
	for i := range int(repairs) {
		line.Repairs = append(line.Repairs, float64(i)*1000/float64(repairs))
	}
	messages := uint64(rate) * 6 * 2 * 1024
	return Variant{
		Name: name, Title: "FEC " + name, About: "What " + name + " does.", Ink: ink,
		Result: r, Wire: Wire{Repairs: messages / 1000 * repairs, Repeated: messages / 1000 * repeated, Acks: messages / 1000},
		Line: line, Command: []string{"arknet", "bench", "rudp", "--fec", name},
	}
}
