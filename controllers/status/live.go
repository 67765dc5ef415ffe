package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/compile"
)

// The conditions of a route's parents that tell how its backends are now. They are
// absent until there is something to tell, and stay from then on.
const (
	// ConditionBackendsHealthy is False when endpoints take no requests.
	ConditionBackendsHealthy = "headgate.dev/BackendsHealthy"
	// ConditionPressure is True when a pool is full or nearly so.
	ConditionPressure = "headgate.dev/Pressure"
)

// livePace is the least time between two writes of an object when nothing but the
// state of its backends has changed.
const livePace = 10 * time.Second

// live is how the backends are now: the clusters that are not calm, as the data
// planes of all nodes tell, by name.
type live map[string][]onNode

// onNode is a cluster on a node.
type onNode struct {
	plane string
	v1alpha1.ClusterOnNode
}

// lively gathers what the data planes tell.
func (k *Kube) lively(in *compile.Input) live {
	if k.o.DataPlane == "" {
		return nil
	}
	out := make(live)
	for _, p := range in.DataPlanes {
		if p.Status.ControllerName != k.o.ControllerName || !compile.Alive(p, in.Nodes) {
			continue
		}
		for _, c := range p.Status.Clusters {
			out[c.Name] = append(out[c.Name], onNode{p.Name, c})
		}
	}
	return out
}

// states are those that are told, the worst one first.
var states = []v1alpha1.PressureState{v1alpha1.PressureShedding, v1alpha1.PressureHolding, v1alpha1.PressurePacing}

// pressure tells of the pools of the clusters: the worst state, "" when all are
// calm, and what is to be said of those that are not.
func (l live) pressure(clusters []string) (worst v1alpha1.PressureState, says []string) {
	var pressed []onNode
	for _, name := range clusters {
		for _, c := range l[name] {
			if slices.Contains(states, c.State) {
				pressed = append(pressed, c)
			}
		}
	}
	// The worst ones first: the others may be cut off.
	slices.SortStableFunc(pressed, func(a, b onNode) int {
		return cmp.Compare(slices.Index(states, a.State), slices.Index(states, b.State))
	})
	for _, c := range pressed {
		says = append(says, c.pressure())
	}
	if len(pressed) > 0 {
		worst = pressed[0].State
	}
	return worst, says
}

// pressure says what an operator can do about the pool.
func (c onNode) pressure() string {
	var b strings.Builder
	fmt.Fprintf(&b, "cluster %s on %s: %d of %d connections busy since %s", c.Name, c.plane, c.Active, c.Size, c.Since.UTC().Format(time.TimeOnly))
	if c.Held > 0 {
		fmt.Fprintf(&b, ", %d requests held", c.Held)
	}
	switch c.State {
	case v1alpha1.PressureShedding:
		b.WriteString(", others are answered 503")
	case v1alpha1.PressurePacing:
		b.WriteString(", the last places are paced")
	}
	b.WriteString("; raise pool.size in a BackendPolicy if the backend can do more at once, else add endpoints")
	if c.ServiceMillis > 0 {
		fmt.Fprintf(&b, ": a request keeps its place for %d ms", c.ServiceMillis)
	}
	return b.String()
}

// health tells of the endpoints of the clusters that take no requests.
func (l live) health(clusters []string) (says []string) {
	for _, name := range clusters {
		for _, c := range l[name] {
			switch out := c.Ejected + c.Unwell; {
			case c.Endpoints == 0:
				says = append(says, fmt.Sprintf("cluster %s on %s has no ready endpoint, so requests are answered 503; see the EndpointSlices of its Service", name, c.plane))
			case out > 0:
				says = append(says, fmt.Sprintf("cluster %s on %s: %d of %d endpoints get no requests (%d failed requests in a row, %d failed checks); see the log there for which",
					name, c.plane, min(out, c.Endpoints), c.Endpoints, c.Ejected, c.Unwell))
			}
		}
	}
	return says
}

// mostSaid bounds how much one message spells out: a thousand routes may share a
// Service that is in trouble on a hundred nodes.
const mostSaid = 8

// joined makes a message of what is to be said.
func joined(says []string) string {
	if more := len(says) - mostSaid; more > 0 {
		return fmt.Sprintf("%s. And %d more", strings.Join(says[:mostSaid], ". "), more)
	}
	return strings.Join(says, ". ")
}

// conditions are those of a route with the clusters.
func (l live) conditions(clusters []string, generation int64) []metav1.Condition {
	condition := func(kind string, is metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: is, Reason: reason, ObservedGeneration: generation, Message: message}
	}
	well := condition(ConditionBackendsHealthy, metav1.ConditionTrue, "Healthy", "All ready endpoints get requests")
	if says := l.health(clusters); len(says) > 0 {
		well = condition(ConditionBackendsHealthy, metav1.ConditionFalse, "EndpointsOut", joined(says))
	}
	calm := condition(ConditionPressure, metav1.ConditionFalse, string(v1alpha1.PressureCalm), "The pools have places")
	if worst, says := l.pressure(clusters); worst != "" {
		calm = condition(ConditionPressure, metav1.ConditionTrue, string(worst), joined(says))
	}
	return []metav1.Condition{well, calm}
}

// troubled tells whether a condition tells of something.
func troubled(c metav1.Condition) bool {
	return (c.Type == ConditionBackendsHealthy) == (c.Status == metav1.ConditionFalse)
}

// digest is a text that differs when something else is to be told. It is "" when
// there is nothing.
func (l live) digest(clusters []string) string {
	if len(l) == 0 {
		return ""
	}
	_, pressure := l.pressure(clusters)
	return strings.Join(append(l.health(clusters), pressure...), "\n")
}

// parents adds the live conditions to those of a route's report, where there is
// something to tell, or was.
func (l live) parents(r *compile.RouteReport, have []gatewayv1.RouteParentStatus, controller gatewayv1.GatewayController) []gatewayv1.RouteParentStatus {
	if l == nil {
		return r.Parents // nobody asks the data planes
	}
	out := slices.Clone(r.Parents)
	conditions := l.conditions(r.Clusters, r.Generation)
	for i, p := range out {
		var was []metav1.Condition
		for _, h := range have {
			if h.ControllerName == controller && equalParent(h.ParentRef, p.ParentRef) {
				was = h.Conditions
			}
		}
		list := slices.Clone(p.Conditions)
		for _, c := range conditions {
			if indexOf(was, c.Type) >= 0 || troubled(c) {
				list = append(list, c)
			}
		}
		out[i].Conditions = list
	}
	return out
}

// targets are the clusters of a policy's targets.
func targets(p *v1alpha1.BackendPolicy, services []*corev1.Service) []string {
	var out []string
	for _, t := range p.Spec.TargetRefs {
		svc := find(services, p.Namespace, string(t.Name))
		if svc == nil {
			continue
		}
		for _, port := range svc.Spec.Ports {
			name := fmt.Sprintf("%s/%s:%d", p.Namespace, t.Name, port.Port)
			if (t.SectionName == nil || string(*t.SectionName) == port.Name) && !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

// policy writes the live part of a policy's status: absent while all has always
// been calm.
func (l live) policy(clusters []string, s *v1alpha1.BackendPolicyStatus) {
	worst, _ := l.pressure(clusters)
	if worst == "" {
		if s.State != "" {
			s.State, s.Busiest = v1alpha1.PressureCalm, ""
		}
		return
	}
	s.State = worst
	for _, name := range clusters {
		for _, c := range l[name] {
			if c.State == worst {
				s.Busiest = fmt.Sprintf("%s on %s: %d/%d", name, c.plane, c.Active, c.Size)
				return
			}
		}
	}
}
