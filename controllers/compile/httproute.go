package compile

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/dataplane/ir"
)

// attachment is a route on one listener.
type attachment struct {
	listener *listener
	route    *ir.Route
}

// routeState is what a route means; it is kept until the route or one of deps
// changes.
type routeState struct {
	object      *gatewayv1.HTTPRoute
	deps        []dep
	report      *RouteReport // nil when no parent is ours
	attachments []attachment
	clusters    []clusterKey    // that the attached rules use
	states      []*clusterState // of clusters, as they were found last
	problems    []Problem
}

// compileHTTPRoute reads an HTTPRoute. old is its last meaning, or nil: parts
// that come out the same stay the same pointers.
func compileHTTPRoute(r *reader, hr *gatewayv1.HTTPRoute, opts *Options, old *routeState) *routeState {
	st := &routeState{object: hr}
	var found issues
	parents := st.parents(r, hr, &found)
	if len(parents) > 0 {
		rules := compileRules(r, hr)
		found = append(found, rules.problems...)
		hosts := routeHostnames(hr, rules)
		report := &RouteReport{Kind: kindHTTPRoute, NamespacedName: keyOf(hr), UID: hr.UID, Generation: hr.Generation}
		for _, p := range parents {
			report.Parents = append(report.Parents, gatewayv1.RouteParentStatus{
				ParentRef:      p.ref,
				ControllerName: gatewayv1.GatewayController(opts.ControllerName),
				Conditions:     st.attach(r, hr, p, hosts, rules, &found),
			})
		}
		st.report = report
		if len(st.attachments) > 0 {
			st.clusters = rules.clusters
			for _, k := range st.clusters {
				report.Clusters = append(report.Clusters, k.String())
			}
			slices.Sort(report.Clusters)
			report.Clusters = slices.Compact(report.Clusters)
		}
	}
	st.problems = found.problems(kindHTTPRoute, hr.Namespace, hr.Name)
	if old != nil {
		st.keep(old)
	}
	return st
}

// keep takes over from old whatever is the same.
func (st *routeState) keep(old *routeState) {
	if reflect.DeepEqual(st.report, old.report) {
		st.report = old.report
	}
	var rules [][]*ir.Rule // of old; the attachments of one state share their rules
	if len(old.attachments) > 0 {
		rules = append(rules, old.attachments[0].route.Rules)
	}
	for i, a := range st.attachments {
		if j := slices.IndexFunc(old.attachments, func(o attachment) bool {
			return o.listener.id() == a.listener.id() && o.listener.port == a.listener.port
		}); j >= 0 && reflect.DeepEqual(a.route, old.attachments[j].route) {
			st.attachments[i].route = old.attachments[j].route
			continue
		}
		for _, list := range rules {
			for k, x := range a.route.Rules {
				if k < len(list) && reflect.DeepEqual(x, list[k]) {
					a.route.Rules[k] = list[k]
				}
			}
		}
	}
}

// share has a new report hold the same memory for its parents as a neighbour's,
// where they are told the same: most routes of a namespace are.
func (st *routeState) share(neighbour *routeState) {
	if st.report != nil && neighbour.report != nil && reflect.DeepEqual(st.report.Parents, neighbour.report.Parents) {
		st.report.Parents = neighbour.report.Parents
	}
}

// ourParent is a parent of a route that is one of our Gateways.
type ourParent struct {
	*parent
	ref     gatewayv1.ParentReference
	field   string
	gateway string
}

// parents returns the parents that are ours, in the order of the route.
func (st *routeState) parents(r *reader, hr *gatewayv1.HTTPRoute, found *issues) []ourParent {
	var list []ourParent
	for i, ref := range hr.Spec.ParentRefs {
		// The status repeats the reference with group and kind spelt out.
		group, kind := gatewayv1.Group(gatewayv1.GroupName), gatewayv1.Kind(kindGateway)
		if ref.Group != nil {
			group = *ref.Group
		}
		if ref.Kind != nil {
			kind = *ref.Kind
		}
		ref.Group, ref.Kind = &group, &kind
		if group != gatewayv1.GroupName || kind != kindGateway {
			continue
		}
		namespace := hr.Namespace
		if ref.Namespace != nil && *ref.Namespace != "" {
			namespace = string(*ref.Namespace)
		}
		p := ourParent{ref: ref, field: fmt.Sprintf("spec.parentRefs[%d]", i), gateway: namespace + "/" + string(ref.Name)}
		if p.parent = r.parent(namespace, string(ref.Name)); p.parent != nil {
			list = append(list, p)
			continue
		}
		if r.gateway(namespace, string(ref.Name)) == nil {
			found.add(Error, p.field, "", fmt.Sprintf("Gateway %s does not exist, so the route is not attached to it", p.gateway))
		}
	}
	if len(hr.Spec.ParentRefs) == 0 {
		found.add(Warning, "spec.parentRefs", "", "the route names no Gateway and is not served; add a parentRef")
	}
	return list
}

// routeHostnames returns the route's hostnames; one that is malformed makes the
// route invalid.
func routeHostnames(hr *gatewayv1.HTTPRoute, rules *ruleSet) []string {
	hosts := make([]string, 0, len(hr.Spec.Hostnames))
	for i, h := range hr.Spec.Hostnames {
		if fault := hostnameFault(string(h)); fault != "" {
			rules.fail(issue{Error, fmt.Sprintf("spec.hostnames[%d]", i), string(gatewayv1.RouteReasonUnsupportedValue),
				fmt.Sprintf("hostname %q %s", h, fault)})
			continue
		}
		hosts = append(hosts, string(h))
	}
	return hosts
}

// attach attaches the route to the listeners of a parent that take it, and
// returns the conditions for that parent.
func (st *routeState) attach(r *reader, hr *gatewayv1.HTTPRoute, p ourParent, hosts []string, rules *ruleSet, found *issues) []metav1.Condition {
	gen := hr.Generation
	fail := func(reason gatewayv1.RouteConditionReason, field, message string) []metav1.Condition {
		found.add(Error, field, string(reason), message)
		return []metav1.Condition{
			condition(gatewayv1.RouteConditionAccepted, false, reason, gen, message),
			rules.resolvedRefs(gen),
		}
	}
	var named, allowed []*listener
	for _, l := range p.listeners {
		if (p.ref.SectionName == nil || *p.ref.SectionName == "" || *p.ref.SectionName == l.name) &&
			(p.ref.Port == nil || *p.ref.Port == l.port) {
			named = append(named, l)
		}
	}
	if len(named) == 0 {
		return fail(gatewayv1.RouteReasonNoMatchingParent, p.field, fmt.Sprintf("Gateway %s has no listener %s; it has %s", p.gateway, wanted(p.ref), available(p.listeners)))
	}
	wrongKind := true
	for _, l := range named {
		if !l.httpRoutes {
			continue
		}
		wrongKind = false
		if l.admits(r, hr.Namespace) {
			allowed = append(allowed, l)
		}
	}
	if len(allowed) == 0 {
		if wrongKind {
			return fail(gatewayv1.RouteReasonNotAllowedByListeners, p.field,
				fmt.Sprintf("Gateway %s: %s takes no HTTPRoutes; see allowedRoutes.kinds and protocol", p.gateway, titles(named)))
		}
		return fail(gatewayv1.RouteReasonNotAllowedByListeners, p.field,
			fmt.Sprintf("Gateway %s: %s takes no routes from namespace %s; see allowedRoutes.namespaces", p.gateway, titles(named), hr.Namespace))
	}
	if len(rules.fatal) > 0 {
		return []metav1.Condition{rules.notAccepted(gen), rules.resolvedRefs(gen)}
	}
	var on []*listener
	for _, l := range allowed {
		if names := intersections(hosts, l.hostname); len(names) > 0 {
			on = append(on, l)
			st.add(l, hr, names, rules)
		}
	}
	if len(on) == 0 {
		return fail(gatewayv1.RouteReasonNoMatchingListenerHostname, "spec.hostnames",
			fmt.Sprintf("Gateway %s: no hostname of the route fits %s", p.gateway, hostnamesOf(allowed)))
	}
	cs := []metav1.Condition{
		condition(gatewayv1.RouteConditionAccepted, true, gatewayv1.RouteReasonAccepted, gen, attachedTo(on)),
		rules.resolvedRefs(gen),
	}
	if len(rules.dropped) > 0 {
		cs = append(cs, condition(gatewayv1.RouteConditionPartiallyInvalid, true, gatewayv1.RouteReasonUnsupportedValue, gen,
			"Dropped Rule: "+summary(rules.dropped)+". Requests that they match are answered 500"))
	}
	return cs
}

// add notes the attachment, once for each listener.
func (st *routeState) add(l *listener, hr *gatewayv1.HTTPRoute, hosts []string, rules *ruleSet) {
	for _, a := range st.attachments {
		if a.listener == l {
			return
		}
	}
	st.attachments = append(st.attachments, attachment{l, &ir.Route{
		Name: hr.Namespace + "/" + hr.Name, Hostnames: hosts, Created: hr.CreationTimestamp.Time, Rules: slices.Clone(rules.rules),
	}})
}

// intersections returns what the route's hostnames and the listener's have in
// common, sorted.
func intersections(hosts []string, listener string) []string {
	if len(hosts) == 0 {
		return []string{listener}
	}
	var out []string
	for _, h := range hosts {
		if both, ok := intersect(h, listener); ok {
			out = append(out, both)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// attachedTo says where a route is, and where that is of no use yet.
func attachedTo(on []*listener) string {
	var idle []string
	for _, l := range on {
		if !l.served {
			idle = append(idle, string(l.name))
		}
	}
	if len(idle) == 0 {
		return "Attached to " + titles(on)
	}
	return fmt.Sprintf("Attached to %s; not served: %s, see the Gateway's status", titles(on), listed(idle))
}

func wanted(ref gatewayv1.ParentReference) string {
	var parts []string
	if ref.SectionName != nil && *ref.SectionName != "" {
		parts = append(parts, fmt.Sprintf("named %q", *ref.SectionName))
	}
	if ref.Port != nil {
		parts = append(parts, fmt.Sprintf("on port %d", *ref.Port))
	}
	return strings.Join(parts, " ")
}

func available(ls []*listener) string {
	names := make([]string, len(ls))
	for i, l := range ls {
		names[i] = fmt.Sprintf("%s on port %d", l.name, l.port)
	}
	return listed(names)
}

func titles(ls []*listener) string {
	names := make([]string, len(ls))
	for i, l := range ls {
		names[i] = string(l.name)
	}
	if len(names) == 1 {
		return "listener " + names[0]
	}
	return "listeners " + listed(names)
}

func hostnamesOf(ls []*listener) string {
	names := make([]string, len(ls))
	for i, l := range ls {
		names[i] = fmt.Sprintf("listener %s (%s)", l.name, l.hostname)
	}
	return listed(names)
}
