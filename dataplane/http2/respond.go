package http2

import (
	"encoding/binary"

	"github.com/headgate/headgate/dataplane/message"
)

// Room returns how many bytes of a body may be sent on s in one frame now.
func (c *Conn) Room(s *Stream) int {
	if !s.open || s.localEnd {
		return 0
	}
	return int(max(0, min(s.sendWindow, c.sendWindow, maxFrame)))
}

// Blocked tells whether it is s's own window that keeps it from sending.
func (c *Conn) Blocked(s *Stream) bool { return s.sendWindow <= 0 }

// Head appends a response's head; end says that nothing follows.
func (c *Conn) Head(s *Stream, r *message.Response, end bool) {
	if !s.open || s.localEnd {
		return
	}
	at := len(c.Out)
	c.Out = appendFrame(c.Out, 0, frameHeaders, 0, s.id)
	if !c.tableTold {
		// RFC 7541, 4.2: from now on no change of the client's table matters.
		c.Out = append(c.Out, 0x20)
		c.tableTold = true
	}
	c.Out = AppendHead(c.Out, r)
	c.split(at, s, end)
}

// Trailers ends a response with a block of [AppendTrailers].
func (c *Conn) Trailers(s *Stream, block []byte) {
	if !s.open || s.localEnd {
		return
	}
	at := len(c.Out)
	c.Out = append(appendFrame(c.Out, 0, frameHeaders, 0, s.id), block...)
	c.split(at, s, true)
}

// split makes frames of the block that stands in Out behind a frame's header at
// at: a HEADERS frame and, when it is long, CONTINUATION frames.
func (c *Conn) split(at int, s *Stream, end bool) {
	flags := uint8(0)
	if end {
		flags = flagEndStream
	}
	block := c.Out[at+frameHeader:]
	if len(block) <= maxFrame {
		appendFrame(c.Out[:at], len(block), frameHeaders, flags|flagEndHeaders, s.id)
	} else {
		rest := append([]byte(nil), block[maxFrame:]...)
		appendFrame(c.Out[:at], maxFrame, frameHeaders, flags, s.id)
		c.Out = c.Out[:at+frameHeader+maxFrame]
		for len(rest) > 0 {
			n := min(len(rest), maxFrame)
			f := uint8(0)
			if n == len(rest) {
				f = flagEndHeaders
			}
			c.Out = append(appendFrame(c.Out, n, frameContinuation, f, s.id), rest[:n]...)
			rest = rest[n:]
		}
	}
	if end {
		c.closeLocal(s)
	}
}

// DataHead appends the header of a DATA frame of n bytes, which must follow at
// once. n is at most what Room says; it may be 0 with end.
func (c *Conn) DataHead(s *Stream, n int, end bool) {
	if !s.open || s.localEnd {
		return
	}
	flags := uint8(0)
	if end {
		flags = flagEndStream
	}
	c.Out = appendFrame(c.Out, n, frameData, flags, s.id)
	s.sendWindow -= int64(n)
	c.sendWindow -= int64(n)
	c.idle.earn(float64(min(n/earnPer, mostEarned)))
	if end {
		c.closeLocal(s)
	}
}

// Reset ends a stream at once (RFC 9113, 6.4). What its client sends before it
// knows is ignored.
func (c *Conn) Reset(s *Stream, code Code) {
	if !s.open {
		return
	}
	c.resets.add(s.id)
	c.Out = appendReset(c.Out, s.id, code)
	c.forget(s)
}

func appendReset(dst []byte, stream uint32, code Code) []byte {
	return binary.BigEndian.AppendUint32(appendFrame(dst, 4, frameReset, 0, stream), uint32(code))
}
