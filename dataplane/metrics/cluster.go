package metrics

import (
	"sync/atomic"
	"time"
)

// Cluster counts what happens at one upstream.
type Cluster struct {
	name     string
	loops    []*ClusterLoop // shared with others beyond the bound of clusters
	poolSize atomic.Int64
	ejected  atomic.Uint64
}

// Timeout names the deadline of an upstream that passed.
type Timeout uint8

// The deadlines of an upstream.
const (
	TimeoutWait     Timeout = iota // for a place in the pool
	TimeoutConnect                 // for the connection
	TimeoutResponse                // for the response's head
	timeouts
)

// String returns the value of the label.
func (t Timeout) String() string {
	return [timeouts]string{"wait", "connect", "response"}[t]
}

// ClusterLoop is a cluster's part of one loop. Its methods must run there.
type ClusterLoop struct {
	active, idle, waiting    counter // gauges
	responses, responseNanos counter
	connects, failures       counter
	retries, refused         counter
	expired                  [timeouts]counter
	_                        [32]byte // a multiple of a cache line
}

func newClusterLoops(n int) []*ClusterLoop {
	loops := make([]*ClusterLoop, n)
	for i := range loops {
		loops[i] = new(ClusterLoop)
	}
	return loops
}

// Loop returns the part of loop i.
func (c *Cluster) Loop(i int) *ClusterLoop { return c.loops[i] }

// SetPoolSize tells the bound of the requests under way. Any goroutine may call
// it.
func (c *Cluster) SetPoolSize(n int) { c.poolSize.Store(int64(n)) }

// Ejected counts an endpoint that was ejected. Any goroutine may call it.
func (c *Cluster) Ejected() { c.ejected.Add(1) }

// AddActive changes the number of requests under way by n.
func (l *ClusterLoop) AddActive(n int) { l.active.shift(n) }

// AddIdle changes the number of unused connections in the pool by n.
func (l *ClusterLoop) AddIdle(n int) { l.idle.shift(n) }

// AddWaiting changes the number of requests that wait for a place by n.
func (l *ClusterLoop) AddWaiting(n int) { l.waiting.shift(n) }

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
