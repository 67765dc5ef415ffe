package http1

import "bytes"

// scan looks for the end of a head in input that is presented again and again,
// a little longer each time, and looks at each byte once. As long as the end has
// not come, the lines that are complete are checked, so that a fault is told
// when it is there, and told the same whatever the pieces of the input.
type scan struct {
	seen    int // bytes searched for LF
	line    int // start of the line that is not complete
	checked int // start of the first line that check has not seen
	fields  int // start of the first field line; 0 until check has seen the start line
	count   int // fields that check has seen
}

// end returns the length of the head at the start of b, its empty line included,
// or 0 when it is not complete.
func (s *scan) end(b []byte) int {
	i := s.seen
	for {
		j := bytes.IndexByte(b[i:], '\n')
		if j < 0 {
			s.seen = len(b)
			return 0
		}
		i += j
		// A bare LF ends the head too, so that its fault is told now.
		if n := i - s.line; n == 0 || n == 1 && b[s.line] == '\r' {
			s.seen = i
			return i + 1
		}
		i++
		s.line = i
	}
}

// startLine returns the line at the start of b without its CRLF and the index
// behind it. b holds its LF.
func startLine(b []byte, limit int, long *fault) (line []byte, next int, f *fault) {
	i := bytes.IndexByte(b, '\n')
	line = b[:i]
	cr := i > 0 && line[i-1] == '\r'
	if cr {
		line = line[:i-1]
	}
	if len(line) > limit {
		return nil, 0, long
	}
	if !cr {
		return nil, 0, faultBareLF
	}
	return line, i + 1, nil
}

// dialect is what differs between the heads of requests and of responses.
type dialect struct {
	lenient bool
	long    *fault                       // when the start line is too long
	start   func(line []byte) (f *fault) // checks the start line
}

// check checks the lines of a head that have become complete and the limits.
func (s *scan) check(b []byte, l *Limits, d *dialect) *fault {
	for s.checked < s.line {
		if s.checked == 0 {
			line, next, f := startLine(b, l.requestLine(), d.long)
			if f == nil {
				f = d.start(line)
			}
			if f != nil {
				return f
			}
			s.fields, s.checked = next, next
			continue
		}
		end := s.checked + bytes.IndexByte(b[s.checked:s.line], '\n') + 1
		if f := s.checkField(b[:end], l, d.lenient); f != nil {
			return f
		}
		s.checked = end
	}
	n := len(b)
	if n > 0 && b[n-1] == '\r' {
		n-- // may belong to the line's end
	}
	if s.fields == 0 {
		if n > l.requestLine() {
			return d.long
		}
	} else if n-s.fields > l.headerBytes() {
		return faultHeadersLarge
	}
	return nil
}

// checkField checks the field line at s.checked, the last one in b.
func (s *scan) checkField(b []byte, l *Limits, lenient bool) *fault {
	if len(b)-s.fields > l.headerBytes() {
		return faultHeadersLarge
	}
	if lenient && isSpace(b[s.checked]) && s.count > 0 {
		return lineEnd(b, controlAt(b, s.checked)) // obs-fold
	}
	s.count++
	if s.count > l.headerCount() {
		return faultHeadersMany
	}
	_, _, _, f := field(b, s.checked, lenient)
	return f
}
