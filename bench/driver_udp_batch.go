package bench

import (
	"context"
	"net"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
)

// batchSize is the number of datagrams of one system call.
const batchSize = 64

// RawUDPBatch returns the driver of plain UDP with batched system calls: what
// arrived is read with one recvmmsg, and what was sent meanwhile leaves with one
// sendmmsg before the next read. On systems without these calls it is RawUDP.
func RawUDPBatch() Driver { return rawUDPBatch{} }

type rawUDPBatch struct{ rawUDP }

func (rawUDPBatch) Name() string { return "raw-udp-batch" }

func (d rawUDPBatch) Listen(ctx context.Context, address string) (Listener, error) {
	l, err := d.rawUDP.Listen(ctx, address)
	if err != nil {
		return nil, err
	}
	return &batchListener{Listener: l, raw: l.(*rawListener)}, nil
}

func (d rawUDPBatch) Dial(ctx context.Context, address string) (Conn, error) {
	c, err := d.rawUDP.Dial(ctx, address)
	if err != nil {
		return nil, err
	}
	return newBatchConn(c.(*rawConn)), nil
}

// batchListener gives the one association of a rawListener batches.
type batchListener struct {
	Listener
	raw *rawListener
}

func (l *batchListener) Accept(ctx context.Context) (Conn, error) {
	if _, err := l.Listener.Accept(ctx); err != nil {
		return nil, err
	}
	return newBatchConn(&l.raw.conn), nil
}

func (l *batchListener) SocketBuffers() (read, write int) { return l.raw.SocketBuffers() }

// batcher is what ipv4.PacketConn and ipv6.PacketConn have in common.
type batcher interface {
	ReadBatch(ms []ipv4.Message, flags int) (int, error)
	WriteBatch(ms []ipv4.Message, flags int) (int, error)
}

// batchConn is a UDP socket with batches. Its calls must come from one goroutine,
// as those of the harness do for a Conn with TrySend and for the server.
type batchConn struct {
	raw  *rawConn
	conn batcher

	in       []ipv4.Message
	got, pos int      // messages of the last read, and how many of them were returned
	from     net.Addr // of the message that was returned last
	out      []ipv4.Message
	queued   int
}

func newBatchConn(raw *rawConn) *batchConn {
	c := &batchConn{raw: raw, in: make([]ipv4.Message, batchSize), out: make([]ipv4.Message, batchSize)}
	if local := raw.socket.LocalAddr().(*net.UDPAddr); local.IP.To4() != nil {
		c.conn = ipv4.NewPacketConn(raw.socket)
	} else {
		c.conn = ipv6.NewPacketConn(raw.socket)
	}
	for i := range batchSize {
		c.in[i].Buffers = [][]byte{make([]byte, maxDatagram+1)}
		c.out[i].Buffers = [][]byte{nil}
	}
	return c
}

func (c *batchConn) Send(_ context.Context, msg []byte, done func(error)) error {
	if c.queued == batchSize {
		if err := c.flush(); err != nil {
			return err
		}
	}
	m := &c.out[c.queued]
	m.Buffers[0] = append(m.Buffers[0][:0], msg...)
	m.Addr = nil
	if !c.raw.connected {
		m.Addr = c.from
	}
	c.queued++
	if done != nil {
		done(nil)
	}
	return nil
}

func (c *batchConn) TrySend(msg []byte, done func(error)) (bool, error) {
	err := c.Send(context.Background(), msg, done)
	return err == nil, err
}

func (c *batchConn) flush() error {
	for sent := 0; sent < c.queued; {
		n, err := c.conn.WriteBatch(c.out[sent:c.queued], 0)
		if err != nil {
			return err
		}
		sent += n
	}
	c.queued = 0
	return nil
}

func (c *batchConn) Receive(ctx context.Context, buf []byte) ([]byte, error) {
	if c.pos == c.got {
		if err := c.flush(); err != nil {
			return nil, err
		}
		if err := c.raw.binder.Bind(ctx, c.raw.setDeadline); err != nil {
			return nil, err
		}
		n, err := c.conn.ReadBatch(c.in, 0)
		if err != nil {
			return nil, err
		}
		c.got, c.pos = n, 0
	}
	m := &c.in[c.pos]
	c.pos++
	c.from = m.Addr
	return append(buf[:0], m.Buffers[0][:m.N]...), nil
}

func (c *batchConn) Close() error                     { return c.raw.Close() }
func (c *batchConn) SocketBuffers() (read, write int) { return c.raw.SocketBuffers() }
