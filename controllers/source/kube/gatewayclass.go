package kube

import (
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/controllers/compile"
)

func gatewayClasses() kind {
	return &list[*gatewayv1.GatewayClass]{
		names:   about{kind: "GatewayClass", crd: "gatewayclasses.gateway.networking.k8s.io"},
		new:     func() *gatewayv1.GatewayClass { return new(gatewayv1.GatewayClass) },
		lighten: func(o *gatewayv1.GatewayClass) { strip(o) },
		put:     func(in *compile.Input, l []*gatewayv1.GatewayClass) { in.Classes = l },
	}
}
