package netem

import (
	"math/bits"
	"time"
)

// bottleneck is a transmitter of fixed rate behind a drop-tail queue. It holds no
// datagrams, only the time at which it will be idle.
type bottleneck struct {
	rate       uint64 // bit/s; 0 means no limit
	police     bool
	limitBytes uint64 // 0 means no bound
	limitCount int    // 0 means no bound

	idleAt    time.Duration
	remainder uint64 // of the last division, in bits x 1e9, so that long runs keep the exact rate

	departs []time.Duration // ring of departure times, only with limitCount
	head, n int
}

func (q *bottleneck) configure(c *Config) {
	q.rate = uint64(c.Rate)
	q.police = c.Police
	q.limitBytes = uint64(c.QueueBytes)
	if c.QueueBytes == 0 && c.QueuePackets == 0 {
		q.limitBytes = DefaultQueueBytes
	}
	q.remainder = 0
	if q.limitCount = c.QueuePackets; q.limitCount == 0 {
		q.departs, q.head, q.n = nil, 0, 0
		return
	}
	// Keep those that still wait. With a smaller limit the oldest are
	// forgotten, which lets the queue look shorter for one drain.
	old := *q
	q.departs, q.head, q.n = make([]time.Duration, q.limitCount), 0, 0
	for i := max(0, old.n-q.limitCount); i < old.n; i++ {
		q.departs[q.n] = old.departs[(old.head+i)%len(old.departs)]
		q.n++
	}
}

// backlog is the payload that is not yet transmitted, in bytes, rounded up.
func (q *bottleneck) backlog(now time.Duration) uint64 {
	if q.idleAt <= now {
		return 0
	}
	hi, lo := bits.Mul64(uint64(q.idleAt-now), q.rate)
	const perByte = 8_000_000_000
	if hi >= perByte {
		return 1 << 62
	}
	quo, rem := bits.Div64(hi, lo, perByte)
	if rem > 0 {
		quo++
	}
	return quo
}

// pass sends size bytes through and returns when the last bit has left; ok is
// false when the queue is full.
func (q *bottleneck) pass(now time.Duration, size int) (leaves time.Duration, waiting uint64, ok bool) {
	for q.n > 0 && q.departs[q.head] <= now {
		q.head = (q.head + 1) % len(q.departs)
		q.n--
	}
	waiting = q.backlog(now)
	if q.limitBytes > 0 && waiting > 0 && waiting+uint64(size) > q.limitBytes {
		return 0, waiting, false
	}
	if q.limitCount > 0 && q.n >= q.limitCount {
		return 0, waiting, false
	}
	if q.idleAt <= now {
		q.idleAt = now
		q.remainder = 0
	}
	work := uint64(size)*8_000_000_000 + q.remainder
	q.idleAt += time.Duration(work / q.rate)
	q.remainder = work % q.rate
	if q.limitCount > 0 {
		q.departs[(q.head+q.n)%len(q.departs)] = q.idleAt
		q.n++
	}
	waiting += uint64(size)
	if q.police {
		return now, waiting, true
	}
	return q.idleAt, waiting, true
}
