package relay

import (
	"time"

	"github.com/openarkstudio/arknet-go/netem"
)

// Sizes of one read of a TCP connection. It follows what the peer sends, so that
// an idle connection holds little memory, and stays below a rate's worth of
// chunkTime, so that a slow link does not deliver in lumps.
const (
	minChunk  = 2 << 10
	maxChunk  = 64 << 10
	chunkTime = 10 * time.Millisecond
)

// shaper decides when the bytes of a stream arrive, and how many may be under
// way. It knows the time from its callers only.
type shaper struct {
	link     *netem.Link // delay and rate, without outages and drops
	config   netem.Config
	epoch    time.Duration
	capacity int // bound of Config.RouteBytes
}

func newShaper(link *netem.Link, capacity int) *shaper {
	return &shaper{link: link, capacity: capacity}
}

// set changes the condition; the config passed checkStream.
func (s *shaper) set(epoch time.Duration, cfg netem.Config) error {
	s.epoch, s.config = epoch, cfg
	// The bound of the queue holds the sender back (see limit); nothing is
	// ever dropped.
	queue := 0
	if cfg.Rate > 0 {
		queue = 1 << 30
	}
	return s.link.SetConfig(epoch, netem.Config{Delay: cfg.Delay, Rate: cfg.Rate, QueueBytes: queue})
}

// admit returns when n bytes that came at time now arrive.
func (s *shaper) admit(now time.Duration, n int) time.Duration {
	enters := now
	for range len(s.config.Outages) + 1 {
		end, out := s.config.OutageAt(enters - s.epoch)
		if !out {
			break
		}
		enters = s.epoch + end
	}
	fate := s.link.Transmit(enters, n)
	for _, c := range fate.Delivered() {
		return c.At
	}
	return enters // not reached: the link drops nothing
}

// limit is how many bytes may be under way before the sender is held back: the
// queue of the rate limit, and what the delay holds at that rate.
func (s *shaper) limit() int {
	if s.config.Rate == 0 {
		return s.capacity
	}
	queue := orDefault(s.config.QueueBytes, netem.DefaultQueueBytes)
	flight := s.config.Rate / 8 * int64(s.config.Delay/time.Microsecond) / int64(time.Second/time.Microsecond)
	return int(min(int64(s.capacity), int64(queue)+flight))
}

// chunk is the size of the next read after one that gave n of size bytes.
func (s *shaper) chunk(n, size int) int {
	switch {
	case n == size:
		size *= 4
	case n < size/8:
		size /= 4
	}
	size = min(max(size, minChunk), maxChunk)
	if s.config.Rate > 0 {
		perChunkTime := s.config.Rate / 8 / int64(time.Second/chunkTime)
		size = int(min(int64(size), max(perChunkTime, 512)))
	}
	return size
}
