package metrics

import "time"

// Stage is a part of the pipeline of the paper, 3.1.
type Stage uint8

// The stages S1 to S5.
const (
	StageAccept  Stage = iota // S1: accept and TLS
	StageParse                // S2: parse and authenticate
	StageRoute                // S3: match and balance
	StageProxy                // S4: pool and proxy
	StageRespond              // S5: transform and write
	stages
)

// String returns the value of the label.
func (s Stage) String() string {
	return [stages]string{"accept", "parse", "route", "proxy", "respond"}[s]
}

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
	arrivals, departures      [stages]counter
	busyNanos                 [stages]counter
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

// Enter counts an arrival at a stage.
func (l *Loop) Enter(s Stage) { l.arrivals[s].inc() }

// Leave counts the end of a stage and the time that it kept the loop busy;
// waiting is not busy time. Every Enter is followed by one Leave of the same
// stage, so that the difference of the two is what is in the stage.
func (l *Loop) Leave(s Stage, busy time.Duration) {
	l.departures[s].inc()
	l.busyNanos[s].add(uint64(max(busy, 0)))
}

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
