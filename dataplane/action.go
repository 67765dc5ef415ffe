package dataplane

import (
	"fmt"
	"math/bits"
	"sort"

	"github.com/headgate/headgate/dataplane/filter"
	"github.com/headgate/headgate/dataplane/ir"
	"github.com/headgate/headgate/dataplane/metrics"
	"github.com/headgate/headgate/dataplane/upstream"
)

// action is what a rule does, compiled: the value that the table binds to it.
type action struct {
	route    string
	listener string
	metrics  *metrics.Route
	filters  filter.Chain
	timeouts ir.Timeouts
	backends []backend
	turns    []turn // by loop; none where there is no choice
}

// backend is one share of a rule's requests.
type backend struct {
	cluster *upstream.Cluster // nil when the reference is invalid
	filters filter.Chain
	sum     uint64 // of the weights up to and with this one
}

// turn is a loop's position in the sequence of picks, on a cache line of its
// own.
type turn struct {
	n uint64
	_ [56]byte
}

// newAction compiles a rule. The clusters that it names must exist.
func newAction(s *Server, l *ir.Listener, r *ir.Route, rule *ir.Rule) (*action, error) {
	chain, err := filter.Compile(rule.Filters)
	if err != nil {
		return nil, fmt.Errorf("route %s, rule %d: %w", r.Name, rule.Index, err)
	}
	a := &action{
		route:    r.Name,
		listener: l.Name,
		metrics:  s.opts.Metrics.Route(r.Name),
		filters:  chain,
		timeouts: rule.Timeouts,
	}
	var sum uint64
	for _, b := range rule.Backends {
		if b.Weight == 0 {
			continue // never gets a request
		}
		sum += uint64(b.Weight)
		chain, err := filter.Compile(b.Filters)
		if err != nil {
			return nil, fmt.Errorf("route %s, rule %d: %w", r.Name, rule.Index, err)
		}
		a.backends = append(a.backends, backend{cluster: s.clusters.Cluster(b.Cluster), filters: chain, sum: sum})
	}
	if len(a.backends) > 1 {
		a.turns = make([]turn, len(s.workers))
	}
	return a, nil
}

// weyl is 2^64 divided by the golden ratio; see upstream's balancer.
const weyl = 0x9E3779B97F4A7C15

// pick returns the backend of the next request on a loop, nil when no backend
// has a weight. Over any run of requests the shares are as close to the weights
// as they can be.
func (a *action) pick(loop int) *backend {
	n := len(a.backends)
	if n <= 1 {
		if n == 0 {
			return nil
		}
		return &a.backends[0]
	}
	t := &a.turns[loop]
	t.n += weyl
	at, _ := bits.Mul64(t.n, a.backends[n-1].sum)
	return &a.backends[sort.Search(n, func(i int) bool { return a.backends[i].sum > at })]
}
