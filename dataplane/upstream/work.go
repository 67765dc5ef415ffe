package upstream

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// TimeBuckets is how many buckets the times of answers are counted in. There are
// four for each doubling from 128 us to 9 minutes, one below and one above, so
// that the middle of a bucket is an eighth off at most.
const TimeBuckets = 2 + 4*(longestBits-shortestBits+1)

// The bits of the times, in microseconds, that have buckets of their own.
const (
	shortestBits = 8
	longestBits  = 29
)

// timeBucket returns the index of the bucket that counts d.
func timeBucket(d time.Duration) int {
	micros := uint64(max(d, 0) / time.Microsecond)
	switch n := bits.Len64(micros); {
	case n < shortestBits:
		return 0
	case n > longestBits:
		return TimeBuckets - 1
	default:
		return 1 + 4*(n-shortestBits) + int(micros>>(n-3)&3) // by the two bits after the first one
	}
}

// TimeOf returns what the answers in a bucket took: the middle of it, of the last
// one its beginning.
func TimeOf(bucket int) time.Duration {
	switch {
	case bucket <= 0:
		return time.Microsecond << (shortestBits - 2)
	case bucket >= TimeBuckets-1:
		return time.Microsecond << longestBits
	}
	i := bucket - 1
	width := time.Microsecond << (shortestBits + i/4 - 3)
	return time.Duration(4+i%4)*width + width/2
}

// work counts what became of a shard's requests. Its loop alone writes; any
// goroutine may read.
type work struct {
	placed, shed atomic.Uint64
	times        atomic.Pointer[[TimeBuckets]atomic.Uint32] // nil before the first answer
}

// answered counts an answer that took d, or that had not come after d when it was
// given up.
func (w *work) answered(d time.Duration) {
	times := w.times.Load()
	if times == nil {
		times = new([TimeBuckets]atomic.Uint32)
		w.times.Store(times)
	}
	n := &times[timeBucket(d)]
	n.Store(n.Load() + 1) // one writer
}

// count adds one.
func count(n *atomic.Uint64) { n.Store(n.Load() + 1) } // one writer

// Work is what became of a cluster's requests since it began. Its numbers wrap.
type Work struct {
	// Instance tells a cluster from an earlier one of the same name.
	Instance uint64
	// Placed got a place in the pool, Shed were answered 503 for want of one. Tries
	// are counted.
	Placed, Shed uint64
	// Times are the times from the written request to the head of its answer, in
	// the buckets of [TimeOf]. An answer that was given up is counted with the time
	// that it was waited for.
	Times [TimeBuckets]uint32
	// Out are the endpoints that get no requests.
	Out []OutEndpoint
}

// OutEndpoint is an endpoint that gets no requests: it is ejected, or failed its
// checks, or both.
type OutEndpoint struct {
	Address string
	// Ejected is until when it is, zero when it is not; for the Times-th time in a
	// row, since its last Failures requests failed, the last one with Fault.
	Ejected  time.Time
	Times    int
	Failures int
	Fault    Fault
	// Unwell is the last failed one of its checks, after Checks of them in a row; nil
	// when it is well.
	Unwell error
	Checks int
}

// Work returns what became of the cluster's requests; callable from any goroutine.
func (c *Cluster) Work() Work {
	st, now := c.state.Load(), c.opts.Now()
	w := Work{Instance: c.instance}
	for _, sh := range c.made {
		w.Placed += sh.work.placed.Load()
		w.Shed += sh.work.shed.Load()
		if times := sh.work.times.Load(); times != nil {
			for i := range times {
				w.Times[i] += times[i].Load()
			}
		}
	}
	for _, e := range st.endpoints[:len(st.cumulative)] {
		if out, is := e.out(now, st); is {
			w.Out = append(w.Out, out)
		}
	}
	return w
}

// out tells why the endpoint gets no requests, if it gets none.
func (e *Endpoint) out(now time.Time, st *clusterState) (OutEndpoint, bool) {
	o := OutEndpoint{Address: e.text}
	if until := e.ejected.Load(); until > now.UnixNano() {
		o.Ejected, o.Times, o.Fault = time.Unix(0, until), int(e.ejections.Load()), Fault(e.fault.Load())
		o.Failures = 1
		if o.Times <= 1 {
			o.Failures = withEjectionDefaults(st.ir.Ejection).Failures
		}
	}
	if e.unwell.Load() {
		o.Unwell = errUnwell
		if why := e.illness.Load(); why != nil {
			o.Unwell = *why
		}
		if st.ir.Check != nil {
			o.Checks = withCheckDefaults(*st.ir.Check).Unhealthy
		}
	}
	return o, !o.Ejected.IsZero() || o.Unwell != nil
}
