package http2

import (
	"errors"
	"fmt"

	"github.com/headgate/headgate/dataplane/message"
)

// Code is an error code (RFC 9113, 7).
type Code uint32

// The error codes.
const (
	CodeNone Code = iota
	CodeProtocol
	CodeInternal
	CodeFlowControl
	CodeSettingsTimeout
	CodeStreamClosed
	CodeFrameSize
	CodeRefusedStream
	CodeCancel
	CodeCompression
	CodeConnect
	CodeEnhanceYourCalm
	CodeInadequateSecurity
	CodeHTTP11Required
)

// ConnError is a fault of the client that ends its connection. The GOAWAY that
// tells it is in [Conn.Out].
type ConnError struct {
	Code Code
	// Reason is a short constant for logs and metrics, in snake case.
	Reason string
}

// Error returns the code and the reason.
func (e *ConnError) Error() string { return fmt.Sprintf("http2: %s (error code %d)", e.Reason, e.Code) }

// errMalformed returns the fault of a request that is malformed (RFC 9113,
// 8.1.1): its stream is reset.
func errMalformed(reason, text string) *message.RequestError {
	return &message.RequestError{Origin: message.Client, Status: 400, Reason: reason, Err: errors.New(text)}
}
