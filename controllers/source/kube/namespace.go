package kube

import (
	"maps"

	corev1 "k8s.io/api/core/v1"

	"github.com/headgate/headgate/controllers/compile"
)

// namespaces are known by their labels.
func namespaces() kind {
	return &list[*corev1.Namespace]{
		names: about{kind: "Namespace"},
		new:   func() *corev1.Namespace { return new(corev1.Namespace) },
		lighten: func(o *corev1.Namespace) {
			labels := o.Labels
			strip(o)
			o.Labels = labels
			o.Spec, o.Status = corev1.NamespaceSpec{}, corev1.NamespaceStatus{}
		},
		same: func(a, b *corev1.Namespace) bool { return maps.Equal(a.Labels, b.Labels) },
		put:  func(in *compile.Input, l []*corev1.Namespace) { in.Namespaces = l },
	}
}
