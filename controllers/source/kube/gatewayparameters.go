package kube

import (
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/compile"
)

func gatewayParameters() kind {
	return &list[*v1alpha1.GatewayParameters]{
		names:   about{kind: "GatewayParameters", crd: "gatewayparameters.headgate.dev"},
		new:     func() *v1alpha1.GatewayParameters { return new(v1alpha1.GatewayParameters) },
		lighten: func(o *v1alpha1.GatewayParameters) { strip(o) },
		same: func(a, b *v1alpha1.GatewayParameters) bool {
			return equality.Semantic.DeepEqual(a.Spec, b.Spec)
		},
		put: func(in *compile.Input, l []*v1alpha1.GatewayParameters) { in.Parameters = l },
	}
}
