package upstream

import (
	"time"

	"github.com/headgate/headgate/dataplane/http1"
	"github.com/headgate/headgate/dataplane/message"
)

type connState uint8

const (
	connConnecting connState = iota
	connBusy
	connIdle
	connClosed
)

// maxKeptInput is the largest input buffer that a connection keeps while it is
// idle.
const maxKeptInput = 4 << 10

// Conn is one HTTP/1.1 connection to an endpoint. It belongs to a loop, which
// calls the On methods.
type Conn struct {
	transport Transport
	shard     *Shard
	endpoint  *Endpoint
	stream    *Stream // nil while idle
	timer     Timer   // idle reaping
	parser    http1.ResponseParser
	in        []byte // input that the parser did not consume
	created   time.Time
	listed    int // place in the idle list, from 1; 0 when not listed
	state     connState
	tunnel    bool
	warming   bool // it is opened ahead of need
	chunked   bool // the request under way has a chunked body
}

func newConn(sh *Shard, ep *Endpoint) *Conn {
	c := &Conn{shard: sh, endpoint: ep, created: sh.loop.Now()}
	c.timer = sh.loop.NewTimer(c.expire)
	c.parser.Reset(&sh.limits)
	return c
}

// serve gives the connection, which is open and unused, to a stream.
func (c *Conn) serve(s *Stream) {
	c.timer.Cancel()
	c.state, c.stream = connBusy, s
	s.conn, s.reused, s.state = c, true, streamOpen
	s.receiver.OnReady()
}

// OnConnect tells that the connection is up.
func (c *Conn) OnConnect() {
	s := c.stream
	if c.warming && c.state == connConnecting {
		c.warmed()
		return
	}
	if c.state != connConnecting || s == nil {
		return
	}
	c.state = connBusy
	c.shard.metrics.Connected()
	s.timer.Cancel()
	s.state = streamOpen
	s.receiver.OnReady()
}

// OnRead takes bytes that arrived; an empty p means that the upstream writes no
// more.
func (c *Conn) OnRead(p []byte) {
	switch {
	case c.state == connClosed:
	case c.stream == nil:
		// An idle connection that says anything, or that ends, is of no use:
		// bytes would be taken for the answer to the next request.
		c.abort(nil)
	case len(p) == 0:
		c.eof()
	case len(c.in) > 0:
		buf := append(c.in, p...)
		n := c.consume(buf) // may park the connection, and so drop c.in
		c.in = buf[:copy(buf, buf[n:])]
	default:
		if n := c.consume(p); n < len(p) && c.state == connBusy {
			c.in = append(c.in, p[n:]...)
		}
	}
}

// consume parses p and returns how much of it was used.
func (c *Conn) consume(p []byte) int {
	used := 0
	c.stream.heard = true
	for c.stream != nil {
		s := c.stream
		if c.tunnel {
			if used < len(p) {
				s.receiver.OnData(p[used:])
			}
			return len(p)
		}
		n, ev, data, err := c.parser.Next(&s.Response, p[used:])
		used += n
		if err != nil {
			c.broken(http1Error(err))
			return len(p)
		}
		switch ev {
		case http1.Head:
			c.head(s)
		case http1.Data:
			s.receiver.OnData(data)
		case http1.End:
			c.finish(len(p) - used)
			return len(p)
		default:
			return used
		}
	}
	return len(p)
}

func (c *Conn) head(s *Stream) {
	if !s.Response.Informational() {
		s.began()
		c.shard.answered(c.endpoint, s)
		if s.Response.Status == 101 {
			c.tunnel, s.tunnel = true, true
			s.requestEnded = false // its writing side goes on as a tunnel
		}
	}
	s.receiver.OnHead()
}

// finish ends a complete response. extra is the number of bytes that came after
// it.
func (c *Conn) finish(extra int) {
	s := c.stream
	reuse := c.parser.KeepAlive() && s.requestEnded && extra == 0 && !c.tunnel && c.state == connBusy &&
		!c.endpoint.removed.Load() && !c.shard.cluster.state.Load().retired
	trailers := c.parser.Trailers()
	s.timer.Cancel()
	sh, ep, d := s.shard, s.endpoint, s.residence()
	c.stream, s.conn, s.endpoint, s.state = nil, nil, nil, streamIdle
	if reuse {
		c.park()
	} else {
		c.shut()
	}
	// The place is given back last: who waits for it may take this very
	// connection, whose parser still holds the trailers.
	s.receiver.OnEnd(trailers)
	sh.giveBack(ep, d)
}

// park puts the connection into the pool.
func (c *Conn) park() {
	c.state, c.chunked = connIdle, false
	if cap(c.in) > maxKeptInput {
		c.in = nil
	}
	c.transport.ResumeRead()
	c.endpoint.idleOn(c.shard.index).put(c)
	c.shard.metrics.AddIdle(1)
	c.timer.Schedule(c.shard.cluster.state.Load().pool.IdleTimeout)
}

// eof handles the end of the upstream's writing.
func (c *Conn) eof() {
	s := c.stream
	if c.tunnel {
		// The other direction may go on; the exchange closes when both ended.
		s.receiver.OnEnd(nil)
		return
	}
	ev, err := c.parser.EOF()
	if err == nil && ev == http1.End {
		c.finish(0)
		return
	}
	c.lost(ReasonClosed, nil)
}

// OnDrained tells that the outbound queue fell to the low watermark.
func (c *Conn) OnDrained() {
	s := c.stream
	if s == nil {
		return
	}
	if s.slow {
		s.slow = false
		if !s.responseBegan {
			s.endedAt = c.shard.loop.Now()
			s.startClock()
		}
	}
	s.receiver.OnDrained()
}

// OnClose tells that the socket is gone.
func (c *Conn) OnClose(err error) {
	was := c.state
	c.state = connClosed
	c.unlist()
	c.timer.Cancel()
	s := c.stream
	if s == nil {
		if was == connConnecting && c.warming {
			c.shard.metrics.ConnectFailed()
		}
		return
	}
	if was == connConnecting {
		c.shard.metrics.ConnectFailed()
		c.stream, s.conn = nil, nil
		c.shard.outcome(c.endpoint, FaultConnect)
		s.failSafe(errConnect(c.endpoint, err))
		return
	}
	c.lost(ReasonReset, err)
}

// lost fails the stream because the connection ended under it.
func (c *Conn) lost(reason string, err error) {
	s := c.stream
	stale := s.reused && !s.heard
	// A pooled connection that was closed says nothing against the endpoint.
	if !stale && !s.responseBegan {
		c.shard.outcome(c.endpoint, FaultBroken)
	}
	s.gaveUp()
	s.failWith(Failure{
		Err:    errBroken(c.endpoint, reason, err),
		Unsent: !s.sent,
		Stale:  stale,
	})
}

// broken fails the stream because the upstream does not speak HTTP.
func (c *Conn) broken(err *message.RequestError) {
	if !c.stream.responseBegan {
		c.shard.outcome(c.endpoint, FaultProtocol)
	}
	c.stream.failWith(Failure{Err: err})
}

// abort closes the socket at once.
func (c *Conn) abort(err error) {
	if c.state == connClosed {
		return
	}
	c.state = connClosed
	c.unlist()
	c.timer.Cancel()
	if c.transport != nil {
		c.transport.Abort(err)
	}
}

// expire closes a connection that was not used, or not made, for too long.
func (c *Conn) expire(time.Time) {
	switch {
	case c.state == connIdle:
		c.shut()
	case c.warming:
		c.shard.metrics.ConnectFailed()
		c.abort(nil)
	}
}

// shut closes an idle connection in order.
func (c *Conn) shut() {
	c.state = connClosed
	c.unlist()
	c.timer.Cancel()
	c.transport.Close()
}

func (c *Conn) unlist() {
	if c.listed > 0 {
		c.endpoint.idleOn(c.shard.index).remove(c)
		c.shard.metrics.AddIdle(-1)
	}
}

// idleList holds the unused connections of one endpoint on one loop; the one
// that was used last is taken first, so that the others can age.
type idleList struct {
	conns []*Conn
	_     [40]byte // neighbours belong to other loops
}

func (l *idleList) put(c *Conn) {
	l.conns = append(l.conns, c)
	c.listed = len(l.conns)
}

// take returns an open connection that is not older than maxAge (0: any age),
// or nil.
func (l *idleList) take(now time.Time, maxAge time.Duration) *Conn {
	for len(l.conns) > 0 {
		c := l.conns[len(l.conns)-1]
		c.unlist()
		if maxAge > 0 && now.Sub(c.created) > maxAge {
			c.shut()
			continue
		}
		return c
	}
	return nil
}

func (l *idleList) remove(c *Conn) {
	i, last := c.listed-1, len(l.conns)-1
	if i != last {
		// Keep the order, which is by last use. Only reaping and resets come
		// here, mostly for the oldest one.
		copy(l.conns[i:], l.conns[i+1:])
		for j := i; j < last; j++ {
			l.conns[j].listed = j + 1
		}
	}
	l.conns[last] = nil
	l.conns = l.conns[:last]
	c.listed = 0
}

func (l *idleList) closeAll() {
	for len(l.conns) > 0 {
		l.conns[len(l.conns)-1].shut()
	}
}
