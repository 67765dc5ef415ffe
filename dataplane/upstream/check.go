package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/headgate/headgate/dataplane/ir"
)

// Defaults of ir.HealthCheck.
const (
	DefaultCheckInterval  = 10 * time.Second
	DefaultCheckTimeout   = 2 * time.Second
	DefaultCheckUnhealthy = 3
	DefaultCheckHealthy   = 2
)

// maxCheckBody is how much of an answer's body a check reads.
const maxCheckBody = 64 << 10

// checker asks endpoints whether they are well, each in a goroutine of its own,
// off the loops. An endpoint is well until it has failed.
type checker struct {
	begin  func() (context.Context, context.CancelFunc) // of one check
	stop   context.CancelFunc                           // of all
	done   sync.WaitGroup
	client http.Client
}

// endpointTest is the check of one endpoint.
type endpointTest struct {
	spec   *ir.HealthCheck
	cancel context.CancelFunc

	mu    sync.Mutex
	ended bool
}

// end ends the test: it has no verdict after that.
func (t *endpointTest) end() {
	t.cancel()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
}

// declare gives the test's verdict on the endpoint, nil when it is well, unless the
// test has ended.
func (t *endpointTest) declare(e *Endpoint, why error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ended {
		e.declare(why)
	}
}

func newChecker() *checker {
	all, stop := context.WithCancel(context.Background())
	c := &checker{stop: stop, begin: func() (context.Context, context.CancelFunc) { return context.WithCancel(all) }}
	c.client = http.Client{
		// A connection for each check: that one can be made is part of the question.
		Transport:     &http.Transport{DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: 64 << 10},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c
}

func (c *checker) close() {
	c.stop()
	c.done.Wait()
}

// set makes the check of an endpoint what spec says; nil ends it, and nothing is
// held against the endpoint any more. Another check begins with the verdict of the
// last one.
func (c *checker) set(e *Endpoint, spec *ir.HealthCheck) {
	if e.check != nil && spec != nil && sameCheck(e.check.spec, spec) {
		return
	}
	if e.check != nil {
		e.check.end()
		e.check = nil
	}
	if spec == nil {
		e.absolve()
		return
	}
	ctx, cancel := c.begin()
	t := &endpointTest{spec: spec, cancel: cancel}
	e.check = t
	c.done.Go(func() { c.watch(ctx, e, t) })
}

// sameCheck tells that two specifications ask the same, so that an update of
// something else does not begin the count anew.
func sameCheck(a, b *ir.HealthCheck) bool {
	if len(a.Statuses) != len(b.Statuses) {
		return false
	}
	for i := range a.Statuses {
		if a.Statuses[i] != b.Statuses[i] {
			return false
		}
	}
	return a.Path == b.Path && a.Host == b.Host && a.Interval == b.Interval && a.Timeout == b.Timeout &&
		a.Unhealthy == b.Unhealthy && a.Healthy == b.Healthy
}

// watch checks until ctx ends. The first check comes at once, but not all
// endpoints' at the same moment.
func (c *checker) watch(ctx context.Context, e *Endpoint, t *endpointTest) {
	spec := withCheckDefaults(*t.spec)
	timer := time.NewTimer(rand.N(min(spec.Interval, time.Second)))
	defer timer.Stop()
	well, inARow := !e.unwell.Load(), 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		err := c.ask(ctx, e, spec)
		if ctx.Err() != nil {
			return
		}
		if (err == nil) == well {
			inARow = 0
		} else {
			inARow++
		}
		limit := spec.Healthy
		if well {
			limit = spec.Unhealthy
		}
		if inARow >= limit {
			well, inARow = !well, 0
			t.declare(e, err)
		}
		timer.Reset(spec.Interval - rand.N(spec.Interval/10+1))
	}
}

var (
	errCheckStatus = errors.New("status")
	errUnwell      = errors.New("its checks failed")
)

// ask checks once.
func (c *checker) ask(ctx context.Context, e *Endpoint, spec ir.HealthCheck) error {
	ctx, cancel := context.WithTimeout(ctx, spec.Timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+e.text+spec.Path, nil)
	if err != nil {
		return err
	}
	if spec.Host != "" {
		r.Host = spec.Host
	}
	r.Header.Set("User-Agent", "headgate-health-check")
	answer, err := c.client.Do(r)
	if err != nil {
		return checkError(err, spec)
	}
	defer answer.Body.Close()
	if _, err := io.CopyN(io.Discard, answer.Body, maxCheckBody); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for _, s := range spec.Statuses {
		if answer.StatusCode >= s.First && answer.StatusCode <= s.Last {
			return nil
		}
	}
	return fmt.Errorf("%w %d", errCheckStatus, answer.StatusCode)
}

// checkError makes an error of the HTTP client one that tells what it does not
// repeat: an operator knows the URL.
func checkError(err error, spec ir.HealthCheck) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %v", spec.Timeout)
	}
	if whole := (*url.Error)(nil); errors.As(err, &whole) {
		return whole.Err
	}
	return err
}

// declare makes the endpoint well, when why is nil, or unwell.
func (e *Endpoint) declare(why error) {
	well := why == nil
	if !well {
		e.illness.Store(&why)
	}
	if e.unwell.Swap(!well) == !well {
		return
	}
	if well {
		e.cluster.special.Add(-1)
		e.cluster.changed(e, EndpointWell, 0)
		return
	}
	e.cluster.special.Add(1)
	if e.removed.Load() && e.unwell.Swap(false) { // it went meanwhile
		e.cluster.special.Add(-1)
		return
	}
	e.cluster.changed(e, EndpointUnwell, 0)
}

// absolve makes the endpoint well because it is not checked any more: nobody
// found that out, so nothing is told.
func (e *Endpoint) absolve() {
	if e.unwell.Swap(false) {
		e.cluster.special.Add(-1)
	}
}

func withCheckDefaults(c ir.HealthCheck) ir.HealthCheck {
	if c.Interval == 0 {
		c.Interval = DefaultCheckInterval
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultCheckTimeout
	}
	if c.Unhealthy == 0 {
		c.Unhealthy = DefaultCheckUnhealthy
	}
	if c.Healthy == 0 {
		c.Healthy = DefaultCheckHealthy
	}
	if c.Statuses == nil {
		c.Statuses = []ir.StatusRange{{First: 200, Last: 399}}
	}
	return c
}
