package rudp_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/openarkstudio/arknet-go/rudp"
)

func TestMessagesOverLoopback(t *testing.T) {
	ctx := t.Context()
	l, err := rudp.Listen("udp", "127.0.0.1:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.AcceptConn(ctx)
		if err != nil {
			return
		}
		for {
			m, err := c.ReadMessage(ctx)
			if err != nil {
				return
			}
			if err := c.WriteMessage(ctx, m); err != nil {
				return
			}
		}
	}()
	c, err := rudp.Dial(ctx, "udp", l.Addr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		want := fmt.Sprint("message ", i)
		if err := c.WriteMessage(ctx, []byte(want)); err != nil {
			t.Fatal(err)
		}
		got, err := c.ReadMessage(ctx)
		if err != nil || string(got) != want {
			t.Fatalf("read %q, %v, want %q", got, err, want)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkEcho is one session with messages in flight over loopback.
func BenchmarkEcho(b *testing.B) {
	for _, window := range []int{1, 16} {
		b.Run(fmt.Sprintf("window=%d", window), func(b *testing.B) {
			ctx := context.Background()
			l, err := rudp.Listen("udp", "127.0.0.1:0", nil)
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			go func() {
				c, err := l.AcceptConn(ctx)
				if err != nil {
					return
				}
				var m []byte
				for {
					if m, err = c.AppendMessage(ctx, m[:0]); err != nil {
						return
					}
					if err := c.WriteMessage(ctx, m); err != nil {
						return
					}
				}
			}()
			c, err := rudp.Dial(ctx, "udp", l.Addr().String(), nil)
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			m := make([]byte, 1024)
			in := 0
			b.SetBytes(2 * 1024)
			b.ReportAllocs()
			for b.Loop() {
				for ; in < window; in++ {
					if err := c.WriteMessage(ctx, m); err != nil {
						b.Fatal(err)
					}
				}
				if m, err = c.AppendMessage(ctx, m[:0]); err != nil {
					b.Fatal(err)
				}
				in--
			}
		})
	}
}
