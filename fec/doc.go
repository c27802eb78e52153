// Package fec has systematic erasure codes over byte symbols of unequal length: a
// sliding-window code and a Reed-Solomon block code, both over GF(2^8) and both
// decoded by one incremental decoder.
//
// A sender hands each source symbol, usually the contents of one datagram, to an
// [Encoder] and sends it as it is. When it thinks fit it makes a repair, the sum
// of a window of symbols times coefficients, and sends that beside them. The
// receiver's [Decoder] takes source symbols and repairs in any order; any n
// independent repairs restore any n lost symbols under them.
//
//	repair := fec.Sliding(first, span, n)             // sender: the n-th repair
//	payload, err := enc.AppendRepair(buf, repair)
//	...
//	dec.AddRepair(repair, payload)                    // receiver
//	for id, data, ok := dec.Next(); ok; id, data, ok = dec.Next() {
//		deliver(id, data)
//	}
//
// The package does no IO, reads no clock and starts no goroutine. When to send
// repairs, over which window, and how the header [Repair] travels is up to the
// protocol; 5 bytes are enough for it: 3 for a truncated first id, one each for
// span and seed. Ids are expanded to 64 bits by the caller and may wrap.
//
// # The code
//
// A source symbol is coded together with its length and a checksum:
//
//	checksum  4 bytes, network byte order
//	length    2 bytes, network byte order
//	bytes     the source symbol
//	zeros     to the end of the longest symbol in the window
//
// That is [Overhead] bytes more than the symbol, and they travel in repairs only.
// The checksum is, with the CRC-32C of length and bytes,
//
//	mix(z)   = z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
//	           z = (z ^ z>>27) * 0x94d049bb133111eb
//	           z ^ z>>31                                  all modulo 2^64
//	key      = mix(mix(epoch + 0x9e3779b97f4a7c15) ^ id)
//	checksum = mix(key + CRC-32C) >> 32
//
// where epoch is [Config].Epoch and id the symbol's 64-bit id.
//
// A repair with seed r, 0 to 127, has for symbol id the coefficient
//
//	y / (r ^ y)   with y = 128 + id mod 128
//
// in the field with the polynomial x^8+x^4+x^3+x^2+1, where addition is XOR:
// [Coefficient]. This is a Cauchy matrix with its columns scaled so that seed 0 is
// the plain XOR of the window. It makes one code of the two:
//
//   - Repairs with different seeds over one window are a Reed-Solomon code: every
//     choice of seeds and of lost symbols can be solved, without exception
//     ([Block]). A group may have any size up to 128, so a partial group is just a
//     smaller window, without filling.
//   - Repairs of a flow that take one seed after the other, over windows that move
//     on as they like, are a sliding-window code ([Sliding]). As long as windows
//     are the same it is as good as the former. Where they differ, n repairs whose
//     windows would allow to restore n losses fail to do so in 0 % of cases for
//     n = 2, 0.18 % for n = 4 and 0.40 % for n = 8; random coefficients fail in
//     0.20 %, 0.39 % and 0.56 % (400,000 draws each, as in TestFailureRate).
//
// Seeds repeat after 128 repairs. Two repairs with one seed still differ when
// their windows do, and a window of 128 has moved on by then at any sensible rate.
//
// RFC 8681 (sliding-window codes, random coefficients from a pseudorandom
// generator), RFC 5510 and RFC 6865 (Reed-Solomon, the latter with a length inside
// the coded symbol) describe relatives of this code. The wire format is not
// theirs.
//
// # What is guaranteed
//
// No repair makes the decoder return a wrong byte. A restored symbol is returned
// only when its length fits, its padding is zero and its checksum matches; a
// repair with a wrong window, wrong coefficients, damaged bytes, of another epoch
// or of another flow passes with probability 2^-32. A mismatch drops the equation,
// and those that share a repair with it which was not part of a right solution
// before, because which of them is wrong cannot be known. Everything dropped is
// counted, by reason.
//
// The checksum is no signature. A peer that makes up a source symbol can make up a
// repair for it too; what may be believed is decided where datagrams are
// authenticated.
//
// The decoder restores exactly what Gauss elimination over all equations would,
// at the moment when it becomes possible, unless a limit made it drop something.
//
// # Limits
//
// [Limits] bound memory and work. At the limits the oldest symbols and equations
// go first. Nothing is allocated before it is needed, and nothing per symbol in
// steady state. A decoder keeps as many delivered symbols as the repairs of late
// reached back, and none after 1,024 symbols without a repair. Shrink takes memory
// away under pressure, Release gives back everything after a long silence.
//
// A repair costs the decoder at most Limits.Work passes over one payload
// (multiply and add), a source symbol Limits.Rows+2, and on top of that at most one
// checksum for each symbol restored, and some microseconds on coefficients. A
// repair without an unknown symbol, and one that says nothing new, costs no pass
// at all. A pass over 1,100 bytes takes 30 to 50 ns with AVX2 and about ten times
// that in plain Go.
//
// Neither type is safe for concurrent use.
package fec
