package upstream

import (
	"errors"

	"github.com/headgate/headgate/dataplane/http1"
	"github.com/headgate/headgate/dataplane/message"
)

// sendHead writes a request's head.
func (c *Conn) sendHead(r *message.Request) {
	c.parser.Expect(r.Method)
	c.chunked = r.ContentLength == message.Unknown
	buf := c.shard.scratch[:0]
	buf = http1.AppendRequest(buf, r)
	c.shard.scratch = buf
	c.transport.Write(buf)
}

// sendData writes a piece of the body.
func (c *Conn) sendData(p []byte) {
	if !c.chunked || c.tunnel {
		c.transport.Write(p)
		return
	}
	c.transport.Write(http1.AppendChunkHead(c.shard.scratch[:0], len(p)))
	c.transport.Write(p)
	c.transport.Write(crlf)
}

var crlf = []byte("\r\n")

// sendEnd ends the body, or this side of a tunnel.
func (c *Conn) sendEnd(trailers *message.Headers) {
	switch {
	case c.tunnel:
		c.transport.CloseWrite()
	case c.chunked:
		buf := http1.AppendLastChunk(c.shard.scratch[:0], trailers)
		c.shard.scratch = buf
		c.transport.Write(buf)
	}
}

// http1Error returns the codec's error as what it is.
func http1Error(err error) *message.RequestError {
	var e *message.RequestError
	if errors.As(err, &e) {
		return e
	}
	return &message.RequestError{Origin: message.Upstream, Status: 502, Reason: "bad_response", Err: err}
}
