package dataplane

import (
	"errors"
	"net/netip"
	"time"

	"go.uber.org/zap"

	"github.com/headgate/headgate/dataplane/proxyproto"
	"github.com/headgate/headgate/dataplane/reactor"
)

// refusalsEvery bounds how often a loop logs connections without a good header.
const refusalsEvery = 10 * time.Second

// Why a connection is refused, beside what is wrong with its header.
const (
	reasonUntrusted  = "untrusted"
	reasonIncomplete = "incomplete"
	reasonTimeout    = "timeout"
)

var (
	errUntrusted  = errors.New("the peer is not among those that may speak the PROXY protocol here")
	errIncomplete = errors.New("the connection ended within the header of the PROXY protocol")
	errSlowHeader = errors.New("the header of the PROXY protocol did not arrive in time")
)

// proxied is a client of a socket that requires the PROXY protocol, until it has
// said who it is. It is a handler of its own, so that other sockets, and what comes
// after the header, have nothing to ask. Nothing is answered before: what is no
// header is no client of ours.
type proxied client

// awaitProxy makes the connection begin with a header.
func (c *client) awaitProxy(from []netip.Prefix) reactor.Handler {
	c.proxy = inPrefixes(from, c.conn.RemoteAddr().Addr())
	c.arm(waitProxy, c.socket.timeouts().Header)
	return (*proxied)(c)
}

// OnRead takes bytes of the header, and passes on what follows it.
func (p *proxied) OnRead(conn *reactor.Conn, b []byte) {
	c := (*client)(p)
	switch {
	case c.closed:
	case len(b) == 0:
		p.inputEnded()
	case !c.proxy:
		// Not before it speaks: who only connects wants to know whether somebody
		// listens.
		c.worker.metrics.Received(len(b))
		p.refuse(reasonUntrusted, errUntrusted)
	default:
		if rest := p.read(b); len(rest) > 0 {
			c.OnRead(conn, rest)
		}
	}
}

// OnDrained does not come: nothing was sent.
func (p *proxied) OnDrained(*reactor.Conn) {}

// OnClose tells that the socket is gone.
func (p *proxied) OnClose(conn *reactor.Conn, err error) { (*client)(p).OnClose(conn, err) }

// read takes bytes. When the header is complete it makes the connection a client,
// and returns what follows.
func (p *proxied) read(b []byte) []byte {
	c := (*client)(p)
	all := b
	if len(c.in) > 0 {
		all = append(c.in, b...)
	}
	h, n, err := proxyproto.Parse(all)
	var fault *proxyproto.Fault
	switch {
	case errors.As(err, &fault):
		c.worker.metrics.Received(len(b))
		p.refuse(fault.Reason, fault)
		return nil
	case n == 0 && len(c.in) > 0:
		c.worker.metrics.Received(len(b))
		c.in = all
		return nil
	case n == 0:
		c.worker.metrics.Received(len(b))
		c.in = append([]byte(nil), b...)
		return nil
	}
	rest := all[n:]
	c.worker.metrics.Received(len(b) - len(rest))
	c.in = nil
	c.disarm()
	c.conn.SetHandler(c)
	if h.Source.IsValid() {
		c.conn.SetRemoteAddr(h.Source)
		c.port = h.Destination.Port()
	}
	c.begin()
	if !h.Source.IsValid() && !h.Local {
		c.trusted = false // the proxy does not know whom it speaks for
	}
	return rest
}

// inputEnded ends a connection that has not said who it is. One that has said
// nothing at all was a look at whether somebody listens.
func (p *proxied) inputEnded() {
	c := (*client)(p)
	if len(c.in) > 0 {
		p.refuse(reasonIncomplete, errIncomplete)
		return
	}
	c.finish(false)
}

// expire is the header's deadline.
func (p *proxied) expire() { p.refuse(reasonTimeout, errSlowHeader) }

// refuse ends the connection with a reset, so that the proxy notices, counts it,
// and logs one from time to time.
func (p *proxied) refuse(reason string, why error) {
	c := (*client)(p)
	w := c.worker
	w.metrics.ProxyRefused(reason)
	if now := w.loop.Now(); now.Before(w.sayRefused) {
		w.refused++
	} else {
		w.srv.opts.Logger.Warn("a connection to a socket that requires the PROXY protocol was closed",
			zap.String("socket", c.socket.name), zap.Stringer("peer", c.conn.RemoteAddr()), zap.Error(why),
			zap.Uint64("closed since the last such line", w.refused))
		w.sayRefused, w.refused = now.Add(refusalsEvery), 0
	}
	c.abort(nil)
}
