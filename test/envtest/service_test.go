package envtest

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/controllers"
)

// service returns the Service of a Gateway, or nil.
func (w *world) service(gw *gatewayv1.Gateway) *corev1.Service {
	w.Helper()
	var list corev1.ServiceList
	if err := w.List(w.ctx, &list, client.InNamespace(w.name)); err != nil {
		w.Fatal(err)
	}
	for i := range list.Items {
		for _, o := range list.Items[i].OwnerReferences {
			if o.UID == gw.UID {
				return &list.Items[i]
			}
		}
	}
	return nil
}

// Each Gateway has a Service that carries what spec.infrastructure says, follows
// its changes, and leaves the labels of others alone.
func TestGatewayService(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.start()
	w.class()
	gw := w.gateway("gw", func(gw *gatewayv1.Gateway) {
		gw.Spec.Infrastructure = &gatewayv1.GatewayInfrastructure{
			Labels:      map[gatewayv1.LabelKey]gatewayv1.LabelValue{"team": "blue", "tier": "edge"},
			Annotations: map[gatewayv1.AnnotationKey]gatewayv1.AnnotationValue{"example.com/note": "hello"},
		}
	})
	var s *corev1.Service
	want := func(labels, annotations, ports string) {
		t.Helper()
		w.eventually(func() string {
			if s = w.service(gw); s == nil {
				return "there is no Service"
			}
			var gotPorts []string
			for _, p := range s.Spec.Ports {
				gotPorts = append(gotPorts, p.Name)
			}
			got := s.Labels["team"] + " " + s.Labels["tier"] + " " + s.Labels["theirs"] + "|" + s.Annotations["example.com/note"] + "|" + strings.Join(gotPorts, " ")
			if want := labels + "|" + annotations + "|" + ports; got != want {
				return "the Service says " + got + ", want " + want
			}
			return ""
		})
	}
	want("blue edge ", "hello", "port-80")
	if s.Labels["gateway.networking.k8s.io/gateway-name"] != "gw" || s.Spec.ClusterIP != corev1.ClusterIPNone {
		t.Errorf("Service %+v", s)
	}
	update(w, s, func(s *corev1.Service) { s.Labels["theirs"] = "stays" })
	update(w, gw, func(gw *gatewayv1.Gateway) {
		gw.Spec.Infrastructure.Labels = map[gatewayv1.LabelKey]gatewayv1.LabelValue{"team": "red"}
		gw.Spec.Infrastructure.Annotations = nil
		gw.Spec.Listeners = append(gw.Spec.Listeners, gatewayv1.Listener{Name: "more", Port: 8080, Protocol: gatewayv1.HTTPProtocolType})
	})
	want("red  stays", "", "port-80 port-8080")
	w.gone(s)
	want("red  ", "", "port-80 port-8080")
	update(w, s, func(s *corev1.Service) { s.Labels["team"] = "stolen" })
	want("red  ", "", "port-80 port-8080")
	w.settled(r)
	n := len(r.traffic.writes())
	time.Sleep(time.Second)
	if more := r.traffic.writes()[n:]; len(more) > 0 {
		t.Errorf("writes though nothing changed: %v", more)
	}
}

// Names at their limit get Services, each its own.
func TestLongNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.class()
	label := strings.Repeat("a", 63)
	long := strings.Join([]string{label, label, label, strings.Repeat("a", 60)}, ".")
	one, two := w.gateway(long+"x"), w.gateway(long+"y")
	for _, gw := range []*gatewayv1.Gateway{one, two} {
		w.wantGateway(gw, programmed(1))
		w.eventually(func() string {
			if w.service(gw) == nil {
				return "there is no Service"
			}
			return ""
		})
	}
	hr := w.route("hr", func(hr *gatewayv1.HTTPRoute) { hr.Spec.ParentRefs[0].Name = gatewayv1.ObjectName(one.Name) })
	w.wantRoute(hr, "("+one.Name+") Accepted=True/Accepted@1 ResolvedRefs=True/ResolvedRefs@1")
}

// Without the flag no Service is made.
func TestNoServices(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(func(o *controllers.ManagerOptions) { o.Services = false })
	w.class()
	gw := w.gateway("gw")
	w.wantGateway(gw, programmed(1))
	time.Sleep(time.Second)
	if s := w.service(gw); s != nil {
		t.Errorf("Service %s was made", s.Name)
	}
}
