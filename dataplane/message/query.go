package message

import "bytes"

// QueryValue returns the value of the first parameter of a query called name,
// and whether there is one. Names are compared with regard to case. Parameters
// are separated by "&" only; "v" and "v=" have an empty value. In names and
// values "+" is a space and escapes are decoded; what is not an escape after
// all, like the "%" of "100%", stands for itself.
//
// A value without escapes is a part of query. Another one is written behind
// the length of dst and returned without what dst held before.
func QueryValue(dst, query []byte, name string) (value []byte, ok bool) {
	for len(query) > 0 {
		pair := query
		if i := bytes.IndexByte(query, '&'); i >= 0 {
			pair, query = query[:i], query[i+1:]
		} else {
			query = nil
		}
		if len(pair) == 0 {
			continue
		}
		key := pair
		value = pair[len(pair):]
		if i := bytes.IndexByte(pair, '='); i >= 0 {
			key, value = pair[:i], pair[i+1:]
		}
		if equalDecoded(key, name) {
			return decodeQuery(dst, value), true
		}
	}
	return nil, false
}

// equalDecoded tells whether p, decoded, is s.
func equalDecoded(p []byte, s string) bool {
	for len(p) > 0 {
		c, n := queryByte(p)
		if len(s) == 0 || s[0] != c {
			return false
		}
		p, s = p[n:], s[1:]
	}
	return len(s) == 0
}

// decodeQuery returns p decoded: p itself when there is nothing to decode,
// else what it appends to dst.
func decodeQuery(dst, p []byte) []byte {
	if bytes.IndexByte(p, '%') < 0 && bytes.IndexByte(p, '+') < 0 {
		return p
	}
	start := len(dst)
	for len(p) > 0 {
		c, n := queryByte(p)
		dst = append(dst, c)
		p = p[n:]
	}
	return dst[start:]
}

// queryByte returns the character at the start of p, which is not empty, and
// how many bytes it takes.
func queryByte(p []byte) (c byte, n int) {
	switch {
	case p[0] == '+':
		return ' ', 1
	case p[0] == '%' && len(p) > 2 && isHex(p[1]) && isHex(p[2]):
		return unhex(p[1])<<4 | unhex(p[2]), 3
	}
	return p[0], 1
}
