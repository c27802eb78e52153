package rudp

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/openarkstudio/arknet-go"
	"github.com/openarkstudio/arknet-go/internal/arq"
)

// DefaultMTU is the default of Config.MTU, in bytes.
const DefaultMTU = arq.DefaultMTU

// Congestion control names of Config.Congestion.
const (
	// CongestionCopa is the default: a delay target after Copa (NSDI 2018). It
	// keeps its rate under random loss and the queue of a full link short, and
	// yields to flows that fill the queue.
	CongestionCopa = "copa"
	// CongestionCopaCompetitive is Copa with its competitive mode, which
	// defends itself against flows that fill the queue, at the price of longer
	// queues.
	CongestionCopaCompetitive = "copa-competitive"
	// CongestionNewReno is the loss-based controller of RFC 9002.
	CongestionNewReno = "newreno"
	// CongestionNone sends at MaxRate, which it requires, whatever the path
	// says. It is for links that are reserved.
	CongestionNone = "none"
)

var congestionNames = []string{CongestionCopa, CongestionCopaCompetitive, CongestionNewReno, CongestionNone}

// Retransmission names of Config.Retransmit.
const (
	// RetransmitSingle sends each lost piece of data again, once per loss.
	RetransmitSingle = "single"
	// RetransmitCoded adds one repair over the lost pieces of each round. It
	// shortens the tail where FEC is off, at the price of bytes.
	RetransmitCoded = "coded"
)

var retransmitNames = []string{RetransmitSingle, RetransmitCoded}

// Config configures a Listener or a dialled Conn. nil and the zero value stand
// for the defaults. A Config is not changed and not kept by Dial and Listen.
type Config struct {
	// MTU is the longest datagram that is sent, UDP payload, in bytes. Default
	// 1,200, which passes every path that carries IPv6; range 576 to 16,384.
	// Datagrams are sent with "don't fragment".
	MTU int
	// SendWindow is the most bytes on their way to the peer. Default 512 KiB,
	// range 16 KiB to 1 GiB. One session needs rate times round trip.
	SendWindow int
	// SendWindowSegments is the most pieces of at most one datagram on their
	// way to the peer. Default 4,096, range 16 to 65,536.
	SendWindowSegments int
	// RecvWindow is the most bytes that are accepted and not read. Default
	// 4 MiB, range 16 KiB to 1 GiB. A message longer than the window is
	// accepted all the same, up to Limits.MaxMessage.
	RecvWindow int
	// RecvWindowSegments is the most pieces accepted ahead of a gap. Default
	// 4,096, range 16 to 65,536.
	RecvWindowSegments int
	// Congestion names the congestion control: "copa" (default),
	// "copa-competitive", "newreno", or "none", which requires MaxRate.
	Congestion string
	// MaxRate is the most bytes per second that a session sends, headers
	// included. 0 means no limit; range 1,000 to 10^11.
	MaxRate int
	// MinRate is a rate in bytes per second that the congestion control does
	// not go below. Default 0; at most 10^11. It is for applications that would
	// rather lose than wait; use it with care.
	MinRate int
	// Retransmit names how losses are repaired: "single" (default) or "coded".
	Retransmit string
	// FEC configures the forward error correction of what this side sends.
	FEC FEC
	// KeepAlive is the quiet time after which a probe keeps the session and
	// the state of middleboxes alive. Default 15 s, range 100 ms to 1 h; negative
	// means off.
	KeepAlive time.Duration
	// HandshakeTimeout bounds the connection attempt. Default 10 s, range
	// 100 ms to 10 min.
	HandshakeTimeout time.Duration
	// Backlog is the most sessions of a Listener that were not accepted yet,
	// half-open ones included. Beyond it first datagrams are dropped and the
	// clients try again. Default 1,024, range 1 to 65,536.
	Backlog int
	// ReadBuffer and WriteBuffer are the sizes asked for the socket's buffers
	// in bytes. Default 4 MiB; the system may grant less. Range 4 KiB to 1 GiB;
	// negative leaves the system's default.
	ReadBuffer, WriteBuffer int
	// Limits bound queues, messages, memory and waiting.
	Limits arknet.Limits
	// Logger takes what happens to sessions, at level Debug. nil means silence.
	Logger *slog.Logger
	// Trace takes every protocol event of every session. It is called with
	// the session locked: it must be quick and not call back. nil means off.
	Trace func(*Conn, TraceEvent)
}

func (c *Config) withDefaults() Config {
	var d Config
	if c != nil {
		d = *c
	}
	setDefault(&d.MTU, arq.DefaultMTU)
	setDefault(&d.SendWindow, 512<<10)
	setDefault(&d.SendWindowSegments, 4096)
	setDefault(&d.RecvWindow, 4<<20)
	setDefault(&d.RecvWindowSegments, 4096)
	setDefault(&d.Congestion, CongestionCopa)
	setDefault(&d.Retransmit, RetransmitSingle)
	setDefault(&d.KeepAlive, 15*time.Second)
	setDefault(&d.HandshakeTimeout, 10*time.Second)
	setDefault(&d.Backlog, 1024)
	setDefault(&d.ReadBuffer, 4<<20)
	setDefault(&d.WriteBuffer, 4<<20)
	d.FEC = d.FEC.withDefaults()
	d.Limits = d.Limits.WithDefaults()
	return d
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Validate reports the first field that is out of its range, by name, or
// contradicts another one. Dial and Listen call it.
func (c *Config) Validate() error {
	d := c.withDefaults()
	const maxRate int64 = 100_000_000_000
	for _, f := range []struct {
		name            string
		value, min, max int64
		zero, negative  bool // allowed as well
	}{
		{"MTU", int64(d.MTU), arq.MinMTU, arq.MaxMTU, false, false},
		{"SendWindow", int64(d.SendWindow), 16 << 10, 1 << 30, false, false},
		{"SendWindowSegments", int64(d.SendWindowSegments), 16, 1 << 16, false, false},
		{"RecvWindow", int64(d.RecvWindow), 16 << 10, 1 << 30, false, false},
		{"RecvWindowSegments", int64(d.RecvWindowSegments), 16, 1 << 16, false, false},
		{"MaxRate", int64(d.MaxRate), 1000, maxRate, true, false},
		{"MinRate", int64(d.MinRate), 1, maxRate, true, false},
		{"Backlog", int64(d.Backlog), 1, 1 << 16, false, false},
		{"ReadBuffer", int64(d.ReadBuffer), 4 << 10, 1 << 30, false, true},
		{"WriteBuffer", int64(d.WriteBuffer), 4 << 10, 1 << 30, false, true},
	} {
		if f.zero && f.value == 0 || f.negative && f.value < 0 {
			continue
		}
		if f.value < f.min || f.value > f.max {
			return fmt.Errorf("rudp: Config.%s is %d, allowed are %d to %d", f.name, f.value, f.min, f.max)
		}
	}
	if d.KeepAlive > 0 && (d.KeepAlive < 100*time.Millisecond || d.KeepAlive > time.Hour) {
		return fmt.Errorf("rudp: Config.KeepAlive is %v, allowed are 100ms to 1h, or negative for off", d.KeepAlive)
	}
	if d.HandshakeTimeout < 100*time.Millisecond || d.HandshakeTimeout > 10*time.Minute {
		return fmt.Errorf("rudp: Config.HandshakeTimeout is %v, allowed are 100ms to 10m", d.HandshakeTimeout)
	}
	if !slices.Contains(congestionNames, d.Congestion) {
		return fmt.Errorf("rudp: Config.Congestion is %q, allowed are %s", d.Congestion, strings.Join(congestionNames, ", "))
	}
	if !slices.Contains(retransmitNames, d.Retransmit) {
		return fmt.Errorf("rudp: Config.Retransmit is %q, allowed are %s", d.Retransmit, strings.Join(retransmitNames, ", "))
	}
	if d.Congestion == CongestionNone && d.MaxRate == 0 {
		return fmt.Errorf("rudp: Config.MaxRate is 0, but Config.Congestion %q requires it (1000 to %d)", CongestionNone, maxRate)
	}
	if d.MaxRate > 0 && d.MinRate > d.MaxRate {
		return fmt.Errorf("rudp: Config.MinRate is %d, above Config.MaxRate of %d", d.MinRate, d.MaxRate)
	}
	if err := d.FEC.validate(); err != nil {
		return err
	}
	return d.Limits.Validate()
}

var coreRetransmit = map[string]arq.Retransmit{
	RetransmitSingle: arq.RetransmitSingle,
	RetransmitCoded:  arq.RetransmitCoded,
}

// controller makes the congestion control of one session.
func (c *Config) controller() arq.Controller {
	switch c.Congestion {
	case CongestionNewReno:
		return arq.NewNewReno()
	case CongestionNone:
		return arq.FixedRate{}
	case CongestionCopaCompetitive:
		cc := arq.NewCopa()
		cc.Competitive = true
		return cc
	}
	return arq.NewCopa()
}

// core is the configuration of the protocol core.
func (c *Config) core() arq.Config {
	return arq.Config{
		MTU:              c.MTU,
		SendWindow:       c.SendWindow,
		SendSymbols:      c.SendWindowSegments,
		RecvWindow:       c.RecvWindow,
		RecvSymbols:      c.RecvWindowSegments,
		SendQueue:        c.Limits.SendQueueBytes,
		SendQueued:       c.Limits.SendQueueMessages,
		MaxMessage:       c.Limits.MaxMessage,
		FEC:              c.FEC.core(),
		Retransmit:       coreRetransmit[c.Retransmit],
		Congestion:       c.controller(),
		MaxRate:          c.MaxRate,
		MinRate:          c.MinRate,
		KeepAlive:        max(c.KeepAlive, 0),
		DeadPeerTimeout:  max(c.Limits.DeadPeerTimeout, 0),
		IdleTimeout:      c.Limits.IdleTimeout,
		HandshakeTimeout: c.HandshakeTimeout,
		Linger:           max(c.Limits.Linger, 0),
	}
}
