package udpio

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// ErrorKind names the cause of a transient socket error. It is the same on
// every system; the Windows codes are folded into their POSIX counterparts.
type ErrorKind uint8

// The kinds. All of them are losses of single datagrams, never the end of a
// socket.
const (
	ErrOther           ErrorKind = iota // anything not listed below
	ErrNoBuffers                        // ENOBUFS: a queue of the system is full
	ErrNoMemory                         // ENOMEM
	ErrWouldBlock                       // EAGAIN: the socket buffer stayed full
	ErrNotPermitted                     // EPERM, EACCES: a packet filter, or broadcast without leave
	ErrRefused                          // ECONNREFUSED: ICMP port unreachable
	ErrReset                            // ECONNRESET, ENETRESET: the same in Windows' words, or TTL exceeded
	ErrNetUnreachable                   // ENETUNREACH, ENETDOWN: no route
	ErrHostUnreachable                  // EHOSTUNREACH, EHOSTDOWN
	ErrTooLarge                         // EMSGSIZE: above the MTU with DF set, or above 65,507 bytes
	ErrInterrupted                      // EINTR
	ErrInvalid                          // EINVAL, EADDRNOTAVAIL, EAFNOSUPPORT: an address that this socket cannot reach
	ErrTimeout                          // a deadline that somebody else set on the connection
	numErrorKinds
)

var errorKindNames = [numErrorKinds]string{
	ErrOther:           "other",
	ErrNoBuffers:       "no_buffers",
	ErrNoMemory:        "no_memory",
	ErrWouldBlock:      "would_block",
	ErrNotPermitted:    "not_permitted",
	ErrRefused:         "refused",
	ErrReset:           "reset",
	ErrNetUnreachable:  "net_unreachable",
	ErrHostUnreachable: "host_unreachable",
	ErrTooLarge:        "too_large",
	ErrInterrupted:     "interrupted",
	ErrInvalid:         "invalid",
	ErrTimeout:         "timeout",
}

// String returns the name in snake case, fit for a JSON key.
func (k ErrorKind) String() string {
	if k < numErrorKinds {
		return errorKindNames[k]
	}
	return fmt.Sprintf("ErrorKind(%d)", uint8(k))
}

// Windows reports socket errors with codes of its own. No POSIX system uses
// numbers of this size, so that one table serves all.
const (
	wsaEINTR         = syscall.Errno(10004)
	wsaEACCES        = syscall.Errno(10013)
	wsaEINVAL        = syscall.Errno(10022)
	wsaEWOULDBLOCK   = syscall.Errno(10035)
	wsaEMSGSIZE      = syscall.Errno(10040)
	wsaEAFNOSUPPORT  = syscall.Errno(10047)
	wsaEADDRNOTAVAIL = syscall.Errno(10049)
	wsaENETDOWN      = syscall.Errno(10050)
	wsaENETUNREACH   = syscall.Errno(10051)
	wsaENETRESET     = syscall.Errno(10052)
	wsaECONNRESET    = syscall.Errno(10054)
	wsaENOBUFS       = syscall.Errno(10055)
	wsaECONNREFUSED  = syscall.Errno(10061)
	wsaEHOSTDOWN     = syscall.Errno(10064)
	wsaEHOSTUNREACH  = syscall.Errno(10065)
)

// kindOf classifies an error of a net.PacketConn.
func kindOf(err error) ErrorKind {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return kindOfErrno(errno)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return ErrTimeout
	}
	return ErrOther
}

func kindOfErrno(errno syscall.Errno) ErrorKind {
	switch errno {
	case syscall.ENOBUFS, wsaENOBUFS:
		return ErrNoBuffers
	case syscall.ENOMEM:
		return ErrNoMemory
	case syscall.EAGAIN, wsaEWOULDBLOCK:
		return ErrWouldBlock
	case syscall.EPERM, syscall.EACCES, wsaEACCES:
		return ErrNotPermitted
	case syscall.ECONNREFUSED, wsaECONNREFUSED:
		return ErrRefused
	case syscall.ECONNRESET, syscall.ENETRESET, wsaECONNRESET, wsaENETRESET:
		return ErrReset
	case syscall.ENETUNREACH, syscall.ENETDOWN, wsaENETUNREACH, wsaENETDOWN:
		return ErrNetUnreachable
	case syscall.EHOSTUNREACH, syscall.EHOSTDOWN, wsaEHOSTUNREACH, wsaEHOSTDOWN:
		return ErrHostUnreachable
	case syscall.EMSGSIZE, wsaEMSGSIZE:
		return ErrTooLarge
	case syscall.EINTR, wsaEINTR:
		return ErrInterrupted
	case syscall.EINVAL, syscall.EADDRNOTAVAIL, syscall.EAFNOSUPPORT, wsaEINVAL, wsaEADDRNOTAVAIL, wsaEAFNOSUPPORT:
		return ErrInvalid
	}
	return ErrOther
}
