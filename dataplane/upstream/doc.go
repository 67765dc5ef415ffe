// Package upstream owns the clusters of a data plane: their endpoints, their
// pools of connections (one shard per loop), balancing, the adaptive timeout,
// and the bound on the requests that are under way at a cluster. An exchange
// opens a [Stream] on the shard of its own loop and never leaves that loop; the
// only state that loops share are a few atomic counters per cluster and endpoint.
//
// A stream needs a place in the pool. Package pressure says whether it gets one,
// is held in the shard's queue, or is shed; the shard keeps the queue, wakes it
// when a place comes back or the gate may have another one, and bounds its time.
//
// The package does no I/O itself. It sees its connections, timers and loops
// through the interfaces below, which the data plane implements on the reactor.
package upstream

import (
	"net/netip"
	"time"
)

// Loop is the event loop that a shard lives on.
type Loop interface {
	// Dial starts a connection without blocking; c hears of the outcome through
	// OnConnect or OnClose, never before Dial returned.
	Dial(addr netip.AddrPort, c *Conn) (Transport, error)
	// NewTimer makes a timer that is not armed; fire runs on the loop.
	NewTimer(fire func(now time.Time)) Timer
	Clock
}

// Clock tells a loop's time and takes work from elsewhere.
type Clock interface {
	// Now is the loop's time, on the loop only.
	Now() time.Time
	// Post runs fn on the loop soon; callable from any goroutine.
	Post(fn func())
}

// Timer fires once per Schedule.
type Timer interface {
	Schedule(d time.Duration)
	Cancel()
}

// Transport is one connection's socket.
type Transport interface {
	Writer
	Reader
	Closer
}

// Writer takes a connection's outbound bytes.
type Writer interface {
	// Write queues a copy of p.
	Write(p []byte)
	// AboveHighWater tells that the caller should stop writing until OnDrained.
	AboveHighWater() bool
}

// Reader controls a connection's reading.
type Reader interface {
	PauseRead()
	ResumeRead()
}

// Closer ends a connection.
type Closer interface {
	// CloseWrite ends the writing side after what is queued.
	CloseWrite()
	// Close sends what is queued and closes.
	Close()
	// Abort closes at once and drops what is queued.
	Abort(err error)
}
