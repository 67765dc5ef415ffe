package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/node"
	"github.com/headgate/headgate/dataplane"
	"github.com/headgate/headgate/dataplane/pressure"
	"github.com/headgate/headgate/dataplane/upstream"
)

// sampler shows the control plane how busy the data plane is. It reads counters;
// the loops don't notice.
type sampler struct{ server *dataplane.Server }

// Sample implements [node.Stats].
func (s sampler) Sample() node.Sample {
	out := node.Sample{Connections: s.server.Connections(), Clusters: s.clusters, Detail: s.detail, TimeOf: upstream.TimeOf}
	for _, l := range s.server.Loops() {
		out.Loops = append(out.Loops, node.Loop{Connections: l.Conns, Busy: time.Duration(l.BusyNanos)})
	}
	return out
}

func (s sampler) clusters(yield func(node.Cluster) bool) {
	states := [...]v1alpha1.PressureState{
		pressure.Calm: v1alpha1.PressureCalm, pressure.Pacing: v1alpha1.PressurePacing,
		pressure.Holding: v1alpha1.PressureHolding, pressure.Shedding: v1alpha1.PressureShedding,
	}
	for name, c := range s.server.Clusters() {
		if !yield(node.Cluster{
			Name: name, State: states[c.State], Active: c.Active, Held: c.Held, Size: c.Size,
			Endpoints: c.Endpoints, Ejected: c.Ejected, Unwell: c.Unwell, Service: c.Service, Estimate: c.Timeout.Estimate, Deadline: c.Timeout.Deadline,
		}) {
			return
		}
	}
}

// detail tells what became of a cluster's requests, and which endpoints get none.
func (s sampler) detail(cluster string) (node.Detail, bool) {
	w, ok := s.server.Work(cluster)
	if !ok {
		return node.Detail{}, false
	}
	d := node.Detail{Counts: node.Counts{Instance: w.Instance, Placed: w.Placed, Shed: w.Shed, Times: w.Times[:]}}
	for _, e := range w.Out {
		d.Out = append(d.Out, node.Endpoint{Address: e.Address, Until: e.Ejected, Why: why(e)})
	}
	return d, true
}

// why tells an operator why an endpoint gets no requests.
func why(e upstream.OutEndpoint) string {
	var reasons []string
	switch {
	case e.Ejected.IsZero():
	case e.Times > 1:
		reasons = append(reasons, fmt.Sprintf("ejected %d times in a row, each time it failed again: %v", e.Times, e.Fault))
	case e.Failures > 1:
		reasons = append(reasons, fmt.Sprintf("%d failed requests in a row, the last one: %v", e.Failures, e.Fault))
	default:
		reasons = append(reasons, fmt.Sprintf("a failed request: %v", e.Fault))
	}
	switch {
	case e.Unwell == nil:
	case e.Checks > 1:
		reasons = append(reasons, fmt.Sprintf("%d failed checks in a row, the last one: %v", e.Checks, e.Unwell))
	default:
		reasons = append(reasons, fmt.Sprintf("a failed check: %v", e.Unwell))
	}
	return strings.Join(reasons, "; ")
}
