package ir

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// HashKind is what a consistent hash is made of.
type HashKind uint8

// The keys of a consistent hash.
const (
	// HashClient is the client's address: the first of X-Forwarded-For, as the
	// backend gets it.
	HashClient HashKind = iota
	// HashHeader is a header field of the request, as the backend gets it.
	HashHeader
	// HashCookie is a cookie of the request.
	HashCookie
)

// HashOn is the key of [BalanceConsistentHash]. A request without it goes to
// where least request would send it.
type HashOn struct {
	Kind HashKind
	// Name of the field, in any case, or of the cookie; empty for HashClient.
	Name string
}

// Ejection takes an endpoint that keeps failing out of the balancing for a
// while: passive outlier detection. A failure is a connection that did not come
// about, a connection that broke before the response's head, or a deadline of
// the cluster that passed. The zero value is the default.
type Ejection struct {
	// Off switches it off.
	Off bool
	// Failures in a row eject; 1 to 1,000, default 5.
	Failures int
	// ServerErrors makes responses with 502, 503 and 504 failures, too.
	ServerErrors bool
	// Period of the first ejection; each one in a row takes twice as long as the
	// last. Default 10 s.
	Period time.Duration
	// MaxPeriod bounds that; default 5 min.
	MaxPeriod time.Duration
	// MaxPercent of the endpoints that may be ejected at once, rounded down: the
	// only endpoint of a cluster never is, unless it is 100; default 50.
	MaxPercent int
}

// HealthCheck asks each endpoint from time to time whether it is well.
type HealthCheck struct {
	// Path of the GET request, with a leading slash.
	Path string
	// Host field of the request; empty means the endpoint's address.
	Host string
	// Interval between the end of a check and the next one; 100 ms or more,
	// default 10 s.
	Interval time.Duration
	// Timeout of one check; default 2 s.
	Timeout time.Duration
	// Unhealthy failures in a row take the endpoint out, Healthy successes in a
	// row bring it back; 1 to 100, defaults 3 and 2.
	Unhealthy, Healthy int
	// Statuses that are successes; nil means 200 to 399.
	Statuses []StatusRange
}

// StatusRange is a range of HTTP statuses, both ends included; 100 to 599.
type StatusRange struct{ First, Last int }

// RetryBudget bounds the further tries of requests, so that a failing upstream
// is not given more work than a working one. The zero value is the default.
type RetryBudget struct {
	// Off allows no further try at all.
	Off bool
	// Percent of the requests that may be tried again; 1 to 1,000, default 20.
	Percent int
	// MinPerSecond may be tried again whatever the load; 1 to 10,000, default 10.
	MinPerSecond int
}

// Bounds of the values above.
const (
	maxFailures     = 1_000
	maxThreshold    = 100
	minInterval     = 100 * time.Millisecond
	maxRetryPercent = 1_000
	maxRetryRate    = 10_000
	maxWarm         = 1_000
)

func (h HashOn) validate() error {
	switch h.Kind {
	case HashClient:
		if h.Name != "" {
			return errors.New("a hash of the client's address has no name")
		}
	case HashHeader, HashCookie:
		if !validToken(h.Name) {
			return fmt.Errorf("the name of the hashed header or cookie %q is malformed", h.Name)
		}
	default:
		return fmt.Errorf("hash of %d is unknown", h.Kind)
	}
	return nil
}

func (e Ejection) validate() error {
	switch {
	case e.Failures < 0 || e.Failures > maxFailures:
		return fmt.Errorf("ejection after %d failures: must be 1 to %d", e.Failures, maxFailures)
	case e.Period < 0 || e.MaxPeriod < 0:
		return errors.New("a period of ejection is negative")
	case e.MaxPercent < 0 || e.MaxPercent > 100:
		return fmt.Errorf("ejection of %d %% of the endpoints: must be 1 to 100", e.MaxPercent)
	}
	return nil
}

func (c *HealthCheck) validate() error {
	switch {
	case !strings.HasPrefix(c.Path, "/") || strings.ContainsFunc(c.Path, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return fmt.Errorf("path %q of the health check must begin with a slash and have no blank or control character", c.Path)
	case strings.ContainsFunc(c.Host, func(r rune) bool { return r <= ' ' || r == '/' || r >= 0x7f }):
		return fmt.Errorf("host %q of the health check is malformed", c.Host)
	case c.Interval != 0 && c.Interval < minInterval:
		return fmt.Errorf("interval %v of the health check must be %v or more", c.Interval, minInterval)
	case c.Timeout < 0:
		return errors.New("the timeout of the health check is negative")
	case c.Unhealthy < 0 || c.Unhealthy > maxThreshold || c.Healthy < 0 || c.Healthy > maxThreshold:
		return fmt.Errorf("a threshold of the health check must be 1 to %d", maxThreshold)
	}
	for _, r := range c.Statuses {
		if r.First < http.StatusContinue || r.Last > 599 || r.First > r.Last {
			return fmt.Errorf("statuses %d to %d of the health check must be a range within 100 to 599", r.First, r.Last)
		}
	}
	return nil
}

func (b RetryBudget) validate() error {
	switch {
	case b.Percent < 0 || b.Percent > maxRetryPercent:
		return fmt.Errorf("retry budget of %d %%: must be 1 to %d", b.Percent, maxRetryPercent)
	case b.MinPerSecond < 0 || b.MinPerSecond > maxRetryRate:
		return fmt.Errorf("retry budget of at least %d a second: must be 1 to %d", b.MinPerSecond, maxRetryRate)
	}
	return nil
}

func (w *digest) health(c *Cluster) {
	w.num(uint64(c.HashOn.Kind))
	w.str(c.HashOn.Name)
	e := c.Ejection
	w.flag(e.Off)
	w.count(e.Failures)
	w.flag(e.ServerErrors)
	w.int(int64(e.Period))
	w.int(int64(e.MaxPeriod))
	w.count(e.MaxPercent)
	w.flag(c.Check != nil)
	if h := c.Check; h != nil {
		w.str(h.Path)
		w.str(h.Host)
		w.int(int64(h.Interval))
		w.int(int64(h.Timeout))
		w.count(h.Unhealthy)
		w.count(h.Healthy)
		w.count(len(h.Statuses))
		for _, r := range h.Statuses {
			w.count(r.First)
			w.count(r.Last)
		}
	}
	w.flag(c.Retries.Off)
	w.count(c.Retries.Percent)
	w.count(c.Retries.MinPerSecond)
	w.int(int64(c.SlowStart))
	w.count(c.Pool.Warm)
}
