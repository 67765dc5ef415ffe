package envtest

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/controllers"
	"github.com/headgate/headgate/controllers/compile"
)

// Behind a Service of type LoadBalancer the Gateways have the addresses of the
// Service, as they come and go, and its ports only.
func TestBalancer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.name, Name: "edge"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
	}
	w.create(service)
	r := w.start(func(o *controllers.ManagerOptions) {
		o.Compile.Addresses = compile.Addresses{
			Bind: []netip.Addr{netip.IPv4Unspecified()}, Service: types.NamespacedName{Namespace: w.name, Name: "edge"},
		}
	})
	w.class()
	gw := w.gateway("gw")
	listener := func() string { return says(gw.Status.Listeners[0].Conditions) }
	const pending = "Accepted=True/Accepted@1 Programmed=False/AddressNotAssigned@1 ResolvedRefs=True/ResolvedRefs@1"
	w.wantGateway(gw, pending)
	if !strings.Contains(listener(), "Programmed=True") || len(gw.Status.Addresses) != 0 {
		t.Errorf("without an address: %s %v; want it to listen already", listener(), gw.Status.Addresses)
	}
	given := func(ingress ...corev1.LoadBalancerIngress) {
		t.Helper()
		updateStatus(w, service, func(s *corev1.Service) { s.Status.LoadBalancer.Ingress = ingress })
	}
	given(corev1.LoadBalancerIngress{IP: "192.0.2.10"}, corev1.LoadBalancerIngress{Hostname: "lb.example.com"})
	w.wantGateway(gw, programmed(1))
	w.eventually(func() string {
		w.refresh(gw)
		var got []string
		for _, a := range gw.Status.Addresses {
			got = append(got, string(*a.Type)+" "+a.Value)
		}
		if s := strings.Join(got, ", "); s != "IPAddress 192.0.2.10, Hostname lb.example.com" {
			return "the addresses are " + s
		}
		return ""
	})

	// A Service that nobody comes by is no news, whatever it says.
	other := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: w.name, Name: "other"}, Spec: service.Spec}
	other.Spec.ClusterIP, other.Spec.ClusterIPs, other.Spec.Ports[0].NodePort = "", nil, 0
	w.create(other)
	time.Sleep(500 * time.Millisecond)
	n := r.plane.count()
	updateStatus(w, other, func(s *corev1.Service) {
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.11"}}
	})
	time.Sleep(500 * time.Millisecond)
	if now := r.plane.count(); now != n {
		t.Errorf("%d snapshots more for another Service", now-n)
	}

	update(w, gw, func(gw *gatewayv1.Gateway) { gw.Spec.Listeners[0].Port = 8080 })
	w.eventually(func() string {
		w.refresh(gw)
		if !strings.HasPrefix(listener(), "Accepted=False/PortUnavailable@2") {
			return "a port that the Service has not: " + listener()
		}
		return unlessContains(gw.Status.Listeners[0].Conditions[0].Message, "no port 8080")
	})
	update(w, service, func(s *corev1.Service) {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "more", Port: 8080})
	})
	w.wantGateway(gw, programmed(2))
	given()
	w.wantGateway(gw, strings.ReplaceAll(pending, "@1", "@2"))
	w.gone(service)
	w.eventually(func() string {
		w.refresh(gw)
		return unlessContains(gw.Status.Conditions[1].Message, fmt.Sprintf("Service %s/edge, by which clients should come, does not exist", w.name))
	})
}
