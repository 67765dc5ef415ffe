package kube

import (
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/compile"
)

// dataPlanes are what the processes of all nodes say of themselves.
func dataPlanes() kind {
	return &list[*v1alpha1.DataPlane]{
		names:   about{kind: "DataPlane", crd: "dataplanes.headgate.dev"},
		new:     func() *v1alpha1.DataPlane { return new(v1alpha1.DataPlane) },
		lighten: func(o *v1alpha1.DataPlane) { strip(o) },
		same: func(a, b *v1alpha1.DataPlane) bool {
			return a.ResourceVersion == b.ResourceVersion || equality.Semantic.DeepEqual(a.Status, b.Status)
		},
		slow: true,
		put:  func(in *compile.Input, l []*v1alpha1.DataPlane) { in.DataPlanes = l },
	}
}
