package message

import "bytes"

// What NormalizePath refuses. They are shared and must not be changed.
var (
	errPathRelative  = &RequestError{Origin: Client, Status: 400, Reason: "path_not_absolute"}
	errPathEscape    = &RequestError{Origin: Client, Status: 400, Reason: "path_bad_escape"}
	errPathNUL       = &RequestError{Origin: Client, Status: 400, Reason: "path_nul"}
	errPathBackslash = &RequestError{Origin: Client, Status: 400, Reason: "path_backslash"}
	errPathControl   = &RequestError{Origin: Client, Status: 400, Reason: "path_control_character"}
	errPathDelimiter = &RequestError{Origin: Client, Status: 400, Reason: "path_delimiter"}
	errPathDotParam  = &RequestError{Origin: Client, Status: 400, Reason: "path_dot_segment_parameter"}
)

// pathClass says what a byte of a path is to NormalizePath.
type pathClass uint8

const (
	pathEncode    pathClass = iota // may not stand in a path (RFC 3986, 3.3): becomes an escape
	pathControl                    // refused
	pathBackslash                  // refused
	pathDelimiter                  // refused: "?" and "#" end a path
	pathPercent                    // begins an escape
	pathSlash                      // ends a segment
	pathReserved                   // stands for itself, but its escape is another character: sub-delims, ":", "@"
	pathPlain                      // unreserved: stands for itself and takes the place of its escape
	pathDot                        // unreserved too, and what dot segments are made of
)

// pathClasses maps each byte to its class.
var pathClasses = func() (t [256]pathClass) {
	for c := range t {
		switch {
		case c < 0x20 || c == 0x7f:
			t[c] = pathControl
		case c >= '0' && c <= '9', c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z':
			t[c] = pathPlain
		}
	}
	for _, c := range []byte("-_~") {
		t[c] = pathPlain
	}
	for _, c := range []byte("!$&'()*+,;=:@") {
		t[c] = pathReserved
	}
	t['.'], t['/'], t['%'] = pathDot, pathSlash, pathPercent
	t['\\'], t['?'], t['#'] = pathBackslash, pathDelimiter, pathDelimiter
	return t
}()

// NormalizePath returns the form of an absolute path in which it is matched
// and forwarded; both sides of a comparison go through it, the paths of rules
// too. Two paths that RFC 3986, 6.2.2 calls equal have one normal form:
//
//   - escapes of unreserved characters are decoded; the others, %2F and %5C
//     among them, stay, with their digits in upper case;
//   - bytes that may not stand in a path (space, quotes, braces, brackets,
//     everything above 0x7E) become escapes;
//   - dot segments are then removed, and what climbs above the root stays
//     there; empty segments are kept: slashes are never merged.
//
// "*" (RFC 9112, 3.2.4) is its own normal form. A path that is normal already
// is returned as it is, without a copy. Else the result is written behind the
// length of dst, which must not overlap path, and returned without what dst
// held before; it is at most three times as long as path.
//
// The error is a [*RequestError] with status 400: the path is not absolute, has
// a bad escape, %00, a control character, a backslash, "?" or "#", or a dot
// segment with a parameter ("/..;x/"), which some servers take for a dot
// segment only after the gateway has matched it.
func NormalizePath(dst, path []byte) ([]byte, error) {
	if len(path) == 0 || path[0] != '/' {
		if len(path) == 1 && path[0] == '*' {
			return path, nil
		}
		return nil, errPathRelative
	}
	if isNormalPath(path) {
		return path, nil
	}
	return rewritePath(dst, path)
}

// isNormalPath tells whether an absolute path is its own normal form.
func isNormalPath(path []byte) bool {
	for i := 0; i < len(path); i++ {
		class := pathClasses[path[i]]
		if class >= pathReserved {
			continue // most bytes
		}
		switch class {
		case pathSlash:
			if i+1 < len(path) && path[i+1] == '.' && dotSegment(path[i+1:]) {
				return false
			}
		case pathPercent:
			if i+2 >= len(path) || !upperHex(path[i+1]) || !upperHex(path[i+2]) {
				return false
			}
			c := unhex(path[i+1])<<4 | unhex(path[i+2])
			if c == 0 || decodes(c) {
				return false
			}
			i += 2
		default:
			return false
		}
	}
	return true
}

// dotSegment tells whether the segment at the start of p is "." or "..", with
// or without a parameter. p starts with a dot.
func dotSegment(p []byte) bool {
	n := 1
	if len(p) > 1 && p[1] == '.' {
		n = 2
	}
	return len(p) == n || p[n] == '/' || p[n] == ';'
}

// rewritePath is NormalizePath for paths that may need a change.
func rewritePath(dst, path []byte) ([]byte, error) {
	const hex = "0123456789ABCDEF"
	root := len(dst) // where the result's first slash stands
	out := append(dst, '/')
	segment := len(out) // where the current segment starts
	for i := 1; i < len(path); i++ {
		c := path[i]
		switch pathClasses[c] {
		case pathPlain, pathReserved, pathDot:
			out = append(out, c)
		case pathSlash:
			var dots bool
			var err error
			if out, dots, err = closeSegment(out, root, segment); err != nil {
				return nil, err
			}
			if !dots {
				out = append(out, '/')
			}
			segment = len(out)
		case pathPercent:
			if i+2 >= len(path) || !isHex(path[i+1]) || !isHex(path[i+2]) {
				return nil, errPathEscape
			}
			c = unhex(path[i+1])<<4 | unhex(path[i+2])
			i += 2
			switch {
			case c == 0:
				return nil, errPathNUL
			case decodes(c): // RFC 3986, 6.2.2.2
				out = append(out, c)
			default: // RFC 3986, 6.2.2.1
				out = append(out, '%', hex[c>>4], hex[c&15])
			}
		case pathEncode:
			out = append(out, '%', hex[c>>4], hex[c&15])
		case pathControl:
			if c == 0 {
				return nil, errPathNUL
			}
			return nil, errPathControl
		case pathBackslash:
			return nil, errPathBackslash
		case pathDelimiter:
			return nil, errPathDelimiter
		}
	}
	out, _, err := closeSegment(out, root, segment)
	if err != nil {
		return nil, err
	}
	return out[root:], nil
}

// closeSegment looks at the segment that was written to out[segment:]; a slash
// precedes it. A dot segment is removed, with the segment before it if it is
// "..": out then ends in a slash (RFC 3986, 5.2.4).
func closeSegment(out []byte, root, segment int) (_ []byte, dots bool, err error) {
	s := out[segment:]
	if len(s) == 0 || s[0] != '.' || !dotSegment(s) {
		return out, false, nil
	}
	switch {
	case len(s) == 1:
		return out[:segment], true, nil
	case len(s) == 2 && s[1] == '.':
		slash := segment - 1 // the one before the segment
		if slash > root {
			slash = root + bytes.LastIndexByte(out[root:slash], '/')
		}
		return out[:slash+1], true, nil
	}
	return nil, false, errPathDotParam
}

// decodes tells whether the escape of c is replaced by c: c is unreserved.
func decodes(c byte) bool {
	return pathClasses[c] >= pathPlain
}

func isHex(c byte) bool { return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f' }

func upperHex(c byte) bool { return c >= '0' && c <= '9' || c >= 'A' && c <= 'F' }

// unhex returns the value of a hexadecimal digit.
func unhex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}
