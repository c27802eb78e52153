package udpio

import "golang.org/x/sys/windows"

// Missing in x/sys/windows; the values are those of ws2ipdef.h.
const (
	ipDontFragment = 14 // IP_DONTFRAGMENT
	ipv6DontFrag   = 14 // IPV6_DONTFRAG
)

func forceBuffers(uintptr, int, int) {}

func bufferSizes(fd uintptr) (read, write int) {
	read, _ = windows.GetsockoptInt(windows.Handle(fd), windows.SOL_SOCKET, windows.SO_RCVBUF)
	write, _ = windows.GetsockoptInt(windows.Handle(fd), windows.SOL_SOCKET, windows.SO_SNDBUF)
	return read, write
}

func dontFragment(fd uintptr) bool {
	err4 := windows.SetsockoptInt(windows.Handle(fd), windows.IPPROTO_IP, ipDontFragment, 1)
	err6 := windows.SetsockoptInt(windows.Handle(fd), windows.IPPROTO_IPV6, ipv6DontFrag, 1)
	return err4 == nil || err6 == nil
}
