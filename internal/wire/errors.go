package wire

import "errors"

// Parse errors. Each is a reason to drop a datagram and to count it; none
// carries bytes of the peer.
var (
	ErrTruncated   = errors.New("wire: datagram ends inside a field")
	ErrReserved    = errors.New("wire: reserved bit or type is set")
	ErrNotMinimal  = errors.New("wire: number is cut or not in its shortest form")
	ErrRange       = errors.New("wire: ack range runs below zero or counts more than allowed")
	ErrTooLong     = errors.New("wire: field is longer than allowed")
	ErrDuplicate   = errors.New("wire: parameter is given twice")
	ErrMissing     = errors.New("wire: required parameter is missing")
	ErrParam       = errors.New("wire: parameter is outside its range")
	ErrRecordShape = errors.New("wire: message record does not fit its symbol")
)
