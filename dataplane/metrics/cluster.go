package metrics

import (
	"sync/atomic"
	"time"
)

// Cluster counts what happens at one upstream.
type Cluster struct {
	name     string
	loops    byLoop[ClusterLoop] // shared with others beyond the bound of clusters
	poolSize atomic.Int64
	ejected  atomic.Uint64
	live     atomic.Pointer[func() ClusterLive]
}

// ClusterLive is what a cluster computes rather than counts.
type ClusterLive struct {
	State              int   // 0 calm, 1 pacing, 2 holding, 3 shedding
	Limit              int64 // requests that may be under way now
	HeldBytes          int64
	Capacity, Rate     float64       // requests per second; 0: not known
	Timed              bool          // the following are known
	Estimate, Deadline time.Duration // of the adaptive timeout
	Censored           uint64        // answers that did not come in time
}

// Timeout names the deadline of an upstream that passed.
type Timeout uint8

// The deadlines of an upstream.
const (
	TimeoutWait     Timeout = iota // for a place in the pool
	TimeoutConnect                 // for the connection
	TimeoutResponse                // for the response's head
	TimeoutAdaptive                // for either of them, by the adaptive timeout
	timeouts
)

// String returns the value of the label.
func (t Timeout) String() string {
	return [timeouts]string{"wait", "connect", "response", "adaptive"}[t]
}

// Shed names why a request was shed.
type Shed uint8

// The reasons.
const (
	ShedFull    Shed = iota // as many are held as may be
	ShedShare               // its client has its share of them
	ShedTimeout             // it was held for too long
	ShedGone                // its client ended its side while it was held
	sheds
)

// String returns the value of the label.
func (s Shed) String() string {
	return [sheds]string{"full", "share", "timeout", "gone"}[s]
}

// ClusterLoop is a cluster's part of one loop. Its methods must run there.
type ClusterLoop struct {
	active, idle, held       counter // gauges
	responses, responseNanos counter
	connects, failures       counter
	retries, refused         counter
	expired                  [timeouts]counter
	shed                     [sheds]counter
	propagation              [len(buckets) + 1]counter
	propagationNanos         counter
	_                        [40]byte // a multiple of a cache line
}

// Loop returns the part of loop i, which is the one to ask for it.
func (c *Cluster) Loop(i int) *ClusterLoop { return c.loops.own(i) }

// SetPoolSize tells the bound of the requests under way. Any goroutine may call
// it.
func (c *Cluster) SetPoolSize(n int) { c.poolSize.Store(int64(n)) }

// Ejected counts an endpoint that was ejected. Any goroutine may call it.
func (c *Cluster) Ejected() { c.ejected.Add(1) }

// Show makes scrapes ask live for what the cluster computes. Any goroutine may
// call it.
func (c *Cluster) Show(live func() ClusterLive) { c.live.Store(&live) }

// AddActive changes the number of requests under way by n.
func (l *ClusterLoop) AddActive(n int) { l.active.shift(n) }

// AddIdle changes the number of unused connections in the pool by n.
func (l *ClusterLoop) AddIdle(n int) { l.idle.shift(n) }

// AddHeld changes the number of requests that are held by n.
func (l *ClusterLoop) AddHeld(n int) { l.held.shift(n) }

// Shed counts a request that was answered 503 because the cluster is under
// pressure.
func (l *ClusterLoop) Shed(s Shed) { l.shed[s].inc() }

// Propagated takes a time from the closing of the cluster's gate to the first
// client whose reading was paused (T_bp of the paper's Eq. 10).
func (l *ClusterLoop) Propagated(d time.Duration) {
	l.propagation[bucket(d)].inc()
	l.propagationNanos.add(uint64(max(d, 0)))
}

// Responded counts a response whose head came d after the request was written.
func (l *ClusterLoop) Responded(d time.Duration) {
	l.responses.inc()
	l.responseNanos.add(uint64(max(d, 0)))
}

// Connected counts a new connection.
func (l *ClusterLoop) Connected() { l.connects.inc() }

// ConnectFailed counts a connection that did not come about, for whatever
// reason; a deadline is counted by TimedOut as well.
func (l *ClusterLoop) ConnectFailed() { l.failures.inc() }

// TimedOut counts a deadline that passed.
func (l *ClusterLoop) TimedOut(t Timeout) { l.expired[t].inc() }

// Retried counts a request that was sent a further time.
func (l *ClusterLoop) Retried() { l.retries.inc() }

// RetryRefused counts a further try that the retry budget did not allow.
func (l *ClusterLoop) RetryRefused() { l.refused.inc() }
