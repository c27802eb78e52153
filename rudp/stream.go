package rudp

import (
	"context"

	"github.com/openarkstudio/arknet-go/internal/arq"
)

// Read implements net.Conn: it reads bytes of the stream, at least one unless p
// is empty. What does not fit p stays for the next call.
func (c *Conn) Read(p []byte) (n int, err error) {
	err = c.waitToRead(context.Background(), "read", func() (bool, error) {
		n, err = c.core.ReadStream(p)
		return n > 0 || len(p) == 0, err
	})
	return n, err
}

// Write implements net.Conn: it sends the bytes as part of the stream; p is
// copied. It waits for room in the send queue until the write deadline. n tells
// how many bytes were taken and will be delivered, also when an error came after.
func (c *Conn) Write(p []byte) (n int, err error) {
	for {
		err = c.waitToWrite(context.Background(), "write", func(now arq.Time) (int, error) {
			taken, err := c.core.WriteStream(now, p[n:])
			n += taken
			return taken, err
		})
		if err != nil || n == len(p) {
			return n, err
		}
	}
}
