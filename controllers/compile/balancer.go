package compile

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// balancer is the Service of type LoadBalancer through which clients come, when
// there is one ([Addresses.Service]).
type balancer struct {
	name    types.NamespacedName
	service *corev1.Service // nil when it does not exist
}

// balancer returns the Service of [Addresses.Service], or nil when none is named.
func (r *reader) balancer() *balancer {
	name := r.in.Options.Addresses.Service
	if name.Name == "" {
		return nil
	}
	return &balancer{name, r.service(name.Namespace, name.Name)}
}

// plan works out a Gateway's addresses: it listens on bind, and is reached by the
// Service's addresses.
func (b *balancer) plan(gw *gatewayv1.Gateway, bind []netip.Addr) addressPlan {
	var p addressPlan
	addrs, hosts, missing := b.addresses()
	p.missing = missing
	named := false
	for i, want := range gw.Spec.Addresses {
		field := fmt.Sprintf("spec.addresses[%d]", i)
		addr, ok := p.parse(field, want)
		named = named || addr.IsValid() || !ok
		switch {
		case !addr.IsValid() || missing != "":
		case slices.Contains(addrs, addr):
			p.report = appendOnce(p.report, addr)
		default:
			p.unusable.add(Error, field, string(gatewayv1.GatewayReasonAddressNotUsable),
				fmt.Sprintf("Service %s does not have the address %s; leave spec.addresses out to get what it has", b.name, addr))
		}
	}
	if !named {
		p.report, p.hosts = addrs, hosts
	}
	// While there is no address yet it listens already: a load balancer may look
	// whether somebody answers before it gives one.
	if len(p.report)+len(p.hosts) > 0 || missing != "" && len(p.unusable) == 0 {
		for _, addr := range bind {
			p.bound = append(p.bound, boundAddress{addr.Unmap(), false})
		}
	}
	return p
}

// addresses returns the addresses and the hostnames of the Service, or why it has
// none.
func (b *balancer) addresses() (addrs []netip.Addr, hosts []string, missing string) {
	switch {
	case b.service == nil:
		return nil, nil, fmt.Sprintf("Service %s, by which clients should come, does not exist", b.name)
	case b.service.Spec.Type != corev1.ServiceTypeLoadBalancer:
		return nil, nil, fmt.Sprintf("Service %s, by which clients should come, is of type %s; make it one of type LoadBalancer", b.name, b.service.Spec.Type)
	}
	for _, in := range b.service.Status.LoadBalancer.Ingress {
		if addr, err := netip.ParseAddr(in.IP); err == nil {
			addrs = appendOnce(addrs, addr.Unmap())
		} else if in.Hostname != "" && !slices.Contains(hosts, in.Hostname) {
			hosts = append(hosts, in.Hostname)
		}
	}
	if len(addrs)+len(hosts) == 0 {
		missing = fmt.Sprintf("Service %s has no address yet; the cluster's load balancer gives it one (kubectl describe service shows what it waits for)", b.name)
	}
	return addrs, hosts, missing
}

// portFault says why clients can't come to a port through the Service, or "".
func (b *balancer) portFault(port int32) string {
	if b == nil || b.service == nil {
		return ""
	}
	var have []string
	for _, p := range b.service.Spec.Ports {
		if p.Protocol != "" && p.Protocol != corev1.ProtocolTCP {
			continue
		}
		if p.Port != port {
			have = append(have, fmt.Sprint(p.Port))
			continue
		}
		if to := p.TargetPort.String(); to != "0" && to != fmt.Sprint(port) {
			return fmt.Sprintf("port %d of Service %s leads to port %s; let its targetPort be %d", port, b.name, to, port)
		}
		return ""
	}
	return fmt.Sprintf("Service %s, by which clients come, has no port %d, only %s; use one of these, or add a port to the Service",
		b.name, port, strings.Join(have, ", "))
}
