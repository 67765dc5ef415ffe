package ewma

import (
	"sync/atomic"
	"time"
)

// A recorder's tally: the number of answers above, the sum of their times in
// microseconds below. It wraps; differences of tallies are right as long as a
// cycle stays below maxPending answers of MaxLimit each.
const (
	countShift = 46
	sumMask    = 1<<countShift - 1
	maxPending = 4096
)

// Recorder is one loop's part of an Estimator. Observe and Censored must run on
// that loop; Deadline may be called from anywhere.
type Recorder struct {
	estimator *Estimator
	tally     atomic.Uint64 // written by the loop, read by whoever merges
	merged    atomic.Uint64 // the tally that has been merged; written by whoever merges
	censored  atomic.Uint64 // written by the loop
	expired   atomic.Uint64 // those of censored that outlived beta estimates, or Max
	seen      uint64        // the part of expired that has been merged; owned by whoever merges
	_         [80]byte      // keeps a neighbour's line apart
}

// Observe takes an answer that came after rtt. Answers beyond some thousand
// per loop and cycle are not counted: they would change nothing.
func (r *Recorder) Observe(now time.Time, rtt time.Duration) {
	r.record(now, float64(rtt))
}

// Censored takes a request of which is only known that its answer would have
// taken at least atLeast: its deadline passed, or its connection was reset.
//
// It counts as atLeast plus the estimate, which is the mean of an exponential
// time that is known to exceed atLeast. A request that was given up before the
// estimate says nothing, and is not counted: it was reset early, or it ran under
// a deadline that has been corrected since.
func (r *Recorder) Censored(now time.Time, atLeast time.Duration) {
	estimate := r.estimator.aged(r.estimator.since(now))
	if float64(atLeast) < estimate {
		return
	}
	r.censored.Store(r.censored.Load() + 1)                                    // one writer
	if float64(atLeast)+1 >= min(r.estimator.beta*estimate, r.estimator.max) { // + 1: Deadline rounds down
		r.expired.Store(r.expired.Load() + 1)
	}
	r.record(now, float64(atLeast)+estimate)
}

// Deadline is Estimator.Deadline.
func (r *Recorder) Deadline(now time.Time) time.Duration { return r.estimator.Deadline(now) }

// record adds an answer of the given nanoseconds, and merges when it is time.
func (r *Recorder) record(now time.Time, nanos float64) {
	e := r.estimator
	tally := r.tally.Load()
	if (tally-r.merged.Load())>>countShift < maxPending {
		micros := uint64(min(max(nanos, 0), e.max)/1e3 + 0.5)
		r.tally.Store(tally + 1<<countShift + micros) // one writer: no read-modify-write
	}
	if at := e.since(now); at >= e.due.Load() {
		e.merge(at)
	}
}
