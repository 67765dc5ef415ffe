package dataplane

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"go.uber.org/zap"

	"github.com/headgate/headgate/dataplane/accesslog"
	"github.com/headgate/headgate/dataplane/http1"
	"github.com/headgate/headgate/dataplane/ir"
	"github.com/headgate/headgate/dataplane/metrics"
	"github.com/headgate/headgate/dataplane/reactor"
)

// Options configure a Server. Zero values mean the defaults.
type Options struct {
	// Reactor sizes and places the loops.
	Reactor reactor.Options
	// Process is what a start would make of Workers and Pinning where the snapshot
	// says nothing of them; default those of Reactor. They differ where Reactor is as
	// an earlier snapshot wanted it.
	Process ir.Process
	// Limits bound what a client may send in a head, where its socket does not say
	// it. They hold for the heads of responses, too.
	Limits http1.Limits
	// Pool fills in what the clusters of a snapshot leave at zero.
	Pool ir.Pool
	// Adaptive and Pressure do the same.
	Adaptive ir.AdaptiveTimeout
	Pressure ir.Pressure
	// Timeouts bound what a client may keep the server waiting for.
	Timeouts Timeouts
	// MaxConnections and MemoryLimit hold where the snapshot says nothing of them.
	// MaxConnections is how many clients may be connected: while there are as many,
	// none is accepted, and some that wait for a request are closed. Default three
	// quarters of the descriptors that the process may open; negative is no limit.
	MaxConnections int64
	// MemoryLimit is in bytes: while live memory is close to it, no connection is
	// accepted. Default the Go runtime's own limit (GOMEMLIMIT), if it has one;
	// negative is no limit. MemoryUsed returns the live memory; nil asks the
	// runtime.
	MemoryLimit int64
	MemoryUsed  func() int64
	// MaxRequests is how many requests one connection may carry; default no
	// limit.
	MaxRequests uint32
	// TrustedProxies are the peers whose forwarded headers are kept.
	TrustedProxies []netip.Prefix
	// MaxHandshakes is how many TLS handshakes compute at once, over all loops;
	// default half of the processors. One that waits for its client does not
	// count.
	MaxHandshakes int

	// Predecessor may have listening sockets for this process; nil when nothing
	// is handed over. Reactor.Share lets a successor do the same.
	Predecessor Predecessor

	// Metrics is required and must have as many loops as the reactor.
	Metrics *metrics.Metrics
	// AccessLog may be nil.
	AccessLog *accesslog.Log
	// Logger is required.
	Logger *zap.Logger
	// Now is required: the wall clock.
	Now func() time.Time
}

// Timeouts of a client's connection.
type Timeouts struct {
	// Header is the time from a request's first byte to the end of its head;
	// default 10 s. Then 408.
	Header time.Duration
	// Idle is how long a connection may be without a request; default 75 s.
	Idle time.Duration
	// Body is how long a body that is being read may make no progress; default
	// 60 s. Then 408.
	Body time.Duration
	// Write is how long a client may take nothing of a response that waits for
	// it; default 5 min. It is long because a slow reader with a large socket
	// buffer shows progress in large steps only.
	Write time.Duration
	// Handshake bounds the TLS handshake; default 10 s.
	Handshake time.Duration
	// Linger is how long input is read and dropped after an early response,
	// before the connection is closed; default 5 s (RFC 9112, 9.6).
	Linger time.Duration
	// HalfClosed is how long a tunnel of which one side has ended may be
	// silent; default 60 s.
	HalfClosed time.Duration
}

func (o *Options) validate() error {
	if o.Metrics == nil || o.Logger == nil || o.Now == nil {
		return errors.New("dataplane: Metrics, Logger and Now are required")
	}
	if o.MaxConnections == 0 {
		o.MaxConnections = connectionLimit()
	}
	if o.MemoryLimit == 0 {
		o.MemoryLimit = memoryLimit()
	}
	if o.MemoryUsed == nil {
		o.MemoryUsed = liveMemory
	}
	if err := errors.Join(o.Pool.Validate(), o.Adaptive.Validate(), o.Pressure.Validate()); err != nil {
		return fmt.Errorf("dataplane: %w", err)
	}
	for _, d := range []struct {
		name  string
		value *time.Duration
		def   time.Duration
	}{
		{"header", &o.Timeouts.Header, 10 * time.Second},
		{"idle", &o.Timeouts.Idle, 75 * time.Second},
		{"body", &o.Timeouts.Body, 60 * time.Second},
		{"write", &o.Timeouts.Write, 5 * time.Minute},
		{"handshake", &o.Timeouts.Handshake, 10 * time.Second},
		{"linger", &o.Timeouts.Linger, 5 * time.Second},
		{"half-closed", &o.Timeouts.HalfClosed, 60 * time.Second},
	} {
		if *d.value < 0 {
			return fmt.Errorf("dataplane: the %s timeout must not be negative", d.name)
		}
		if *d.value == 0 {
			*d.value = d.def
		}
	}
	return nil
}
