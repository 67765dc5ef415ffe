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

// rival is a Service of type LoadBalancer that has an address and port. Where it
// is a node's, kube-proxy or a hostPort takes the connections before they come to
// a socket of the host, and to bind the port succeeds nevertheless.
type rival struct {
	service types.NamespacedName
	at      netip.AddrPort
}

// labelManager tells Services that Headgate makes itself.
const (
	labelManager = "app.kubernetes.io/managed-by"
	nameHeadgate = "headgate"
)

// isBalancer tells whether a Service may be a rival.
func isBalancer(s *corev1.Service) bool {
	return s != nil && s.Spec.Type == corev1.ServiceTypeLoadBalancer && s.Labels[labelManager] != nameHeadgate
}

// findRivals returns what the Services of type LoadBalancer have, but for the one
// that leads to us.
func findRivals(services []*corev1.Service, own types.NamespacedName) []rival {
	var out []rival
	for _, s := range services {
		if !isBalancer(s) || keyOf(s) == own {
			continue
		}
		for _, in := range s.Status.LoadBalancer.Ingress {
			addr, err := netip.ParseAddr(in.IP)
			if err != nil {
				continue // a hostname
			}
			for _, p := range s.Spec.Ports {
				if p.Protocol == "" || p.Protocol == corev1.ProtocolTCP {
					out = append(out, rival{keyOf(s), netip.AddrPortFrom(addr.Unmap(), uint16(p.Port))})
				}
			}
		}
	}
	return out
}

// meet notes the rivals of the listeners that are served.
func (g *gatewayState) meet(rivals []rival) {
	for _, l := range g.listeners {
		if len(l.sockets) == 0 {
			continue
		}
		for _, r := range rivals {
			if int32(r.at.Port()) == l.port && slices.Contains(g.addresses.report, r.at.Addr()) {
				l.rivals = append(l.rivals, r)
			}
		}
		if len(l.rivals) > 0 {
			l.warnings.add(Warning, l.field+".port", string(gatewayv1.ListenerReasonPortUnavailable), "connections may be taken by "+adviseAll(l.rivals))
		}
	}
}

// adviseAll names the rivals, and what to do about them.
func adviseAll(rivals []rival) string {
	var names []string
	k3s, microk8s := false, false
	for _, r := range rivals {
		names = append(names, fmt.Sprintf("Service %s of type LoadBalancer, which has %v too", r.service, r.at))
		k3s = k3s || r.service == types.NamespacedName{Namespace: "kube-system", Name: "traefik"}
		microk8s = microk8s || r.service.Namespace == "ingress"
	}
	text := strings.Join(slices.Compact(names), ", and ") + ": change its type or its port, or the listener's port"
	if k3s {
		text += "; k3s: put 'disable: [traefik, servicelb]' into /etc/rancher/k3s/config.yaml and restart k3s"
	}
	if microk8s {
		text += "; MicroK8s: it is the ingress addon, but 'microk8s disable ingress' also deletes the Gateway API CRDs and with them every Gateway and route"
	}
	return text
}

// Rivals returns, by socket, which Services of type LoadBalancer have its address
// and port.
func (r *Report) Rivals() map[string]string {
	out := make(map[string]string)
	for _, g := range r.Gateways {
		for i, names := range g.sockets {
			if len(g.rivals[i]) == 0 {
				continue
			}
			for _, n := range names {
				out[n] = adviseAll(g.rivals[i])
			}
		}
	}
	return out
}
