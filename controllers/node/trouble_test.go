package node_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/node"
)

// load sets the clusters.
func (w *work) load(clusters ...node.Cluster) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clusters = clusters
}

// traffic is what becomes of the requests to clusters: each time that one is looked
// at, some more of them.
type traffic struct {
	mu           sync.Mutex
	placed, shed uint64
	bucket       int // of the answers
	out          []node.Endpoint
	counts       map[string]*node.Counts
	gone         bool
}

func (f *traffic) detail(cluster string) (node.Detail, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.counts[cluster]
	if c == nil {
		c = &node.Counts{}
		if f.counts == nil {
			f.counts = make(map[string]*node.Counts)
		}
		f.counts[cluster] = c
	}
	c.Placed, c.Shed = c.Placed+f.placed, c.Shed+f.shed
	times := make([]uint32, 100)
	copy(times, c.Times)
	times[f.bucket] += uint32(f.placed)
	c.Times = times
	return node.Detail{Counts: *c, Out: f.out}, !f.gone
}

// set changes what the next look finds.
func (f *traffic) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// With a trouble is told what becomes of the requests: from the second sample on,
// and anew only when it is something else.
func TestTroubleFigures(t *testing.T) {
	run(t, func(s *server, w *work, r *node.Reporter) {
		calm := node.Cluster{Name: "default/web:80", State: v1alpha1.PressureCalm, Size: 50, Active: 10, Endpoints: 3}
		shed := calm
		shed.State, shed.Active, shed.Held = v1alpha1.PressureShedding, 50, 9
		shed.Service, shed.Estimate, shed.Deadline = 900*time.Millisecond, 800*time.Millisecond, 2*time.Second
		f := &traffic{placed: 96, shed: 4, bucket: 81}
		w.detail = f.detail
		w.load(calm)
		r.Observe(&node.Observation{Hash: "a", Gateways: gateways(1)})
		wait(time.Minute)
		f.set(func() {
			if len(f.counts) != 0 {
				t.Error("a calm cluster was looked at")
			}
		})
		s.took()

		w.load(shed)
		wait(2 * time.Second)
		same(t, "the first sample", s.took())
		wait(2 * time.Second)
		same(t, "the second sample", s.took(), "patch")
		want := v1alpha1.ClusterOnNode{
			Name: "default/web:80", State: v1alpha1.PressureShedding, Active: 50, Size: 50, Held: 9, Endpoints: 3,
			ServiceMillis: 900, EstimateMillis: 800, DeadlineMillis: 2000, RequestsPerSecond: 50, ShedPercent: 4, P50Millis: 810, P99Millis: 810,
		}
		st := s.now().Status
		since := st.Clusters[0].Since
		want.Since = since
		if diff := cmp.Diff([]v1alpha1.ClusterOnNode{want}, st.Clusters); diff != "" {
			t.Errorf("it says (-want +got):\n%s", diff)
		}
		if st.Worst != "default/web:80: Shedding 50/50, 4 % shed, p99 810 ms" {
			t.Errorf("the worst is %q", st.Worst)
		}

		// A little more, a little less: nothing is written.
		for i := range 30 {
			f.set(func() { f.shed, f.bucket = uint64(3+i%3), 75+i%10 })
			shed.Active = int64(47 + i%4)
			w.load(shed)
			wait(2 * time.Second)
		}
		same(t, "a minute of about the same", s.took())
		// Another cluster's news leave this one's as they are.
		other := shed
		other.Name = "default/api:80"
		w.load(shed, other)
		wait(10 * time.Second)
		same(t, "another one", s.took(), "patch")
		if c := s.now().Status.Clusters; len(c) != 2 || !cmp.Equal(c[1], want) {
			t.Errorf("it says %+v", c)
		}

		// Twice as fast, and then nothing is answered.
		s.took()
		f.set(func() { f.bucket = 40 })
		wait(30 * time.Second)
		if c := s.now().Status.Clusters; c[0].P99Millis != 400 || c[1].P99Millis != 400 {
			t.Errorf("faster: %+v", c)
		}
		if n := len(s.took()); n > 3 {
			t.Errorf("%d writes for one change", n)
		}
		f.set(func() { f.placed = 0 })
		wait(30 * time.Second)
		if c := s.now().Status.Clusters; c[0].P99Millis != 0 || c[0].ShedPercent != 100 {
			t.Errorf("no answer: %+v", c)
		}
		// One that goes between the two looks is told by what is known.
		f.set(func() { f.gone = true })
		wait(20 * time.Second)
		f.set(func() { f.shed, f.gone = 0, false })
		wait(30 * time.Second)
		if c := s.now().Status.Clusters; c[0].ShedPercent != 0 || c[0].RequestsPerSecond != 0 {
			t.Errorf("no request: %+v", c)
		}
	})
}

// Endpoints that are out are named, and told at once.
func TestTroubleEndpoints(t *testing.T) {
	run(t, func(s *server, w *work, r *node.Reporter) {
		f := &traffic{}
		w.detail = f.detail
		until := time.Now().Add(10*time.Second + 1)
		f.out = append(f.out, node.Endpoint{Address: "10.0.0.9:80", Why: strings.Repeat("x", 255) + "é"}, node.Endpoint{Address: "10.0.0.1:80", Until: until, Why: "it failed"})
		w.load(node.Cluster{Name: "default/web:80", State: v1alpha1.PressureCalm, Size: 50, Endpoints: 3, Ejected: 1, Unwell: 1})
		r.Observe(&node.Observation{Hash: "a", Gateways: gateways(1)})
		wait(0)
		st := s.now().Status
		out := st.Clusters[0].Out
		if len(out) != 2 || out[0].Address != "10.0.0.1:80" || out[0].Message != "it failed" || out[0].Until.Before(ptr(metav1.NewTime(until))) ||
			out[0].Until.Sub(until) > time.Second || out[1].Until != nil || len(out[1].Message) != 256 {
			t.Errorf("it says %+v", out)
		}
		if st.Worst != "default/web:80: 2 of 3 endpoints out" {
			t.Errorf("the worst is %q", st.Worst)
		}
		s.took()
		wait(time.Minute)
		same(t, "nothing new", s.took())
		var many []node.Endpoint
		for i := range 20 {
			many = append(many, node.Endpoint{Address: fmt.Sprintf("10.0.0.%d:80", i), Why: "it failed"})
		}
		f.set(func() { f.out = many })
		wait(10 * time.Second)
		same(t, "others", s.took(), "patch")
		if out := s.now().Status.Clusters[0].Out; len(out) != v1alpha1.MaxOut {
			t.Errorf("%d are named", len(out))
		}
		w.load(node.Cluster{Name: "default/web:80", State: v1alpha1.PressureCalm, Size: 50})
		wait(10 * time.Second)
		if st := s.now().Status; st.Worst != "default/web:80: no endpoint" {
			t.Errorf("the worst is %q", st.Worst)
		}
	})
}

func ptr[T any](v T) *T { return &v }

// A cluster is told while it is not calm and for 10 s more, at its worst; what is
// calm, or gone, is not.
func TestTroubles(t *testing.T) {
	run(t, func(s *server, w *work, r *node.Reporter) {
		calm := node.Cluster{Name: "default/web:80", State: v1alpha1.PressureCalm, Size: 50, Active: 10, Endpoints: 2}
		shed, paced := calm, calm
		shed.State, shed.Active, shed.Held = v1alpha1.PressureShedding, 50, 9
		paced.State, paced.Active = v1alpha1.PressurePacing, 45
		w.load(calm)
		r.Observe(&node.Observation{Hash: "a", Gateways: gateways(1)})
		wait(time.Minute)
		same(t, "calm", s.took(), "create", "patch")

		w.load(shed)
		wait(3 * time.Second)
		w.load(calm)
		wait(time.Second)
		if c := s.now().Status.Clusters; len(c) != 1 || c[0].State != v1alpha1.PressureShedding || c[0].Active != 50 || c[0].Held != 9 {
			t.Errorf("after a burst it says %+v", c)
		}
		wait(time.Minute)
		if st := s.now().Status; len(st.Clusters) != 0 || st.Troubled != 0 {
			t.Errorf("after a minute it says %+v", st.Clusters)
		}
		same(t, "a burst", s.took(), "patch", "patch")

		// Once more, and on and on: what is told is the worst of the last seconds.
		since := time.Now()
		w.load(shed)
		wait(4 * time.Second)
		w.load(paced)
		wait(30 * time.Second)
		if c := s.now().Status.Clusters; len(c) != 1 || c[0].State != v1alpha1.PressurePacing || c[0].Since.Sub(since) > 3*time.Second {
			t.Errorf("it says %+v", c)
		}
		if n := len(s.took()); n > 3 {
			t.Errorf("%d writes in half a minute", n)
		}
		ejected := calm
		ejected.Ejected = 1
		w.load(ejected)
		wait(time.Minute)
		if c := s.now().Status.Clusters; len(c) != 1 || c[0].State != v1alpha1.PressureCalm || c[0].Ejected != 1 {
			t.Errorf("it says %+v", c)
		}
		w.load()
		wait(time.Minute)
		if c := s.now().Status.Clusters; len(c) != 0 {
			t.Errorf("a cluster that is gone is told: %+v", c)
		}

		var many []node.Cluster
		for i := range 200 {
			c := paced
			c.Name = fmt.Sprintf("default/web-%03d:80", i)
			if i >= 100 {
				c.State = v1alpha1.PressureShedding
			}
			many = append(many, c)
		}
		w.load(many...)
		wait(time.Minute)
		st := s.now().Status
		worst := 0
		for _, c := range st.Clusters {
			if c.State == v1alpha1.PressureShedding {
				worst++
			}
		}
		if st.Troubled != 200 || len(st.Clusters) != 128 || worst != 100 {
			t.Errorf("%d troubled, %d told, %d of the worst", st.Troubled, len(st.Clusters), worst)
		}
	})
}
