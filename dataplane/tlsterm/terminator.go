package tlsterm

import (
	"runtime"
	"sync/atomic"
	"time"
)

// Options configure a [Terminator]. The zero value is usable.
type Options struct {
	// MaxHandshakes is how many handshakes compute at once, over all loops. A
	// handshake that waits for its client does not count. Further ones wait
	// their turn, first come, first served. Default: half of GOMAXPROCS, at
	// least 1.
	MaxHandshakes int
	// NextProtos are the application protocols (RFC 7301), the preferred one
	// first. Default: h2, http/1.1, http/1.0.
	NextProtos []string
	// TicketRotation is the age at which the key of new session tickets is
	// replaced. A ticket is taken for at least twice, at most three times as
	// long. Default 12 h.
	TicketRotation time.Duration
}

// Terminator is what all TLS sockets and loops of a data plane share. Its
// methods may be called from any goroutine.
type Terminator struct {
	protos  []string
	gate    gate
	buffers pools
	tickets tickets
	// now is the time of the last Rotate in Unix seconds, 0 before the first.
	now atomic.Int64
}

// New returns a Terminator with fresh ticket keys.
func New(o Options) *Terminator {
	if o.MaxHandshakes <= 0 {
		o.MaxHandshakes = max(1, runtime.GOMAXPROCS(0)/2)
	}
	if len(o.NextProtos) == 0 {
		// Clients that ask for HTTP/1.0 by ALPN exist (curl -0).
		o.NextProtos = []string{"h2", "http/1.1", "http/1.0"}
	}
	if o.TicketRotation <= 0 {
		o.TicketRotation = 12 * time.Hour
	}
	t := &Terminator{protos: o.NextProtos}
	t.gate.free = o.MaxHandshakes
	t.tickets.init(o.TicketRotation)
	return t
}

// Rotate tells the time: it replaces the ticket key when that is old enough,
// and from then on an expired certificate is passed over when its listener has
// another one. Call it at start, then about once a minute.
func (t *Terminator) Rotate(now time.Time) {
	t.now.Store(now.Unix())
	t.tickets.rotate(now)
}

// Stats are the handshakes of this moment.
type Stats struct {
	Computing int // have one of the places of Options.MaxHandshakes
	Waiting   int // are ready to compute and wait for a place
}

// Stats returns the handshakes of this moment.
func (t *Terminator) Stats() Stats { return t.gate.stats() }

// NewSocket returns a socket without listeners: it refuses every handshake
// until [Socket.Update].
func (t *Terminator) NewSocket() *Socket {
	s := &Socket{t: t}
	s.current.Store(newGeneration(t, nil, nil))
	return s
}
