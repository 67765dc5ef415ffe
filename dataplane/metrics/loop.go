package metrics

const (
	maxReasons = 64 // per loop and family; the code's own constants are fewer
	other      = "other"
)

// Loop counts what happens on one loop beside routes and clusters. Its methods
// must run there.
type Loop struct {
	accepted, connections     counter
	requests                  counter
	bytesIn, bytesOut         counter
	clientErrors, replies     tally[string]
	proxyRefused              tally[string]
	handshakes, badHandshakes counter
	upgrades                  counter
	_                         [64]byte // keeps a neighbour's line apart
}

// Accepted counts a client connection that the loop was given.
func (l *Loop) Accepted() {
	l.accepted.inc()
	l.connections.shift(1)
}

// Closed tells that a client connection ended.
func (l *Loop) Closed() { l.connections.shift(-1) }

// Request counts a request whose head is complete.
func (l *Loop) Request() { l.requests.inc() }

// Received counts n bytes from clients, as they came from the socket.
func (l *Loop) Received(n int) { l.bytesIn.add(uint64(n)) }

// Sent counts n bytes to clients, as they went to the socket.
func (l *Loop) Sent(n int) { l.bytesOut.add(uint64(n)) }

// ClientError counts a request that its client spoilt. The reason is one of the
// constants of message.RequestError; after 64 distinct ones a new reason is
// counted as "other".
func (l *Loop) ClientError(reason string) { l.clientErrors.inc(reason, maxReasons, other) }

// LocalReply counts a response that the gateway made itself: an error, a
// redirect. Reasons are bounded as in ClientError.
func (l *Loop) LocalReply(reason string) { l.replies.inc(reason, maxReasons, other) }

// ProxyRefused counts a connection that was closed for want of a good header of
// the PROXY protocol. Reasons are bounded as in ClientError.
func (l *Loop) ProxyRefused(reason string) { l.proxyRefused.inc(reason, maxReasons, other) }

// Handshake counts a TLS handshake that ended.
func (l *Loop) Handshake(ok bool) {
	if ok {
		l.handshakes.inc()
		return
	}
	l.badHandshakes.inc()
}

// AddUpgrades changes the number of open tunnels (Upgrade, CONNECT) by n.
func (l *Loop) AddUpgrades(n int) { l.upgrades.shift(n) }
