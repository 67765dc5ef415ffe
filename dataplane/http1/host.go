package http1

import "bytes"

// validAuthority tells whether b is a host and perhaps a port (RFC 9110, 7.2).
// The host is not empty, has no user information, and is an IPv6 address when it
// stands in brackets.
func validAuthority(b []byte) bool {
	if len(b) == 0 {
		return false
	}
	if b[0] == '[' {
		i := bytes.IndexByte(b, ']')
		return i > 0 && validIPv6(b[1:i]) && validPort(b[i+1:])
	}
	i := 0
	for i < len(b) && b[i] != ':' {
		if c := b[i]; classes[c]&isRegName == 0 {
			if c != '%' || i+2 >= len(b) || classes[b[i+1]]&classes[b[i+2]]&isHex == 0 {
				return false
			}
			i += 2
		}
		i++
	}
	return i > 0 && validPort(b[i:])
}

// validPort tells whether b is nothing, or a colon and a port, which may be
// empty (RFC 3986, 3.2.3).
func validPort(b []byte) bool {
	if len(b) == 0 {
		return true
	}
	n := 0
	for _, c := range b[1:] {
		if n = n*10 + int(c-'0'); c < '0' || c > '9' || n > 65535 {
			return false
		}
	}
	return b[0] == ':'
}

// validIPv6 tells whether b is an IPv6 address (RFC 3986, 3.2.2), without a zone.
func validIPv6(b []byte) bool {
	groups, compressed := 0, false
	if bytes.HasPrefix(b, []byte("::")) {
		compressed = true
		b = b[2:]
		if len(b) == 0 {
			return true
		}
	}
	for {
		n := 0
		for n < len(b) && n < 4 && classes[b[n]]&isHex != 0 {
			n++
		}
		if n == 0 {
			return false
		}
		if n < len(b) && b[n] == '.' {
			groups += 2
			return validIPv4(b) && (groups == 8 || compressed && groups < 8)
		}
		groups++
		if n == len(b) {
			break
		}
		if b[n] != ':' {
			return false
		}
		b = b[n+1:]
		if len(b) > 0 && b[0] == ':' {
			if compressed {
				return false
			}
			compressed = true
			if b = b[1:]; len(b) == 0 {
				break
			}
		}
	}
	return groups == 8 || compressed && groups < 8
}

// validIPv4 tells whether b is four decimal octets without leading zeros.
func validIPv4(b []byte) bool {
	octets := 0
	for {
		n, v := 0, 0
		for n < len(b) && n < 3 && '0' <= b[n] && b[n] <= '9' {
			v = v*10 + int(b[n]-'0')
			n++
		}
		if n == 0 || v > 255 || n > 1 && b[0] == '0' {
			return false
		}
		octets++
		if n == len(b) {
			return octets == 4
		}
		if b[n] != '.' {
			return false
		}
		b = b[n+1:]
	}
}
