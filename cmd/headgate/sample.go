package main

import (
	"time"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/node"
	"github.com/headgate/headgate/dataplane"
	"github.com/headgate/headgate/dataplane/pressure"
)

// sampler shows the control plane how busy the data plane is. It reads counters;
// the loops don't notice.
type sampler struct{ server *dataplane.Server }

// Sample implements [node.Stats].
func (s sampler) Sample() node.Sample {
	out := node.Sample{Connections: s.server.Connections(), Clusters: s.clusters}
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
			Endpoints: c.Endpoints, Ejected: c.Ejected, Unwell: c.Unwell, Service: c.Service, Deadline: c.Timeout.Deadline,
		}) {
			return
		}
	}
}
