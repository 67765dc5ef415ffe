package dataplane

import (
	"errors"
	"time"

	"github.com/headgate/headgate/dataplane/filter"
	"github.com/headgate/headgate/dataplane/message"
	"github.com/headgate/headgate/dataplane/reactor"
	"github.com/headgate/headgate/dataplane/route"
	"github.com/headgate/headgate/dataplane/upstream"
)

// Bounds on the tries of one request.
const (
	maxConnectTries = 3 // endpoints that are tried when none could be reached
	maxStaleTries   = 1 // further tries after a pooled connection turned out closed
)

// exchange is one request and its response, from the first byte to the
// access-log line. It belongs to a loop, lives from one head to the end of the
// answer, and is recycled.
type exchange struct {
	worker *worker
	client *client   // the connection
	side   requester // the client's side of this exchange

	request  message.Request
	stream   upstream.Stream // holds the response's head
	local    message.Response
	match    route.Match
	filters  filter.Exchange
	action   *action  // nil until a rule won
	backend  *backend // nil until one was picked
	pending  []byte   // request body that waits for the upstream
	trailers message.Headers

	started      time.Time
	bytesIn      int64
	bytesOut     int64
	host         []byte // canonical
	logPath      []byte // as received
	requestID    []byte
	upstreamAddr string
	connects     uint8
	stales       uint8
	status       int
	err          *message.RequestError
	shed         time.Duration // when the client should come again that was shed

	sample       sample
	requestTimer reactor.Timer
	tryTimer     reactor.Timer

	sending     bool     // the request's head went to the upstream
	requestDone bool     // the client's side of the request, or tunnel, has ended
	answered    bool     // a final head went to the client
	tunnel      switcher // not nil once the connection changed its protocol
	responseEnd bool     // the upstream's side of a tunnel has ended
	bodySent    bool     // a part of the request's body left: no further try
	timed       bool     // the route sets timeouts
}

func (ex *exchange) retained() int {
	return ex.request.Headers.Retained() + ex.stream.Response.Headers.Retained() + ex.local.Headers.Retained() +
		cap(ex.pending) + ex.trailers.Retained()
}

// reset makes the exchange ready for another request. Fields that keep memory
// are kept.
func (ex *exchange) reset() {
	ex.request.Reset()
	ex.stream.Reset()
	ex.local.Reset()
	ex.trailers.Reset()
	ex.client, ex.side, ex.action, ex.backend = nil, nil, nil, nil
	ex.filters = filter.Exchange{}
	ex.match.Rule, ex.match.Match = nil, nil
	ex.pending = ex.pending[:0]
	ex.bytesIn, ex.bytesOut = 0, 0
	ex.host, ex.logPath, ex.requestID, ex.upstreamAddr = nil, nil, nil, ""
	ex.connects, ex.stales, ex.status, ex.err, ex.shed = 0, 0, 0, nil, 0
	ex.tunnel = nil
	ex.sending, ex.requestDone, ex.answered, ex.responseEnd, ex.bodySent, ex.timed = false, false, false, false, false, false
}

// begin takes the request whose head was parsed: S3 of the paper's pipeline,
// match and balance.
func (ex *exchange) begin(c *client, side requester) {
	ex.client, ex.side = c, side
	ex.started = ex.worker.loop.Now()
	ex.worker.arrive(&ex.sample)
	r := &ex.request
	r.Secure = c.tls != nil
	ex.logPath = r.Path

	var err error
	if ex.host, err = message.CanonicalHost(ex.worker.scratch[:0], r.Host); err != nil {
		ex.fail(err)
		return
	}
	ex.host = ex.own(ex.host, r.Host)
	path, err := message.NormalizePath(ex.worker.scratch[:0], r.Path)
	if err != nil {
		ex.fail(err)
		return
	}
	r.Path = ex.own(path, r.Path)

	routes := c.socket.routes()
	if routes == nil {
		side.last() // its socket is gone
		ex.fail(errNoListener)
		return
	}
	listener := routes.Listener(ex.host)
	if listener == nil {
		ex.fail(errNoListener)
		return
	}
	if c.tls != nil {
		// A connection that was opened for one listener must not reach another
		// one's routes (RFC 9110, 15.5.20; Gateway API, "misdirected requests").
		w := ex.worker
		w.scratch = append(w.scratch[:0], c.tls.ServerName()...)
		if routes.Listener(w.scratch) != listener {
			ex.fail(errMisdirected)
			return
		}
	}
	if !listener.Lookup(ex.host, r, &ex.match) {
		ex.fail(errNoRoute)
		return
	}
	ex.action = ex.match.Rule.Bound.(*action)
	ex.forward()
	ex.filters = filter.Exchange{Request: r, Host: ex.host, Port: c.socket.addr.Port(), Prefix: ex.match.Prefix}
	if !ex.action.filters.Request(&ex.filters) {
		ex.answer()
		return
	}
	ex.proxy()
}

// own returns b in the request's arena, unless it is a part of what is there.
func (ex *exchange) own(b, original []byte) []byte {
	if len(b) == 0 || len(original) > 0 && &b[0] == &original[0] || within(b, original) {
		return b
	}
	return ex.request.Headers.Store(b)
}

// within tells that b is a part of p.
func within(b, p []byte) bool {
	for i := range p {
		if &p[i] == &b[0] {
			return true
		}
	}
	return false
}

// proxy picks a backend and opens a stream to it.
func (ex *exchange) proxy() {
	ex.backend = ex.action.pick(ex.worker.index)
	switch {
	case ex.backend == nil:
		ex.fail(errNoBackend)
		return
	case ex.backend.cluster == nil:
		ex.fail(errInvalidBackend)
		return
	}
	ex.backend.filters.Request(&ex.filters)
	t := ex.action.timeouts
	ex.timed = t.Request != nil || t.Backend != nil
	if t.Request != nil && *t.Request > 0 {
		ex.worker.loop.Schedule(&ex.requestTimer, *t.Request)
	}
	ex.worker.matched(&ex.sample)
	ex.open(false)
}

// open starts one try. A fresh one does not use a pooled connection.
func (ex *exchange) open(fresh bool) {
	if t := ex.action.timeouts.Backend; t != nil && *t > 0 {
		ex.worker.loop.Schedule(&ex.tryTimer, *t)
	}
	ex.sending = false
	ex.stream.Open(ex.backend.cluster.Shard(ex.worker.index), ex.try(fresh))
	if ex.stream.Held() {
		ex.hold()
	} else if ex.stream.Active() && !ex.sending && ex.request.HasBody() && ex.side.bodyComing() {
		// Not connected yet: the client is slowed down, not buffered.
		ex.side.hold()
	}
}

// OnReady sends the request: S4 of the pipeline.
func (ex *exchange) OnReady() {
	ex.sending = true
	ex.upstreamAddr = ex.stream.Endpoint().String()
	ex.stream.SendHead(&ex.request)
	if len(ex.pending) > 0 {
		ex.bodySent = true
		ex.stream.SendData(ex.pending)
		ex.pending = ex.pending[:0]
	}
	if ex.requestDone {
		ex.side.release()
		ex.stream.SendEnd(&ex.trailers)
		return
	}
	ex.resumeClient()
}

// resumeClient lets the client send again when the upstream has room.
func (ex *exchange) resumeClient() {
	if ex.stream.Congested() {
		ex.side.hold()
	} else {
		ex.side.release()
	}
}

// requestData takes a piece of the request's body, or of a tunnel.
func (ex *exchange) requestData(p []byte) {
	ex.bytesIn += int64(len(p))
	ex.progressed()
	if !ex.sending {
		if !ex.stream.Keep(len(p)) {
			ex.stream.Shed()
			return
		}
		ex.pending = append(ex.pending, p...)
		ex.side.hold()
		return
	}
	ex.bodySent = true
	ex.stream.SendData(p)
	if ex.stream.Congested() {
		ex.side.hold()
	}
}

// requestEnd takes the end of the request, or of the client's side of a tunnel.
func (ex *exchange) requestEnd(trailers *message.Headers) {
	if ex.requestDone && ex.tunnel == nil {
		return
	}
	ex.requestDone = true
	if ex.tunnel != nil {
		ex.stream.SendEnd(nil)
		ex.halfClosed()
		return
	}
	if ex.sending {
		ex.stream.SendEnd(trailers)
		return
	}
	if trailers != nil {
		for _, f := range trailers.Fields() {
			ex.trailers.Append(ex.trailers.Store(f.Name), ex.trailers.Store(f.Value))
		}
	}
}

// OnHead passes a response's head on: S5 of the pipeline.
func (ex *exchange) OnHead() {
	r := &ex.stream.Response
	if r.Informational() {
		ex.side.writeHead(r, &ex.request)
		r.Reset()
		return
	}
	tunnel, switches := ex.side.(switcher)
	if r.Status == 101 && !(switches && ex.switches(r)) {
		ex.stream.Cancel()
		ex.fail(errUnasked)
		return
	}
	ex.worker.writing(&ex.sample)
	ex.backend.filters.Response(r)
	ex.action.filters.Response(r)
	ex.answered, ex.status = true, r.Status
	ex.side.writeHead(r, &ex.request)
	ex.worker.wrote(&ex.sample)
	if r.Status == 101 {
		ex.tunnel = tunnel
		ex.requestDone = false
		ex.worker.metrics.AddUpgrades(1)
		tunnel.switchOver()
	}
}

// switches tells that a 101 is the answer to what the client asked for.
func (ex *exchange) switches(r *message.Response) bool {
	return len(ex.request.Upgrade) > 0 && ex.requestDone && len(r.Upgrade) > 0
}

// OnData passes a piece of the response's body on, or of a tunnel.
func (ex *exchange) OnData(p []byte) {
	ex.bytesOut += int64(len(p))
	ex.progressed()
	ex.worker.writing(&ex.sample)
	ex.side.writeData(p)
	ex.worker.wrote(&ex.sample)
	ex.throttle()
}

// throttle stops reading from the upstream while the client is congested.
func (ex *exchange) throttle() {
	if ex.stream.Active() && ex.side.congested() {
		ex.stream.Pause()
	}
}

// clientDrained tells that the client took most of what was queued for it.
func (ex *exchange) clientDrained() { ex.stream.Resume() }

// OnDrained tells that the upstream took most of what was queued for it.
func (ex *exchange) OnDrained() { ex.side.release() }

// OnEnd ends the response, or the upstream's side of a tunnel.
func (ex *exchange) OnEnd(trailers *message.Headers) {
	if ex.tunnel != nil {
		ex.responseEnd = true
		ex.tunnel.closeWrite()
		ex.halfClosed()
		return
	}
	ex.worker.writing(&ex.sample)
	ex.side.writeEnd(trailers)
	ex.worker.wrote(&ex.sample)
	ex.worker.answered(&ex.sample, ex.stream.Placed())
	ex.finish()
}

// halfClosed ends a tunnel when both of its sides have ended, and bounds how
// long one that lost a side may be silent.
func (ex *exchange) halfClosed() {
	if !ex.responseEnd || !ex.requestDone {
		ex.progressed()
		ex.tunnel.watchSilence()
		return
	}
	ex.stream.Close()
	ex.side.last()
	ex.finish()
}

// progressed notes that bytes pass through a tunnel: only a silent one that lost
// a side is cut.
func (ex *exchange) progressed() {
	if ex.tunnel != nil {
		ex.tunnel.progressed()
	}
}

// OnFail handles a try that gave no complete response.
func (ex *exchange) OnFail(f upstream.Failure) {
	if ex.again(f) {
		return
	}
	ex.shed = f.RetryAfter
	if f.Err.Reason != upstream.ReasonNoEndpoints || ex.err == nil {
		ex.err = f.Err
	}
	ex.fail(f.Err)
}

// again starts another try where the specification allows one (RFC 9110,
// 9.2.2): nothing was sent, or a pooled connection was closed under an
// idempotent request that can be repeated whole.
func (ex *exchange) again(f upstream.Failure) bool {
	if ex.answered || ex.bodySent || f.Endpoint == nil {
		return false
	}
	cluster := ex.backend.cluster
	unreached := f.Unsent && f.Err.Status == 502 && ex.connects+1 < maxConnectTries && cluster.Endpoints() > 1
	stale := f.Stale && ex.stales < maxStaleTries && (f.Unsent || ex.request.Idempotent() && !ex.request.HasBody())
	if !unreached && !stale || !cluster.Retry(ex.worker.index) {
		return false
	}
	ex.stream.Response.Reset()
	if unreached {
		ex.connects++
		ex.stream.Avoid(f.Endpoint)
	} else {
		ex.stales++
	}
	ex.open(!unreached)
	return true
}

// requestExpired is the route's request timeout.
func (ex *exchange) requestExpired(time.Time) {
	ex.expired("request_timeout")
}

// tryExpired is the route's backendRequest timeout.
func (ex *exchange) tryExpired(time.Time) {
	ex.expired("backend_request_timeout")
}

func (ex *exchange) expired(reason string) {
	w := ex.worker
	if ex.tunnel == nil { // the timeouts bound a request, not the protocol that it led to
		ex.stream.Blame()
		ex.fail(&message.RequestError{Origin: message.Upstream, Status: 504, Reason: reason, Err: errRouteTimeout})
	}
	w.flush()
}

var errRouteTimeout = errors.New("the route's timeout passed")

// clientGone ends the exchange because its client's connection is gone.
func (ex *exchange) clientGone() {
	ex.stream.Cancel()
	if ex.err == nil && ex.tunnel == nil {
		ex.err = errClientGone
	}
	ex.end()
}

// finish ends an exchange whose answer is complete.
func (ex *exchange) finish() {
	side := ex.side
	ex.end()
	side.responseDone()
}

// end gives everything back. The exchange must not be used afterwards.
func (ex *exchange) end() {
	w := ex.worker
	w.loop.Cancel(&ex.requestTimer)
	w.loop.Cancel(&ex.tryTimer)
	if ex.stream.Active() {
		ex.stream.Cancel()
	}
	if ex.tunnel != nil {
		w.metrics.AddUpgrades(-1)
	}
	ex.record()
	w.recycle(ex)
}
