package message

// Response is a response's head. Hop-by-hop and framing fields are not in
// Headers.
type Response struct {
	// Status is the status code, 100 to 999.
	Status int
	// Reason is the reason phrase as received, or nil.
	Reason []byte
	// Headers are the end-to-end fields.
	Headers Headers
	// ContentLength is the body's length, or Unknown. When Bodyless is set it
	// is what a body would have had, and Unknown means that nothing was said.
	ContentLength int64
	// Bodyless tells that no body follows whatever ContentLength says: an
	// answer to HEAD, a 1xx, 204 or 304.
	Bodyless bool
	// Upgrade is the protocol of a 101, or nil.
	Upgrade []byte
	// Major and Minor are the HTTP version of the sender.
	Major, Minor uint8
}

// Reset empties the response and keeps its memory.
func (r *Response) Reset() {
	h := r.Headers
	h.Reset()
	*r = Response{Headers: h}
}

// Informational tells whether another head follows this one (RFC 9110, 15.2).
// A 101 is final: the connection changes its protocol.
func (r *Response) Informational() bool {
	return r.Status >= 100 && r.Status < 200 && r.Status != 101
}
