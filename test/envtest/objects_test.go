package envtest

import (
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// fromAll allows routes of all namespaces.
func fromAll() *gatewayv1.AllowedRoutes {
	all := gatewayv1.NamespacesFromAll
	return &gatewayv1.AllowedRoutes{Namespaces: &gatewayv1.RouteNamespaces{From: &all}}
}

// gateway makes a Gateway with one listener for every hostname.
func (w *world) gateway(name string, edit ...func(*gatewayv1.Gateway)) *gatewayv1.Gateway {
	w.Helper()
	gw := &gatewayv1.Gateway{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.name, Name: name},
		Spec: gatewayv1.GatewaySpec{
			GatewayClassName: gatewayv1.ObjectName(w.name),
			Listeners:        []gatewayv1.Listener{{Name: "http", Port: 80, Protocol: gatewayv1.HTTPProtocolType}},
		},
	}
	for _, e := range edit {
		e(gw)
	}
	w.create(gw)
	return gw
}

// route makes an HTTPRoute that redirects, so that it needs no backend.
func (w *world) route(name string, edit ...func(*gatewayv1.HTTPRoute)) *gatewayv1.HTTPRoute {
	w.Helper()
	scheme := "https"
	hr := &gatewayv1.HTTPRoute{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.name, Name: name},
		Spec: gatewayv1.HTTPRouteSpec{
			CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{Name: "gw"}}},
			Hostnames:       []gatewayv1.Hostname{gatewayv1.Hostname(name + ".example.com")},
			Rules: []gatewayv1.HTTPRouteRule{{Filters: []gatewayv1.HTTPRouteFilter{{
				Type:            gatewayv1.HTTPRouteFilterRequestRedirect,
				RequestRedirect: &gatewayv1.HTTPRequestRedirectFilter{Scheme: &scheme},
			}}}},
		},
	}
	for _, e := range edit {
		e(hr)
	}
	w.create(hr)
	return hr
}

// gone deletes an object and waits until it is gone.
func (w *world) gone(o client.Object) {
	w.Helper()
	uid := o.GetUID()
	if err := w.Delete(w.ctx, o); err != nil {
		w.Fatal(err)
	}
	w.eventually(func() string {
		// Another one may be there already.
		if err := w.Get(w.ctx, client.ObjectKeyFromObject(o), o); apierrors.IsNotFound(err) || err == nil && o.GetUID() != uid {
			return ""
		}
		return o.GetName() + " is still there"
	})
}

// says tells in short what conditions say: "Accepted=True/Accepted@1 ...", in
// their order.
func says(cs []metav1.Condition) string {
	var parts []string
	for _, c := range cs {
		parts = append(parts, fmt.Sprintf("%s=%s/%s@%d", c.Type, c.Status, c.Reason, c.ObservedGeneration))
	}
	return strings.Join(parts, " ")
}

// wantGateway waits until a Gateway's own conditions say want.
func (w *world) wantGateway(gw *gatewayv1.Gateway, want string) {
	w.Helper()
	w.eventually(func() string {
		w.refresh(gw)
		if got := says(gw.Status.Conditions); got != want {
			return fmt.Sprintf("Gateway %s says\n %s, want\n %s", gw.Name, got, want)
		}
		return ""
	})
}

// wantClass waits until the conditions of a class besides Accepted say want, and
// one of them has the part of a message.
func (w *world) wantClass(gc *gatewayv1.GatewayClass, want, part string) {
	w.Helper()
	w.eventually(func() string {
		w.refresh(gc)
		var messages []string
		for _, c := range gc.Status.Conditions {
			messages = append(messages, c.Message)
		}
		return unlessContains(says(gc.Status.Conditions), "Accepted=True/Accepted@1 "+want, strings.Join(messages, "\n"), part)
	})
}

// wantRoute waits until a route's parents say want: controller and conditions
// each.
func (w *world) wantRoute(hr *gatewayv1.HTTPRoute, want ...string) {
	w.Helper()
	w.eventually(func() string {
		w.refresh(hr)
		var got []string
		for _, p := range hr.Status.Parents {
			who := strings.TrimPrefix(string(p.ControllerName), string(w.controller))
			got = append(got, who+"("+string(p.ParentRef.Name)+") "+says(p.Conditions))
		}
		if strings.Join(got, "\n ") != strings.Join(want, "\n ") {
			return fmt.Sprintf("route %s says\n %s, want\n %s", hr.Name, strings.Join(got, "\n "), strings.Join(want, "\n "))
		}
		return ""
	})
}

// What a Gateway and a route say when all is well.
func programmed(generation int) string {
	return fmt.Sprintf("Accepted=True/Accepted@%[1]d Programmed=True/Programmed@%[1]d ResolvedRefs=True/ResolvedRefs@%[1]d", generation)
}

func attached(generation int) string {
	return fmt.Sprintf("(gw) Accepted=True/Accepted@%[1]d ResolvedRefs=True/ResolvedRefs@%[1]d", generation)
}
