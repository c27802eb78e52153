package rudp_test

import (
	"context"
	"net"
	"testing"
	"time"

	"golang.org/x/net/nettest"

	"github.com/openarkstudio/arknet-go/rudp"
)

// TestConn runs the conformance suite of golang.org/x/net over loopback.
func TestConn(t *testing.T) {
	nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
		l, err := rudp.Listen("udp", "127.0.0.1:0", nil)
		if err != nil {
			return nil, nil, nil, err
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		c1, err = rudp.Dial(ctx, "udp", l.Addr().String(), nil)
		if err != nil {
			return nil, nil, nil, err
		}
		c2, err = l.AcceptConn(ctx)
		if err != nil {
			return nil, nil, nil, err
		}
		stop = func() {
			// Closed conns report that; the suite does not look.
			_ = c1.Close()
			_ = c2.Close()
			_ = l.Close()
		}
		return c1, c2, stop, nil
	})
}
