package dataplane

import "github.com/headgate/headgate/dataplane/message"

// requester is the client's side of an exchange: what takes the answer, and
// slows the request down. It is a [client] for HTTP/1 and a [h2stream] for
// HTTP/2; an exchange does not know which.
type requester interface { //nolint:interfacebloat // the seam between an exchange and the versions of HTTP: two implementations, one user
	// writeHead sends a head: informational ones, then a final one.
	writeHead(r *message.Response, req *message.Request)
	// writeData sends a piece of the body; p is copied.
	writeData(p []byte)
	// writeEnd ends the answer. Trailers may be nil.
	writeEnd(trailers *message.Headers)
	// congested tells that enough waits for the client: clientDrained follows.
	// It starts to watch that the client takes some of it.
	congested() bool
	// hold asks for no more of the request's body until release. What is on its
	// way still comes.
	hold()
	release()
	// bodyComing tells that the request has not ended.
	bodyComing() bool
	// last makes this the connection's last request, or one of its last.
	last()
	// spoilt tells that the request was so wrong that, if requests follow one
	// another as bytes, the client may be lost between them.
	spoilt()
	// responseDone ends the request: the exchange has ended, and its answer is
	// whole.
	responseDone()
	// cut ends the request: the exchange has ended, and its answer can't be
	// completed. Visible tells that the client sees that by the answer's length.
	cut(visible bool)
}

// switcher is a requester whose connection can change its protocol.
type switcher interface { //nolint:interfacebloat // what a tunnel is to its exchange
	// switchOver makes the connection a tunnel: bytes pass as they are.
	switchOver()
	// closeWrite ends the upstream's side of the tunnel.
	closeWrite()
	// watchSilence bounds how long a tunnel that lost a side may be silent;
	// progressed tells that it is not.
	watchSilence()
	progressed()
}

// The methods below make a client a requester and a switcher.

func (c *client) hold()            { c.pause(pauseUpstream) }
func (c *client) release()         { c.unpause(pauseUpstream) }
func (c *client) bodyComing() bool { return c.bodyOpen }
func (c *client) last()            { c.keepAlive = false }
func (c *client) spoilt()          { c.keepAlive = false }
func (c *client) progressed()      { c.progress = c.worker.loop.Now() }

func (c *client) watchSilence() {
	c.arm(waitTunnel, c.socket.timeouts().HalfClosed)
}

func (c *client) switchOver() {
	c.tunnel = true
	c.disarm()
	c.resumeInput()
	if c.eof && c.ex != nil {
		c.ex.requestEnd(nil)
	}
}

// cut ends the connection: a length that is not reached or a last chunk that is
// missing tells that the answer is not whole, and where only the end of the
// connection ends the body, a reset does.
func (c *client) cut(visible bool) {
	c.ex = nil
	if visible || c.chunked {
		c.finish(false)
	} else {
		c.abort(nil)
	}
}
