package cases

import (
	"fmt"
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// shares sends n requests and counts the answers by status, and by backend
// where there is one.
func shares(t *testing.T, addr, host string, n int) map[string]int {
	t.Helper()
	counts := make(map[string]int)
	c := dial(t, addr)
	for range n {
		c.patient(patience)
		r := c.get(host, "/")
		key := fmt.Sprint(r.status)
		if r.status == 200 {
			key = r.get("X-Backend")
		}
		counts[key]++
		if strings.EqualFold(r.get("Connection"), "close") {
			c = dial(t, addr)
		}
	}
	return counts
}

// wantShare fails the test unless the count is the share of n, within four
// standard deviations.
func wantShare(t *testing.T, counts map[string]int, key string, share float64, n int) {
	t.Helper()
	want := share * float64(n)
	slack := 6 * math.Sqrt(float64(n)*share*(1-share)) // 4 of them is one run in 16,000
	if got := float64(counts[key]); got < want-slack || got > want+slack {
		t.Errorf("%q got %v of %d, want %v +- %.0f: %v", key, got, n, want, slack, counts)
	}
}

func TestWeights(t *testing.T) {
	a, b := newBackend(t, "a"), newBackend(t, "b")
	refs := func(name, list string) string {
		return route(name, "hostnames: ["+name+"]\nrules:\n- backendRefs: ["+list+"]")
	}
	g := edge(t, a.manifest(), b.manifest(),
		refs("w0", "{name: a, port: 80, weight: 0}"),
		refs("w0-w0", "{name: a, port: 80, weight: 0}, {name: b, port: 80, weight: 0}"),
		refs("w0-w1", "{name: a, port: 80, weight: 0}, {name: b, port: 80, weight: 1}"),
		refs("w1-w0", "{name: b, port: 80, weight: 1}, {name: a, port: 80, weight: 0}"),
		refs("w0-invalid", "{name: missing, port: 80, weight: 0}, {name: b, port: 80, weight: 1}"),
		refs("w3-w1", "{name: a, port: 80, weight: 3}, {name: b, port: 80, weight: 1}"),
		refs("w1-large", "{name: a, port: 80, weight: 1}, {name: b, port: 80, weight: 1000000}"),
		refs("defaults", "{name: a, port: 80}, {name: b, port: 80}"),
		route("omitted", "hostnames: [omitted]\nrules:\n- matches: [{path: {value: /}}]"),
		route("empty", "hostnames: [empty]\nrules:\n- backendRefs: []"),
		route("empty-with-modifier", "hostnames: [empty-with-modifier]\nrules:\n- filters: [{type: ResponseHeaderModifier, responseHeaderModifier: {set: [{name: X-A, value: b}]}}]"),
	)
	for _, host := range []string{"w0", "w0-w0", "omitted", "empty", "empty-with-modifier"} {
		t.Run("B30/"+host, func(t *testing.T) {
			ma, mb := a.mark(), b.mark()
			if counts := shares(t, g.addr, host, 20); counts["500"] != 20 {
				t.Errorf("got %v, want 500 only", counts)
			}
			a.wantNothingSince(t, ma)
			b.wantNothingSince(t, mb)
		})
	}
	for _, host := range []string{"w0-w1", "w1-w0", "w0-invalid"} {
		t.Run("B30/"+host, func(t *testing.T) {
			ma := a.mark()
			if counts := shares(t, g.addr, host, 50); counts["b"] != 50 {
				t.Errorf("got %v, want backend b only", counts)
			}
			a.wantNothingSince(t, ma)
		})
	}
	const n = 800
	t.Run("B30/w3-w1", func(t *testing.T) {
		counts := shares(t, g.addr, "w3-w1", n)
		wantShare(t, counts, "a", 0.75, n)
		wantShare(t, counts, "b", 0.25, n)
	})
	t.Run("B30/w1-large", func(t *testing.T) {
		if counts := shares(t, g.addr, "w1-large", 200); counts["b"] < 199 {
			t.Errorf("got %v", counts)
		}
	})
	t.Run("B30/defaults", func(t *testing.T) {
		wantShare(t, shares(t, g.addr, "defaults", n), "a", 0.5, n)
	})
	t.Run("B30/no-backend-resolves", func(t *testing.T) {
		g.wantCondition(t, "HTTPRoute", "default", "omitted", "ResolvedRefs", "True", "ResolvedRefs")
	})
	t.Run("B30/body-of-a-refused-post", func(t *testing.T) { // the next request on the connection is aligned
		c := dial(t, g.addr)
		c.send("POST / HTTP/1.1\r\nHost: w0\r\nContent-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\nHost: w0-w1\r\n\r\n")
		r := c.response("POST")
		wantStatus(t, r, 500)
		if !strings.EqualFold(r.get("Connection"), "close") {
			seen(t, c.response("GET"))
		}
	})
}

func TestInvalidRefs(t *testing.T) {
	good := newBackend(t, "good")
	terminating := newBackend(t, "terminating")
	split := func(name, other string) string {
		return route(name, "hostnames: ["+name+"]\nrules:\n- backendRefs: [{name: good, port: 80}, "+other+"]")
	}
	g := edge(t, good.manifest(), service("default", "unready"), service("default", "terminating-svc"),
		endpointSlice("default", "terminating-svc", 0, terminating.addr, "{ready: false, serving: false, terminating: true}"),
		service("default", "not-ready"), endpointSlice("default", "not-ready", 0, terminating.addr, "{ready: false}"),
		split("missing", "{name: no-such-service, port: 80}"),
		split("wrong-port", "{name: good, port: 81}"),
		split("kind", "{group: example.com, kind: Thing, name: good, port: 80}"),
		split("unready", "{name: unready, port: 80}"),
		split("not-ready", "{name: not-ready, port: 80}"),
		split("terminating", "{name: terminating-svc, port: 80}"),
		route("only-missing", "hostnames: [only-missing]\nrules:\n- backendRefs: [{name: no-such-service, port: 80}]"),
		route("only-unready", "hostnames: [only-unready]\nrules:\n- backendRefs: [{name: unready, port: 80}]"))
	const n = 600
	for _, c := range []struct {
		host, code, reason string
	}{
		{"missing", "500", "BackendNotFound"},
		{"wrong-port", "500", "BackendNotFound"},
		{"kind", "500", "InvalidKind"},
		{"unready", "503", ""},
		{"not-ready", "503", ""},
	} {
		t.Run("B31/"+c.host, func(t *testing.T) {
			counts := shares(t, g.addr, c.host, n)
			wantShare(t, counts, c.code, 0.5, n)
			wantShare(t, counts, "good", 0.5, n)
			if c.reason != "" {
				g.wantCondition(t, "HTTPRoute", "default", c.host, "ResolvedRefs", "False", c.reason)
			} else {
				g.wantCondition(t, "HTTPRoute", "default", c.host, "ResolvedRefs", "True", "ResolvedRefs")
			}
			g.wantCondition(t, "HTTPRoute", "default", c.host, "Accepted", "True", "Accepted")
		})
	}
	t.Run("B31/terminating", func(t *testing.T) { // nothing new goes to an endpoint that ends and does not serve
		m := terminating.mark()
		counts := shares(t, g.addr, "terminating", n)
		wantShare(t, counts, "good", 0.5, n)
		wantShare(t, counts, "503", 0.5, n)
		terminating.wantNothingSince(t, m)
	})
	t.Run("B31/only-missing", func(t *testing.T) {
		wantStatus(t, exchange(t, g.addr, "GET / HTTP/1.1\r\nHost: only-missing\r\n\r\n"), 500)
	})
	t.Run("B31/scale-1-0-1", func(t *testing.T) { // follows the endpoints, without an edit of the route
		late := newBackend(t, "late")
		wantStatus(t, exchange(t, g.addr, "GET / HTTP/1.1\r\nHost: only-unready\r\n\r\n"), 503)
		for range 3 {
			g.apply(t, "slice.yaml", endpointSlice("default", "unready", 0, late.addr, "{ready: true}"))
			g.awaitStatus(t, "only-unready", "/", 200)
			g.remove(t, "slice.yaml")
			g.awaitStatus(t, "only-unready", "/", 503)
		}
	})
	t.Run("B31/service-appears", func(t *testing.T) {
		late := newBackend(t, "no-such-service")
		g.apply(t, "late.yaml", late.manifest())
		g.awaitStatus(t, "only-missing", "/", 200)
		g.wantCondition(t, "HTTPRoute", "default", "only-missing", "ResolvedRefs", "True", "ResolvedRefs")
		g.remove(t, "late.yaml")
		g.awaitStatus(t, "only-missing", "/", 500)
	})
}

func TestEndpoints(t *testing.T) {
	one, two := newBackend(t, "one"), newBackend(t, "two")
	g := edge(t, route("all", "hostnames: [a]\nrules:\n- backendRefs: [{name: svc, port: 80}]"))
	t.Run("B31/spread", func(t *testing.T) {
		g.apply(t, "svc.yaml", service("default", "svc", one.addr, two.addr))
		g.awaitStatus(t, "a", "/", 200)
		counts := make(map[string]int)
		for range 60 { // from new connections, which land on all workers
			r := exchange(t, g.addr, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
			counts[r.get("X-Backend")]++
		}
		if counts["one"] < 10 || counts["two"] < 10 {
			t.Errorf("got %v, want both", counts)
		}
	})
	t.Run("B31/one-leaves", func(t *testing.T) {
		g.apply(t, "svc.yaml", service("default", "svc", two.addr))
		eventually(t, patience, func() error {
			if counts := shares(t, g.addr, "a", 30); counts["two"] != 30 {
				return fmt.Errorf("got %v", counts)
			}
			return nil
		})
	})
	t.Run("B31/leaves-while-busy", func(t *testing.T) { // what is under way is finished
		release := newGate(t)
		two.set(func(u *upstreamConn, r *request) {
			if r.target == "/busy" {
				release.wait()
			}
			two.echo(u, r)
		})
		c := dial(t, g.addr)
		c.send("GET /busy HTTP/1.1\r\nHost: a\r\n\r\n")
		time.Sleep(50 * time.Millisecond)
		g.apply(t, "svc.yaml", service("default", "svc", one.addr))
		eventually(t, patience, func() error {
			r := exchange(t, g.addr, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
			if r.get("X-Backend") != "one" {
				return fmt.Errorf("got %q", r.raw)
			}
			return nil
		})
		release.open()
		if q := seen(t, c.response("GET")); q.target != "/busy" {
			t.Errorf("got %q", q.raw)
		}
	})
	t.Run("B31/one-refuses", func(t *testing.T) { // a dead endpoint beside a live one: GETs go on
		dead := newBackend(t, "dead")
		dead.stop()
		g.apply(t, "svc.yaml", service("default", "svc", one.addr, dead.addr))
		time.Sleep(200 * time.Millisecond)
		failed := 0
		for range 50 {
			if r := exchange(t, g.addr, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"); r.status != 200 {
				wantStatus(t, r, 502)
				failed++
			}
		}
		if failed > 40 {
			t.Errorf("%d of 50 requests failed", failed)
		}
	})
	t.Run("B31/fqdn", func(t *testing.T) {
		doc := service("default", "svc") + "---\n" + strings.Replace(
			endpointSlice("default", "svc", 0, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), one.addr.Port()), "{ready: true}"),
			"127.0.0.1", "localhost", 1)
		g.apply(t, "svc.yaml", strings.Replace(doc, "addressType: IPv4", "addressType: FQDN", 1))
		eventually(t, patience, func() error {
			if counts := shares(t, g.addr, "a", 5); counts["one"] != 5 {
				return fmt.Errorf("got %v", counts)
			}
			return nil
		})
	})
}

func TestReferenceGrants(t *testing.T) {
	be, local := newBackend(t, "be"), newBackend(t, "local")
	g := edge(t, service("other", "be", be.addr), local.manifest(),
		route("cross", "hostnames: [cross]\nrules:\n- backendRefs: [{name: be, namespace: other, port: 80}]"),
		route("half", "hostnames: [half]\nrules:\n- backendRefs: [{name: be, namespace: other, port: 80}, {name: local, port: 80}]"),
		route("nowhere", "hostnames: [nowhere]\nrules:\n- backendRefs: [{name: does-not-exist, namespace: other, port: 80}]"))
	grant := func(namespace, fromKind, fromNamespace, to string) string {
		return fmt.Sprintf(`apiVersion: gateway.networking.k8s.io/v1beta1
kind: ReferenceGrant
metadata: {name: grant, namespace: %s}
spec:
  from: [{group: gateway.networking.k8s.io, kind: %s, namespace: %s}]
  to: [%s]
`, namespace, fromKind, fromNamespace, to)
	}
	get := "GET / HTTP/1.1\r\nHost: cross\r\n\r\n"
	t.Run("B33/none", func(t *testing.T) {
		m := be.mark()
		wantStatus(t, exchange(t, g.addr, get), 500)
		be.wantNothingSince(t, m)
		g.wantCondition(t, "HTTPRoute", "default", "cross", "ResolvedRefs", "False", "RefNotPermitted")
	})
	t.Run("B33/existence-is-not-told", func(t *testing.T) { // a missing target looks the same
		g.wantCondition(t, "HTTPRoute", "default", "nowhere", "ResolvedRefs", "False", "RefNotPermitted")
		wantStatus(t, exchange(t, g.addr, "GET / HTTP/1.1\r\nHost: nowhere\r\n\r\n"), 500)
	})
	t.Run("B33/share", func(t *testing.T) {
		counts := shares(t, g.addr, "half", 600)
		wantShare(t, counts, "500", 0.5, 600)
		wantShare(t, counts, "local", 0.5, 600)
	})
	for _, c := range []struct{ name, doc string }{
		{"B33/wrong-kind", grant("other", "GRPCRoute", "default", `{group: "", kind: Service}`)},
		{"B33/wrong-from-namespace", grant("other", "HTTPRoute", "third", `{group: "", kind: Service}`)},
		{"B33/wrong-namespace", grant("default", "HTTPRoute", "default", `{group: "", kind: Service}`)},
		{"B33/wrong-to-kind", grant("other", "HTTPRoute", "default", `{group: "", kind: Secret}`)},
		{"B33/wrong-name", grant("other", "HTTPRoute", "default", `{group: "", kind: Service, name: another}`)},
	} {
		t.Run(c.name, func(t *testing.T) {
			g.apply(t, "grant.yaml", c.doc)
			g.apply(t, "probe.yaml", simpleRoute("probe", local)) // tells when the grant was seen
			g.awaitStatus(t, "probe", "/", 200)
			wantStatus(t, exchange(t, g.addr, get), 500)
			g.remove(t, "grant.yaml")
			g.remove(t, "probe.yaml")
			g.awaitStatus(t, "probe", "/", 404)
		})
	}
	for _, c := range []struct{ name, doc string }{
		{"B33/granted", grant("other", "HTTPRoute", "default", `{group: "", kind: Service}`)},
		{"B33/granted-by-name", grant("other", "HTTPRoute", "default", `{group: "", kind: Service, name: be}`)},
		{"B33/granted-v1", strings.Replace(grant("other", "HTTPRoute", "default", `{group: "", kind: Service}`), "/v1beta1", "/v1", 1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			begin := time.Now()
			g.apply(t, "grant.yaml", c.doc)
			g.awaitStatus(t, "cross", "/", 200)
			if took := time.Since(begin); took > 10*time.Second {
				t.Errorf("worked %v after the grant came", took)
			}
			g.wantCondition(t, "HTTPRoute", "default", "cross", "ResolvedRefs", "True", "ResolvedRefs")
			g.remove(t, "grant.yaml") // and stops, while traffic flows
			g.awaitStatus(t, "cross", "/", 500)
		})
	}
}
