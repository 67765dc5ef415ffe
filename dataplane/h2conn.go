package dataplane

import (
	"errors"
	"time"

	"github.com/headgate/headgate/dataplane/http2"
	"github.com/headgate/headgate/dataplane/message"
)

const (
	// leaveAfter is how long a client has to learn that its connection ends, if
	// it does not answer the PING that tells it.
	leaveAfter = time.Second
	// maxFreeStreams bounds the streams that a worker keeps for reuse.
	maxFreeStreams = 2048
	// overHigh is how much may be queued above the high watermark, which bodies
	// keep, before a client that reads nothing is not read from any more: what
	// it sends is answered (PING, SETTINGS, heads), and that must not pile up.
	overHigh = 256 << 10
)

// h2conn is the HTTP/2 of a client's connection, owned by its loop. It parses,
// makes an exchange of each stream, shares the connection between the answers,
// and ends it.
type h2conn struct {
	client *client
	codec  *http2.Conn
	spare  *h2stream   // for the next head
	first  *h2stream   // the streams
	ready  streamQueue // streams that have something to send and a window for it

	idle       time.Time // since when there is no stream
	sent       int64     // bytes of bodies that were given to the connection
	warned     bool      // the client was told that the connection will end
	left       bool      // no further streams are served
	processing bool      // process is on the stack
}

// startH2 makes the connection speak HTTP/2.
func (c *client) startH2() {
	h := &h2conn{client: c, codec: http2.New(c.socket.limits()), idle: c.worker.loop.Now()}
	c.h2 = h
	h.send()
	if c.worker.srv.draining.Load() {
		h.drain()
	}
	h.await(false)
}

// send sends what the codec wants to be sent. It follows every call of the
// codec's methods.
func (h *h2conn) send() {
	w, out := h.client.worker, h.codec.Out
	if len(out) > 0 && !h.client.closed {
		h.client.write(out)
	}
	if cap(out) > cap(w.frames) {
		w.frames = out
	}
	h.codec.Out = w.frames[:0] // all connections of the loop share it
}

// input takes plaintext.
func (h *h2conn) input(p []byte) {
	c := h.client
	buf, owned := p, len(c.in) > 0
	if owned {
		buf = append(c.in, p...)
	}
	n, heads := h.process(buf)
	switch rest := buf[n:]; {
	case len(rest) == 0 || c.closed:
		c.in = nil
	case owned && n == 0:
		c.in = buf
	default:
		c.in = append([]byte(nil), rest...)
	}
	if c.closed {
		return
	}
	if c.conn.AboveHighWater() && c.conn.Buffered() > h.high()+overHigh {
		c.pause(pausePipeline)
	}
	h.await(heads > 0)
}

// high is the watermark above which the connection counts as congested.
func (h *h2conn) high() int {
	const unset = 256 << 10
	if n := h.client.worker.srv.opts.Reactor.HighWater; n > 0 {
		return n
	}
	return unset
}

// process parses p. It returns how much was used, and how many heads were
// complete.
func (h *h2conn) process(p []byte) (used, heads int) {
	c := h.client
	w := c.worker
	h.processing = true
	h.codec.SetLimits(c.socket.limits())
	h.send()
	var ex *exchange
	for !c.closed {
		if ex == nil {
			ex = w.take()
		}
		if h.spare == nil {
			h.spare = w.takeStream()
		}
		n, ev, err := h.codec.Next(w.loop.Now(), &h.spare.codec, &ex.request, p[used:])
		used += n
		h.send()
		if err != nil {
			h.fail(err)
			break
		}
		if ev.Kind == http2.None {
			break
		}
		if ev.Kind == http2.Head {
			heads++
			h.head(&ev, ex)
			ex = nil
			continue
		}
		h.event(&ev)
	}
	if ex != nil {
		w.recycle(ex)
	}
	if h.spare != nil {
		w.giveStream(h.spare)
		h.spare = nil
	}
	h.processing = false
	h.settle()
	return used, heads
}

// event handles an event that does not begin a stream.
func (h *h2conn) event(ev *http2.Event) {
	var s *h2stream
	if ev.Stream != nil {
		s = ev.Stream.Owner.(*h2stream)
	}
	switch ev.Kind {
	case http2.Data:
		s.requestData(ev.Data, ev.Last)
	case http2.End:
		s.requestEnd(ev.Trailers)
	case http2.Reset:
		h.reset(s, ev.Err)
	case http2.Window:
		if s == nil {
			for s := h.first; s != nil; s = s.next {
				h.enqueue(s)
			}
		} else {
			h.enqueue(s)
		}
		h.pump()
	case http2.GoAway:
		h.warned = true
		h.leave()
	case http2.Pong:
		h.leave()
	case http2.None, http2.Head:
	}
}

// head starts the exchange of a new stream.
func (h *h2conn) head(ev *http2.Event, ex *exchange) {
	c, s := h.client, h.spare
	h.spare = nil
	s.start(h, ex)
	if c.wait != waitLeave {
		c.disarm()
	}
	c.requests++
	c.worker.metrics.Request()
	if c.worker.srv.draining.Load() || c.socket.exhausted(c.requests) {
		h.drain()
	}
	if ev.Err != nil {
		ex.refuse(c, s, ev.Err)
		return
	}
	if !ev.Last { // even if it says that it has no body
		s.arm(waitBody, c.socket.timeouts().Body)
	}
	ex.begin(c, s)
	if ev.Last && s.ex == ex {
		ex.requestEnd(nil)
	}
}

// reset ends a stream that its client has reset, or spoilt with err.
func (h *h2conn) reset(s *h2stream, err error) {
	var re *message.RequestError
	if errors.As(err, &re) {
		h.client.worker.metrics.ClientError(re.Reason)
	}
	if s != nil {
		s.gone(re)
	}
}

// fail ends the connection because of what its client did.
func (h *h2conn) fail(err error) {
	var ce *http2.ConnError
	if errors.As(err, &ce) {
		h.client.worker.metrics.ClientError(ce.Reason)
	}
	h.gone()
	h.client.finish(true)
}

// gone ends all streams: the connection is no more.
func (h *h2conn) gone() {
	for h.first != nil {
		h.first.gone(nil)
	}
}

// enqueue makes a stream take part in the sharing of the connection if there is
// something that it may send.
func (h *h2conn) enqueue(s *h2stream) {
	if !s.queued && s.waiting() && (len(s.queue) == 0 || !h.codec.Blocked(&s.codec)) {
		h.ready.push(s)
	}
}

// full tells that the connection has enough to send.
func (h *h2conn) full() bool { return h.client.closed || h.client.conn.AboveHighWater() }

// pump sends what waits: a frame of each stream in turn, as long as the
// connection takes it.
func (h *h2conn) pump() {
	for h.ready.head != nil && !h.full() {
		s := h.ready.pop()
		if !s.waiting() || len(s.queue) > 0 && h.codec.Blocked(&s.codec) {
			continue // it comes again with its window
		}
		if len(s.queue) > 0 && h.codec.Room(&s.codec) == 0 {
			h.ready.unpop(s) // the connection's window is used up
			return
		}
		s.sendQueued()
		if s.waiting() {
			h.enqueue(s)
			continue
		}
		s.emptied()
	}
}

// drained tells that the socket took most of what was queued.
func (h *h2conn) drained() {
	c := h.client
	h.pump()
	for s := h.first; s != nil && !c.closed; s = s.next {
		if s.ex != nil && !s.waiting() {
			s.emptied()
		}
	}
	c.unpause(pausePipeline)
	h.settle()
	h.await(false)
}

// drain makes the connection end when its streams have: the client is warned
// first, so that no request that is on its way is refused.
func (h *h2conn) drain() {
	if h.warned || h.client.closed {
		return
	}
	h.warned = true
	h.codec.Warn()
	h.send()
	h.client.arm(waitLeave, leaveAfter)
}

// leave is the second step of drain.
func (h *h2conn) leave() {
	if h.left || !h.warned {
		return
	}
	h.left = true
	h.codec.Leave()
	h.send()
}

// settle closes the connection when nothing is left to do on it.
func (h *h2conn) settle() {
	c := h.client
	if !h.processing && !c.closed && h.first == nil && (h.left || c.eof) {
		// What is on its way, a WINDOW_UPDATE for one, must not reset the
		// connection under the last answer.
		h.finish()
	}
}

// inputEnded handles the end of the client's sending.
func (h *h2conn) inputEnded() {
	for s := h.first; s != nil; {
		if !s.bodyComing() {
			s = s.next
			continue
		}
		s.gone(errCutBody)
		s = h.first // it may have ended others
	}
	h.settle()
	h.await(false)
}

// await arms the connection's timer for what it waits for. Progress tells that a
// head has come since the last time. Other frames keep nothing open, whole or in
// pieces.
func (h *h2conn) await(progress bool) {
	c := h.client
	if c.closed || h.processing || c.wait == waitLeave && !h.left {
		return
	}
	want, limit := waitNothing, time.Duration(0)
	switch t := c.socket.timeouts(); {
	case h.first != nil:
		// What is open has deadlines of its own.
	case h.codec.Pending() || len(c.in) > 0:
		want, limit = waitHead, t.Header
	default:
		want, limit = waitRequest, max(c.socket.idleTimeout()-c.worker.loop.Now().Sub(h.idle), 0)
	}
	switch {
	case want == c.wait && (want != waitHead || !progress):
	case want == waitNothing:
		c.disarm()
	default:
		c.arm(want, limit)
	}
}

// expire is the connection's timer.
func (h *h2conn) expire(wait clientWait) {
	c := h.client
	switch wait {
	case waitLeave:
		h.leave()
		h.settle()
		h.await(false)
	case waitRequest:
		h.drain() // a request may be on its way
	default:
		c.worker.metrics.ClientError(errSlowHead.Reason)
		h.codec.Leave()
		h.send()
		h.gone()
		h.finish()
	}
}

// finish closes the connection after what is queued.
func (h *h2conn) finish() {
	c := h.client
	switch {
	case c.eof:
		c.finish(false)
	case c.worker.srv.draining.Load():
		c.finishWithin(drainLinger)
	default:
		c.finish(true)
	}
}

// streamQueue is a queue of streams, linked through them.
type streamQueue struct{ head, tail *h2stream }

func (q *streamQueue) push(s *h2stream) {
	s.queued, s.after = true, nil
	if q.tail == nil {
		q.head = s
	} else {
		q.tail.after = s
	}
	q.tail = s
}

func (q *streamQueue) pop() *h2stream {
	s := q.head
	q.head = s.after
	if q.head == nil {
		q.tail = nil
	}
	s.queued, s.after = false, nil
	return s
}

// unpop puts a stream back to where it was.
func (q *streamQueue) unpop(s *h2stream) {
	s.queued, s.after = true, q.head
	q.head = s
	if q.tail == nil {
		q.tail = s
	}
}

// remove takes a stream out.
func (q *streamQueue) remove(s *h2stream) {
	if !s.queued {
		return
	}
	var before *h2stream
	for x := q.head; x != s; x = x.after {
		before = x
	}
	if before == nil {
		q.head = s.after
	} else {
		before.after = s.after
	}
	if q.tail == s {
		q.tail = before
	}
	s.queued, s.after = false, nil
}
