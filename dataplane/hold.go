package dataplane

import (
	"bytes"
	"strconv"

	"github.com/headgate/headgate/dataplane/message"
	"github.com/headgate/headgate/dataplane/upstream"
)

// heldExchange is about what an exchange takes beside its head and its body.
const heldExchange = 2 << 10

// try says how the next try is made.
func (ex *exchange) try(fresh bool) upstream.Try {
	t := upstream.Try{
		Fresh: fresh, Untimed: ex.timed, Again: ex.connects+ex.stales > 0, Streaming: streams(&ex.request),
		Bytes: heldExchange + ex.request.Headers.Retained() + len(ex.pending),
	}
	t.Key, t.Keyed = ex.hashKey()
	if c := ex.client; !c.trusted { // a proxy's address stands for many clients
		t.Client = c.conn.RemoteAddr().Addr()
	}
	return t
}

// hold asks a client whose request is held for no more of it: TCP pushes back,
// or HTTP/2 withholds the window.
func (ex *exchange) hold() {
	ex.side.hold()
	ex.stream.Paused()
}

// abandoned tells that the client of a held request has closed its side. That it
// has only half-closed and still waits can't be told apart, but who gives up
// closes, and the upstream has enough to do without what nobody waits for. A
// connection of HTTP/2 is read from all the time: its streams are reset.
func (ex *exchange) abandoned() bool {
	c := ex.client
	return c.h2 == nil && c.conn.PeerEnded()
}

var (
	eventStream = []byte("text/event-stream")
	methodGet   = []byte("GET")
	methodPost  = []byte("POST")
)

// streams tells that the answer to a request begins when it has something to
// say, not when it was computed: event streams, gRPC, and what becomes of
// upgraded connections (section 3.6 of the architecture).
func streams(r *message.Request) bool {
	if len(r.Upgrade) > 0 {
		return true
	}
	post := bytes.Equal(r.Method, methodPost)
	if !post && !bytes.Equal(r.Method, methodGet) {
		return false
	}
	return containsFold(r.Headers.Get("Accept"), eventStream) || post && isGRPC(r)
}

// containsFold is bytes.Contains for ASCII in any case.
func containsFold(s, part []byte) bool {
	for i := 0; i+len(part) <= len(s); i++ {
		if s[i]|0x20 == part[0] && bytes.EqualFold(s[i:i+len(part)], part) {
			return true
		}
	}
	return false
}

// retryAfter is what a client is told that was shed; "" when it was not.
func (ex *exchange) retryAfter() string {
	if ex.shed <= 0 {
		return ""
	}
	return strconv.Itoa(int(ex.shed.Seconds()))
}
