package compile_test

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate/headgate/controllers/compile"
	"github.com/headgate/headgate/controllers/source/file"
	"github.com/headgate/headgate/dataplane/ir"
)

// stage is a directory whose files come and go, before one compiler.
type stage struct {
	t        *testing.T
	dir      string
	src      *file.Source
	compiler compile.Compiler
	snap     *ir.Snapshot
	report   *compile.Report
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t, dir: t.TempDir()}
	src, err := file.Open(s.dir, file.Options{Compile: compile.Options{Addresses: compile.Addresses{Bind: []netip.Addr{netip.IPv4Unspecified()}}}})
	if err != nil {
		t.Fatal(err)
	}
	s.src = src
	s.put("class", "apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {name: headgate}\nspec: {controllerName: headgate.dev/gateway-controller}\n")
	s.gateway("{name: http, port: 80, protocol: HTTP, hostname: www.example.com}")
	s.put("service", "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: b}\nspec: {ports: [{port: 80}]}\n")
	s.endpoints("10.0.0.1")
	s.put("route", `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: a}
spec:
  parentRefs: [{name: edge}]
  hostnames: [api.example.com, www.example.com]
  rules: [{backendRefs: [{name: web, namespace: b, port: 80}]}]
`)
	s.grant("HTTPRoute")
	return s
}

func (s *stage) put(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name+".yaml"), []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) remove(name string) {
	s.t.Helper()
	if err := os.Remove(filepath.Join(s.dir, name+".yaml")); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) gateway(listeners string) {
	s.put("gateway", "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: edge, namespace: a}\nspec: {gatewayClassName: headgate, listeners: ["+listeners+"]}\n")
}

func (s *stage) endpoints(addresses ...string) {
	list := ""
	for _, a := range addresses {
		list += "{addresses: [" + a + "]}, "
	}
	s.put("slice", "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: web-1, namespace: b, labels: {kubernetes.io/service-name: web}}\n"+
		"addressType: IPv4\nports: [{port: 8080}]\nendpoints: ["+strings.TrimSuffix(list, ", ")+"]\n")
}

func (s *stage) grant(kind string) {
	s.put("grant", "apiVersion: gateway.networking.k8s.io/v1beta1\nkind: ReferenceGrant\nmetadata: {name: g, namespace: b}\n"+
		"spec: {from: [{group: gateway.networking.k8s.io, kind: "+kind+", namespace: a}], to: [{group: \"\", kind: Service}]}\n")
}

// expect compiles what is there now and checks it against a line: the route's
// conditions, the attached routes, and where its requests go.
func (s *stage) expect(step, want string) {
	s.t.Helper()
	in, problems := s.src.Input()
	if len(problems) > 0 {
		s.t.Fatalf("%s: %v", step, problems)
	}
	s.snap, s.report = s.compiler.Compile(in)
	if err := s.snap.Validate(); err != nil {
		s.t.Fatalf("%s: %v", step, err)
	}
	var parts []string
	for _, r := range s.report.Routes {
		for _, c := range r.Parents[0].Conditions {
			parts = append(parts, c.Reason)
		}
	}
	for _, g := range s.report.Gateways {
		for _, l := range g.Status.Listeners {
			parts = append(parts, fmt.Sprint(l.Name, "=", l.AttachedRoutes))
		}
	}
	for _, k := range s.snap.Sockets {
		for _, l := range k.Listeners {
			for _, r := range l.Routes {
				b := r.Rules[0].Backends[0]
				parts = append(parts, strings.Join(r.Hostnames, ",")+"->"+b.Cluster)
			}
		}
	}
	for _, c := range s.snap.Clusters {
		for _, e := range c.Endpoints {
			parts = append(parts, e.Address)
		}
	}
	if got := strings.Join(parts, " "); got != want {
		s.t.Errorf("%s:\ngot  %s\nwant %s", step, got, want)
	}
}

// TestLifecycle changes everything but the route, which must follow each time.
func TestLifecycle(t *testing.T) {
	const fine = "Accepted ResolvedRefs http=1 www.example.com->b/web:80 10.0.0.1:8080"
	s := newStage(t)
	s.expect("at first", fine)

	// Grants (B33).
	s.remove("grant")
	s.expect("the grant is gone", "Accepted RefNotPermitted http=1 www.example.com->")
	s.grant("Gateway")
	s.expect("a grant for another kind", "Accepted RefNotPermitted http=1 www.example.com->")
	s.grant("HTTPRoute")
	s.expect("the grant is back", fine)

	// Endpoints (B31): 1, 0, 1.
	s.endpoints()
	s.expect("no endpoint", "Accepted ResolvedRefs http=1 www.example.com->b/web:80")
	s.endpoints("10.0.0.1", "10.0.0.2")
	s.expect("two endpoints", fine+" 10.0.0.2:8080")
	s.endpoints("10.0.0.1")
	s.expect("one endpoint", fine)

	// The Service.
	s.remove("service")
	in, _ := s.src.Input() // the slice belongs to no Service now, which is a warning
	if snap, report := s.compiler.Compile(in); len(snap.Clusters) != 0 || report.Routes[0].Parents[0].Conditions[1].Reason != "BackendNotFound" {
		t.Errorf("without the Service: %v", report.Routes[0].Parents[0].Conditions)
	}
	s.put("service", "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: b}\nspec: {ports: [{port: 80}]}\n")
	s.expect("the Service is back", fine)

	// Listeners (B34).
	s.gateway("{name: http, port: 80, protocol: HTTP, hostname: other.example.com}")
	s.expect("no hostname in common", "NoMatchingListenerHostname ResolvedRefs http=0")
	s.gateway("{name: http, port: 80, protocol: HTTP, hostname: other.example.com}, {name: more, port: 81, protocol: HTTP, hostname: \"*.example.com\"}")
	s.expect("another listener", "Accepted ResolvedRefs http=0 more=1 api.example.com,www.example.com->b/web:80 10.0.0.1:8080")
	s.remove("gateway")
	s.expect("no Gateway", "")
	s.gateway("{name: http, port: 80, protocol: HTTP, hostname: www.example.com}")
	s.expect("the Gateway is back", fine)

	// The class.
	s.remove("class")
	s.expect("no class", "")
	s.put("class", "apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {name: headgate}\nspec: {controllerName: headgate.dev/gateway-controller}\n")
	s.expect("the class is back", fine)
}

// TestGenerations: what a condition observed is the object's own generation.
func TestGenerations(t *testing.T) {
	s := newStage(t)
	s.expect("at first", "Accepted ResolvedRefs http=1 www.example.com->b/web:80 10.0.0.1:8080")
	s.gateway("{name: http, port: 80, protocol: HTTP}")
	s.expect("the Gateway changed", "Accepted ResolvedRefs http=1 api.example.com,www.example.com->b/web:80 10.0.0.1:8080")
	for _, c := range s.report.Gateways[0].Status.Conditions {
		if c.ObservedGeneration != 2 {
			t.Errorf("Gateway %s: %d", c.Type, c.ObservedGeneration)
		}
	}
	for _, c := range s.report.Gateways[0].Status.Listeners[0].Conditions {
		if c.ObservedGeneration != 2 {
			t.Errorf("listener %s: %d", c.Type, c.ObservedGeneration)
		}
	}
	for _, c := range s.report.Routes[0].Parents[0].Conditions {
		if c.ObservedGeneration != 1 {
			t.Errorf("route %s: %d", c.Type, c.ObservedGeneration)
		}
	}
}
