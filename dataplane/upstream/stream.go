package upstream

import (
	"net/netip"
	"time"

	"github.com/headgate/headgate/dataplane/message"
	"github.com/headgate/headgate/dataplane/metrics"
)

// Receiver is the exchange that a stream works for. Everything is called on the
// loop. After OnEnd or OnFail nothing more comes.
type Receiver interface {
	Owner
	ResponseSink
}

// Owner hears how a stream fares.
type Owner interface {
	// OnReady: the stream has a connection; send the head now.
	OnReady()
	// OnDrained: the stream is not congested any more.
	OnDrained()
	// OnFail: the stream ended without a complete response.
	OnFail(f Failure)
}

// ResponseSink takes a response as it arrives.
type ResponseSink interface {
	// OnHead: Stream.Response is filled. Informational heads come first.
	OnHead()
	// OnData: a piece of the body, or of a tunnel; p lives until return.
	OnData(p []byte)
	// OnEnd: the response is complete. trailers may be nil and live until
	// return. A tunnel's end means that the upstream writes no more.
	OnEnd(trailers *message.Headers)
}

type streamState uint8

const (
	streamIdle streamState = iota
	streamHeld
	streamConnecting
	streamOpen
)

// Stream is one try of one request at a cluster. It belongs to a loop, is
// embedded in an exchange and used again for the next one; Init is called once.
type Stream struct {
	// Response is the head that OnHead speaks of.
	Response message.Response

	receiver Receiver
	gone     func() bool // may be nil
	timer    Timer
	shard    *Shard
	conn     *Conn
	endpoint *Endpoint

	placed        time.Time  // when it got its place in the pool
	endedAt       time.Time  // when the request was written
	heldAt        int64      // Unix nanoseconds
	client        netip.Addr // whose share of the held requests it is
	bytes         int        // of memory that it takes while it is held
	responseTime  time.Duration
	state         streamState
	key           uint64
	keyed         bool
	again         bool // the request was tried before
	fresh         bool // don't use a pooled connection
	untimed       bool // no response timeout
	streaming     bool // no adaptive timeout, and no answer to learn from
	adaptive      bool // the timer is the adaptive timeout's
	tunnel        bool // the protocol was switched
	reused        bool // the connection came from the pool
	sent          bool // some of the request was written
	heard         bool // some of the response came
	requestEnded  bool
	responseBegan bool // the final head came: the response timeout is over
	slow          bool // the request's end is still queued: the clock starts when it drained

	avoid      [maxAvoid]*Endpoint // endpoints that failed this request
	avoided    int
	prev, next *Stream // in the shard's queue
}

// maxAvoid is how many failed endpoints a stream remembers.
const maxAvoid = 3

// Init prepares a zero Stream for the loop and the receiver. gone tells, of a
// request that was held and is about to get its place, that nobody waits for its
// answer any more; it may be nil.
func (s *Stream) Init(loop Loop, r Receiver, gone func() bool) {
	s.receiver, s.gone = r, gone
	s.timer = loop.NewTimer(s.expire)
}

// Try says how a stream is opened.
type Try struct {
	// Fresh keeps the stream from taking its connection from the pool.
	Fresh bool
	// Untimed switches the cluster's response timeouts off: the route has its
	// own.
	Untimed bool
	// Again tells that the request was tried before.
	Again bool
	// Key chooses the endpoint of a cluster with a consistent hash, if Keyed; see
	// [Key].
	Key   uint64
	Keyed bool
	// Streaming switches the adaptive timeout off: the request asks for a tunnel,
	// an event stream or gRPC, whose answers begin when they do.
	Streaming bool
	// Client is whose share the request counts for while it is held; zero for
	// nobody's. Bytes is the memory that it takes meanwhile.
	Client netip.Addr
	Bytes  int
}

// Open asks sh for a connection. OnReady or OnFail follows, maybe before Open
// returns.
func (s *Stream) Open(sh *Shard, t Try) {
	s.shard, s.fresh, s.untimed, s.again, s.key, s.keyed = sh, t.Fresh, t.Untimed, t.Again, t.Key, t.Keyed
	s.client, s.bytes, s.streaming = t.Client, t.Bytes, t.Streaming
	s.responseTime = 0
	s.adaptive, s.tunnel = false, false
	s.reused, s.sent, s.heard, s.requestEnded, s.responseBegan, s.slow = false, false, false, false, false, false
	sh.admit(s)
}

// Avoid makes the next Open prefer other endpoints than e.
func (s *Stream) Avoid(e *Endpoint) {
	if e != nil && s.avoided < maxAvoid {
		s.avoid[s.avoided] = e
		s.avoided++
	}
}

// Reset forgets the last request. The stream must have ended.
func (s *Stream) Reset() {
	s.Response.Reset()
	s.shard = nil
	clear(s.avoid[:s.avoided])
	s.avoided = 0
}

// Active tells that the stream has not ended.
func (s *Stream) Active() bool { return s.state != streamIdle }

// Held tells that the stream waits for a place in the pool: its client's reading
// should be paused, and Paused be called.
func (s *Stream) Held() bool { return s.state == streamHeld }

// Paused tells that reading from the client was paused because the stream is
// held.
func (s *Stream) Paused() {
	if d, first := s.shard.gate.Paused(s.shard.loop.Now()); first {
		s.shard.metrics.Propagated(d)
	}
}

// Keep tells that n more bytes of the request are kept in memory until the
// stream is ready. False means that a held stream may not have them.
func (s *Stream) Keep(n int) bool {
	if s.state != streamHeld {
		return true
	}
	if !s.shard.gate.More(n) {
		return false
	}
	s.bytes += n
	return true
}

// Shed fails a held stream whose request is too large to be held.
func (s *Stream) Shed() {
	if s.state == streamHeld {
		s.shard.unlink(s)
		s.shed(metrics.ShedFull, errPoolFull(s.shard.cluster))
	}
}

// Connected tells that the stream has a connection.
func (s *Stream) Connected() bool { return s.state == streamOpen }

// Endpoint returns where the stream goes to, nil before it is chosen and after
// the stream ended.
func (s *Stream) Endpoint() *Endpoint { return s.endpoint }

// ResponseTime returns how long the upstream took from the written request to
// the response's final head; 0 when the head came first, or not yet.
func (s *Stream) ResponseTime() time.Duration { return s.responseTime }

// Placed returns when the stream got its place in the pool.
func (s *Stream) Placed() time.Time { return s.placed }

// SendHead writes the request's head.
func (s *Stream) SendHead(r *message.Request) {
	if s.conn != nil {
		s.sent = true
		s.conn.sendHead(r)
	}
}

// SendData writes a piece of the body, or of a tunnel; p is copied.
func (s *Stream) SendData(p []byte) {
	if s.conn != nil && !s.requestEnded && len(p) > 0 {
		s.conn.sendData(p)
	}
}

// SendEnd ends the request, or this side of a tunnel. trailers may be nil. The
// response timeout starts to run.
func (s *Stream) SendEnd(trailers *message.Headers) {
	if s.conn == nil || s.requestEnded {
		return
	}
	s.requestEnded = true
	s.endedAt = s.shard.loop.Now()
	s.conn.sendEnd(trailers)
	if s.conn == nil || s.responseBegan {
		return
	}
	if s.conn.transport.AboveHighWater() {
		s.slow = true
		return
	}
	s.startClock()
}

// startClock starts the response timeout: it runs from the moment at which the
// request was written (section 3.6 of the architecture).
func (s *Stream) startClock() {
	if s.untimed {
		return
	}
	if d := s.bound(s.shard.cluster.state.Load().pool.ResponseTimeout); d > 0 {
		s.timer.Schedule(d)
	}
}

// bound returns the time that the stream may take for what it does next: limit
// or the adaptive timeout, whichever is less; not positive means none.
func (s *Stream) bound(limit time.Duration) time.Duration {
	s.adaptive = false
	if !s.untimed && !s.streaming {
		limit, s.adaptive = s.shard.cluster.state.Load().adaptive.bound(s.shard.loop.Now(), limit)
	}
	return limit
}

// began takes the moment of the response's final head.
func (s *Stream) began() {
	s.timer.Cancel()
	s.responseBegan = true
	if !s.requestEnded {
		return // an early answer says nothing of how long one takes
	}
	sh, now := s.shard, s.shard.loop.Now()
	s.responseTime = now.Sub(s.endedAt)
	sh.metrics.Responded(s.responseTime)
	sh.work.answered(s.responseTime)
	if !s.streaming {
		sh.cluster.state.Load().adaptive.observe(sh.index, now, s.responseTime)
	}
}

// gaveUp tells the estimator, and counts, that the answer, which will not come any
// more, did not come until now.
func (s *Stream) gaveUp() {
	if s.state != streamOpen || !s.requestEnded || s.responseBegan || s.slow || s.streaming {
		return
	}
	sh, now := s.shard, s.shard.loop.Now()
	waited := now.Sub(s.endedAt)
	sh.work.answered(waited)
	sh.cluster.state.Load().adaptive.censored(sh.index, now, waited)
}

// residence returns how long the stream has had its place; negative for a tunnel,
// which is no service.
func (s *Stream) residence() time.Duration {
	if s.tunnel {
		return -1
	}
	return s.shard.loop.Now().Sub(s.placed)
}

// Congested tells that more than the high watermark is queued for the upstream;
// OnDrained follows.
func (s *Stream) Congested() bool { return s.conn != nil && s.conn.transport.AboveHighWater() }

// Pause stops reading from the upstream until Resume.
func (s *Stream) Pause() {
	if s.conn != nil {
		s.conn.transport.PauseRead()
	}
}

// Resume ends Pause.
func (s *Stream) Resume() {
	if s.conn != nil {
		s.conn.transport.ResumeRead()
	}
}

// Cancel ends the stream at once; nothing more is called. A stream that has
// ended is left alone.
func (s *Stream) Cancel() {
	switch s.state {
	case streamIdle:
		return
	case streamHeld:
		s.shard.unlink(s)
	}
	s.gaveUp()
	s.detach()
}

// Close ends a tunnel in order: what is queued for the upstream is still sent.
func (s *Stream) Close() {
	if c := s.conn; c != nil {
		s.conn, c.stream = nil, nil
		c.shut()
	}
	s.Cancel()
}

// Blame notes that the endpoint has failed the request, for a deadline that is not
// the stream's own. It changes nothing once the response has begun.
func (s *Stream) Blame() {
	if s.endpoint != nil && !s.responseBegan && s.state != streamIdle {
		s.shard.outcome(s.endpoint, FaultSlow)
	}
}

// detach takes the stream off its connection, which is closed, and gives its
// place back.
func (s *Stream) detach() {
	s.timer.Cancel()
	s.state = streamIdle
	c := s.conn
	s.conn = nil
	if c != nil {
		c.stream = nil
		c.abort(nil)
	}
	s.shard.release(s)
}

// expire is the timer of whichever wait is on.
func (s *Stream) expire(now time.Time) {
	sh := s.shard
	switch s.state {
	case streamConnecting:
		sh.outcome(s.endpoint, FaultUnreached)
	case streamOpen:
		sh.outcome(s.endpoint, FaultSlow)
	}
	switch {
	case s.state == streamHeld:
		sh.unlink(s)
		sh.metrics.TimedOut(metrics.TimeoutWait)
		s.shed(metrics.ShedTimeout, errPoolTimeout(sh.cluster))
	case s.state == streamConnecting && s.adaptive:
		sh.metrics.TimedOut(metrics.TimeoutAdaptive)
		sh.cluster.state.Load().adaptive.censored(sh.index, now, now.Sub(s.placed))
		s.failSafe(errTimeout(s.endpoint, ReasonAdaptiveTimeout, errUnreached))
	case s.state == streamConnecting:
		sh.metrics.TimedOut(metrics.TimeoutConnect)
		s.failSafe(errTimeout(s.endpoint, ReasonConnectTimeout, errUnreached))
	case s.state == streamOpen && s.adaptive:
		sh.metrics.TimedOut(metrics.TimeoutAdaptive)
		s.gaveUp()
		s.fail(errTimeout(s.endpoint, ReasonAdaptiveTimeout, errSlow))
	case s.state == streamOpen:
		sh.metrics.TimedOut(metrics.TimeoutResponse)
		s.gaveUp()
		s.fail(errTimeout(s.endpoint, ReasonResponseTimeout, errSlow))
	}
}

// shed fails the stream because the cluster is under pressure.
func (s *Stream) shed(why metrics.Shed, err *message.RequestError) {
	s.shard.metrics.Shed(why)
	count(&s.shard.work.shed)
	s.shard.gate.Shed(s.shard.loop.Now())
	s.failWith(Failure{Err: err, Unsent: true, RetryAfter: s.shard.cluster.gate.RetryAfter(s.shard.loop.Now())})
}

// fail ends the stream with an error.
func (s *Stream) fail(err *message.RequestError) { s.failWith(Failure{Err: err, Unsent: !s.sent}) }

// failSafe ends the stream with an error before anything was sent.
func (s *Stream) failSafe(err *message.RequestError) { s.failWith(Failure{Err: err, Unsent: true}) }

func (s *Stream) failWith(f Failure) {
	f.Endpoint = s.endpoint
	s.detach()
	s.receiver.OnFail(f)
}
