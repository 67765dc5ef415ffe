package http1

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/headgate/headgate/dataplane/message"
)

// ResponseOptions tell how a response is framed on the client's connection.
type ResponseOptions struct {
	// Minor is the client's minor version of HTTP.
	Minor uint8
	// KeepAlive tells that the connection stays open after the response.
	KeepAlive bool
	// Chunked tells that a body of unknown length is sent in chunks. Without it,
	// such a body ends with the connection, whatever KeepAlive says.
	Chunked bool
}

// Framing returns how r is to be sent to a client that speaks HTTP/1.minor and
// with which the connection may, for all else, be kept: a body of unknown length
// is chunked for HTTP/1.1 and ends a connection of HTTP/1.0.
func Framing(r *message.Response, minor uint8, keepAlive bool) ResponseOptions {
	o := ResponseOptions{Minor: minor, KeepAlive: keepAlive}
	if !r.Bodyless && r.ContentLength == message.Unknown {
		o.Chunked = minor > 0
		o.KeepAlive = keepAlive && minor > 0
	}
	return o
}

// AppendRequest appends the head of r in the origin form (RFC 9112, 3.2.1), as
// HTTP/1.1. A body of unknown length is to be sent in chunks.
func AppendRequest(dst []byte, r *message.Request) []byte {
	dst = appendMethod(dst, r.Method)
	dst = append(dst, ' ')
	dst = appendTarget(dst, r.Path, false)
	if r.HasQuery {
		dst = append(dst, '?')
		dst = appendTarget(dst, r.Query, true)
	}
	dst = append(dst, " HTTP/1.1\r\nHost: "...)
	dst = appendHost(dst, r.Host)
	dst = append(dst, "\r\n"...)
	dst = appendFields(dst, &r.Headers)
	switch {
	case r.ContentLength == message.Unknown:
		dst = append(dst, "Transfer-Encoding: chunked\r\n"...)
	case r.ContentLength > 0 || anticipatesBody(r.Method):
		dst = appendLength(dst, r.ContentLength)
	}
	if r.ExpectContinue {
		dst = append(dst, "Expect: 100-continue\r\n"...)
	}
	upgrade := len(r.Upgrade) > 0 && clean(r.Upgrade)
	switch {
	case upgrade && r.AcceptsTrailers:
		dst = append(dst, "Connection: Upgrade, TE\r\n"...)
	case upgrade:
		dst = append(dst, "Connection: Upgrade\r\n"...)
	case r.AcceptsTrailers:
		dst = append(dst, "Connection: TE\r\n"...) // RFC 9110, 10.1.4
	}
	if upgrade {
		dst = appendField(dst, "Upgrade", r.Upgrade)
	}
	if r.AcceptsTrailers {
		dst = append(dst, "TE: trailers\r\n"...)
	}
	return append(dst, "\r\n"...)
}

// anticipatesBody tells whether a request without a body says so (RFC 9110, 8.6).
func anticipatesBody(method []byte) bool {
	switch string(method) {
	case "POST", "PUT", "PATCH":
		return true
	}
	return false
}

// AppendResponse appends the head of r for a client. The status line's reason is
// r's, else the standard one. It says HTTP/1.1 whatever the client speaks (RFC
// 9110, 2.5).
func AppendResponse(dst []byte, r *message.Response, o ResponseOptions) []byte {
	dst = append(dst, "HTTP/1.1 "...)
	dst = strconv.AppendInt(dst, int64(r.Status), 10)
	dst = append(dst, ' ')
	if len(r.Reason) > 0 && clean(r.Reason) {
		dst = append(dst, r.Reason...)
	} else {
		dst = append(dst, http.StatusText(r.Status)...)
	}
	dst = append(dst, "\r\n"...)
	dst = appendFields(dst, &r.Headers)
	if r.Status < 200 {
		// RFC 9110, 8.6 and RFC 9112, 6.1: no framing fields in a 1xx.
		if r.Status == 101 && clean(r.Upgrade) {
			dst = append(dst, "Connection: Upgrade\r\n"...)
			dst = appendField(dst, "Upgrade", r.Upgrade)
		}
		return append(dst, "\r\n"...)
	}
	keep := o.KeepAlive
	switch {
	case r.Status == 204: // nor in a 204
	case r.ContentLength != message.Unknown:
		dst = appendLength(dst, r.ContentLength)
	case r.Bodyless:
	case o.Chunked && o.Minor > 0:
		dst = append(dst, "Transfer-Encoding: chunked\r\n"...)
	default:
		keep = false
	}
	switch {
	case !keep:
		dst = append(dst, "Connection: close\r\n"...)
	case o.Minor == 0:
		dst = append(dst, "Connection: keep-alive\r\n"...)
	}
	return append(dst, "\r\n"...)
}

// AppendChunk appends data as one chunk; nothing when data is empty, as an empty
// chunk would end the body.
func AppendChunk(dst, data []byte) []byte {
	if len(data) == 0 {
		return dst
	}
	dst = AppendChunkHead(dst, len(data))
	dst = append(dst, data...)
	return append(dst, "\r\n"...)
}

// AppendChunkHead appends the line before a chunk of n bytes, n > 0. The n bytes
// and a CRLF must follow.
func AppendChunkHead(dst []byte, n int) []byte {
	dst = strconv.AppendUint(dst, uint64(n), 16)
	return append(dst, "\r\n"...)
}

// AppendLastChunk appends what ends a chunked body: the last chunk and the
// trailer section. Trailers may be nil.
func AppendLastChunk(dst []byte, trailers *message.Headers) []byte {
	dst = append(dst, "0\r\n"...)
	if trailers != nil {
		for _, f := range trailers.Fields() {
			if trailerAllowed(f.Name) && allToken(f.Name) && clean(f.Value) {
				dst = appendLine(dst, f.Name, f.Value)
			}
		}
	}
	return append(dst, "\r\n"...)
}

// appendFields appends the fields of h. What could break the framing is left
// out: it can't come from a parser of this package, but perhaps from a filter or
// from another codec.
func appendFields(dst []byte, h *message.Headers) []byte {
	fields := h.Fields()
	dst = slices.Grow(dst, h.Size()+len(": \r\n")*len(fields))
	for _, f := range fields {
		if specialOf(f.Name) == ordinary && allToken(f.Name) && clean(f.Value) {
			dst = appendLine(dst, f.Name, f.Value)
		}
	}
	return dst
}

// appendLine appends a field line.
func appendLine(dst, name, value []byte) []byte {
	dst = append(dst, name...)
	dst = append(dst, ": "...)
	dst = append(dst, value...)
	return append(dst, "\r\n"...)
}

func appendField(dst []byte, name string, value []byte) []byte {
	dst = append(dst, name...)
	dst = append(dst, ": "...)
	dst = append(dst, value...)
	return append(dst, "\r\n"...)
}

func appendLength(dst []byte, n int64) []byte {
	dst = append(dst, "Content-Length: "...)
	dst = strconv.AppendInt(dst, n, 10)
	return append(dst, "\r\n"...)
}

// clean tells whether b has no control character.
func clean(b []byte) bool { return controlAt(b, 0) == len(b) }

// appendMethod appends a method without what is not part of a token.
func appendMethod(dst, b []byte) []byte {
	if allToken(b) {
		return append(dst, b...)
	}
	for _, c := range b {
		if classes[c]&isToken != 0 {
			dst = append(dst, c)
		}
	}
	return dst
}

// appendHost appends an authority without control characters and white space.
func appendHost(dst, b []byte) []byte {
	for _, c := range b {
		if c > ' ' && c != 0x7f {
			dst = append(dst, c)
		}
	}
	return dst
}

// appendTarget appends a path or a query, and escapes what would end it.
func appendTarget(dst, b []byte, query bool) []byte {
	const digits = "0123456789ABCDEF"
	for _, c := range b {
		if classes[c]&isTarget != 0 || query && c == '?' {
			dst = append(dst, c)
		} else {
			dst = append(dst, '%', digits[c>>4], digits[c&15])
		}
	}
	return dst
}
