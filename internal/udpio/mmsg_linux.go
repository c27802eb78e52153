package udpio

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// mmsghdr is struct mmsghdr of recvmmsg(2) and sendmmsg(2), padded as C pads
// it.
type mmsghdr struct {
	hdr unix.Msghdr
	len uint32 // bytes received or sent
}

// kernel holds the system calls of the fast path, so that tests can put errors
// in their place. Each returns the number of messages moved, or an error and
// nothing moved. They never block: the socket is non-blocking.
type kernel struct {
	recv func(fd uintptr, msgs []mmsghdr, batch bool) (int, unix.Errno)
	send func(fd uintptr, msgs []mmsghdr, batch bool) (int, unix.Errno)
}

var realKernel = kernel{recv: recvMessages, send: sendMessages}

// recvMessages receives with recvmmsg; one message with recvmsg, which is faster.
func recvMessages(fd uintptr, msgs []mmsghdr, batch bool) (int, unix.Errno) {
	if batch && len(msgs) > 1 {
		n, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(&msgs[0])), uintptr(len(msgs)), 0, 0, 0)
		if errno != 0 {
			return 0, errno
		}
		return int(n), 0
	}
	n, _, errno := unix.Syscall(unix.SYS_RECVMSG, fd, uintptr(unsafe.Pointer(&msgs[0].hdr)), 0)
	if errno != 0 {
		return 0, errno
	}
	msgs[0].len = uint32(n)
	return 1, 0
}

// sendMessages sends with sendmmsg; one message with sendmsg.
func sendMessages(fd uintptr, msgs []mmsghdr, batch bool) (int, unix.Errno) {
	if batch && len(msgs) > 1 {
		n, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, fd, uintptr(unsafe.Pointer(&msgs[0])), uintptr(len(msgs)), 0, 0, 0)
		if errno != 0 {
			return 0, errno
		}
		return int(n), 0
	}
	_, _, errno := unix.Syscall(unix.SYS_SENDMSG, fd, uintptr(unsafe.Pointer(&msgs[0].hdr)), 0)
	if errno != 0 {
		return 0, errno
	}
	return 1, 0
}

// ptr drops the type of a socket address, which C passes around untyped.
func ptr(sa *sockaddr) unsafe.Pointer { return unsafe.Pointer(sa) }
