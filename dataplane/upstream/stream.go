package upstream

import (
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
	streamWaiting
	streamConnecting
	streamOpen
)

// Stream is one try of one request at a cluster. It belongs to a loop, is
// embedded in an exchange and used again for the next one; Init is called once.
type Stream struct {
	// Response is the head that OnHead speaks of.
	Response message.Response

	receiver Receiver
	timer    Timer
	shard    *Shard
	conn     *Conn
	endpoint *Endpoint

	endedAt       time.Time // when the request was written
	responseTime  time.Duration
	state         streamState
	key           uint64
	keyed         bool
	again         bool // the request was tried before
	fresh         bool // don't use a pooled connection
	untimed       bool // no response timeout
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

// Init prepares a zero Stream for the loop and the receiver.
func (s *Stream) Init(loop Loop, r Receiver) {
	s.receiver = r
	s.timer = loop.NewTimer(s.expire)
}

// Try says how a stream is opened.
type Try struct {
	// Fresh keeps the stream from taking its connection from the pool.
	Fresh bool
	// Untimed switches the cluster's response timeout off: the route has its
	// own.
	Untimed bool
	// Again tells that the request was tried before.
	Again bool
	// Key chooses the endpoint of a cluster with a consistent hash, if Keyed; see
	// [Key].
	Key   uint64
	Keyed bool
}

// Open asks sh for a connection. OnReady or OnFail follows, maybe before Open
// returns.
func (s *Stream) Open(sh *Shard, t Try) {
	s.shard, s.fresh, s.untimed, s.again, s.key, s.keyed = sh, t.Fresh, t.Untimed, t.Again, t.Key, t.Keyed
	s.responseTime = 0
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

// Connected tells that the stream has a connection.
func (s *Stream) Connected() bool { return s.state == streamOpen }

// Endpoint returns where the stream goes to, nil before it is chosen and after
// the stream ended.
func (s *Stream) Endpoint() *Endpoint { return s.endpoint }

// ResponseTime returns how long the upstream took from the written request to
// the response's final head; 0 when the head came first, or not yet.
func (s *Stream) ResponseTime() time.Duration { return s.responseTime }

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
	if d := s.shard.cluster.state.Load().pool.ResponseTimeout; d > 0 && !s.untimed {
		s.timer.Schedule(d)
	}
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
	case streamWaiting:
		s.shard.unlink(s)
	}
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
		s.shard.outcome(s.endpoint, false)
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
func (s *Stream) expire(time.Time) {
	switch s.state {
	case streamWaiting:
		s.shard.unlink(s)
		s.shard.metrics.TimedOut(metrics.TimeoutWait)
		s.fail(errPoolTimeout(s.shard.cluster))
	case streamConnecting:
		s.shard.metrics.TimedOut(metrics.TimeoutConnect)
		s.shard.outcome(s.endpoint, false)
		s.failSafe(errTimeout(s.endpoint, ReasonConnectTimeout, errUnreached))
	case streamOpen:
		s.shard.metrics.TimedOut(metrics.TimeoutResponse)
		s.shard.outcome(s.endpoint, false)
		s.fail(errTimeout(s.endpoint, ReasonResponseTimeout, errSlow))
	}
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
