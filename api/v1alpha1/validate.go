package v1alpha1

import (
	"fmt"
	"net/netip"
	"regexp"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

const mostTargets = 16

// Validate returns what the CRD refuses in the policy, in the CRD's words.
func (p *BackendPolicy) Validate() field.ErrorList {
	v := validator{}
	spec := field.NewPath("spec")
	v.targets(spec.Child("targetRefs"), p.Spec.TargetRefs)
	if pool := p.Spec.Pool; pool != nil {
		at := spec.Child("pool")
		number(&v, at.Child("size"), pool.Size, 1, 1_000_000)
		number(&v, at.Child("waiting"), pool.Waiting, 0, 1_000_000)
		number(&v, at.Child("warm"), pool.Warm, 0, 1000)
		v.duration(at.Child("waitTimeout"), pool.WaitTimeout, bounds{least: time.Millisecond, most: 10 * time.Minute})
		v.duration(at.Child("connectTimeout"), pool.ConnectTimeout, bounds{least: time.Millisecond, most: 10 * time.Minute})
		v.duration(at.Child("responseTimeout"), pool.ResponseTimeout, bounds{least: time.Millisecond, most: 24 * time.Hour, zero: true})
		v.duration(at.Child("idleTimeout"), pool.IdleTimeout, bounds{least: time.Millisecond, most: 24 * time.Hour})
		v.duration(at.Child("maxAge"), pool.MaxAge, bounds{least: time.Second, most: 720 * time.Hour})
	}
	v.balancing(spec.Child("balancing"), p.Spec.Balancing)
	v.adaptive(spec.Child("adaptiveTimeout"), p.Spec.AdaptiveTimeout)
	if x := p.Spec.Pressure; x != nil {
		at := spec.Child("pressure")
		optional(&v, at.Child("mode"), x.Mode, SwitchEnforce, SwitchOff)
		number(&v, at.Child("thresholdPercent"), x.ThresholdPercent, 1, 100)
		number(&v, at.Child("heldBytes"), x.HeldBytes, 1, 1<<30)
	}
	if h := p.Spec.Health; h != nil {
		v.check(spec.Child("health", "check"), h.Check)
		v.ejection(spec.Child("health", "ejection"), h.Ejection)
	}
	if b := p.Spec.RetryBudget; b != nil {
		at := spec.Child("retryBudget")
		optional(&v, at.Child("mode"), b.Mode, SwitchEnforce, SwitchOff)
		number(&v, at.Child("percent"), b.Percent, 1, 1000)
		number(&v, at.Child("minPerSecond"), b.MinPerSecond, 1, 10_000)
	}
	return v.errors
}

// Validate returns what the CRD refuses in the parameters, in the CRD's words.
func (p *GatewayParameters) Validate() field.ErrorList {
	v := validator{}
	spec := field.NewPath("spec")
	if c := p.Spec.Client; c != nil {
		v.client(spec.Child("client"), c)
	}
	if l := p.Spec.AccessLog; l != nil {
		at := spec.Child("accessLog")
		optional(&v, at.Child("mode"), l.Mode, AccessLogAll, AccessLogErrors, AccessLogOff)
		number(&v, at.Child("samplePercent"), l.SamplePercent, 1, 100)
	}
	number(&v, spec.Child("workers"), p.Spec.Workers, 1, 256)
	optional(&v, spec.Child("pinning"), p.Spec.Pinning, PinningPerCPU, PinningOff)
	if x := p.Spec.Pressure; x != nil {
		at := spec.Child("pressure")
		number(&v, at.Child("maxConnections"), x.MaxConnections, 1, 10_000_000)
		v.byteSize(at.Child("memoryLimit"), x.MemoryLimit, "16Mi", "1024Gi")
	}
	return v.errors
}

func (v *validator) client(at *field.Path, c *ClientParameters) {
	v.duration(at.Child("headerTimeout"), c.HeaderTimeout, bounds{least: 100 * time.Millisecond, most: 10 * time.Minute})
	v.duration(at.Child("idleTimeout"), c.IdleTimeout, bounds{least: 100 * time.Millisecond, most: 24 * time.Hour})
	v.duration(at.Child("bodyTimeout"), c.BodyTimeout, bounds{least: 100 * time.Millisecond, most: 24 * time.Hour})
	v.duration(at.Child("writeTimeout"), c.WriteTimeout, bounds{least: time.Second, most: 24 * time.Hour})
	number(v, at.Child("maxRequests"), c.MaxRequests, 1, 1_000_000_000)
	if l := c.Limits; l != nil {
		at := at.Child("limits")
		number(v, at.Child("requestLineBytes"), l.RequestLineBytes, 256, 1<<20)
		number(v, at.Child("headerBytes"), l.HeaderBytes, 1024, 1<<20)
		number(v, at.Child("headerCount"), l.HeaderCount, 8, 10_000)
	}
	if c.TrustedCIDRs != nil {
		v.prefixes(at.Child("trustedCIDRs"), *c.TrustedCIDRs)
	}
	if p := c.ProxyProtocol; p != nil {
		at := at.Child("proxyProtocol")
		if p.Mode == "" {
			v.add(field.Required(at.Child("mode"), "must be Off or Required"))
		} else {
			oneOf(v, at.Child("mode"), p.Mode, ProxyProtocolOff, ProxyProtocolRequired)
		}
		if p.Mode == ProxyProtocolRequired && len(p.From) == 0 {
			v.add(field.Required(at.Child("from"),
				"must name the load balancers when mode is Required: who may send the header can say to be any client"))
		}
		v.prefixes(at.Child("from"), p.From)
	}
}

// prefixes checks a list of prefixes.
func (v *validator) prefixes(path *field.Path, list []CIDR) {
	if n := len(list); n > mostCIDRs {
		v.add(field.TooMany(path, n, mostCIDRs))
	}
	for i, s := range list {
		if p, err := netip.ParsePrefix(string(s)); err != nil || p != p.Masked() {
			v.add(field.Invalid(path.Index(i), string(s), "must be a prefix such as 10.0.0.0/8"))
		}
	}
}

const mostCIDRs = 64

// validator collects what is wrong with an object.
type validator struct{ errors field.ErrorList }

func (v *validator) add(err *field.Error) {
	if err != nil {
		v.errors = append(v.errors, err)
	}
}

// number checks one that may be absent.
func number[T int32 | int64](v *validator, path *field.Path, n *T, least, most T) {
	if n != nil && (*n < least || *n > most) {
		v.add(field.Invalid(path, *n, fmt.Sprintf("must be between %d and %d", least, most)))
	}
}

func (v *validator) duration(path *field.Path, d *Duration, b bounds) { v.add(b.check(path, d)) }

// oneOf checks a word.
func oneOf[T ~string](v *validator, path *field.Path, word T, words ...T) {
	for _, w := range words {
		if w == word {
			return
		}
	}
	v.add(field.NotSupported(path, word, words))
}

// optional checks a word that may be absent.
func optional[T ~string](v *validator, path *field.Path, word *T, words ...T) {
	if word != nil {
		oneOf(v, path, *word, words...)
	}
}

// text checks the form of a text.
func (v *validator) text(path *field.Path, s *string, most int, form *regexp.Regexp, rule string) {
	switch {
	case s == nil:
	case len(*s) > most:
		v.add(field.TooLong(path, *s, most))
	case !form.MatchString(*s):
		v.add(field.Invalid(path, *s, rule))
	}
}

var (
	pathForm = regexp.MustCompile(`^/[!-~]*$`)
	hostForm = regexp.MustCompile(`^[!-.0-~]+$`)
	nameForm = regexp.MustCompile("^[A-Za-z0-9!#$%&\\x27*+.^_`|~-]+$")
)

func (v *validator) balancing(path *field.Path, b *Balancing) {
	if b == nil {
		return
	}
	oneOf(v, path.Child("type"), b.Type, BalancingLeastRequest, BalancingRoundRobin, BalancingPeakEWMA, BalancingConsistentHash)
	v.duration(path.Child("slowStart"), b.SlowStart, bounds{least: time.Millisecond, most: time.Hour})
	h := b.HashOn
	if h == nil {
		return
	}
	if b.Type != BalancingConsistentHash {
		v.add(field.Invalid(path, b.Type, "hashOn goes with type ConsistentHash only"))
	}
	path = path.Child("hashOn")
	oneOf(v, path.Child("type"), h.Type, HashClientIP, HashHeader, HashCookie)
	if (h.Type == HashClientIP) != (h.Name == nil) {
		v.add(field.Invalid(path, h.Type, "name must be set for Header and Cookie, and for nothing else"))
	}
	v.text(path.Child("name"), h.Name, 256, nameForm, "must be the name of a header or a cookie")
}

func (v *validator) adaptive(path *field.Path, a *AdaptiveTimeout) {
	if a == nil {
		return
	}
	optional(v, path.Child("mode"), a.Mode, ModeEnforce, ModeObserve, ModeOff)
	number(v, path.Child("alphaPercent"), a.AlphaPercent, 1, 99)
	number(v, path.Child("betaPercent"), a.BetaPercent, 101, 10_000)
	within := bounds{least: time.Millisecond, most: time.Hour}
	v.duration(path.Child("initial"), a.Initial, within)
	v.duration(path.Child("min"), a.Min, within)
	v.duration(path.Child("max"), a.Max, within)
	if a.Min != nil && a.Max != nil && a.Min.Value() > a.Max.Value() {
		v.add(field.Invalid(path, *a.Min, "min must not be above max"))
	}
	if a.Initial != nil && a.Max != nil && a.Initial.Value() > a.Max.Value() {
		v.add(field.Invalid(path, *a.Initial, "initial must not be above max"))
	}
}

func (v *validator) check(path *field.Path, c *HealthCheck) {
	if c == nil {
		return
	}
	v.text(path.Child("path"), &c.Path, 1024, pathForm, "must begin with a slash and have no blank or control character")
	v.text(path.Child("host"), c.Host, 253, hostForm, "must be the value of a Host field")
	v.duration(path.Child("interval"), c.Interval, bounds{least: 100 * time.Millisecond, most: time.Hour})
	v.duration(path.Child("timeout"), c.Timeout, bounds{least: time.Millisecond, most: 10 * time.Minute})
	number(v, path.Child("unhealthy"), c.Unhealthy, 1, 100)
	number(v, path.Child("healthy"), c.Healthy, 1, 100)
	if n := len(c.Statuses); n > mostStatuses {
		v.add(field.TooMany(path.Child("statuses"), n, mostStatuses))
	}
	for i, r := range c.Statuses {
		if r.First < 100 || r.First > r.Last || r.Last > 599 {
			v.add(field.Invalid(path.Child("statuses").Index(i), fmt.Sprintf("%d-%d", r.First, r.Last), "must be a range within 100 and 599, first not above last"))
		}
	}
}

const mostStatuses = 16

func (v *validator) ejection(path *field.Path, e *Ejection) {
	if e == nil {
		return
	}
	optional(v, path.Child("mode"), e.Mode, SwitchEnforce, SwitchOff)
	number(v, path.Child("failures"), e.Failures, 1, 1000)
	within := bounds{least: 100 * time.Millisecond, most: 24 * time.Hour}
	v.duration(path.Child("period"), e.Period, within)
	v.duration(path.Child("maxPeriod"), e.MaxPeriod, within)
	number(v, path.Child("maxPercent"), e.MaxPercent, 1, 100)
}

// targets checks the references of a policy.
func (v *validator) targets(path *field.Path, refs []gatewayv1.LocalPolicyTargetReferenceWithSectionName) {
	if n := len(refs); n == 0 {
		v.add(field.Required(path, "must name at least one Service"))
	} else if n > mostTargets {
		v.add(field.TooMany(path, n, mostTargets))
	}
	type key struct{ name, section string }
	seen := make(map[key]bool)
	services, twice := true, false
	for _, r := range refs {
		k := key{name: string(r.Name)}
		if r.SectionName != nil {
			k.section = string(*r.SectionName)
		}
		services = services && r.Group == "" && r.Kind == "Service"
		twice = twice || seen[k]
		seen[k] = true
	}
	if !services {
		v.add(field.Invalid(path, len(refs), `must name Services: group "" and kind Service`))
	}
	if twice {
		v.add(field.Invalid(path, len(refs), "must not name the same Service, or the same port of it, twice"))
	}
}
