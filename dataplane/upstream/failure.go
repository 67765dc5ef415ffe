package upstream

import (
	"errors"
	"fmt"
	"time"

	"github.com/headgate/headgate/dataplane/message"
)

// Failure is why a stream ended without a response.
type Failure struct {
	// Err says who is at fault and what the client should get.
	Err *message.RequestError
	// Unsent tells that no byte of the request left: any request may be tried
	// again.
	Unsent bool
	// Stale tells that a connection that had been idle in the pool was closed
	// before a byte of the response came. An idempotent request may be tried
	// again on a fresh one (RFC 9110, 9.2.2).
	Stale bool
	// RetryAfter is set when the request was shed: when a client should come
	// again.
	RetryAfter time.Duration
	// Endpoint is who failed; nil when none was chosen.
	Endpoint *Endpoint
}

// Reasons of the errors below, as they appear in logs and metrics.
const (
	ReasonNoEndpoints     = "no_endpoints"
	ReasonPoolFull        = "pool_full"
	ReasonPoolShare       = "pool_share"
	ReasonPoolTimeout     = "pool_timeout"
	ReasonPoolGone        = "pool_client_ended"
	ReasonConnectFailed   = "connect_failed"
	ReasonConnectTimeout  = "connect_timeout"
	ReasonResponseTimeout = "response_timeout"
	ReasonAdaptiveTimeout = "adaptive_timeout"
	ReasonReset           = "upstream_reset"
	ReasonClosed          = "upstream_closed"
)

var (
	// errGone goes to the client, so it names no cluster.
	errGone = &message.RequestError{Origin: message.Client, Status: 503, Reason: ReasonPoolGone, Err: errors.New("the client ended its side while the request was held")}

	errWaited     = errors.New("no place became free in time")
	errNoResponse = errors.New("the connection was closed before a response")
	errSlow       = errors.New("no response head in time")
	errUnreached  = errors.New("no connection in time")
)

func errNoEndpoints(c *Cluster) *message.RequestError {
	return &message.RequestError{Origin: message.Upstream, Status: 503, Reason: ReasonNoEndpoints, Err: fmt.Errorf("cluster %s has no ready endpoint", c.name)}
}

func errPoolFull(c *Cluster) *message.RequestError {
	return &message.RequestError{Origin: message.Upstream, Status: 503, Reason: ReasonPoolFull, Err: fmt.Errorf("cluster %s: the pool and its queue are full", c.name)}
}

func errPoolShare(c *Cluster) *message.RequestError {
	return &message.RequestError{Origin: message.Upstream, Status: 503, Reason: ReasonPoolShare, Err: fmt.Errorf("cluster %s: the client has its share of the held requests", c.name)}
}

func errPoolTimeout(c *Cluster) *message.RequestError {
	return &message.RequestError{Origin: message.Upstream, Status: 503, Reason: ReasonPoolTimeout, Err: fmt.Errorf("cluster %s: %w", c.name, errWaited)}
}

func errConnect(e *Endpoint, err error) *message.RequestError {
	return &message.RequestError{Origin: message.Upstream, Status: 502, Reason: ReasonConnectFailed, Err: fmt.Errorf("connect to %s: %w", e.text, err)}
}

func errTimeout(e *Endpoint, reason string, err error) *message.RequestError {
	return &message.RequestError{Origin: message.Upstream, Status: 504, Reason: reason, Err: fmt.Errorf("%s: %w", e.text, err)}
}

func errBroken(e *Endpoint, reason string, err error) *message.RequestError {
	if err == nil {
		err = errNoResponse
	}
	return &message.RequestError{Origin: message.Upstream, Status: 502, Reason: reason, Err: fmt.Errorf("%s: %w", e.text, err)}
}
