package upstream

import (
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/dataplane/ir"
	"github.com/headgate/headgate/dataplane/metrics"
)

// TestQuietLoops checks that a loop to which no request of a cluster came is left
// alone, and has nothing of it.
func TestQuietLoops(t *testing.T) {
	r := newRig(t, 3, Options{})
	wantQuiet := func(loops ...int) {
		t.Helper()
		for _, i := range loops {
			if l := r.loops[i]; len(l.posted) > 0 || len(l.timers) > 0 {
				t.Errorf("loop %d was given %d functions and %d timers", i, len(l.posted), len(l.timers))
			}
		}
	}
	r.cluster(ir.Pool{Size: 1}, ir.BalanceLeastRequest)
	c := r.cluster(ir.Pool{Size: 2}, ir.BalanceLeastRequest, one)
	wantQuiet(0, 1, 2)

	x := r.open(c, 1, Try{})
	r.serve(r.loops[1].last(), okAnswer)
	x.want(t, "ready", "head", "data", "end")
	kept := r.loops[1].last()
	r.cluster(ir.Pool{Size: 3}, ir.BalanceLeastRequest, two)
	r.loops[1].run()
	if !kept.closed {
		t.Error("the connection to an endpoint that went is still open")
	}
	r.Update(nil)
	r.Retire(nil)
	if len(r.loops[1].posted) == 0 {
		t.Error("the loop that has a part does not hear that the cluster went")
	}
	wantQuiet(0, 2)
}

// busyLoop is a fakeLoop that others may post to while it runs.
type busyLoop struct {
	fakeLoop
	mu sync.Mutex
}

func (l *busyLoop) Post(fn func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fakeLoop.Post(fn)
}

// TestFirstRequestsDuringUpdate checks that no request stays held when the pool
// grows just while its loop makes its part of the cluster.
func TestFirstRequestsDuringUpdate(t *testing.T) {
	for range 100 {
		m, err := metrics.New(metrics.Options{Loops: 2})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Unix(1000, 0)
		loops := [2]*busyLoop{{fakeLoop: fakeLoop{now: start}}, {fakeLoop: fakeLoop{now: start}}}
		r := &rig{t: t, Manager: NewManager(Options{
			Loops: []Loop{loops[0], loops[1]}, Metrics: m, Now: func() time.Time { return start },
		})}
		c := r.cluster(ir.Pool{Size: 1}, ir.BalanceLeastRequest, one)
		var streams [2]caller
		var work sync.WaitGroup
		for i, l := range loops {
			work.Go(func() {
				streams[i].Init(l, &streams[i], nil)
				streams[i].Open(c.Shard(i), Try{})
			})
		}
		work.Go(func() { r.Update([]*ir.Cluster{spec(ir.Pool{Size: 100}, ir.BalanceLeastRequest, one)}) })
		work.Wait()
		for i, l := range loops {
			l.run() // no time passes: nobody looks again by itself
			if len(l.dialed) != 1 {
				t.Fatalf("loop %d has %d connections, want 1: %+v", i, len(l.dialed), c.Stats())
			}
		}
		r.Close()
	}
}
