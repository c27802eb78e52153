package rudp_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openarkstudio/arknet-go"
	"github.com/openarkstudio/arknet-go/netem"
	"github.com/openarkstudio/arknet-go/rudp"
)

func TestWriteThenCloseDeliversEverything(t *testing.T) {
	path := netem.Config{Delay: 50 * time.Millisecond, Loss: 0.1}
	for _, size := range []int{6, 1 << 20} {
		inWorld(t, path, nil, func(w *world) {
			t := w.t
			data := make([]byte, size)
			rng := rand.New(rand.NewPCG(1, uint64(size)))
			for i := range data {
				data[i] = byte(rng.Uint32())
			}
			for range 20 {
				client, server := w.pair(nil)
				got := make(chan []byte, 1)
				go func() {
					b, err := readAll(server)
					if err != nil {
						t.Errorf("read: %v", err)
					}
					got <- b
				}()
				if _, err := client.Write(data); err != nil {
					t.Fatal(err)
				}
				err := client.Close()
				var unacked *arknet.UnacknowledgedError
				if err != nil && !errors.As(err, &unacked) {
					t.Fatalf("close: %v", err)
				}
				if b := <-got; err == nil && !bytes.Equal(b, data) {
					t.Fatalf("read %d bytes, want %d", len(b), len(data))
				}
				if err := server.Close(); err != nil {
					t.Fatalf("close of the reader: %v", err)
				}
			}
		})
	}
}

func TestHalfCloseLeavesTheAnswerReadable(t *testing.T) {
	inWorld(t, delayed(), nil, func(w *world) {
		t := w.t
		client, server := w.pair(nil)
		answer := bytes.Repeat([]byte("answer"), 200_000)
		go func() {
			request, err := readAll(server)
			if err != nil || len(request) != 1024 {
				t.Errorf("request of %d bytes, %v", len(request), err)
			}
			time.Sleep(200 * time.Millisecond)
			if _, err := server.Write(answer); err != nil {
				t.Errorf("answer: %v", err)
			}
			if err := server.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		}()
		if _, err := client.Write(make([]byte, 1024)); err != nil {
			t.Fatal(err)
		}
		if err := client.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Write([]byte("more")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("write after CloseWrite: %v", err)
		}
		got, err := readAll(client)
		if err != nil || !bytes.Equal(got, answer) {
			t.Fatalf("answer of %d bytes, %v, want %d", len(got), err, len(answer))
		}
		client.Close()
	})
}

func TestVanishedPeerIsNoticedOnBothSides(t *testing.T) {
	for _, test := range []struct {
		name     string
		write    bool
		earliest time.Duration
	}{
		{"idle in Read", false, 13 * time.Second},
		{"writing", true, 13 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			cfg := &rudp.Config{KeepAlive: 5 * time.Second, Limits: arknet.Limits{DeadPeerTimeout: 15 * time.Second}}
			inWorld(t, delayed(), cfg, func(w *world) {
				t := w.t
				client, server := w.pair(cfg)
				remove := w.net.Filter(dropAll)
				defer remove()
				for _, c := range []*rudp.Conn{client, server} {
					if test.write {
						go func() {
							for c.WriteMessage(context.Background(), []byte("x")) == nil {
								time.Sleep(100 * time.Millisecond)
							}
						}()
					}
				}
				done := make(chan struct{})
				for _, c := range []*rudp.Conn{client, server} {
					go func() {
						defer func() { done <- struct{}{} }()
						within(t, test.earliest, 16500*time.Millisecond, "notice", func() {
							_, err := c.ReadMessage(context.Background())
							var timeout net.Error
							if !errors.Is(err, arknet.ErrPeerGone) || !errors.As(err, &timeout) || !timeout.Timeout() {
								t.Errorf("read: %v, want a timeout that is ErrPeerGone", err)
							}
						})
					}()
				}
				<-done
				<-done
				if err := server.WriteMessage(context.Background(), nil); !errors.Is(err, arknet.ErrPeerGone) {
					t.Errorf("write: %v, want ErrPeerGone", err)
				}
				client.Close()
				server.Close()
				synctest.Wait()
				if s := w.listener.Stats().Sessions; s != 0 {
					t.Errorf("%d sessions left", s)
				}
			})
		})
	}
}

func TestKeepAliveHoldsAnIdleSession(t *testing.T) {
	cfg := &rudp.Config{KeepAlive: time.Second, Limits: arknet.Limits{DeadPeerTimeout: 3 * time.Second}}
	inWorld(t, netem.Config{Delay: 10 * time.Millisecond, Loss: 0.1}, cfg, func(w *world) {
		t := w.t
		go w.echo()
		c := w.dial(cfg)
		time.Sleep(time.Hour)
		expectEcho(t, c, "still there")
		c.Close()
	})
}

func TestIdleTimeoutEndsBothSides(t *testing.T) {
	cfg := &rudp.Config{Limits: arknet.Limits{IdleTimeout: 10 * time.Second}}
	inWorld(t, delayed(), cfg, func(w *world) {
		t := w.t
		client, server := w.pair(nil)
		within(t, 9*time.Second, 11*time.Second, "idle end", func() {
			if _, err := server.ReadMessage(t.Context()); !errors.Is(err, arknet.ErrIdleTimeout) {
				t.Errorf("server: %v, want ErrIdleTimeout", err)
			}
		})
		_, err := client.ReadMessage(t.Context())
		var closed *arknet.CloseError
		if !errors.As(err, &closed) || !closed.Remote || !closed.Transport {
			t.Errorf("client: %v, want a CloseError of the peer's transport", err)
		}
		client.Close()
		server.Close()
	})
}

func TestCloseWithErrorTellsThePeer(t *testing.T) {
	inWorld(t, delayed(), nil, func(w *world) {
		t := w.t
		client, server := w.pair(nil)
		if err := client.WriteMessage(t.Context(), []byte("last words")); err != nil {
			t.Fatal(err)
		}
		if err := client.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := client.CloseWithError(7, "bye"); err != nil {
			t.Fatal(err)
		}
		m, err := server.ReadMessage(t.Context())
		if err != nil || string(m) != "last words" {
			t.Fatalf("read %q, %v", m, err)
		}
		_, err = server.ReadMessage(t.Context())
		var closed *arknet.CloseError
		if !errors.As(err, &closed) || *closed != (arknet.CloseError{Code: 7, Reason: "bye", Remote: true}) {
			t.Errorf("read: %v, want code 7", err)
		}
		if !errors.Is(err, net.ErrClosed) {
			t.Errorf("%v does not match net.ErrClosed", err)
		}
		if err := server.WriteMessage(t.Context(), nil); !errors.As(err, &closed) {
			t.Errorf("write: %v, want the CloseError", err)
		}
		server.Close()
	})
}

func TestClientIsToldThatItsServerRestarted(t *testing.T) {
	inWorld(t, delayed(), nil, func(w *world) {
		t := w.t
		client, server := w.pair(nil)
		// The old process dies without a word and a new one takes its port.
		remove := w.net.Filter(dropAll)
		w.listener.Close()
		server.CloseWithError(0, "")
		time.Sleep(time.Minute / 4)
		remove()
		fresh, err := rudp.NewListener(w.socket, nil)
		if err != nil {
			t.Fatal(err)
		}
		within(t, 0, 20*time.Second, "notice", func() {
			_, err = client.ReadMessage(t.Context())
		})
		if !errors.Is(err, arknet.ErrReset) {
			t.Errorf("read: %v, want ErrReset", err)
		}
		if s := fresh.Stats(); s.Sessions != 0 || s.Resets == 0 {
			t.Errorf("new server has %d sessions, sent %d resets", s.Sessions, s.Resets)
		}
		client.Close()
		fresh.Close()
	})
}

func TestDialWaitsForALateServer(t *testing.T) {
	inWorld(t, delayed(), nil, func(w *world) {
		t := w.t
		remove := w.net.Filter(dropAll)
		time.AfterFunc(2*time.Second, remove)
		go w.echo()
		within(t, 2*time.Second, 4*time.Second, "dial", func() {
			c := w.dial(nil)
			expectEcho(t, c, "hello")
			c.Close()
		})
	})
}

func TestDialErrors(t *testing.T) {
	inWorld(t, delayed(), nil, func(w *world) {
		t := w.t
		remove := w.net.Filter(dropAll)
		defer remove()
		within(t, 3*time.Second, 3100*time.Millisecond, "timeout", func() {
			_, err := rudp.DialPacketConn(t.Context(), w.socketFor(), w.listener.Addr(), &rudp.Config{HandshakeTimeout: 3 * time.Second})
			var timeout net.Error
			if !errors.Is(err, arknet.ErrConnectTimeout) || !errors.As(err, &timeout) || !timeout.Timeout() {
				t.Errorf("dial: %v, want a timeout that is ErrConnectTimeout", err)
			}
		})
		within(t, time.Second, time.Second+10*time.Millisecond, "cancel", func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := rudp.DialPacketConn(ctx, w.socketFor(), w.listener.Addr(), nil); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("dial: %v, want context.DeadlineExceeded", err)
			}
		})
		if _, err := rudp.DialPacketConn(t.Context(), w.socketFor(), &net.IPAddr{}, nil); err == nil {
			t.Error("dial of an address without port succeeded")
		}
	})
	if _, err := rudp.Dial(t.Context(), "tcp", "127.0.0.1:1", nil); err == nil {
		t.Error("dial of network tcp succeeded")
	}
}

func TestLostAndRepeatedHandshakesMakeOneSession(t *testing.T) {
	for drop := range 3 {
		inWorld(t, netem.Config{Delay: 10 * time.Millisecond, Duplicate: 1}, nil, func(w *world) {
			t := w.t
			n := 0
			remove := w.net.Filter(func(d *datagram) bool {
				if d.From == w.socket.LocalAddrPort() {
					n++
					return n > drop
				}
				return true
			})
			defer remove()
			client, server := w.pair(nil)
			if err := client.WriteMessage(t.Context(), []byte("first")); err != nil {
				t.Fatal(err)
			}
			if m, err := server.ReadMessage(t.Context()); err != nil || string(m) != "first" {
				t.Fatalf("read %q, %v", m, err)
			}
			time.Sleep(10 * time.Second)
			if s := w.listener.Stats(); s.Sessions != 1 || s.Pending != 0 {
				t.Errorf("%d sessions, %d pending, want 1 and 0", s.Sessions, s.Pending)
			}
			client.Close()
			server.Close()
		})
	}
}

func TestPeerReadsWhatArrivedThenEOF(t *testing.T) {
	inWorld(t, delayed(), nil, func(w *world) {
		t := w.t
		client, server := w.pair(nil)
		for _, m := range []string{"one", "", "three"} {
			if err := client.WriteMessage(t.Context(), []byte(m)); err != nil {
				t.Fatal(err)
			}
		}
		if err := client.Close(); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"one", "", "three"} {
			if m, err := server.ReadMessage(t.Context()); err != nil || string(m) != want {
				t.Fatalf("read %q, %v, want %q", m, err, want)
			}
		}
		if _, err := server.ReadMessage(t.Context()); err != io.EOF {
			t.Errorf("read: %v, want io.EOF", err)
		}
		server.Close()
	})
}

func TestGivenUpDataNeverReadsAsTheEnd(t *testing.T) {
	for name, give := range map[string]func(*rudp.Conn) error{
		"no linger":           (*rudp.Conn).Close,
		"CloseWithError of 0": func(c *rudp.Conn) error { return c.CloseWithError(0, "") },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, delayed(), nil, func(w *world) {
				t := w.t
				client, server := w.pair(&rudp.Config{Limits: arknet.Limits{Linger: -1}})
				if _, err := client.Write(make([]byte, 200_000)); err != nil {
					t.Fatal(err)
				}
				give(client)
				got, err := readAll(server)
				var closed *arknet.CloseError
				if !errors.As(err, &closed) || !closed.Transport || closed.Code != 5 || len(got) == 200_000 {
					t.Errorf("read %d bytes, then %v, want a CloseError of the transport with code 5", len(got), err)
				}
				server.Close()
			})
		})
	}
}
