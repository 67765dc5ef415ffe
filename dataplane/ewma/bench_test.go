package ewma

import (
	"sync/atomic"
	"testing"
	"time"
)

func TestAllocs(t *testing.T) {
	e := newEstimator(t, Options{Min: ms, Loops: 8})
	now, r := epoch, e.Loop(3)
	if n := testing.AllocsPerRun(1000, func() {
		now = now.Add(100 * time.Microsecond)
		r.Observe(now, 2*ms)
		r.Censored(now, r.Deadline(now))
		e.Stats(now)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkObserve(b *testing.B) {
	e := newEstimator(b, Options{Loops: 8})
	now, r := epoch, e.Loop(0)
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(10 * time.Microsecond) // 100,000 a second: a merge in 200
		r.Observe(now, 2*ms)
	}
}

func BenchmarkObserveMerge(b *testing.B) {
	e := newEstimator(b, Options{Loops: 8})
	now, r := epoch, e.Loop(0)
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(2 * ms) // a merge each time
		r.Observe(now, 2*ms)
	}
}

func BenchmarkDeadline(b *testing.B) {
	e := newEstimator(b, Options{Loops: 8})
	now := epoch
	e.Loop(0).Observe(now, time.Second)
	b.ReportAllocs()
	for b.Loop() {
		e.Deadline(now)
	}
}

func BenchmarkObserveParallel(b *testing.B) {
	e := newEstimator(b, Options{Loops: 64})
	var loop atomic.Int32
	b.RunParallel(func(pb *testing.PB) {
		now, r := epoch, e.Loop(int(loop.Add(1)-1)%64)
		for pb.Next() {
			now = now.Add(10 * time.Microsecond)
			r.Observe(now, 2*ms)
		}
	})
}
