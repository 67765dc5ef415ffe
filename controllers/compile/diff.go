package compile

import (
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
)

// depKind says what a result was computed from.
type depKind uint8

const (
	depClass depKind = iota + 1
	depGateway
	depParent  // what routes see of a Gateway: its listeners
	depGrants  // all ReferenceGrants of a namespace; no name
	depSpace   // a Namespace; no namespace
	depService // a Service without its endpoints
	depSlices  // the EndpointSlices of a Service
	depSecret
	depParameters
	depPolicies // all BackendPolicies that name a Service
	depRivals   // the Services of type LoadBalancer; no name
)

// dep is one thing that a result was computed from.
type dep struct {
	kind      depKind
	namespace string
	name      string
}

// changes is what differs between two inputs.
type changes struct {
	all map[dep]struct{}
	few []dep // all, while they are few
}

// fewChanges is how many are compared one by one: every kept result asks, and
// mostly little has changed.
const fewChanges = 4

func (c *changes) add(kind depKind, namespace, name string) {
	if c.all == nil {
		c.all = make(map[dep]struct{})
	}
	d := dep{kind, namespace, name}
	if _, have := c.all[d]; have {
		return
	}
	c.all[d] = struct{}{}
	if len(c.few) < fewChanges {
		c.few = append(c.few, d)
	}
}

// has tells whether one of deps changed.
func (c *changes) has(deps []dep) bool {
	if len(c.all) == 0 {
		return false
	}
	if len(c.all) <= fewChanges {
		return slices.ContainsFunc(c.few, func(d dep) bool { return slices.Contains(deps, d) })
	}
	for _, d := range deps {
		if _, ok := c.all[d]; ok {
			return true
		}
	}
	return false
}

// sameObject tells whether a and b are the same version of an object, for all
// that the object says.
func sameObject[T object](a, b T) bool {
	return a == b || a.GetUID() != "" && a.GetUID() == b.GetUID() &&
		a.GetResourceVersion() != "" && a.GetResourceVersion() == b.GetResourceVersion()
}

// sameSpec is sameObject for kinds whose generation counts their specs, and of
// which only the spec and what never changes is read. A write of status is no
// change then.
func sameSpec[T object](a, b T) bool {
	return sameObject(a, b) || a.GetUID() != "" && a.GetUID() == b.GetUID() &&
		a.GetGeneration() > 0 && a.GetGeneration() == b.GetGeneration()
}

// diff walks two sorted lists and calls changed for each object that differs; was
// or is is the zero value when the object is only in one.
func diff[T object](old, cur []T, same func(a, b T) bool, changed func(was, is T)) {
	var none T
	i, j := 0, 0
	for i < len(old) || j < len(cur) {
		switch {
		case i < len(old) && j < len(cur) && old[i] == cur[j]:
			i, j = i+1, j+1
			continue
		case i == len(old):
			changed(none, cur[j])
			j++
			continue
		case j == len(cur):
			changed(old[i], none)
			i++
			continue
		}
		switch n := compareObjects(old[i], cur[j]); {
		case n < 0:
			changed(old[i], none)
			i++
		case n > 0:
			changed(none, cur[j])
			j++
		default:
			if !same(old[i], cur[j]) {
				changed(old[i], cur[j])
			}
			i, j = i+1, j+1
		}
	}
}

// diffInto notes every object that differs as one that results may depend on.
func diffInto[T object](ch *changes, kind depKind, old, cur []T, same func(a, b T) bool) (any bool) {
	var none T
	diff(old, cur, same, func(was, is T) {
		any = true
		if is == none {
			is = was
		}
		ch.add(kind, is.GetNamespace(), is.GetName())
	})
	return any
}

// serviceOf returns the name of the Service that a slice belongs to, or "".
func serviceOf(s *discoveryv1.EndpointSlice) string {
	return s.Labels[discoveryv1.LabelServiceName]
}
