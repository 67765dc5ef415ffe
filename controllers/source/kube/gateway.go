package kube

import (
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/controllers/compile"
)

func gateways() kind {
	return &list[*gatewayv1.Gateway]{
		names:   about{kind: "Gateway", crd: "gateways.gateway.networking.k8s.io"},
		new:     func() *gatewayv1.Gateway { return new(gatewayv1.Gateway) },
		lighten: func(o *gatewayv1.Gateway) { strip(o) },
		put:     func(in *compile.Input, l []*gatewayv1.Gateway) { in.Gateways = l },
	}
}
