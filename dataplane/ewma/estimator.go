package ewma

import (
	"math"
	"sync/atomic"
	"time"
)

// A cycle is the time that one answer takes, as far as known: answers that come
// in less time are one step of Eq. (13) together.
const (
	minCycle = time.Millisecond
	maxCycle = time.Second
)

// Estimator is the estimate of one cluster. Its methods may be called from any
// goroutine.
type Estimator struct {
	beta      float64
	keep      float64 // ln(1-alpha)
	initial   float64 // times are in nanoseconds
	min, max  float64
	halfLife  float64 // 0: does not age
	plain     bool
	start     time.Time
	recorders []atomic.Pointer[Recorder] // nil until the loop has something to record
	_         [64]byte

	// Read by every request, written once per cycle.
	estimate atomic.Uint64 // T of Eq. (13): the bits of a float64
	last     atomic.Int64  // when answers were last merged
	due      atomic.Int64  // when to merge next
	busy     atomic.Bool   // a merge is under way; who sets it owns what follows
	catchUp  catchUp
	answers  atomic.Uint64
	changes  atomic.Uint64
}

// New returns an Estimator that has seen no answer.
func New(o Options) (*Estimator, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	e := &Estimator{
		beta:      o.Beta,
		keep:      math.Log1p(-o.Alpha),
		initial:   float64(o.Initial),
		min:       float64(o.Min),
		max:       float64(o.Max),
		halfLife:  float64(max(o.HalfLife, 0)),
		plain:     o.Plain,
		start:     o.Start,
		recorders: make([]atomic.Pointer[Recorder], o.Loops),
	}
	e.estimate.Store(math.Float64bits(e.initial))
	return e, nil
}

// Loop returns the recorder of the loop with the index, which is the one to call
// it. It makes it when it is new: an upstream that no request came to needs none.
func (e *Estimator) Loop(i int) *Recorder {
	r := e.recorders[i].Load()
	if r == nil {
		r = &Recorder{estimator: e}
		e.recorders[i].Store(r)
	}
	return r
}

// Deadline returns how long to wait for an answer to a request that is sent now:
// beta times the estimate, within the bounds.
func (e *Estimator) Deadline(now time.Time) time.Duration {
	at := e.since(now)
	if at >= e.due.Load() {
		e.merge(at)
	}
	return e.deadline(e.aged(at))
}

// Stats is an Estimator's state at one moment.
type Stats struct {
	Estimate time.Duration // T of Eq. (13), aged
	Deadline time.Duration
	Answers  uint64 // merged, with the censored ones that counted
	Censored uint64
	Changes  uint64 // times that the catch-up set in
}

// Stats returns the state without changing it.
func (e *Estimator) Stats(now time.Time) Stats {
	t := e.aged(e.since(now))
	s := Stats{Estimate: time.Duration(t), Deadline: e.deadline(t), Answers: e.answers.Load(), Changes: e.changes.Load()}
	for i := range e.recorders {
		if r := e.recorders[i].Load(); r != nil {
			s.Censored += r.censored.Load()
		}
	}
	return s
}

// since turns now into nanoseconds of the estimator's own clock, monotonic if
// now is.
func (e *Estimator) since(now time.Time) int64 { return int64(now.Sub(e.start)) }

// deadline bounds beta times t.
func (e *Estimator) deadline(t float64) time.Duration {
	return time.Duration(min(max(e.beta*t, e.min), e.max))
}

// freshness returns the weight, in [0,1], of what was learned before at.
func (e *Estimator) freshness(at int64) float64 {
	idle := float64(at - e.last.Load())
	if e.halfLife == 0 || idle <= e.halfLife {
		return 1
	}
	return math.Exp2(1 - idle/e.halfLife)
}

// aged returns the estimate at the given time.
func (e *Estimator) aged(at int64) float64 {
	t := math.Float64frombits(e.estimate.Load())
	if f := e.freshness(at); f < 1 {
		t = e.initial + f*(t-e.initial)
	}
	return t
}

// merge takes what the loops have recorded, unless another loop is at it.
func (e *Estimator) merge(at int64) {
	if !e.busy.CompareAndSwap(false, true) {
		return
	}
	var n, micros uint64
	expired := false
	for i := range e.recorders {
		r := e.recorders[i].Load()
		if r == nil {
			continue
		}
		tally := r.tally.Load()
		d := tally - r.merged.Load()
		if d == 0 {
			continue
		}
		r.merged.Store(tally)
		if cut := r.expired.Load(); cut != r.seen {
			r.seen, expired = cut, true
		}
		n += d >> countShift
		micros += d & sumMask
	}
	if n > 0 {
		e.step(at, float64(n), float64(micros)*1e3/float64(n), expired)
	}
	e.busy.Store(false)
}

// step takes n answers whose mean is observed, and whether a deadline as the
// estimate now makes it has expired among them.
func (e *Estimator) step(at int64, n, observed float64, expired bool) {
	t := e.aged(at)
	// Eq. (13), n times with the same observation: T = o + (1-alpha)^n (T-o).
	gain := -math.Expm1(n * e.keep)
	if !e.plain {
		var changed bool
		gain, changed = e.catchUp.gain(gain, n, observed/max(t, 1e3), e.freshness(at), expired)
		if changed {
			e.changes.Add(1)
		}
	}
	t += gain * (observed - t)
	t = min(max(t, 0), e.max)
	e.estimate.Store(math.Float64bits(t))
	e.last.Store(max(at, e.last.Load()))
	e.due.Store(at + int64(min(max(t, float64(minCycle)), float64(maxCycle))))
	e.answers.Add(uint64(n))
}
