package bench

import (
	"cmp"
	"context"
	"errors"
	"net"
	"time"

	"github.com/openarkstudio/arknet-go"
	"github.com/openarkstudio/arknet-go/rudp"
)

// RUDP returns the driver of package rudp. A nil config stands for its defaults.
func RUDP(cfg *rudp.Config) (Driver, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	d := &rudpDriver{}
	if cfg != nil {
		d.cfg = *cfg
	}
	if d.cfg.Limits.Linger == 0 {
		d.cfg.Limits.Linger = linger
	}
	return d, nil
}

// linger bounds Close. The harness drains before, so that there is nothing to
// wait for unless the round has failed.
const linger = time.Second

type rudpDriver struct {
	cfg rudp.Config
}

func (d *rudpDriver) Name() string { return "rudp" }

func (d *rudpDriver) Capabilities() Capabilities {
	return Capabilities{
		Reliable:    true,
		Ordered:     true,
		Completions: true,
		Handshake:   true,
		MaxMessage:  d.cfg.Limits.WithDefaults().MaxMessage,
	}
}

// Describe returns the effective parameters. Those of a policy that is off, or
// of another scheme, are left out.
func (d *rudpDriver) Describe() map[string]any {
	c, f := &d.cfg, &d.cfg.FEC
	m := map[string]any{
		"mtu":         cmp.Or(c.MTU, rudp.DefaultMTU),
		"send_window": cmp.Or(c.SendWindow, 512<<10),
		"recv_window": cmp.Or(c.RecvWindow, 4<<20),
		"congestion":  cmp.Or(c.Congestion, rudp.CongestionCopa),
		"retransmit":  cmp.Or(c.Retransmit, rudp.RetransmitSingle),
		"fec":         cmp.Or(f.Policy, rudp.FECAdaptive),
		"tls":         false,
	}
	if c.MaxRate > 0 {
		m["max_rate_mbit"] = float64(c.MaxRate) * 8 / 1e6
	}
	if c.MinRate > 0 {
		m["min_rate_mbit"] = float64(c.MinRate) * 8 / 1e6
	}
	if m["fec"] == rudp.FECOff {
		return m
	}
	scheme := cmp.Or(f.Scheme, rudp.FECSliding)
	adaptive := m["fec"] == rudp.FECAdaptive
	budget := 50
	if adaptive && scheme == rudp.FECSliding {
		budget = 100
	}
	m["fec_scheme"] = scheme
	m["fec_parity_budget"] = cmp.Or(f.ParityBudget, budget)
	m["fec_retain_bytes"] = cmp.Or(f.Retain, 512<<10)
	if adaptive {
		m["fec_profile"] = cmp.Or(f.Profile, rudp.FECBalanced)
	} else {
		m["fec_parity"] = cmp.Or(f.Parity, 2)
	}
	if !adaptive || scheme == rudp.FECBlock {
		m["fec_data"] = cmp.Or(f.Data, 8)
	}
	if scheme == rudp.FECBlock {
		m["fec_parity_limit"] = cmp.Or(f.ParityLimit, 4)
		m["fec_group_wait_ms"] = milliseconds(cmp.Or(f.GroupWait, 2*time.Millisecond))
	}
	return m
}

func (d *rudpDriver) Listen(_ context.Context, address string) (Listener, error) {
	l, err := rudp.Listen("udp", address, &d.cfg)
	if err != nil {
		return nil, err
	}
	return &rudpListener{l}, nil
}

func (d *rudpDriver) Dial(ctx context.Context, address string) (Conn, error) {
	c, err := rudp.Dial(ctx, "udp", address, &d.cfg)
	if err != nil {
		return nil, err
	}
	return &rudpConn{c}, nil
}

type rudpListener struct{ l *rudp.Listener }

func (l *rudpListener) Accept(ctx context.Context) (Conn, error) {
	c, err := l.l.AcceptConn(ctx)
	if err != nil {
		return nil, err
	}
	return &rudpConn{c}, nil
}

func (l *rudpListener) Addr() net.Addr { return l.l.Addr() }
func (l *rudpListener) Close() error   { return l.l.Close() }

func (l *rudpListener) SocketBuffers() (read, write int) {
	s := l.l.Stats()
	return s.ReadBuffer, s.WriteBuffer
}

// rudpConn is a session.
type rudpConn struct{ c *rudp.Conn }

func (c *rudpConn) Send(ctx context.Context, msg []byte, done func(error)) error {
	return c.c.SendContext(ctx, msg, done)
}

func (c *rudpConn) TrySend(msg []byte, done func(error)) (bool, error) {
	err := c.c.SendFunc(msg, done)
	if errors.Is(err, arknet.ErrQueueFull) {
		return false, nil
	}
	return err == nil, err
}

func (c *rudpConn) Receive(ctx context.Context, buf []byte) ([]byte, error) {
	return c.c.AppendMessage(ctx, buf[:0])
}

func (c *rudpConn) Drain(ctx context.Context) error { return c.c.Flush(ctx) }
func (c *rudpConn) Close() error                    { return c.c.Close() }

func (c *rudpConn) Stats() Stats {
	s := c.c.Stats()
	return Stats{
		SentDatagrams:     s.DatagramsSent,
		SentBytes:         s.BytesSent,
		ReceivedDatagrams: s.DatagramsReceived,
		ReceivedBytes:     s.BytesReceived,
		Retransmitted:     s.Retransmitted,

		Restored:           s.Repairs.Restored,
		FECRetainedBytes:   uint64(max(s.Repairs.RetainedBytes, 0)),
		ParityMaxPercent:   float64(s.Repairs.MaxRatio) / 10,
		ParityMaxShards:    uint64(max(s.Repairs.MaxGroupParity, 0)),
		ParitySymbols:      s.Repairs.Sent + s.Repairs.BudgetBound,
		BudgetBoundSymbols: s.Repairs.BudgetBound,
		PolicyChanges:      s.Repairs.PolicyChanges,
	}
}

func (c *rudpConn) SocketBuffers() (read, write int) {
	s := c.c.SocketStats()
	return s.ReadBuffer, s.WriteBuffer
}
