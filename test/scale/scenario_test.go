//go:build linux

package main

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// The scenarios with few routes: what is right must be so at any speed. No test
// looks at a time.

func TestAttached(t *testing.T) {
	const routes = 200
	r, err := shown.runAttached(t.Context(), routes)
	good(t, r.problems(), err)
	if r.Routes != routes || r.GatewayWrites == 0 || r.TeardownWrites == 0 {
		t.Errorf("%+v", r)
	}
	vacant(t, "attached")
}

func TestIdle(t *testing.T) {
	r, err := shown.runIdle(t.Context(), 200, 10*time.Second)
	good(t, r.problems(), err)
	if r.Seconds < 10 || r.Load.RSS < 1 {
		t.Errorf("%+v", r)
	}
	vacant(t, "idle")
}

// Routes change beside those that were made one after the other.
func TestPropagationAndChange(t *testing.T) {
	const routes = 150
	p, err := shown.runPropagation(t.Context(), routes)
	good(t, p.problems(), err)
	// Each is asked for until it is served, then by all lines, and at the end.
	if len(p.Stages) != 2 || p.Stages[0].Stored.N != routes || p.Requests < routes*6 {
		t.Errorf("%+v", p)
	}
	c, err := shown.runChange(t.Context(), routes, 10, 6*time.Second, 300)
	good(t, c.problems(), err)
	if len(c.Kinds) != len(variants) || c.Served.N == 0 {
		t.Errorf("not every kind of change was made: %+v", c)
	}
	if err := shown.remove(t.Context(), propagated, "change"); err != nil {
		t.Fatal(err)
	}
	vacant(t, propagated, "change")
}

func TestChurn(t *testing.T) {
	const routes = 200
	r, err := shown.runChurn(t.Context(), routes, 4*time.Second)
	good(t, r.problems(), err)
	if len(r.Churn) != len(churnRates) || r.Idle.LiveHeap == 0 || r.RestartMS == 0 {
		t.Errorf("%+v", r)
	}
	for _, use := range r.Churn {
		if use.EditsPerSecond == 0 || use.ObjectsPerS == 0 {
			t.Errorf("%+v", use)
		}
	}
	vacant(t, "apps-0", "apps-1")
}

func good(t *testing.T, problems []string, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Error(p)
	}
}

// vacant checks that a scenario has left nothing in its namespaces, and nothing
// that is served.
func vacant(t *testing.T, namespaces ...string) {
	t.Helper()
	for _, ns := range namespaces {
		for _, list := range []client.ObjectList{new(gatewayv1.HTTPRouteList), new(corev1.ServiceList), new(discoveryv1.EndpointSliceList)} {
			if err := shown.List(t.Context(), list, client.InNamespace(ns), client.Limit(1)); err != nil {
				t.Fatal(err)
			}
			switch l := list.(type) {
			case *gatewayv1.HTTPRouteList:
				wantNone(t, ns, "routes", len(l.Items))
			case *corev1.ServiceList:
				wantNone(t, ns, "Services", len(l.Items))
			case *discoveryv1.EndpointSliceList:
				wantNone(t, ns, "EndpointSlices", len(l.Items))
			}
		}
	}
	c := line{gateway: shown.gateway}
	defer c.close()
	for _, name := range []string{"attached-0", "idle-0", routeName(0), "change-0", "app-0"} {
		if a, err := c.get(hostname(name), askedPath); err != nil || a.status != 404 {
			t.Errorf("%s is answered %v %v, want 404", name, a, err)
		}
	}
}

func wantNone(t *testing.T, ns, what string, n int) {
	t.Helper()
	if n > 0 {
		t.Errorf("%s are left in %s", what, ns)
	}
}
