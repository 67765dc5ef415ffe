package dataplane

import (
	"errors"
	"net/netip"
	"time"

	"github.com/headgate/headgate/dataplane/http1"
	"github.com/headgate/headgate/dataplane/message"
	"github.com/headgate/headgate/dataplane/reactor"
	"github.com/headgate/headgate/dataplane/tlsterm"
)

// What a client's timer is armed for.
type clientWait uint8

const (
	waitNothing   clientWait = iota
	waitProxy                // the header of the PROXY protocol
	waitHandshake            // the TLS handshake
	waitRequest              // the first byte of a request
	waitHead                 // the rest of a head
	waitBody                 // progress of a request's body
	waitReader               // the client takes what is queued for it
	waitTunnel               // a half-closed tunnel
	waitLeave                // the client of HTTP/2 knows that the connection ends
)

// Why reading from a client is paused.
const (
	pauseUpstream uint8 = 1 << iota // the upstream is not ready, or slow
	pausePipeline                   // a further request waits for its turn
)

// maxDrain is how much of a body that nobody wants is read, so that the
// connection can be kept.
const maxDrain = 64 << 10

// client is one client connection, owned by its loop. It speaks HTTP/1 itself;
// when HTTP/2 was negotiated, all that is HTTP is left to h2.
type client struct {
	worker *worker
	socket *socket
	conn   *reactor.Conn
	tls    *tlsterm.Session // nil on a plain socket
	h2     *h2conn          // nil unless HTTP/2 is spoken
	ex     *exchange        // the request under way
	in     []byte           // input that was not consumed
	out    []byte           // plaintext to seal; TLS only
	prev   *client
	next   *client

	parser   http1.RequestParser
	timer    reactor.Timer
	progress time.Time // when the body, or a tunnel, last made progress; before, when it was accepted
	buffered int       // outbound bytes when waitReader was armed
	wire     int64     // ciphertext that was sent
	requests uint32    // served so far
	drained  uint32    // bytes of an unwanted body that were read
	port     uint16    // where the client had connected to, if a proxy has said so; else 0

	wait       clientWait
	paused     uint8
	proxy      bool // the peer may speak the PROXY protocol; before its header has come
	ready      bool // the handshake, if any, is over
	trusted    bool // the peer's forwarded headers are kept
	bodyOpen   bool // the request has not ended
	hasBody    bool // the request has a body
	processing bool // process is on the stack
	keepAlive  bool // the connection serves another request after this one
	chunked    bool // the response's body is chunked
	tunnel     bool // bytes pass as they are
	eof        bool // the client sends no more
	closed     bool
}

// accept makes a client of a new connection. It is called on the loop.
func (s *socket) accept(l *reactor.Loop, conn *reactor.Conn) reactor.Handler {
	w := s.srv.workers[l.Index()]
	c := &client{worker: w, socket: s, conn: conn}
	c.timer.Fire = c.expire
	w.clients.add(c)
	w.metrics.Accepted()
	s.srv.guard.accepted(s.srv.connections.Add(1), l.Now())
	if from := s.client.Load().proxies; from != nil {
		return c.awaitProxy(from)
	}
	c.begin()
	return c
}

// begin starts TLS or HTTP: it is known who the client is.
func (c *client) begin() {
	s, now := c.socket, c.worker.loop.Now()
	c.trusted = s.trusts(c.conn.RemoteAddr().Addr())
	c.parser.Reset(s.limits())
	if s.secure.Load() {
		c.tls = s.tls.NewSession((*tlsCarrier)(c))
		c.progress = now
		c.arm(waitHandshake, s.timeouts().Handshake)
		return
	}
	c.ready = true
	c.arm(waitRequest, s.idleTimeout())
	c.worker.accepted(now)
}

func (c *client) arm(wait clientWait, d time.Duration) {
	c.wait = wait
	c.worker.loop.Schedule(&c.timer, d)
}

func (c *client) disarm() {
	if c.wait != waitNothing {
		c.wait = waitNothing
		c.worker.loop.Cancel(&c.timer)
	}
}

// OnRead takes bytes from the socket.
func (c *client) OnRead(_ *reactor.Conn, p []byte) {
	switch {
	case c.closed:
	case len(p) == 0:
		c.inputEnded()
	case c.tls != nil:
		c.worker.metrics.Received(len(p))
		c.feedTLS(p)
	default:
		c.worker.metrics.Received(len(p))
		c.input(p)
	}
	c.worker.flush()
}

// OnDrained tells that the client has taken most of what was queued for it.
func (c *client) OnDrained(*reactor.Conn) {
	if c.closed {
		return
	}
	if c.h2 != nil {
		c.h2.drained()
		c.worker.flush()
		return
	}
	if c.wait == waitReader {
		c.rearm()
	}
	if c.ex != nil {
		c.ex.clientDrained()
	} else if c.ready {
		c.resumeInput()
	}
	c.worker.flush()
}

// rearm goes back to what the connection waits for when its client reads again.
func (c *client) rearm() {
	c.disarm()
	switch {
	case c.bodyOpen:
		c.arm(waitBody, c.socket.timeouts().Body)
	case c.ex == nil:
		c.arm(waitRequest, c.socket.idleTimeout())
	case c.tunnel && (c.ex.requestDone || c.ex.responseEnd):
		c.watchSilence()
	}
}

// OnClose tells that the socket is gone.
func (c *client) OnClose(*reactor.Conn, error) {
	c.gone()
	c.worker.flush()
}

// gone ends everything that the connection held.
func (c *client) gone() {
	if c.socket == nil {
		return
	}
	c.closed = true
	c.disarm()
	if ex := c.ex; ex != nil {
		c.ex = nil
		ex.clientGone()
	}
	if c.h2 != nil {
		c.h2.gone()
	}
	if c.tls != nil {
		c.tls.Close()
	}
	c.dropOut()
	c.worker.clients.remove(c)
	c.worker.metrics.Closed()
	srv := c.socket.srv
	c.socket = nil
	srv.connectionEnded()
}

// input takes plaintext.
func (c *client) input(p []byte) {
	if c.h2 != nil {
		c.h2.input(p)
		return
	}
	buf := p
	if len(c.in) > 0 {
		buf = append(c.in, p...)
	}
	n := c.process(buf)
	c.keep(buf[n:], len(c.in) > 0)
}

// keep holds input for later, and lets go of the buffer when there is none.
func (c *client) keep(rest []byte, owned bool) {
	switch {
	case len(rest) == 0 || c.closed:
		c.in = nil
	case owned:
		c.in = rest
	default:
		c.in = append([]byte(nil), rest...)
	}
	if len(c.in) == 0 || c.bodyOpen {
		return // or it is the beginning of a chunk: the rest is waited for
	}
	if c.ex != nil || c.conn.AboveHighWater() {
		c.pause(pausePipeline)
	} else if c.wait == waitRequest {
		c.arm(waitHead, c.socket.timeouts().Header)
	}
}

// process parses p and returns how much of it was used. What is left belongs to
// a head that is not complete, or to a request that waits for its turn.
func (c *client) process(p []byte) int {
	c.processing = true
	used := 0
	for !c.closed {
		if c.tunnel {
			if used < len(p) {
				c.ex.requestData(p[used:])
			}
			used = len(p)
			break
		}
		if !c.bodyOpen && (c.ex != nil || used == len(p) || c.conn.AboveHighWater()) {
			break // further requests wait for their turn, and for the client to read
		}
		ex := c.ex
		if ex == nil {
			ex = c.worker.take()
			if !c.parser.Started() {
				c.parser.SetLimits(c.socket.limits())
			}
		}
		n, event, data, err := c.parser.Next(&ex.request, p[used:])
		used += n
		if err == nil && event == http1.Head {
			c.head(ex)
			continue
		}
		if c.ex == nil && !c.bodyOpen && err != nil {
			c.refuse(ex, err)
			break
		}
		if c.ex == nil {
			c.worker.recycle(ex)
		}
		if err != nil {
			c.badBody(err)
			break
		}
		if event == http1.None {
			break
		}
		c.body(event, data)
	}
	c.processing = false
	if c.closed {
		return len(p)
	}
	return used
}

// head starts the exchange whose head was just parsed.
func (c *client) head(ex *exchange) {
	c.disarm()
	c.requests++
	c.ex, c.bodyOpen, c.hasBody = ex, true, ex.request.HasBody()
	c.progress = c.worker.loop.Now()
	c.keepAlive = c.parser.KeepAlive()
	c.worker.metrics.Request()
	if c.hasBody {
		c.arm(waitBody, c.socket.timeouts().Body)
	}
	ex.begin(c, c)
}

// body passes on a piece of the request's body, or its end.
func (c *client) body(event http1.Event, data []byte) {
	if event == http1.Data {
		c.progress = c.worker.loop.Now()
		if c.ex != nil {
			c.ex.requestData(data)
			return
		}
		// Nobody wants the rest: it is read so that the connection can be kept.
		c.drained += uint32(min(len(data), maxDrain+1))
		if c.drained > maxDrain {
			c.finish(true)
		}
		return
	}
	c.bodyOpen, c.drained = false, 0
	if c.wait == waitBody {
		c.disarm()
	}
	if c.ex != nil {
		c.ex.requestEnd(c.parser.Trailers())
		return
	}
	c.nextRequest()
}

// responseDone ends the request under way; its exchange has ended.
func (c *client) responseDone() {
	c.ex = nil
	switch {
	case c.closed:
	case !c.keepAlive || c.eof:
		c.finish(c.bodyOpen && c.hasBody && !c.eof)
	case c.bodyOpen:
		c.unpause(pauseUpstream)
		c.arm(waitBody, c.socket.timeouts().Body)
		c.resumeInput()
	default:
		c.nextRequest()
		c.resumeInput()
	}
}

// nextRequest makes the connection wait for its next request.
func (c *client) nextRequest() {
	c.arm(waitRequest, c.socket.idleTimeout())
	c.unpause(pauseUpstream)
}

// resumeInput goes on with input that waited, unless process is about to do so.
func (c *client) resumeInput() {
	if c.processing {
		return
	}
	if len(c.in) > 0 {
		buf := c.in
		c.in = nil
		n := c.process(buf)
		c.keep(buf[n:], true)
	}
	if c.ex == nil && !c.conn.AboveHighWater() || len(c.in) == 0 {
		c.unpause(pausePipeline)
	}
}

// inputEnded handles the end of the client's sending. It may still read: an
// answer that is under way is finished (RFC 9112, 9.6; half-close).
func (c *client) inputEnded() {
	if c.eof || c.closed {
		return
	}
	c.eof = true
	switch {
	case c.h2 != nil:
		c.h2.inputEnded()
	case c.tunnel:
		c.ex.requestEnd(nil)
	case c.ex != nil && !c.bodyOpen:
		// The response is under way.
	case c.ex != nil:
		ex := c.ex
		c.keepAlive = false
		ex.fail(errCutBody)
	default:
		c.finish(false)
	}
}

// pause stops reading for a reason; unpause ends it.
func (c *client) pause(why uint8) {
	if c.paused == 0 {
		c.conn.PauseRead()
	}
	c.paused |= why
}

func (c *client) unpause(why uint8) {
	if c.paused&why == 0 {
		return
	}
	c.paused &^= why
	if c.paused == 0 && !c.closed {
		c.progress = c.worker.loop.Now()
		c.conn.ResumeRead()
	}
}

// finish closes the connection after what is queued. With linger, input that is
// still on its way is read and dropped first, so that the client gets the
// answer and not a reset (RFC 9112, 9.6).
func (c *client) finish(linger bool) {
	var limit time.Duration
	if linger {
		limit = c.socket.timeouts().Linger
	}
	c.finishWithin(limit)
}

// finishWithin is finish with a bound on the lingering, 0 for none.
func (c *client) finishWithin(limit time.Duration) {
	if c.closed {
		return
	}
	c.closed = true
	c.disarm()
	c.in = nil
	if c.tls != nil {
		c.seal()
		if c.ready {
			_ = c.tls.CloseWrite() // without it the client sees the connection's end only
		}
	}
	if limit > 0 {
		c.conn.CloseLinger(limit)
	} else {
		c.conn.Close()
	}
}

// abort closes the connection so that the client sees that the answer is not
// complete.
func (c *client) abort(err error) {
	if c.closed {
		return
	}
	c.closed = true
	c.disarm()
	c.conn.Abort(err)
}

var (
	errSlowHead = &message.RequestError{Origin: message.Client, Status: 408, Reason: "header_timeout", Err: errors.New("the request's head did not arrive in time")}
	errSlowBody = &message.RequestError{Origin: message.Client, Status: 408, Reason: "body_timeout", Err: errors.New("the request's body made no progress")}
	errCutBody  = &message.RequestError{Origin: message.Client, Status: 400, Reason: "incomplete_body", Err: errors.New("the request's body ended early")}
	errStuck    = errors.New("the client takes nothing of the response")
)

// expire is the client's timer.
func (c *client) expire(now time.Time) {
	wait := c.wait
	c.wait = waitNothing
	if c.h2 != nil {
		c.h2.expire(wait)
		c.worker.flush()
		return
	}
	switch wait {
	case waitProxy:
		(*proxied)(c).expire()
	case waitHandshake:
		c.finish(false)
	case waitRequest:
		if c.conn.Buffered() > 0 { // the last answer is still on its way
			c.watchReader()
			break
		}
		c.closeIdle()
	case waitTunnel:
		if left := c.socket.timeouts().HalfClosed - now.Sub(c.progress); left > 0 {
			c.arm(waitTunnel, left)
			break
		}
		c.abort(nil)
	case waitHead:
		c.refuse(c.worker.take(), errSlowHead)
	case waitBody:
		left := c.socket.timeouts().Body - now.Sub(c.progress)
		switch {
		case c.paused != 0:
			c.arm(waitBody, c.socket.timeouts().Body)
		case left > 0:
			c.arm(waitBody, left)
		case c.ex == nil:
			c.finish(false)
		default:
			c.keepAlive = false
			c.ex.fail(errSlowBody)
		}
	case waitReader:
		switch n := c.conn.Buffered(); {
		case n == 0:
			c.rearm()
		case n < c.buffered:
			c.watchReader()
		default:
			c.abort(errStuck)
		}
	}
	c.worker.flush()
}

// clientList is a worker's connections.
type clientList struct {
	first *client
	n     int
}

func (l *clientList) add(c *client) {
	c.next = l.first
	if l.first != nil {
		l.first.prev = c
	}
	l.first = c
	l.n++
}

func (l *clientList) remove(c *client) {
	if c.prev == nil {
		l.first = c.next
	} else {
		c.prev.next = c.next
	}
	if c.next != nil {
		c.next.prev = c.prev
	}
	c.prev, c.next = nil, nil
	l.n--
}

// trusts tells whether a peer's forwarded headers are kept.
func (s *socket) trusts(peer netip.Addr) bool { return inPrefixes(s.client.Load().trusted, peer) }

// inPrefixes tells whether an address is in one of some prefixes.
func inPrefixes(prefixes []netip.Prefix, a netip.Addr) bool {
	for _, p := range prefixes {
		if p.Contains(a.Unmap()) {
			return true
		}
	}
	return false
}
