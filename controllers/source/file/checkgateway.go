package file

import (
	"fmt"
	"net/netip"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

func checkGatewayClass(c *checker, o *gatewayv1.GatewayClass) {
	name := string(o.Spec.ControllerName)
	c.must(len(name) <= 253 && controller.MatchString(name), "spec.controllerName",
		"%q is not the name of a controller, such as headgate.dev/gateway-controller", name)
	if p := o.Spec.ParametersRef; p != nil {
		c.reference("spec.parametersRef", p.Group, p.Kind, gatewayv1.ObjectName(p.Name), p.Namespace)
	}
	c.must(o.Spec.Description == nil || len(*o.Spec.Description) <= 64, "spec.description", "must have at most 64 characters")
}

func checkGateway(c *checker, o *gatewayv1.Gateway) {
	c.must(o.Spec.GatewayClassName != "" && len(o.Spec.GatewayClassName) <= 253, "spec.gatewayClassName", "must have 1 to 253 characters")
	if in := o.Spec.Infrastructure; in != nil && in.ParametersRef != nil {
		c.reference("spec.infrastructure.parametersRef", in.ParametersRef.Group, in.ParametersRef.Kind, gatewayv1.ObjectName(in.ParametersRef.Name), nil)
	}
	c.gatewayTLS(o.Spec.TLS)
	c.between("spec.listeners", len(o.Spec.Listeners), 1, 64)
	names := make(map[gatewayv1.SectionName]bool)
	type place struct {
		port     int32
		protocol gatewayv1.ProtocolType
		hostname gatewayv1.Hostname
	}
	places := make(map[place]gatewayv1.SectionName)
	for i := range o.Spec.Listeners {
		l, field := &o.Spec.Listeners[i], fmt.Sprintf("spec.listeners[%d]", i)
		c.subdomain(field+".name", string(l.Name))
		c.must(!names[l.Name], field+".name", "%q is the name of another listener", l.Name)
		names[l.Name] = true
		at := place{l.Port, l.Protocol, ""}
		if l.Hostname != nil {
			at.hostname = *l.Hostname
		}
		if other, ok := places[at]; ok {
			c.fail(field, "listener %s has the same port, protocol and hostname", other)
		}
		places[at] = l.Name
		c.listener(field, l)
	}
	c.between("spec.addresses", len(o.Spec.Addresses), 0, 16)
	seen := make(map[string]bool)
	for i, a := range o.Spec.Addresses {
		field := fmt.Sprintf("spec.addresses[%d]", i)
		if a.Value == "" {
			continue
		}
		key := string(*a.Type) + " " + a.Value
		c.must(!seen[key], field, "%q is there twice", a.Value)
		seen[key] = true
		switch *a.Type {
		case gatewayv1.IPAddressType:
			_, err := netip.ParseAddr(a.Value)
			c.must(err == nil, field+".value", "%q is not an IP address", a.Value)
		case gatewayv1.HostnameAddressType:
			c.hostname(field+".value", a.Value)
		}
	}
}

// gatewayTLS checks what a Gateway asks of its clients and backends.
func (c *checker) gatewayTLS(t *gatewayv1.GatewayTLSConfig) {
	if t == nil {
		return
	}
	if t.Backend != nil && t.Backend.ClientCertificateRef != nil {
		r := t.Backend.ClientCertificateRef
		c.reference("spec.tls.backend.clientCertificateRef", *r.Group, *r.Kind, r.Name, r.Namespace)
	}
	if t.Frontend == nil {
		return
	}
	c.validation("spec.tls.frontend.default.validation", t.Frontend.Default.Validation)
	c.between("spec.tls.frontend.perPort", len(t.Frontend.PerPort), 0, 64)
	seen := make(map[int32]bool)
	for i, p := range t.Frontend.PerPort {
		field := fmt.Sprintf("spec.tls.frontend.perPort[%d]", i)
		c.port(field+".port", p.Port)
		c.must(!seen[p.Port], field+".port", "port %d is there twice", p.Port)
		seen[p.Port] = true
		c.validation(field+".tls.validation", p.TLS.Validation)
	}
}

func (c *checker) validation(field string, v *gatewayv1.FrontendTLSValidation) {
	if v == nil {
		return
	}
	c.between(field+".caCertificateRefs", len(v.CACertificateRefs), 1, 16)
	for i, r := range v.CACertificateRefs {
		c.reference(fmt.Sprintf("%s.caCertificateRefs[%d]", field, i), r.Group, r.Kind, r.Name, r.Namespace)
	}
	c.must(v.Mode == gatewayv1.AllowValidOnly || v.Mode == gatewayv1.AllowInsecureFallback, field+".mode",
		"%q is unknown; use AllowValidOnly or AllowInsecureFallback", v.Mode)
}

func (c *checker) listener(field string, l *gatewayv1.Listener) {
	c.port(field+".port", l.Port)
	c.must(len(l.Protocol) <= 255 && protocolName.MatchString(string(l.Protocol)), field+".protocol", "%q is not a protocol", l.Protocol)
	streams := l.Protocol == gatewayv1.TCPProtocolType || l.Protocol == gatewayv1.UDPProtocolType
	if l.Hostname != nil {
		c.must(!streams || *l.Hostname == "", field+".hostname", "protocol %s has no hostname", l.Protocol)
		c.hostname(field+".hostname", string(*l.Hostname))
	}
	switch t := l.TLS; {
	case t == nil:
		c.must(l.Protocol != gatewayv1.TLSProtocolType, field+".tls", "must be set for protocol TLS")
	case streams || l.Protocol == gatewayv1.HTTPProtocolType:
		c.fail(field+".tls", "protocol %s has no tls", l.Protocol)
	default:
		c.tls(field+".tls", l.Protocol, t)
	}
	a := l.AllowedRoutes
	switch from := *a.Namespaces.From; from {
	case gatewayv1.NamespacesFromAll, gatewayv1.NamespacesFromSame, gatewayv1.NamespacesFromSelector:
	default:
		c.fail(field+".allowedRoutes.namespaces.from", "%q is unknown; use All, Same or Selector", from)
	}
	c.between(field+".allowedRoutes.kinds", len(a.Kinds), 0, 8)
	for i, k := range a.Kinds {
		c.kind(fmt.Sprintf("%s.allowedRoutes.kinds[%d]", field, i), *k.Group, k.Kind)
	}
}

func (c *checker) tls(field string, protocol gatewayv1.ProtocolType, t *gatewayv1.ListenerTLSConfig) {
	switch *t.Mode {
	case gatewayv1.TLSModeTerminate:
		c.must(len(t.CertificateRefs)+len(t.Options) > 0, field+".certificateRefs", "mode Terminate needs a certificate")
	case gatewayv1.TLSModePassthrough:
		c.must(protocol != gatewayv1.HTTPSProtocolType, field+".mode", "protocol HTTPS needs mode Terminate")
	default:
		c.fail(field+".mode", "%q is unknown; use Terminate or Passthrough", *t.Mode)
	}
	c.between(field+".certificateRefs", len(t.CertificateRefs), 0, 64)
	for i, r := range t.CertificateRefs {
		c.reference(fmt.Sprintf("%s.certificateRefs[%d]", field, i), *r.Group, *r.Kind, r.Name, r.Namespace)
	}
	c.between(field+".options", len(t.Options), 0, 16)
}

// kind checks a group and a kind.
func (c *checker) kind(field string, group gatewayv1.Group, kind gatewayv1.Kind) {
	if group != "" {
		c.subdomain(field+".group", string(group))
	}
	c.must(len(kind) <= 63 && kindName.MatchString(string(kind)), field+".kind", "%q is not a kind", kind)
}

// reference checks a reference to an object.
func (c *checker) reference(field string, group gatewayv1.Group, kind gatewayv1.Kind, name gatewayv1.ObjectName, namespace *gatewayv1.Namespace) {
	c.kind(field, group, kind)
	c.must(name != "" && len(name) <= 253, field+".name", "must have 1 to 253 characters")
	if namespace != nil {
		c.namespace(field+".namespace", string(*namespace))
	}
}

func checkReferenceGrant(c *checker, o *gatewayv1.ReferenceGrant) {
	c.between("spec.from", len(o.Spec.From), 1, 16)
	for i, f := range o.Spec.From {
		field := fmt.Sprintf("spec.from[%d]", i)
		c.kind(field, f.Group, f.Kind)
		c.namespace(field+".namespace", string(f.Namespace))
	}
	c.between("spec.to", len(o.Spec.To), 1, 16)
	for i, t := range o.Spec.To {
		field := fmt.Sprintf("spec.to[%d]", i)
		c.kind(field, t.Group, t.Kind)
		c.must(t.Name == nil || *t.Name != "", field+".name", "must not be empty; leave it out to mean all")
	}
}
