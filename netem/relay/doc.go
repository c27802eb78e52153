// Package relay puts a bad network between real sockets: a UDP or TCP relay that
// applies netem models, seeded, with exact counters, without privileges.
//
//	random, _ := netem.Profile("random")
//	r, err := relay.Start(relay.Config{
//		Listen: "127.0.0.1:0",
//		Target: "127.0.0.1:7000",
//		Up:     random,
//		Down:   random,
//		Seed:   42,
//	})
//	...
//	defer r.Close()
//	dial(r.Addr()) // instead of the target
//
// Each client address (or TCP connection) gets a route: a socket of its own
// towards the target, and a pair of links whose seeds follow from the relay's
// seed and the index of the route. So one client's traffic never changes what
// befalls another's.
//
// # UDP
//
// Datagrams that the link neither drops nor delays leave in the turn in which
// they came, as the trains (GSO) as which they were received (GRO). Delayed ones
// wait in a queue and leave at their time, by a precise alarm on systems that
// have one. The relay never changes the order in which a link delivers. What a
// route may hold is bounded; more is dropped and counted as overflow, and a
// benchmark should then call its run invalid (see [Stats.Check]).
//
// # TCP
//
// Over TCP only delay, rate (with its queue bound, which holds the sender back
// instead of dropping), outages (data waits until the end) and resets make sense.
// Start refuses other knobs by name.
//
// # Counters
//
// In each direction, for each route and in total, in datagrams and in bytes:
// received + duplicated = sent + dropped + queued, where dropped is the sum over
// all causes. Received is what the relay's sockets delivered, so it is what the
// endpoints sent, less what the kernel dropped at the relay's sockets, which is
// counted apart.
package relay
