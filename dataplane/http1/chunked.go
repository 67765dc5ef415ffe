package http1

import (
	"bytes"

	"github.com/headgate/headgate/dataplane/message"
)

// chunkState is where a chunked body is.
type chunkState uint8

const (
	atChunkSize chunkState = iota
	inChunkData
	atChunkEnd // the CRLF behind a chunk's data
	inTrailers
)

// chunked decodes a chunked body (RFC 9112, 7.1).
type chunked struct {
	left         int64 // of the chunk's data
	overhead     int64 // bytes of chunk lines that no data paid for
	seen         int   // bytes of the unconsumed line that were searched for LF
	trailerBytes int
	trailerCount int
	trailers     message.Headers
	state        chunkState
}

// reset makes the decoder ready for a body and forgets the trailers.
func (c *chunked) reset() {
	trailers := c.trailers
	if trailers.Retained() > keepTrailers {
		trailers = message.Headers{}
	}
	trailers.Reset()
	*c = chunked{trailers: trailers}
}

// next consumes n bytes of b; see [RequestParser.Next]. It returns None also
// when it has consumed something. From a lenient sender, white space behind a
// chunk's size is ignored.
func (c *chunked) next(b []byte, l *Limits, lenient bool) (n int, ev Event, data []byte, f *fault) {
	for {
		rest := b[n:]
		switch c.state {
		case inChunkData:
			if len(rest) == 0 {
				return n, None, nil, nil
			}
			k := int(min(int64(len(rest)), c.left))
			if c.left -= int64(k); c.left == 0 {
				c.state = atChunkEnd
			}
			return n + k, Data, rest[:k], nil
		case atChunkEnd:
			if len(rest) == 0 || len(rest) == 1 && rest[0] == '\r' {
				return n, None, nil, nil
			}
			if rest[0] != '\r' || rest[1] != '\n' {
				return 0, None, nil, faultChunkEnd
			}
			n += 2
			c.state = atChunkSize
		case atChunkSize:
			line, f := c.line(rest, l.chunkLine(), faultChunkLine)
			if line == nil || f != nil {
				return n, None, nil, f
			}
			if c.left, f = chunkSize(line, lenient); f != nil {
				return 0, None, nil, f
			}
			n += len(line)
			if f := c.account(len(line)); f != nil {
				return 0, None, nil, f
			}
			c.state = inChunkData
			if c.left == 0 {
				c.state = inTrailers
			}
		case inTrailers:
			line, f := c.line(rest, max(0, l.trailerBytes()-c.trailerBytes), faultTrailersLarge)
			if line == nil || f != nil {
				return n, None, nil, f
			}
			n += len(line)
			if string(line) == "\r\n" {
				return n, End, nil, nil
			}
			if f := c.trailer(line, l, lenient); f != nil {
				return 0, None, nil, f
			}
		}
	}
}

// line returns the line at the start of b with its LF, or nil when it is not
// complete.
func (c *chunked) line(b []byte, limit int, long *fault) ([]byte, *fault) {
	i := bytes.IndexByte(b[c.seen:], '\n')
	if i < 0 {
		c.seen = len(b)
		if n := len(bytes.TrimSuffix(b, []byte("\r"))); n > limit {
			return nil, long
		}
		return nil, nil
	}
	line := b[:c.seen+i+1]
	c.seen = 0
	if len(bytes.TrimSuffix(line[:len(line)-1], []byte("\r"))) > limit {
		return nil, long
	}
	return line, nil
}

// account charges a chunk for its line, so that many small chunks with long
// extensions are not free.
func (c *chunked) account(line int) *fault {
	paid := 16 + 2*min(c.left, maxChunkOverhead)
	if c.overhead = max(0, c.overhead+int64(line)-paid); c.overhead > maxChunkOverhead {
		return faultChunkOverhead
	}
	return nil
}

// chunkSize parses a chunk's first line (RFC 9112, 7.1). Extensions are ignored
// (7.1.1), whatever their syntax, but for control characters.
func chunkSize(line []byte, lenient bool) (size int64, f *fault) {
	i := 0
	for ; classes[line[i]]&isHex != 0; i++ {
		if size >= 1<<59 {
			return 0, faultChunkOverflow
		}
		size = size<<4 | int64(hexDigit(line[i]))
	}
	if i == 0 {
		if f := lineFault(line); f != nil {
			return 0, f
		}
		return 0, faultChunkSize
	}
	spaces := i
	for isSpace(line[i]) {
		i++
	}
	switch end := controlAt(line, i); {
	case lineEnd(line, end) != nil:
		if f := lineEnd(line, end); f != faultHeaderValue {
			return 0, f
		}
		return 0, faultChunkExt
	case end == i:
		if i > spaces && !lenient {
			return 0, faultChunkSize
		}
	case line[i] != ';':
		return 0, faultChunkSize
	}
	return size, nil
}

// lineFault returns the fault of a line whose control characters are wrong.
func lineFault(line []byte) *fault {
	if f := lineEnd(line, controlAt(line, 0)); f != faultHeaderValue {
		return f
	}
	return nil
}

func hexDigit(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}

// trailer takes a line of the trailer section (RFC 9112, 7.1.2).
func (c *chunked) trailer(line []byte, l *Limits, lenient bool) *fault {
	c.trailerBytes += len(line)
	if c.trailerCount++; c.trailerCount > l.trailerCount() {
		return faultTrailersMany
	}
	name, value, _, f := field(line, 0, lenient)
	if f != nil {
		return f
	}
	if trailerAllowed(name) {
		c.trailers.Append(c.trailers.Store(name), c.trailers.Store(value))
	}
	return nil
}

// trailerAllowed tells whether a field may stand in a trailer section. Those
// that frame, route, authenticate or control a message may not: they must be
// known before its body (RFC 9110, 6.5.1). They are dropped.
func trailerAllowed(name []byte) bool {
	if specialOf(name) != ordinary {
		return false
	}
	for _, forbidden := range forbiddenTrailers {
		if message.EqualFold(name, forbidden) {
			return false
		}
	}
	for _, prefix := range [...]string{"x-forwarded-", "if-"} {
		if len(name) >= len(prefix) && message.EqualFold(name[:len(prefix)], prefix) {
			return false
		}
	}
	return true
}

var forbiddenTrailers = [...]string{
	"age", "authorization", "cache-control", "content-encoding", "content-range", "content-type", "cookie",
	"date", "expires", "forwarded", "location", "max-forwards", "pragma", "proxy-authenticate",
	"proxy-authorization", "range", "retry-after", "set-cookie", "trailer", "vary", "warning",
	"www-authenticate", "x-real-ip", "x-request-id",
}
