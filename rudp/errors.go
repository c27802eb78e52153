package rudp

import (
	"errors"
	"io"
	"net"

	"github.com/openarkstudio/arknet-go"
	"github.com/openarkstudio/arknet-go/internal/arq"
)

// publicError gives the error of the contract for one of the protocol core.
func publicError(err error) error {
	var closed *arq.CloseError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &closed):
		return &arknet.CloseError{
			Code: closed.Code, Reason: closed.Reason, Remote: closed.Remote, Transport: closed.Transport,
		}
	case errors.Is(err, arq.ErrQueueFull):
		return arknet.ErrQueueFull
	case errors.Is(err, arq.ErrMessageTooLarge):
		return arknet.ErrMessageTooLarge
	case errors.Is(err, arq.ErrWrongMode):
		return arknet.ErrWrongMode
	case errors.Is(err, arq.ErrPeerGone):
		return arknet.ErrPeerGone
	case errors.Is(err, arq.ErrIdleTimeout):
		return arknet.ErrIdleTimeout
	case errors.Is(err, arq.ErrHandshakeTimeout):
		return arknet.ErrConnectTimeout
	case errors.Is(err, arq.ErrReset):
		return arknet.ErrReset
	case errors.Is(err, arq.ErrVersion):
		return arknet.ErrVersion
	}
	return net.ErrClosed
}

// readError is what a read returns after the end of the session: a graceful
// close by the peer is the end of the file.
func readError(err error) error {
	var closed *arq.CloseError
	if errors.As(err, &closed) && closed.Remote && !closed.Transport && closed.Code == arq.CodeNone {
		return io.EOF
	}
	return publicError(err)
}
