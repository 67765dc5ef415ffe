package compile

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/api/v1alpha1"
)

// ListenerFault is a listener that this process does not serve as it should be.
type ListenerFault struct {
	Name gatewayv1.SectionName
	// Served tells whether it is served on some of its addresses.
	Served bool
	// Reason is that of the condition, or [ReasonNoAddress].
	Reason, Message string
}

// ReasonNoAddress says that a node has none of a listener's addresses: it is
// enough that another one has them.
const ReasonNoAddress = "AddressNotUsable"

// Faults returns the listeners that the data plane of this process does not serve
// as they should be.
func (r *GatewayReport) Faults() []ListenerFault {
	if r.intended == nil {
		return nil
	}
	var out []ListenerFault
	for i, l := range r.Status.Listeners {
		is, should := conditionOf(l.Conditions, conditionProgrammed), conditionOf(r.intended.Status.Listeners[i].Conditions, conditionProgrammed)
		if is.Status == should.Status {
			continue
		}
		accepted := conditionOf(l.Conditions, string(gatewayv1.ListenerConditionAccepted))
		reason := is.Reason
		if reason == string(gatewayv1.ListenerReasonPending) &&
			conditionOf(r.Status.Conditions, conditionProgrammed).Reason != string(gatewayv1.GatewayReasonPending) {
			reason = ReasonNoAddress // and not a data plane that took nothing
		}
		out = append(out, ListenerFault{
			Name: l.Name, Reason: reason, Message: is.Message,
			Served: accepted.Status == metav1.ConditionTrue && is.Reason == string(gatewayv1.ListenerReasonPortUnavailable),
		})
	}
	return out
}

// Behind returns the other data planes that serve an earlier generation of the
// Gateway than this process, sorted; only after [Report.Across].
func (r *GatewayReport) Behind() []string { return r.behind }

const conditionProgrammed = string(gatewayv1.GatewayConditionProgrammed)

// conditionOf returns the condition of a type, or an empty one.
func conditionOf(cs []metav1.Condition, kind string) metav1.Condition {
	for _, c := range cs {
		if c.Type == kind {
			return c
		}
	}
	return metav1.Condition{}
}

// Across returns the report as it holds on all nodes: this process is the data
// plane named self, and the others say in planes what they serve. A listener is
// Programmed when every one serves it; a Gateway is when every one has applied its
// generation. Those whose Node is not ready, or gone, don't count. The receiver
// stays as it is.
func (r *Report) Across(self string, controller gatewayv1.GatewayController, planes []*v1alpha1.DataPlane, nodes []*corev1.Node) *Report {
	var others []*v1alpha1.DataPlane
	for _, p := range planes {
		if p.Name != self && p.Status.ControllerName == controller && Alive(p, nodes) {
			others = append(others, p)
		}
	}
	if len(others) == 0 {
		return r
	}
	out := *r
	if classes := r.restartsAcross(self, others); classes != nil {
		out.Classes = classes
	}
	out.Gateways = slices.Clone(r.Gateways)
	for i, g := range r.Gateways {
		if now := g.across(self, others); now != nil {
			out.Gateways[i] = now
		}
	}
	return &out
}

// Alive tells whether the Node of a data plane is ready. One outside of a cluster
// removes its object when it ends.
func Alive(p *v1alpha1.DataPlane, nodes []*corev1.Node) bool {
	if p.Status.NodeName == "" {
		return true
	}
	for _, n := range nodes {
		if n.Name != p.Status.NodeName {
			continue
		}
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady {
				return c.Status == corev1.ConditionTrue
			}
		}
		return true
	}
	return false
}

// across returns the Gateway's report as it holds on all nodes, nil when that is
// the receiver.
func (r *GatewayReport) across(self string, others []*v1alpha1.DataPlane) *GatewayReport {
	if !slices.ContainsFunc(r.sockets, func(names []string) bool { return len(names) > 0 }) {
		return nil // not served anywhere, and that is said
	}
	a := spread{gateway: r, faults: make([][]nodeFault, len(r.Status.Listeners)), served: make([]bool, len(r.Status.Listeners))}
	a.local(self)
	for _, p := range others {
		a.other(p)
	}
	faulty := false
	for i := range a.faults {
		if a.served[i] {
			a.faults[i] = slices.DeleteFunc(a.faults[i], func(f nodeFault) bool { return f.reason == ReasonNoAddress })
		}
		faulty = faulty || len(a.faults[i]) > 0
	}
	if !faulty && len(a.behind) == 0 && r.intended == nil {
		return nil
	}
	return a.report()
}

// spread is a Gateway on several nodes.
type spread struct {
	gateway *GatewayReport
	faults  [][]nodeFault // by listener
	served  []bool        // by listener: somewhere
	behind  []string      // data planes
	which   []string      // what each of them serves
}

type nodeFault struct{ plane, reason, message string }

// local takes what this process does.
func (a *spread) local(self string) {
	faults := a.gateway.Faults()
	for i, l := range a.gateway.Status.Listeners {
		a.note(i, self, faults, l.Name)
	}
}

func (a *spread) note(i int, plane string, faults []ListenerFault, name gatewayv1.SectionName) {
	if len(a.gateway.sockets[i]) == 0 {
		return
	}
	j := slices.IndexFunc(faults, func(f ListenerFault) bool { return f.Name == name })
	if j < 0 {
		a.served[i] = true
		return
	}
	a.served[i] = a.served[i] || faults[j].Served
	a.faults[i] = append(a.faults[i], nodeFault{plane, faults[j].Reason, faults[j].Message})
}

// other takes what another data plane says.
func (a *spread) other(p *v1alpha1.DataPlane) {
	g := a.gateway
	i, told := slices.BinarySearchFunc(p.Status.Gateways, g, func(o v1alpha1.GatewayOnNode, g *GatewayReport) int {
		return compareNames(o.Namespace, o.Name, g.Namespace, g.Name)
	})
	switch {
	case i == v1alpha1.MaxGatewaysOnNode:
		return // there was no place for it, so nothing is known
	case !told:
		a.behind = append(a.behind, p.Name)
		a.which = append(a.which, fmt.Sprintf("%s does not serve the Gateway yet", p.Name))
		return
	case p.Status.Gateways[i].Generation < g.Generation:
		a.behind = append(a.behind, p.Name)
		a.which = append(a.which, fmt.Sprintf("%s still serves generation %d", p.Name, p.Status.Gateways[i].Generation))
		return
	}
	var faults []ListenerFault
	for _, l := range p.Status.Gateways[i].Listeners {
		faults = append(faults, ListenerFault{Name: l.Name, Served: l.Served, Reason: l.Reason, Message: l.Message})
	}
	for i, l := range g.Status.Listeners {
		a.note(i, p.Name, faults, l.Name)
	}
}

// report writes it down. What is intended is where it starts: a fault of this
// process alone does not make a listener unaccepted that others serve.
func (a *spread) report() *GatewayReport {
	now := *a.gateway
	intended := a.gateway
	if a.gateway.intended != nil {
		intended = a.gateway.intended
	}
	now.Status = *intended.Status.DeepCopy()
	now.behind = a.behind
	o := outcome{gateway: a.gateway, status: &now.Status}
	open, closed := 0, 0
	for i := range now.Status.Listeners {
		cs := &now.Status.Listeners[i].Conditions
		if a.served[i] {
			open++
		}
		if len(a.faults[i]) == 0 {
			continue
		}
		closed++
		reason, message := a.faults[i][0].reason, a.message(i)
		if reason == ReasonNoAddress {
			reason = string(gatewayv1.ListenerReasonPending)
		}
		if !a.served[i] && reason == string(gatewayv1.ListenerReasonPortUnavailable) {
			o.set(cs, string(gatewayv1.ListenerConditionAccepted), false, reason, message)
		}
		o.set(cs, conditionProgrammed, false, reason, message)
	}
	cs := &now.Status.Conditions
	switch {
	case closed > 0 && open == 0 && a.gateway.intended != nil:
		// Nobody serves it: what this process says of the Gateway holds.
		now.Status.Conditions = a.gateway.Status.DeepCopy().Conditions
		now.Status.Addresses = a.gateway.Status.Addresses
	case closed > 0:
		o.set(cs, string(gatewayv1.GatewayConditionAccepted), true, string(gatewayv1.GatewayReasonListenersNotValid),
			"Not all listeners are served on all nodes; see their status")
	}
	if len(a.behind) > 0 {
		n := min(len(a.behind), maxListed)
		message := strings.Join(a.which[:n], "; ")
		if more := len(a.which) - n; more > 0 {
			message += fmt.Sprintf("; and %d more", more)
		}
		message += ". See kubectl describe dataplane " + strings.Join(a.behind[:n], " ")
		o.set(&now.Status.Conditions, conditionProgrammed, false, string(gatewayv1.GatewayReasonPending), message)
		for i := range now.Status.Listeners {
			if l := &now.Status.Listeners[i].Conditions; conditionOf(*l, conditionProgrammed).Status == metav1.ConditionTrue {
				o.set(l, conditionProgrammed, false, string(gatewayv1.ListenerReasonPending), message)
			}
		}
	}
	return &now
}

// message tells the faults of a listener, node by node.
func (a *spread) message(i int) string {
	var is issues
	for _, f := range a.faults[i] {
		is.add(Error, "", "", "On "+f.plane+": "+f.message)
	}
	return summary(is)
}
