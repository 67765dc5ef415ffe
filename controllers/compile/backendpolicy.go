package compile

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/dataplane/ir"
)

// policySet are the policies by the Service that they name, the one that counts
// first before the others. Invalid ones are not in it.
type policySet map[types.NamespacedName][]*v1alpha1.BackendPolicy

// indexPolicies makes the set.
func indexPolicies(all []*v1alpha1.BackendPolicy) policySet {
	set := make(policySet)
	for _, p := range all {
		if len(p.Validate()) > 0 {
			continue
		}
		for _, service := range targetsOf(p) {
			k := types.NamespacedName{Namespace: p.Namespace, Name: service}
			set[k] = append(set[k], p)
		}
	}
	for _, list := range set {
		slices.SortStableFunc(list, olderPolicy)
	}
	return set
}

// olderPolicy orders as GEP-713 does when policies conflict: by age, then by
// name.
func olderPolicy(a, b *v1alpha1.BackendPolicy) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), compareObjects(a, b))
}

// targetsOf returns the names of the Services that a policy names, each once.
func targetsOf(p *v1alpha1.BackendPolicy) []string {
	var names []string
	for _, t := range p.Spec.TargetRefs {
		if name := string(t.Name); t.Group == coreGroup && t.Kind == kindService && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// claims tells whether the policy names the port of the Service: the whole
// Service when section is "".
func claims(p *v1alpha1.BackendPolicy, service, section string) bool {
	return slices.ContainsFunc(p.Spec.TargetRefs, func(t gatewayv1.LocalPolicyTargetReferenceWithSectionName) bool {
		return string(t.Name) == service && sectionOf(t) == section
	})
}

func sectionOf(t gatewayv1.LocalPolicyTargetReferenceWithSectionName) string {
	if t.SectionName == nil {
		return ""
	}
	return string(*t.SectionName)
}

// holder returns the policy that counts for a section of a Service, or nil.
func (s policySet) holder(namespace, service, section string) *v1alpha1.BackendPolicy {
	for _, p := range s[types.NamespacedName{Namespace: namespace, Name: service}] {
		if claims(p, service, section) {
			return p
		}
	}
	return nil
}

// policy returns the policy that counts for a port of a Service, or nil: the one
// of the port, else the one of the whole Service.
func (r *reader) policy(namespace, service, port string) *v1alpha1.BackendPolicy {
	r.note(depPolicies, namespace, service)
	if port != "" {
		if p := r.policies.holder(namespace, service, port); p != nil {
			return p
		}
	}
	return r.policies.holder(namespace, service, "")
}

// applyPolicy writes what the policy asks for into a cluster.
func applyPolicy(p *v1alpha1.BackendPolicy, c *ir.Cluster) {
	if pool := p.Spec.Pool; pool != nil {
		if pool.Size != nil {
			c.Pool.Size = int(*pool.Size)
		}
		if pool.Waiting != nil {
			if c.Pressure.Held = int(*pool.Waiting); c.Pressure.Held == 0 {
				c.Pressure.Held = -1
			}
		}
		c.Pressure.HoldTime = pool.WaitTimeout.Value()
		c.Pool.ConnectTimeout = pool.ConnectTimeout.Value()
		if t := pool.ResponseTimeout; t != nil {
			if c.Pool.ResponseTimeout = t.Value(); c.Pool.ResponseTimeout == 0 {
				c.Pool.ResponseTimeout = -1
			}
		}
		c.Pool.IdleTimeout = pool.IdleTimeout.Value()
		c.Pool.MaxAge = pool.MaxAge.Value()
	}
	if p.Spec.Pool != nil && p.Spec.Pool.Warm != nil {
		c.Pool.Warm = int(*p.Spec.Pool.Warm)
	}
	applyBalancing(p.Spec.Balancing, c)
	applyAdaptive(p.Spec.AdaptiveTimeout, c)
	if x := p.Spec.Pressure; x != nil {
		c.Pressure.Off = value(x.Mode) == v1alpha1.SwitchOff
		if x.ThresholdPercent != nil {
			c.Pressure.Theta = share(*x.ThresholdPercent)
		}
		c.Pressure.HeldBytes = value(x.HeldBytes)
	}
	applyHealth(p.Spec.Health, c)
	if b := p.Spec.RetryBudget; b != nil {
		c.Retries = ir.RetryBudget{Off: value(b.Mode) == v1alpha1.SwitchOff, Percent: int(value(b.Percent)), MinPerSecond: int(value(b.MinPerSecond))}
	}
}

// share returns a percentage as a fraction.
func share(percent int32) float64 { return float64(percent) / 100 }

// value returns what p points to, zero for nothing.
func value[T any](p *T) T {
	var zero T
	if p == nil {
		return zero
	}
	return *p
}

func applyBalancing(b *v1alpha1.Balancing, c *ir.Cluster) {
	if b == nil {
		return
	}
	c.Balance = map[v1alpha1.BalancingType]ir.Balance{
		v1alpha1.BalancingLeastRequest: ir.BalanceLeastRequest, v1alpha1.BalancingRoundRobin: ir.BalanceRoundRobin,
		v1alpha1.BalancingPeakEWMA: ir.BalancePeakEWMA, v1alpha1.BalancingConsistentHash: ir.BalanceConsistentHash,
	}[b.Type]
	c.SlowStart = b.SlowStart.Value()
	if h := b.HashOn; h != nil {
		c.HashOn = ir.HashOn{Name: value(h.Name), Kind: map[v1alpha1.HashKey]ir.HashKind{
			v1alpha1.HashClientIP: ir.HashClient, v1alpha1.HashHeader: ir.HashHeader, v1alpha1.HashCookie: ir.HashCookie,
		}[h.Type]}
	}
}

func applyAdaptive(a *v1alpha1.AdaptiveTimeout, c *ir.Cluster) {
	if a == nil {
		return
	}
	c.Adaptive = ir.AdaptiveTimeout{
		Alpha: share(value(a.AlphaPercent)), Beta: share(value(a.BetaPercent)),
		Initial: a.Initial.Value(), Min: a.Min.Value(), Max: a.Max.Value(),
		// What is left out is as the flags say: the zero value.
		Mode: map[v1alpha1.Mode]ir.AdaptiveMode{
			v1alpha1.ModeEnforce: ir.AdaptiveEnforce, v1alpha1.ModeObserve: ir.AdaptiveObserve, v1alpha1.ModeOff: ir.AdaptiveOff,
		}[value(a.Mode)],
	}
}

func applyHealth(h *v1alpha1.Health, c *ir.Cluster) {
	if h == nil {
		return
	}
	if e := h.Ejection; e != nil {
		c.Ejection = ir.Ejection{
			Off: value(e.Mode) == v1alpha1.SwitchOff, Failures: int(value(e.Failures)), ServerErrors: e.ServerErrors,
			Period: e.Period.Value(), MaxPeriod: e.MaxPeriod.Value(), MaxPercent: int(value(e.MaxPercent)),
		}
	}
	if k := h.Check; k != nil {
		c.Check = &ir.HealthCheck{
			Path: k.Path, Host: value(k.Host), Interval: k.Interval.Value(), Timeout: k.Timeout.Value(),
			Unhealthy: int(value(k.Unhealthy)), Healthy: int(value(k.Healthy)),
		}
		for _, r := range k.Statuses {
			c.Check.Statuses = append(c.Check.Statuses, ir.StatusRange{First: int(r.First), Last: int(r.Last)})
		}
	}
}

// policyState is what became of all policies, kept until one of them or a
// Service that they name changes.
type policyState struct {
	deps     []dep
	reports  []*PolicyReport
	problems []Problem
}

// compilePolicies tells what becomes of each policy. Results that are the same as
// in old are the same pointers.
func compilePolicies(r *reader, opts *Options, old *policyState) *policyState {
	st := &policyState{}
	was := make(map[types.NamespacedName]*PolicyReport)
	if old != nil {
		for _, x := range old.reports {
			was[x.NamespacedName] = x
		}
	}
	for _, p := range r.in.BackendPolicies {
		rep := &PolicyReport{Kind: kindBackendPolicy, NamespacedName: keyOf(p), UID: p.UID, Generation: p.Generation}
		var found issues
		for _, e := range p.Validate() {
			found.add(Error, e.Field, string(gatewayv1.PolicyReasonInvalid), e.ErrorBody())
		}
		invalid := slices.Clone(found)
		for i, t := range p.Spec.TargetRefs {
			if i == mostAncestors {
				break
			}
			c := r.policyTarget(p, i, t, invalid, &found)
			rep.Ancestors = append(rep.Ancestors, gatewayv1.PolicyAncestorStatus{
				AncestorRef: ancestor(t), ControllerName: gatewayv1.GatewayController(opts.ControllerName),
				Conditions: []metav1.Condition{c},
			})
		}
		if o := was[rep.NamespacedName]; o != nil && reflect.DeepEqual(o, rep) {
			rep = o
		}
		st.reports = append(st.reports, rep)
		st.problems = append(st.problems, found.problems(kindBackendPolicy, p.Namespace, p.Name)...)
	}
	st.deps = r.deps
	return st
}

// mostAncestors is the API's limit.
const mostAncestors = 16

// ancestor is the target as the status names it.
func ancestor(t gatewayv1.LocalPolicyTargetReferenceWithSectionName) gatewayv1.ParentReference {
	group, kind := t.Group, t.Kind
	return gatewayv1.ParentReference{Group: &group, Kind: &kind, Name: t.Name, SectionName: t.SectionName}
}

// policyTarget returns the condition Accepted for one target.
func (r *reader) policyTarget(p *v1alpha1.BackendPolicy, i int, t gatewayv1.LocalPolicyTargetReferenceWithSectionName, invalid issues, found *issues) metav1.Condition {
	no := func(reason gatewayv1.PolicyConditionReason, message string) metav1.Condition {
		if reason != gatewayv1.PolicyReasonInvalid {
			found.add(Error, fmt.Sprintf("spec.targetRefs[%d]", i), string(reason), message)
		}
		return condition(gatewayv1.PolicyConditionAccepted, false, reason, p.Generation, message)
	}
	if len(invalid) > 0 {
		return no(gatewayv1.PolicyReasonInvalid, summary(invalid))
	}
	name, section := string(t.Name), sectionOf(t)
	svc := r.service(p.Namespace, name)
	if svc == nil {
		return no(gatewayv1.PolicyReasonTargetNotFound, fmt.Sprintf("Service %s/%s does not exist", p.Namespace, name))
	}
	what := fmt.Sprintf("Service %s/%s", p.Namespace, name)
	if section != "" {
		if !slices.ContainsFunc(svc.Spec.Ports, func(q corev1.ServicePort) bool { return q.Name == section }) {
			return no(gatewayv1.PolicyReasonTargetNotFound, fmt.Sprintf("Service %s/%s has no port named %q; it has %s", p.Namespace, name, section, portNames(svc)))
		}
		what = fmt.Sprintf("port %s of %s", section, what)
	}
	r.note(depPolicies, p.Namespace, name)
	// By name: of a policy that was only touched, the set has an older version.
	if first := r.policies.holder(p.Namespace, name, section); first.Name != p.Name {
		why := "is older"
		if first.CreationTimestamp.Equal(&p.CreationTimestamp) {
			why = "comes first by name"
		}
		return no(gatewayv1.PolicyReasonConflicted,
			fmt.Sprintf("BackendPolicy %s/%s names %s, too, and %s; it counts as a whole. Name another target, or remove one of them", first.Namespace, first.Name, what, why))
	}
	message := "Headgate treats " + what + " as the policy says"
	if section == "" {
		var others []string
		for _, q := range svc.Spec.Ports {
			if o := r.policies.holder(p.Namespace, name, q.Name); q.Name != "" && o != nil {
				others = append(others, fmt.Sprintf("port %s, for which BackendPolicy %s/%s counts", q.Name, o.Namespace, o.Name))
			}
		}
		if len(others) > 0 {
			message += ", except " + listed(others)
		}
	}
	return condition(gatewayv1.PolicyConditionAccepted, true, gatewayv1.PolicyReasonAccepted, p.Generation, message)
}

func portNames(svc *corev1.Service) string {
	var names []string
	for _, p := range svc.Spec.Ports {
		if p.Name != "" {
			names = append(names, p.Name)
		}
	}
	if len(names) == 0 {
		return "none with a name"
	}
	return strings.TrimSpace(listed(names))
}
