package http2

import "github.com/headgate/headgate/dataplane/message"

// dataFrame takes the header of a DATA frame (RFC 9113, 6.1); the payload is
// passed on as it comes.
func (c *Conn) dataFrame(f frame, p []byte) (int, Event, *ConnError) {
	n, pad := frameHeader, 0
	if f.flags&flagPadded != 0 {
		switch {
		case f.length == 0:
			return n, Event{}, &ConnError{CodeFrameSize, "bad_padding"}
		case len(p) == 0:
			return 0, Event{}, nil
		case int(p[0]) >= f.length:
			return n, Event{}, &ConnError{CodeProtocol, "bad_padding"}
		}
		n++
		pad = 1 + int(p[0])
	}
	if f.stream == 0 {
		return n, Event{}, &ConnError{CodeProtocol, "data_on_connection"}
	}
	// 6.9.1: padding counts, and so do frames on streams that are gone.
	size := int64(f.length)
	if size > c.recvWindow {
		return n, Event{}, &ConnError{CodeFlowControl, "connection_window_exceeded"}
	}
	c.recvWindow -= size
	c.creditConn(size)

	c.dataLeft, c.padLeft = f.length-pad, max(pad-1, 0)
	c.dataEnd = f.flags&flagEndStream != 0
	s := c.streams[f.stream]
	c.data = nil
	if s == nil {
		return n, Event{}, c.closed(f.stream)
	}
	ev, err := c.admitData(s, size, int64(c.dataLeft))
	if err != nil || ev.Kind != None {
		return n, ev, err
	}
	if pad > 0 {
		c.Credit(s, pad)
	}
	if c.dataLeft > 0 {
		c.data = s
		return n, Event{}, nil
	}
	if !c.dataEnd {
		return n, Event{}, c.vain(1) // an empty frame
	}
	c.closeRemote(s)
	return n, Event{Kind: End, Stream: s}, nil
}

// admitData checks a DATA frame against what its stream allows. The event is a
// Reset, or None.
func (c *Conn) admitData(s *Stream, size, data int64) (Event, *ConnError) {
	switch {
	case s.remoteEnd:
		return c.spoilt(s, CodeStreamClosed, errMalformed("data_after_end", "a DATA frame after the end of the request"))
	case size > s.recvWindow:
		return c.spoilt(s, CodeFlowControl, errMalformed("stream_window_exceeded", "more data than the stream's window allows"))
	}
	s.recvWindow -= size
	if s.left == message.Unknown {
		return Event{}, nil
	}
	// 8.1.1: the sum of the DATA frames is the declared length.
	if s.left -= data; s.left < 0 || c.dataEnd && s.left > 0 {
		return c.spoilt(s, CodeProtocol, errMalformed("content_length_mismatch", "the body's length is not the declared one"))
	}
	return Event{}, nil
}

// payload passes on what there is of a DATA frame.
func (c *Conn) payload(b []byte) (int, Event) {
	if c.dataLeft == 0 {
		n := min(len(b), c.padLeft)
		c.padLeft -= n
		return n, Event{}
	}
	n := min(len(b), c.dataLeft)
	if n == 0 {
		return 0, Event{}
	}
	c.dataLeft -= n
	s := c.data
	if s == nil {
		return n, Event{}
	}
	ev := Event{Kind: Data, Stream: s, Data: b[:n]}
	if c.dataLeft == 0 {
		c.data = nil
		if c.dataEnd {
			ev.Last = true
			c.closeRemote(s)
		}
	}
	return n, ev
}

// creditConn gives the connection's window back.
func (c *Conn) creditConn(n int64) {
	if c.credit += n; c.credit >= connWindow/2 {
		c.Out = appendWindowUpdate(c.Out, 0, uint32(c.credit))
		c.recvWindow += c.credit
		c.credit = 0
	}
}

// Credit lets the client send n more bytes of a body: as many of it were passed
// on.
func (c *Conn) Credit(s *Stream, n int) {
	s.credit += int64(n)
	if !s.open || s.remoteEnd || s.credit < (FirstWindow+s.wide)/2 {
		return
	}
	c.Out = appendWindowUpdate(c.Out, s.id, uint32(s.credit))
	s.recvWindow += s.credit
	s.credit = 0
}

// Widen makes the window of a body that flows larger, as far as the connection
// has room for it. Until then a client may send little: what it sends may have
// to be kept until the upstream is ready.
func (c *Conn) Widen(s *Stream) {
	const more = wideWindow - FirstWindow
	if !s.open || s.remoteEnd || s.wide > 0 || c.widened+more > maxWidened {
		return
	}
	s.wide = more
	c.widened += more
	s.recvWindow += more
	c.Out = appendWindowUpdate(c.Out, s.id, more)
}
