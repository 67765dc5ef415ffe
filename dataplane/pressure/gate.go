package pressure

import (
	"math"
	"sync/atomic"
	"time"
)

// Gate is the pool of one cluster. Its methods may be called from any goroutine,
// those of a [Loop] only on that loop.
type Gate struct {
	start time.Time
	cpu   func() float64
	loops []atomic.Pointer[Loop] // nil until the loop has asked for its part
	set   atomic.Pointer[settings]

	_      [64]byte
	active atomic.Int64 // n_active of Eq. (8)
	_      [56]byte
	held   atomic.Int64
	bytes  atomic.Int64           // of held requests
	shedAt atomic.Int64           // when a request was last shed
	closed atomic.Int64           // when the gate closed; open, or measured
	shares atomic.Pointer[shares] // nil until a request of a client is held
	_      [24]byte

	// Read by requests that find U at theta or above, written once per tick.
	limit atomic.Int64 // places that may be in use
	due   atomic.Int64 // when to step next
	flood atomic.Bool  // the next step fills the bucket
	busy  atomic.Bool  // a step is under way; who sets it owns what follows
	last  int64        // when the last step was
	seen  work         // of the loops, at the last step
	bucket
	meter

	// What a step leaves for others to see.
	service  float // mean time that a request keeps its place, seconds; 0: not known
	capacity float // Lambda_max, per second; infinite: not known
	rate     float // r_bp, per second
	next     atomic.Int64
}

// float is a float64 that one goroutine writes and others read.
type float struct{ bits atomic.Uint64 }

func (f *float) store(v float64) { f.bits.Store(math.Float64bits(v)) }
func (f *float) load() float64   { return math.Float64frombits(f.bits.Load()) }

// The values of closed that are no time.
const (
	open     = 0
	measured = -1
)

// tick is the least time between two steps: U over all loops is exact, what
// follows from it is at most this stale.
const tick = time.Millisecond

// New returns a Gate with an empty pool.
func New(o Options) (*Gate, error) {
	l, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	g := &Gate{start: o.Start, cpu: o.CPU, loops: make([]atomic.Pointer[Loop], max(o.Loops, 1))}
	s := newSettings(l)
	g.set.Store(s)
	g.limit.Store(s.knee)
	g.capacity.store(math.Inf(1))
	g.next.Store(int64(maxNext))
	return g, nil
}

// Update replaces the limits. What is in use or held stays so: a pool that
// became smaller gives out no place until enough came back.
func (g *Gate) Update(l Limits) error {
	l, err := l.withDefaults()
	if err != nil {
		return err
	}
	if l == g.Limits() {
		return nil
	}
	s := newSettings(l)
	g.set.Store(s)
	// The bucket's tokens stay, as far as they fit; the next step sees to it.
	g.limit.Store(s.knee)
	g.due.Store(0)
	return nil
}

// Limits returns the limits, with their defaults.
func (g *Gate) Limits() Limits { return g.set.Load().Limits }

// Loop returns the part of the loop with the index, which is the one to call it. It
// makes it when it is new: a pool that no request came to needs none.
func (g *Gate) Loop(i int) *Loop {
	l := g.loops[i].Load()
	if l == nil {
		l = &Loop{gate: g}
		g.loops[i].Store(l)
	}
	return l
}

// Active returns the places in use.
func (g *Gate) Active() int64 { return g.active.Load() }

// Held returns how many requests are held.
func (g *Gate) Held() int64 { return g.held.Load() }

// since turns now into nanoseconds of the gate's clock, which are above 0.
func (g *Gate) since(now time.Time) int64 { return max(int64(now.Sub(g.start)), 0) + 1 }

// Loop is one loop's part of a Gate.
type Loop struct {
	gate *Gate
	// Written by the loop, read by whoever steps.
	departures atomic.Uint64
	residence  atomic.Uint64 // of the departures, nanoseconds
	_          [104]byte     // keeps a neighbour's line apart
}

// Enter takes a place for a request, or returns false: then the request is to be
// held, and Enter to be tried again after it is, so that no place is missed that
// came back in between. Requests that find U below theta touch nothing but the
// count of places.
func (l *Loop) Enter(now time.Time) bool {
	g := l.gate
	s := g.set.Load()
	n := g.active.Add(1)
	if n < s.knee { // Eq. (8): U < theta, and stays so
		return true
	}
	at := g.since(now)
	if at >= g.due.Load() {
		g.step(at, 1)
	}
	limit := g.limit.Load()
	if n >= limit {
		g.closed.CompareAndSwap(open, at) // the next one is held, if not this one
	}
	if n > limit {
		g.active.Add(-1)
		return false
	}
	return true
}

// Leave gives a place back that was used for d; a negative d was no service and
// is not measured, a tunnel's for one.
func (l *Loop) Leave(d time.Duration) {
	g := l.gate
	if d >= 0 {
		l.departures.Store(l.departures.Load() + 1) // one writer
		l.residence.Store(l.residence.Load() + uint64(d))
	}
	if n := g.active.Add(-1); g.closed.Load() != open && n < g.limit.Load() && g.held.Load() == 0 {
		g.closed.Store(open)
	}
}

// GiveOut ends the pacing for now, if there is a free place: nobody is shed while
// there is one. It returns false when the pool is full. Who is held is to be
// served, before whoever asked is held or admitted.
func (g *Gate) GiveOut(now time.Time) bool {
	size := int64(g.set.Load().Size)
	if g.active.Load() >= size {
		return false
	}
	g.flood.Store(true)
	g.limit.Store(size)
	g.step(g.since(now), 0)
	return true
}

// Paused tells that reading from a client was paused because its request is
// held. It returns how long ago the gate closed, T_bp of Eq. (10), when this is
// the first such pause since.
func (l *Loop) Paused(now time.Time) (time.Duration, bool) {
	g := l.gate
	at := g.closed.Load()
	if at <= open || !g.closed.CompareAndSwap(at, measured) {
		return 0, false
	}
	return time.Duration(max(g.since(now)-at, 0)), true
}

// Next returns when to try Enter again for who is held, if no place comes back
// before: when the bucket will have another token.
func (l *Loop) Next(now time.Time) time.Duration {
	if at := l.gate.since(now); at >= l.gate.due.Load() {
		l.gate.step(at, 0)
	}
	return time.Duration(l.gate.next.Load())
}

// step brings the measurements and the bucket up to date, unless another loop
// is at it. Of the places that are counted as in use, asking are only asked for.
func (g *Gate) step(at, asking int64) {
	if !g.busy.CompareAndSwap(false, true) {
		return
	}
	defer g.busy.Store(false)
	dt := float64(at-g.last) / 1e9
	if dt < 0 {
		return // another loop's clock is ahead
	}
	g.last = max(at, g.last)
	s := g.set.Load()
	active, held := max(g.active.Load()-asking, 0), g.held.Load()
	done := g.work()
	g.meter.add(dt, float64(active), done.since(g.seen))
	g.seen = done

	service, capacity := g.meter.mean(), math.Inf(1)
	if service > 0 {
		capacity = float64(s.Size) / service // c*mu of the pool's stage
	}
	if g.cpu != nil {
		if c := g.cpu(); c > 0 {
			capacity = min(capacity, c) // Eq. (1)
		}
	}
	if g.flood.Swap(false) {
		g.bucket.tokens = math.Inf(1) // the bucket's step bounds it
	}
	rate := paced(capacity, active, int64(s.Size))
	g.bucket.step(dt, rate, service, active, held, s)
	g.limit.Store(s.knee + int64(g.bucket.tokens))
	g.service.store(service)
	g.capacity.store(capacity)
	g.rate.store(rate)
	g.next.Store(int64(g.bucket.next(rate)))
	g.due.Store(at + int64(tick))
}
