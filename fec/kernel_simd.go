//go:build (amd64 || arm64 || ppc64le) && !noasm && !appengine && !gccgo && !nopshufb

package fec

import "github.com/klauspost/reedsolomon"

// The zero LowLevel picks the widest instructions that the CPU has.
var lowLevel reedsolomon.LowLevel

// mulSlice sets dst[i] = c * src[i]. dst must be at least as long as src.
func mulSlice(c byte, src, dst []byte) { lowLevel.GalMulSlice(c, src, dst) }

// mulAddSlice adds c * src[i] to dst[i]. dst must be at least as long as src.
func mulAddSlice(c byte, src, dst []byte) { lowLevel.GalMulSliceXor(c, src, dst) }
