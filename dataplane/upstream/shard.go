package upstream

import (
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/dataplane/http1"
	"github.com/headgate/headgate/dataplane/ir"
	"github.com/headgate/headgate/dataplane/metrics"
	"github.com/headgate/headgate/dataplane/pressure"
)

// Shard is the part of a cluster that lives on one loop: its idle connections
// and the streams that are held. Everything but heldSince and work belongs to the
// loop.
type Shard struct {
	cluster *Cluster
	gate    *pressure.Loop
	index   int
	loop    Loop
	limits  http1.Limits
	metrics *metrics.ClusterLoop
	balance balancer
	budget  retryBudget
	work    work
	scratch []byte // heads are written here first

	head, tail *Stream // held streams, oldest first
	watch      Timer   // looks after the held ones
	watching   bool
	serving    bool
	woken      func()       // serveOn, once allocated
	heldSince  atomic.Int64 // since when the oldest one is held, in Unix nanoseconds; 0: none is
}

func newShard(c *Cluster, index int) *Shard {
	sh := &Shard{
		cluster: c, gate: c.gate.Loop(index), index: index, loop: c.opts.Loops[index], limits: c.opts.Limits,
		metrics: c.metrics.Loop(index), balance: newBalancer(),
	}
	sh.watch = sh.loop.NewTimer(sh.look)
	sh.woken = sh.serveOn
	return sh
}

// Cluster returns the shard's cluster.
func (sh *Shard) Cluster() *Cluster { return sh.cluster }

// admit starts s, or holds it, or fails it.
func (sh *Shard) admit(s *Stream) {
	st := sh.cluster.state.Load()
	if len(st.cumulative) == 0 {
		s.fail(errNoEndpoints(sh.cluster))
		return
	}
	now := sh.loop.Now()
	if !s.again {
		sh.budget.deposit(now, st.retries, len(sh.cluster.shards))
	}
	// A newcomer must not overtake the ones that are held.
	if sh.head == nil && sh.gate.Enter(now) {
		sh.start(s, st)
		return
	}
	verdict := sh.gate.Hold(now, s.client, s.bytes)
	if verdict != pressure.Held && sh.cluster.gate.GiveOut(now) {
		sh.cluster.wake(sh)
		if sh.head == nil && sh.gate.Enter(now) {
			sh.start(s, st)
			return
		}
		verdict = sh.gate.Hold(now, s.client, s.bytes)
	}
	switch verdict {
	case pressure.ShedFull:
		s.shed(metrics.ShedFull, errPoolFull(sh.cluster))
		return
	case pressure.ShedByShare:
		s.shed(metrics.ShedShare, errPoolShare(sh.cluster))
		return
	}
	sh.push(s)
	s.timer.Schedule(sh.cluster.gate.Limits().HoldTime)
	// A place may have become free between Enter and the moment from which
	// other loops can see that this stream is held.
	sh.serve()
}

// serve starts held streams while there are places, and fails them all when the
// cluster has no endpoint left. A stream that fails at once gives its place back
// while serve is at work: the one at work sees to it, however many fail.
func (sh *Shard) serve() {
	if sh.serving {
		return
	}
	sh.serving = true
	defer func() { sh.serving = false }()
	for sh.head != nil {
		st := sh.cluster.state.Load()
		if len(st.cumulative) == 0 {
			s := sh.pop()
			s.timer.Cancel()
			s.fail(errNoEndpoints(sh.cluster))
			continue
		}
		if !sh.gate.Enter(sh.loop.Now()) {
			sh.keepLooking()
			return
		}
		s := sh.pop()
		s.timer.Cancel()
		if s.gone != nil && s.gone() {
			sh.gate.Leave(-1)
			s.shed(metrics.ShedGone, errGone)
			continue
		}
		sh.start(s, st)
	}
}

// serveOn serves after another loop gave a place back. If nobody is held here any
// more, the place goes on.
func (sh *Shard) serveOn() {
	sh.serve()
	if sh.head == nil {
		sh.cluster.wake(sh)
	}
}

// keepLooking makes the shard try again when the gate may have a place that
// nobody gave back: the bucket has a further token.
func (sh *Shard) keepLooking() {
	if !sh.watching {
		sh.watching = true
		sh.watch.Schedule(sh.gate.Next(sh.loop.Now()))
	}
}

func (sh *Shard) look(time.Time) {
	sh.watching = false
	sh.serve()
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
	count(&sh.work.placed)
	s.endpoint = ep
	s.placed = sh.loop.Now()
	if !s.fresh {
		if idle := ep.idleOn(sh.index).take(s.placed, st.pool.MaxAge); idle != nil {
			idle.serve(s)
			return
		}
	}
	conn := newConn(sh, ep)
	conn.stream, s.conn = s, conn
	s.state = streamConnecting
	s.timer.Schedule(s.bound(st.pool.ConnectTimeout))
	t, err := sh.loop.Dial(ep.addr, conn)
	if err != nil {
		conn.stream, s.conn = nil, nil
		conn.state = connClosed
		sh.metrics.ConnectFailed()
		sh.outcome(ep, FaultConnect)
		s.failSafe(errConnect(ep, err))
		return
	}
	conn.transport = t
}

// outcome notes how an endpoint has fared with a request.
func (sh *Shard) outcome(e *Endpoint, f Fault) {
	if f == FaultNone {
		e.succeeded()
		return
	}
	e.failed(sh.loop.Now(), sh.cluster.state.Load(), f)
}

// answered notes the head of a response.
func (sh *Shard) answered(e *Endpoint, s *Stream) {
	spec := sh.cluster.state.Load().ir
	if spec.Balance == ir.BalancePeakEWMA && s.requestEnded {
		e.latency.observe(sh.loop.Now(), s.responseTime)
	}
	fault := FaultNone
	if status := s.Response.Status; spec.Ejection.ServerErrors && status >= 502 && status <= 504 {
		fault = Fault(status)
	}
	sh.outcome(e, fault)
}

// release gives back what s held.
func (sh *Shard) release(s *Stream) {
	if ep := s.endpoint; ep != nil {
		s.endpoint = nil
		sh.giveBack(ep, s.residence())
	}
}

// giveBack returns a place in the pool that was used for ep, for d.
func (sh *Shard) giveBack(ep *Endpoint, d time.Duration) {
	ep.active.Add(-1)
	sh.metrics.AddActive(-1)
	sh.gate.Leave(d)
	sh.cluster.wake(sh)
}

// forget closes the idle connections to endpoints that went.
func (sh *Shard) forget(gone []*Endpoint) {
	for _, e := range gone {
		e.idleOn(sh.index).closeAll()
	}
}

func (sh *Shard) push(s *Stream) {
	s.state = streamHeld
	s.heldAt = sh.loop.Now().UnixNano()
	s.prev, s.next = sh.tail, nil
	if sh.tail == nil {
		sh.head = s
		sh.heldSince.Store(s.heldAt)
	} else {
		sh.tail.next = s
	}
	sh.tail = s
	sh.metrics.AddHeld(1)
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
		if sh.head == nil {
			sh.heldSince.Store(0)
		} else {
			sh.heldSince.Store(sh.head.heldAt)
		}
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
	sh.metrics.AddHeld(-1)
	sh.gate.Release(s.client, s.bytes)
}
