// Package netem models what a bad network does to datagrams: it loses, delays,
// duplicates, reorders, damages and queues them, from a seed, with exact
// counters.
//
// A [Link] is one direction of a path. It is told the time and the size of each
// datagram and answers with the datagram's [Fate]: the cause of its loss, or
// the times at which its one or two copies arrive. The package does no IO,
// reads no clock and starts no goroutine, so one model serves a protocol
// simulator, an in-memory network under a fake clock, and a relay between real
// sockets (package netem/relay).
//
//	link, err := netem.NewLink(netem.Config{
//		Loss:  0.05,
//		Delay: 10 * time.Millisecond,
//		Late:  netem.Late{Share: 0.05, Delay: 15 * time.Millisecond},
//	}, 42)
//	...
//	fate := link.Transmit(now, len(datagram))
//	for _, c := range fate.Delivered() {
//		schedule(c.At, datagram)
//	}
//
// # Order of the stages
//
// A datagram passes the stages in this order; the first that drops it names the
// [Cause]: outage, MTU, burst loss, independent loss, Gilbert-Elliott loss, rate
// limit with its queue. What is left may be duplicated; each copy then gets its
// own damage, jitter and lateness on top of the fixed delay. Duplicates are made
// behind the bottleneck and take no room in its queue.
//
// # Determinism
//
// Every random decision is a pure function of the seed, the knob, and the
// index of the datagram on the link (and of the copy, for a duplicate). So two
// runs with one seed make the same decisions whatever their timing, and turning
// one knob never changes what another knob decides about the n-th datagram.
// Only outages and the rate limit look at the time.
//
// # Order of delivery
//
// A link delivers in the order of arrival, also under jitter and after a change
// of its delay at run time, unless [Config.JitterReorders] is set. Datagrams
// picked by [Config.Late] are the exception: being overtaken is their purpose.
package netem
