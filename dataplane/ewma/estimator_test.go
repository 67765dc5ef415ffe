package ewma

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestOptions(t *testing.T) {
	for _, c := range []struct {
		name string
		o    Options
		want string
	}{
		{"no start", Options{}, "start"},
		{"loops", Options{Start: epoch, Loops: -1}, "loops"},
		{"alpha negative", Options{Start: epoch, Alpha: -0.1}, "alpha"},
		{"alpha one", Options{Start: epoch, Alpha: 1}, "alpha"},
		{"alpha not a number", Options{Start: epoch, Alpha: math.NaN()}, "alpha"},
		{"beta one", Options{Start: epoch, Beta: 1}, "beta"},
		{"beta large", Options{Start: epoch, Beta: 101}, "beta"},
		{"beta not a number", Options{Start: epoch, Beta: math.NaN()}, "beta"},
		{"min negative", Options{Start: epoch, Min: -1}, "least deadline"},
		{"min above max", Options{Start: epoch, Min: 2 * time.Second, Max: time.Second}, "least deadline"},
		{"max negative", Options{Start: epoch, Max: -1}, "least deadline"},
		{"max large", Options{Start: epoch, Max: 2 * time.Hour}, "greatest deadline"},
		{"initial negative", Options{Start: epoch, Initial: -1}, "initial"},
		{"initial above max", Options{Start: epoch, Initial: 2 * time.Minute}, "initial"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := New(c.o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one about %q", err, c.want)
			}
		})
	}
}

func TestDefaults(t *testing.T) {
	for _, c := range []struct {
		name        string
		o           Options
		first, fast time.Duration // the deadline at the start, and with a fast upstream
	}{
		{"all", Options{}, time.Minute, 5 * time.Second},
		{"max below the default of min", Options{Max: time.Second}, time.Second, time.Second},
		{"min", Options{Min: 100 * ms}, time.Minute, 100 * ms},
		{"initial", Options{Initial: 4 * time.Second}, 10 * time.Second, 5 * time.Second},
		{"beta", Options{Min: ms, Beta: 50}, time.Minute, 100 * ms},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newEstimator(t, c.o)
			if got := e.Deadline(epoch); got != c.first {
				t.Errorf("first deadline %v, want %v", got, c.first)
			}
			e.Loop(0).Observe(epoch, 2*ms)
			if got := e.Deadline(epoch); got != c.fast {
				t.Errorf("deadline after a fast answer %v, want %v", got, c.fast)
			}
		})
	}
}

// TestPatience: with the defaults no upstream that answers within 5 s is cut,
// whatever came before.
func TestPatience(t *testing.T) {
	e := newEstimator(t, Options{})
	for i := range 2000 {
		now := epoch.Add(time.Duration(i) * 10 * ms)
		e.Loop(0).Observe(now, 5*ms)
		if i%20 == 0 {
			e.Loop(0).Observe(now, 3*time.Second)
		}
		if d := e.Deadline(now); d < 5*time.Second {
			t.Fatalf("deadline %v", d)
		}
	}
}

func TestCensored(t *testing.T) {
	start := func() (*Estimator, time.Time) {
		e := newEstimator(t, Options{Min: ms, Max: time.Minute})
		now := epoch
		for range 20 {
			now = now.Add(time.Second)
			e.Loop(0).Observe(now, 100*ms)
		}
		return e, now.Add(time.Second)
	}
	for _, c := range []struct {
		name     string
		atLeast  time.Duration
		estimate time.Duration
		counted  uint64
	}{
		{"reset at once", 0, 100 * ms, 0},
		{"given up before the estimate", 99 * ms, 100 * ms, 0},
		{"between estimate and deadline", 150 * ms, 115 * ms, 1}, // 100 + 0.1*150
		// 100 + 250/1.5: the gain is 2/3, for the old estimate weighs half an answer.
		{"the deadline", 250 * ms, 266_666_666, 1},
		{"beyond any bound", 10 * time.Hour, 60*time.Second*2/3 + 100*ms/3, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, now := start()
			e.Loop(0).Censored(now, c.atLeast)
			got := e.Stats(now)
			if d := got.Estimate - c.estimate; d < -time.Microsecond || d > time.Microsecond || got.Censored != c.counted {
				t.Errorf("estimate %v and %d counted, want %v and %d", got.Estimate, got.Censored, c.estimate, c.counted)
			}
		})
	}
}

// TestGeneration: however many requests expire at one deadline, they are one
// step; those of a deadline that was corrected since say nothing.
func TestGeneration(t *testing.T) {
	e := newEstimator(t, Options{Min: ms, Max: time.Minute})
	now := epoch
	for range 20 {
		now = now.Add(time.Second)
		e.Loop(0).Observe(now, 100*ms)
	}
	now = now.Add(time.Second)
	for range 1000 {
		e.Loop(0).Censored(now, 250*ms)
	}
	now = now.Add(time.Second)
	if got, want := e.Deadline(now), 667*ms; got > want {
		t.Errorf("deadline %v after one generation, want at most %v", got, want)
	}
	if got := e.Stats(now); got.Censored != 1 || got.Changes != 1 {
		t.Errorf("stats %+v", got)
	}
}

// TestFaster: once an upstream is fast again, the estimate follows; 5 ms is
// reached to within 10 % of the difference in 22 answers.
func TestFaster(t *testing.T) {
	e := newEstimator(t, Options{Min: ms, Max: time.Minute})
	now := epoch
	for range 20 {
		now = now.Add(time.Second)
		e.Loop(0).Observe(now, time.Second)
	}
	for range 22 {
		now = now.Add(time.Second)
		e.Loop(0).Observe(now, 5*ms)
	}
	if got := e.Stats(now).Estimate; got > 105*ms || got < 5*ms {
		t.Errorf("estimate %v", got)
	}
}

func TestAgeing(t *testing.T) {
	warm := func(o Options) (*Estimator, time.Time) {
		o.Min, o.Max, o.Initial = ms, time.Minute, 1010*ms
		e := newEstimator(t, o)
		now := epoch
		for range 300 {
			now = now.Add(ms * 10)
			e.Loop(0).Observe(now, 10*ms)
		}
		return e, now
	}
	for _, c := range []struct {
		name     string
		halfLife time.Duration
		idle     time.Duration
		want     time.Duration
	}{
		{"just now", 0, 0, 10 * ms},
		{"one half-life", 0, time.Minute, 10 * ms},
		{"two", 0, 2 * time.Minute, 510 * ms},
		{"three", 0, 3 * time.Minute, 760 * ms},
		{"for ever", 0, 1e6 * time.Hour, 1010 * ms},
		{"another half-life", time.Second, 2 * time.Second, 510 * ms},
		{"off", -1, 1e6 * time.Hour, 10 * ms},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, now := warm(Options{HalfLife: c.halfLife})
			now = now.Add(c.idle)
			if got := e.Stats(now).Estimate; got != c.want {
				t.Errorf("estimate %v, want %v", got, c.want)
			}
			if got, want := e.Deadline(now), c.want*5/2; got != want {
				t.Errorf("deadline %v, want %v", got, want)
			}
		})
	}
	t.Run("what was learned weighs less", func(t *testing.T) {
		e, now := warm(Options{})
		now = now.Add(20 * time.Minute) // forgotten: the next answers count for more than alpha
		for range 4 {
			now = now.Add(time.Second)
			e.Loop(0).Observe(now, 20*ms)
		}
		// A weight of nearly 0 gives the gains 2/3, 1/2, 1/3, 1/4 or a little less.
		if got := e.Stats(now).Estimate; got > 110*ms {
			t.Errorf("estimate %v, want it near 20ms", got)
		}
	})
	t.Run("a request a minute", func(t *testing.T) {
		e, now := warm(Options{})
		for range 30 {
			now = now.Add(time.Minute)
			e.Loop(0).Observe(now, 10*ms)
		}
		if got := e.Stats(now).Estimate; got != 10*ms {
			t.Errorf("estimate %v, want 10ms", got)
		}
	})
}

// TestFlood: more answers in one cycle than a recorder counts don't spoil the
// sum.
func TestFlood(t *testing.T) {
	e := newEstimator(t, Options{Max: time.Hour, Loops: 2})
	for range 3 * maxPending {
		e.Loop(0).Observe(epoch, time.Hour)
		e.Loop(1).Observe(epoch, time.Hour)
	}
	e.Deadline(epoch.Add(time.Second))
	got := e.Stats(epoch.Add(time.Second))
	if got.Estimate != time.Hour || got.Answers != 2*maxPending+1 {
		t.Errorf("stats %+v", got)
	}
}

// TestConcurrent lets loops observe while others read; its point is the race
// detector, and that no answer is lost or counted twice.
func TestConcurrent(t *testing.T) {
	const loops, each = 4, 3000
	e := newEstimator(t, Options{Min: ms, Max: time.Minute, Loops: loops})
	var wg sync.WaitGroup
	for i := range loops {
		wg.Go(func() {
			r := e.Loop(i)
			for j := range each {
				now := epoch.Add(time.Duration(j) * ms)
				r.Observe(now, 10*ms)
				if d := r.Deadline(now); d != 25*ms && d != time.Minute {
					t.Errorf("deadline %v", d)
					return
				}
				e.Stats(now)
			}
		})
	}
	wg.Wait()
	end := epoch.Add(time.Hour)
	e.Deadline(end)
	if got := e.Stats(end).Answers; got != loops*each {
		t.Errorf("%d answers, want %d", got, loops*each)
	}
}

// FuzzEstimator: whatever comes, the deadline is within its bounds and the
// estimate a number.
func FuzzEstimator(f *testing.F) {
	f.Add(false, []byte("\x00\x10\x20\x30\x40\x50\x60\x70\x80\x90"))
	f.Add(true, []byte("\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(deadlineHolds)
}

// TestDeadlineHolds does the same with sequences that are drawn.
func TestDeadlineHolds(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 13))
		p := make([]byte, 10*(1+r.IntN(100)))
		for i := range p {
			p[i] = byte(r.Uint32())
		}
		deadlineHolds(t, seed%2 == 0, p)
		if t.Failed() {
			t.Fatalf("with seed %d", seed)
		}
	}
}

// deadlineHolds feeds an estimator with samples of any kind, length and time.
func deadlineHolds(t *testing.T, plain bool, p []byte) {
	o := Options{Plain: plain, Loops: 2, Min: 3 * ms, Max: 7 * time.Second}
	e := newEstimator(t, o)
	now := epoch
	for ; len(p) >= 10; p = p[10:] {
		now = now.Add(time.Duration(int64(binary.LittleEndian.Uint64(p)) >> (p[8] & 63))) // may go back
		d := time.Duration(int64(binary.LittleEndian.Uint64(p[1:])) >> (p[9] & 63))
		r := e.Loop(int(p[0] & 1))
		switch p[0] >> 1 & 3 {
		case 0, 1:
			r.Observe(now, d)
		case 2:
			r.Censored(now, d)
		default:
			limit := r.Deadline(now)
			r.Censored(now.Add(limit), limit)
		}
		got := e.Stats(now)
		if got.Deadline < o.Min || got.Deadline > o.Max || e.Deadline(now) < o.Min || e.Deadline(now) > o.Max {
			t.Fatalf("deadline out of bounds: %+v", got)
		}
		if v := e.aged(e.since(now)); !(v >= 0 && v <= float64(o.Max)) {
			t.Fatalf("estimate %v", v)
		}
	}
}
