package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate/api/v1alpha1"
)

// pool is the pool of a cluster on the nodes where it is not calm.
type pool struct {
	name  string
	nodes []onNode // the worst one first
	since time.Time

	active, size, held int64
	shed               int32 // percent of the requests to all of them
	requests           bool  // there were some
	slowest            onNode
}

// pressed returns the pools of the clusters that are not calm, the worst one first.
func (l live) pressed(clusters []string) []pool {
	var out []pool
	for _, name := range clusters {
		var nodes []onNode
		for _, c := range l[name] {
			if slices.Contains(states, c.State) {
				nodes = append(nodes, c)
			}
		}
		if len(nodes) > 0 {
			out = append(out, newPool(name, nodes))
		}
	}
	slices.SortStableFunc(out, func(a, b pool) int { return worse(a.nodes[0], b.nodes[0]) })
	return out
}

// worse orders by state, then by the share that is shed.
func worse(a, b onNode) int {
	return cmp.Or(cmp.Compare(slices.Index(states, a.State), slices.Index(states, b.State)), cmp.Compare(b.ShedPercent, a.ShedPercent))
}

func newPool(name string, nodes []onNode) pool {
	slices.SortStableFunc(nodes, worse)
	p := pool{name: name, nodes: nodes, since: nodes[0].Since.Time, slowest: nodes[0], shed: nodes[0].ShedPercent}
	var requests, shed int64
	for _, c := range nodes {
		p.active, p.size, p.held = p.active+c.Active, p.size+c.Size, p.held+c.Held
		if c.Since.Time.Before(p.since) {
			p.since = c.Since.Time
		}
		if c.P99Millis > p.slowest.P99Millis {
			p.slowest = c
		}
		// A node with more requests counts for more.
		requests, shed = requests+c.RequestsPerSecond, shed+c.RequestsPerSecond*int64(c.ShedPercent)
	}
	p.requests = requests > 0
	if requests > 0 {
		p.shed = int32((shed + requests/2) / requests)
		if shed > 0 {
			p.shed = max(p.shed, 1)
		}
	}
	return p
}

// pressure tells of the pools of the clusters: the worst state, "" when all are
// calm, and what is to be said of those that are not.
func (l live) pressure(clusters []string) (worst v1alpha1.PressureState, says []string) {
	// The worst ones come first: the others may be cut off.
	for _, p := range l.pressed(clusters) {
		if worst == "" {
			worst = p.nodes[0].State
		}
		says = append(says, p.says())
	}
	return worst, says
}

// says is what is so and what an operator can do about it.
func (p *pool) says() string {
	var b strings.Builder
	fmt.Fprintf(&b, "cluster %s on %s: %d of %d connections busy since %s", p.name, planes(p.nodes), p.active, p.size, p.since.UTC().Format(time.TimeOnly))
	if p.held > 0 {
		fmt.Fprintf(&b, ", %d requests held", p.held)
	}
	switch {
	case p.shed > 0:
		fmt.Fprintf(&b, ", %d %% of requests shed", p.shed)
	case p.nodes[0].State == v1alpha1.PressureShedding:
		b.WriteString(", others are answered 503")
	case p.nodes[0].State == v1alpha1.PressurePacing:
		b.WriteString(", the last places are paced")
	}
	if len(p.nodes) > 1 {
		fmt.Fprintf(&b, " (worst on %s: %s)", p.nodes[0].plane, p.nodes[0].Figures())
	}
	b.WriteString("; ")
	b.WriteString(p.advice())
	return b.String()
}

// advice differs by what keeps the places busy.
func (p *pool) advice() string {
	first, slow, where := p.nodes[0], p.slowest.P99Millis, ""
	if len(p.nodes) > 1 {
		where = " on " + p.slowest.plane
	}
	raise := "raise pool.size in a BackendPolicy if the backend can do more at once"
	out := slices.ContainsFunc(p.nodes, func(c onNode) bool { return c.Ejected+c.Unwell > 0 })
	switch {
	case out:
		raise = "bring the endpoints back that are out, see " + ConditionBackendsHealthy + "; then " + raise
	case slow == 0 && p.requests:
		return "no answer came in the last seconds: see whether its endpoints hang"
	}
	switch {
	case slow > 0 && first.ServiceMillis > 3*slow:
		return fmt.Sprintf("answers that come begin within p99 = %d ms%s, but a request keeps its place for %d ms, for a long body, a stream, or an answer that does not come: raise pool.size in a BackendPolicy, or see to those",
			slow, where, first.ServiceMillis)
	case slow > 0:
		return fmt.Sprintf("%s, else add endpoints or fix p99 = %d ms%s", raise, slow, where)
	case first.ServiceMillis > 0:
		return fmt.Sprintf("%s, else add endpoints: a request keeps its place for %d ms", raise, first.ServiceMillis)
	}
	return raise + ", else add endpoints"
}
