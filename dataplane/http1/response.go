package http1

import "github.com/headgate/headgate/dataplane/message"

// ResponseParser turns the bytes that one upstream sends into events. It keeps
// no input: what Next did not consume is presented again, with more behind it.
// The zero value is not ready: call Reset. It belongs to its connection's loop.
type ResponseParser struct {
	limits  *Limits
	err     error
	scan    scan
	left    int64 // of a body of known length
	chunks  chunked
	interim int // 1xx heads before this one
	state   state
	head    bool // the request was a HEAD
	connect bool // the request was a CONNECT
	close   bool // the connection can't be used again
}

// Reset makes the parser ready for a new connection. Limits must not change as
// long as the parser is used; nil means the defaults.
func (p *ResponseParser) Reset(l *Limits) {
	if l == nil {
		l = &Limits{}
	}
	p.chunks.reset()
	*p = ResponseParser{limits: l, chunks: p.chunks}
}

// Expect tells the method of the request that the next final response answers:
// those to HEAD and to CONNECT are framed differently (RFC 9112, 6.3). It is
// called before each response.
func (p *ResponseParser) Expect(requestMethod []byte) {
	p.head = string(requestMethod) == "HEAD"
	p.connect = string(requestMethod) == "CONNECT"
}

// KeepAlive tells, after End, whether the connection can be used again.
func (p *ResponseParser) KeepAlive() bool {
	return !p.close && p.state == inHead && p.scan.seen == 0 && p.interim == 0
}

// Trailers returns the trailer fields of the response that ended last. They are
// valid until the next Head.
func (p *ResponseParser) Trailers() *message.Headers { return &p.chunks.trailers }

// Next consumes n bytes of b and returns one event. With None, more input is
// needed than b[n:]. A response without a body is followed by End, which needs no
// input: call Next until it returns None, also with nothing.
//
//   - Head: resp has been reset and filled, and owns what it has. A 1xx is
//     followed by the next Head. After a 101, or a 2xx to CONNECT, Next consumes
//     nothing more: the rest belongs to the tunnel.
//   - Data: data is a part of b.
//   - End: the response is over.
//
// An error is a *[message.RequestError] of the upstream with status 502; it is
// final.
func (p *ResponseParser) Next(resp *message.Response, b []byte) (n int, ev Event, data []byte, err error) {
	switch p.state {
	case inHead:
		return p.findHead(resp, b)
	case inLength, inClose:
		if len(b) == 0 {
			return 0, None, nil, nil
		}
		n = len(b)
		if p.state == inLength {
			n = int(min(int64(n), p.left))
			if p.left -= int64(n); p.left == 0 {
				p.state = atEnd
			}
		}
		return n, Data, b[:n], nil
	case inChunked:
		n, ev, data, f := p.chunks.next(b, p.limits, true)
		if f != nil {
			return p.fail(f)
		}
		if ev == End {
			p.end()
		}
		return n, ev, data, nil
	case atEnd:
		p.end()
		return 0, End, nil, nil
	case tunnel:
		return 0, None, nil, nil
	}
	return 0, None, nil, p.err
}

// EOF tells the parser that the upstream has closed its side and that Next has
// returned None for all that came before. It returns End when that ends a body,
// None in a tunnel, else an error that says what is missing.
func (p *ResponseParser) EOF() (ev Event, err error) {
	p.close = true
	switch {
	case p.state == inClose || p.state == atEnd:
		p.end()
		return End, nil
	case p.state == tunnel:
		return None, nil
	case p.state == failed:
		return None, p.err
	}
	f := faultTruncatedBody
	if p.state == inHead {
		f = faultTruncatedHead
		if p.scan.seen == 0 {
			f = faultNoResponse
		}
	}
	_, ev, _, err = p.fail(f)
	return ev, err
}

func (p *ResponseParser) end() {
	p.state = inHead
	p.scan = scan{}
	p.interim = 0
}

func (p *ResponseParser) fail(f *fault) (int, Event, []byte, error) {
	p.state = failed
	p.close = true
	p.err = f.ofUpstream()
	return 0, None, nil, p.err
}

// responseDialect is how the heads of responses are checked before they are
// complete.
var responseDialect = &dialect{
	lenient: true,
	long:    faultStatusLineLong,
	start: func(line []byte) *fault {
		_, f := parseStatusLine(line)
		return f
	},
}

// findHead looks for a response's head at the start of b.
func (p *ResponseParser) findHead(resp *message.Response, b []byte) (n int, ev Event, data []byte, err error) {
	end := p.scan.end(b)
	if end == 0 {
		if f := p.scan.check(b, p.limits, responseDialect); f != nil {
			return p.fail(f)
		}
		return 0, None, nil, nil
	}
	if f := p.parse(resp, b[:end]); f != nil {
		return p.fail(f)
	}
	return end, Head, nil, nil
}

// statusLine is a parsed status line; reason is a part of the line.
type statusLine struct {
	status int
	reason []byte
	minor  uint8 // 0 or 1
}

// parseStatusLine parses a status line without its CRLF (RFC 9112, 4). The
// reason phrase, and the SP before it, may be absent.
func parseStatusLine(line []byte) (s statusLine, f *fault) {
	if i := controlAt(line, 0); i < len(line) {
		if f = lineEnd(line, i); f == faultHeaderValue {
			f = faultStatusLine
		}
		return s, f
	}
	if len(line) < len("HTTP/1.1 200") || line[8] != ' ' {
		return s, faultStatusLine
	}
	if s.minor, f = parseVersion(line[:8]); f != nil {
		return s, faultResponseVersion
	}
	for _, c := range line[9:12] {
		if c < '0' || c > '9' {
			return s, faultStatusLine
		}
		s.status = s.status*10 + int(c-'0')
	}
	if s.status < 100 || len(line) > 12 && line[12] != ' ' {
		return s, faultStatusLine
	}
	if len(line) > 13 {
		s.reason = line[13:]
	}
	return s, nil
}

// parse fills resp from a complete head.
func (p *ResponseParser) parse(resp *message.Response, head []byte) *fault {
	l := p.limits
	lineBytes, pos, f := startLine(head, l.requestLine(), faultStatusLineLong)
	if f != nil {
		return f
	}
	if p.scan.line-pos > l.headerBytes() {
		// The lines before the one that is too much may have an earlier fault.
		return p.scan.check(head[:p.scan.line], l, responseDialect)
	}

	resp.Reset()
	h := &resp.Headers
	head = h.Store(head)
	line, f := parseStatusLine(head[:len(lineBytes)])
	if f != nil {
		return f
	}
	resp.Status, resp.Reason = line.status, line.reason
	resp.Major, resp.Minor = 1, line.minor

	var m framing
	for count, limit := 0, l.headerCount(); head[pos] != '\n' && (head[pos] != '\r' || head[pos+1] != '\n'); {
		if count++; count > limit {
			return faultHeadersMany
		}
		name, value, next, f := field(head, pos, true)
		if f != nil {
			return f
		}
		if isSpace(head[next]) {
			if f := unfold(head, next); f != nil {
				return f
			}
			name, value, next, _ = field(head, pos, true) // its parts have been checked
		}
		pos = next
		switch specialOf(name) {
		case ordinary:
			h.Append(name, value)
		case connectionField:
			m.addConnection(value)
		case contentLengthField:
			m.addLength(value, true)
		case transferEncodingField:
			m.addTransfer(value)
		case upgradeField:
			m.addUpgrade(value)
		}
	}
	if head[pos] == '\n' {
		return faultBareLF
	}
	return p.finish(resp, &m)
}

// unfold joins the lines that start with white space, from head[i] on, to the
// one before (RFC 9112, 5.2): each line end becomes two spaces.
func unfold(head []byte, i int) *fault {
	for isSpace(head[i]) {
		head[i-2], head[i-1] = ' ', ' '
		i = controlAt(head, i)
		if f := lineEnd(head, i); f != nil {
			return f
		}
		i += 2
	}
	return nil
}

// finish decides what the fields of a head mean together (RFC 9112, 6.3).
func (p *ResponseParser) finish(resp *message.Response, m *framing) *fault {
	interim := resp.Informational()
	if interim {
		if p.interim++; p.interim > maxInterim {
			m.fail(faultInterim)
		}
	}
	if m.transfer {
		if resp.Minor == 0 {
			return faultTransferVersion // RFC 9112, 6.1
		}
		if m.coded {
			m.fail(faultTransferCoding) // we never ask for one and can't decode it
		}
		// RFC 9112, 6.1: with both, Transfer-Encoding wins, and the connection is
		// closed afterwards.
		p.close = p.close || m.lengths > 0
	}
	if resp.Status == 101 {
		if resp.Upgrade = m.protocol(); resp.Upgrade == nil || resp.Minor == 0 {
			m.fail(faultSwitching) // RFC 9110, 15.2.2
		}
	}
	if m.fault != nil {
		return m.fault
	}
	m.removeNominated(&resp.Headers)
	p.chunks.reset()

	resp.ContentLength = message.Unknown
	if m.lengths > 0 && !m.transfer {
		resp.ContentLength = m.length
	}
	noContent := resp.Status < 200 || resp.Status == 204
	resp.Bodyless = noContent || resp.Status == 304 || p.head
	if noContent {
		// RFC 9110, 8.6: neither may be there. Who sends a length may send the
		// bytes too, so nothing may follow on this connection.
		p.close = p.close || m.transfer || resp.ContentLength > 0
		resp.ContentLength = message.Unknown
	}
	if resp.Minor == 0 && !m.keepAlive || m.close { // RFC 9112, 9.3
		p.close = true
	}
	switch {
	case interim:
		p.scan = scan{}
	case resp.Status == 101 || p.connect && resp.Status/100 == 2:
		resp.Bodyless = true
		p.state = tunnel
	case resp.Bodyless:
		p.state = atEnd
	case m.transfer && m.chunked:
		p.state = inChunked
	case m.transfer || resp.ContentLength == message.Unknown:
		p.state = inClose
	case resp.ContentLength == 0:
		p.state = atEnd
	default:
		p.state = inLength
		p.left = resp.ContentLength
	}
	return nil
}
