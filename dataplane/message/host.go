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
// written behind the length of dst, which must not overlap authority, and
// returned without what dst held before.
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
	var upper, ok bool
	if authority[0] == '[' {
		n, upper, ok = literalLength(authority)
	} else {
		n, upper, ok = nameLength(authority)
	}
	if !ok || !validPort(authority[n:]) {
		return nil, errHost
	}
	host := authority[:n]
	if host[n-1] == '.' {
		host = host[:n-1]
	}
	if len(host) == 0 || len(host) > maxHostLength {
		return nil, errHost
	}
	if upper {
		return appendLower(dst, host), nil
	}
	return host, nil
}

// hostClass says what a byte is to a host name.
type hostClass uint8

const (
	hostRefused hostClass = iota
	hostColon             // begins the port
	hostDot               // ends a label
	hostUpper             // stands for its lower case
	hostPlain             // stands for itself
)

// hostClasses maps each byte to its class.
var hostClasses = func() (t [256]hostClass) {
	for c := range t {
		switch {
		case c >= 'A' && c <= 'Z':
			t[c] = hostUpper
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c == '-', c == '_', c == '~':
			t[c] = hostPlain
		}
	}
	t['.'], t[':'] = hostDot, hostColon
	return t
}()

// nameLength returns the length of the name at the start of p, up to the
// port's colon, and whether it has upper case letters.
func nameLength(p []byte) (n int, upper, ok bool) {
	for i, c := range p {
		class := hostClasses[c]
		if class == hostPlain {
			continue // most bytes
		}
		switch class {
		case hostUpper:
			upper = true
		case hostDot:
			if i == 0 || p[i-1] == '.' {
				return 0, false, false
			}
		case hostColon:
			return i, upper, i > 0
		default:
			return 0, false, false
		}
	}
	return len(p), upper, true
}

// literalLength returns the length of the bracketed IPv6 address at the start
// of p, and whether it has upper case letters. It looks at the characters
// only: an address is never routed by value.
func literalLength(p []byte) (n int, upper, ok bool) {
	for i, c := range p[1:] {
		switch {
		case isHex(c), c == ':', c == '.':
			upper = upper || hostClasses[c] == hostUpper
		case c == ']':
			return i + 2, upper, i >= 2 // "::" is the shortest
		default:
			return 0, false, false
		}
	}
	return 0, false, false
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
func appendLower(dst, host []byte) []byte {
	start := len(dst)
	dst = append(dst, host...)
	lower := dst[start:]
	for i, c := range lower {
		if hostClasses[c] == hostUpper {
			lower[i] = c | 0x20
		}
	}
	return lower
}
