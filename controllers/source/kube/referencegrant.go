package kube

import (
	"k8s.io/apimachinery/pkg/api/equality"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/controllers/compile"
)

func referenceGrants() kind {
	return &list[*gatewayv1.ReferenceGrant]{
		names:   about{kind: "ReferenceGrant", crd: "referencegrants.gateway.networking.k8s.io"},
		new:     func() *gatewayv1.ReferenceGrant { return new(gatewayv1.ReferenceGrant) },
		lighten: func(o *gatewayv1.ReferenceGrant) { strip(o) },
		same: func(a, b *gatewayv1.ReferenceGrant) bool {
			return equality.Semantic.DeepEqual(a.Spec, b.Spec)
		},
		put: func(in *compile.Input, l []*gatewayv1.ReferenceGrant) { in.Grants = l },
	}
}
