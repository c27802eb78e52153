package udpio

import (
	"fmt"

	"github.com/openarkstudio/arknet-go/internal/bufpool"
)

// maxUDPPayload is the longest datagram of any IP version without jumbograms:
// 65,535 bytes less the UDP header, rounded up to what the length field holds.
const maxUDPPayload = 65535

// Options configure a [Socket]. The zero value is good for any use.
type Options struct {
	// ReadBuffer and WriteBuffer ask the system for socket buffers of that
	// many bytes; 0 leaves them as they are. What was granted is in [Stats].
	// On Linux the limits net.core.rmem_max and wmem_max are passed where the
	// process may (CAP_NET_ADMIN).
	ReadBuffer, WriteBuffer int

	// MaxDatagram is the longest datagram that is received, in bytes: 1 to
	// 65,535; 0 means 65,535. Longer ones are dropped and counted in
	// Stats.TruncatedIn. A small value makes small receive buffers wherever
	// GRO is off.
	MaxDatagram int

	// DontFragment sets the DF bit (IPv4) and forbids local fragmentation
	// (both families), as path MTU discovery of the transport's own needs it
	// (RFC 8899). Whether it was possible is in Stats.DontFragment.
	DontFragment bool

	// ECN reports the congestion field of received trains in Train.ECN.
	ECN bool

	// NoGSO, NoGRO and NoBatch switch single features of the fast path off:
	// trains as one message on sending, on receiving, and several messages
	// per system call. NoFastPath switches off all of it, the local address
	// of a train included. They change speed, never semantics.
	NoGSO, NoGRO, NoBatch, NoFastPath bool

	// Pool lends the receive buffers; nil means bufpool.Shared().
	Pool *bufpool.Pool
}

func (o *Options) validate() error {
	if o.ReadBuffer < 0 {
		return fmt.Errorf("udpio: Options.ReadBuffer is %d, want 0 or more bytes", o.ReadBuffer)
	}
	if o.WriteBuffer < 0 {
		return fmt.Errorf("udpio: Options.WriteBuffer is %d, want 0 or more bytes", o.WriteBuffer)
	}
	if o.MaxDatagram < 0 || o.MaxDatagram > maxUDPPayload {
		return fmt.Errorf("udpio: Options.MaxDatagram is %d, want 0 (%d) or 1 to %d bytes", o.MaxDatagram, maxUDPPayload, maxUDPPayload)
	}
	return nil
}

func (o *Options) maxDatagram() int {
	if o.MaxDatagram == 0 {
		return maxUDPPayload
	}
	return o.MaxDatagram
}

func (o *Options) pool() *bufpool.Pool {
	if o.Pool == nil {
		return bufpool.Shared()
	}
	return o.Pool
}
