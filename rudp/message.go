package rudp

import (
	"context"
	"errors"
	"io"
	"net"
	"os"

	"github.com/openarkstudio/arknet-go/internal/arq"
)

// flushBytes is how much is written before a write sends it
// itself, rather than leave it to the next wait or to the flush loop. It is a
// train as the kernel takes it.
const flushBytes = 48 << 10

// WriteMessage sends one message; m is copied. It waits until ctx or the write
// deadline while the send queue holds enough to keep the path busy (256 KiB or
// two congestion windows, at most Limits.SendQueueBytes), so that messages do
// not age there; on an error nothing of m was taken. It returns once the session has taken the message; Flush or SendFunc tell when
// the peer has it.
//
// Errors: arknet.ErrMessageTooLarge, arknet.ErrWrongMode, the reason why the
// session ended, net.ErrClosed, ctx.Err(), os.ErrDeadlineExceeded.
func (c *Conn) WriteMessage(ctx context.Context, m []byte) error {
	return c.SendContext(ctx, m, nil)
}

// SendContext is WriteMessage with a completion: unless it returns an error,
// done is called exactly once, as by SendFunc.
func (c *Conn) SendContext(ctx context.Context, m []byte, done func(error)) error {
	return c.waitToWrite(ctx, "write", func(now arq.Time) (int, error) {
		sequence, err := c.core.SendPatiently(now, m)
		if err == nil && done != nil {
			c.completions.addSequence(sequence, done)
		}
		return len(m), err
	})
}

// SendFunc sends one message without waiting; m is copied. When the send queue
// has no room it returns arknet.ErrQueueFull. Unless it returns an error, done
// is called exactly once: with nil when the peer's transport has acknowledged
// the message, else with the reason why the session ended first. done runs on
// a goroutine of the endpoint, in the order of the sends; it may call the session
// but must not block, so it must not call Close. done may be nil.
func (c *Conn) SendFunc(m []byte, done func(error)) error {
	c.mu.Lock()
	if c.closing {
		c.mu.Unlock()
		return c.opError("write", net.ErrClosed)
	}
	now := c.ep.now()
	sequence, err := c.core.Send(now, m)
	if err != nil {
		c.mu.Unlock()
		return c.writeError(err)
	}
	if done != nil {
		c.completions.addSequence(sequence, done)
	}
	c.wrote(now, len(m))
	return nil
}

// wrote sees to it that what was accepted gets sent: now if it fills a train,
// else when the application waits for something, else by the flush loop. It
// unlocks c.mu.
func (c *Conn) wrote(now arq.Time, n int) {
	if c.unflushed += n; c.unflushed >= flushBytes {
		c.turn(now)
		return
	}
	c.ep.markDirty(c)
	c.mu.Unlock()
}

// waitToWrite calls write until it finds room. write runs with c.mu held.
func (c *Conn) waitToWrite(ctx context.Context, op string, write func(arq.Time) (int, error)) error {
	for {
		if c.writeDeadline.expired() {
			return c.opError(op, os.ErrDeadlineExceeded)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		c.mu.Lock()
		if c.closing {
			c.mu.Unlock()
			signal(c.writable)
			return c.opError(op, net.ErrClosed)
		}
		now := c.ep.now()
		n, err := write(now)
		if err == nil {
			c.wrote(now, n)
			signal(c.writable) // another writer may find room too
			return nil
		}
		if !errors.Is(err, arq.ErrQueueFull) {
			c.mu.Unlock()
			return c.writeError(err)
		}
		c.turn(now) // what is queued has to leave before there is room
		select {
		case <-c.writable:
		case <-c.failed:
		case <-ctx.Done():
		case <-c.writeDeadline.wait():
		}
	}
}

func (c *Conn) writeError(err error) error { return c.opError("write", publicError(err)) }

// ReadMessage returns the next message; the slice is the caller's. It waits
// until ctx or the read deadline ends, which leaves the session usable.
//
// At the end of the peer's direction it returns io.EOF. After the end of the
// session what had arrived is returned first, then the reason: io.EOF when the
// peer closed, an *arknet.CloseError, arknet.ErrPeerGone, and so on. After
// Close it returns an error that matches net.ErrClosed.
func (c *Conn) ReadMessage(ctx context.Context) ([]byte, error) {
	return c.readMessage(ctx, nil, true)
}

// AppendMessage is ReadMessage that appends the message to dst and returns the
// longer slice, so that reading need not allocate. On an error it returns dst.
func (c *Conn) AppendMessage(ctx context.Context, dst []byte) ([]byte, error) {
	return c.readMessage(ctx, dst, false)
}

func (c *Conn) readMessage(ctx context.Context, dst []byte, exact bool) ([]byte, error) {
	err := c.waitToRead(ctx, "read", func() (bool, error) {
		if exact {
			n, ok := c.core.MessageLen()
			if ok {
				dst = make([]byte, 0, n)
			}
		}
		var ok bool
		var err error
		dst, ok, err = c.core.AppendMessage(dst)
		return ok, err
	})
	return dst, err
}

// waitToRead calls read until it has got something. read runs with c.mu held.
func (c *Conn) waitToRead(ctx context.Context, op string, read func() (bool, error)) error {
	for waited := false; ; waited = true {
		c.mu.Lock()
		if waited {
			c.readers--
		}
		if err := c.mayRead(ctx); err != nil {
			c.mu.Unlock()
			return err
		}
		if c.closing {
			c.mu.Unlock()
			signal(c.readable)
			return c.opError(op, net.ErrClosed)
		}
		got, err := read()
		if err != nil {
			c.mu.Unlock()
			return c.opError(op, publicError(err))
		}
		if got {
			more := c.readers > 0 && (c.core.Readable() || c.core.ReadDone())
			if c.core.WindowDue() {
				c.turn(c.ep.now())
			} else {
				c.mu.Unlock()
			}
			if more {
				signal(c.readable) // for another reader
			}
			return nil
		}
		if err := c.endOfRead(); err != nil {
			c.mu.Unlock()
			signal(c.readable)
			return c.opError(op, err)
		}
		c.readers++
		if c.dirty {
			c.turn(c.ep.now()) // the answer will not come before the question left
		} else {
			c.mu.Unlock()
		}
		select {
		case <-c.readable:
		case <-c.failed:
		case <-ctx.Done():
		case <-c.readDeadline.wait():
		}
	}
}

// mayRead tells whether the caller's time is over.
func (c *Conn) mayRead(ctx context.Context) error {
	if c.readDeadline.expired() {
		return c.opError("read", os.ErrDeadlineExceeded)
	}
	return ctx.Err()
}

// endOfRead is why nothing more can be read, nil while something can.
func (c *Conn) endOfRead() error {
	if c.core.ReadDone() {
		return io.EOF
	}
	if err := c.core.Err(); err != nil {
		return readError(err)
	}
	return nil
}
