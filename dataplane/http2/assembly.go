package http2

import (
	"errors"

	"golang.org/x/net/http2/hpack"

	"github.com/headgate/headgate/dataplane/http1"
	"github.com/headgate/headgate/dataplane/message"
)

// purpose is what a field block is for.
type purpose uint8

const (
	nothing  purpose = iota // it is decoded and dropped
	request                 // a request's head
	trailers                // the end of a request
)

// fieldOverhead is what a field counts for besides its bytes (RFC 9113, 6.5.2).
const fieldOverhead = 32

// keptMemory is how much of what a head needed is kept for the next one.
const keptMemory = 4 << 10

// assembly builds a message from a field block.
type assembly struct {
	conn *Conn

	stream  uint32 // 0 outside of a block
	req     *message.Request
	block   []byte // when it comes in several frames
	frames  int
	what    purpose
	last    bool // END_STREAM
	refused bool // too many streams

	malformed *message.RequestError // resets the stream
	refusal   error                 // is answered
	trailers  message.Headers
	cookie    []byte
	method    []byte
	scheme    []byte
	authority []byte
	path      []byte
	host      []byte
	length    int64
	size      int
	count     int
	cookies   int
	fields    bool // a field that is not a pseudo-header field has come
	hasHost   bool
	hasLength bool
}

func (a *assembly) begin(stream uint32, last bool) {
	t, cookie := a.trailers, a.cookie[:0]
	*a = assembly{conn: a.conn, stream: stream, last: last, trailers: t, cookie: cookie, length: message.Unknown}
}

// end lets go of what the block referred to.
func (a *assembly) end() {
	a.stream = 0
	a.req = nil
	a.method, a.scheme, a.authority, a.path, a.host = nil, nil, nil, nil, nil
	if cap(a.cookie) > keptMemory {
		a.cookie = nil
	}
	if a.what != trailers && a.trailers.Retained() > keptMemory {
		a.trailers = message.Headers{}
	}
}

// fault notes what makes the message malformed; the first counts.
func (a *assembly) fault(reason, text string) {
	if a.malformed == nil {
		a.malformed = errMalformed(reason, text)
	}
}

// refuse notes why the request is refused; the first reason counts.
func (a *assembly) refuse(err error) {
	if a.refusal == nil {
		a.refusal = err
	}
}

// field takes a field that was decoded. It is the decoder's emit function.
func (a *assembly) field(f hpack.HeaderField) {
	if a.what == nothing || a.malformed != nil {
		return
	}
	a.size += len(f.Name) + len(f.Value) + fieldOverhead
	if a.what == trailers {
		a.trailer(f)
		return
	}
	tooLarge := a.size > a.conn.limits.MaxHeaderBytes()
	if tooLarge && a.refusal == nil {
		a.refuse(http1.ErrTooLarge())
	}
	if len(f.Name) > 0 && f.Name[0] == ':' && !(tooLarge && a.fields) {
		a.pseudo(f)
		return
	}
	a.fields = true
	// What a byte of the block refers to may be 4 KiB: behind the limit nothing
	// is looked at, or a head would cost what 500 MiB of fields do.
	if tooLarge || !a.sound(f) || a.refusal != nil {
		return
	}
	a.regular(f)
}

// pseudo takes a pseudo-header field (RFC 9113, 8.3).
func (a *assembly) pseudo(f hpack.HeaderField) {
	var into *[]byte
	switch f.Name {
	case ":method":
		into = &a.method
	case ":scheme":
		into = &a.scheme
	case ":authority":
		into = &a.authority
	case ":path":
		into = &a.path
	default: // :status and, as we offer no extended CONNECT, :protocol
		a.fault("unknown_pseudo_header", "a pseudo-header field that no request has")
		return
	}
	switch {
	case len(f.Value) == 0:
		a.fault("empty_pseudo_header", "a pseudo-header field without a value")
	case a.fields:
		a.fault("late_pseudo_header", "a pseudo-header field after other fields")
	case *into != nil:
		a.fault("duplicate_pseudo_header", "a pseudo-header field twice")
	case a.refusal == nil || len(f.Value) <= keptMemory:
		// The request that is refused has a method, for the log.
		*into = a.req.Headers.StoreString(f.Value)
	default:
		*into = []byte{}
	}
}

// sound checks what every field must be (RFC 9113, 8.2).
func (a *assembly) sound(f hpack.HeaderField) bool {
	switch {
	case !lowerToken(f.Name):
		a.fault("bad_header_name", "a field name is not a token in lower case") // 8.2.1
	case !validValue(f.Value):
		a.fault("bad_header_value", "a field value has a control character, or white space around it") // 8.2.1
	case connectionField(f.Name), f.Name == "te" && f.Value != "trailers":
		a.fault("connection_field", "a field that belongs to HTTP/1.1's connections") // 8.2.2
	default:
		return true
	}
	return false
}

// regular takes a field of a request.
func (a *assembly) regular(f hpack.HeaderField) {
	h := &a.req.Headers
	switch f.Name {
	case "cookie": // 8.2.3: crumbs are joined
		if a.cookies++; a.cookies > 1 {
			a.cookie = append(a.cookie, "; "...)
		}
		a.cookie = append(a.cookie, f.Value...)
		return
	case "host":
		if a.hasHost {
			a.fault("duplicate_host", "more than one host field")
		}
		a.hasHost = true
		a.host = h.StoreString(f.Value)
	case "content-length":
		n, err := http1.ParseLength([]byte(f.Value))
		switch {
		case err != nil:
			a.fault("bad_content_length", "the content-length is not a decimal number") // 8.1.1
		case a.hasLength && n != a.length:
			a.fault("conflicting_content_length", "the content-lengths differ")
		case a.hasLength:
			a.fault("duplicate_content_length", "more than one content-length")
		}
		a.hasLength, a.length = true, n
	case "expect":
		a.req.ExpectContinue = true
		if err := http1.CheckExpect([]byte(f.Value)); err != nil {
			a.refuse(err)
		}
	case "te":
		a.req.AcceptsTrailers = true
	default:
		if a.count++; a.count > a.conn.limits.MaxHeaderCount() {
			a.refuse(http1.ErrTooMany())
			return
		}
		name := h.StoreString(f.Name)
		h.Append(name, h.StoreString(f.Value))
	}
}

// trailer takes a field of a trailer section.
func (a *assembly) trailer(f hpack.HeaderField) {
	if a.refusal != nil {
		return // see field
	}
	if len(f.Name) > 0 && f.Name[0] == ':' {
		a.fault("pseudo_header_in_trailers", "a pseudo-header field in trailers") // 8.1
		return
	}
	if !a.sound(f) {
		return
	}
	l := a.conn.limits
	a.count++
	switch {
	case a.size > l.MaxTrailerBytes()+a.count*fieldOverhead:
		a.refuse(&message.RequestError{Origin: message.Client, Status: 431, Reason: "trailers_too_large", Err: errTrailers})
	case a.count > l.MaxTrailerCount():
		a.refuse(&message.RequestError{Origin: message.Client, Status: 431, Reason: "too_many_trailers", Err: errTrailers})
	}
	if a.refusal == nil && http1.TrailerAllowed([]byte(f.Name)) {
		name := a.trailers.StoreString(f.Name)
		a.trailers.Append(name, a.trailers.StoreString(f.Value))
	}
}

var errTrailers = errors.New("the trailer section is too large")

// finish decides what the fields of a request's head mean together (RFC 9113,
// 8.3.1).
func (a *assembly) finish() {
	if a.malformed != nil {
		return
	}
	req := a.req
	req.Method = a.method
	switch {
	case a.method == nil:
		a.fault("missing_pseudo_header", "the request has no :method")
		return
	case string(a.method) == "CONNECT": // 8.5: it has neither scheme nor path
		a.path = a.req.Headers.StoreString("/")
	case a.scheme == nil || len(a.path) == 0:
		if a.refusal == nil {
			a.fault("missing_pseudo_header", "the request has no :scheme or no :path")
			return
		}
		a.path = a.req.Headers.StoreString("/")
	}
	if a.authority != nil && a.hasHost && !equalHost(a.authority, a.host) {
		a.fault("authority_and_host", ":authority and host differ")
		return
	}
	req.Path = a.path
	if a.authority != nil {
		req.Host = a.authority
	} else {
		req.Host = a.host
	}
	if a.hasLength && a.last && a.length > 0 {
		a.fault("content_length_mismatch", "the body's length is not the declared one")
		return
	}
	if a.cookies > 0 && a.refusal == nil {
		h := &req.Headers
		name := h.StoreString("cookie")
		h.Append(name, h.Store(a.cookie))
	}
	a.route()
	switch {
	case a.last:
		req.ContentLength = 0
	case a.hasLength:
		req.ContentLength = a.length
	default:
		req.ContentLength = message.Unknown
	}
	req.ExpectContinue = req.ExpectContinue && req.HasBody()
}

// route checks the parts of the request that say where it goes.
func (a *assembly) route() {
	req := a.req
	if err := http1.CheckMethod(a.method); err != nil {
		a.refuse(err)
		return
	}
	if err := http1.CheckScheme(a.scheme); err != nil {
		a.refuse(err)
		return
	}
	path, query, hasQuery, err := http1.ParseTarget(a.method, a.path, a.conn.limits)
	if err != nil {
		a.refuse(err)
		return
	}
	req.Path, req.Query, req.HasQuery = path, query, hasQuery
	if err := http1.CheckAuthority(req.Host); err != nil {
		a.refuse(err)
	}
}

// equalHost compares two authorities without regard to ASCII case.
func equalHost(a, b []byte) bool { return message.EqualFold(a, string(b)) }

// lowerToken tells whether s is a token without upper case (RFC 9113, 8.2.1).
func lowerToken(s string) bool {
	for i := range len(s) {
		if c := s[i]; 'A' <= c && c <= 'Z' || !http1.IsTokenByte(c) {
			return false
		}
	}
	return len(s) > 0
}

// validValue tells whether s may be a field value (RFC 9113, 8.2.1).
func validValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	n := len(s)
	return n == 0 || !isSpace(s[0]) && !isSpace(s[n-1])
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' }

// connectionField tells whether a field has no place in HTTP/2 (RFC 9113,
// 8.2.2). TE is another matter.
func connectionField(name string) bool {
	switch name {
	case "connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade":
		return true
	}
	return false
}
