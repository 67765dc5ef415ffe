package compile

import (
	"strings"
)

// normalPath returns a path of a rule in the form that the path of a request has
// when it is matched: escapes of unreserved characters are decoded (RFC 3986,
// 6.2.2.2) and the other escapes are in upper case (6.2.2.1). Values that no
// request's path could have are refused, as Gateway API asks for: those with
// empty or dot segments, with %2F, or with characters that don't belong into a
// path. fault says why, or is "".
func normalPath(value string) (normal, fault string) {
	if !strings.HasPrefix(value, "/") {
		return "", "must start with a slash"
	}
	var b strings.Builder
	for i := 0; i < len(value); i++ {
		c := value[i]
		if c != '%' {
			if !isPathByte(c) {
				return "", "has the character " + quoteByte(c) + ", which must be written as an escape"
			}
			b.WriteByte(c)
			continue
		}
		if i+2 >= len(value) || !isHex(value[i+1]) || !isHex(value[i+2]) {
			return "", "has a malformed escape"
		}
		d := unhex(value[i+1])<<4 | unhex(value[i+2])
		switch {
		case d == '/':
			return "", "has an escaped slash, which can't be told apart in a rule"
		case d == 0:
			return "", "has an escaped NUL, with which every request is refused"
		case isUnreserved(d):
			b.WriteByte(d)
		default:
			b.WriteString(strings.ToUpper(value[i : i+3]))
		}
		i += 2
	}
	normal = b.String()
	if strings.Contains(normal, "//") {
		return "", "has an empty segment (//)"
	}
	for seg := range strings.SplitSeq(normal, "/") {
		// What has a parameter may still be a dot segment for a backend.
		if dots, _, _ := strings.Cut(seg, ";"); dots == "." || dots == ".." {
			return "", "has the segment " + seg + ", which requests never have when they are matched"
		}
	}
	return normal, ""
}

// isPathByte tells whether c may stand in a path as it is (RFC 3986, 3.3).
func isPathByte(c byte) bool {
	return isUnreserved(c) || strings.IndexByte("/!$&'()*+,;=:@", c) >= 0
}

func isUnreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func unhex(c byte) byte {
	switch {
	case c <= '9':
		return c - '0'
	case c >= 'a':
		return c - 'a' + 10
	}
	return c - 'A' + 10
}

func quoteByte(c byte) string {
	if c > ' ' && c < 0x7f {
		return "'" + string(rune(c)) + "'"
	}
	const digits = "0123456789ABCDEF"
	return "0x" + string(digits[c>>4]) + string(digits[c&15])
}
