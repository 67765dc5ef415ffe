package metrics

import (
	"math/bits"
	"time"
)

// buckets are the upper bounds of the duration histogram, from half a
// millisecond, which a local backend answers in, to the default response
// timeout.
var buckets = [...]time.Duration{
	500 * time.Microsecond, time.Millisecond, 2500 * time.Microsecond,
	5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond,
	50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond,
	500 * time.Millisecond, time.Second, 2500 * time.Millisecond,
	5 * time.Second, 10 * time.Second, 30 * time.Second, 60 * time.Second,
}

const (
	firstStatus   = 100
	statusClasses = 5 // 1xx to 5xx
)

// Route counts the requests of one route object.
type Route struct {
	name   string
	shards byLoop[routeShard]
}

// routeShard is a route's part of one loop. Its size is a multiple of a cache
// line, so that two loops never write to the same one.
type routeShard struct {
	durations [len(buckets) + 1]counter // not cumulative; the last is beyond all bounds
	nanos     counter
	codes     [statusClasses]tally[uint16]
	unsent    counter // ended before a status was sent
	odd       counter // statuses outside of 100 to 599
	// To a multiple of a cache line: a tally has two words.
	_ [16 + statusClasses*(16-bits.UintSize/4)]byte
}

func newRoute(name string, loops int) *Route {
	return &Route{name: name, shards: make(byLoop[routeShard], loops)}
}

// Observe counts one request that ended: the status that the client got, and
// the time from the request's first byte to the response's last. Status 0 means
// that the exchange ended before a status was sent. It must run on the loop. It
// allocates when the loop sees the route, or a status on it, for the first time,
// and never after.
func (r *Route) Observe(loop, status int, d time.Duration) {
	s := r.shards.own(loop)
	s.durations[bucket(d)].inc()
	s.nanos.add(uint64(max(d, 0)))
	class := status/100 - 1
	switch {
	case status == 0:
		s.unsent.inc()
	case class < 0 || class >= statusClasses:
		s.odd.inc()
	default:
		s.codes[class].inc(uint16(status), 100, firstStatus)
	}
}

// bucket returns the index of the first bucket that holds d.
func bucket(d time.Duration) int {
	for i := range buckets {
		if d <= buckets[i] {
			return i
		}
	}
	return len(buckets)
}
