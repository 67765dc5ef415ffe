package upstream

import (
	"fmt"
	"time"

	"github.com/headgate/headgate/dataplane/ewma"
	"github.com/headgate/headgate/dataplane/ir"
)

// adaptive is a cluster's adaptive timeout (section 3.6 of the architecture). It
// bounds the time to connect and the time from the written request to the
// response's head.
type adaptive struct {
	spec      ir.AdaptiveTimeout // defaults filled in
	estimator *ewma.Estimator    // nil when it is off
}

// newAdaptive returns the adaptive timeout that spec asks for, with fallback and
// the defaults; old, if any, is what the cluster had. The same spec keeps its
// estimator; another one begins where the last one's estimate was.
func newAdaptive(now time.Time, spec, fallback ir.AdaptiveTimeout, pool ir.Pool, old *adaptive, loops int) *adaptive {
	spec = adaptiveDefaults(spec, fallback, pool)
	if old != nil && old.spec == spec {
		return old
	}
	a := &adaptive{spec: spec}
	if spec.Mode == ir.AdaptiveOff {
		return a
	}
	o := ewma.Options{Start: now, Loops: loops, Alpha: spec.Alpha, Beta: spec.Beta, Initial: spec.Initial, Min: spec.Min, Max: spec.Max}
	if old != nil && old.estimator != nil && old.estimator.Stats(now).Answers > 0 {
		o.Initial = min(old.estimator.Stats(now).Estimate, spec.Max)
	}
	var err error
	if a.estimator, err = ewma.New(o); err != nil {
		panic(fmt.Sprintf("upstream: %v: not validated, %+v", err, spec))
	}
	return a
}

// adaptiveDefaults fills in what spec leaves at zero. The greatest deadline is
// the pool's response timeout, if it has one: what an operator allows an
// upstream at most is also what the estimate may ask for.
func adaptiveDefaults(spec, fallback ir.AdaptiveTimeout, pool ir.Pool) ir.AdaptiveTimeout {
	asked := spec.Mode == ir.AdaptiveEnforce // by the cluster itself
	if spec.Mode == ir.AdaptiveDefault {
		spec.Mode = fallback.Mode
	}
	if spec.Mode == ir.AdaptiveDefault {
		spec.Mode = ir.AdaptiveEnforce
	}
	if spec.Alpha == 0 {
		spec.Alpha = fallback.Alpha
	}
	if spec.Beta == 0 {
		spec.Beta = fallback.Beta
	}
	if spec.Initial == 0 {
		spec.Initial = fallback.Initial
	}
	if spec.Min == 0 {
		spec.Min = fallback.Min
	}
	if spec.Max == 0 {
		spec.Max = fallback.Max
	}
	if spec.Max == 0 && pool.ResponseTimeout < 0 && spec.Mode == ir.AdaptiveEnforce && !asked {
		// Whoever switches the response timeout off wants no other one in its place,
		// unless it is asked for.
		spec.Mode = ir.AdaptiveObserve
	}
	if spec.Max == 0 {
		spec.Max = ewma.DefaultMax
		if pool.ResponseTimeout > 0 {
			spec.Max = min(pool.ResponseTimeout, ewma.MaxLimit)
		}
		spec.Max = max(spec.Max, spec.Min)
	}
	if spec.Min == 0 {
		spec.Min = min(ewma.DefaultMin, spec.Max)
	}
	spec.Min = min(spec.Min, spec.Max)
	spec.Initial = min(spec.Initial, spec.Max)
	return spec
}

// bound returns the lesser one of limit, which is none when it is not positive,
// and the deadline of a request that is sent now; and whether it is the latter.
func (a *adaptive) bound(now time.Time, limit time.Duration) (time.Duration, bool) {
	if a.spec.Mode != ir.AdaptiveEnforce {
		return limit, false
	}
	if d := a.estimator.Deadline(now); limit <= 0 || d < limit {
		return d, true
	}
	return limit, false
}

// observe takes the time in which an answer came.
func (a *adaptive) observe(loop int, now time.Time, d time.Duration) {
	if a.estimator != nil {
		a.estimator.Loop(loop).Observe(now, d)
	}
}

// censored takes the time in which no answer came.
func (a *adaptive) censored(loop int, now time.Time, d time.Duration) {
	if a.estimator != nil {
		a.estimator.Loop(loop).Censored(now, d)
	}
}

// TimeoutStats is the state of an adaptive timeout.
type TimeoutStats struct {
	Mode ir.AdaptiveMode
	// The estimator's; zero when it is off.
	Estimate, Deadline         time.Duration
	Answers, Censored, Changes uint64
}

func (a *adaptive) stats(now time.Time) TimeoutStats {
	st := TimeoutStats{Mode: a.spec.Mode}
	if a.estimator != nil {
		e := a.estimator.Stats(now)
		st.Estimate, st.Deadline, st.Answers, st.Censored, st.Changes = e.Estimate, e.Deadline, e.Answers, e.Censored, e.Changes
	}
	return st
}
