package kube

import (
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/controllers/compile"
)

func httpRoutes() kind {
	return &list[*gatewayv1.HTTPRoute]{
		names: about{kind: "HTTPRoute", crd: "httproutes.gateway.networking.k8s.io"},
		new:   func() *gatewayv1.HTTPRoute { return new(gatewayv1.HTTPRoute) },
		lighten: func(o *gatewayv1.HTTPRoute) {
			strip(o)
			words(&o.TypeMeta)
			words(&o.Spec)
			words(&o.Status)
		},
		put: func(in *compile.Input, l []*gatewayv1.HTTPRoute) { in.HTTPRoutes = l },
	}
}
