package node

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/headgate/headgate/api/v1alpha1"
)

// Cluster is an upstream at one moment.
type Cluster struct {
	// Name is "namespace/service:port".
	Name  string
	State v1alpha1.PressureState
	// Active requests of Size places, and those that are held.
	Active, Held int64
	Size         int
	// Endpoints that are ready, and of those the ones that get no requests.
	Endpoints, Ejected, Unwell int
	// Service is the mean time that a request keeps its place, Deadline the
	// adaptive timeout; 0 when there is none.
	Service, Deadline time.Duration
}

// calmAfter is how long a cluster must have been calm to be left out: pools fill
// and empty in less than a second, and nobody reads that.
const calmAfter = 10 * time.Second

// mostTroubles is the CRD's limit.
const mostTroubles = 128

// troubles are the clusters that are not calm, or were not a moment ago.
type troubles struct{ by map[string]*trouble }

// trouble is one of them.
type trouble struct {
	since, last time.Time // it was not calm
	seen        time.Time // the last sample that had it
	worst       v1alpha1.PressureState
	worstAt     time.Time
	at          Cluster // as it was when it was worst
}

// rank orders the states.
func rank(s v1alpha1.PressureState) int {
	return slices.Index([]v1alpha1.PressureState{v1alpha1.PressureCalm, v1alpha1.PressurePacing, v1alpha1.PressureHolding, v1alpha1.PressureShedding}, s)
}

// troubled tells whether an operator should know about the cluster.
func (c *Cluster) troubled() bool {
	return rank(c.State) > 0 || c.Endpoints == 0 || c.Ejected+c.Unwell > 0
}

// take takes a sample.
func (t *troubles) take(now time.Time, clusters iter.Seq[Cluster]) {
	for c := range clusters {
		x := t.by[c.Name]
		if x == nil {
			if !c.troubled() {
				continue
			}
			if t.by == nil {
				t.by = make(map[string]*trouble)
			}
			x = &trouble{since: now}
			t.by[c.Name] = x
		}
		x.seen = now
		if c.troubled() {
			x.last = now
		}
		if x.worst == "" || rank(c.State) >= rank(x.worst) || now.Sub(x.worstAt) >= calmAfter {
			x.worst, x.worstAt, x.at = c.State, now, c
		}
		// Endpoints are as they are; only the pool's state is worth remembering.
		x.at.Endpoints, x.at.Ejected, x.at.Unwell = c.Endpoints, c.Ejected, c.Unwell
	}
	for name, x := range t.by {
		if x.seen != now || now.Sub(x.last) >= calmAfter {
			delete(t.by, name) // it is gone, or calm
		}
	}
}

// fill writes them down, the worst ones.
func (t *troubles) fill(s *v1alpha1.DataPlaneStatus) {
	for name, x := range t.by {
		c := x.at
		s.Clusters = append(s.Clusters, v1alpha1.ClusterOnNode{
			Name: name, State: x.worst, Since: second(x.since), Active: c.Active, Size: int64(c.Size), Held: c.Held,
			Endpoints: int32(c.Endpoints), Ejected: int32(c.Ejected), Unwell: int32(c.Unwell),
			ServiceMillis: c.Service.Milliseconds(), DeadlineMillis: c.Deadline.Milliseconds(),
		})
	}
	s.Troubled = int32(len(s.Clusters))
	slices.SortFunc(s.Clusters, func(a, b v1alpha1.ClusterOnNode) int {
		return cmp.Or(cmp.Compare(rank(b.State), rank(a.State)), cmp.Compare(a.Name, b.Name))
	})
	s.Clusters = s.Clusters[:min(len(s.Clusters), mostTroubles)]
	slices.SortFunc(s.Clusters, func(a, b v1alpha1.ClusterOnNode) int { return cmp.Compare(a.Name, b.Name) })
}

// newTroubles tells whether the clusters differ enough to be told.
func newTroubles(have, want []v1alpha1.ClusterOnNode) bool {
	return !slices.EqualFunc(have, want, func(a, b v1alpha1.ClusterOnNode) bool {
		return a.Name == b.Name && a.State == b.State && a.Endpoints == b.Endpoints && a.Ejected == b.Ejected && a.Unwell == b.Unwell &&
			a.Size == b.Size && !differs(a.Active, b.Active) && !differs(a.Held, b.Held)
	})
}
