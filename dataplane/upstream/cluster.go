package upstream

import (
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/dataplane/ir"
	"github.com/headgate/headgate/dataplane/metrics"
)

// Defaults of ir.Pool.
const (
	DefaultPoolSize        = 1024
	DefaultWaitTimeout     = 5 * time.Second
	DefaultConnectTimeout  = 5 * time.Second
	DefaultResponseTimeout = 60 * time.Second
	DefaultIdleTimeout     = 60 * time.Second
)

// Cluster is one upstream at run time. It lives as long as snapshots name it;
// exchanges that hold it after that finish undisturbed.
type Cluster struct {
	name   string
	state  atomic.Pointer[clusterState]
	shards []*Shard // by loop

	// active counts the streams that hold a place in the pool (n_active of the
	// paper's Eq. 8); waiting those that queue for one.
	active  atomic.Int64
	waiting atomic.Int64

	// special is the number of endpoints that are ejected, unwell, or start
	// slowly; as a rule it is 0, and a pick need not look.
	special atomic.Int64

	metrics *metrics.Cluster
	notify  func(EndpointEvent)
}

// clusterState is the immutable part that an update replaces.
type clusterState struct {
	ir        *ir.Cluster
	pool      ir.Pool        // defaults filled in
	retries   ir.RetryBudget // defaults filled in
	endpoints []*Endpoint
	// cumulative holds the running sums of the weights of the endpoints that
	// take new requests, which come first in endpoints.
	cumulative []uint64
	seeds      []uint64 // of the same endpoints, for a consistent hash
	equal      bool     // all weights are the same
	retired    bool     // no route names the cluster any more: connections are not kept
}

// Name returns the cluster's name.
func (c *Cluster) Name() string { return c.name }

// Shard returns the part of the cluster that belongs to the loop with the index.
func (c *Cluster) Shard(loop int) *Shard { return c.shards[loop] }

// HashOn returns the key by which the cluster's endpoints are chosen, and whether
// they are chosen by one.
func (c *Cluster) HashOn() (ir.HashOn, bool) {
	spec := c.state.Load().ir
	return spec.HashOn, spec.Balance == ir.BalanceConsistentHash
}

// Stats is a cluster's state at one moment.
type Stats struct {
	Active, Waiting int64
	Size            int
	Endpoints       int // that take requests, the two below included
	Ejected         int
	Unwell          int // by their checks
	Retired         bool
}

// Stats returns the cluster's state; callable from any goroutine.
func (c *Cluster) Stats() Stats {
	st := c.state.Load()
	s := Stats{Active: c.active.Load(), Waiting: c.waiting.Load(), Size: st.pool.Size, Endpoints: len(st.cumulative), Retired: st.retired}
	for _, e := range st.endpoints[:len(st.cumulative)] {
		if e.ejected.Load() != 0 {
			s.Ejected++
		}
		if e.unwell.Load() {
			s.Unwell++
		}
	}
	return s
}

// enter takes a place in the pool, or returns false.
func (c *Cluster) enter(size int) bool {
	if c.active.Add(1) <= int64(size) {
		return true
	}
	c.active.Add(-1)
	return false
}

// leave gives a place back and wakes one waiting stream: of the own loop first.
func (c *Cluster) leave(from *Shard) {
	c.active.Add(-1)
	if c.waiting.Load() == 0 {
		return
	}
	if from.queued.Load() > 0 {
		from.serve()
		return
	}
	for i := 1; i < len(c.shards); i++ {
		sh := c.shards[(from.index+i)%len(c.shards)]
		if sh.queued.Load() > 0 {
			sh.loop.Post(sh.serve)
			return
		}
	}
}

// withDefaults fills in what p leaves at zero, from fallback and the defaults.
func withDefaults(p ir.Pool, fallback ir.Pool) ir.Pool {
	pick := func(v, d, last time.Duration) time.Duration {
		if v != 0 {
			return v
		}
		if d != 0 {
			return d
		}
		return last
	}
	if p.Size == 0 {
		p.Size = fallback.Size
	}
	if p.Size == 0 {
		p.Size = DefaultPoolSize
	}
	if p.Waiting == 0 {
		p.Waiting = fallback.Waiting
	}
	if p.Waiting == 0 {
		p.Waiting = p.Size
	}
	p.Waiting = max(p.Waiting, 0)
	p.WaitTimeout = pick(p.WaitTimeout, fallback.WaitTimeout, DefaultWaitTimeout)
	p.ConnectTimeout = pick(p.ConnectTimeout, fallback.ConnectTimeout, DefaultConnectTimeout)
	p.ResponseTimeout = pick(p.ResponseTimeout, fallback.ResponseTimeout, DefaultResponseTimeout)
	p.IdleTimeout = pick(p.IdleTimeout, fallback.IdleTimeout, DefaultIdleTimeout)
	p.MaxAge = pick(p.MaxAge, fallback.MaxAge, 0)
	return p
}
