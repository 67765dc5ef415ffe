package dataplane

import (
	"github.com/headgate/headgate/dataplane/http1"
	"github.com/headgate/headgate/dataplane/message"
)

// The methods below are the HTTP/1 side of an exchange's answer.

// writeHead sends a response's head and decides how its end will be told and
// whether the connection is kept.
func (c *client) writeHead(r *message.Response, req *message.Request) {
	final := !r.Informational()
	if final {
		if c.worker.srv.draining.Load() || c.eof || c.socket.exhausted(c.requests) {
			c.keepAlive = false
		}
		// A body that is still on its way must not be taken for the next
		// request: the connection ends with this answer, unless a short rest is
		// known to come.
		if c.bodyOpen && c.hasBody && !c.shortRest(req) {
			c.keepAlive = false
		}
	} else if req.Minor == 0 && req.Major == 1 {
		return // RFC 9110, 15.2: not to a client of HTTP/1.0
	}
	w := c.worker
	o := http1.Framing(r, req.Minor, c.keepAlive)
	if final {
		c.keepAlive, c.chunked = o.KeepAlive, o.Chunked
	}
	w.scratch = http1.AppendResponse(w.scratch[:0], r, o)
	c.write(w.scratch)
}

// shortRest tells that the rest of a request's body is short and sure to come.
func (c *client) shortRest(req *message.Request) bool {
	return req.ContentLength > 0 && req.ContentLength <= maxDrain && !req.ExpectContinue
}

// writeData sends a piece of the body, or of a tunnel.
func (c *client) writeData(p []byte) {
	if !c.chunked {
		c.write(p)
		return
	}
	w := c.worker
	w.scratch = http1.AppendChunkHead(w.scratch[:0], len(p))
	c.write(w.scratch)
	c.write(p)
	c.write(crlf)
}

var crlf = []byte("\r\n")

// writeEnd ends the body.
func (c *client) writeEnd(trailers *message.Headers) {
	if c.chunked {
		w := c.worker
		w.scratch = http1.AppendLastChunk(w.scratch[:0], trailers)
		c.write(w.scratch)
	}
}

// closeWrite ends this side of a tunnel.
func (c *client) closeWrite() {
	if c.tls != nil {
		c.seal()
		if err := c.tls.CloseWrite(); err != nil {
			c.abort(err)
			return
		}
	}
	c.conn.CloseWrite()
}

// congested tells that more than the high watermark waits for the client, and
// starts to watch that the client takes some of it.
func (c *client) congested() bool {
	if c.closed || !c.conn.AboveHighWater() {
		return false
	}
	if c.wait != waitReader {
		c.watchReader()
	}
	return true
}

// watchReader watches that the client takes some of what is queued for it.
func (c *client) watchReader() {
	c.buffered = c.conn.Buffered()
	c.arm(waitReader, c.socket.timeouts().Write)
}

// refuse answers a head that could not be parsed, and ends the connection.
func (c *client) refuse(ex *exchange, err error) {
	c.keepAlive = false
	c.ex = ex
	c.bodyOpen = false
	ex.request.Reset()
	ex.request.Major, ex.request.Minor = 1, 1
	ex.refuse(c, c, err)
}

// badBody ends the connection because the request's body could not be parsed.
func (c *client) badBody(err error) {
	c.keepAlive = false
	if c.ex == nil {
		c.finish(true)
		return
	}
	c.ex.fail(err)
}
