package upstream

import (
	"sync/atomic"

	"github.com/headgate/headgate/dataplane/http1"
	"github.com/headgate/headgate/dataplane/ir"
	"github.com/headgate/headgate/dataplane/metrics"
)

// Shard is the part of a cluster that lives on one loop: its idle connections
// and the streams that wait for a place. Everything but queued belongs to the
// loop.
type Shard struct {
	cluster *Cluster
	index   int
	loop    Loop
	limits  http1.Limits
	metrics *metrics.ClusterLoop
	balance balancer
	budget  retryBudget
	scratch []byte // heads are written here first

	head, tail *Stream      // waiting streams, oldest first
	queued     atomic.Int64 // their number, for other loops to see
}

func newShard(c *Cluster, index int, loop Loop, limits http1.Limits) *Shard {
	return &Shard{cluster: c, index: index, loop: loop, limits: limits, metrics: c.metrics.Loop(index), balance: newBalancer()}
}

// Cluster returns the shard's cluster.
func (sh *Shard) Cluster() *Cluster { return sh.cluster }

// admit starts s, or queues it, or fails it.
func (sh *Shard) admit(s *Stream) {
	st := sh.cluster.state.Load()
	if len(st.cumulative) == 0 {
		s.fail(errNoEndpoints(sh.cluster))
		return
	}
	if !s.again {
		sh.budget.deposit(sh.loop.Now(), st.retries, len(sh.cluster.shards))
	}
	// A newcomer must not overtake the ones that wait.
	if sh.queued.Load() == 0 && sh.cluster.enter(st.pool.Size) {
		sh.start(s, st)
		return
	}
	if sh.cluster.waiting.Add(1) > int64(st.pool.Waiting) {
		sh.cluster.waiting.Add(-1)
		s.fail(errPoolFull(sh.cluster))
		return
	}
	sh.push(s)
	s.timer.Schedule(st.pool.WaitTimeout)
	// A place may have become free between enter and the moment from which
	// other loops can see that this stream waits.
	sh.serve()
}

// serve starts waiting streams while there are places, and fails them all when
// the cluster has no endpoint left.
func (sh *Shard) serve() {
	for sh.head != nil {
		st := sh.cluster.state.Load()
		if len(st.cumulative) == 0 {
			s := sh.pop()
			s.fail(errNoEndpoints(sh.cluster))
			continue
		}
		if !sh.cluster.enter(st.pool.Size) {
			return
		}
		s := sh.pop()
		s.timer.Cancel()
		sh.start(s, st)
	}
}

// start gives s, which holds a place, an endpoint and a connection.
func (sh *Shard) start(s *Stream, st *clusterState) {
	c := choice{avoid: s.avoid[:s.avoided], key: s.key, keyed: s.keyed, special: sh.cluster.special.Load() != 0}
	if c.special {
		c.now = sh.loop.Now()
	}
	ep := sh.balance.pick(st, c)
	ep.active.Add(1)
	sh.metrics.AddActive(1)
	s.endpoint = ep
	if !s.fresh {
		if idle := ep.idle[sh.index].take(sh.loop.Now(), st.pool.MaxAge); idle != nil {
			idle.serve(s)
			return
		}
	}
	conn := newConn(sh, ep)
	conn.stream, s.conn = s, conn
	s.state = streamConnecting
	s.timer.Schedule(st.pool.ConnectTimeout)
	t, err := sh.loop.Dial(ep.addr, conn)
	if err != nil {
		conn.stream, s.conn = nil, nil
		conn.state = connClosed
		sh.metrics.ConnectFailed()
		sh.outcome(ep, false)
		s.failSafe(errConnect(ep, err))
		return
	}
	conn.transport = t
}

// outcome notes how an endpoint has fared with a request.
func (sh *Shard) outcome(e *Endpoint, good bool) {
	if good {
		e.succeeded()
		return
	}
	e.failed(sh.loop.Now(), sh.cluster.state.Load())
}

// answered notes the head of a response.
func (sh *Shard) answered(e *Endpoint, s *Stream) {
	spec := sh.cluster.state.Load().ir
	if spec.Balance == ir.BalancePeakEWMA && s.requestEnded {
		e.latency.observe(sh.loop.Now(), s.responseTime)
	}
	status := s.Response.Status
	sh.outcome(e, !spec.Ejection.ServerErrors || status < 502 || status > 504)
}

// release gives back what s held.
func (sh *Shard) release(s *Stream) {
	if ep := s.endpoint; ep != nil {
		s.endpoint = nil
		sh.giveBack(ep)
	}
}

// giveBack returns a place in the pool that was used for ep.
func (sh *Shard) giveBack(ep *Endpoint) {
	ep.active.Add(-1)
	sh.metrics.AddActive(-1)
	sh.cluster.leave(sh)
}

// forget closes the idle connections to endpoints that went.
func (sh *Shard) forget(gone []*Endpoint) {
	for _, e := range gone {
		e.idle[sh.index].closeAll()
	}
}

func (sh *Shard) push(s *Stream) {
	s.state = streamWaiting
	s.prev, s.next = sh.tail, nil
	if sh.tail == nil {
		sh.head = s
	} else {
		sh.tail.next = s
	}
	sh.tail = s
	sh.queued.Add(1)
	sh.metrics.AddWaiting(1)
}

func (sh *Shard) pop() *Stream {
	s := sh.head
	sh.unlink(s)
	return s
}

// unlink takes s out of the queue.
func (sh *Shard) unlink(s *Stream) {
	if s.prev == nil {
		sh.head = s.next
	} else {
		s.prev.next = s.next
	}
	if s.next == nil {
		sh.tail = s.prev
	} else {
		s.next.prev = s.prev
	}
	s.prev, s.next = nil, nil
	s.state = streamIdle
	sh.queued.Add(-1)
	sh.metrics.AddWaiting(-1)
	sh.cluster.waiting.Add(-1)
}
