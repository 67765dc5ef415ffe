package cases

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestListenerIsolation(t *testing.T) {
	be := newBackend(t, "be")
	port := freePort(t)
	listener := func(name, hostname string) string {
		return fmt.Sprintf("{name: %s, port: %d, protocol: HTTP, hostname: %q}", name, port, hostname)
	}
	on := func(section string) string {
		return routeOn(section, "{name: edge, sectionName: "+section+"}", "rules:"+marked(section, "be", prefix("/"+section)))
	}
	start(t, options{listeners: []string{
		fmt.Sprintf("{name: any, port: %d, protocol: HTTP}", port),
		listener("wild-example", "*.example.com"),
		listener("wild-foo", "*.foo.example.com"),
		listener("foo", "foo.example.com"),
	}}, be.manifest(), on("any"), on("wild-example"), on("wild-foo"), on("foo"))
	addr := loopback(port)
	owners := map[string]string{
		"a.foo.example.com":     "wild-foo",
		"x.y.example.com":       "wild-example",
		"bar.example.com":       "wild-example",
		"a.b.foo.example.com":   "wild-foo",
		"example.com":           "any",
		"foo.example.com":       "foo",
		"FOO.example.COM:8080":  "foo",
		"other.org":             "any",
		"xfoo.example.com":      "wild-example",
		"foo.example.com.":      "foo",
		"fooexample.com":        "any",
		"a.foo.example.com.org": "any",
	}
	for host, owner := range owners {
		for _, section := range []string{"any", "wild-example", "wild-foo", "foo"} {
			t.Run("B29/"+host+"-"+section, func(t *testing.T) {
				r := exchange(t, addr, "GET /"+section+" HTTP/1.1\r\nHost: "+host+"\r\n\r\n")
				if section != owner { // the most specific listener only: no fall-through
					wantStatus(t, r, 404)
					return
				}
				wantStatus(t, r, 200)
				if r.get("X-Rule") != owner {
					t.Errorf("rule %q answered", r.get("X-Rule"))
				}
			})
		}
		t.Run("B29/"+host+"-unrouted", func(t *testing.T) {
			wantStatus(t, exchange(t, addr, "GET /unrouted HTTP/1.1\r\nHost: "+host+"\r\n\r\n"), 404)
		})
	}
}

// A route serves the intersection of its hostnames with its listener's.
func TestHostnameIntersection(t *testing.T) {
	be := newBackend(t, "be")
	port := freePort(t)
	g := start(t, options{listeners: []string{
		fmt.Sprintf("{name: wild, port: %d, protocol: HTTP, hostname: \"*.example.com\"}", port),
		fmt.Sprintf("{name: exact, port: %d, protocol: HTTP, hostname: very.specific.com}", port),
	}}, be.manifest(),
		routeOn("none", "{name: edge, sectionName: wild}", "rules:"+marked("none", "be", prefix("/none"))),
		routeOn("narrow", "{name: edge}", "hostnames: [a.example.com, very.specific.com, unrelated.org]\nrules:"+marked("narrow", "be", prefix("/narrow"))),
		routeOn("wide", "{name: edge}", "hostnames: [\"*.com\", \"*.specific.com\"]\nrules:"+marked("wide", "be", prefix("/wide"))),
		routeOn("deep", "{name: edge}", "hostnames: [\"*.deep.example.com\"]\nrules:"+marked("deep", "be", prefix("/deep"))),
		routeOn("outside", "{name: edge}", "hostnames: [other.org]\nrules:"+marked("outside", "be", prefix("/"))))
	addr := loopback(port)
	for _, c := range []struct{ host, path, rule string }{
		{"a.example.com", "/none", "none"}, {"b.example.com", "/none", "none"}, {"very.specific.com", "/none", ""},
		{"a.example.com", "/narrow", "narrow"}, {"b.example.com", "/narrow", ""}, {"very.specific.com", "/narrow", "narrow"},
		{"unrelated.org", "/narrow", ""}, {"a.example.com", "/wide", "wide"}, {"very.specific.com", "/wide", "wide"},
		{"specific.com", "/wide", ""}, {"x.deep.example.com", "/deep", "deep"}, {"deep.example.com", "/deep", ""},
		{"other.org", "/", ""}, {"example.com", "/wide", ""},
	} {
		t.Run("B29/intersection-"+c.host+strings.ReplaceAll(c.path, "/", "-"), func(t *testing.T) {
			r := exchange(t, addr, "GET "+c.path+" HTTP/1.1\r\nHost: "+c.host+"\r\n\r\n")
			if c.rule == "" {
				wantStatus(t, r, 404)
				return
			}
			wantStatus(t, r, 200)
			if r.get("X-Rule") != c.rule {
				t.Errorf("rule %q answered, want %q", r.get("X-Rule"), c.rule)
			}
		})
	}
	t.Run("B29/no-matching-hostname-is-told", func(t *testing.T) {
		g.wantCondition(t, "HTTPRoute", "default", "outside", "Accepted", "False", "NoMatchingListenerHostname")
	})
}

// Two Gateways on one address and port are merged; HTTP and HTTPS on one port,
// and one hostname twice, conflict.
func TestListenerConflicts(t *testing.T) {
	be := newBackend(t, "be")
	shared, mixed, tcp := freePort(t), freePort(t), freePort(t)
	named := func(name string, port int, rest string) string {
		return fmt.Sprintf("{name: %s, port: %d, %s}", name, port, rest)
	}
	cert := newCertificate(t, "argocd.example.com")
	g := start(t, options{listeners: []string{
		named("a", shared, "protocol: HTTP, hostname: a.example.com"),
		named("mixed-http", mixed, "protocol: HTTP"),
		named("mixed-https", mixed, "protocol: HTTPS, tls: {certificateRefs: [{name: cert}]}"),
		named("tcp-http", tcp, "protocol: HTTP"),
		named("tcp-tcp", tcp, "protocol: TCP"),
		named("twice", shared, "protocol: HTTP, hostname: twice.example.com"),
	}}, be.manifest(), cert.secret("default", "cert"),
		gatewayObject("second", named("b", shared, "protocol: HTTP, hostname: b.example.com"),
			named("twice", shared, "protocol: HTTP, hostname: twice.example.com")),
		route("first", "rules:"+marked("first", "be", prefix("/"))),
		routeOn("second", "{name: second}", "rules:"+marked("second", "be", prefix("/"))))
	addr := loopback(shared)
	for host, rule := range map[string]string{"a.example.com": "first", "b.example.com": "second"} {
		t.Run("B29/merged-"+host, func(t *testing.T) {
			r := exchange(t, addr, "GET / HTTP/1.1\r\nHost: "+host+"\r\n\r\n")
			wantStatus(t, r, 200)
			if r.get("X-Rule") != rule {
				t.Errorf("rule %q answered, want %q", r.get("X-Rule"), rule)
			}
		})
	}
	t.Run("B29/one-hostname-twice", func(t *testing.T) { // none of the two wins
		wantStatus(t, exchange(t, addr, "GET / HTTP/1.1\r\nHost: twice.example.com\r\n\r\n"), 404)
		g.wantCondition(t, "Gateway", "default", "edge", "Conflicted", "True", "HostnameConflict")
		g.wantCondition(t, "Gateway", "default", "second", "Conflicted", "True", "HostnameConflict")
	})
	t.Run("B29/http-and-https-on-one-port", func(t *testing.T) {
		if c, err := tryDial(loopback(mixed)); err == nil {
			c.Close()
			t.Errorf("port %d listens though its listeners conflict", mixed)
		}
		g.wantCondition(t, "Gateway", "default", "edge", "Conflicted", "True", "ProtocolConflict")
		g.wantCondition(t, "Gateway", "default", "edge", "Accepted", "True", "ListenersNotValid")
	})
	t.Run("B29/http-and-tcp-on-one-port", func(t *testing.T) {
		// A gateway that knows no TCP listeners says that, and serves the other.
		if slices.Contains(g.conditions(t, "Gateway", "default", "edge"), condition{"Accepted", "False", "UnsupportedProtocol"}) {
			wantStatus(t, exchange(t, loopback(tcp), "GET / HTTP/1.1\r\nHost: any\r\n\r\n"), 200)
			return
		}
		if c, err := tryDial(loopback(tcp)); err == nil {
			c.Close()
			t.Errorf("port %d listens though its listeners conflict", tcp)
		}
	})
	t.Run("B29/conflicts-are-told", func(t *testing.T) {
		for name, atLeast := range map[string]int{"edge": 3, "second": 1} {
			n := 0
			for _, c := range g.conditions(t, "Gateway", "default", name) {
				if c.kind == "Conflicted" && c.status == "True" {
					n++
				}
			}
			if n < atLeast {
				t.Errorf("%d listeners of %s are Conflicted, want %d", n, name, atLeast)
			}
		}
	})
}

func TestHTTPSHostnameBesideHTTP(t *testing.T) {
	be := newBackend(t, "be")
	cert := newCertificate(t, "argocd.example.com")
	http, https := freePort(t), freePort(t)
	start(t, options{listeners: []string{
		fmt.Sprintf("{name: http, port: %d, protocol: HTTP}", http),
		fmt.Sprintf("{name: https, port: %d, protocol: HTTPS, hostname: argocd.example.com, tls: {certificateRefs: [{name: cert}]}}", https),
	}}, be.manifest(), cert.secret("default", "cert"),
		routeOn("plain", "{name: edge, sectionName: http}", "rules:"+marked("plain", "be", prefix("/"))),
		routeOn("secure", "{name: edge, sectionName: https}", "rules:"+marked("secure", "be", prefix("/"))))
	t.Run("B29/https-hostname-does-not-shadow-http", func(t *testing.T) {
		if r := exchange(t, loopback(http), "GET / HTTP/1.1\r\nHost: argocd.example.com\r\n\r\n"); r.get("X-Rule") != "plain" {
			t.Errorf("plain: %q", r.raw)
		}
		if r := dialTLS(t, loopback(https), "argocd.example.com").get("argocd.example.com", "/"); r.get("X-Rule") != "secure" {
			t.Errorf("secure: %q", r.raw)
		}
	})
}
