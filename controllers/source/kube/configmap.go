package kube

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/controllers/compile"
)

// configMaps are those that hold the authorities of client certificates.
func configMaps() reference {
	return &named[*corev1.ConfigMap]{
		kind: "ConfigMap",
		new:  func() *corev1.ConfigMap { return new(corev1.ConfigMap) },
		list: func() client.ObjectList { return new(corev1.ConfigMapList) },
		strip: func(o *corev1.ConfigMap) {
			strip(o)
			o.BinaryData = nil
		},
		of: func(gw *gatewayv1.Gateway) []types.NamespacedName {
			if gw.Spec.TLS == nil || gw.Spec.TLS.Frontend == nil {
				return nil
			}
			var names []types.NamespacedName
			add := func(t gatewayv1.TLSConfig) {
				if t.Validation == nil {
					return
				}
				for _, ref := range t.Validation.CACertificateRefs {
					if ref.Kind != "ConfigMap" || ref.Group != "" {
						continue
					}
					names = append(names, types.NamespacedName{
						Namespace: string(deref(ref.Namespace, gatewayv1.Namespace(gw.Namespace))), Name: string(ref.Name),
					})
				}
			}
			add(gw.Spec.TLS.Frontend.Default)
			for _, p := range gw.Spec.TLS.Frontend.PerPort {
				add(p.TLS)
			}
			return names
		},
		put: func(in *compile.Input, l []*corev1.ConfigMap) { in.ConfigMaps = l },
	}
}
