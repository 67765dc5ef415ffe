package status

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/controllers/compile"
)

// The condition types that are ours: what the report does not name of them is
// removed, and no other is touched.
var (
	classConditions = []string{
		string(gatewayv1.GatewayClassConditionStatusAccepted),
		string(gatewayv1.GatewayClassConditionStatusSupportedVersion),
		compile.ConditionKindsServed,
		compile.ConditionParametersApplied,
	}
	gatewayConditions = []string{
		string(gatewayv1.GatewayConditionAccepted),
		string(gatewayv1.GatewayConditionProgrammed),
		string(gatewayv1.GatewayConditionResolvedRefs),
		string(gatewayv1.GatewayConditionInsecureFrontendValidationMode),
	}
	listenerConditions = []string{
		string(gatewayv1.ListenerConditionAccepted),
		string(gatewayv1.ListenerConditionProgrammed),
		string(gatewayv1.ListenerConditionResolvedRefs),
		string(gatewayv1.ListenerConditionConflicted),
		string(gatewayv1.ListenerConditionOverlappingTLSConfig),
	}
	parentConditions = []string{
		string(gatewayv1.RouteConditionAccepted),
		string(gatewayv1.RouteConditionResolvedRefs),
		string(gatewayv1.RouteConditionPartiallyInvalid),
	}
)

// policyConditions are those in the entries of policies.
var policyConditions = []string{string(gatewayv1.PolicyConditionAccepted)}

// mostMessage is the API's limit of a condition's message, in characters.
const mostMessage = 32768

// merged returns have with the conditions of want in the place of those of the
// same type. Other conditions stay, except those of own types: they are removed.
// A condition keeps its time while its status stays.
func merged(have, want []metav1.Condition, own []string, now metav1.Time) []metav1.Condition {
	out := make([]metav1.Condition, 0, len(have)+len(want))
	for _, h := range have {
		i := indexOf(want, h.Type)
		switch {
		case i >= 0:
			out = append(out, dated(want[i], h, now))
		case !slices.Contains(own, h.Type):
			out = append(out, h)
		}
	}
	for _, w := range want {
		if indexOf(have, w.Type) < 0 {
			out = append(out, dated(w, metav1.Condition{}, now))
		}
	}
	return out
}

// dated returns the condition with the time since when its status holds.
func dated(c, was metav1.Condition, now metav1.Time) metav1.Condition {
	c.LastTransitionTime = now
	if c.Status == was.Status && !was.LastTransitionTime.IsZero() {
		c.LastTransitionTime = was.LastTransitionTime
	}
	if runes := []rune(c.Message); len(c.Message) > mostMessage && len(runes) > mostMessage {
		c.Message = string(runes[:mostMessage-1]) + "…"
	}
	return c
}

func indexOf(cs []metav1.Condition, kind string) int {
	return slices.IndexFunc(cs, func(c metav1.Condition) bool { return c.Type == kind })
}

// newer tells whether a condition of own types speaks of a later generation:
// somebody who knows more than we do has written it.
func newer(have []metav1.Condition, own []string, generation int64) bool {
	return slices.ContainsFunc(have, func(c metav1.Condition) bool {
		return c.ObservedGeneration > generation && slices.Contains(own, c.Type)
	})
}

// mergedListeners returns the listeners of want, with what else was said of those
// of the same names.
func mergedListeners(have, want []gatewayv1.ListenerStatus, now metav1.Time) []gatewayv1.ListenerStatus {
	out := make([]gatewayv1.ListenerStatus, len(want))
	for i, w := range want {
		var was []metav1.Condition
		for _, h := range have {
			if h.Name == w.Name {
				was = h.Conditions
			}
		}
		out[i] = w
		out[i].Conditions = merged(was, w.Conditions, listenerConditions, now)
	}
	return out
}

// mergedParents returns have with our entries as want has them. Entries of other
// controllers stay where they are.
func mergedParents(have, want []gatewayv1.RouteParentStatus, controller gatewayv1.GatewayController, now metav1.Time) []gatewayv1.RouteParentStatus {
	out := make([]gatewayv1.RouteParentStatus, 0, len(have)+len(want))
	done := make([]bool, len(want))
	for _, h := range have {
		if h.ControllerName != controller {
			out = append(out, h)
			continue
		}
		i := slices.IndexFunc(want, func(w gatewayv1.RouteParentStatus) bool { return equalParent(w.ParentRef, h.ParentRef) })
		if i < 0 || done[i] {
			continue
		}
		done[i] = true
		w := want[i]
		w.Conditions = merged(h.Conditions, w.Conditions, parentConditions, now)
		out = append(out, w)
	}
	for i, w := range want {
		if !done[i] {
			w.Conditions = merged(nil, w.Conditions, parentConditions, now)
			out = append(out, w)
		}
	}
	return out
}

// mostAncestors is the API's limit of the entries of a policy.
const mostAncestors = 16

// mergedAncestors returns have with our entries as want has them. Entries of other
// controllers stay where they are; ours must not be more than there is place for.
func mergedAncestors(have, want []gatewayv1.PolicyAncestorStatus, controller gatewayv1.GatewayController, now metav1.Time) []gatewayv1.PolicyAncestorStatus {
	out := make([]gatewayv1.PolicyAncestorStatus, 0, len(have)+len(want))
	done := make([]bool, len(want))
	for _, h := range have {
		if h.ControllerName != controller {
			out = append(out, h)
			continue
		}
		i := slices.IndexFunc(want, func(w gatewayv1.PolicyAncestorStatus) bool { return equalParent(w.AncestorRef, h.AncestorRef) })
		if i < 0 || done[i] {
			continue
		}
		done[i] = true
		w := want[i]
		w.Conditions = merged(h.Conditions, w.Conditions, policyConditions, now)
		out = append(out, w)
	}
	for i, w := range want {
		if !done[i] && len(out) < mostAncestors {
			w.Conditions = merged(nil, w.Conditions, policyConditions, now)
			out = append(out, w)
		}
	}
	return out
}

// equalParent tells whether two references are written the same.
func equalParent(a, b gatewayv1.ParentReference) bool {
	return deref(a.Group) == deref(b.Group) && deref(a.Kind) == deref(b.Kind) && sameParent(a, b)
}
