package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/headgate/headgate/api/v1alpha1"
)

// health tells of the endpoints of the clusters that take no requests.
func (l live) health(clusters []string) (says []string) {
	for _, name := range clusters {
		var none, some []onNode
		for _, c := range l[name] {
			switch {
			case c.Endpoints == 0:
				none = append(none, c)
			case c.Ejected+c.Unwell > 0:
				some = append(some, c)
			}
		}
		if len(none) > 0 {
			full, _, _ := strings.Cut(name, ":")
			namespace, service, _ := strings.Cut(full, "/")
			says = append(says, fmt.Sprintf("cluster %s on %s has no ready endpoint, so requests are answered 503; see kubectl get endpointslices -n %s -l %s=%s",
				name, planes(none), namespace, discoveryv1.LabelServiceName, service))
		}
		if len(some) > 0 {
			says = append(says, out(name, some))
		}
	}
	return says
}

// planes names one node, or counts them.
func planes(nodes []onNode) string {
	if len(nodes) == 1 {
		return nodes[0].plane
	}
	return fmt.Sprintf("%d nodes", len(nodes))
}

// out tells which endpoints of a cluster are out, and why: each of them once, as the
// first node says.
func out(name string, nodes []onNode) string {
	type sick struct {
		v1alpha1.EndpointOnNode
		nodes []onNode
	}
	var list []*sick
	var n, most int32
	all := false
	for _, c := range nodes {
		n, most = max(n, c.CountOut()), max(most, c.Endpoints)
		all = all || c.CountOut() == c.Endpoints
		for _, e := range c.Out {
			i := slices.IndexFunc(list, func(s *sick) bool { return s.Address == e.Address })
			if i < 0 {
				list, i = append(list, &sick{EndpointOnNode: e}), len(list)
			}
			list[i].nodes = append(list[i].nodes, c)
		}
	}
	n = min(max(n, int32(len(list))), most)
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d endpoints of %s %s out", n, most, name, []string{"is", "are"}[min(max(n-1, 0), 1)])
	if len(nodes) == 1 {
		fmt.Fprintf(&b, " on %s", nodes[0].plane)
	}
	for i, s := range list[:min(len(list), mostSaid)] {
		b.WriteString([]string{": ", ", "}[min(i, 1)])
		fmt.Fprintf(&b, "%s (%s", s.Address, s.Message)
		if s.Until != nil {
			fmt.Fprintf(&b, "; back at %s", s.Until.UTC().Format(time.TimeOnly))
		}
		if len(nodes) > 1 {
			fmt.Fprintf(&b, "; on %s", planes(s.nodes))
		}
		b.WriteString(")")
	}
	if more := int(n) - min(len(list), mostSaid); more > 0 && len(list) > 0 {
		fmt.Fprintf(&b, ", and %d more", more)
	}
	if all {
		b.WriteString("; where all are out all are tried")
	}
	b.WriteString("; see the logs of those backends")
	return b.String()
}
