package file

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func checkService(c *checker, o *corev1.Service) {
	switch o.Spec.Type {
	case corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer:
	case corev1.ServiceTypeExternalName:
		c.must(o.Spec.ExternalName != "", "spec.externalName", "must be set for type ExternalName")
		return
	default:
		c.fail("spec.type", "%q is unknown", o.Spec.Type)
	}
	c.must(len(o.Spec.Ports) > 0 || o.Spec.ClusterIP == corev1.ClusterIPNone, "spec.ports", "must have at least 1")
	names := make(map[string]bool)
	type port struct {
		number   int32
		protocol corev1.Protocol
	}
	ports := make(map[port]bool)
	for i := range o.Spec.Ports {
		p, field := &o.Spec.Ports[i], fmt.Sprintf("spec.ports[%d]", i)
		c.port(field+".port", p.Port)
		c.must(p.Name != "" || len(o.Spec.Ports) == 1, field+".name", "must be set when there are several ports")
		c.must(!names[p.Name], field+".name", "%q is the name of another port", p.Name)
		names[p.Name] = true
		c.must(!ports[port{p.Port, p.Protocol}], field, "port %d with %s is there twice", p.Port, p.Protocol)
		ports[port{p.Port, p.Protocol}] = true
		c.protocol(field+".protocol", p.Protocol)
		if p.TargetPort.Type == intstr.Int {
			c.port(field+".targetPort", p.TargetPort.IntVal)
		}
	}
}

func (c *checker) protocol(field string, p corev1.Protocol) {
	switch p {
	case corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP:
	default:
		c.fail(field, "%q is unknown; use TCP, UDP or SCTP", p)
	}
}

// checkEndpointSlice is the API server's check, but for loopback and link-local
// addresses: in files they are the way to name what runs on this host.
func checkEndpointSlice(c *checker, o *discoveryv1.EndpointSlice) {
	kind := o.AddressType
	switch kind {
	case discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6, discoveryv1.AddressTypeFQDN:
	default:
		c.fail("addressType", "%q is unknown; use IPv4, IPv6 or FQDN", kind)
		return
	}
	c.between("endpoints", len(o.Endpoints), 0, 1000)
	for i, e := range o.Endpoints {
		c.between(fmt.Sprintf("endpoints[%d].addresses", i), len(e.Addresses), 1, 100)
		for j, a := range e.Addresses {
			field := fmt.Sprintf("endpoints[%d].addresses[%d]", i, j)
			if kind == discoveryv1.AddressTypeFQDN {
				c.subdomain(field, a)
				continue
			}
			ip, err := netip.ParseAddr(a)
			c.must(err == nil && ip.Is4() == (kind == discoveryv1.AddressTypeIPv4), field, "%q is not an %s address", a, kind)
		}
	}
	c.between("ports", len(o.Ports), 0, 20_000)
	names := make(map[string]bool)
	for i, p := range o.Ports {
		field := fmt.Sprintf("ports[%d]", i)
		c.must(!names[*p.Name], field+".name", "%q is the name of another port", *p.Name)
		names[*p.Name] = true
		if p.Port != nil {
			c.port(field+".port", *p.Port)
		}
		c.protocol(field+".protocol", *p.Protocol)
	}
}

func checkSecret(c *checker, o *corev1.Secret) {
	if o.Type != corev1.SecretTypeTLS {
		return
	}
	for _, key := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
		_, ok := o.Data[key]
		c.must(ok, "data", "a Secret of type %s needs the key %s", o.Type, key)
	}
}
