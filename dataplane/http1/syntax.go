package http1

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// The classes of bytes, as bits in classes.
const (
	isToken   uint8 = 1 << iota // tchar (RFC 9110, 5.6.2)
	isTarget                    // let through in a path or a query; not "?" and "#"
	isRegName                   // unreserved or sub-delims (RFC 3986, 3.2.2)
	isHex
)

var classes = classify()

func classify() (t [256]uint8) {
	for c := range t {
		alnum := '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
		if alnum || c < 0x80 && bytes.IndexByte([]byte("!#$%&'*+-.^_`|~"), byte(c)) >= 0 {
			t[c] |= isToken
		}
		if c > ' ' && c != 0x7f && c != '?' && c != '#' {
			t[c] |= isTarget
		}
		if alnum || c < 0x80 && bytes.IndexByte([]byte("-._~!$&'()*+,;="), byte(c)) >= 0 {
			t[c] |= isRegName
		}
		if '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f' {
			t[c] |= isHex
		}
	}
	return t
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' }

// allToken tells whether b is a token.
func allToken(b []byte) bool {
	for _, c := range b {
		if classes[c]&isToken == 0 {
			return false
		}
	}
	return len(b) > 0
}

// controlAt returns the index of the first control character but HTAB in b at or
// after i, or len(b). It looks at eight bytes at a time.
func controlAt(b []byte, i int) int {
	for i+8 <= len(b) {
		m := controls(binary.LittleEndian.Uint64(b[i:]))
		if m == 0 {
			i += 8
			continue
		}
		i += bits.TrailingZeros64(m) >> 3
		if b[i] != '\t' {
			return i
		}
		i++
	}
	if n := len(b) - 8; n >= 0 && i < len(b) {
		// The last eight bytes once more, without those before i.
		if controls(binary.LittleEndian.Uint64(b[n:]))>>(8*(i-n)) == 0 {
			return len(b)
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c < ' ' && c != '\t' || c == 0x7f {
			return i
		}
	}
	return i
}

// controls has the high bit of the lowest byte of v set that is a control
// character, perhaps that of bytes above it, and of none below it.
func controls(v uint64) uint64 {
	const (
		ones  = 0x0101010101010101
		highs = 0x80 * ones
	)
	del := v ^ 0x7f*ones
	// A byte's high bit is set when it is below 0x20 or is 0x7f. A borrow can only
	// make a false hit above a true one.
	return ((v-0x20*ones)&^v | (del-ones)&^del) & highs
}

// field parses the field line that starts at b[i] and returns the index behind
// its CRLF. A line must be there with its LF; field never looks behind that. A
// lenient field may have white space before its colon, which is not part of the
// name (RFC 9112, 5.1).
func field(b []byte, i int, lenient bool) (name, value []byte, next int, f *fault) {
	start := i
	for i < len(b) && classes[b[i]]&isToken != 0 {
		i++
	}
	name = b[start:i]
	if i == start || b[i] != ':' {
		if i, f = colonAt(b, start, i, lenient); f != nil {
			return nil, nil, 0, f
		}
	}
	i++
	for i < len(b) && isSpace(b[i]) {
		i++
	}
	start = i
	end := controlAt(b, i)
	if f = lineEnd(b, end); f != nil {
		return nil, nil, 0, f
	}
	next = end + 2
	for end > start && isSpace(b[end-1]) {
		end--
	}
	return name, b[start:end], next, nil
}

// colonAt deals with a field name, b[start:i], that has no colon behind it.
func colonAt(b []byte, start, i int, lenient bool) (int, *fault) {
	switch c := b[i]; {
	case i == start && isSpace(c):
		return 0, faultObsFold
	case c == '\r' || c == '\n' || c == 0:
		if f := lineEnd(b, i); f != nil {
			return 0, f
		}
		return 0, faultNoColon
	case i > start && isSpace(c):
		for isSpace(b[i]) {
			i++
		}
		if b[i] != ':' {
			return 0, faultHeaderName
		}
		if !lenient {
			return 0, faultSpaceBeforeColon // RFC 9112, 5.1: MUST be a 400
		}
		return i, nil
	}
	return 0, faultHeaderName
}

// lineEnd checks that a line's CRLF stands at b[i], where a control character
// is.
func lineEnd(b []byte, i int) *fault {
	if i+1 < len(b) && b[i] == '\r' && b[i+1] == '\n' {
		return nil
	}
	switch {
	case i >= len(b) || b[i] == '\n':
		return faultBareLF
	case b[i] == '\r':
		return faultBareCR
	case b[i] == 0:
		return faultNUL
	}
	return faultHeaderValue
}

// nextElement splits the first element of a comma-separated list off (RFC 9110,
// 5.6.1). The element has no surrounding white space and may be empty; more
// tells whether a comma followed it.
func nextElement(list []byte) (element, rest []byte, more bool) {
	element = list
	if i := bytes.IndexByte(list, ','); i >= 0 {
		element, rest, more = list[:i], list[i+1:], true
	}
	return trimSpace(element), rest, more
}

// trimSpace removes optional white space (RFC 9110, 5.6.3) around b.
func trimSpace(b []byte) []byte {
	for len(b) > 0 && isSpace(b[0]) {
		b = b[1:]
	}
	for len(b) > 0 && isSpace(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	return b
}
