package arq

// NewReno is the loss-based controller of RFC 9002, section 7: slow start,
// additive increase, the window halved once per round trip with losses. It is
// here for comparison and for networks whose policy asks for it: on a path
// that loses datagrams at random it starves.
type NewReno struct {
	window    int64
	threshold int64 // 0 = slow start without an end
	remainder int64
	used      bool
	roundEnd  uint64
	acked     uint64
	inFlight  int64
	recovery  uint64 // acked bytes at which the round of the last cut is over
}

// NewNewReno returns a controller in slow start.
func NewNewReno() *NewReno { return &NewReno{window: initialWindow} }

// Window implements Controller.
func (c *NewReno) Window() int { return int(c.window) }

// Paced implements Controller.
func (c *NewReno) Paced() bool { return true }

// Smooth implements Controller.
func (c *NewReno) Smooth() bool { return false }

// OnSent implements Controller.
func (c *NewReno) OnSent(_ Time, _, inFlight int) {
	c.inFlight = int64(inFlight)
	if c.inFlight*2 > c.window {
		c.used = true
	}
}

// OnAck implements Controller.
func (c *NewReno) OnAck(_ Time, s AckSample) {
	c.acked, c.inFlight = s.Acked, int64(s.InFlight)
	used := c.used || int64(s.InFlight+s.Bytes)*2 > c.window
	if s.Acked >= c.roundEnd {
		c.roundEnd = s.Acked + uint64(s.InFlight)
		c.used = false
	}
	if !used || s.Acked < c.recovery {
		return
	}
	if c.threshold == 0 || c.window < c.threshold {
		c.window = min(c.window+int64(s.Bytes), maximumWindow)
		return
	}
	n := packetSize*int64(s.Bytes) + c.remainder
	c.window = min(c.window+n/c.window, maximumWindow)
	c.remainder = n % c.window
}

// OnLoss implements Controller.
func (c *NewReno) OnLoss(_, _ Time, _ int) {
	if c.acked < c.recovery {
		return
	}
	c.recovery = c.acked + uint64(max(c.inFlight, 1))
	c.window = max(c.window/2, minimumWindow)
	c.threshold = c.window
}

// FixedRate is no congestion control: the rate limit of the Config alone
// bounds what is sent. For links that somebody else has reserved.
type FixedRate struct{}

// Window implements Controller.
func (FixedRate) Window() int { return maximumWindow }

// Paced implements Controller.
func (FixedRate) Paced() bool { return false }

// Smooth implements Controller.
func (FixedRate) Smooth() bool { return false }

// OnSent implements Controller.
func (FixedRate) OnSent(Time, int, int) {}

// OnAck implements Controller.
func (FixedRate) OnAck(Time, AckSample) {}

// OnLoss implements Controller.
func (FixedRate) OnLoss(Time, Time, int) {}
