package file

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// The defaults that the API server fills in, from the CRDs of Gateway API and
// from the built-in kinds. What is left out has no meaning for Headgate.

// defaultNamespace is where objects without a namespace are.
const defaultNamespace = "default"

// nameLabel is the label that every namespace has.
const nameLabel = corev1.LabelMetadataName

// set fills in a default.
func set[T any](p **T, value T) {
	if *p == nil {
		*p = &value
	}
}

func defaultGatewayClass(o *gatewayv1.GatewayClass) { o.Status = gatewayv1.GatewayClassStatus{} }

func defaultGateway(o *gatewayv1.Gateway) {
	o.Status = gatewayv1.GatewayStatus{}
	for i := range o.Spec.Addresses {
		set(&o.Spec.Addresses[i].Type, gatewayv1.IPAddressType)
	}
	if a := o.Spec.AllowedListeners; a != nil {
		set(&a.Namespaces, gatewayv1.ListenerNamespaces{})
		set(&a.Namespaces.From, gatewayv1.NamespacesFromNone)
	}
	defaultTLS(o.Spec.TLS)
	for i := range o.Spec.Listeners {
		l := &o.Spec.Listeners[i]
		set(&l.AllowedRoutes, gatewayv1.AllowedRoutes{})
		set(&l.AllowedRoutes.Namespaces, gatewayv1.RouteNamespaces{})
		set(&l.AllowedRoutes.Namespaces.From, gatewayv1.NamespacesFromSame)
		for j := range l.AllowedRoutes.Kinds {
			set(&l.AllowedRoutes.Kinds[j].Group, gatewayv1.GroupName)
		}
		if l.TLS != nil {
			set(&l.TLS.Mode, gatewayv1.TLSModeTerminate)
			for j := range l.TLS.CertificateRefs {
				defaultSecretRef(&l.TLS.CertificateRefs[j])
			}
		}
	}
}

func defaultSecretRef(r *gatewayv1.SecretObjectReference) {
	set(&r.Group, "")
	set(&r.Kind, "Secret")
}

func defaultTLS(t *gatewayv1.GatewayTLSConfig) {
	if t == nil {
		return
	}
	if t.Backend != nil && t.Backend.ClientCertificateRef != nil {
		defaultSecretRef(t.Backend.ClientCertificateRef)
	}
	if t.Frontend == nil {
		return
	}
	configs := []*gatewayv1.TLSConfig{&t.Frontend.Default}
	for i := range t.Frontend.PerPort {
		configs = append(configs, &t.Frontend.PerPort[i].TLS)
	}
	for _, c := range configs {
		if c.Validation != nil && c.Validation.Mode == "" {
			c.Validation.Mode = gatewayv1.AllowValidOnly
		}
	}
}

func defaultHTTPRoute(o *gatewayv1.HTTPRoute) {
	o.Status = gatewayv1.HTTPRouteStatus{}
	for i := range o.Spec.ParentRefs {
		set(&o.Spec.ParentRefs[i].Group, gatewayv1.GroupName)
		set(&o.Spec.ParentRefs[i].Kind, "Gateway")
	}
	if o.Spec.Rules == nil {
		o.Spec.Rules = []gatewayv1.HTTPRouteRule{{}}
	}
	for i := range o.Spec.Rules {
		r := &o.Spec.Rules[i]
		if r.Matches == nil {
			r.Matches = []gatewayv1.HTTPRouteMatch{{}}
		}
		for j := range r.Matches {
			defaultMatch(&r.Matches[j])
		}
		defaultFilters(r.Filters)
		for j := range r.BackendRefs {
			b := &r.BackendRefs[j]
			set(&b.Weight, 1)
			defaultBackend(&b.BackendObjectReference)
			defaultFilters(b.Filters)
		}
	}
}

func defaultMatch(m *gatewayv1.HTTPRouteMatch) {
	set(&m.Path, gatewayv1.HTTPPathMatch{})
	set(&m.Path.Type, gatewayv1.PathMatchPathPrefix)
	set(&m.Path.Value, "/")
	for i := range m.Headers {
		set(&m.Headers[i].Type, gatewayv1.HeaderMatchExact)
	}
	for i := range m.QueryParams {
		set(&m.QueryParams[i].Type, gatewayv1.QueryParamMatchExact)
	}
}

func defaultFilters(fs []gatewayv1.HTTPRouteFilter) {
	for i := range fs {
		if r := fs[i].RequestRedirect; r != nil {
			set(&r.StatusCode, 302)
		}
		if m := fs[i].RequestMirror; m != nil {
			defaultBackend(&m.BackendRef)
		}
		if c := fs[i].CORS; c != nil && c.MaxAge == 0 {
			c.MaxAge = 5
		}
		if a := fs[i].ExternalAuth; a != nil {
			defaultBackend(&a.BackendRef)
		}
	}
}

func defaultBackend(b *gatewayv1.BackendObjectReference) {
	set(&b.Group, "")
	set(&b.Kind, "Service")
}

func defaultNamespaceObject(o *corev1.Namespace) {
	if o.Labels[nameLabel] != o.Name {
		if o.Labels == nil {
			o.Labels = make(map[string]string, 1)
		}
		o.Labels[nameLabel] = o.Name
	}
}

func defaultService(o *corev1.Service) {
	o.Status = corev1.ServiceStatus{}
	if o.Spec.Type == "" {
		o.Spec.Type = corev1.ServiceTypeClusterIP
	}
	for i := range o.Spec.Ports {
		p := &o.Spec.Ports[i]
		if p.Protocol == "" {
			p.Protocol = corev1.ProtocolTCP
		}
		if p.TargetPort == (intstr.IntOrString{}) {
			p.TargetPort = intstr.FromInt32(p.Port)
		}
	}
}

func defaultSecret(o *corev1.Secret) {
	if o.Type == "" {
		o.Type = corev1.SecretTypeOpaque
	}
	for k, v := range o.StringData {
		if o.Data == nil {
			o.Data = make(map[string][]byte, len(o.StringData))
		}
		o.Data[k] = []byte(v)
	}
	o.StringData = nil
}

func defaultEndpointSlice(o *discoveryv1.EndpointSlice) {
	for i := range o.Ports {
		set(&o.Ports[i].Name, "")
		set(&o.Ports[i].Protocol, corev1.ProtocolTCP)
	}
}
