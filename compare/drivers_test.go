package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/openarkstudio/arknet-go/bench"
)

// testLimit ends a test that hangs; nothing is asserted about time.
const testLimit = 60 * time.Second

// rivals are the peers whose drivers live here.
func rivals() []peer {
	return slices.DeleteFunc(peers(), func(p peer) bool { return p.ours || slices.Contains(p.caveats, noReliability) })
}

// fill makes message i of a client, different in every byte position.
func fill(client, i, size int) []byte {
	b := make([]byte, size)
	binary.BigEndian.PutUint32(b, uint32(client))
	binary.BigEndian.PutUint32(b[4:], uint32(i))
	for k := 8; k < size; k++ {
		b[k] = byte(client*131 + i*31 + k*7)
	}
	return b
}

// echoServer accepts and echoes until the listener closes.
func echoServer(t *testing.T, l bench.Listener) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		conns := make(chan bench.Conn, 64)
		defer func() {
			close(conns)
			for c := range conns {
				_ = c.Close()
			}
		}()
		for {
			c, err := l.Accept(ctx)
			if err != nil {
				return
			}
			conns <- c
			go func() {
				var buf []byte
				for {
					msg, err := c.Receive(ctx, buf)
					if err != nil {
						return
					}
					if err := c.Send(ctx, msg, nil); err != nil {
						return
					}
					buf = msg
				}
			}()
		}
	}()
	t.Cleanup(func() {
		cancel()
		if err := l.Close(); err != nil {
			t.Errorf("closing the listener: %v", err)
		}
		<-done
	})
}

// echo keeps window messages in flight and checks each answer.
func echo(ctx context.Context, c bench.Conn, client, count, window, size int) error {
	sent := 0
	send := func() error {
		completed := 0
		err := c.Send(ctx, fill(client, sent, size), func(error) { completed++ })
		if err != nil {
			return fmt.Errorf("send %d: %w", sent, err)
		}
		if completed != 1 {
			return fmt.Errorf("send %d: %d completions", sent, completed)
		}
		sent++
		return nil
	}
	for sent < min(window, count) {
		if err := send(); err != nil {
			return err
		}
	}
	var buf []byte
	for i := range count {
		msg, err := c.Receive(ctx, buf)
		if err != nil {
			return fmt.Errorf("receive %d: %w", i, err)
		}
		if !bytes.Equal(msg, fill(client, i, size)) {
			return fmt.Errorf("message %d of %d bytes came back different", i, len(msg))
		}
		buf = msg
		if sent < count {
			if err := send(); err != nil {
				return err
			}
		}
	}
	return nil
}

func TestEcho(t *testing.T) {
	for _, p := range rivals() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			for _, size := range []int{8, 64, 1024, 16384} {
				t.Run(fmt.Sprintf("size=%d", size), func(t *testing.T) {
					l := standardLoad()
					l.Payload = size
					verifyEcho(t, p.open(l.tuning()), size)
				})
			}
		})
	}
}

func verifyEcho(t *testing.T, d bench.Driver, size int) {
	t.Helper()
	if limit := d.Capabilities().MaxMessage; limit > 0 && size > limit {
		t.Skipf("messages end at %d bytes", limit)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testLimit)
	defer cancel()
	l, err := d.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	echoServer(t, l)
	const clients = 3
	failed := make(chan error, clients)
	for client := range clients {
		go func() {
			c, err := d.Dial(ctx, l.Addr().String())
			if err != nil {
				failed <- err
				return
			}
			err = echo(ctx, c, client, min(100, 1<<18/size), 8, size)
			failed <- errors.Join(err, c.Close())
		}()
	}
	for range clients {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
}

// TestReceiveEnds: a context ends one call and leaves the association usable,
// Close ends a waiting call for good.
func TestReceiveEnds(t *testing.T) {
	for _, p := range rivals() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), testLimit)
			defer cancel()
			d := p.open(standardLoad().tuning())
			l, err := d.Listen(ctx, "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			echoServer(t, l)
			c, err := d.Dial(ctx, l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			short, stop := context.WithCancel(ctx)
			got := make(chan error, 1)
			go func() {
				_, err := c.Receive(short, nil)
				got <- err
			}()
			stop()
			if err := <-got; !errors.Is(err, context.Canceled) {
				t.Fatalf("Receive with an ended context: %v, want context.Canceled", err)
			}
			if err := echo(ctx, c, 0, 3, 1, 100); err != nil {
				t.Fatalf("echo after an ended Receive: %v", err)
			}
			go func() {
				_, err := c.Receive(ctx, nil)
				got <- err
			}()
			if err := c.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
			if err := <-got; !errors.Is(err, net.ErrClosed) && !errors.Is(err, io.EOF) {
				t.Errorf("Receive after Close: %v, want net.ErrClosed or io.EOF", err)
			}
			if err := c.Close(); err != nil {
				t.Errorf("second Close: %v", err)
			}
		})
	}
}

func TestAcceptEnds(t *testing.T) {
	for _, p := range rivals() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			l, err := p.open(standardLoad().tuning()).Listen(t.Context(), "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			got := make(chan error, 1)
			go func() {
				_, err := l.Accept(t.Context())
				got <- err
			}()
			if err := l.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
			if err := <-got; !errors.Is(err, net.ErrClosed) {
				t.Errorf("Accept after Close: %v, want net.ErrClosed", err)
			}
			if err := l.Close(); err != nil {
				t.Errorf("second Close: %v", err)
			}
		})
	}
}

// TestPeerCloseEndsReceive: a library with a close handshake tells the peer in
// good order.
func TestPeerCloseEndsReceive(t *testing.T) {
	for _, p := range rivals() {
		if slices.Contains(p.caveats, noClose) {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), testLimit)
			defer cancel()
			d := p.open(standardLoad().tuning())
			l, err := d.Listen(ctx, "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			accepted := make(chan bench.Conn, 1)
			go func() {
				c, err := l.Accept(ctx)
				if err != nil {
					t.Error(err)
				}
				accepted <- c
			}()
			client, err := d.Dial(ctx, l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			server := <-accepted
			if server == nil {
				return
			}
			defer server.Close()
			if err := client.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
			if msg, err := server.Receive(ctx, nil); !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
				t.Errorf("Receive after the peer's Close: %q, %v; want io.EOF or net.ErrClosed", msg, err)
			}
		})
	}
}
