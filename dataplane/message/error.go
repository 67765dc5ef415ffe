package message

import "fmt"

// Origin says who is at fault when a request fails.
type Origin uint8

// The origins.
const (
	Client Origin = iota + 1
	Upstream
	Gateway
)

// String returns the origin's name in lower case.
func (o Origin) String() string {
	switch o {
	case Client:
		return "client"
	case Upstream:
		return "upstream"
	case Gateway:
		return "gateway"
	}
	return "unknown"
}

// RequestError is why a request could not be served.
type RequestError struct {
	Origin Origin
	// Status is the HTTP status for the client, 400 to 599.
	Status int
	// Reason is a short constant for logs and metrics, in snake case:
	// "bad_chunk_size", "connect_timeout".
	Reason string
	// Err is the cause in words; may be nil.
	Err error
}

// Error returns the origin, the status and the cause.
func (e *RequestError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("%s: %d %s", e.Origin, e.Status, e.Reason)
	}
	return fmt.Sprintf("%s: %d %s: %v", e.Origin, e.Status, e.Reason, e.Err)
}

// Unwrap returns the cause.
func (e *RequestError) Unwrap() error { return e.Err }
