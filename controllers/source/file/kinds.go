package file

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/compile"
)

// kind is a kind of object that is read. One entry in kindOf and one field in
// compile.Input make a new one.
type kind struct {
	name       string
	namespaced bool
	new        func() metav1.Object
	defaults   func(metav1.Object)
	check      func(*checker, metav1.Object)
	add        func(*compile.Input, metav1.Object)
	copy       func(metav1.Object) metav1.Object
}

// define makes a kind of functions that know its type.
func define[T any, P interface {
	*T
	metav1.Object
	DeepCopy() *T
}](name string, namespaced bool, defaults func(P), check func(*checker, P), list func(*compile.Input) *[]P) *kind {
	return &kind{
		name: name, namespaced: namespaced,
		new:      func() metav1.Object { return P(new(T)) },
		defaults: func(o metav1.Object) { defaults(o.(P)) },
		check:    func(c *checker, o metav1.Object) { check(c, o.(P)) },
		add: func(in *compile.Input, o metav1.Object) {
			l := list(in)
			*l = append(*l, o.(P))
		},
		copy: func(o metav1.Object) metav1.Object { return P(o.(P).DeepCopy()) },
	}
}

// kindOf returns the kind, or nil for one that is not read. The beta versions of
// the Gateway API kinds have the same fields.
func kindOf(apiVersion, name string) *kind {
	switch apiVersion {
	case "gateway.networking.k8s.io/v1", "gateway.networking.k8s.io/v1beta1":
		switch name {
		case "GatewayClass":
			return define(name, false, defaultGatewayClass, checkGatewayClass,
				func(in *compile.Input) *[]*gatewayv1.GatewayClass { return &in.Classes })
		case "Gateway":
			return define(name, true, defaultGateway, checkGateway,
				func(in *compile.Input) *[]*gatewayv1.Gateway { return &in.Gateways })
		case "HTTPRoute":
			return define(name, true, defaultHTTPRoute, checkHTTPRoute,
				func(in *compile.Input) *[]*gatewayv1.HTTPRoute { return &in.HTTPRoutes })
		case "ReferenceGrant":
			return define(name, true, func(*gatewayv1.ReferenceGrant) {}, checkReferenceGrant,
				func(in *compile.Input) *[]*gatewayv1.ReferenceGrant { return &in.Grants })
		}
	case "headgate.dev/v1alpha1":
		switch name {
		case "GatewayParameters":
			return define(name, true, func(*v1alpha1.GatewayParameters) {},
				func(c *checker, o *v1alpha1.GatewayParameters) { c.all(o.Validate()) },
				func(in *compile.Input) *[]*v1alpha1.GatewayParameters { return &in.Parameters })
		case "BackendPolicy":
			return define(name, true, func(*v1alpha1.BackendPolicy) {}, checkBackendPolicy,
				func(in *compile.Input) *[]*v1alpha1.BackendPolicy { return &in.BackendPolicies })
		}
	case "v1":
		switch name {
		case "Namespace":
			return define(name, false, defaultNamespaceObject, func(*checker, *corev1.Namespace) {},
				func(in *compile.Input) *[]*corev1.Namespace { return &in.Namespaces })
		case "Service":
			return define(name, true, defaultService, checkService,
				func(in *compile.Input) *[]*corev1.Service { return &in.Services })
		case "Secret":
			return define(name, true, defaultSecret, checkSecret,
				func(in *compile.Input) *[]*corev1.Secret { return &in.Secrets })
		case "ConfigMap":
			return define(name, true, func(*corev1.ConfigMap) {}, func(*checker, *corev1.ConfigMap) {},
				func(in *compile.Input) *[]*corev1.ConfigMap { return &in.ConfigMaps })
		}
	case "discovery.k8s.io/v1":
		if name == "EndpointSlice" {
			return define(name, true, defaultEndpointSlice, checkEndpointSlice,
				func(in *compile.Input) *[]*discoveryv1.EndpointSlice { return &in.EndpointSlices })
		}
	}
	return nil
}
