package message

// Unknown is the ContentLength of a body whose length is not known when its
// head is: it ends with the stream.
const Unknown int64 = -1

// Request is a request's head. Hop-by-hop and framing fields, Host, Expect and
// Upgrade are not in Headers: they are the fields below.
type Request struct {
	// Method as in the request line; methods are case-sensitive.
	Method []byte
	// Secure tells that the client came over TLS.
	Secure bool
	// Host is the authority as the client named it, port included; empty when a
	// client of HTTP/1.0 named none.
	Host []byte
	// Path is the path as received, never empty: "*" for OPTIONS *, else it
	// starts with a slash. The exchange replaces it with the normalised path
	// before it is matched and forwarded.
	Path []byte
	// Query is what follows the first question mark; HasQuery tells "/?" from
	// "/".
	Query    []byte
	HasQuery bool
	// Headers are the end-to-end fields.
	Headers Headers
	// ContentLength is the body's length in bytes, 0 for none, or Unknown.
	ContentLength int64
	// Upgrade is the protocol that the client asks to switch to, or nil.
	Upgrade []byte
	// ExpectContinue tells that the client waits for a 100 before it sends the
	// body.
	ExpectContinue bool
	// AcceptsTrailers tells that the client sent "TE: trailers".
	AcceptsTrailers bool
	// Major and Minor are the client's HTTP version.
	Major, Minor uint8
}

// Reset empties the request and keeps its memory.
func (r *Request) Reset() {
	h := r.Headers
	h.Reset()
	*r = Request{Headers: h}
}

// HasBody tells whether a body follows the head.
func (r *Request) HasBody() bool { return r.ContentLength != 0 }

// IsHead tells whether the method is HEAD, whose responses have no body.
func (r *Request) IsHead() bool { return string(r.Method) == "HEAD" }

// Idempotent tells whether the method may be sent again when it is not known
// whether the first try was served (RFC 9110, 9.2.2).
func (r *Request) Idempotent() bool {
	switch string(r.Method) {
	case "GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE":
		return true
	}
	return false
}
