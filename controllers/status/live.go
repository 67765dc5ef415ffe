package status

import (
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

// policy writes the live part of a policy's status; it leaves it out when nobody
// asks the data planes, or there is no target.
func (l live) policy(clusters []string, s *v1alpha1.BackendPolicyStatus) {
	s.State, s.Busiest, s.Since = "", "", nil
	if l == nil || len(clusters) == 0 {
		return
	}
	pressed := l.pressed(clusters)
	if len(pressed) == 0 {
		s.State = v1alpha1.PressureCalm
		return
	}
	worst := pressed[0].nodes[0]
	since := metav1.NewTime(pressed[0].since)
	s.State, s.Since = worst.State, &since
	s.Busiest = fmt.Sprintf("%s on %s: %s", pressed[0].name, worst.plane, worst.Figures())
}
