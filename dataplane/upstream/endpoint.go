package upstream

import (
	"math"
	"net/netip"
	"sync/atomic"
	"time"
)

// Endpoint is one address of a cluster at run time. It keeps its identity over
// updates for as long as its address stays in the cluster. The loops share it,
// by atomic fields only.
type Endpoint struct {
	cluster *Cluster
	addr    netip.AddrPort
	text    string
	removed atomic.Bool
	idle    []*idleList // by loop; see idleOn

	active    atomic.Int64          // streams on it, over all loops
	latency   latency               // only kept for peak EWMA
	failures  atomic.Int32          // in a row
	ejections atomic.Int32          // in a row
	ejected   atomic.Int64          // until when, in Unix nanoseconds; 0 when it is not
	fault     atomic.Uint32         // the one that it was ejected for
	unwell    atomic.Bool           // the active check says so
	illness   atomic.Pointer[error] // what the check said
	joined    atomic.Int64          // when, in Unix nanoseconds, while it starts slowly; else 0
	check     *endpointTest         // nil without active checks; the manager's
}

// Addr returns the endpoint's address.
func (e *Endpoint) Addr() netip.AddrPort { return e.addr }

// String returns the endpoint's address as text, without allocating.
func (e *Endpoint) String() string { return e.text }

// idleOn returns the unused connections of the loop with the index, which is the
// one to call it, and makes the list when it is the first time.
func (e *Endpoint) idleOn(loop int) *idleList {
	if e.idle[loop] == nil {
		e.idle[loop] = new(idleList)
	}
	return e.idle[loop]
}

// available tells whether the endpoint takes requests. An ejection that is over
// ends here, by whichever loop asks first.
func (e *Endpoint) available(now time.Time) bool {
	if e.unwell.Load() {
		return false
	}
	until := e.ejected.Load()
	if until == 0 {
		return true
	}
	if now.UnixNano() < until {
		return false
	}
	if e.ejected.CompareAndSwap(until, 0) {
		e.cluster.special.Add(-1)
		e.cluster.changed(e, EndpointReturned, 0)
	}
	return true
}

// share returns the part, in (0,1], of its weight that the endpoint gets while it
// starts slowly.
func (e *Endpoint) share(now time.Time, window time.Duration) float64 {
	joined := e.joined.Load()
	if joined == 0 {
		return 1
	}
	age := time.Duration(now.UnixNano() - joined)
	if age < window {
		return max(float64(age)/float64(window), slowStartShare)
	}
	if e.joined.CompareAndSwap(joined, 0) {
		e.cluster.special.Add(-1)
	}
	return 1
}

// slowStartShare is where a slow start begins.
const slowStartShare = 0.1

// leave takes an endpoint that is removed out of its cluster's count.
func (e *Endpoint) leave() {
	e.removed.Store(true)
	if e.ejected.Swap(0) != 0 {
		e.cluster.special.Add(-1)
	}
	if e.joined.Swap(0) != 0 {
		e.cluster.special.Add(-1)
	}
	e.absolve()
}

// latency is the moving average of an endpoint's response times that peak EWMA
// compares: it follows a slower answer at once, and faster ones with
// [latencyDecay]. Two loops that write at once lose one of the two samples.
type latency struct {
	nanos atomic.Uint64 // a float64; 0 before the first answer
	at    atomic.Int64  // of the last answer, in Unix nanoseconds
}

// latencyDecay is the time in which the weight of what was seen before falls to
// 1/e.
const latencyDecay = 10 * time.Second

func (l *latency) observe(now time.Time, d time.Duration) {
	at, x := now.UnixNano(), float64(max(d, 1))
	last := math.Float64frombits(l.nanos.Load())
	if last > x {
		keep := math.Exp(-float64(max(at-l.at.Load(), 0)) / float64(latencyDecay))
		x += keep * (last - x)
	}
	l.nanos.Store(math.Float64bits(x))
	l.at.Store(at)
}

// cost is the wait that the endpoint promises to one more request. An endpoint
// that has not answered yet is tried by one request, and by no second one before
// that was answered.
func (e *Endpoint) cost() float64 {
	average, active := math.Float64frombits(e.latency.nanos.Load()), float64(max(e.active.Load(), 0))
	if average == 0 && active > 0 {
		average = float64(unknownLatency)
	}
	return average * (active + 1)
}

// unknownLatency stands for the response time of an endpoint whose first answer
// is still awaited.
const unknownLatency = 10 * time.Second
