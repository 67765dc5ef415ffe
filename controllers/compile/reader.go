package compile

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/api/v1alpha1"
)

// reader looks objects up and notes what was looked up, so that a result can be
// kept until something that it was made from changes. Results must see objects
// other than their own through it only.
type reader struct {
	in       *Input
	grants   map[string][]*gatewayv1.ReferenceGrant
	slices   map[types.NamespacedName][]*discoveryv1.EndpointSlice
	parents  map[types.NamespacedName]*parent
	policies policySet
	deps     []dep
}

func (r *reader) note(kind depKind, namespace, name string) {
	d := dep{kind, namespace, name}
	for _, have := range r.deps {
		if have == d {
			return
		}
	}
	r.deps = append(r.deps, d)
}

// service returns the Service, or nil.
func (r *reader) service(namespace, name string) *corev1.Service {
	r.note(depService, namespace, name)
	return find(r.in.Services, namespace, name)
}

// endpointSlices returns the slices of a Service, sorted.
func (r *reader) endpointSlices(namespace, service string) []*discoveryv1.EndpointSlice {
	r.note(depSlices, namespace, service)
	return r.slices[types.NamespacedName{Namespace: namespace, Name: service}]
}

// parameters returns the GatewayParameters, or nil.
func (r *reader) parameters(namespace, name string) *v1alpha1.GatewayParameters {
	r.note(depParameters, namespace, name)
	return find(r.in.Parameters, namespace, name)
}

// secret returns the Secret, or nil.
func (r *reader) secret(namespace, name string) *corev1.Secret {
	r.note(depSecret, namespace, name)
	return find(r.in.Secrets, namespace, name)
}

// granted tells whether the reference stays in its namespace or is allowed by a
// grant.
func (r *reader) granted(ref reference) bool {
	if ref.fromNamespace == ref.toSpace {
		return true
	}
	r.note(depGrants, ref.toSpace, "")
	return granted(r.grants[ref.toSpace], ref)
}

// labels returns a namespace's labels; ok is false when there is no such
// namespace.
func (r *reader) labels(namespace string) (set labels.Set, ok bool) {
	r.note(depSpace, "", namespace)
	ns := find(r.in.Namespaces, "", namespace)
	if ns == nil {
		return nil, false
	}
	return ns.Labels, true
}

// parent returns the Gateway's listeners when it is ours, or nil.
func (r *reader) parent(namespace, name string) *parent {
	r.note(depParent, namespace, name)
	return r.parents[types.NamespacedName{Namespace: namespace, Name: name}]
}

// gateway returns a Gateway, whosever it is, or nil.
func (r *reader) gateway(namespace, name string) *gatewayv1.Gateway {
	r.note(depGateway, namespace, name)
	return find(r.in.Gateways, namespace, name)
}
