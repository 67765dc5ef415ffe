package dataplane

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/headgate/headgate/dataplane/message"
)

// Answers that the gateway gives itself. The texts of errors from the gateway's
// side go to the client; they name no internal thing.
var (
	errNoListener     = &message.RequestError{Origin: message.Client, Status: 404, Reason: "no_listener", Err: errors.New("no listener serves this host")}
	errNoRoute        = &message.RequestError{Origin: message.Client, Status: 404, Reason: "no_route", Err: errors.New("no route matches this request")}
	errMisdirected    = &message.RequestError{Origin: message.Client, Status: 421, Reason: "misdirected", Err: errors.New("this connection was opened for another host")}
	errNoBackend      = &message.RequestError{Origin: message.Gateway, Status: 500, Reason: "no_backend", Err: errors.New("the route has no backend for this request")}
	errInvalidBackend = &message.RequestError{Origin: message.Gateway, Status: 500, Reason: "invalid_backend", Err: errors.New("the route's backend is not valid")}
	errUnasked        = &message.RequestError{Origin: message.Upstream, Status: 502, Reason: "unasked_upgrade", Err: errors.New("the upstream switched protocols without being asked")}
	errClientGone     = &message.RequestError{Origin: message.Client, Status: 499, Reason: "client_gone", Err: errors.New("the client went away")}
)

// fail answers the request with an error, or, when a part of the answer went
// out, makes the client see that it is not complete.
func (ex *exchange) fail(err error) {
	var re *message.RequestError
	if !errors.As(err, &re) {
		re = &message.RequestError{Origin: message.Gateway, Status: 500, Reason: "internal", Err: err}
	}
	ex.err = re
	if ex.stream.Active() {
		ex.stream.Cancel()
	}
	if re.Origin == message.Client {
		ex.worker.metrics.ClientError(re.Reason)
		if re.Status == 400 {
			ex.side.spoilt()
		}
	}
	if ex.answered {
		ex.cut()
		return
	}
	if ex.request.Major == 2 && isGRPC(&ex.request) {
		ex.failGRPC(re.Status, localText(re))
		return
	}
	ex.reply(re.Status, localText(re), func(r *message.Response) {
		if after := ex.retryAfter(); after != "" {
			r.Headers.Add("Retry-After", after)
		}
	})
}

// localText is what a client is told. What an upstream did wrong is for the
// log: its addresses are nobody's business outside.
func localText(e *message.RequestError) string {
	if e.Origin == message.Upstream {
		return fmt.Sprintf("%d %s: %s", e.Status, http.StatusText(e.Status), e.Reason)
	}
	return fmt.Sprintf("%d %s: %v", e.Status, http.StatusText(e.Status), e.Err)
}

// refuse answers a request whose head was not taken.
func (ex *exchange) refuse(c *client, side requester, err error) {
	ex.client, ex.side = c, side
	ex.logPath = ex.request.Path
	ex.started = ex.worker.loop.Now()
	ex.fail(err)
}

// answer gives what a filter answered.
func (ex *exchange) answer() {
	a := ex.filters.Answer
	ex.reply(a.Status, fmt.Sprintf("%d %s", a.Status, http.StatusText(a.Status)), func(r *message.Response) {
		r.Headers.Add("Location", a.Location)
		ex.action.filters.Response(r)
	})
}

// reply answers with a line of text.
func (ex *exchange) reply(status int, text string, more func(*message.Response)) {
	w := ex.worker
	w.metrics.LocalReply(ex.replyReason(status))
	r := &ex.local
	r.Reset()
	r.Status, r.Major, r.Minor = status, 1, 1
	r.ContentLength = int64(len(text) + 1)
	r.Bodyless = ex.request.IsHead()
	r.Headers.Add("Content-Type", "text/plain; charset=utf-8")
	r.Headers.Add("Date", ex.worker.loop.Now().UTC().Format(http.TimeFormat))
	more(r)
	ex.answered, ex.status = true, status
	side := ex.side
	side.writeHead(r, &ex.request)
	if !r.Bodyless {
		ex.bytesOut = r.ContentLength
		w.scratch = append(append(w.scratch[:0], text...), '\n')
		side.writeData(w.scratch)
	}
	ex.finish()
}

func (ex *exchange) replyReason(status int) string {
	if ex.err != nil {
		return ex.err.Reason
	}
	return strconv.Itoa(status)
}

// cut ends an answer that can't be completed, visibly: a length that is not
// reached or a last chunk that is missing tells it, and where only the end of
// the connection ends the body, a reset does.
func (ex *exchange) cut() {
	side := ex.side
	visible := ex.stream.Response.ContentLength != message.Unknown || ex.tunnel != nil
	ex.end()
	side.cut(visible)
}

// defaultDrain is how long Shutdown waits when its context has no deadline.
const defaultDrain = 30 * time.Second
