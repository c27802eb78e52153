//go:build !race

package bufpool

const (
	poison     = false
	poisonByte = 0
)

var poisonBytes []byte
