package arknet

import (
	"fmt"
	"time"
)

// Limits bound what a session may hold and how long it may wait. The zero
// value stands for the defaults that each field names; Validate tells the
// allowed ranges.
type Limits struct {
	// SendQueueBytes is the most that waits in the send queue of a session for
	// its first transmission. Default 16 MiB, range 64 KiB to 1 GiB. One
	// message of up to MaxMessage always fits an empty queue.
	SendQueueBytes int
	// SendQueueMessages is the most messages that wait there. Default 1,024,
	// range 1 to 1,048,576.
	SendQueueMessages int
	// MaxMessage is the longest message in bytes that a session sends or
	// accepts; the peer's limit holds as well. Default 16 MiB, range 1 byte to 1 GiB.
	MaxMessage int
	// ReceiveMemory is the most bytes that all sessions of an endpoint hold of
	// what was received and not yet read. Default 256 MiB, range 1 MiB to 1 TiB.
	ReceiveMemory int64
	// Linger is how long Close waits for what was accepted to be
	// acknowledged. Default 5 s, range 1 ms to 1 h; negative means not at all:
	// what is on its way is given up, and the peer is told.
	Linger time.Duration
	// DeadPeerTimeout ends a session with ErrPeerGone when nothing was heard
	// from the peer for so long. Default 30 s, range 100 ms to 24 h; negative
	// means never.
	DeadPeerTimeout time.Duration
	// IdleTimeout ends a session with ErrIdleTimeout when no message was sent
	// or received for so long. Default off, range 100 ms to 24 h.
	IdleTimeout time.Duration
}

// The defaults of Limits.
const (
	DefaultSendQueueBytes    = 16 << 20
	DefaultSendQueueMessages = 1024
	DefaultMaxMessage        = 16 << 20
	DefaultReceiveMemory     = 256 << 20
	DefaultLinger            = 5 * time.Second
	DefaultDeadPeerTimeout   = 30 * time.Second
)

// WithDefaults returns the limits with every zero field replaced by its default.
func (l Limits) WithDefaults() Limits {
	setDefault(&l.SendQueueBytes, DefaultSendQueueBytes)
	setDefault(&l.SendQueueMessages, DefaultSendQueueMessages)
	setDefault(&l.MaxMessage, DefaultMaxMessage)
	setDefault(&l.ReceiveMemory, DefaultReceiveMemory)
	setDefault(&l.Linger, DefaultLinger)
	setDefault(&l.DeadPeerTimeout, DefaultDeadPeerTimeout)
	return l
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Validate reports the first field that is out of its range, by name.
func (l Limits) Validate() error {
	l = l.WithDefaults()
	for _, f := range []struct {
		name     string
		value    int64
		min, max int64
	}{
		{"SendQueueBytes", int64(l.SendQueueBytes), 64 << 10, 1 << 30},
		{"SendQueueMessages", int64(l.SendQueueMessages), 1, 1 << 20},
		{"MaxMessage", int64(l.MaxMessage), 1, 1 << 30},
		{"ReceiveMemory", l.ReceiveMemory, 1 << 20, 1 << 40},
	} {
		if f.value < f.min || f.value > f.max {
			return fmt.Errorf("arknet: Limits.%s is %d, allowed are %d to %d", f.name, f.value, f.min, f.max)
		}
	}
	for _, f := range []struct {
		name     string
		value    time.Duration
		min, max time.Duration
		negative bool
	}{
		{"Linger", l.Linger, time.Millisecond, time.Hour, true},
		{"DeadPeerTimeout", l.DeadPeerTimeout, 100 * time.Millisecond, 24 * time.Hour, true},
		{"IdleTimeout", l.IdleTimeout, 100 * time.Millisecond, 24 * time.Hour, false},
	} {
		off := f.value == 0 || f.negative && f.value < 0
		if !off && (f.value < f.min || f.value > f.max) {
			return fmt.Errorf("arknet: Limits.%s is %v, allowed are %v to %v", f.name, f.value, f.min, f.max)
		}
	}
	return nil
}
