package ewma

import (
	"fmt"
	"math"
	"testing"
	"time"
)

const ms = time.Millisecond

// TestEquation13 sets the estimator beside Eq. (13) worked out by hand, with the
// paper's alpha = 0.1 and beta = 2.5.
func TestEquation13(t *testing.T) {
	e := newEstimator(t, Options{Plain: true, Initial: 100 * ms, Min: 1 * ms, Max: time.Minute})
	now := epoch
	for i, step := range []struct{ observed, estimate, deadline time.Duration }{
		{200 * ms, 110 * ms, 275 * ms},                   // 0.1*200 + 0.9*100
		{50 * ms, 104 * ms, 260 * ms},                    // 0.1*50 + 0.9*110
		{104 * ms, 104 * ms, 260 * ms},                   // no error, no step
		{1104 * ms, 204 * ms, 510 * ms},                  // 0.1*1104 + 0.9*104
		{0, 183600 * time.Microsecond, 459 * ms},         // 0.9*204
		{36 * ms, 168840 * time.Microsecond, 422100_000}, // 0.1*36 + 0.9*183.6
	} {
		now = now.Add(time.Second) // one answer per cycle
		e.Loop(0).Observe(now, step.observed)
		got := e.Stats(now)
		if d := got.Estimate - step.estimate; d < -1 || d > 1 {
			t.Errorf("step %d: estimate %v, want %v", i, got.Estimate, step.estimate)
		}
		if d := e.Deadline(now) - step.deadline; d < -2 || d > 2 {
			t.Errorf("step %d: deadline %v, want %v", i, e.Deadline(now), step.deadline)
		}
	}
	if got := e.Stats(now); got.Answers != 6 || got.Changes != 0 {
		t.Errorf("stats: %+v", got)
	}
}

// TestEquation13Batch: answers of one cycle, from several loops, are so many
// steps of Eq. (13) with their mean.
func TestEquation13Batch(t *testing.T) {
	e := newEstimator(t, Options{Plain: true, Initial: 100 * ms, Min: 1 * ms, Max: time.Minute, Loops: 3})
	e.Loop(0).Observe(epoch, 100*ms) // merged at once; the next merge is due in 100 ms
	e.Loop(0).Observe(epoch.Add(10*ms), 100*ms)
	e.Loop(1).Observe(epoch.Add(20*ms), 200*ms)
	e.Loop(2).Observe(epoch.Add(99*ms), 300*ms)
	if got := e.Stats(epoch.Add(99 * ms)); got.Estimate != 100*ms || got.Answers != 1 {
		t.Errorf("within the cycle: %+v", got)
	}
	// The mean is 200 ms, three times: 200 - 0.9^3 * 100 = 127.1.
	if got, want := e.Deadline(epoch.Add(100*ms)), time.Duration(2.5*127.1*float64(ms)); got < want-2 || got > want+2 {
		t.Errorf("deadline %v, want %v", got, want)
	}
}

// TestPlainReach says what Eq. (13) with alpha = 0.1 can reach: one answer of
// the new mean per cycle leaves 0.9^n of the difference.
func TestPlainReach(t *testing.T) {
	e := newEstimator(t, Options{Plain: true, Initial: baseline, Min: 1 * ms, Max: time.Minute})
	now, reached := epoch, 0
	for n := 1; reached == 0; n++ {
		now = now.Add(time.Second)
		e.Loop(0).Observe(now, newMean)
		got := off(e.Stats(now).Estimate)
		if n == 8 { // 112 - 102*0.9^8 = 68.1 ms, the deadline 170 ms and not 280
			if math.Abs(got-(68.1/112-1)) > 0.001 {
				t.Errorf("after 8 answers the estimate is off by %.3f", got)
			}
		}
		if got >= -0.10 {
			reached = n
		}
	}
	if reached != 21 { // ln(0.1*112/102) / ln(0.9) = 20.97
		t.Errorf("within 10 %% after %d answers, want 21", reached)
	}
}

// TestStorm is the storm of the paper's 5.5: from a 10 ms baseline, half of the
// answers slower than 100 ms; the deadline must be within 10 % of 2.5 times the
// new mean in at most 8 cycles.
func TestStorm(t *testing.T) {
	long, short := 250*ms, 1*ms // deadlines that cut nothing, or the slow half at first
	for _, c := range []struct {
		name      string
		min       time.Duration
		perSecond int
		by        int // cycles, after which it stays within 10 %
	}{
		{"paper's rate", long, 10, 8},
		{"30 per second", long, 30, 8},
		{"100 per second", long, 100, 8},
		{"1,000 per second", long, 1000, 8},
		// With the slow half cut, four answers in 8 cycles can't show how slow it is.
		{"paper's rate, cut", short, 10, 11},
		{"100 per second, cut", short, 100, 8},
		{"1,000 per second, cut", short, 1000, 8},
	} {
		for order, isSlow := range map[string]func(int) bool{"slow first": slowFirst, "fast first": fastFirst} {
			t.Run(c.name+", "+order, func(t *testing.T) {
				by := c.by
				if order == "fast first" && by > 8 {
					by++ // the first slow one comes a cycle later
				}
				_, got, u := storm(t, Options{Min: c.min, Max: time.Minute}, c.perSecond, isSlow, by+8)
				for i, deadline := range got[by-1:] { // and it stays there
					if o := float64(deadline)/(2.5*float64(newMean)) - 1; math.Abs(o) > 0.10 {
						t.Errorf("off by %+.1f %% after %d cycles: %v", 100*o, by+i, got)
					}
				}
				if (u.cut > 0) != (c.min == short) {
					t.Errorf("%d requests were cut", u.cut)
				}
				// The paper kept 67 % of its throughput, here from the first moment on.
				if part := float64(u.served) / float64(u.served+u.cut); part < 0.67 {
					t.Errorf("%.0f %% of the requests were served, want at least 67 %%", 100*part)
				}
				if last := got[len(got)-1]; u.longest > last*12/10 {
					t.Errorf("a request took %v, want at most 1.2 times the deadline of %v", u.longest, last)
				}
			})
		}
	}
}

// TestStormByChance: when each answer is slow by the toss of a coin, alpha = 0.1
// has noise of its own: 102 ms * sqrt(0.1/1.9) = 23 ms, 21 % of the mean, with one
// answer per cycle. More answers per cycle average it out.
func TestStormByChance(t *testing.T) {
	for _, c := range []struct {
		name              string
		o                 Options
		perSecond         int
		within, meanWorst float64
	}{
		{"paper's rate, plain", Options{Plain: true, Initial: baseline, Min: 250 * ms}, 10, 0, 0.50},
		{"paper's rate", Options{Min: 250 * ms}, 10, 0.2, 0.20},
		{"100 per second", Options{Min: 250 * ms}, 100, 0.35, 0.10},
		{"1,000 per second", Options{Min: 250 * ms}, 1000, 0.85, 0.05},
		{"1,000 per second, cut", Options{Min: 1 * ms}, 1000, 0.6, 0.10},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.o.Max = time.Minute
			within, meanOff := share(t, c.o, c.perSecond, 100)
			t.Logf("within 10 %%: %.2f of the runs; mean off by %+.1f %%", within, 100*meanOff)
			if within < c.within || math.Abs(meanOff) > c.meanWorst {
				t.Errorf("want at least %.2f of the runs, and a mean at most %.0f %% off", c.within, 100*c.meanWorst)
			}
		})
	}
}

// failures returns the bound on consecutive failures after an upstream whose
// mean was T has become k times slower for good: the deadline must grow from
// beta*T to k*T, and grows by a known factor with each failure.
func failures(k, alpha, beta float64, plain bool) int {
	growth := 1 + maxGain*beta
	if plain {
		growth = 1 + alpha*beta
	}
	return max(0, int(math.Ceil(math.Log(k/beta)/math.Log(growth)-1e-9)))
}

// TestNoDeathSpiral: an upstream that becomes k times slower for good is served
// again after a bounded number of failures.
func TestNoDeathSpiral(t *testing.T) {
	for _, c := range []struct {
		k     float64
		plain bool
		want  int
	}{
		{2, false, 0}, {3, false, 1}, {20, false, 3}, {100, false, 4}, {1000, false, 7},
		{2, true, 0}, {3, true, 1}, {20, true, 10}, {100, true, 17}, {1000, true, 27},
	} {
		t.Run(fmt.Sprintf("%vx, plain %v", c.k, c.plain), func(t *testing.T) {
			if got := failures(c.k, 0.1, 2.5, c.plain); got != c.want {
				t.Fatalf("the formula gives %d, want %d", got, c.want)
			}
			now := epoch
			e := newEstimator(t, Options{Plain: c.plain, Initial: baseline, Min: 1 * ms, Max: time.Minute})
			r := e.Loop(0)
			for range 50 {
				now = now.Add(baseline)
				r.Observe(now, baseline)
			}
			slower := time.Duration(c.k * float64(baseline))
			failed := 0
			for r.Deadline(now) < slower {
				d := r.Deadline(now)
				now = now.Add(d)
				r.Censored(now, d)
				if failed++; failed > 100 {
					t.Fatal("never served again")
				}
			}
			if failed > c.want {
				t.Errorf("%d failures, want at most %d", failed, c.want)
			}
			// It stays served.
			for range 100 {
				if r.Deadline(now) < slower {
					t.Fatalf("the deadline fell to %v again", r.Deadline(now))
				}
				now = now.Add(slower)
				r.Observe(now, slower)
			}
		})
	}
}

// TestNoDeathSpiralConcurrent: with many requests in flight, those that fail are
// bounded by the time until one is served: the sum of the deadlines on the way,
// each with a cycle.
func TestNoDeathSpiralConcurrent(t *testing.T) {
	u := &upstream{
		e:       newEstimator(t, Options{Min: 1 * ms, Max: time.Minute}),
		every:   ms,
		latency: func(int) time.Duration { return baseline },
	}
	u.run(time.Second - 1)
	u.cut, u.served = 0, 0
	u.latency = func(int) time.Duration { return 20 * baseline }
	u.run(10 * time.Second)
	// Deadlines of 25, 67 and 178 ms, each with a cycle of 10, 27 and 71 ms.
	if limit := 25 + 67 + 178 + 10 + 27 + 71; u.cut > limit {
		t.Errorf("%d of %d requests failed, want at most %d", u.cut, u.cut+u.served, limit)
	}
	if got := u.e.Stats(epoch.Add(u.now)).Estimate; got < 199*ms || got > 201*ms {
		t.Errorf("estimate %v, want 200ms", got)
	}
}

// TestHung: an upstream that never answers brings the deadline to Max and no
// further; once it answers again, the deadline comes back.
func TestHung(t *testing.T) {
	e := newEstimator(t, Options{})
	r, now := e.Loop(0), epoch
	for range 50 {
		now = now.Add(baseline)
		r.Observe(now, baseline)
	}
	failed := 0
	for ; r.Deadline(now) < DefaultMax; failed++ {
		d := r.Deadline(now)
		now = now.Add(d)
		r.Censored(now, d)
	}
	if failed != 4 { // deadlines of 5, 8.4, 22 and 59 s
		t.Errorf("%d failures until the deadline is Max, want 4", failed)
	}
	for range 100 {
		now = now.Add(DefaultMax)
		r.Censored(now, DefaultMax)
	}
	answers := 0
	for ; r.Deadline(now) > DefaultMin && answers < 1000; answers++ {
		now = now.Add(time.Second)
		r.Observe(now, baseline)
	}
	if answers > 25 {
		t.Errorf("%d answers until the deadline is Min again, want at most 25", answers)
	}
}
