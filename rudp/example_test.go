package rudp_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"

	"github.com/openarkstudio/arknet-go/rudp"
)

// A server that answers each message, and a client.
func Example() {
	ctx := context.Background()
	l, err := rudp.Listen("udp", "127.0.0.1:0", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.AcceptConn(ctx)
		if err != nil {
			return
		}
		defer c.Close()
		for {
			m, err := c.ReadMessage(ctx)
			if err != nil {
				return // io.EOF when the client closed
			}
			if err := c.WriteMessage(ctx, append(m, '!')); err != nil {
				return
			}
		}
	}()

	c, err := rudp.Dial(ctx, "udp", l.Addr().String(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	if err := c.WriteMessage(ctx, []byte("hello")); err != nil {
		log.Fatal(err)
	}
	m, err := c.ReadMessage(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(m))
	// Output: hello!
}

// A Conn is a net.Conn: the half-close tells the peer where the request ends.
func ExampleConn_CloseWrite() {
	l, err := rudp.Listen("udp", "127.0.0.1:0", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		request, err := io.ReadAll(c)
		if err != nil {
			return
		}
		fmt.Fprintf(c, "%d bytes", len(request))
	}()

	c, err := rudp.Dial(context.Background(), "udp", l.Addr().String(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write(make([]byte, 100_000)); err != nil {
		log.Fatal(err)
	}
	if err := c.CloseWrite(); err != nil {
		log.Fatal(err)
	}
	answer, err := io.ReadAll(c)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(answer))
	// Output: 100000 bytes
}

// SendFunc never waits and tells when the peer has the message.
func ExampleConn_SendFunc() {
	ctx := context.Background()
	l, err := rudp.Listen("udp", "127.0.0.1:0", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	go l.AcceptConn(ctx)

	c, err := rudp.Dial(ctx, "udp", l.Addr().String(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	done := make(chan error)
	if err := c.SendFunc([]byte("state"), func(err error) { done <- err }); err != nil {
		log.Fatal(err)
	}
	fmt.Println("acknowledged:", <-done == nil)
	// Output: acknowledged: true
}

// HTTP over RUDP: a Listener is a net.Listener.
func ExampleListen_http() {
	l, err := rudp.Listen("udp", "127.0.0.1:0", nil)
	if err != nil {
		log.Fatal(err)
	}
	server := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "you asked for ", r.URL.Path)
	})}
	go server.Serve(l)
	defer server.Close()

	client := http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			return rudp.Dial(ctx, "udp", address, nil)
		},
	}}
	defer client.CloseIdleConnections()
	response, err := client.Get("http://" + l.Addr().String() + "/index")
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(body))
	// Output: you asked for /index
}
