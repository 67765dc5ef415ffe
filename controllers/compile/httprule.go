package compile

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/dataplane/ir"
)

// ruleSet is what the rules of a route mean, whatever its parents are.
//
// A rule with a fault is dropped, but requests that its valid matches take are
// answered 500 and not handed on to a less specific rule: a filter that does not
// work must not be a way around it.
type ruleSet struct {
	rules    []*ir.Rule
	clusters []clusterKey

	fatal    issues // why the whole route is invalid
	dropped  issues // why rules were dropped while others live
	refs     issues // why references are not resolved
	problems issues // all of these, and warnings
}

// fail makes the whole route invalid.
func (s *ruleSet) fail(x issue) {
	s.fatal = append(s.fatal, x)
	s.problems = append(s.problems, x)
}

func (s *ruleSet) warn(field, format string, args ...any) {
	s.problems.add(Warning, field, "", fmt.Sprintf(format, args...))
}

// compileRules reads the rules of a route.
func compileRules(r *reader, hr *gatewayv1.HTTPRoute) *ruleSet {
	s := &ruleSet{}
	specs := hr.Spec.Rules
	if len(specs) == 0 {
		specs = []gatewayv1.HTTPRouteRule{{}} // the default of the CRD
	}
	valid := 0
	for i := range specs {
		b := &ruleBuilder{reader: r, set: s, namespace: hr.Namespace, field: fmt.Sprintf("spec.rules[%d]", i)}
		rule := b.build(&specs[i], i)
		if len(b.faults) == 0 {
			valid++
		}
		s.dropped = append(s.dropped, b.faults...)
		if rule != nil {
			s.rules = append(s.rules, rule)
		}
	}
	s.problems = append(s.problems, s.dropped...)
	s.problems = append(s.problems, s.refs...)
	if valid == 0 {
		s.fatal, s.dropped = s.dropped, nil
	}
	slices.SortFunc(s.clusters, clusterKey.compare)
	s.clusters = slices.Compact(s.clusters)
	return s
}

func (s *ruleSet) notAccepted(gen int64) metav1.Condition {
	return condition(gatewayv1.RouteConditionAccepted, false, gatewayv1.RouteConditionReason(s.fatal[0].reason), gen, summary(s.fatal))
}

func (s *ruleSet) resolvedRefs(gen int64) metav1.Condition {
	if len(s.refs) > 0 {
		return condition(gatewayv1.RouteConditionResolvedRefs, false, gatewayv1.RouteConditionReason(s.refs[0].reason), gen, summary(s.refs))
	}
	return condition(gatewayv1.RouteConditionResolvedRefs, true, gatewayv1.RouteReasonResolvedRefs, gen, "All references are resolved")
}

// ruleBuilder reads one rule.
type ruleBuilder struct {
	*reader
	set       *ruleSet
	namespace string
	field     string
	faults    issues
	clusters  []clusterKey
}

// fault makes the rule invalid.
func (b *ruleBuilder) fault(field string, reason gatewayv1.RouteConditionReason, format string, args ...any) {
	b.faults.add(Error, field, string(reason), fmt.Sprintf(format, args...))
}

// unsupported is fault with the reason that values have.
func (b *ruleBuilder) unsupported(field, format string, args ...any) {
	b.fault(field, gatewayv1.RouteReasonUnsupportedValue, format, args...)
}

// build returns the rule; one that answers 500 when it has a fault, and nil when
// there is not even a match to hold.
func (b *ruleBuilder) build(spec *gatewayv1.HTTPRouteRule, index int) *ir.Rule {
	rule := &ir.Rule{Index: index}
	if spec.Name != nil {
		rule.Name = string(*spec.Name)
	}
	matches := spec.Matches
	if len(matches) == 0 {
		matches = []gatewayv1.HTTPRouteMatch{{}} // the default of the CRD
	}
	for i := range matches {
		before := len(b.faults)
		m := b.match(&matches[i], fmt.Sprintf("%s.matches[%d]", b.field, i))
		if len(b.faults) == before {
			rule.Matches = append(rule.Matches, m)
		}
	}
	if len(rule.Matches) == 0 {
		return nil
	}
	prefix := len(matches) == 1 && rule.Matches[0].Path.Kind == ir.MatchPrefix
	rule.Filters = b.filters(spec.Filters, prefix)
	rule.Backends = b.backends(spec)
	rule.Timeouts = b.timeouts(spec.Timeouts)
	if spec.Retry != nil {
		b.set.warn(b.field+".retry", "retries are not supported yet and are ignored")
	}
	if spec.SessionPersistence != nil {
		b.set.warn(b.field+".sessionPersistence", "session persistence is not supported yet and is ignored")
	}
	if len(b.faults) > 0 {
		rule.Filters, rule.Backends, rule.Timeouts = nil, nil, ir.Timeouts{}
		return rule
	}
	b.set.clusters = append(b.set.clusters, b.clusters...)
	return rule
}

// timeouts reads the timeouts of a rule. Zero switches one off.
func (b *ruleBuilder) timeouts(spec *gatewayv1.HTTPRouteTimeouts) ir.Timeouts {
	var t ir.Timeouts
	if spec == nil {
		return t
	}
	read := func(d *gatewayv1.Duration, name string) *time.Duration {
		if d == nil {
			return nil
		}
		v, err := parseDuration(string(*d))
		if err != nil {
			b.unsupported(b.field+".timeouts."+name, "%v", err)
			return nil
		}
		return &v
	}
	t.Request = read(spec.Request, "request")
	t.Backend = read(spec.BackendRequest, "backendRequest")
	if t.Request != nil && t.Backend != nil && *t.Request > 0 && *t.Backend > *t.Request {
		b.unsupported(b.field+".timeouts.backendRequest", "%s is longer than the request's %s, which would end first", *spec.BackendRequest, *spec.Request)
	}
	return t
}

// parseDuration reads a duration as GEP-2257 writes it: one to four numbers of
// one to five digits, each with h, m, s or ms.
func parseDuration(s string) (time.Duration, error) {
	bad := fmt.Errorf("%q is not a duration; write it like 500ms, 10s or 1h30m", s)
	rest := s
	for n := 0; rest != ""; n++ {
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		if n == 4 || digits < 1 || digits > 5 {
			return 0, bad
		}
		rest = rest[digits:]
		unit, ok := strings.CutPrefix(rest, "ms")
		if !ok {
			if rest == "" || !strings.ContainsRune("hms", rune(rest[0])) {
				return 0, bad
			}
			unit = rest[1:]
		}
		rest = unit
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, bad
	}
	return d, nil
}
