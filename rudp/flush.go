package rudp

import (
	"github.com/openarkstudio/arknet-go/internal/arq"
	"github.com/openarkstudio/arknet-go/internal/bufpool"
	"github.com/openarkstudio/arknet-go/internal/udpio"
)

// flushTrains is how many trains one system call takes.
const flushTrains = 8

// flush sends everything that the protocol core has ready. c.mu is held: so
// datagrams leave in the order of their numbers.
func (c *Conn) flush(now arq.Time) {
	buf := bufpool.Get(bufpool.Large)
	defer buf.Release()
	buf.Data = buf.Data[:0]
	for {
		n := 0
		for n < flushTrains {
			start := len(buf.Data)
			room := (cap(buf.Data) - start) / c.ep.cfg.MTU
			if room == 0 {
				break
			}
			out, segment := c.core.AppendDatagrams(now, buf.Data, room)
			if segment == 0 {
				break
			}
			buf.Data = out
			c.trains[n] = udpio.Train{Buf: out[start:], SegSize: segment, Addr: c.remote, Local: c.local}
			n++
		}
		if n == 0 {
			return
		}
		// The only error is a closed socket, which the read loop reports.
		_, _ = c.ep.sock.WriteTrains(c.trains[:n])
		buf.Data = buf.Data[:0]
	}
}
