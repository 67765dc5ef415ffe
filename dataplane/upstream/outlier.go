package upstream

import (
	"fmt"
	"math"
	"time"

	"github.com/headgate/headgate/dataplane/ir"
)

// Defaults of ir.Ejection.
const (
	DefaultEjectionFailures   = 5
	DefaultEjectionPeriod     = 10 * time.Second
	DefaultEjectionMaxPeriod  = 5 * time.Minute
	DefaultEjectionMaxPercent = 50
)

// Fault is how an endpoint failed a request: one of the constants, or the status
// that it answered.
type Fault uint32

// The faults.
const (
	FaultNone      Fault = iota
	FaultConnect         // the connection did not come about
	FaultUnreached       // not in time
	FaultSlow            // no answer in time
	FaultBroken          // the connection ended before an answer
	FaultProtocol        // what came is not HTTP
)

// String returns what operators are told.
func (f Fault) String() string {
	switch f {
	case FaultNone:
		return "none"
	case FaultConnect:
		return "it can't be connected to"
	case FaultUnreached:
		return "no connection in time"
	case FaultSlow:
		return "no answer in time"
	case FaultBroken:
		return "it closed the connection without an answer"
	case FaultProtocol:
		return "its answer is not HTTP"
	}
	return fmt.Sprintf("status %d", uint32(f))
}

// EndpointChange is what happened to an endpoint's health.
type EndpointChange uint8

// The changes.
const (
	EndpointEjected  EndpointChange = iota // it failed too many requests in a row
	EndpointReturned                       // its ejection is over
	EndpointUnwell                         // it failed its checks
	EndpointWell                           // it passed them again
)

// String returns the change as it stands in logs.
func (c EndpointChange) String() string {
	return [...]string{"ejected", "returned", "unwell", "well"}[c]
}

// EndpointEvent tells of a change.
type EndpointEvent struct {
	Cluster, Address string
	Change           EndpointChange
	Period           time.Duration // of an ejection
}

// changed tells who wants to know, off the loop.
func (c *Cluster) changed(e *Endpoint, change EndpointChange, period time.Duration) {
	if change == EndpointEjected {
		c.metrics.Ejected()
	}
	if c.opts.OnEndpoint != nil {
		go c.opts.OnEndpoint(EndpointEvent{Cluster: c.name, Address: e.text, Change: change, Period: period})
	}
}

// succeeded notes that an endpoint answered.
func (e *Endpoint) succeeded() {
	// Reads only, as a rule: the line stays shared between the loops.
	if e.failures.Load() != 0 {
		e.failures.Store(0)
	}
	if e.ejections.Load() != 0 && e.ejected.Load() == 0 {
		e.ejections.Store(0)
	}
}

// failed notes that an endpoint failed a request, and ejects it when it was one
// too many.
func (e *Endpoint) failed(now time.Time, st *clusterState, f Fault) {
	policy := withEjectionDefaults(st.ir.Ejection)
	// One that was ejected before is on probation until it has answered.
	limit := int32(policy.Failures)
	if e.ejections.Load() > 0 {
		limit = 1
	}
	if e.failures.Add(1) < limit || policy.Off || e.ejected.Load() != 0 || !st.canSpare(policy.MaxPercent) {
		return
	}
	times := e.ejections.Load()
	period := policy.MaxPeriod
	if p := float64(policy.Period) * math.Exp2(float64(times)); p < float64(period) {
		period = time.Duration(p)
	}
	if !e.ejected.CompareAndSwap(0, now.Add(period).UnixNano()) {
		return
	}
	e.fault.Store(uint32(f))
	e.ejections.Store(times + 1)
	e.failures.Store(0)
	e.cluster.special.Add(1)
	if e.removed.Load() && e.ejected.Swap(0) != 0 { // it went meanwhile
		e.cluster.special.Add(-1)
		return
	}
	e.cluster.changed(e, EndpointEjected, period)
}

// canSpare tells whether one more endpoint may be ejected.
func (st *clusterState) canSpare(percent int) bool {
	n, out := len(st.cumulative), 1
	for _, e := range st.endpoints[:n] {
		if e.ejected.Load() != 0 {
			out++
		}
	}
	return out*100 <= n*percent
}

func withEjectionDefaults(e ir.Ejection) ir.Ejection {
	if e.Failures == 0 {
		e.Failures = DefaultEjectionFailures
	}
	if e.Period == 0 {
		e.Period = DefaultEjectionPeriod
	}
	if e.MaxPeriod == 0 {
		e.MaxPeriod = max(DefaultEjectionMaxPeriod, e.Period)
	}
	if e.MaxPercent == 0 {
		e.MaxPercent = DefaultEjectionMaxPercent
	}
	return e
}
