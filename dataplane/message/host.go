package message

// errHost is what CanonicalHost refuses. It is shared and must not be changed.
var errHost = &RequestError{Origin: Client, Status: 400, Reason: "bad_host"}

// maxHostLength is the longest host name that the DNS knows, in its text form.
const maxHostLength = 253

// CanonicalHost returns the host of an authority ("host" or "host:port") in
// the form in which hosts are compared: in lower case, without the port and
// without one trailing dot. An IPv6 literal keeps its brackets. An empty
// authority, which HTTP/1.0 allows, is its own canonical form.
//
// When no letter has to change, the result is a part of authority. Else it is
// written behind the length of dst and returned without what dst held before.
//
// The error is a [*RequestError] with status 400: user information, a bad
// port, a character that no host name has (escapes included: nothing may be
// matched in a form that a server would read differently), an empty label, or
// a name of more than 253 bytes.
func CanonicalHost(dst, authority []byte) ([]byte, error) {
	if len(authority) == 0 {
		return authority, nil
	}
	var n int // length of the host, brackets included
	var ok bool
	if authority[0] == '[' {
		n, ok = literalLength(authority)
	} else {
		n, ok = nameLength(authority)
	}
	if !ok || !validPort(authority[n:]) {
		return nil, errHost
	}
	host := authority[:n]
	if host[n-1] == '.' {
		host = host[:n-1]
	}
	if len(host) == 0 || len(host) > maxHostLength || host[len(host)-1] == '.' {
		return nil, errHost
	}
	for i, c := range host {
		if c >= 'A' && c <= 'Z' {
			return appendLower(dst, host, i), nil
		}
	}
	return host, nil
}

// nameLength returns the length of the name at the start of p, up to the
// port's colon.
func nameLength(p []byte) (int, bool) {
	for i, c := range p {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '~':
		case c == '.':
			if i == 0 || p[i-1] == '.' {
				return 0, false
			}
		case c == ':':
			return i, i > 0
		default:
			return 0, false
		}
	}
	return len(p), true
}

// literalLength returns the length of the bracketed IPv6 address at the start
// of p. It looks at the characters only: an address is never routed by value.
func literalLength(p []byte) (int, bool) {
	for i, c := range p[1:] {
		switch {
		case isHex(c), c == ':', c == '.':
		case c == ']':
			return i + 2, i >= 2 // "::" is the shortest
		default:
			return 0, false
		}
	}
	return 0, false
}

// validPort tells whether p is empty or a colon and a port (RFC 3986, 3.2.3:
// which may be empty).
func validPort(p []byte) bool {
	if len(p) == 0 {
		return true
	}
	if p[0] != ':' || len(p) > len(":65535") {
		return false
	}
	port := 0
	for _, c := range p[1:] {
		if c < '0' || c > '9' {
			return false
		}
		port = 10*port + int(c-'0')
	}
	return port <= 65535
}

// appendLower appends host in lower case to dst and returns what it appended.
// The first n bytes have no upper case letter.
func appendLower(dst, host []byte, n int) []byte {
	start := len(dst)
	dst = append(dst, host...)
	lower := dst[start:]
	for i := n; i < len(lower); i++ {
		if c := lower[i]; c >= 'A' && c <= 'Z' {
			lower[i] = c | 0x20
		}
	}
	return lower
}
