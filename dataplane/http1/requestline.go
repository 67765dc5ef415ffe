package http1

import (
	"bytes"

	"github.com/headgate/headgate/dataplane/message"
)

// requestLine is a parsed request line; its slices are parts of the line.
type requestLine struct {
	method    []byte
	authority []byte // of the absolute form, else nil
	path      []byte // empty when the absolute form has none
	query     []byte
	hasQuery  bool
	absolute  bool
	minor     uint8 // 0 or 1
}

// parseRequestLine parses a request line without its CRLF (RFC 9112, 3). Exactly
// one SP stands between the parts.
func parseRequestLine(line []byte) (r requestLine, f *fault) {
	if i := controlAt(line, 0); i < len(line) && (line[i] == '\r' || line[i] == 0) {
		return r, lineEnd(line, i)
	}
	n := 0
	for n < len(line) && classes[line[n]]&isToken != 0 {
		n++
	}
	if n == 0 || n < len(line) && line[n] != ' ' {
		return r, faultMethod
	}
	last := bytes.LastIndexByte(line, ' ')
	if last <= n {
		return r, faultRequestLine
	}
	if n > maxMethod {
		return r, faultMethodLong // RFC 9112, 3: SHOULD be a 501
	}
	r.method = line[:n]
	target := line[n+1 : last]
	if r.minor, f = parseVersion(line[last+1:]); f != nil {
		if f == faultVersionOther && string(line) == "PRI * HTTP/2.0" {
			f = faultPreface
		}
		return r, f
	}
	return r, r.parseTarget(target)
}

// parseVersion parses an HTTP version (RFC 9112, 2.3). A minor version above 1 is
// served as 1.1 (RFC 9110, 2.5).
func parseVersion(b []byte) (minor uint8, f *fault) {
	if string(b) == "HTTP/1.1" {
		return 1, nil
	}
	if len(b) != 8 || string(b[:5]) != "HTTP/" || b[6] != '.' || b[5]-'0' > 9 || b[7]-'0' > 9 {
		return 0, faultVersion
	}
	if b[5] != '1' {
		return 0, faultVersionOther
	}
	return min(b[7]-'0', 1), nil
}

// parseTarget takes the request target apart (RFC 9112, 3.2).
func (r *requestLine) parseTarget(b []byte) *fault {
	switch {
	case string(r.method) == "CONNECT":
		return faultConnect
	case len(b) == 0:
		return faultRequestLine
	case b[0] == '/':
	case len(b) == 1 && b[0] == '*':
		if string(r.method) != "OPTIONS" {
			return faultTarget
		}
		r.path = b
		return nil
	default:
		i := bytes.Index(b, []byte("://"))
		if i < 0 {
			return faultTarget
		}
		if s := b[:i]; !message.EqualFold(s, "http") && !message.EqualFold(s, "https") {
			return faultScheme
		}
		b = b[i+3:]
		end := bytes.IndexAny(b, "/?#")
		if end < 0 {
			end = len(b)
		}
		r.absolute = true
		r.authority, b = b[:end], b[end:]
		if bytes.IndexByte(r.authority, '@') >= 0 {
			return faultUserinfo
		}
		if !validAuthority(r.authority) {
			return faultAuthority // an empty one too (RFC 9110, 4.2.1)
		}
	}
	i := 0
	for i < len(b) && classes[b[i]]&isTarget != 0 {
		i++
	}
	r.path = b[:i]
	if i < len(b) && b[i] == '?' {
		i++
		start := i
		for i < len(b) && (classes[b[i]]&isTarget != 0 || b[i] == '?') {
			i++
		}
		r.query, r.hasQuery = b[start:i], true
	}
	switch {
	case i == len(b):
		return nil
	case b[i] == '#':
		return faultFragment
	}
	return faultTargetByte
}
