package netem

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

const ms = time.Millisecond

func mustLink(tb testing.TB, cfg Config, seed uint64) *Link {
	tb.Helper()
	l, err := NewLink(cfg, seed)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// run offers n datagrams of size bytes, one every gap, and returns their fates.
func run(tb testing.TB, l *Link, n, size int, gap time.Duration) []Fate {
	tb.Helper()
	fates := make([]Fate, n)
	for i := range fates {
		fates[i] = l.Transmit(time.Duration(i)*gap, size)
	}
	s := l.Stats()
	if !s.Balanced() {
		tb.Fatalf("stats do not balance: %+v", s)
	}
	return fates
}

// near fails unless got lies within sigmas standard deviations of a binomial
// count with n draws of probability p.
func near(t *testing.T, what string, got uint64, n int, p float64) {
	t.Helper()
	want := float64(n) * p
	if dev := math.Abs(float64(got) - want); dev > 4*math.Sqrt(float64(n)*p*(1-p))+1 {
		t.Errorf("%s: %d of %d, want about %.0f", what, got, n, want)
	}
}

func TestZeroConfigIsPerfect(t *testing.T) {
	l := mustLink(t, Config{}, 1)
	for i, f := range run(t, l, 1000, 1200, ms) {
		d := f.Delivered()
		if f.Cause != None || len(d) != 1 || d[0] != (Copy{At: time.Duration(i) * ms}) {
			t.Fatalf("datagram %d: %+v", i, f)
		}
	}
	want := Count{1000, 1_200_000}
	if s := l.Stats(); s.Offered != want || s.Delivered != want || s.Dropped != (Drops{}) {
		t.Errorf("stats %+v", s)
	}
	if c := l.Config(); !c.Perfect() {
		t.Error("the zero config is not perfect")
	}
}

func TestSharesMatchProbabilities(t *testing.T) {
	const n = 200_000
	for _, tt := range []struct {
		name string
		cfg  Config
		get  func(Stats) Count
		of   int
		p    float64
	}{
		{"loss", Config{Loss: 0.05}, func(s Stats) Count { return s.Dropped.Loss }, n, 0.05},
		{"small loss", Config{Loss: 1e-4}, func(s Stats) Count { return s.Dropped.Loss }, n, 1e-4},
		{"duplicate", Config{Duplicate: 0.01}, func(s Stats) Count { return s.Duplicated }, n, 0.01},
		{"late", Config{Late: Late{0.05, 15 * ms}}, func(s Stats) Count { return s.Late }, n, 0.05},
		{"corrupt", Config{Corrupt: 0.2}, func(s Stats) Count { return s.Corrupted }, n, 0.2},
		{"everything lost", Config{Loss: 1}, func(s Stats) Count { return s.Dropped.Loss }, n, 1},
		{"everything duplicated", Config{Duplicate: 1}, func(s Stats) Count { return s.Duplicated }, n, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for seed := range uint64(5) {
				l := mustLink(t, tt.cfg, seed)
				run(t, l, n, 100, ms)
				c := tt.get(l.Stats())
				near(t, fmt.Sprint("seed ", seed), c.Datagrams, tt.of, tt.p)
				if c.Bytes != 100*c.Datagrams {
					t.Errorf("bytes %d for %d datagrams of 100", c.Bytes, c.Datagrams)
				}
			}
		})
	}
}

func TestLossesAreIndependent(t *testing.T) {
	const n, p = 400_000, 0.05
	fates := run(t, mustLink(t, Config{Loss: p}, 7), n, 1, ms)
	pairs := uint64(0)
	for i := 1; i < n; i++ {
		if fates[i].Cause != None && fates[i-1].Cause != None {
			pairs++
		}
	}
	near(t, "consecutive losses", pairs, n, p*p)
}

func TestBurstLosesRunsAtFixedDistance(t *testing.T) {
	phases := map[int]bool{}
	for seed := range uint64(50) {
		fates := run(t, mustLink(t, Config{Burst: Burst{3, 100}}, seed), 1000, 1, ms)
		first := -1
		for i, f := range fates {
			if f.Cause == LostBurst && (i == 0 || fates[i-1].Cause == None) && i > 2 {
				first = i % 100
				break
			}
		}
		lost := 0
		for i, f := range fates {
			if f.Cause == None {
				continue
			}
			lost++
			if d := (i - first + 100) % 100; d > 2 {
				t.Fatalf("seed %d: datagram %d lost, runs begin at %d", seed, i, first)
			}
		}
		if lost != 30 {
			t.Fatalf("seed %d: %d lost, want 30", seed, lost)
		}
		phases[first] = true
	}
	if len(phases) < 20 {
		t.Errorf("only %d phases from 50 seeds", len(phases))
	}
}

func TestSustainedLosesOfTheRest(t *testing.T) {
	cfg, err := Profile("sustained")
	if err != nil {
		t.Fatal(err)
	}
	const n = 200_000
	l := mustLink(t, cfg, 42)
	run(t, l, n, 1200, ms)
	s := l.Stats()
	if s.Dropped.Burst.Datagrams != n*3/100 {
		t.Errorf("burst losses %d", s.Dropped.Burst.Datagrams)
	}
	near(t, "random loss of the rest", s.Dropped.Loss.Datagrams, n*97/100, 0.02)
}

func TestGilbertElliott(t *testing.T) {
	g := GilbertElliott{GoodToBad: 0.01, BadToGood: 0.25, LossGood: 0.001, LossBad: 0.8}
	const n = 400_000
	fates := run(t, mustLink(t, Config{GilbertElliott: g}, 3), n, 1, ms)
	lost, runs := 0, 0
	for i, f := range fates {
		if f.Cause == LostState {
			lost++
			if i == 0 || fates[i-1].Cause == None {
				runs++
			}
		}
	}
	if got := float64(lost) / n; math.Abs(got-g.MeanLoss()) > 0.1*g.MeanLoss() {
		t.Errorf("loss %.4f, want about %.4f", got, g.MeanLoss())
	}
	if mean := float64(lost) / float64(runs); mean < 1.8 {
		t.Errorf("mean loss run %.2f: losses do not cluster", mean)
	}
	simple := GilbertElliott{GoodToBad: 0.02, BadToGood: 0.5}
	l := mustLink(t, Config{GilbertElliott: simple}, 3)
	run(t, l, n, 1, ms)
	if got := float64(l.Stats().Dropped.GilbertElliott.Datagrams) / n; math.Abs(got-0.0385) > 0.003 {
		t.Errorf("simple Gilbert loss %.4f, want about 0.0385", got)
	}
}

func TestDelay(t *testing.T) {
	for i, f := range run(t, mustLink(t, Config{Delay: 10 * ms}, 1), 100, 1, ms) {
		if at := f.Delivered()[0].At; at != time.Duration(i+10)*ms {
			t.Fatalf("datagram %d arrives at %v", i, at)
		}
	}
}

func TestJitter(t *testing.T) {
	for _, reorders := range []bool{false, true} {
		t.Run(fmt.Sprint("reorders=", reorders), func(t *testing.T) {
			cfg := Config{Delay: 10 * ms, Jitter: 5 * ms, JitterReorders: reorders}
			var last, sum time.Duration
			overtaken := 0
			const n = 10_000
			for i, f := range run(t, mustLink(t, cfg, 1), n, 1, ms/10) {
				d := f.Delivered()[0].At
				extra := d - time.Duration(i)*ms/10 - 10*ms
				if extra < 0 || extra > 5*ms {
					t.Fatalf("datagram %d: jitter %v", i, extra)
				}
				sum += extra
				if d < last {
					overtaken++
				}
				last = max(last, d)
			}
			if reorders != (overtaken > 0) {
				t.Errorf("%d datagrams overtaken", overtaken)
			}
			if mean := sum / n; reorders && (mean < 2400*time.Microsecond || mean > 2600*time.Microsecond) {
				t.Errorf("mean jitter %v, want about 2.5 ms", mean)
			}
		})
	}
}

func TestLateReordersAndLosesNothing(t *testing.T) {
	cfg := Config{Delay: 10 * ms, Late: Late{0.5, 15 * ms}}
	l := mustLink(t, cfg, 9)
	var lastOnTime time.Duration
	for i, f := range run(t, l, 10_000, 1, ms) {
		c := f.Delivered()[0]
		want := time.Duration(i+10) * ms
		if c.Late {
			want += 15 * ms
		} else if c.At < lastOnTime {
			t.Fatalf("datagram %d was not late but arrives at %v after one at %v", i, c.At, lastOnTime)
		} else {
			lastOnTime = c.At
		}
		if c.At != want {
			t.Fatalf("datagram %d arrives at %v, want %v", i, c.At, want)
		}
	}
	if s := l.Stats(); s.Delivered.Datagrams != 10_000 || s.Dropped.Total() != (Count{}) {
		t.Errorf("stats %+v", s)
	}
}

func TestDuplicatesDrawTheirOwnLateness(t *testing.T) {
	cfg := Config{Duplicate: 1, Late: Late{0.5, 15 * ms}}
	both, second := 0, 0
	const n = 10_000
	for _, f := range run(t, mustLink(t, cfg, 5), n, 1, ms) {
		d := f.Delivered()
		if len(d) != 2 {
			t.Fatalf("%d copies", len(d))
		}
		if d[1].Late {
			second++
			if d[0].Late {
				both++
			}
		}
	}
	near(t, "late second copies", uint64(second), n, 0.5)
	near(t, "late pairs", uint64(both), n, 0.25)
}

func TestMTU(t *testing.T) {
	l := mustLink(t, Config{MTU: 1200}, 1)
	for size, want := range map[int]Cause{0: None, 1200: None, 1201: LostMTU, 65507: LostMTU} {
		if f := l.Transmit(0, size); f.Cause != want {
			t.Errorf("size %d: cause %v, want %v", size, f.Cause, want)
		}
	}
}

func TestOutages(t *testing.T) {
	cfg := Config{Outages: []Outage{
		{Start: 100 * ms, Duration: 50 * ms},
		{Start: 500 * ms, Duration: 10 * ms, Every: 100 * ms},
	}}
	out := func(at int) bool {
		return at >= 100 && at < 150 || at >= 500 && at%100 < 10
	}
	for i, f := range run(t, mustLink(t, cfg, 1), 2000, 1, ms) {
		if (f.Cause == LostOutage) != out(i) {
			t.Fatalf("at %d ms: cause %v", i, f.Cause)
		}
	}
	if end, ok := cfg.OutageAt(705 * ms); !ok || end != 710*ms {
		t.Errorf("OutageAt(705ms) = %v, %v", end, ok)
	}
}

func TestDamageFlipsExactlySoManyBits(t *testing.T) {
	for _, bits := range []int{0, 1, 3, 64} {
		l := mustLink(t, Config{Corrupt: 1, CorruptBits: bits}, 11)
		twin := mustLink(t, Config{Corrupt: 1, CorruptBits: bits, Delay: ms}, 11)
		for size := 0; size < 40; size++ {
			f, g := l.Transmit(0, size), twin.Transmit(0, size)
			a, b := make([]byte, size), make([]byte, size)
			f.Delivered()[0].Damage(a)
			g.Delivered()[0].Damage(b)
			flipped := 0
			for i := range a {
				for v := a[i]; v != 0; v &= v - 1 {
					flipped++
				}
				if a[i] != b[i] {
					t.Fatal("the same seed damages differently")
				}
			}
			if want := min(max(bits, 1), size*8); flipped != want {
				t.Fatalf("bits %d size %d: %d flipped, want %d", bits, size, flipped, want)
			}
		}
		if s := l.Stats(); s.Corrupted.Datagrams != 39 {
			t.Errorf("%d corrupted, want 39: the empty one cannot be", s.Corrupted.Datagrams)
		}
	}
	whole := []byte{1, 2, 3}
	Copy{}.Damage(whole)
	if whole[0] != 1 || whole[1] != 2 || whole[2] != 3 {
		t.Error("an intact copy was damaged")
	}
}

// Turning one knob must not change what another decides about a datagram.
func TestKnobsDrawFromTheirOwnStreams(t *testing.T) {
	base := Config{
		Loss: 0.1, Burst: Burst{2, 50}, GilbertElliott: GilbertElliott{GoodToBad: 0.02, BadToGood: 0.3},
		Jitter: 3 * ms, JitterReorders: true, Late: Late{0.2, 15 * ms}, Duplicate: 0.1, Corrupt: 0.1,
	}
	const n = 5000
	all := run(t, mustLink(t, base, 77), n, 100, ms)
	causeOf := func(cfg Config) []Fate { return run(t, mustLink(t, cfg, 77), n, 100, ms) }
	for name, got := range map[string][]Fate{
		"loss":            causeOf(Config{Loss: base.Loss}),
		"burst":           causeOf(Config{Burst: base.Burst}),
		"gilbert-elliott": causeOf(Config{GilbertElliott: base.GilbertElliott}),
	} {
		for i := range all {
			if all[i].Cause.String() == name && got[i].Cause == None {
				t.Fatalf("%s alone spares datagram %d, which it drops beside the other knobs", name, i)
			}
		}
	}
	lossless := base
	lossless.Loss, lossless.Burst, lossless.GilbertElliott = 0, Burst{}, GilbertElliott{}
	for i, f := range causeOf(lossless) {
		if all[i].Cause == None && f != all[i] {
			t.Fatalf("datagram %d: %+v without losses, %+v with", i, f, all[i])
		}
	}
}

func TestSameSeedSameDecisions(t *testing.T) {
	cfg, _ := Profile("sustained")
	cfg.Jitter, cfg.Corrupt = ms, 0.01
	a := run(t, mustLink(t, cfg, 42), 20_000, 1200, ms)
	b := run(t, mustLink(t, cfg, 42), 20_000, 1200, 3*ms) // other timing
	c := run(t, mustLink(t, cfg, 43), 20_000, 1200, ms)
	same := 0
	for i := range a {
		if a[i].Cause != b[i].Cause || a[i].n != b[i].n {
			t.Fatalf("datagram %d differs with the timing", i)
		}
		for k, x := range a[i].Delivered() {
			if y := b[i].copies[k]; x.Late != y.Late || x.Corrupted != y.Corrupted || x.damage != y.damage {
				t.Fatalf("datagram %d copy %d differs with the timing", i, k)
			}
		}
		if a[i].Cause == c[i].Cause {
			same++
		}
	}
	if same == len(a) {
		t.Error("another seed makes the same decisions")
	}
}

func TestDeriveSeedGivesDistinctSeeds(t *testing.T) {
	seen := map[uint64]bool{}
	for seed := range uint64(20) {
		for path := range uint64(200) {
			for _, d := range []Direction{Up, Down} {
				seen[DeriveSeed(seed, path, d)] = true
			}
		}
	}
	if len(seen) != 20*200*2 {
		t.Errorf("%d distinct seeds of %d", len(seen), 20*200*2)
	}
}

func TestSetConfigKeepsCountersAndDecisions(t *testing.T) {
	const n = 4000
	lossy := Config{Loss: 0.1}
	plain := run(t, mustLink(t, lossy, 5), n, 10, ms)
	l := mustLink(t, lossy, 5)
	for i := range n {
		switch i {
		case 1000:
			if err := l.SetConfig(0, Config{Duplicate: 0.5}); err != nil {
				t.Fatal(err)
			}
		case 2000:
			if err := l.SetConfig(0, Config{Loss: -1}); err == nil {
				t.Fatal("a negative loss was accepted")
			}
			if err := l.SetConfig(0, lossy); err != nil {
				t.Fatal(err)
			}
		}
		f := l.Transmit(time.Duration(i)*ms, 10)
		if i < 1000 || i >= 2000 {
			if f != plain[i] {
				t.Fatalf("datagram %d: %+v after the change, %+v without", i, f, plain[i])
			}
		} else if f.Cause != None {
			t.Fatalf("datagram %d lost without loss", i)
		}
	}
	s := l.Stats()
	if s.Offered.Datagrams != n || s.Duplicated.Datagrams == 0 || !s.Balanced() {
		t.Errorf("stats %+v", s)
	}
}

func TestSetConfigCountsOutagesFromItsEpoch(t *testing.T) {
	l := mustLink(t, Config{}, 1)
	if err := l.SetConfig(1000*ms, Config{Outages: []Outage{{Start: 10 * ms, Duration: 20 * ms}}}); err != nil {
		t.Fatal(err)
	}
	for at, want := range map[int]Cause{1009: None} {
		if f := l.Transmit(time.Duration(at)*ms, 1); f.Cause != want {
			t.Errorf("at %d ms: %v", at, f.Cause)
		}
	}
	if f := l.Transmit(1010*ms, 1); f.Cause != LostOutage {
		t.Errorf("at 1010 ms: %v", f.Cause)
	}
	if f := l.Transmit(1030*ms, 1); f.Cause != None {
		t.Errorf("at 1030 ms: %v", f.Cause)
	}
}

func TestShorterDelayAtRunTimeKeepsOrder(t *testing.T) {
	l := mustLink(t, Config{Delay: 100 * ms}, 1)
	l.Transmit(0, 1)
	if err := l.SetConfig(0, Config{Delay: 10 * ms}); err != nil {
		t.Fatal(err)
	}
	f := l.Transmit(ms, 1)
	if at := f.Delivered()[0].At; at != 100*ms {
		t.Errorf("arrives at %v, before the earlier one", at)
	}
	f = l.Transmit(200*ms, 1)
	if at := f.Delivered()[0].At; at != 210*ms {
		t.Errorf("arrives at %v, want 210 ms", at)
	}
}

func TestTimeNeverRunsBackwards(t *testing.T) {
	l := mustLink(t, Config{}, 1)
	l.Transmit(10*ms, 1)
	f := l.Transmit(5*ms, 1)
	if at := f.Delivered()[0].At; at != 10*ms {
		t.Errorf("arrives at %v", at)
	}
}

// Any config and any traffic: the books balance, arrivals are not before the
// offer, and without JitterReorders only late copies break the order.
func TestInvariantsHoldForAnyConfig(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		cfg := randomConfig(rng)
		l := mustLink(t, cfg, seed)
		var now, last time.Duration
		for range 2000 {
			now += time.Duration(rng.Int64N(int64(2 * ms)))
			if rng.IntN(500) == 0 {
				cfg = randomConfig(rng)
				if err := l.SetConfig(now, cfg); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
			f := l.Transmit(now, rng.IntN(3000))
			if (f.Cause == None) == (len(f.Delivered()) == 0) {
				t.Fatalf("seed %d: %+v", seed, f)
			}
			for _, c := range f.Delivered() {
				if c.At < now {
					t.Fatalf("seed %d: arrives at %v, offered at %v", seed, c.At, now)
				}
				if !c.Late && !cfg.JitterReorders {
					if c.At < last {
						t.Fatalf("seed %d: %v after %v", seed, c.At, last)
					}
					last = c.At
				}
			}
		}
		if s := l.Stats(); !s.Balanced() || s.Offered.Datagrams != 2000 {
			t.Fatalf("seed %d: %+v", seed, s)
		}
	}
}

func randomConfig(rng *rand.Rand) Config {
	var c Config
	on := func() bool { return rng.IntN(3) == 0 }
	if on() {
		c.Loss = rng.Float64()
	}
	if on() {
		c.Burst.Every = 1 + rng.IntN(100)
		c.Burst.Lose = rng.IntN(c.Burst.Every + 1)
	}
	if on() {
		c.GilbertElliott = GilbertElliott{rng.Float64(), 0.01 + 0.99*rng.Float64(), rng.Float64() / 10, rng.Float64()}
	}
	if on() {
		c.Delay = time.Duration(rng.Int64N(int64(50 * ms)))
	}
	if on() {
		c.Jitter = time.Duration(rng.Int64N(int64(50 * ms)))
		c.JitterReorders = on()
	}
	if on() {
		c.Late = Late{rng.Float64(), time.Duration(rng.Int64N(int64(50 * ms)))}
	}
	if on() {
		c.Duplicate = rng.Float64()
	}
	if on() {
		c.Corrupt, c.CorruptBits = rng.Float64(), rng.IntN(65)
	}
	if on() {
		c.Rate = 1000 + rng.Int64N(1e8)
		c.QueueBytes = rng.IntN(100_000)
		c.QueuePackets = rng.IntN(50)
		c.Police = on()
	}
	if on() {
		c.MTU = rng.IntN(3000)
	}
	for range rng.IntN(3) {
		o := Outage{Start: time.Duration(rng.Int64N(int64(1000 * ms))), Duration: 1 + time.Duration(rng.Int64N(int64(100*ms)))}
		if on() {
			o.Every = o.Duration + 1 + time.Duration(rng.Int64N(int64(1000*ms)))
		}
		c.Outages = append(c.Outages, o)
	}
	return c
}
