//go:build !unix

package bench

import "syscall"

// socketBuffers is 0, 0: the system does not tell in a portable way.
func socketBuffers(syscall.Conn) (read, write int) { return 0, 0 }
