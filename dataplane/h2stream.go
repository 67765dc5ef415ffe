package dataplane

import (
	"time"

	"github.com/headgate/headgate/dataplane/http2"
	"github.com/headgate/headgate/dataplane/message"
	"github.com/headgate/headgate/dataplane/reactor"
)

// h2stream is one stream of an HTTP/2 connection: the client's side of one
// exchange. It lives on after its exchange when the client has not taken the
// whole answer. It is recycled.
type h2stream struct {
	codec http2.Stream
	conn  *h2conn
	ex    *exchange // nil when it has ended

	prev, next *h2stream // the connection's streams
	after      *h2stream // in the connection's queue
	queued     bool

	timer    reactor.Timer
	wait     clientWait
	progress time.Time // when the request's body last made progress
	mark     reading   // when the reader was looked at last

	queue    []byte // body that waits for a window or for the connection
	queueOff int
	trailers []byte // encoded; sent at the end
	left     int64  // of the answer's body, or Unknown
	sent     int64  // bytes of the body that were given to the connection
	owed     int    // bytes of the request that the client may send again when the upstream has room
	held     bool
	long     bool // the request's body is longer than the first window
	complete bool // all of the answer has been written
}

// reading is how far a client has read.
type reading struct{ stream, conn, wire int64 }

// takeStream returns a stream that is ready for a head.
func (w *worker) takeStream() *h2stream {
	if n := len(w.streams); n > 0 {
		s := w.streams[n-1]
		w.streams = w.streams[:n-1]
		return s
	}
	s := &h2stream{}
	s.codec.Owner = s
	s.timer.Fire = s.expire
	return s
}

func (w *worker) giveStream(s *h2stream) {
	if len(w.streams) < maxFreeStreams {
		w.streams = append(w.streams, s)
	}
}

// start begins an exchange whose head has come.
func (s *h2stream) start(h *h2conn, ex *exchange) {
	s.conn, s.ex = h, ex
	s.progress = h.client.worker.loop.Now()
	s.left = message.Unknown
	n := ex.request.ContentLength
	s.long = n == message.Unknown || n > http2.FirstWindow
	s.next = h.first
	if h.first != nil {
		h.first.prev = s
	}
	h.first = s
}

// drop gives the stream back.
func (s *h2stream) drop() {
	h := s.conn
	w := h.client.worker
	s.disarm()
	h.ready.remove(s)
	if s.prev == nil {
		h.first = s.next
	} else {
		s.prev.next = s.next
	}
	if s.next != nil {
		s.next.prev = s.prev
	}
	h.idle = w.loop.Now()
	s.releaseQueue()
	*s = h2stream{codec: s.codec, timer: s.timer}
	w.giveStream(s)
	h.settle()
	h.await(false)
}

// releaseQueue gives the queue's memory back.
func (s *h2stream) releaseQueue() {
	if cap(s.queue) == borrowed {
		s.conn.client.worker.giveBack(s.queue)
	}
	s.queue, s.queueOff = nil, 0
}

func (s *h2stream) arm(wait clientWait, d time.Duration) {
	s.wait = wait
	s.conn.client.worker.loop.Schedule(&s.timer, d)
}

func (s *h2stream) disarm() {
	if s.wait != waitNothing {
		s.wait = waitNothing
		s.conn.client.worker.loop.Cancel(&s.timer)
	}
}

// requestData passes a piece of the request's body on.
func (s *h2stream) requestData(p []byte, last bool) {
	s.progress = s.conn.client.worker.loop.Now()
	ex := s.ex
	if ex == nil {
		return // nobody wants it, and no more is asked for
	}
	ex.requestData(p)
	if s.ex != ex {
		return
	}
	if last {
		s.requestEnd(nil)
		return
	}
	s.owed += len(p)
	if !s.held {
		s.repay()
	}
}

// requestEnd passes the request's end on.
func (s *h2stream) requestEnd(trailers *message.Headers) {
	if s.wait == waitBody {
		s.disarm()
	}
	if s.ex != nil {
		s.ex.requestEnd(trailers)
	}
}

// gone ends a stream that the client does not know any more, or whose client is
// no more. err says what the client did wrong, nil that it went away.
func (s *h2stream) gone(err *message.RequestError) {
	if ex := s.ex; ex != nil {
		s.ex = nil
		if err != nil {
			ex.err = err
		}
		ex.clientGone()
	}
	s.abandon(http2.CodeCancel)
}

// abandon resets the stream, if the client has not, and drops it.
func (s *h2stream) abandon(code http2.Code) {
	s.conn.codec.Reset(&s.codec, code)
	s.conn.send()
	s.drop()
}

// The methods below make a stream the requester of its exchange.

func (s *h2stream) bodyComing() bool { return !s.codec.RemoteEnded() }
func (s *h2stream) last()            { s.conn.drain() }
func (s *h2stream) spoilt()          {} // frames have lengths: nobody gets lost

// hold withholds the stream's window.
func (s *h2stream) hold() { s.held = true }

// release gives the window back, and makes it larger: the body flows.
func (s *h2stream) release() {
	if s.held {
		s.held = false
		s.progress = s.conn.client.worker.loop.Now()
	}
	if !s.bodyComing() {
		return
	}
	if s.long {
		s.conn.codec.Widen(&s.codec)
	}
	s.repay()
}

func (s *h2stream) repay() {
	s.conn.codec.Credit(&s.codec, s.owed)
	s.owed = 0
	s.conn.send()
}

// writeHead sends a head.
func (s *h2stream) writeHead(r *message.Response, _ *message.Request) {
	end := false
	if !r.Informational() {
		end = r.Bodyless || r.ContentLength == 0
		s.left = r.ContentLength
		s.complete = end
	}
	s.conn.codec.Head(&s.codec, r, end)
	s.conn.send()
}

// writeData sends a piece of the body, or queues it: when it is not this
// stream's turn, or its window or the connection's is used up.
func (s *h2stream) writeData(p []byte) {
	if s.complete || len(p) == 0 {
		return
	}
	if s.left != message.Unknown {
		s.left -= int64(len(p))
		s.complete = s.left <= 0
	}
	h := s.conn
	for len(s.queue) == 0 && len(p) > 0 && h.ready.head == nil && !h.full() {
		n := min(len(p), h.codec.Room(&s.codec))
		if n == 0 {
			break
		}
		s.frame(p[:n], s.complete && n == len(p))
		p = p[n:]
	}
	if len(p) == 0 {
		return
	}
	if s.queue == nil && len(p) > 8<<10 {
		s.queue = h.client.worker.borrow()
	}
	s.queue = append(s.queue, p...)
	h.enqueue(s)
}

// frame sends a DATA frame.
func (s *h2stream) frame(p []byte, end bool) {
	h := s.conn
	h.codec.DataHead(&s.codec, len(p), end)
	h.send()
	h.client.write(p)
	s.sent += int64(len(p))
	h.sent += int64(len(p))
}

// writeEnd ends the answer.
func (s *h2stream) writeEnd(trailers *message.Headers) {
	if s.complete {
		return // the last frame said so, or will
	}
	s.complete = true
	if trailers != nil && trailers.Len() > 0 {
		s.trailers = http2.AppendTrailers(nil, trailers)
	}
	if len(s.queue) == 0 {
		s.sendEnd()
	}
}

func (s *h2stream) sendEnd() {
	h := s.conn
	if len(s.trailers) > 0 {
		h.codec.Trailers(&s.codec, s.trailers)
		s.trailers = nil
	} else {
		h.codec.DataHead(&s.codec, 0, true)
	}
	h.send()
}

// waiting tells that there is something to be sent.
func (s *h2stream) waiting() bool { return len(s.queue) > 0 }

// sendQueued sends one frame of what waits, and the end behind it.
func (s *h2stream) sendQueued() {
	rest := s.queue[s.queueOff:]
	n := min(len(rest), s.conn.codec.Room(&s.codec))
	done := n == len(rest)
	s.frame(rest[:n], done && s.complete && len(s.trailers) == 0)
	s.queueOff += n
	if !done {
		return
	}
	s.releaseQueue()
	if s.complete && !s.codec.LocalEnded() {
		s.sendEnd()
	}
}

// emptied tells that nothing waits for the client any more.
func (s *h2stream) emptied() {
	if s.wait == waitReader {
		s.rearm()
	}
	if s.ex != nil {
		s.ex.clientDrained()
		return
	}
	s.finish()
}

// congested tells that the client does not take what it is given.
func (s *h2stream) congested() bool {
	if !s.waiting() && !s.conn.full() || s.conn.client.closed {
		return false
	}
	if s.wait != waitReader {
		s.watchReader()
	}
	return true
}

// responseDone tells that the exchange has ended.
func (s *h2stream) responseDone() {
	s.ex = nil
	if s.waiting() {
		if s.wait != waitReader {
			s.watchReader()
		}
		return
	}
	s.finish()
}

// finish ends a stream whose answer is sent. A request that has not ended is of
// no use any more (RFC 9113, 8.1).
func (s *h2stream) finish() { s.abandon(http2.CodeNone) }

// cut resets the stream: its answer is not whole.
func (s *h2stream) cut(bool) {
	s.ex = nil
	s.abandon(http2.CodeInternal)
}

// rearm goes back to what the stream waits for when its client reads again.
func (s *h2stream) rearm() {
	s.disarm()
	if s.ex != nil && s.bodyComing() {
		s.arm(waitBody, s.conn.client.socket.timeouts().Body)
	}
}

// watchReader watches that the client takes some of what waits.
func (s *h2stream) watchReader() {
	s.mark = s.reading()
	s.arm(waitReader, s.conn.client.socket.timeouts().Write)
}

func (s *h2stream) reading() reading {
	c := s.conn.client
	return reading{stream: s.sent, conn: s.conn.sent, wire: c.wire - int64(c.conn.Buffered())}
}

// stuck tells that the client has taken nothing since the reader was marked.
func (s *h2stream) stuck() bool {
	now := s.reading()
	switch {
	case s.waiting() && s.conn.codec.Blocked(&s.codec):
		return now.stream == s.mark.stream // it opens no window for this stream
	case s.conn.full():
		return now.wire == s.mark.wire // it does not read
	}
	return now.conn == s.mark.conn // it opens no window for the connection
}

// expire is the stream's timer.
func (s *h2stream) expire(now time.Time) {
	wait := s.wait
	s.wait = waitNothing
	w := s.conn.client.worker
	limit := s.conn.client.socket.timeouts().Body
	switch left := limit - now.Sub(s.progress); {
	case wait == waitReader && !s.waiting() && !s.conn.full():
		s.rearm()
	case wait == waitReader && !s.stuck():
		s.watchReader()
	case wait == waitReader:
		s.gone(nil)
	case wait != waitBody || s.ex == nil || !s.bodyComing():
	case s.held:
		s.arm(waitBody, limit)
	case left > 0:
		s.arm(waitBody, left)
	default:
		s.ex.fail(errSlowBody)
	}
	w.flush()
}
