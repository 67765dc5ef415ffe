package kube

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/headgate/headgate/controllers/compile"
)

// managedBy is the label of objects that Headgate makes itself. Their metadata is
// kept, since it is compared with what it should be.
const (
	managedBy = "app.kubernetes.io/managed-by"
	manager   = "headgate"
)

// services are known by their type and ports, and those of type LoadBalancer by
// their addresses, too.
func services() kind {
	return &list[*corev1.Service]{
		names: about{kind: "Service"},
		new:   func() *corev1.Service { return new(corev1.Service) },
		lighten: func(o *corev1.Service) {
			if o.Labels[managedBy] != manager {
				strip(o)
			}
			o.Spec = corev1.ServiceSpec{Type: o.Spec.Type, Ports: o.Spec.Ports, ClusterIP: o.Spec.ClusterIP}
			words(&o.Spec)
			status := corev1.ServiceStatus{}
			if o.Spec.Type == corev1.ServiceTypeLoadBalancer {
				status.LoadBalancer = o.Status.LoadBalancer
			}
			o.Status = status
		},
		same: func(a, b *corev1.Service) bool {
			// What is compared with the server's must have the server's version.
			return b.Labels[managedBy] != manager && a.Labels[managedBy] != manager && equality.Semantic.DeepEqual(a.Spec, b.Spec) &&
				equality.Semantic.DeepEqual(a.Status, b.Status)
		},
		put: func(in *compile.Input, l []*corev1.Service) { in.Services = l },
	}
}
