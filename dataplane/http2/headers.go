package http2

import "github.com/headgate/headgate/dataplane/message"

// headersFrame takes a HEADERS frame (RFC 9113, 6.2): a request's head, or its
// trailers.
func (c *Conn) headersFrame(f frame, p []byte, next *Stream, req *message.Request) (Event, *ConnError) {
	if f.stream == 0 {
		return Event{}, &ConnError{CodeProtocol, "headers_on_connection"}
	}
	block, ok := unpad(f, p)
	if !ok {
		return Event{}, &ConnError{CodeProtocol, "bad_padding"}
	}
	if f.flags&flagPriority != 0 {
		if len(block) < 5 {
			return Event{}, &ConnError{CodeFrameSize, "bad_priority_length"}
		}
		block = block[5:] // 5.3.2: deprecated
	}
	if err := c.beginHead(f); err != nil {
		return Event{}, err
	}
	return c.fragment(f, block, next, req)
}

// beginHead decides what the block that begins is.
func (c *Conn) beginHead(f frame) *ConnError {
	a := &c.head
	a.begin(f.stream, f.flags&flagEndStream != 0)
	s := c.streams[f.stream]
	switch {
	case s != nil:
		a.what = trailers
		a.trailers.Reset()
	case f.stream > c.lastID:
		if f.stream%2 == 0 {
			return &ConnError{CodeProtocol, "even_stream"} // 5.1.1
		}
		c.lastID = f.stream
		switch {
		case f.stream > c.goAwayID:
			return c.vain(1) // 6.8: the client may open it again elsewhere
		case len(c.streams) >= MaxStreams:
			a.refused = true
			return nil
		}
		a.what = request
	case c.ignored(f.stream):
		return c.vain(1)
	default:
		return &ConnError{CodeStreamClosed, "headers_on_closed_stream"} // 5.1
	}
	return nil
}

// continuationFrame takes a CONTINUATION frame (RFC 9113, 6.10).
func (c *Conn) continuationFrame(f frame, p []byte, next *Stream, req *message.Request) (Event, *ConnError) {
	if c.head.stream == 0 {
		return Event{}, &ConnError{CodeProtocol, "unexpected_continuation"}
	}
	return c.fragment(f, p, next, req)
}

// fragment takes a piece of a field block, which is decoded when it is whole:
// also one that nobody wants, or the table would go out of step (RFC 9113, 4.3).
func (c *Conn) fragment(f frame, p []byte, next *Stream, req *message.Request) (Event, *ConnError) {
	a := &c.head
	a.frames++
	whole := f.flags&flagEndHeaders != 0
	if len(a.block)+len(p) > c.maxBlock() || a.frames > maxHeadFrames {
		return Event{}, &ConnError{CodeEnhanceYourCalm, "head_too_large"}
	}
	if !whole {
		a.block = append(a.block, p...)
		return Event{}, nil
	}
	if len(a.block) > 0 {
		p = append(a.block, p...)
	}
	a.req = req
	if a.what == request {
		req.Reset()
		req.Major, req.Minor = 2, 0
	}
	_, err := c.decoder.Write(p)
	if err == nil {
		err = c.decoder.Close()
	}
	a.block = nil
	if err != nil {
		return Event{}, &ConnError{CodeCompression, "bad_field_block"} // 4.3
	}
	ev, fault := c.endHead(next)
	a.end()
	return ev, fault
}

// endHead makes the event of a block that is complete.
func (c *Conn) endHead(next *Stream) (Event, *ConnError) {
	a := &c.head
	switch a.what {
	case request:
		return c.endRequest(next)
	case trailers:
		return c.endTrailers()
	case nothing:
	}
	if a.refused {
		c.resets.add(a.stream)
		c.Out = appendReset(c.Out, a.stream, CodeRefusedStream) // 5.1.2
		return Event{}, c.vain(costRefused)
	}
	return Event{}, nil
}

// endRequest opens a stream.
func (c *Conn) endRequest(s *Stream) (Event, *ConnError) {
	a := &c.head
	a.finish()
	if a.malformed != nil {
		c.resets.add(a.stream)
		c.Out = appendReset(c.Out, a.stream, CodeProtocol) // 8.1.1
		return Event{Kind: Reset, Err: a.malformed, Code: CodeProtocol}, c.aborted()
	}
	s.begin(a.stream, c.initialWindow)
	s.left = a.length
	c.streams[s.id] = s
	if a.last {
		s.remoteEnd = true
	}
	return Event{Kind: Head, Stream: s, Last: a.last, Err: a.refusal}, nil
}

// endTrailers ends a request (RFC 9113, 8.1).
func (c *Conn) endTrailers() (Event, *ConnError) {
	a := &c.head
	s := c.streams[a.stream]
	switch {
	case s == nil:
		return Event{}, nil // it was reset between the frames
	case s.remoteEnd:
		return c.spoilt(s, CodeStreamClosed, errMalformed("headers_after_end", "a HEADERS frame after the end of the request"))
	case a.malformed != nil:
		return c.spoilt(s, CodeProtocol, a.malformed)
	case a.refusal != nil: // there is no answer to trailers that are too large
		return c.spoilt(s, CodeEnhanceYourCalm, a.refusal)
	case !a.last:
		return c.spoilt(s, CodeProtocol, errMalformed("unended_trailers", "trailers that do not end the request"))
	case s.left > 0:
		return c.spoilt(s, CodeProtocol, errMalformed("content_length_mismatch", "the body's length is not the declared one"))
	}
	c.closeRemote(s)
	return Event{Kind: End, Stream: s, Trailers: &a.trailers}, nil
}
