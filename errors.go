package arknet

import (
	"fmt"
	"net"
)

// Errors that endpoints return. Test for them with errors.Is; an endpoint may
// wrap them with the operation and the addresses.
var (
	// ErrQueueFull says that the send queue of a session has no room for the
	// message now. Nothing of the message was taken.
	ErrQueueFull error = &sentinel{text: "arknet: send queue is full"}

	// ErrMessageTooLarge says that a message is longer than this side sends or
	// the peer accepts. Nothing of the message was taken.
	ErrMessageTooLarge error = &sentinel{text: "arknet: message too large"}

	// ErrWrongMode says that a direction which carries a byte stream was used
	// for messages, or the reverse. The first write fixes the mode.
	ErrWrongMode error = &sentinel{text: "arknet: direction carries the other mode"}

	// ErrPeerGone says that nothing was heard from the peer for
	// Limits.DeadPeerTimeout. It is a net.Error with Timeout.
	ErrPeerGone error = &sentinel{text: "arknet: peer is gone", timeout: true}

	// ErrIdleTimeout says that no message passed for Limits.IdleTimeout. It is
	// a net.Error with Timeout.
	ErrIdleTimeout error = &sentinel{text: "arknet: session was idle for too long", timeout: true}

	// ErrConnectTimeout says that the peer did not answer the connection
	// attempt in time. It is a net.Error with Timeout.
	ErrConnectTimeout error = &sentinel{text: "arknet: connection attempt timed out", timeout: true}

	// ErrReset says that the peer does not know the session: it was restarted,
	// or has given the session up.
	ErrReset error = &sentinel{text: "arknet: peer does not know the session"}

	// ErrVersion says that the peer speaks no common version of the protocol.
	ErrVersion error = &sentinel{text: "arknet: peer speaks no common protocol version"}
)

// sentinel is an error value of this package. It implements net.Error, so that
// callers who only know that interface see which errors are timeouts.
type sentinel struct {
	text    string
	timeout bool
}

func (e *sentinel) Error() string { return e.text }

// Timeout implements net.Error.
func (e *sentinel) Timeout() bool { return e.timeout }

// Temporary implements net.Error; no error of this package claims to pass.
func (e *sentinel) Temporary() bool { return false }

// CloseError is the end of a session with a reason that one side gave. It
// matches net.ErrClosed. Codes of the transport: 1 breach of the protocol, 2
// idle for too long, 3 refused, 4 internal error, 5 closed with data
// unacknowledged.
type CloseError struct {
	// Code is the application's number, or the transport's when Transport is set.
	Code uint64
	// Reason is the text that came with it, at most 255 bytes.
	Reason string
	// Remote is set when the peer ended the session.
	Remote bool
	// Transport is set when the transport decided, not the application.
	Transport bool
}

// Error implements error.
func (e *CloseError) Error() string {
	who := "locally"
	switch {
	case e.Remote && e.Transport:
		who = "by the peer's transport"
	case e.Remote:
		who = "by the peer"
	case e.Transport:
		who = "by the transport"
	}
	if e.Reason == "" {
		return fmt.Sprintf("arknet: session closed %s with code %d", who, e.Code)
	}
	return fmt.Sprintf("arknet: session closed %s with code %d: %s", who, e.Code, e.Reason)
}

// Is matches net.ErrClosed.
func (e *CloseError) Is(target error) bool { return target == net.ErrClosed }

// UnacknowledgedError is returned by a Close that could not deliver everything
// that was accepted before it.
type UnacknowledgedError struct {
	// Messages is the number of messages that the peer is not known to hold;
	// 0 for a byte stream.
	Messages uint64
	// Bytes is their size, headers of the transport included.
	Bytes int
	// Cause is why delivery ended.
	Cause error
}

// Error implements error.
func (e *UnacknowledgedError) Error() string {
	if e.Messages == 0 {
		return fmt.Sprintf("arknet: closed with %d bytes unacknowledged: %v", e.Bytes, e.Cause)
	}
	return fmt.Sprintf("arknet: closed with %d messages (%d bytes) unacknowledged: %v", e.Messages, e.Bytes, e.Cause)
}

// Unwrap returns the cause.
func (e *UnacknowledgedError) Unwrap() error { return e.Cause }
