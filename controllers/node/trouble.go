package node

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

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
	// Service is the mean time that a request keeps its place, Estimate that of the
	// adaptive timeout, Deadline the timeout; 0 when there is none.
	Service, Estimate, Deadline time.Duration
}

// Detail is what is asked of a cluster that is not calm.
type Detail struct {
	Counts
	Out []Endpoint
}

// Endpoint is one that gets no requests.
type Endpoint struct {
	Address string
	// Until is when its ejection ends, zero when it is not ejected.
	Until time.Time
	// Why is for operators.
	Why string
}

// calmAfter is how long a cluster must have been calm to be left out: pools fill
// and empty in less than a second, and nobody reads that.
const calmAfter = 10 * time.Second

// The CRD's limits.
const (
	mostTroubles = 128
	mostWhy      = 256
)

// troubles are the clusters that are not calm, or were not a moment ago.
type troubles struct {
	by     map[string]*trouble
	timeOf func(bucket int) time.Duration
}

// trouble is one of them.
type trouble struct {
	since, last time.Time // it was not calm
	seen        time.Time // the last sample that had it
	worst       v1alpha1.PressureState
	worstAt     time.Time
	at          Cluster // as it was when it was worst
	out         []Endpoint
	window      *window // nil when nobody counts
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
func (t *troubles) take(now time.Time, s *Sample) {
	t.timeOf = s.TimeOf
	for c := range s.Clusters {
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
		if s.Detail != nil {
			x.detail(now, c.Name, s.Detail)
		}
	}
	for name, x := range t.by {
		if x.seen != now || now.Sub(x.last) >= calmAfter {
			delete(t.by, name) // it is gone, or calm
		}
	}
}

// detail takes what became of the requests.
func (x *trouble) detail(now time.Time, name string, ask func(string) (Detail, bool)) {
	d, ok := ask(name)
	if !ok {
		return // it went just now
	}
	if x.window == nil {
		x.window = &window{}
	}
	x.window.take(now, d.Counts)
	x.out = d.Out
}

// told tells whether the trouble is told yet: one of the pool is with the second
// sample, which is the first that has figures of what becomes of its requests.
func (x *trouble) told() bool {
	return x.window == nil || x.window.known() || rank(x.worst) == 0
}

// status writes the trouble down.
func (x *trouble) status(timeOf func(int) time.Duration) v1alpha1.ClusterOnNode {
	c := x.at
	s := v1alpha1.ClusterOnNode{
		Name: c.Name, State: x.worst, Since: second(x.since), Active: c.Active, Size: int64(c.Size), Held: c.Held,
		Endpoints: int32(c.Endpoints), Ejected: int32(c.Ejected), Unwell: int32(c.Unwell),
		ServiceMillis: c.Service.Milliseconds(), EstimateMillis: c.Estimate.Milliseconds(), DeadlineMillis: c.Deadline.Milliseconds(),
	}
	if x.window != nil {
		f := x.window.figures(timeOf)
		s.RequestsPerSecond, s.ShedPercent = twoDigits(int64(math.Ceil(f.perSecond))), f.shedPercent()
		s.P50Millis, s.P99Millis = millis(f.p50), millis(f.p99)
	}
	for _, e := range x.out {
		o := v1alpha1.EndpointOnNode{Address: e.Address, Message: clip(e.Why, mostWhy)}
		if !e.Until.IsZero() {
			until := second(e.Until.Add(time.Second - 1)) // not before
			o.Until = &until
		}
		s.Out = append(s.Out, o)
	}
	slices.SortFunc(s.Out, func(a, b v1alpha1.EndpointOnNode) int { return cmp.Compare(a.Address, b.Address) })
	s.Out = s.Out[:min(len(s.Out), v1alpha1.MaxOut)]
	return s
}

// fill writes them down, the worst ones. What differs little from what was told
// stays as it was told: else one cluster's news would write all of them anew.
func (t *troubles) fill(s *v1alpha1.DataPlaneStatus, have []v1alpha1.ClusterOnNode) {
	for name, x := range t.by {
		if !x.told() {
			continue
		}
		c := x.status(t.timeOf)
		i := slices.IndexFunc(have, func(h v1alpha1.ClusterOnNode) bool { return h.Name == name })
		if i >= 0 && !newTrouble(have[i], c) {
			c = have[i]
		}
		s.Clusters = append(s.Clusters, c)
	}
	s.Troubled = int32(len(s.Clusters))
	slices.SortFunc(s.Clusters, func(a, b v1alpha1.ClusterOnNode) int {
		return cmp.Or(cmp.Compare(rank(b.State), rank(a.State)), cmp.Compare(a.Name, b.Name))
	})
	if len(s.Clusters) > 0 {
		s.Worst = worst(&s.Clusters[0])
	}
	s.Clusters = s.Clusters[:min(len(s.Clusters), mostTroubles)]
	slices.SortFunc(s.Clusters, func(a, b v1alpha1.ClusterOnNode) int { return cmp.Compare(a.Name, b.Name) })
}

// worst is what a column has place for.
func worst(c *v1alpha1.ClusterOnNode) string {
	switch out := c.CountOut(); {
	case rank(c.State) == 0 && c.Endpoints == 0:
		return c.Name + ": no endpoint"
	case rank(c.State) == 0 && out > 0:
		return fmt.Sprintf("%s: %d of %d endpoints out", c.Name, out, c.Endpoints)
	}
	return fmt.Sprintf("%s: %s %s", c.Name, c.State, c.Figures())
}

// newTroubles tells whether the clusters differ enough to be told.
func newTroubles(have, want []v1alpha1.ClusterOnNode) bool {
	return !slices.EqualFunc(have, want, func(a, b v1alpha1.ClusterOnNode) bool { return !newTrouble(a, b) })
}

// newTrouble tells whether a cluster differs enough to be told.
func newTrouble(a, b v1alpha1.ClusterOnNode) bool {
	return a.Name != b.Name || a.State != b.State || !a.Since.Equal(&b.Since) || a.Size != b.Size ||
		a.Endpoints != b.Endpoints || a.Ejected != b.Ejected || a.Unwell != b.Unwell || !equality.Semantic.DeepEqual(a.Out, b.Out) ||
		differs(a.Active, b.Active) || differs(a.Held, b.Held) || apart(a.ShedPercent, b.ShedPercent) || apart(a.P99Millis, b.P99Millis)
}

// clip shortens a text.
func clip(text string, most int) string {
	if len(text) > most {
		text = text[:most-3] + "..."
	}
	return strings.ToValidUTF8(text, "")
}
