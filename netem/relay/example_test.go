package relay_test

import (
	"fmt"
	"net"

	"github.com/openarkstudio/arknet-go/netem"
	"github.com/openarkstudio/arknet-go/netem/relay"
)

// A path that duplicates everything on the way to the server.
func ExampleStart() {
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()

	r, err := relay.Start(relay.Config{
		Target: server.LocalAddr().String(),
		Up:     netem.Config{Duplicate: 1},
		Seed:   42,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer r.Close()

	client, err := net.Dial("udp", r.Addr().String())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	fmt.Fprint(client, "hello")

	b := make([]byte, 1500)
	for range 2 {
		n, _, err := server.ReadFrom(b)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s\n", b[:n])
	}
	s := r.Stats()
	fmt.Println("received", s.Up.Received.Datagrams, "duplicated", s.Up.Duplicated.Datagrams)
	// Output:
	// hello
	// hello
	// received 1 duplicated 1
}
