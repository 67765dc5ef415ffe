package dataplane

import (
	"crypto/tls"
	"math/bits"

	"github.com/headgate/headgate/dataplane/accesslog"
	"github.com/headgate/headgate/dataplane/ir"
)

// record feeds the counters and the access log with an exchange that ended.
func (ex *exchange) record() {
	w := ex.worker
	now := w.loop.Now()
	took := now.Sub(ex.started)
	routes := w.srv.opts.Metrics.Unmatched()
	if ex.action != nil {
		routes = ex.action.metrics
	}
	routes.Observe(w.index, ex.status, took)
	if ex.err != nil && ex.err == errClientGone {
		w.metrics.ClientError(ex.err.Reason)
	}
	if w.log == nil || !ex.logged() {
		return
	}
	r := &ex.request
	e := &w.entry
	*e = accesslog.Entry{
		RequestID: ex.requestID,
		Method:    r.Method,
		Host:      ex.host,
		Path:      ex.logPath,
		UserAgent: r.Headers.Get("User-Agent"),
		Referer:   r.Headers.Get("Referer"),
		Protocol:  protocolName(r.Major, r.Minor),
		Status:    ex.status,
		BytesIn:   ex.bytesIn,
		BytesOut:  ex.bytesOut,
		Duration:  took,
		Upstream:  ex.upstreamAddr,

		UpstreamDuration: ex.stream.ResponseTime(),
	}
	if c := ex.client; c != nil {
		e.Client = c.conn.RemoteAddr()
		if c.tls != nil {
			e.TLS = tlsName(c.tls.Version())
			e.SNI = c.tls.ServerName()
		}
	}
	if ex.action != nil {
		e.Listener, e.Route = ex.action.listener, ex.action.route
	}
	if ex.backend != nil && ex.backend.cluster != nil {
		e.Cluster = ex.backend.cluster.Name()
	}
	if ex.err != nil {
		e.Origin, e.Reason = ex.err.Origin.String(), ex.err.Reason
	}
	w.log.Write(now, e)
}

// logged tells whether the socket's rule has the request logged. An answer that
// was cut off has an error, too.
func (ex *exchange) logged() bool {
	c := ex.client
	if c == nil || c.socket == nil {
		return true
	}
	rule := c.socket.client.Load().log
	switch {
	case rule.Mode == ir.LogOff:
		return false
	case ex.err != nil || ex.status == 0 || ex.status >= 400:
		return true
	case rule.Mode == ir.LogErrors:
		return false
	}
	return c.socket.drawn(ex.worker.index, rule.SamplePercent)
}

// drawn tells whether a request on a loop belongs to a sample of so many percent; 0
// is all of them. The turns are a Weyl sequence, as those of backends are: over any
// run of the loop's requests the share is as it should be.
func (s *socket) drawn(loop int, percent uint8) bool {
	if percent == 0 || percent >= 100 {
		return true
	}
	t := &s.logTurns[loop]
	t.n += weyl
	at, _ := bits.Mul64(t.n, 100)
	return at < uint64(percent)
}

func protocolName(major, minor uint8) string {
	switch {
	case major == 1 && minor == 0:
		return "HTTP/1.0"
	case major == 1:
		return "HTTP/1.1"
	case major == 2:
		return "HTTP/2.0"
	}
	return ""
}

func tlsName(version uint16) string {
	switch version {
	case tls.VersionTLS12:
		return "TLS 1.2"
	case tls.VersionTLS13:
		return "TLS 1.3"
	}
	return ""
}
