package envtest

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/controllers"
	"github.com/headgate/headgate/controllers/compile"
)

func TestStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	gc := w.class()
	gw := w.gateway("gw")
	hr := w.route("hr")
	w.wantGateway(gw, programmed(1))
	w.wantRoute(hr, attached(1))
	w.refresh(gc)
	if got, want := says(gc.Status.Conditions), "Accepted=True/Accepted@1 SupportedVersion=True/SupportedVersion@1 headgate.dev/KindsServed=True/KindsServed@1"; got != want {
		t.Errorf("the class says %s, want %s", got, want)
	}
	var names []string
	for _, f := range gc.Status.SupportedFeatures {
		names = append(names, string(f.Name))
	}
	if !slices.Contains(names, "HTTPRoute") || !slices.IsSorted(names) {
		t.Errorf("supported features %v: want HTTPRoute among them, in order", names)
	}
	w.eventually(func() string {
		w.refresh(gw)
		if n := gw.Status.Listeners[0].AttachedRoutes; n != 1 {
			return fmt.Sprintf("attachedRoutes is %d, want 1", n)
		}
		return ""
	})
	if len(gw.Status.Addresses) != 1 || !strings.HasPrefix(gw.Status.Addresses[0].Value, "192.0.2.") {
		t.Errorf("addresses %v, want one of the pool", gw.Status.Addresses)
	}
}

// A route whose hostname no listener has becomes accepted when only the listener
// changes, and the other way round.
func TestListenerChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.class()
	host := gatewayv1.Hostname("a.example.com")
	gw := w.gateway("gw", func(gw *gatewayv1.Gateway) { gw.Spec.Listeners[0].Hostname = &host })
	hr := w.route("b")
	w.wantRoute(hr, "(gw) Accepted=False/NoMatchingListenerHostname@1 ResolvedRefs=True/ResolvedRefs@1")
	wide := gatewayv1.Hostname("*.example.com")
	update(w, gw, func(gw *gatewayv1.Gateway) { gw.Spec.Listeners[0].Hostname = &wide })
	w.wantRoute(hr, attached(1))
	w.wantGateway(gw, programmed(2))
	update(w, gw, func(gw *gatewayv1.Gateway) { gw.Spec.Listeners[0].Hostname = &host })
	w.wantRoute(hr, "(gw) Accepted=False/NoMatchingListenerHostname@1 ResolvedRefs=True/ResolvedRefs@1")
	w.wantGateway(gw, programmed(3))
}

// What other controllers say stays, wherever it stands, and ours is restored when
// somebody deletes it.
func TestForeignEntriesAndDeletedOnes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.start()
	w.class()
	gw := w.gateway("gw")
	hr := w.route("hr", func(hr *gatewayv1.HTTPRoute) {
		hr.Spec.ParentRefs = append(hr.Spec.ParentRefs, gatewayv1.ParentReference{Name: "other"})
	})
	w.wantRoute(hr, attached(1))
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	group, kind := gatewayv1.Group(gatewayv1.GroupName), gatewayv1.Kind("Gateway")
	theirs := gatewayv1.RouteParentStatus{
		ParentRef:      gatewayv1.ParentReference{Group: &group, Kind: &kind, Name: "other"},
		ControllerName: "example.com/other",
		Conditions:     []metav1.Condition{{Type: "Accepted", Status: "True", Reason: "Accepted", LastTransitionTime: now, ObservedGeneration: 9}},
	}
	const foreign = "example.com/other(other) Accepted=True/Accepted@9"
	updateStatus(w, hr, func(hr *gatewayv1.HTTPRoute) {
		hr.Status.Parents = append([]gatewayv1.RouteParentStatus{theirs}, hr.Status.Parents...)
	})
	update(w, hr, func(hr *gatewayv1.HTTPRoute) { hr.Spec.Hostnames = []gatewayv1.Hostname{"x.example.com"} })
	w.wantRoute(hr, foreign, attached(2))

	updateStatus(w, hr, func(hr *gatewayv1.HTTPRoute) { hr.Status.Parents = []gatewayv1.RouteParentStatus{theirs} })
	w.wantRoute(hr, foreign, attached(2))
	updateStatus(w, hr, func(hr *gatewayv1.HTTPRoute) { hr.Status.Parents = []gatewayv1.RouteParentStatus{} })
	w.wantRoute(hr, attached(2))

	updateStatus(w, gw, func(gw *gatewayv1.Gateway) {
		gw.Status.Conditions = []metav1.Condition{{Type: "example.com/Seen", Status: "True", Reason: "Seen", LastTransitionTime: now}}
		gw.Status.Listeners, gw.Status.Addresses = nil, nil
	})
	w.wantGateway(gw, "example.com/Seen=True/Seen@0 "+programmed(1))
	if len(gw.Status.Listeners) != 1 || len(gw.Status.Addresses) != 1 {
		t.Errorf("listeners %v and addresses %v, want one each", gw.Status.Listeners, gw.Status.Addresses)
	}

	// The route leaves us: only our entry goes.
	updateStatus(w, hr, func(hr *gatewayv1.HTTPRoute) { hr.Status.Parents = append(hr.Status.Parents, theirs) })
	update(w, hr, func(hr *gatewayv1.HTTPRoute) { hr.Spec.ParentRefs = hr.Spec.ParentRefs[1:] })
	w.wantRoute(hr, foreign)
	for _, q := range r.traffic.writes() {
		if q.status >= 400 && q.status != 409 {
			t.Errorf("%s %s was answered %d", q.method, q.path, q.status)
		}
	}
}

// The time of a condition is when its status changed, not when it was written.
func TestTransitionTimes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.class()
	w.gateway("gw")
	hr := w.route("hr")
	w.wantRoute(hr, attached(1))
	past := metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))
	updateStatus(w, hr, func(hr *gatewayv1.HTTPRoute) {
		for i := range hr.Status.Parents[0].Conditions {
			hr.Status.Parents[0].Conditions[i].LastTransitionTime = past
		}
	})
	port := gatewayv1.PortNumber(80)
	update(w, hr, func(hr *gatewayv1.HTTPRoute) {
		hr.Spec.Rules[0].Filters = nil
		hr.Spec.Rules[0].BackendRefs = []gatewayv1.HTTPBackendRef{{BackendRef: gatewayv1.BackendRef{
			BackendObjectReference: gatewayv1.BackendObjectReference{Name: "missing", Port: &port},
		}}}
	})
	w.wantRoute(hr, "(gw) Accepted=True/Accepted@2 ResolvedRefs=False/BackendNotFound@2")
	cs := hr.Status.Parents[0].Conditions
	if !cs[0].LastTransitionTime.Equal(&past) {
		t.Errorf("Accepted did not change, but its time did: %v", cs[0].LastTransitionTime)
	}
	if cs[1].LastTransitionTime.Equal(&past) {
		t.Error("ResolvedRefs changed, but its time did not")
	}
}

// An entry that speaks of a later generation than we know is not overwritten.
func TestNewerStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.start()
	w.class()
	gw := w.gateway("gw")
	w.wantGateway(gw, programmed(1))
	future := strings.ReplaceAll(programmed(1), "@1", "@7")
	updateStatus(w, gw, func(gw *gatewayv1.Gateway) {
		for i := range gw.Status.Conditions {
			gw.Status.Conditions[i].ObservedGeneration = 7
		}
	})
	before := len(r.traffic.writes())
	w.route("hr") // attachedRoutes changes
	w.eventually(func() string {
		if !slices.Contains(r.plane.routes(), w.name+"/hr") {
			return "the route is not served"
		}
		return ""
	})
	time.Sleep(500 * time.Millisecond)
	w.wantGateway(gw, future)
	if n := len(r.traffic.writes()) - before; n > 1 {
		t.Errorf("%d writes, want at most the one of the route", n)
	}
}

// An object of the same name is another object.
func TestRecreated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.class()
	for range 5 {
		gw, hr := w.gateway("gw"), w.route("hr")
		w.wantGateway(gw, programmed(1))
		w.wantRoute(hr, attached(1))
		w.gone(gw)
		w.wantRoute(hr)
		w.gone(hr)
	}
	// Without a pause.
	gw := w.gateway("gw")
	for range 10 {
		if err := w.Delete(w.ctx, gw); err != nil {
			t.Fatal(err)
		}
		gw = w.gateway("gw")
	}
	w.wantGateway(gw, programmed(1))
}

// A port that is taken is said, and taken back when it is free.
func TestPortTaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.start(func(o *controllers.ManagerOptions) { o.Compile.Addresses = compile.Addresses{} })
	w.class()
	static := func(ip string) func(*gatewayv1.Gateway) {
		return func(gw *gatewayv1.Gateway) { gw.Spec.Addresses = []gatewayv1.GatewaySpecAddress{{Value: ip}} }
	}
	r.plane.breaks(map[string]error{"192.0.2.1:80": syscall.EADDRINUSE, "192.0.2.2:80": syscall.EADDRNOTAVAIL})
	taken, absent := w.gateway("taken", static("192.0.2.1")), w.gateway("absent", static("192.0.2.2"))
	w.wantGateway(taken, "Accepted=False/ListenersNotValid@1 Programmed=False/NoResources@1 ResolvedRefs=True/ResolvedRefs@1")
	if got := says(taken.Status.Listeners[0].Conditions); !strings.Contains(got, "PortUnavailable") {
		t.Errorf("the listener says %s, want PortUnavailable", got)
	}
	w.wantGateway(absent, "Accepted=True/Accepted@1 Programmed=False/AddressNotUsable@1 ResolvedRefs=True/ResolvedRefs@1")
	r.plane.breaks(nil)
	w.wantGateway(taken, programmed(1)) // after the loop tried again
	w.wantGateway(absent, programmed(1))
	if n := w.gateway("none"); n != nil {
		w.wantGateway(n, "Accepted=True/Accepted@1 Programmed=False/AddressNotAssigned@1 ResolvedRefs=True/ResolvedRefs@1")
	}
}

// A class that is not ours, its Gateways and their routes are left alone.
func TestForeignClass(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.start()
	w.create(&gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: w.name}, Spec: gatewayv1.GatewayClassSpec{ControllerName: "example.com/other"}})
	w.gateway("gw")
	w.route("hr")
	w.eventually(func() string {
		for _, p := range r.Loop().State().Problems {
			if p.Name == "hr" {
				return ""
			}
		}
		if len(r.Loop().State().Report.Gateways) == 0 && len(r.traffic.requests()) > 0 {
			return ""
		}
		return "the objects are not seen"
	})
	time.Sleep(time.Second)
	for _, q := range r.traffic.writes() {
		t.Errorf("%s %s", q.method, q.path)
	}
}
