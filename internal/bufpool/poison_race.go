//go:build race

package bufpool

import "bytes"

const (
	poison     = true
	poisonByte = 0xDB
)

// poisonBytes is one small buffer long: enough for any packet header, and
// cheap enough for every release.
var poisonBytes = bytes.Repeat([]byte{poisonByte}, Small)
