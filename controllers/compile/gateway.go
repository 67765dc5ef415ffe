package compile

import (
	"fmt"
	"net/netip"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// gatewayState is what a Gateway of ours means, before routes attach to it.
type gatewayState struct {
	key        types.NamespacedName
	uid        types.UID
	generation int64
	created    time.Time
	settings   settings // what its class and its own parameters say
	unheeded   string   // what its own say in vain
	addresses  addressPlan
	listeners  []*listenerState

	invalid  issues // why it is not accepted as a whole
	warnings issues

	problems []Problem
	last     *GatewayReport // as of counts
	counts   []int          // attached routes of each listener
}

// valid tells whether the Gateway may be served, as far as it alone decides.
func (g *gatewayState) valid() bool { return len(g.invalid) == 0 && len(g.addresses.unsupported) == 0 }

// compileGateway reads a Gateway of one of our classes.
func (c *Compiler) compileGateway(r *reader, gw *gatewayv1.Gateway, cl *class, assigned netip.Addr) *gatewayState {
	g := &gatewayState{
		key: keyOf(gw), uid: gw.UID, generation: gw.Generation, created: gw.CreationTimestamp.Time,
		settings: settingsOf(cl.parameters, nil),
	}
	if b := r.balancer(); b != nil {
		g.addresses = b.plan(gw, r.in.Options.Addresses.Bind)
	} else {
		g.addresses = r.in.Options.Addresses.plan(gw, assigned)
	}
	if !cl.accepted {
		g.invalid.add(Error, "spec.gatewayClassName", string(gatewayv1.GatewayReasonInvalid),
			fmt.Sprintf("GatewayClass %s is not accepted; see its status", gw.Spec.GatewayClassName))
	}
	if in := gw.Spec.Infrastructure; in != nil && in.ParametersRef != nil {
		p := in.ParametersRef
		own, fault := r.parametersOf(string(p.Group), string(p.Kind), gw.Namespace, p.Name)
		if fault != "" {
			g.invalid.add(Error, "spec.infrastructure.parametersRef", string(gatewayv1.GatewayReasonInvalidParameters), fault)
		}
		g.settings = settingsOf(cl.parameters, own)
		if g.unheeded = unheeded(own, cl.parameters); g.unheeded != "" {
			g.warnings.add(Warning, "spec.infrastructure.parametersRef", "", g.unheeded)
		}
	}
	g.ignored(gw)
	seen := make(map[gatewayv1.SectionName]bool, len(gw.Spec.Listeners))
	for i := range gw.Spec.Listeners {
		name := gw.Spec.Listeners[i].Name
		if seen[name] {
			g.invalid.add(Error, fmt.Sprintf("spec.listeners[%d].name", i), string(gatewayv1.GatewayReasonInvalid),
				fmt.Sprintf("%q is the name of another listener; give each its own", name))
			continue
		}
		seen[name] = true
		g.listeners = append(g.listeners, c.compileListener(r, gw, i))
	}
	return g
}

// ignored warns of what the spec asks for and Headgate does not do yet.
func (g *gatewayState) ignored(gw *gatewayv1.Gateway) {
	ignore := func(field, what string) {
		g.warnings.add(Warning, field, "", what+" and is ignored")
	}
	if a := gw.Spec.AllowedListeners; a != nil && a.Namespaces != nil && a.Namespaces.From != nil && *a.Namespaces.From != gatewayv1.NamespacesFromNone {
		ignore("spec.allowedListeners", "ListenerSet is not supported yet")
	}
	if t := gw.Spec.TLS; t != nil && t.Backend != nil {
		ignore("spec.tls.backend", "TLS to backends is not supported yet")
	}
	if s := gw.Spec.DefaultScope; s != "" && s != gatewayv1.GatewayDefaultScopeNone {
		ignore("spec.defaultScope", "a default Gateway is not supported yet")
	}
}

// report returns the Gateway's status as it is when all its sockets open. counts
// are the accepted routes of each listener.
func (g *gatewayState) report(counts []int) *GatewayReport {
	r := &GatewayReport{NamespacedName: g.key, UID: g.uid, Generation: g.generation}
	usable, unresolved := 0, []issue{}
	for i, l := range g.listeners {
		r.Status.Listeners = append(r.Status.Listeners, l.status(g.valid(), g.generation, counts[i]))
		r.sockets = append(r.sockets, l.sockets)
		r.rivals = append(r.rivals, l.rivals)
		if l.usable() {
			usable++
		}
		unresolved = append(unresolved, l.refs...)
	}
	accepted := g.accepted(usable)
	resolved := condition(gatewayv1.GatewayConditionResolvedRefs, true, gatewayv1.GatewayReasonResolvedRefs, g.generation, "All references are resolved")
	if len(unresolved) > 0 {
		resolved = condition(gatewayv1.GatewayConditionResolvedRefs, false, gatewayv1.GatewayReasonListenersNotResolved, g.generation, summary(unresolved))
	}
	r.Status.Conditions = []metav1.Condition{accepted, g.programmed(accepted.Status == metav1.ConditionTrue), resolved}
	if accepted.Status == metav1.ConditionTrue {
		r.addresses = g.addresses.bound
		r.Status.Addresses = statusAddresses(g.addresses.report, g.addresses.hosts)
	}
	return r
}

func (g *gatewayState) accepted(usable int) metav1.Condition {
	c := g.acceptance(usable)
	if g.unheeded != "" {
		c.Message += ". But " + g.unheeded
	}
	return c
}

func (g *gatewayState) acceptance(usable int) metav1.Condition {
	no := func(is issues) metav1.Condition {
		return condition(gatewayv1.GatewayConditionAccepted, false, gatewayv1.GatewayConditionReason(is[0].reason), g.generation, summary(is))
	}
	switch {
	case len(g.invalid) > 0:
		return no(g.invalid)
	case len(g.addresses.unsupported) > 0:
		return no(g.addresses.unsupported)
	case usable == len(g.listeners) && usable > 0:
		return condition(gatewayv1.GatewayConditionAccepted, true, gatewayv1.GatewayReasonAccepted, g.generation, "The Gateway is valid")
	case usable == 0:
		return condition(gatewayv1.GatewayConditionAccepted, false, gatewayv1.GatewayReasonListenersNotValid, g.generation,
			"None of the listeners is accepted; see their status")
	}
	var bad []string
	for _, l := range g.listeners {
		if !l.usable() {
			bad = append(bad, string(l.name))
		}
	}
	return condition(gatewayv1.GatewayConditionAccepted, true, gatewayv1.GatewayReasonListenersNotValid, g.generation,
		"Not all listeners are accepted; see the status of "+listed(bad))
}

func (g *gatewayState) programmed(accepted bool) metav1.Condition {
	no := func(reason gatewayv1.GatewayConditionReason, message string) metav1.Condition {
		return condition(gatewayv1.GatewayConditionProgrammed, false, reason, g.generation, message)
	}
	switch {
	case !accepted:
		return no(gatewayv1.GatewayReasonInvalid, "The Gateway is not accepted")
	case len(g.addresses.unusable) > 0:
		return no(gatewayv1.GatewayReasonAddressNotUsable, summary(g.addresses.unusable))
	case g.addresses.missing != "":
		return no(gatewayv1.GatewayReasonAddressNotAssigned, "No address: "+g.addresses.missing)
	}
	return condition(gatewayv1.GatewayConditionProgrammed, true, gatewayv1.GatewayReasonProgrammed, g.generation, "The Gateway is served")
}

// list returns all that is wrong with the Gateway and its listeners.
func (g *gatewayState) list() []Problem {
	all := append(issues{}, g.invalid...)
	all = append(all, g.addresses.unsupported...)
	all = append(all, g.addresses.unusable...)
	if g.addresses.missing != "" && g.valid() {
		all.add(Error, "spec.addresses", string(gatewayv1.GatewayReasonAddressNotAssigned), g.addresses.missing)
	}
	all = append(all, g.warnings...)
	for _, l := range g.listeners {
		all = append(all, l.accept...)
		all = append(all, l.refs...)
		all = append(all, l.warnings...)
		if l.clash != nil {
			all.add(Error, l.field, string(l.clash.reason), l.clash.message)
		}
	}
	return all.problems(kindGateway, g.key.Namespace, g.key.Name)
}
