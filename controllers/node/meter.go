package node

import (
	"iter"
	"time"

	"github.com/headgate/headgate/api/v1alpha1"
)

// Stats is what the data plane says of its work. Sample is called every few
// seconds; it must not touch the loops.
type Stats interface {
	Sample() Sample
}

// Sample is the data plane's work at one moment.
type Sample struct {
	// Connections is the number of client connections.
	Connections int64
	// Loops are the event loops, in the order of their indexes.
	Loops []Loop
	// Clusters are the upstreams, read one by one: there may be thousands, all
	// calm.
	Clusters iter.Seq[Cluster]
	// Detail tells more of a cluster, false when it is gone; it is asked for those
	// that are not calm. May be nil.
	Detail func(cluster string) (Detail, bool)
	// TimeOf returns what the answers in a bucket of [Counts] took.
	TimeOf func(bucket int) time.Duration
}

// Loop is one event loop.
type Loop struct {
	// Connections are those of clients and of backends.
	Connections int64
	// Busy is the time in which it worked, since it began.
	Busy time.Duration
}

// meter turns samples into shares.
type meter struct {
	at          time.Time
	last        Sample
	busy        []int32 // percent, by loop
	busyPercent int32
	troubles    troubles
}

// take takes a sample.
func (m *meter) take(now time.Time, s Sample) {
	if wall := now.Sub(m.at); !m.at.IsZero() && wall > 0 && len(s.Loops) == len(m.last.Loops) {
		m.busy = make([]int32, len(s.Loops))
		var all time.Duration
		for i, l := range s.Loops {
			d := l.Busy - m.last.Loops[i].Busy
			all += d
			m.busy[i] = percent(d, wall)
		}
		if n := len(s.Loops); n > 0 {
			m.busyPercent = percent(all, wall*time.Duration(n))
		}
	}
	m.at, m.last = now, s
	if s.Clusters != nil {
		m.troubles.take(now, &s)
	}
}

// percent returns a share, rounded to 5 %, so that a trickle of requests does not
// change it all the time.
func percent(part, whole time.Duration) int32 {
	p := int32((100*part + whole/2) / whole)
	return min(max((p+2)/5*5, 0), 100)
}

// fill writes the latest figures down; have is what was told last.
func (m *meter) fill(s, have *v1alpha1.DataPlaneStatus) {
	s.Connections, s.BusyPercent = m.last.Connections, m.busyPercent
	for i, l := range m.last.Loops {
		loop := v1alpha1.LoopStatus{Index: int32(i), Connections: l.Connections}
		if i < len(m.busy) {
			loop.BusyPercent = m.busy[i]
		}
		s.Loops = append(s.Loops, loop)
	}
	m.troubles.fill(s, have.Clusters)
}

// news tells whether figures differ enough to be told: the snapshot, a share by
// its steps, connections by more than a tenth.
func (m *meter) news(have, want *v1alpha1.DataPlaneStatus) bool {
	if have.Snapshot.Hash != want.Snapshot.Hash || have.BusyPercent != want.BusyPercent ||
		differs(have.Connections, want.Connections) || len(have.Loops) != len(want.Loops) {
		return true
	}
	if newTroubles(have.Clusters, want.Clusters) || have.Troubled != want.Troubled {
		return true
	}
	for i, l := range want.Loops {
		if have.Loops[i].BusyPercent != l.BusyPercent || differs(have.Loops[i].Connections, l.Connections) {
			return true
		}
	}
	return false
}

// differs tells whether two counts differ by more than a tenth of the larger one.
func differs(a, b int64) bool {
	d := a - b
	if d < 0 {
		d = -d
	}
	return 10*d > max(a, b)
}
