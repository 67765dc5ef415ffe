package main

import (
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/headgate/headgate/controllers"
	"github.com/headgate/headgate/dataplane/ir"
)

// settling passes snapshots on to a data plane. When none has come for a while it
// has calm called: what a start or a great change has left behind would stay
// resident for as long as nothing is allocated, which at rest is for long.
type settling struct {
	next controllers.DataPlane
	calm *time.Timer
}

// settleAfter is how long no snapshot has come then.
const settleAfter = 10 * time.Second

func newSettling(next controllers.DataPlane, calm func()) *settling {
	return &settling{next, time.AfterFunc(settleAfter, calm)}
}

// Apply implements [controllers.DataPlane].
func (s *settling) Apply(snapshot *ir.Snapshot) ir.ApplyResult {
	defer s.calm.Reset(settleAfter)
	return s.next.Apply(snapshot)
}

// giveBack collects the garbage and gives the memory back to the system, if it is
// worth a collection.
func giveBack() {
	samples := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(samples)
	for _, s := range samples {
		if s.Value.Kind() != metrics.KindUint64 {
			return // another runtime
		}
	}
	if worthwhile(samples[0].Value.Uint64(), samples[1].Value.Uint64()+samples[2].Value.Uint64()) {
		debug.FreeOSMemory()
	}
}

// worthwhile tells whether a heap holds enough beyond what is live: a third of that,
// where the collector itself waits for as much again. A small heap is left alone.
func worthwhile(live, held uint64) bool {
	const least = 8 << 20
	return held > live+max(live/3, least)
}
