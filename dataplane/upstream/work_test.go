package upstream

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/dataplane/ir"
)

// The middle of a bucket is an eighth off at most, from the first bucket of its own
// to the last one; the buckets follow each other.
func TestTimeBuckets(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		d := time.Duration(rng.Int64N(1 << rng.IntN(50)))
		got := TimeOf(timeBucket(d))
		off := float64(got-d) / float64(d)
		switch {
		case d < 128*time.Microsecond:
			if got != 64*time.Microsecond {
				t.Fatalf("%v is told as %v", d, got)
			}
		case d >= time.Microsecond<<longestBits:
			if got != time.Microsecond<<longestBits {
				t.Fatalf("%v is told as %v", d, got)
			}
		case off < -0.125 || off > 0.125+1e-9:
			t.Fatalf("%v is told as %v: %.3f off", d, got, off)
		}
	}
	for i := 1; i < TimeBuckets; i++ {
		if TimeOf(i) <= TimeOf(i-1) || timeBucket(TimeOf(i)) != i {
			t.Errorf("bucket %d is %v, which is in bucket %d", i, TimeOf(i), timeBucket(TimeOf(i)))
		}
	}
	if timeBucket(-1) != 0 {
		t.Error("a negative time")
	}
}

// answers are the buckets that count something.
func (w *Work) answers() map[time.Duration]uint32 {
	out := map[time.Duration]uint32{}
	for i, n := range w.Times {
		if n > 0 {
			out[TimeOf(i)] = n
		}
	}
	return out
}

// What got a place, what was shed, how long answers took, and those that never
// came.
func TestWork(t *testing.T) {
	r := newRig(t, 2, Options{Pressure: ir.Pressure{Held: 1, Theta: 1}})
	c := r.cluster(ir.Pool{Size: 2, ResponseTimeout: time.Second}, 0, one)
	if got := c.Work(); got.Placed+got.Shed != 0 || len(got.answers()) != 0 || len(got.Out) != 0 {
		t.Errorf("before the first request: %+v", got)
	}
	r.answerAfter(c, Try{}, 100*time.Millisecond)
	r.open(c, 0, Try{})
	r.open(c, 1, Try{})
	r.loops[1].last().conn.OnConnect()
	held := r.open(c, 0, Try{})
	r.open(c, 0, Try{}).want(t, "fail pool_full")
	r.open(c, 1, Try{}).want(t, "fail pool_full")
	if got := c.Work(); !held.Held() || got.Placed != 3 || got.Shed != 2 {
		t.Errorf("held %v, %+v", held.Held(), got)
	}
	r.loops[1].advance(2 * time.Second) // no answer
	got := c.Work()
	if diff := cmp.Diff(map[time.Duration]uint32{TimeOf(timeBucket(100 * time.Millisecond)): 1, TimeOf(timeBucket(time.Second)): 1}, got.answers()); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}

	before := got.Instance
	r.Update(nil)
	r.Retire(nil)
	if got := r.cluster(ir.Pool{}, 0, one).Work(); got.Instance == before || got.Placed != 0 {
		t.Errorf("another cluster of the name: %+v, the one before was %d", got, before)
	}
}

// Who is out, why, and until when.
func TestOut(t *testing.T) {
	h := newHealth(t, func(c *ir.Cluster) { c.Ejection.Failures, c.Ejection.MaxPercent = 2, 100 }, one, two, three)
	loop := h.loops[0]
	loop.dialErr = errRefused
	for range 6 {
		h.open(h.cluster, 0, Try{})
	}
	for range 3 {
		<-h.events // ejected
	}
	h.endpoint(three).ejected.Store(0)
	h.endpoint(three).declare(errors.New("status 500"))
	<-h.events // unwell
	until := time.Unix(1000, 0).Add(DefaultEjectionPeriod)
	out := h.cluster.Work().Out
	want := []OutEndpoint{
		{Address: one, Ejected: until, Times: 1, Failures: 2, Fault: FaultConnect},
		{Address: two, Ejected: until, Times: 1, Failures: 2, Fault: FaultConnect},
		{Address: three, Unwell: errors.New("status 500")},
	}
	same := cmp.Comparer(func(a, b error) bool { return a == nil && b == nil || a != nil && b != nil && a.Error() == b.Error() })
	if diff := cmp.Diff(want, out, same); diff != "" {
		t.Errorf("out (-want +got):\n%s", diff)
	}
	for f, want := range map[Fault]string{
		FaultNone: "none", FaultConnect: "it can't be connected to", FaultUnreached: "no connection in time", FaultSlow: "no answer in time",
		FaultBroken: "it closed the connection without an answer", FaultProtocol: "its answer is not HTTP", 503: "status 503",
	} {
		if f.String() != want {
			t.Errorf("fault %d is told as %q", f, f)
		}
	}
}

// BenchmarkWork is what counting adds to a request.
func BenchmarkWork(b *testing.B) {
	var w work
	b.ReportAllocs()
	for b.Loop() {
		count(&w.placed)
		w.answered(3 * time.Millisecond)
	}
}
