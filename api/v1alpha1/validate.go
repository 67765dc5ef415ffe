package v1alpha1

import (
	"fmt"
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
		v.number(at.Child("size"), pool.Size, 1, 1_000_000)
		v.number(at.Child("waiting"), pool.Waiting, 0, 1_000_000)
		v.duration(at.Child("waitTimeout"), pool.WaitTimeout, bounds{least: time.Millisecond, most: 10 * time.Minute})
		v.duration(at.Child("connectTimeout"), pool.ConnectTimeout, bounds{least: time.Millisecond, most: 10 * time.Minute})
		v.duration(at.Child("responseTimeout"), pool.ResponseTimeout, bounds{least: time.Millisecond, most: 24 * time.Hour, zero: true})
		v.duration(at.Child("idleTimeout"), pool.IdleTimeout, bounds{least: time.Millisecond, most: 24 * time.Hour})
		v.duration(at.Child("maxAge"), pool.MaxAge, bounds{least: time.Second, most: 720 * time.Hour})
	}
	if b := p.Spec.Balancing; b != nil {
		oneOf(&v, spec.Child("balancing", "type"), b.Type, BalancingLeastRequest, BalancingRoundRobin)
	}
	return v.errors
}

// validator collects what is wrong with an object.
type validator struct{ errors field.ErrorList }

func (v *validator) add(err *field.Error) {
	if err != nil {
		v.errors = append(v.errors, err)
	}
}

// number checks one that may be absent.
func (v *validator) number(path *field.Path, n *int32, least, most int32) {
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
