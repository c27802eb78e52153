package netem

import "math/bits"

// Random decisions come from a counter-based generator instead of a sequential
// one: decision n of a knob is a hash of (seed, knob, n). A sequential stream
// would shift whenever a datagram is dropped before it reaches the knob.

// knob names a random stream. The values are part of what a seed means: changing
// one changes every recorded run.
type knob uint64

const (
	knobBurst knob = iota + 1
	knobLoss
	knobState
	knobStateLoss
	knobDuplicate
	knobCorrupt
	knobDamage
	knobJitter
	knobLate
	knobCopy // added to the last four for the second copy
)

const golden = 0x9e3779b97f4a7c15

// mix64 is the finalizer of SplitMix64 (Steele, Lea, Flood 2014).
func mix64(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// stream is one knob's sequence of random numbers.
type stream uint64

func newStream(seed uint64, k knob) stream {
	return stream(mix64(mix64(seed+golden) + uint64(k)*golden))
}

// at returns random number n of the stream: SplitMix64 started at the stream's
// origin and advanced n steps.
func (s stream) at(n uint64) uint64 { return mix64(uint64(s) + (n+1)*golden) }

// threshold is a probability in units of 2^-53.
type threshold uint64

func newThreshold(p float64) threshold { return threshold(p * (1 << 53)) }

// hit reports whether a random number falls below the probability.
func (t threshold) hit(random uint64) bool { return random>>11 < uint64(t) }

// uniform maps a random number to 0..limit-1; limit is above 0.
func uniform(random, limit uint64) uint64 {
	hi, _ := bits.Mul64(random, limit)
	return hi
}

// Direction tells the two links of a path apart.
type Direction uint8

// The directions of a path between a client and a server.
const (
	Up   Direction = iota // client to server
	Down                  // server to client
)

// String returns "up" or "down".
func (d Direction) String() string {
	if d == Down {
		return "down"
	}
	return "up"
}

// DeriveSeed gives the seed of one direction of one of many paths that share a
// seed, so that every tool that numbers its paths the same way makes the same
// decisions.
func DeriveSeed(seed, path uint64, d Direction) uint64 {
	return mix64(mix64(seed+golden) + (path*2+uint64(d)+1)*golden)
}
