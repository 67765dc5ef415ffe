package upstream

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/dataplane/ir"
	"github.com/headgate/headgate/dataplane/metrics"
	"github.com/headgate/headgate/dataplane/pressure"
)

// Defaults of ir.Pool.
const (
	DefaultPoolSize        = 1024
	DefaultConnectTimeout  = 5 * time.Second
	DefaultResponseTimeout = 60 * time.Second
	DefaultIdleTimeout     = 60 * time.Second
)

// Cluster is one upstream at run time. It lives as long as snapshots name it;
// exchanges that hold it after that finish undisturbed.
type Cluster struct {
	name     string
	instance uint64   // tells it from an earlier one of the name
	opts     *Options // the manager's; Now is not for loops, which have a clock
	state    atomic.Pointer[clusterState]
	shards   []atomic.Pointer[Shard] // by loop; see Shard
	gate     *pressure.Gate

	// special is the number of endpoints that are ejected, unwell, or start
	// slowly; as a rule it is 0, and a pick need not look.
	special atomic.Int64

	metrics *metrics.Cluster
}

// clusterState is the immutable part that an update replaces.
type clusterState struct {
	ir        *ir.Cluster
	pool      ir.Pool        // defaults filled in
	retries   ir.RetryBudget // defaults filled in
	adaptive  *adaptive
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

// Shard returns the part of the cluster that belongs to the loop with the index,
// which is the one to call it. The loop makes its part when it first needs it: most
// clusters of a large configuration are quiet.
//
// Others leave a loop alone that has none. They change the cluster's state before
// they look, so the loop that makes one at that moment sees the change by itself.
func (c *Cluster) Shard(loop int) *Shard {
	sh := c.shards[loop].Load()
	if sh == nil {
		sh = newShard(c, loop)
		c.shards[loop].Store(sh)
	}
	return sh
}

// made passes the shards that there are, with the indexes of their loops, to yield.
func (c *Cluster) made(yield func(int, *Shard) bool) {
	for i := range c.shards {
		if sh := c.shards[i].Load(); sh != nil && !yield(i, sh) {
			return
		}
	}
}

// HashOn returns the key by which the cluster's endpoints are chosen, and whether
// they are chosen by one.
func (c *Cluster) HashOn() (ir.HashOn, bool) {
	spec := c.state.Load().ir
	return spec.HashOn, spec.Balance == ir.BalanceConsistentHash
}

// Stats is a cluster's state at one moment.
type Stats struct {
	pressure.Stats
	Timeout   TimeoutStats
	Endpoints int // that take requests, the two below included
	Ejected   int
	Unwell    int // by their checks
	Retired   bool
}

// Stats returns the cluster's state; callable from any goroutine.
func (c *Cluster) Stats() Stats {
	st, now := c.state.Load(), c.opts.Now()
	s := Stats{Stats: c.gate.Stats(now), Timeout: st.adaptive.stats(now), Endpoints: len(st.cumulative), Retired: st.retired}
	for _, e := range st.endpoints[:len(st.cumulative)] {
		if e.ejected.Load() > now.UnixNano() { // one that is over ends with the next request
			s.Ejected++
		}
		if e.unwell.Load() {
			s.Unwell++
		}
	}
	return s
}

// live is what scrapes show of the cluster.
func (c *Cluster) live() metrics.ClusterLive {
	s := c.Stats()
	return metrics.ClusterLive{
		State: int(s.State), Limit: s.Limit, HeldBytes: s.HeldBytes,
		Capacity: s.Capacity, Rate: s.Rate,
		Timed: s.Timeout.Mode != ir.AdaptiveOff, Estimate: s.Timeout.Estimate, Deadline: s.Timeout.Deadline, Censored: s.Timeout.Censored,
	}
}

// Endpoints returns how many endpoints take requests.
func (c *Cluster) Endpoints() int { return len(c.state.Load().cumulative) }

// overtake is how much longer a request of another loop may have been held
// before it is served first: waking a loop costs more than a little order.
const overtake = 10 * time.Millisecond

// wake serves a held stream after a place came back on from: of the own loop
// first, unless another loop's has been held for longer.
func (c *Cluster) wake(from *Shard) {
	if c.gate.Held() == 0 {
		return
	}
	first, since := from, from.heldSince.Load()
	if since == 0 {
		since = math.MaxInt64
	}
	since -= int64(overtake)
	for _, sh := range c.made {
		if at := sh.heldSince.Load(); at != 0 && at < since {
			first, since = sh, at
		}
	}
	if first == from {
		from.serve()
		return
	}
	first.loop.Post(first.woken)
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
	p.ConnectTimeout = pick(p.ConnectTimeout, fallback.ConnectTimeout, DefaultConnectTimeout)
	p.ResponseTimeout = pick(p.ResponseTimeout, fallback.ResponseTimeout, DefaultResponseTimeout)
	p.IdleTimeout = pick(p.IdleTimeout, fallback.IdleTimeout, DefaultIdleTimeout)
	p.MaxAge = pick(p.MaxAge, fallback.MaxAge, 0)
	return p
}

// limitsOf returns what p, with fallback and the defaults, asks of a gate with
// places for size requests.
func limitsOf(p, fallback ir.Pressure, size int) pressure.Limits {
	if p.Theta == 0 && !p.Off {
		p.Theta, p.Off = fallback.Theta, fallback.Off
	}
	if p.Off {
		p.Theta = 1
	}
	if p.Held == 0 {
		p.Held = fallback.Held
	}
	if p.HeldBytes == 0 {
		p.HeldBytes = fallback.HeldBytes
	}
	if p.HoldTime == 0 {
		p.HoldTime = fallback.HoldTime
	}
	return pressure.Limits{Size: size, Theta: p.Theta, Held: p.Held, HeldBytes: p.HeldBytes, HoldTime: p.HoldTime}
}
