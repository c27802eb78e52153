package netem

// Cause is the reason why a datagram was dropped.
type Cause uint8

// The causes, in the order of the stages that decide them.
const (
	None       Cause = iota // not dropped
	LostOutage              // offered during an outage
	LostMTU                 // larger than the MTU
	LostBurst               // burst loss
	LostRandom              // independent loss
	LostState               // Gilbert-Elliott loss
	LostQueue               // the queue of the rate limit was full
	numCauses
)

var causeNames = [numCauses]string{"none", "outage", "mtu", "burst", "loss", "gilbert-elliott", "queue"}

// String returns a short lower-case name such as "burst".
func (c Cause) String() string {
	if c < numCauses {
		return causeNames[c]
	}
	return "unknown"
}

// Count is a number of datagrams and their payload bytes.
type Count struct {
	Datagrams uint64 `json:"datagrams"`
	Bytes     uint64 `json:"bytes"`
}

func (c *Count) add(size int) {
	c.Datagrams++
	c.Bytes += uint64(size)
}

// Add adds o to c.
func (c *Count) Add(o Count) {
	c.Datagrams += o.Datagrams
	c.Bytes += o.Bytes
}

// Drops counts dropped datagrams by cause.
type Drops struct {
	Outage         Count `json:"outage"`
	MTU            Count `json:"mtu"`
	Burst          Count `json:"burst"`
	Loss           Count `json:"loss"`
	GilbertElliott Count `json:"gilbert_elliott"`
	Queue          Count `json:"queue"`
}

// Total is the sum over all causes.
func (d *Drops) Total() Count {
	var t Count
	for c := None + 1; c < numCauses; c++ {
		t.Add(*d.of(c))
	}
	return t
}

// Add adds o to d.
func (d *Drops) Add(o Drops) {
	for c := None + 1; c < numCauses; c++ {
		d.of(c).Add(*o.of(c))
	}
}

func (d *Drops) of(c Cause) *Count {
	switch c {
	case LostOutage:
		return &d.Outage
	case LostMTU:
		return &d.MTU
	case LostBurst:
		return &d.Burst
	case LostRandom:
		return &d.Loss
	case LostState:
		return &d.GilbertElliott
	default:
		return &d.Queue
	}
}

// Stats counts what a link did. Offered + Duplicated = Delivered + Dropped holds
// at any time, in datagrams and in bytes. Delivered copies count when their
// arrival is decided, not when it comes.
type Stats struct {
	Offered    Count `json:"offered"`
	Delivered  Count `json:"delivered"`  // copies
	Duplicated Count `json:"duplicated"` // second copies
	Late       Count `json:"late"`       // copies picked by Config.Late
	Corrupted  Count `json:"corrupted"`  // copies with flipped bits
	Dropped    Drops `json:"dropped"`

	// QueuePeakBytes is the most payload that ever waited for the rate limit,
	// the datagram in transmission included.
	QueuePeakBytes uint64 `json:"queue_peak_bytes"`
}

// Add adds o to s; the peak becomes the larger of the two.
func (s *Stats) Add(o Stats) {
	s.Offered.Add(o.Offered)
	s.Delivered.Add(o.Delivered)
	s.Duplicated.Add(o.Duplicated)
	s.Late.Add(o.Late)
	s.Corrupted.Add(o.Corrupted)
	s.Dropped.Add(o.Dropped)
	s.QueuePeakBytes = max(s.QueuePeakBytes, o.QueuePeakBytes)
}

// Balanced reports whether Offered + Duplicated = Delivered + Dropped.
func (s *Stats) Balanced() bool {
	in, out := s.Offered, s.Delivered
	in.Add(s.Duplicated)
	out.Add(s.Dropped.Total())
	return in == out
}
