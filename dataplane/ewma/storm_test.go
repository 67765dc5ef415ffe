package ewma

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newEstimator(t testing.TB, o Options) *Estimator {
	t.Helper()
	o.Start = epoch
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// upstream simulates requests that are sent at a steady rate to one upstream,
// each of which ends with its answer or at its deadline.
type upstream struct {
	e       *Estimator
	now     time.Duration // since epoch
	every   time.Duration
	flying  flights
	next    time.Duration // when the next request is sent
	sent    int
	served  int
	cut     int
	longest time.Duration             // that a request took
	latency func(i int) time.Duration // of the i-th request
}

type flight struct {
	end  time.Duration
	took time.Duration
	cut  bool
}

type flights []flight

func (f flights) Len() int           { return len(f) }
func (f flights) Less(i, j int) bool { return f[i].end < f[j].end }
func (f flights) Swap(i, j int)      { f[i], f[j] = f[j], f[i] }
func (f *flights) Push(x any)        { *f = append(*f, x.(flight)) }
func (f *flights) Pop() any {
	old := *f
	x := old[len(old)-1]
	*f = old[:len(old)-1]
	return x
}

// run simulates until the given time.
func (u *upstream) run(until time.Duration) {
	for {
		if len(u.flying) > 0 && u.flying[0].end <= min(u.next, until) {
			f := heap.Pop(&u.flying).(flight)
			u.now = f.end
			u.longest = max(u.longest, f.took)
			if r := u.e.Loop(0); f.cut {
				u.cut++
				r.Censored(epoch.Add(u.now), f.took)
			} else {
				u.served++
				r.Observe(epoch.Add(u.now), f.took)
			}
			continue
		}
		if u.next > until {
			u.now = until
			return
		}
		u.now = u.next
		d := u.latency(u.sent)
		limit := u.e.Deadline(epoch.Add(u.now))
		heap.Push(&u.flying, flight{end: u.now + min(d, limit), took: min(d, limit), cut: d > limit})
		u.sent++
		u.next += u.every
	}
}

// The storm of the paper's 5.5. Its new mean is 112 ms; half of the answers take
// longer than 100 ms. With the other half at the baseline's 10 ms those take
// 214 ms.
const (
	baseline = 10 * time.Millisecond
	slow     = 214 * time.Millisecond
	newMean  = 112 * time.Millisecond
	// A cycle is the mean time of a request: 8 of them are 896 ms, the paper's
	// "8 request cycles (approximately 900 ms)".
	cycle = newMean
)

// storm warms an estimator up at the baseline, and starts the storm. It returns
// the estimate and the deadline after each of the given number of cycles.
func storm(t testing.TB, o Options, perSecond int, isSlow func(i int) bool, cycles int) (estimates, deadlines []time.Duration, u *upstream) {
	t.Helper()
	u = &upstream{
		e:       newEstimator(t, o),
		every:   time.Second / time.Duration(perSecond),
		latency: func(int) time.Duration { return baseline },
	}
	warm := 100 * u.every
	u.run(warm - 1)
	if got := u.e.Stats(epoch.Add(u.now)).Estimate; got != baseline {
		t.Fatalf("after the warm-up the estimate is %v, want %v", got, baseline)
	}
	first := u.sent
	u.served, u.cut = 0, 0
	u.latency = func(i int) time.Duration {
		if isSlow(i - first) {
			return slow
		}
		return baseline
	}
	for i := range cycles {
		u.run(warm + time.Duration(i+1)*cycle)
		deadlines = append(deadlines, u.e.Deadline(epoch.Add(u.now))) // merges what is due
		estimates = append(estimates, u.e.Stats(epoch.Add(u.now)).Estimate)
	}
	return estimates, deadlines, u
}

func slowFirst(i int) bool { return i%2 == 0 }
func fastFirst(i int) bool { return i%2 == 1 }

// coin returns an order of slow and fast answers by chance.
func coin(seed uint64) func(int) bool {
	r := rand.New(rand.NewPCG(seed, 5))
	return func(int) bool { return r.IntN(2) == 0 }
}

// off is how far an estimate is from the new mean, in parts of it; the deadline
// is off by as much.
func off(estimate time.Duration) float64 { return float64(estimate)/float64(newMean) - 1 }

// share returns the part of runs that are within 10 % after 8 cycles, and how far
// their mean is off.
func share(t testing.TB, o Options, perSecond, runs int) (within, meanOff float64) {
	t.Helper()
	for seed := range runs {
		d, _, _ := storm(t, o, perSecond, coin(uint64(seed)), 8)
		meanOff += off(d[7]) / float64(runs)
		if math.Abs(off(d[7])) <= 0.10 {
			within += 1 / float64(runs)
		}
	}
	return within, meanOff
}
