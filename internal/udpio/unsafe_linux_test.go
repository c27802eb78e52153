package udpio

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

func unsafeBytes(p *byte, n int) []byte { return unsafe.Slice(p, n) }

func unsafeIovecs(p *unix.Iovec, n int) []unix.Iovec { return unsafe.Slice(p, n) }
