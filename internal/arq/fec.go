package arq

import (
	"slices"
	"time"

	"github.com/openarkstudio/arknet-go/fec"
	"github.com/openarkstudio/arknet-go/internal/wire"
)

// FECPolicy says how much repair is sent ahead of any loss.
type FECPolicy uint8

// Policies.
const (
	FECOff      FECPolicy = iota
	FECFixed              // a constant ratio
	FECAdaptive           // by the measured miss rate
)

// FECScheme says which symbols a repair covers.
type FECScheme uint8

// Schemes.
const (
	FECSliding FECScheme = iota // a window of symbols that the peer is not known to hold
	FECBlock                    // a closed group of symbols (Reed-Solomon)
)

// FECConfig is one side's configuration of erasure coding. What this side
// sends and what it takes are independent.
type FECConfig struct {
	Policy       FECPolicy
	Scheme       FECScheme
	Gain         int // of the adaptive rule, in 1/1000
	SmallBursts  bool
	Data, Parity int // ratio of the fixed policy; Data is the block group too
	ParityLimit  int // parities per block group
	GroupWait    time.Duration
	Budget       int // repair bytes per data bytes, in percent
	Retain       int // bytes kept per direction; 0 = no repairs are taken either
}

// Constants of the repair schedule.
const (
	// repairQuiet ends a burst: so long without a new symbol.
	repairQuiet = 100 * time.Microsecond
	// repairEvery pays whole repairs owed inside a long burst, repairBurst
	// ends one that does not pause.
	repairEvery = 16
	repairBurst = 64
	// smallBurst: with at most so many symbols unknown a burst gets one repair
	// at least, if SmallBursts is set.
	smallBurst = 4
	// codedRound is how many repairs ride along with one round of coded
	// retransmission.
	codedRound = 1
	// codedSymbols is how far back they may reach, as far as the memory goes.
	codedSymbols = 4096
	// coverGrace is how long beyond a round trip an unjudged repair counts as
	// cover for a missing symbol.
	coverGrace = 5 * time.Millisecond
	// fecSilence without a symbol releases the memory of coding.
	fecSilence = 10 * time.Second
	// budgetMemory is the amount of data over which the budget averages.
	budgetMemory = 256 << 10
)

// repairSender decides when repairs leave, and makes them.
type repairSender struct {
	enc     *fec.Encoder // nil = off
	policy  FECPolicy
	coded   bool // retransmission rounds get a repair
	widest  int  // window that the peer takes, in symbols
	number  uint64
	debt    int64 // repairs owed, in 1/missRateOne
	burst   int   // symbols since the last pause
	since   int   // symbols since debt was last paid
	paid    int   // repairs of this burst
	flushAt Time  // end of the burst, never = no burst
	unknown int64 // average of symbols in flight, in 1/256

	owed  int           // repairs to send now
	first wire.SymbolID // their window, span 0 = sliding as of the sending
	span  int
	index int  // of the next parity of a block group
	again bool // they guard a round of retransmissions

	group      wire.SymbolID // block: first symbol of the open group
	groupCount int

	sourceBytes int64 // recent, for the budget
	repairBytes int64
	live        []wire.PacketNumber // repairs whose fate may be open, ascending
	releaseAt   Time                // end of a long silence, never = nothing kept
	stats       RepairStats
	lastRatio   int64
}

// RepairStats tell what repairs cost and what they did. Received is the sum of
// Used, Useless, Late, Rejected, Evicted and Held.
type RepairStats struct {
	Sent           uint64 // repairs sent ahead of a loss
	SentCoded      uint64 // repairs sent with a retransmission round
	BytesSent      uint64 // coded bytes of both
	BudgetBound    uint64 // repairs that the parity budget forbade
	WindowBound    uint64 // repairs that the congestion window forbade
	MaxRatio       int    // largest repairs per 1,000 symbols that the policy asked for
	MaxGroupParity int    // most parities of one block group
	PolicyChanges  uint64 // times the adaptive rate moved by more than an eighth

	Received uint64 // repairs of the peer
	Used     uint64 // that restored a symbol
	Useless  uint64 // that told nothing new
	Late     uint64 // for symbols that were all held, or no longer kept
	Rejected uint64 // wrong window, length or checksum, or over a limit
	Evicted  uint64 // dropped unsolved at a limit
	Held     uint64 // waiting for more
	Restored uint64 // symbols restored

	MemoryBound uint64 // times that the shared memory of coding had no more

	RetainedBytes     int // held for coding now, both directions
	RetainedPeakBytes int
}

// startCoding sets both directions up once the peer's parameters are known.
func (c *Conn) startCoding() {
	c.repairs.releaseAt, c.restorer.releaseAt = never, never
	c.startRepairs()
	c.startRestorer()
}

// startRepairs sets the sending side up once the peer's parameters are known.
func (c *Conn) startRepairs() {
	r := &c.repairs
	cfg := &c.cfg.FEC
	r.policy = cfg.Policy
	// Repairs that are sent anyway guard retransmissions as well.
	r.coded = c.cfg.Retransmit == RetransmitCoded && r.policy == FECOff
	r.widest = int(min(c.peer.MaxRepairSpan, wire.MaxRepairSpan))
	if r.policy == FECOff && !r.coded || r.widest == 0 || cfg.Retain == 0 {
		r.policy, r.coded = FECOff, false
		return
	}
	symbols := 2 * wire.MaxRepairSpan
	if r.coded {
		symbols = codedSymbols
	}
	enc, err := fec.NewEncoder(fec.Config{
		Epoch: c.repairEpoch(c.client),
		Limits: fec.Limits{
			SymbolBytes: c.send.payload,
			Span:        r.widest,
			Symbols:     symbols,
			Bytes:       max(cfg.Retain, 32<<10, 4*c.send.payload),
		},
	})
	if err != nil {
		panic("BUG: encoder limits: " + err.Error())
	}
	r.enc = enc
	r.unknown = 256
	r.lastRatio = c.repairRatio()
}

// repairEpoch keeps repairs of other sessions, and of the other direction, from
// ever restoring anything.
func (c *Conn) repairEpoch(client bool) uint64 {
	e := uint64(c.key) << 1
	if client {
		e |= 1
	}
	return e
}

// sourceSent takes a symbol that left for the first time.
func (c *Conn) sourceSent(now Time, id wire.SymbolID, body []byte) {
	r := &c.repairs
	if r.enc == nil {
		return
	}
	if err := r.enc.Add(uint64(id), body); err != nil {
		panic("BUG: symbol does not fit the encoder: " + err.Error())
	}
	r.releaseAt = now.add(fecSilence)
	c.noteRetained()
	r.sourceBytes += int64(len(body))
	if r.sourceBytes > budgetMemory {
		r.sourceBytes /= 2
		r.repairBytes /= 2
	}
	if r.policy == FECOff {
		return
	}
	r.unknown += (int64(c.send.unknownCount)*256 - r.unknown) / 64
	ratio := c.repairRatio()
	r.noteRatio(ratio)
	r.debt += ratio
	r.burst++
	r.since++
	if c.cfg.FEC.Scheme == FECBlock {
		c.groupSource(now, id)
		return
	}
	if r.since >= repairEvery && r.debt >= missRateOne {
		r.since = 0
		c.pay(int(r.debt / missRateOne))
	}
	if r.debt > missRateOne/100 || c.cfg.FEC.SmallBursts {
		// Only a burst that will be paid for has an end to wait for: on a clean
		// path most are not.
		r.flushAt = now.add(repairQuiet)
	}
	if r.burst >= repairBurst {
		c.endBurst()
	}
}

// advance lets the encoder forget what the peer holds.
func (r *repairSender) advance(q *sendQueue) {
	if r.enc != nil {
		r.enc.Advance(uint64(q.base))
	}
}

// groupSource adds the symbol to the open block group.
func (c *Conn) groupSource(now Time, id wire.SymbolID) {
	r := &c.repairs
	if r.groupCount == 0 {
		r.group = id
		r.flushAt = now.add(c.cfg.FEC.GroupWait)
	}
	r.groupCount++
	if r.groupCount >= min(c.cfg.FEC.Data, r.widest) {
		c.endBurst()
	}
}

// endBurst pays the debt to the last fraction, so that it may go below zero:
// rounding up at every small burst would cost more than carrying the rest over.
// A block group is closed by it. It never meets repairs of another group that
// still wait: those leave before the next new symbol does.
func (c *Conn) endBurst() {
	r := &c.repairs
	r.flushAt = never
	n := 0
	if r.debt > missRateOne/100 {
		n = int((r.debt + missRateOne - 1 - missRateOne/100) / missRateOne)
	}
	if c.cfg.FEC.Scheme == FECBlock {
		n = min(n, c.cfg.FEC.ParityLimit)
		r.first, r.span, r.index = r.group, r.groupCount, 0
		r.groupCount = 0
		r.stats.MaxGroupParity = max(r.stats.MaxGroupParity, n)
	} else if c.cfg.FEC.SmallBursts && c.send.unknownCount <= smallBurst && c.send.unsent == c.send.next {
		// With more data waiting it is the window that is small, not the burst.
		n = max(n, 1-r.paid)
	}
	c.pay(n)
	// A burst that got more than it was owed does not live on credit for long,
	// and what the limit of a group forbids is not owed to the next ones.
	r.debt = min(max(r.debt, -missRateOne), missRateOne)
	r.burst, r.since, r.paid = 0, 0, 0
}

// pay turns debt into repairs to send, as far as the parity budget goes.
func (c *Conn) pay(n int) {
	if n <= 0 {
		return
	}
	r := &c.repairs
	r.debt -= int64(n) * missRateOne
	size := int64(c.repairSize())
	for range n {
		if (r.repairBytes+int64(r.owed+1)*size)*100 > r.sourceBytes*int64(c.cfg.FEC.Budget)+size*100/2 {
			r.stats.BudgetBound++
			continue
		}
		r.paid++
		r.owed++
	}
}

// repairSize is the size of the next repair without its own headers, which the
// budget does not count.
func (c *Conn) repairSize() int {
	rep, ok := c.nextRepair()
	if !ok {
		return 0
	}
	n, err := c.repairs.enc.PayloadBytes(rep)
	if err != nil {
		return 0
	}
	return n - fec.Overhead
}

// nextRepair names the next repair: over the symbols of the window, or of the
// closed group, that the peer is not known to hold; the latest ones if they are
// many. What was dropped at the limit of memory is left out.
func (c *Conn) nextRepair() (rep fec.Repair, ok bool) {
	r := &c.repairs
	have, n := r.enc.Window()
	from := max(c.send.firstUnknown(), wire.SymbolID(have))
	end := min(c.send.unsent, wire.SymbolID(have)+wire.SymbolID(n))
	if r.span > 0 {
		from = max(from, r.first)
		end = min(end, r.first+wire.SymbolID(r.span))
	}
	if from >= end {
		return rep, false
	}
	if end-from > wire.SymbolID(r.widest) {
		from = end - wire.SymbolID(r.widest)
	}
	if r.span > 0 && !r.again {
		return fec.Block(uint64(from), int(end-from), r.index), true
	}
	return fec.Sliding(uint64(from), int(end-from), r.number), true
}

// dropOwed gives up the repairs that wait.
func (r *repairSender) dropOwed() { r.owed, r.span, r.again = 0, 0, false }

// appendRepair appends the next repair that is owed. Repairs live inside the
// congestion window: on a full link they fade out by themselves.
func (c *Conn) appendRepair(now Time, b []byte, limit int) ([]byte, outcome) {
	r := &c.repairs
	rep, ok := c.nextRepair()
	if !ok {
		r.dropOwed()
		return b, nothing
	}
	n, err := r.enc.PayloadBytes(rep)
	if err != nil {
		panic("BUG: repair over symbols that are not kept: " + err.Error())
	}
	ack := c.ackBlock(now, dataAckRanges)
	size := wire.ShortHeaderLen + wire.RepairHeaderLen + n + wire.ChecksumLen
	if size+len(ack) > c.cfg.MTU {
		ack = c.shorterAck(now, c.cfg.MTU-size)
	}
	size += len(ack)
	if !c.windowOpen(size) {
		r.stats.WindowBound += uint64(r.owed)
		r.dropOwed()
		return b, nothing
	}
	if limit > 0 && size > limit {
		return b, nextTrain
	}
	if !c.maySend(now, size) {
		return b, nothing
	}
	start := len(b)
	b = c.appendShortHeader(b, wire.Short{Ack: len(ack) > 0, Payload: wire.PayloadRepair})
	b = append(b, ack...)
	b = wire.AppendRepair(b, wire.Repair{First: wire.Truncate24(rep.First), Span: rep.Span, Seed: rep.Seed})
	if b, err = r.enc.AppendRepair(b, rep); err != nil {
		panic("BUG: repair was measured and cannot be made: " + err.Error())
	}
	b = wire.AppendChecksum(b, start, c.key)
	r.owed--
	r.number++
	r.index++
	r.stats.BytesSent += uint64(n)
	if r.again {
		r.stats.SentCoded++
	} else {
		r.stats.Sent++
		r.repairBytes += int64(n - fec.Overhead)
	}
	if r.owed == 0 {
		r.dropOwed()
	}
	c.noteRetained()
	c.watchRepair(c.sent.next)
	c.packetSent(now, b[start:], sentPacket{
		payload: wire.PayloadRepair, symbol: wire.SymbolID(rep.First), span: uint8(rep.Span),
	})
	c.ackTold(now, len(ack) > 0)
	return b, appended
}

// recoverLosses grants retransmission to missing symbols: to all of them, less
// what repairs on their way and equations that the peer holds will restore.
// What it held a while ago says little by now, so timeouts count none.
func (c *Conn) recoverLosses(now Time, equations int) {
	missing, first, last := c.send.ungranted()
	if missing == 0 {
		return
	}
	r := &c.repairs
	if r.enc == nil {
		c.send.grant(missing)
		return
	}
	need := missing - min(equations, missing-1)
	if r.policy != FECOff {
		need -= c.coverOf(now, first)
	}
	if need <= 0 {
		return
	}
	c.send.grant(need)
	if !r.coded || r.owed > 0 {
		return
	}
	// One repair over the round guards its retransmissions.
	r.first, r.span = first, int(min(last+1-first, wire.SymbolID(r.widest)))
	r.owed, r.again = codedRound, true
}

// watchRepair notes a repair that leaves, and forgets those whose fate is known.
func (c *Conn) watchRepair(pn wire.PacketNumber) {
	r := &c.repairs
	if r.policy == FECOff {
		return // nobody asks
	}
	if len(r.live) == cap(r.live) {
		settled := 0
		for _, pn := range r.live {
			if !c.repairSettled(pn) {
				break
			}
			settled++
		}
		r.live = slices.Delete(r.live, 0, settled)
	}
	r.live = append(r.live, pn)
}

func (c *Conn) repairSettled(pn wire.PacketNumber) bool {
	return pn < c.sent.base || c.sent.at(pn).resolved()
}

// coverOf counts the repairs on their way that cover the symbol.
func (c *Conn) coverOf(now Time, id wire.SymbolID) int {
	r := &c.repairs
	n, kept := 0, r.live[:0]
	since := now.add(-(c.rtt.smoothed + coverGrace))
	for _, pn := range r.live {
		if c.repairSettled(pn) {
			continue
		}
		kept = append(kept, pn)
		p := c.sent.at(pn)
		if p.symbol <= id && id < p.symbol+wire.SymbolID(p.span) && p.sent >= since {
			n++
		}
	}
	r.live = kept
	return n
}

// repairDeadline is when repairTimeout has something to do.
func (c *Conn) repairDeadline() Time {
	return min(c.repairs.flushAt, c.repairs.releaseAt, c.restorer.releaseAt)
}

// repairTimeout ends a burst whose quiet time is over, and gives the memory of
// coding back after a long silence; the state that a later burst needs stays.
func (c *Conn) repairTimeout(now Time) {
	r, d := &c.repairs, &c.restorer
	if now >= r.flushAt {
		c.endBurst()
	}
	if now >= r.releaseAt {
		r.releaseAt = never
		if c.send.unknownCount > 0 {
			r.releaseAt = now.add(fecSilence)
		} else {
			r.enc.Release()
			r.live = nil
			c.noteRetained()
		}
	}
	if now >= d.releaseAt {
		d.releaseAt = never
		d.dec.Release()
		c.noteRetained()
	}
}
