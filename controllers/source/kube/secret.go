package kube

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/controllers/compile"
)

// secrets are those that listeners present as certificates.
func secrets() reference {
	return &named[*corev1.Secret]{
		kind: "Secret",
		new:  func() *corev1.Secret { return new(corev1.Secret) },
		list: func() client.ObjectList { return new(corev1.SecretList) },
		strip: func(o *corev1.Secret) {
			strip(o)
			for k := range o.Data {
				if k != corev1.TLSCertKey && k != corev1.TLSPrivateKeyKey {
					delete(o.Data, k)
				}
			}
		},
		of: func(gw *gatewayv1.Gateway) []types.NamespacedName {
			var names []types.NamespacedName
			for i := range gw.Spec.Listeners {
				t := gw.Spec.Listeners[i].TLS
				if t == nil {
					continue
				}
				for _, ref := range t.CertificateRefs {
					if deref(ref.Kind, "Secret") != "Secret" || deref(ref.Group, "") != "" {
						continue
					}
					names = append(names, types.NamespacedName{
						Namespace: string(deref(ref.Namespace, gatewayv1.Namespace(gw.Namespace))), Name: string(ref.Name),
					})
				}
			}
			return names
		},
		put: func(in *compile.Input, l []*corev1.Secret) { in.Secrets = l },
	}
}

func deref[T any](p *T, def T) T {
	if p == nil {
		return def
	}
	return *p
}
