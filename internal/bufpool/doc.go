// Package bufpool lends packet buffers that are given back by hand.
//
// A [Buffer] has one owner at a time. Whoever calls [Get] owns it; passing the
// pointer on passes the ownership on; the last owner calls [Buffer.Release] on
// every path, errors included. Releasing twice is a bug of the caller and
// panics. Forgetting to release is safe (the garbage collector takes the
// buffer) but costs an allocation, and shows in [Pool.Outstanding].
//
//	b := bufpool.Get(1200)
//	n := copy(b.Data, packet)
//	b.Data = b.Data[:n]
//	queue <- b // the receiver owns it now and releases it
//
// Buffers come in the size classes 2 KiB, 16 KiB and 64 KiB, so that a short
// datagram does not pin the memory of a long one; longer requests are plain
// allocations. In a steady state neither Get nor Release allocates. Unused
// buffers are kept by sync.Pool and go with the garbage collection: an idle
// program holds none.
//
// The package is pure: no clock, no goroutine, no IO.
package bufpool
