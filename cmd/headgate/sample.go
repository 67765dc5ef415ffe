package main

import (
	"time"

	"github.com/headgate/headgate/controllers/node"
	"github.com/headgate/headgate/dataplane"
)

// sampler shows the control plane how busy the data plane is. It reads counters;
// the loops don't notice.
type sampler struct{ server *dataplane.Server }

// Sample implements [node.Stats].
func (s sampler) Sample() node.Sample {
	out := node.Sample{Connections: s.server.Connections()}
	for _, l := range s.server.Loops() {
		out.Loops = append(out.Loops, node.Loop{Connections: l.Conns, Busy: time.Duration(l.BusyNanos)})
	}
	return out
}
