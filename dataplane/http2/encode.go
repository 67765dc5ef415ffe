package http2

import (
	"strconv"

	"github.com/headgate/headgate/dataplane/http1"
	"github.com/headgate/headgate/dataplane/message"
)

// The encoder uses HPACK's static table only, and no Huffman code: it keeps
// nothing between two heads, allocates nothing, and a client can't make it hold
// memory. See DESIGN.md.

// The representations of RFC 7541, 6.
const (
	indexedField = 0x80 // 6.1; 7 bits of index
	literalField = 0x00 // 6.2.2, without indexing; 4 bits of index
	secretField  = 0x10 // 6.2.3, never indexed; 4 bits of index
)

// Indices of the static table (RFC 7541, A).
const (
	indexStatus        = 8
	indexContentLength = 28
)

// AppendHead appends the field block of a response's head. What could not come
// from a parser, and what belongs to HTTP/1.1's connections, is left out.
func AppendHead(dst []byte, r *message.Response) []byte {
	dst = appendStatus(dst, r.Status)
	for _, f := range r.Headers.Fields() {
		if !http1.IsConnectionField(f.Name) {
			dst = appendField(dst, f.Name, f.Value)
		}
	}
	// RFC 9110, 8.6: not in a 1xx and a 204. That of a 304 is optional, and
	// there are clients (Go's) that then wait for a body.
	if r.ContentLength != message.Unknown && r.Status >= 200 && r.Status != 204 && r.Status != 304 {
		var buf [20]byte
		dst = appendInt(dst, literalField, 4, indexContentLength)
		dst = appendString(dst, strconv.AppendInt(buf[:0], r.ContentLength, 10))
	}
	return dst
}

// AppendTrailers appends the field block of a trailer section.
func AppendTrailers(dst []byte, h *message.Headers) []byte {
	for _, f := range h.Fields() {
		if http1.TrailerAllowed(f.Name) {
			dst = appendField(dst, f.Name, f.Value)
		}
	}
	return dst
}

// appendStatus appends :status (RFC 9113, 8.3.2).
func appendStatus(dst []byte, status int) []byte {
	index := 0
	switch status {
	case 200:
		index = 8
	case 204:
		index = 9
	case 206:
		index = 10
	case 304:
		index = 11
	case 400:
		index = 12
	case 404:
		index = 13
	case 500:
		index = 14
	}
	if index > 0 {
		return append(dst, indexedField|byte(index))
	}
	dst = appendInt(dst, literalField, 4, indexStatus)
	var buf [20]byte
	return appendString(dst, strconv.AppendInt(buf[:0], int64(status), 10))
}

// appendField appends a field. One that would be malformed is left out.
func appendField(dst, name, value []byte) []byte {
	if !http1.IsToken(name) || !http1.IsFieldValue(value) {
		return dst
	}
	for len(value) > 0 && isSpace(value[0]) { // RFC 9113, 8.2.1
		value = value[1:]
	}
	for len(value) > 0 && isSpace(value[len(value)-1]) {
		value = value[:len(value)-1]
	}
	var buf [longestName]byte
	index := 0
	if len(name) <= len(buf) {
		index = staticIndex(string(appendLower(buf[:0], name)))
	}
	kind := byte(literalField)
	if index == indexSetCookie {
		kind = secretField // RFC 7541, 7.1.3
	}
	dst = appendInt(dst, kind, 4, index)
	if index == 0 {
		dst = appendInt(dst, 0, 7, len(name))
		dst = appendLower(dst, name)
	}
	return appendString(dst, value)
}

// appendInt appends an integer behind a prefix of so many bits (RFC 7541, 5.1).
func appendInt(dst []byte, first byte, bits, n int) []byte {
	limit := 1<<bits - 1
	if n < limit {
		return append(dst, first|byte(n))
	}
	dst = append(dst, first|byte(limit))
	for n -= limit; n >= 128; n >>= 7 {
		dst = append(dst, byte(n)|0x80)
	}
	return append(dst, byte(n))
}

// appendString appends a string as it is (RFC 7541, 5.2).
func appendString(dst, s []byte) []byte {
	return append(appendInt(dst, 0, 7, len(s)), s...)
}

// appendLower appends a token in lower case.
func appendLower(dst, s []byte) []byte {
	for _, c := range s {
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		dst = append(dst, c)
	}
	return dst
}

const (
	longestName    = len("access-control-allow-origin")
	indexSetCookie = 55
)

// staticIndex returns the place of a response's field name in the static table
// (RFC 7541, A), 0 when it is not there.
func staticIndex(name string) int {
	switch name {
	case "accept-ranges":
		return 18
	case "access-control-allow-origin":
		return 20
	case "age":
		return 21
	case "allow":
		return 22
	case "cache-control":
		return 24
	case "content-disposition":
		return 25
	case "content-encoding":
		return 26
	case "content-language":
		return 27
	case "content-location":
		return 29
	case "content-range":
		return 30
	case "content-type":
		return 31
	case "date":
		return 33
	case "etag":
		return 34
	case "expires":
		return 36
	case "last-modified":
		return 44
	case "link":
		return 45
	case "location":
		return 46
	case "proxy-authenticate":
		return 48
	case "refresh":
		return 52
	case "retry-after":
		return 53
	case "server":
		return 54
	case "set-cookie":
		return indexSetCookie
	case "strict-transport-security":
		return 56
	case "vary":
		return 59
	case "via":
		return 60
	case "www-authenticate":
		return 61
	}
	return 0
}
