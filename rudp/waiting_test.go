package rudp_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openarkstudio/arknet-go"
	"github.com/openarkstudio/arknet-go/rudp"
)

func TestBlockedCallsObeyDeadlineAndContext(t *testing.T) {
	inWorld(t, delayed(), nil, func(w *world) {
		t := w.t
		cfg := &rudp.Config{SendWindow: 16 << 10, Limits: arknet.Limits{SendQueueMessages: 4, Linger: time.Second}}
		client, server := w.pair(cfg)
		fill := func() {
			for client.SendFunc(make([]byte, 1000), nil) == nil {
			}
		}
		remove := w.net.Filter(dropAll)
		defer remove()
		for range 20 {
			fill() // until the window is full as well
			time.Sleep(time.Millisecond)
		}
		for _, test := range []struct {
			name string
			call func(context.Context) error
		}{
			{"ReadMessage", func(ctx context.Context) error { _, err := client.ReadMessage(ctx); return err }},
			{"WriteMessage", func(ctx context.Context) error { return client.WriteMessage(ctx, make([]byte, 1000)) }},
			{"Flush", client.Flush},
			{"AcceptConn", func(ctx context.Context) error { _, err := w.listener.AcceptConn(ctx); return err }},
		} {
			within(t, 50*time.Millisecond, 60*time.Millisecond, test.name+" with a context", func() {
				ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				defer cancel()
				if err := test.call(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s: %v", test.name, err)
				}
			})
			if test.name == "AcceptConn" {
				continue
			}
			// A deadline set in the past while the call waits.
			within(t, 50*time.Millisecond, 60*time.Millisecond, test.name+" with a late deadline", func() {
				time.AfterFunc(50*time.Millisecond, func() { client.SetDeadline(time.Unix(1, 0)) })
				err := test.call(t.Context())
				var timeout net.Error
				if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &timeout) || !timeout.Timeout() {
					t.Errorf("%s: %v, want os.ErrDeadlineExceeded as net.Error", test.name, err)
				}
			})
			client.SetDeadline(time.Time{})
			// One that is moved away while the call waits.
			within(t, 5*time.Second, 5010*time.Millisecond, test.name+" with an extended deadline", func() {
				client.SetDeadline(time.Now().Add(time.Second))
				end := time.Now().Add(5 * time.Second)
				time.AfterFunc(500*time.Millisecond, func() { client.SetDeadline(end) })
				if err := test.call(t.Context()); !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("%s: %v", test.name, err)
				}
			})
			client.SetDeadline(time.Time{})
		}
		client.Close()
		server.Close()
	})
}

func TestTimedOutReadLeavesTheSessionUsable(t *testing.T) {
	inWorld(t, delayed(), nil, func(w *world) {
		t := w.t
		client, server := w.pair(nil)
		// Expires before anything, and halfway through a long message.
		long := bytes.Repeat([]byte("long"), 500_000)
		for range 2 {
			client.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
			if _, err := client.ReadMessage(t.Context()); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("read: %v", err)
			}
			client.SetReadDeadline(time.Time{})
			if err := server.WriteMessage(t.Context(), long); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 15*time.Millisecond)
			if _, err := client.ReadMessage(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("read of half a message: %v", err)
			}
			cancel()
			if m, err := client.ReadMessage(t.Context()); err != nil || !bytes.Equal(m, long) {
				t.Fatalf("read of %d bytes, %v, want %d", len(m), err, len(long))
			}
			if err := client.WriteMessage(t.Context(), []byte("fine")); err != nil {
				t.Fatal(err)
			}
			if m, err := server.ReadMessage(t.Context()); err != nil || string(m) != "fine" {
				t.Fatalf("read %q, %v", m, err)
			}
		}
		client.Close()
		server.Close()
	})
}

func TestBlockedWriteIsReleased(t *testing.T) {
	limits := arknet.Limits{SendQueueMessages: 4, DeadPeerTimeout: 5 * time.Second}
	cfg := &rudp.Config{RecvWindow: 16 << 10, SendWindow: 16 << 10, KeepAlive: time.Second, Limits: limits}
	for _, test := range []struct {
		name    string
		act     func(w *world, server *rudp.Conn)
		longest time.Duration
		want    error
	}{
		{"peer closes", func(_ *world, s *rudp.Conn) { go s.Close() }, 150 * time.Millisecond, net.ErrClosed},
		{"peer aborts", func(_ *world, s *rudp.Conn) { s.CloseWithError(1, "no") }, 150 * time.Millisecond, net.ErrClosed},
		{"peer vanishes", func(w *world, _ *rudp.Conn) { w.net.Filter(dropAll) }, 5500 * time.Millisecond, arknet.ErrPeerGone},
	} {
		t.Run(test.name, func(t *testing.T) {
			inWorld(t, delayed(), cfg, func(w *world) {
				t := w.t
				client, server := w.pair(cfg)
				failed := make(chan error)
				go func() {
					for {
						if err := client.WriteMessage(context.Background(), make([]byte, 1000)); err != nil {
							failed <- err
							return
						}
					}
				}()
				time.Sleep(10 * time.Second)
				within(t, 0, test.longest, "release", func() {
					test.act(w, server)
					if err := <-failed; !errors.Is(err, test.want) {
						t.Errorf("write: %v, want %v", err, test.want)
					}
				})
				client.Close()
				server.Close()
			})
		})
	}
}

func TestDeadlinesRaceWithCalls(t *testing.T) {
	l, err := rudp.Listen("udp", "127.0.0.1:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := rudp.Dial(t.Context(), "udp", l.Addr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	server, err := l.AcceptConn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	go io.Copy(server, server)
	stop := make(chan struct{})
	var group sync.WaitGroup
	loop := func(f func()) {
		group.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					f()
				}
			}
		})
	}
	buf := make([]byte, 100)
	loop(func() { client.Read(buf) })
	loop(func() { client.Write(make([]byte, 100)) })
	for i, set := range []func(time.Time) error{client.SetDeadline, client.SetReadDeadline, client.SetWriteDeadline} {
		loop(func() {
			for range 100 {
				set(time.Unix(1, 0))
				set(time.Now().Add(time.Millisecond))
				set(time.Time{})
			}
			_ = i
		})
	}
	group.Go(func() {
		for range 2000 {
			client.SetDeadline(time.Time{})
		}
		close(stop)
		client.SetDeadline(time.Unix(1, 0))
	})
	group.Wait()
	client.SetDeadline(time.Time{})
	if _, err := client.Write([]byte("x")); err != nil {
		t.Errorf("write after all: %v", err)
	}
	client.Close()
	server.Close()
}

func TestListenerClose(t *testing.T) {
	inWorld(t, delayed(), nil, func(w *world) {
		t := w.t
		var accepted, dialled, waiting []*rudp.Conn
		for range 5 {
			client, server := w.pair(nil)
			dialled, accepted = append(dialled, client), append(accepted, server)
		}
		for range 3 {
			waiting = append(waiting, w.dial(nil))
		}
		time.Sleep(time.Second)
		blocked := make(chan error)
		go func() {
			for {
				// Takes none of the three that wait: it comes too late.
				synctest.Wait()
				_, err := w.listener.AcceptConn(context.Background())
				if err != nil {
					blocked <- err
					return
				}
			}
		}()
		if err := w.listener.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-blocked; !errors.Is(err, net.ErrClosed) {
			t.Errorf("accept: %v", err)
		}
		var group sync.WaitGroup
		for range 10 {
			group.Go(func() {
				if err := w.listener.Close(); !errors.Is(err, net.ErrClosed) {
					t.Errorf("close again: %v", err)
				}
			})
		}
		group.Wait()
		for _, c := range waiting {
			var closed *arknet.CloseError
			if _, err := c.ReadMessage(t.Context()); !errors.As(err, &closed) || !closed.Transport {
				t.Errorf("session that was not accepted: %v, want a refusal", err)
			}
			c.Close()
		}
		for i, c := range dialled {
			if err := c.WriteMessage(t.Context(), []byte("on")); err != nil {
				t.Fatal(err)
			}
			if m, err := accepted[i].ReadMessage(t.Context()); err != nil || string(m) != "on" {
				t.Fatalf("accepted session reads %q, %v", m, err)
			}
			c.Close()
			accepted[i].Close()
		}
		if _, err := rudp.DialPacketConn(t.Context(), w.socketFor(), w.listener.Addr(), &rudp.Config{HandshakeTimeout: time.Second}); !errors.Is(err, arknet.ErrConnectTimeout) {
			t.Errorf("dial after close: %v", err)
		}
	})
}

func TestSocketsAndGoroutinesAreFreed(t *testing.T) {
	l, err := rudp.Listen("udp", "127.0.0.1:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	for range 50 {
		client, err := rudp.Dial(t.Context(), "udp", address, nil)
		if err != nil {
			t.Fatal(err)
		}
		server, err := l.AcceptConn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := client.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := server.ReadMessage(t.Context()); err != io.EOF {
			t.Fatal(err)
		}
		if err := server.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	<-rudp.Released(l)
	again, err := rudp.Listen("udp", address, nil)
	if err != nil {
		t.Fatalf("the port is not free: %v", err)
	}
	again.Close()
}

func TestCompletionsMayCallTheSession(t *testing.T) {
	inWorld(t, delayed(), nil, func(w *world) {
		t := w.t
		client, server := w.pair(nil)
		var order []int
		var ended int
		for i := range 100 {
			err := client.SendFunc(make([]byte, 1000), func(err error) {
				order = append(order, i)
				switch i {
				case 10:
					// Large enough to be sent by the call itself.
					if err := client.SendFunc(make([]byte, 100_000), func(error) { ended++ }); err != nil {
						t.Errorf("send from a completion: %v", err)
					}
				case 50:
					client.CloseWithError(5, "enough")
				}
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		for {
			if _, err := server.ReadMessage(t.Context()); err != nil {
				break
			}
		}
		time.Sleep(time.Second)
		if len(order) != 100 || !slices.IsSorted(order) || ended != 1 {
			t.Errorf("completions came %d and %d times, in the order %v", len(order), ended, order)
		}
		client.Close()
		server.Close()
	})
}

func TestCompletionsDoNotRunInsideTheCallsOfTheApplication(t *testing.T) {
	inWorld(t, delayed(), nil, func(w *world) {
		t := w.t
		client, server := w.pair(nil)
		locked := make(chan struct{}, 1) // a lock that the fake clock can see
		done := make(chan struct{}, 1000)
		for range 100 {
			if err := client.SendFunc(make([]byte, 2000), func(error) {
				locked <- struct{}{}
				<-locked
				done <- struct{}{}
			}); err != nil {
				t.Fatal(err)
			}
		}
		locked <- struct{}{}
		client.CloseWithError(1, "")
		<-locked
		for range 100 {
			<-done
		}
		server.Close()
	})
}

func TestFlushTellsThatDataWasGivenUp(t *testing.T) {
	inWorld(t, delayed(), nil, func(w *world) {
		t := w.t
		client, server := w.pair(nil)
		for range 100 {
			if err := client.SendFunc(make([]byte, 20_000), nil); err != nil {
				t.Fatal(err)
			}
		}
		client.CloseWithError(1, "bye")
		var closed *arknet.CloseError
		if err := client.Flush(t.Context()); !errors.As(err, &closed) || closed.Code != 1 {
			t.Errorf("flush: %v, want the CloseError", err)
		}
		server.Close()
	})
}

func TestDialReturnsASessionThatWasClosedAtOnce(t *testing.T) {
	inWorld(t, delayed(), nil, func(w *world) {
		t := w.t
		go func() {
			for {
				c, err := w.listener.AcceptConn(context.Background())
				if err != nil {
					return
				}
				c.WriteMessage(context.Background(), []byte("greeting"))
				go c.Close()
			}
		}()
		for range 200 {
			c := w.dial(nil)
			if m, err := c.ReadMessage(t.Context()); err != nil || string(m) != "greeting" {
				t.Fatalf("read %q, %v", m, err)
			}
			c.Close()
		}
	})
}
