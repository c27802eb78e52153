package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/openarkstudio/arknet-go/bench"
)

// tuning is what a driver may know about the load.
type tuning struct {
	// queue bounds the bytes of one association that wait for its transport.
	queue int
	// bulk: one-way goodput. Data waits in front of the transport, not inside
	// it, so that what was accepted is delivered soon after the deadline.
	bulk bool
	// message is the usual size of a message in bytes, which a user knows.
	message int
}

// tuning keeps the queue far above what a closed loop has in flight, so that
// what narrows a rival is its own window, and short where the queue is always
// full.
func (l load) tuning() tuning {
	if l.Workload == bench.Stream {
		return tuning{queue: 64 << 10, bulk: true, message: l.Payload}
	}
	return tuning{queue: 4 << 20, message: l.Payload}
}

const (
	// maxMessage bounds a length read from a peer before memory is taken for it.
	maxMessage = 16 << 20
	// corkLimit bounds what is held back in the hope of more.
	corkLimit = 256 << 10
	// readSize is the room offered to one read of the transport.
	readSize = 64 << 10
)

// A byteStream is a reliable, ordered byte stream of a rival, reduced to what
// framedConn needs. One goroutine at a time reads, one at a time writes.
type byteStream interface {
	// read waits for at least one byte, or for the end of ctx.
	read(ctx context.Context, p []byte) (int, error)
	// readable takes what has arrived without waiting: 0 means nothing now, or
	// that the transport has no such call.
	readable(p []byte) (int, error)
	// offer hands over what the transport takes without waiting and returns how
	// much that was. 0 also stands for a transport that cannot tell. Unless
	// offer took a part, p holds whole frames; so does p of write.
	offer(p []byte) (int, error)
	// write hands over everything, waiting for room.
	write(p []byte) error
	// close ends the association and unblocks read and write.
	close() error
	stats() bench.Stats
	socketBuffers() (read, write int)
}

// framedConn carries messages over a byte stream, each behind its length as an
// unsigned varint (2 bytes for 1,024).
//
// Sends coalesce as they would in a careful user's program: while the reader
// still holds complete messages that arrived together, the answers are
// collected; the stream gets them in one piece before the reader waits again. A
// send with no reader at work goes out at once. No send waits for the stream:
// what it does not take now is finished by a goroutine, and Send blocks only
// when a whole queue waits.
type framedConn struct {
	stream byteStream
	limit  int // bytes in out

	// Reader only.
	in    []byte
	inOff int
	inLen int

	mu      sync.Mutex
	room    sync.Cond
	out     []byte // accepted, not yet given to the stream
	spare   []byte // the other buffer, while out is being written
	corked  bool   // the reader will flush
	writing bool   // somebody is giving bytes to the stream
	err     error  // why nothing can be sent any more

	kick      chan struct{} // wakes the finisher
	closed    chan struct{}
	closeOnce sync.Once
	closeErr  error
	done      sync.WaitGroup
	onClose   func()
}

// newFramedConn takes ownership of the stream. onClose, which may be nil, runs
// once after the stream is closed.
func newFramedConn(s byteStream, t tuning, onClose func()) *framedConn {
	c := &framedConn{
		stream:  s,
		limit:   t.queue,
		in:      make([]byte, readSize),
		kick:    make(chan struct{}, 1),
		closed:  make(chan struct{}),
		onClose: onClose,
	}
	c.room.L = &c.mu
	c.done.Add(1)
	go c.finisher()
	return c
}

// Send implements bench.Conn. done is called before Send returns: these
// transports do not report when the peer has a message.
func (c *framedConn) Send(ctx context.Context, msg []byte, done func(error)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.mu.Lock()
	for c.err == nil && len(c.out) >= c.limit {
		if err := c.waitRoom(ctx); err != nil {
			c.mu.Unlock()
			return err
		}
	}
	return c.appendAndFlush(msg, done)
}

// TrySend implements bench.TrySender.
func (c *framedConn) TrySend(msg []byte, done func(error)) (bool, error) {
	c.mu.Lock()
	if c.err == nil && len(c.out) >= c.limit {
		c.mu.Unlock()
		return false, nil
	}
	if err := c.appendAndFlush(msg, done); err != nil {
		return false, err
	}
	return true, nil
}

// appendAndFlush is entered with c.mu held and releases it.
func (c *framedConn) appendAndFlush(msg []byte, done func(error)) error {
	if c.err != nil {
		err := c.err
		c.mu.Unlock()
		return err
	}
	c.out = binary.AppendUvarint(c.out, uint64(len(msg)))
	c.out = append(c.out, msg...)
	if !c.corked || len(c.out) >= corkLimit {
		c.flushLocked()
	}
	c.mu.Unlock()
	if done != nil {
		done(nil)
	}
	return nil
}

// waitRoom waits for the writer to take bytes or for the end of ctx. c.mu is held.
func (c *framedConn) waitRoom(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		c.mu.Lock()
		c.room.Broadcast()
		c.mu.Unlock()
	})
	c.room.Wait()
	stop()
	return ctx.Err()
}

// flushLocked offers what is queued to the stream from the calling goroutine
// and leaves the rest to the finisher. c.mu is held; it is released while the
// stream is called.
func (c *framedConn) flushLocked() {
	if c.writing || len(c.out) == 0 || c.err != nil {
		return // whoever writes takes what was added before it stops
	}
	c.writing = true
	for len(c.out) > 0 && c.err == nil {
		b := c.takeLocked()
		c.mu.Unlock()
		n, err := c.stream.offer(b)
		c.mu.Lock()
		if err != nil {
			c.failLocked(err)
			break
		}
		if n < len(b) {
			// Put the rest back in front of what has been added since.
			rest := append(b[:0], b[n:]...)
			c.spare = nil
			c.out = append(rest, c.out...)
			select {
			case c.kick <- struct{}{}:
			default:
			}
			return // writing stays set: the finisher has the floor
		}
		c.spare = b[:0]
	}
	c.writing = false
}

// takeLocked exchanges the queue for an empty one and wakes waiting senders.
func (c *framedConn) takeLocked() []byte {
	b := c.out
	c.out, c.spare = c.spare[:0], nil
	c.room.Broadcast()
	return b
}

// finisher writes what the stream would not take at once.
func (c *framedConn) finisher() {
	defer c.done.Done()
	for {
		select {
		case <-c.kick:
		case <-c.closed:
			return
		}
		c.mu.Lock()
		for len(c.out) > 0 && c.err == nil {
			b := c.takeLocked()
			c.mu.Unlock()
			err := c.stream.write(b)
			c.mu.Lock()
			c.spare = b[:0]
			if err != nil {
				c.failLocked(err)
			}
		}
		c.writing = false
		c.mu.Unlock()
	}
}

func (c *framedConn) failLocked(err error) {
	if c.err == nil {
		c.err = c.ended(err)
	}
	c.out = nil
	c.room.Broadcast()
}

// Receive implements bench.Conn.
func (c *framedConn) Receive(ctx context.Context, buf []byte) ([]byte, error) {
	for {
		msg, ok, err := c.next(buf)
		if err != nil {
			return nil, err
		}
		if ok {
			c.setCork(c.another())
			return msg, nil
		}
		c.setCork(false)
		n, err := c.stream.read(ctx, c.space())
		c.inLen += n
		if err != nil && n == 0 {
			if ctxErr := ctx.Err(); ctxErr != nil {
				return nil, ctxErr
			}
			return nil, c.ended(err)
		}
	}
}

// next takes a complete message out of the buffer.
func (c *framedConn) next(buf []byte) (msg []byte, ok bool, err error) {
	body, head, err := c.frame()
	if err != nil || head == 0 {
		return nil, false, err
	}
	start := c.inOff + head
	msg = append(buf[:0], c.in[start:start+body]...)
	c.inOff = start + body
	if c.inOff == c.inLen {
		c.inOff, c.inLen = 0, 0
	}
	return msg, true, nil
}

// frame reports the next complete frame; head is 0 when there is none yet.
func (c *framedConn) frame() (body, head int, err error) {
	size, head := binary.Uvarint(c.in[c.inOff:c.inLen])
	if head < 0 || size > maxMessage {
		return 0, 0, fmt.Errorf("message of %d bytes is over the limit of %d", size, maxMessage)
	}
	if head == 0 || uint64(c.inLen-c.inOff-head) < size {
		return 0, 0, nil
	}
	return int(size), head, nil
}

// another reports whether a complete message is at hand, asking the stream for
// what has arrived when the buffer does not hold one.
func (c *framedConn) another() bool {
	for {
		if _, head, err := c.frame(); err != nil || head > 0 {
			return true
		}
		n, err := c.stream.readable(c.space())
		c.inLen += n
		if n == 0 || err != nil {
			return false
		}
	}
}

// space returns room behind the buffered bytes, moving or growing the buffer.
func (c *framedConn) space() []byte {
	if len(c.in)-c.inLen < readSize/2 {
		pending := c.in[c.inOff:c.inLen]
		if len(pending) > len(c.in)-readSize/2 {
			c.in = append(make([]byte, 0, 2*len(c.in)), pending...)
			c.in = c.in[:cap(c.in)]
		} else {
			copy(c.in, pending)
		}
		c.inOff, c.inLen = 0, len(pending)
	}
	return c.in[c.inLen:]
}

func (c *framedConn) setCork(on bool) {
	c.mu.Lock()
	c.corked = on
	if !on {
		c.flushLocked()
	}
	c.mu.Unlock()
}

// Close implements bench.Conn.
func (c *framedConn) Close() error {
	c.closeOnce.Do(func() {
		c.mu.Lock()
		if c.err == nil {
			c.err = net.ErrClosed
		}
		c.out = nil
		c.room.Broadcast()
		c.mu.Unlock()
		close(c.closed)
		c.closeErr = c.stream.close()
		c.done.Wait()
		if c.onClose != nil {
			c.onClose()
		}
	})
	return c.closeErr
}

// Stats implements bench.StatsReader.
func (c *framedConn) Stats() bench.Stats { return c.stream.stats() }

// SocketBuffers implements bench.BufferReader.
func (c *framedConn) SocketBuffers() (read, write int) { return c.stream.socketBuffers() }

// ended turns a rival's error after our own Close into net.ErrClosed.
func (c *framedConn) ended(err error) error {
	select {
	case <-c.closed:
		if !errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("%w: %w", net.ErrClosed, err)
		}
	default:
	}
	return err
}
