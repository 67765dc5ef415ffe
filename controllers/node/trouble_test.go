package node_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/node"
)

// load sets the clusters.
func (w *work) load(clusters ...node.Cluster) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clusters = clusters
}

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
