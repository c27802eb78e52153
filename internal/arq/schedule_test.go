package arq

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/openarkstudio/arknet-go/internal/bufpool"
	"github.com/openarkstudio/arknet-go/netem"
)

var (
	scheduleSeed  = flag.Uint64("arq.seed", 0, "run this one random schedule")
	scheduleCount = flag.Uint64("arq.seeds", 400, "how many random schedules to run; an eighth of them under the race detector")
)

// TestRandomSchedules draws paths, configurations and applications from seeds:
// loss, duplicates, reordering, damage, outages, slow readers, half-closes,
// closes and aborts. After every event the state of both sides has to be sound;
// once the path heals everything has to finish.
func TestRandomSchedules(t *testing.T) {
	if *scheduleSeed != 0 {
		runSchedule(t, *scheduleSeed)
		return
	}
	count := *scheduleCount
	if raceEnabled {
		count /= 8
	}
	for seed := range count {
		runSchedule(t, seed+1)
		if t.Failed() {
			return
		}
	}
}

// schedule is one run.
type schedule struct {
	t    *testing.T
	seed uint64
	rng  *rand.Rand
	s    *sim
	side [2]*scheduleSide
	gone bool // somebody closed or aborted
	log  []string
	buf  []byte
}

// scheduleSide is an application: it writes to its peer and checks what comes.
type scheduleSide struct {
	*node
	name    string
	stream  bool
	toWrite int // messages, or stream pieces
	longest int
	written uint64 // messages, or stream bytes, accepted
	read    uint64
	wrote   bool // all
	eof     bool
	lazy    bool // reads when it feels like it
	deaf    bool // reads no more, ever
}

func runSchedule(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0xa4))
	r := &schedule{t: t, seed: seed, rng: rng, s: newSim(t)}
	outstanding := bufpool.Shared().Outstanding()
	faults := r.faults()
	up, down := testLinks(t, faults, seed)
	cc, sc := r.config(1), r.config(2)
	memory := &budget{limit: 1 << 20}
	if rng.IntN(2) == 0 {
		cc.Memory, sc.Memory = memory, memory
	}
	client, server := r.s.pair(cc, sc, up, down)
	r.side[0] = &scheduleSide{node: client, name: "client"}
	r.side[1] = &scheduleSide{node: server, name: "server"}
	for _, x := range r.side {
		r.application(x)
	}
	events := 0
	for i, x := range r.side {
		other := r.side[1-i]
		x.onTurn = func() {
			if events++; events%7 != 0 && x.sentCount > 500 {
				return // the checks walk everything
			}
			err := checkConn(x.c)
			if err == nil {
				err = errors.Join(checkPair(x.c, other.c), checkPair(other.c, x.c))
			}
			if err != nil {
				r.fail("%v", err)
			}
		}
	}
	r.note("%+v", faults)
	r.s.runFor(time.Duration(1+rng.IntN(4)) * time.Second)
	for _, l := range []*netem.Link{up, down} {
		if err := l.SetConfig(time.Duration(r.s.now), netem.Config{Delay: 5 * ms}); err != nil {
			t.Fatal(err)
		}
	}
	r.note("the path heals at %v", time.Duration(r.s.now))
	r.finish()
	for _, x := range r.side {
		if x.c != nil {
			x.c.Discard()
		}
	}
	if memory.held != 0 {
		r.fail("%d bytes of receive memory were not given back", memory.held)
	}
	if n := bufpool.Shared().Outstanding() - outstanding; n != 0 {
		r.fail("%d buffers were not released", n)
	}
}

func (r *schedule) note(format string, args ...any) {
	r.log = append(r.log, fmt.Sprintf(format, args...))
}

func (r *schedule) fail(format string, args ...any) {
	r.t.Helper()
	for _, l := range r.log {
		r.t.Log(l)
	}
	for _, x := range r.side {
		if x != nil && x.c != nil {
			r.t.Logf("%s: state %d, error %v, read %d, written %d, %+v", x.name, x.c.State(), x.c.Err(), x.read, x.written, x.c.Stats())
		}
	}
	r.t.Fatalf("at %v: %s\nreplay: go test ./internal/arq -run TestRandomSchedules -arq.seed %d",
		time.Duration(r.s.now), fmt.Sprintf(format, args...), r.seed)
}

func (r *schedule) must(err error) {
	r.t.Helper()
	if err != nil {
		r.fail("%v", err)
	}
}

// one draws whether something that happens in 1 of n runs happens in this one.
func (r *schedule) one(n int) bool { return r.rng.IntN(n) == 0 }

func (r *schedule) faults() netem.Config {
	rng := r.rng
	c := netem.Config{Delay: time.Duration(rng.IntN(50)) * ms}
	if r.one(4) {
		c.Delay = time.Duration(rng.IntN(300)) * us
	}
	if !r.one(4) {
		c.Loss = rng.Float64() * 0.3
	}
	if r.one(3) {
		c.Duplicate = rng.Float64() * 0.5
	}
	if r.one(3) {
		c.Jitter, c.JitterReorders = time.Duration(rng.IntN(40))*ms, r.one(2)
	}
	if r.one(3) {
		c.Late = netem.Late{Share: rng.Float64() * 0.2, Delay: time.Duration(rng.IntN(100)) * ms}
	}
	if r.one(4) {
		c.Corrupt, c.CorruptBits = rng.Float64()*0.2, 1+rng.IntN(8)
	}
	if r.one(4) {
		c.Burst = netem.Burst{Lose: 1 + rng.IntN(10), Every: 20 + rng.IntN(100)}
	}
	if r.one(3) {
		c.Rate, c.QueueBytes = 100_000+rng.Int64N(20_000_000), 3000+rng.IntN(100_000)
		c.Police = r.one(3)
	}
	for range rng.IntN(3) {
		c.Outages = append(c.Outages, netem.Outage{
			Start:    time.Duration(rng.IntN(3000)) * ms,
			Duration: time.Duration(1+rng.IntN(1000)) * ms,
		})
	}
	return c
}

func (r *schedule) config(id uint32) Config {
	rng := r.rng
	c := testConfig(id)
	c.Linger = time.Hour
	c.DeadPeerTimeout, c.HandshakeTimeout = time.Hour, 20*time.Second
	c.KeepAlive = []time.Duration{0, 100 * ms, 15 * time.Second}[rng.IntN(3)]
	c.MTU = []int{MinMTU, DefaultMTU, 1400, 9000, MaxMTU}[rng.IntN(5)]
	c.RecvWindow = []int{40_000, 200_000, 4 << 20}[rng.IntN(3)]
	c.RecvSymbols = []int{16, 100, 4096}[rng.IntN(3)]
	c.SendWindow = []int{20_000, 512 << 10}[rng.IntN(2)]
	c.SendSymbols = []int{8, 4096}[rng.IntN(2)]
	c.SendQueue = []int{10_000, 1 << 20}[rng.IntN(2)]
	c.SendQueued = []int{1, 20, 1024}[rng.IntN(3)]
	c.MaxMessage = 200_000
	switch rng.IntN(8) {
	case 0:
		c.Congestion = NewNewReno()
	case 1:
		c.Congestion = competitive()
	case 2:
		c.Congestion, c.MaxRate = FixedRate{}, 50_000+rng.IntN(5_000_000)
	case 3:
		c.MinRate = 10_000
	}
	if r.one(2) {
		c.Retransmit = RetransmitCoded
	}
	if r.one(2) {
		c.FEC = FECConfig{
			Policy: FECPolicy(rng.IntN(3)), Scheme: FECScheme(rng.IntN(2)), Gain: 1000, SmallBursts: r.one(2),
			Data: 8, Parity: 2, ParityLimit: 4, GroupWait: 2 * ms, Budget: 100, Retain: 512 << 10,
		}
	}
	return c
}

// pattern is what sides send. It repeats, so that every piece of the endless
// stream is a slice of it.
var pattern = func() []byte {
	b := make([]byte, 1<<18)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range b {
		if b[i] = byte(rng.Uint32()); i >= patternPeriod {
			b[i] = b[i-patternPeriod]
		}
	}
	return b
}()

const patternPeriod = 65_521

// streamAt is what side id sends at an offset of its stream, n bytes of it.
func streamAt(id int, offset uint64, n int) []byte {
	at := (offset + uint64(id)*40_009) % patternPeriod
	return pattern[at:][:n]
}

// messageAt is the body of message i of side id.
func messageAt(id int, i uint64, n int) []byte { return streamAt(id, i*977, n) }

// application lets a side write at random times, and read.
func (r *schedule) application(x *scheduleSide) {
	rng := r.rng
	x.stream = r.one(3)
	x.toWrite = rng.IntN(200)
	x.longest = 1 << rng.IntN(15)
	if r.one(10) {
		x.longest = 150_000
	}
	x.lazy = r.one(3)
	x.readAll = false
	r.note("%s: stream %v, %d pieces up to %d bytes, lazy %v", x.name, x.stream, x.toWrite, x.longest, x.lazy)
	x.onEvents = func(e Events) {
		if e&EventReadable != 0 && !x.lazy {
			r.read(x, 1<<30)
		}
		if e&(EventOpened|EventWritable) != 0 {
			r.write(x)
		}
	}
	var act func()
	act = func() {
		if x.c != nil && x.c.State() == StateDone {
			return
		}
		if x.c != nil {
			r.write(x)
			if x.lazy {
				r.read(x, 1+rng.IntN(20))
			}
			r.misbehave(x)
			x.turn()
		}
		r.s.after(time.Duration(1+rng.IntN(100))*ms, act)
	}
	r.s.after(0, act)
}

// misbehave does what ends sessions, now and then.
func (r *schedule) misbehave(x *scheduleSide) {
	switch r.rng.IntN(3000) {
	case 0:
		r.note("%s aborts at %v", x.name, time.Duration(r.s.now))
		r.gone = true
		x.c.Abort(r.s.now, 5, "because")
	case 1:
		r.note("%s closes at %v", x.name, time.Duration(r.s.now))
		x.wrote = true
		r.gone = true // the other direction is cut
		x.c.Close(r.s.now)
	case 2:
		r.note("%s reads no more at %v", x.name, time.Duration(r.s.now))
		x.deaf = true
		x.c.Discard()
	case 3, 4, 5:
		x.lazy = !x.lazy
	}
}

// write accepts a few pieces, until the queue is full.
func (r *schedule) write(x *scheduleSide) {
	id := 0
	if x == r.side[1] {
		id = 1
	}
	for range 1 + r.rng.IntN(20) {
		if x.wrote || x.c.State() > StateOpen {
			return
		}
		if x.toWrite == 0 {
			x.wrote = true
			r.must(x.c.CloseWrite())
			return
		}
		n := r.rng.IntN(x.longest + 1)
		if x.stream {
			k, err := x.c.WriteStream(r.s.now, streamAt(id, x.written, n))
			if err != nil && (!errors.Is(err, ErrQueueFull) || k != 0) {
				r.fail("%s: stream write: %d, %v", x.name, k, err)
			}
			x.written += uint64(k)
			if k < n {
				return
			}
		} else {
			r.buf = binary.BigEndian.AppendUint64(r.buf[:0], x.written)
			r.buf = append(r.buf, messageAt(id, x.written, n)...)
			seq, err := x.c.Send(r.s.now, r.buf)
			if errors.Is(err, ErrQueueFull) {
				return
			}
			if err != nil || seq != x.written+1 {
				r.fail("%s: message %d was accepted as %d: %v", x.name, x.written+1, seq, err)
			}
			x.written++
		}
		x.toWrite--
	}
}

// read takes up to n pieces and checks them.
func (r *schedule) read(x *scheduleSide, n int) {
	from := r.side[0]
	id := 0
	if x == r.side[0] {
		from, id = r.side[1], 1
	}
	for range n {
		if from.stream {
			var p [3000]byte
			k, err := x.c.ReadStream(p[:1+r.rng.IntN(len(p))])
			r.must(err)
			if k == 0 {
				break
			}
			if !bytes.Equal(p[:k], streamAt(id, x.read, k)) {
				r.fail("%s: the stream is wrong at %d", x.name, x.read)
			}
			x.read += uint64(k)
		} else {
			m, ok, err := x.c.AppendMessage(x.msg[:0])
			r.must(err)
			if !ok {
				break
			}
			x.msg = m
			if len(m) < 8 || binary.BigEndian.Uint64(m) != x.read {
				r.fail("%s: message %d came as a message of %d bytes", x.name, x.read, len(m))
			}
			if !bytes.Equal(m[8:], messageAt(id, x.read, len(m)-8)) {
				r.fail("%s: message %d is wrong", x.name, x.read)
			}
			x.read++
		}
	}
	if x.read > from.written {
		r.fail("%s: read %d of %d", x.name, x.read, from.written)
	}
	if x.c.ReadDone() {
		x.eof = true
	}
	if x.deaf && x.c.Readable() {
		r.fail("%s: something is readable after Discard", x.name)
	}
}

// finish lets everything complete, closes and checks that it ends.
func (r *schedule) finish() {
	r.s.runFor(3 * time.Second)
	for _, x := range r.side {
		if x.c == nil {
			if !r.gone {
				r.fail("the server was never made")
			}
			return
		}
		x.lazy = false
		r.read(x, 1<<30)
		x.turn()
	}
	deadline := r.s.now.add(10 * time.Minute)
	complete := func() bool {
		return r.gone || r.side[0].eof && r.side[1].eof && r.side[0].c.Flushed() && r.side[1].c.Flushed()
	}
	for !complete() {
		if r.s.now > deadline {
			r.fail("not complete after 10 minutes on a clean path")
		}
		r.s.runFor(time.Second)
		for _, x := range r.side {
			r.read(x, 1<<30)
		}
	}
	if !r.gone {
		for i, x := range r.side {
			if from := r.side[1-i]; x.read != from.written && !x.deaf || x.c.Err() != nil {
				r.fail("%s: read %d of %d, error %v", x.name, x.read, from.written, x.c.Err())
			}
		}
	}
	x := r.side[r.rng.IntN(2)]
	x.c.Close(r.s.now)
	x.turn()
	r.s.runFor(30 * time.Second)
	for i, x := range r.side {
		r.read(x, 1<<30)
		if x.c.State() != StateDone || x.c.Err() == nil {
			if r.gone && x.c.cfg.KeepAlive == 0 {
				return // it may not have heard of the end, and does not ask
			}
			r.fail("%s: state %d, error %v after the close", x.name, x.c.State(), x.c.Err())
		}
		from := r.side[1-i]
		left, _ := from.c.Unacknowledged()
		if x.deaf {
			continue
		}
		if !from.stream && x.read+left < from.written {
			r.fail("%s: read %d of %d messages, the other side owns up to %d", x.name, x.read, from.written, left)
		}
		if errors.Is(from.c.Err(), ErrClosed) && x.read != from.written {
			r.fail("%s closed in peace, %d of %d were read", from.name, x.read, from.written)
		}
	}
}
