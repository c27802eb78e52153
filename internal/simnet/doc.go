// Package simnet is an in-memory datagram network for tests: sockets that behave
// like those of package net, joined by netem links.
//
// Everything a socket waits for is a channel or a timer of its own, so inside a
// testing/synctest bubble time jumps over every delay and a test of minutes takes
// milliseconds. A Network and all that uses it must then be made in the bubble.
//
//	synctest.Test(t, func(t *testing.T) {
//		n := simnet.New(42)
//		defer n.Close()
//		n.SetDefault(netem.Config{Delay: 10 * time.Millisecond, Loss: 0.05})
//		server, _ := n.Listen("10.0.0.1:7000")
//		client, _ := n.Listen("10.0.0.2:0")
//		client.WriteTo([]byte("hello"), server.LocalAddr())
//		...
//	})
//
// Each ordered pair of hosts (addresses without ports) is joined by a link of its
// own, with a seed derived from the network's seed and the two addresses: all
// flows from one host to another share the bottleneck, and the order in which
// hosts appear does not matter. Datagrams that arrive at the same instant are
// delivered in the order in which they were sent.
//
// Besides the links, a test can filter, observe and forge datagrams, translate
// addresses as a NAT does, and make the socket calls themselves fail.
package simnet
