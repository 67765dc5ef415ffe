package kube

import (
	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/compile"
)

func backendPolicies() kind {
	return &list[*v1alpha1.BackendPolicy]{
		names:   about{kind: "BackendPolicy", crd: "backendpolicies.headgate.dev"},
		new:     func() *v1alpha1.BackendPolicy { return new(v1alpha1.BackendPolicy) },
		lighten: func(o *v1alpha1.BackendPolicy) { strip(o) },
		put:     func(in *compile.Input, l []*v1alpha1.BackendPolicy) { in.BackendPolicies = l },
	}
}
