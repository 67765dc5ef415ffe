package http1

import "github.com/headgate/headgate/dataplane/message"

// state is where a parser is in its message.
type state uint8

const (
	inHead    state = iota
	inLength        // a body of known length
	inChunked       // a chunked body
	inClose         // a body that the connection's end delimits
	atEnd           // the message is over, End is due
	tunnel          // what follows is not HTTP
	failed
)

// RequestParser turns the bytes that one client sends into events. It keeps no
// input: what Next did not consume is presented again, with more behind it. The
// zero value is not ready: call Reset. It belongs to its connection's loop.
type RequestParser struct {
	limits    *Limits
	err       error
	scan      scan
	left      int64 // of a body of known length
	chunks    chunked
	state     state
	empty     uint8 // empty lines before this head
	keepAlive bool
}

// Reset makes the parser ready for a new connection. Limits must not change as
// long as the parser has them; nil means the defaults.
func (p *RequestParser) Reset(l *Limits) {
	if l == nil {
		l = &Limits{}
	}
	p.chunks.reset()
	*p = RequestParser{limits: l, chunks: p.chunks}
}

// SetLimits gives the parser other limits. It must not be within a request: see
// Started.
func (p *RequestParser) SetLimits(l *Limits) { p.limits = l }

// KeepAlive tells, after Head, whether the client allows another request on the
// connection.
func (p *RequestParser) KeepAlive() bool { return p.keepAlive }

// Started tells whether the parser is inside a request: a byte of it has been
// seen, and its End has not been returned. Empty lines before a request don't
// count.
func (p *RequestParser) Started() bool {
	return p.state != inHead || p.scan.seen > 0
}

// Trailers returns the trailer fields of the request that ended last. They are
// valid until the next Head.
func (p *RequestParser) Trailers() *message.Headers { return &p.chunks.trailers }

// Next consumes n bytes of b and returns one event. With None, more input is
// needed than b[n:]. A request without a body is followed by End, which needs no
// input: call Next until it returns None, also with nothing. After the End of a
// request with Upgrade, don't: what follows may not be HTTP.
//
//   - Head: req has been reset and filled, but for Secure, and owns what it has.
//   - Data: data is a part of b.
//   - End: the parser is ready for the next request.
//
// An error is a *[message.RequestError] of the client; it is final.
func (p *RequestParser) Next(req *message.Request, b []byte) (n int, ev Event, data []byte, err error) {
	switch p.state {
	case inHead:
		return p.head(req, b)
	case inLength:
		if len(b) == 0 {
			return 0, None, nil, nil
		}
		n = int(min(int64(len(b)), p.left))
		if p.left -= int64(n); p.left == 0 {
			p.state = atEnd
		}
		return n, Data, b[:n], nil
	case inChunked:
		n, ev, data, f := p.chunks.next(b, p.limits, false)
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
	}
	return 0, None, nil, p.err
}

func (p *RequestParser) end() {
	p.state = inHead
	p.scan = scan{}
	p.empty = 0
}

func (p *RequestParser) fail(f *fault) (int, Event, []byte, error) {
	p.state = failed
	p.keepAlive = false
	p.err = f.ofClient()
	return 0, None, nil, p.err
}

// requestDialect is how the heads of requests are checked before they are
// complete.
var requestDialect = &dialect{
	long: faultRequestLineLong,
	start: func(line []byte) *fault {
		_, f := parseRequestLine(line)
		return f
	},
}

// head looks for a request's head at the start of b.
func (p *RequestParser) head(req *message.Request, b []byte) (n int, ev Event, data []byte, err error) {
	if p.scan.seen == 0 {
		var f *fault
		if n, f = p.skipEmpty(b); f != nil {
			return p.fail(f)
		}
		if b = b[n:]; len(b) == 0 || b[0] == '\r' {
			return n, None, nil, nil
		}
		// A TLS hello or other noise may never have an LF: don't wait for it.
		if classes[b[0]]&isToken == 0 {
			return p.fail(faultMethod)
		}
	}
	end := p.scan.end(b)
	if end == 0 {
		if f := p.scan.check(b, p.limits, requestDialect); f != nil {
			return p.fail(f)
		}
		return n, None, nil, nil
	}
	if f := p.parse(req, b[:end]); f != nil {
		return p.fail(f)
	}
	return n + end, Head, nil, nil
}

// skipEmpty returns the length of the empty lines at the start of b (RFC 9112,
// 2.2).
func (p *RequestParser) skipEmpty(b []byte) (n int, f *fault) {
	for n < len(b) && (b[n] == '\r' || b[n] == '\n') {
		if b[n] == '\r' && n+1 == len(b) {
			break
		}
		if f := lineEnd(b, n); f != nil {
			return 0, f
		}
		if p.empty++; p.empty > maxEmptyLines {
			return 0, faultEmptyLines
		}
		n += 2
	}
	return n, nil
}

// parse fills req from a complete head.
func (p *RequestParser) parse(req *message.Request, head []byte) *fault {
	l := p.limits
	lineBytes, pos, f := startLine(head, l.requestLine(), faultRequestLineLong)
	if f != nil {
		return f
	}
	if p.scan.line-pos > l.headerBytes() {
		// The lines before the one that is too much may have an earlier fault.
		return p.scan.check(head[:p.scan.line], l, requestDialect)
	}

	secure := req.Secure
	req.Reset()
	req.Secure = secure
	h := &req.Headers
	head = h.Store(head)
	line, f := parseRequestLine(head[:len(lineBytes)])
	if f != nil {
		return f
	}
	req.Method, req.Path, req.Query, req.HasQuery = line.method, line.path, line.query, line.hasQuery
	req.Major, req.Minor = 1, line.minor

	var m framing
	hosts := 0
	for count, limit := 0, l.headerCount(); head[pos] != '\n' && (head[pos] != '\r' || head[pos+1] != '\n'); {
		if count++; count > limit {
			return faultHeadersMany
		}
		name, value, next, f := field(head, pos, false)
		if f != nil {
			return f
		}
		pos = next
		switch specialOf(name) {
		case ordinary:
			h.Append(name, value)
		case hostField:
			if hosts++; len(value) > 0 && !validAuthority(value) {
				m.fail(faultHost) // RFC 9112, 3.2: MUST be a 400
			}
			req.Host = value
		case connectionField:
			m.addConnection(value)
		case contentLengthField:
			m.addLength(value, false)
		case transferEncodingField:
			m.addTransfer(value)
		case expectField:
			if req.ExpectContinue = true; !continueExpected(value) {
				m.fail(faultExpect)
			}
		case teField:
			if trailersAccepted(value) {
				req.AcceptsTrailers = true
			}
		case upgradeField:
			m.addUpgrade(value)
		}
	}
	if head[pos] == '\n' {
		return faultBareLF
	}
	if hosts > 1 {
		m.fail(faultHostDuplicate)
	}
	if hosts == 0 && line.minor > 0 {
		m.fail(faultHostMissing)
	}
	return p.finish(req, &m, &line)
}

// finish decides what the fields of a head mean together.
func (p *RequestParser) finish(req *message.Request, m *framing, line *requestLine) *fault {
	if m.transfer {
		switch {
		case line.minor == 0:
			return faultTransferVersion // RFC 9112, 6.1, whatever it says
		case m.lengths > 0:
			m.fail(faultLengthAndTransfer) // RFC 9112, 6.1: ought to be an error
		case !m.chunked:
			m.fail(faultTransferFinal) // RFC 9112, 6.3: MUST be a 400
		case m.coded:
			m.fail(faultTransferCoding)
		}
	}
	if m.fault != nil {
		return m.fault
	}
	if line.absolute {
		req.Host = line.authority // RFC 9112, 3.2.2: MUST replace the Host
		if len(req.Path) == 0 {
			path := "/"
			if string(req.Method) == "OPTIONS" && !req.HasQuery {
				path = "*" // RFC 9112, 3.2.4
			}
			req.Path = req.Headers.StoreString(path)
		}
	}
	p.chunks.reset()
	switch {
	case m.transfer:
		req.ContentLength = message.Unknown
		p.state = inChunked
	case m.length > 0:
		req.ContentLength = m.length
		p.left = m.length
		p.state = inLength
	default:
		p.state = atEnd
	}
	m.removeNominated(&req.Headers)
	// RFC 9110, 10.1.1: a 1.0 client can't expect a 100, and without a body there
	// is nothing to continue.
	req.ExpectContinue = req.ExpectContinue && line.minor > 0 && req.HasBody()
	req.AcceptsTrailers = req.AcceptsTrailers && line.minor > 0
	if line.minor > 0 {
		req.Upgrade = m.protocol() // RFC 9110, 7.8: ignored in HTTP/1.0
	}
	p.keepAlive = !m.close && (line.minor > 0 || m.keepAlive) // RFC 9112, 9.3
	return nil
}
