package compile

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/dataplane/ir"
)

// maxWeight is the largest weight of a backend.
const maxWeight = 1_000_000

// backends reads the backends of a rule. A reference that can't be resolved
// stays, so that its share of the requests is answered 500.
func (b *ruleBuilder) backends(spec *gatewayv1.HTTPRouteRule) []*ir.Backend {
	var list []*ir.Backend
	for i := range spec.BackendRefs {
		field := fmt.Sprintf("%s.backendRefs[%d]", b.field, i)
		ref := &spec.BackendRefs[i]
		back := &ir.Backend{Weight: 1, Filters: b.backendFilters(ref.Filters, field)}
		if ref.Weight != nil {
			if *ref.Weight < 0 || *ref.Weight > maxWeight {
				b.unsupported(field+".weight", "weight %d is not between 0 and %d", *ref.Weight, maxWeight)
			} else {
				back.Weight = uint32(*ref.Weight)
			}
		}
		key, bad := b.resolve(&ref.BackendObjectReference)
		if bad == nil {
			back.Cluster = key.String()
			b.clusters = append(b.clusters, key)
		} else {
			back.Invalid = bad.message
			bad.field = field
			b.set.refs = append(b.set.refs, *bad)
		}
		list = append(list, back)
	}
	if len(list) > 0 {
		for _, f := range spec.Filters {
			if f.Type == gatewayv1.HTTPRouteFilterRequestRedirect {
				b.fault(b.field, gatewayv1.RouteReasonIncompatibleFilters, "RequestRedirect answers every request, so backendRefs get none; remove one of them")
				break
			}
		}
	}
	return list
}

// resolve returns the cluster that a reference names, or what is wrong with it.
func (b *ruleBuilder) resolve(ref *gatewayv1.BackendObjectReference) (clusterKey, *issue) {
	bad := func(reason gatewayv1.RouteConditionReason, format string, args ...any) (clusterKey, *issue) {
		return clusterKey{}, &issue{severity: Error, reason: string(reason), message: fmt.Sprintf(format, args...)}
	}
	group, kind, namespace := coreGroup, kindService, b.namespace
	if ref.Group != nil {
		group = string(*ref.Group)
	}
	if ref.Kind != nil {
		kind = string(*ref.Kind)
	}
	if ref.Namespace != nil && *ref.Namespace != "" {
		namespace = string(*ref.Namespace)
	}
	name := string(ref.Name)
	if group != coreGroup || kind != kindService {
		return bad(gatewayv1.RouteReasonInvalidKind, "kind %s is not supported; use a Service", kindText((*gatewayv1.Group)(&group), gatewayv1.Kind(kind)))
	}
	// The grant comes before existence: without it nothing is said of the other
	// namespace.
	if !b.granted(reference{kindHTTPRoute, b.namespace, group, kind, namespace, name}) {
		return bad(gatewayv1.RouteReasonRefNotPermitted,
			"Service %s/%s: no ReferenceGrant in namespace %s lets HTTPRoutes of namespace %s use it", namespace, name, namespace, b.namespace)
	}
	if ref.Port == nil {
		return bad(gatewayv1.RouteReasonBackendNotFound, "Service %s/%s: name one of its ports", namespace, name)
	}
	svc := b.service(namespace, name)
	if svc == nil {
		return bad(gatewayv1.RouteReasonBackendNotFound, "Service %s/%s does not exist", namespace, name)
	}
	if svc.Spec.Type == corev1.ServiceTypeExternalName {
		// A name that the Service's author chooses could lead anywhere.
		return bad(gatewayv1.RouteReasonInvalidKind,
			"Service %s/%s is of type ExternalName, which is not supported; use a Service with endpoints", namespace, name)
	}
	port := servicePort(svc, *ref.Port)
	if port == nil {
		return bad(gatewayv1.RouteReasonBackendNotFound, "Service %s/%s has no TCP port %d; it has %s", namespace, name, *ref.Port, portList(svc))
	}
	if app := port.AppProtocol; app != nil && !speaksHTTP1(*app) {
		return bad(gatewayv1.RouteReasonUnsupportedProtocol,
			"Service %s/%s, port %d: appProtocol %q is not supported; use http or kubernetes.io/ws, or leave it out", namespace, name, *ref.Port, *app)
	}
	return clusterKey{namespace, name, *ref.Port}, nil
}

// servicePort returns the Service's TCP port with the number, or nil.
func servicePort(svc *corev1.Service, number int32) *corev1.ServicePort {
	for i := range svc.Spec.Ports {
		p := &svc.Spec.Ports[i]
		if p.Port == number && (p.Protocol == corev1.ProtocolTCP || p.Protocol == "") {
			return p
		}
	}
	return nil
}

// speaksHTTP1 tells whether an appProtocol is HTTP/1.1 in clear, to which a
// WebSocket is an upgrade.
func speaksHTTP1(appProtocol string) bool {
	return appProtocol == "" || appProtocol == "http" || appProtocol == "kubernetes.io/ws"
}

func portList(svc *corev1.Service) string {
	var names []string
	for _, p := range svc.Spec.Ports {
		s := fmt.Sprint(p.Port)
		if p.Protocol != "" && p.Protocol != corev1.ProtocolTCP {
			s += "/" + string(p.Protocol)
		}
		names = append(names, s)
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.TrimSpace(listed(names))
}
