package cases

import (
	"fmt"
	"strings"
	"testing"
)

// hosts starts a gateway where a.example, b.example, and any other host have a
// backend each: a, b and any.
func hosts(t *testing.T) (g *gateway, a, b, other *backend) {
	a, b, other = newBackend(t, "a"), newBackend(t, "b"), newBackend(t, "any")
	g = edge(t, a.manifest(), b.manifest(), other.manifest(),
		simpleRoute("a.example", a), simpleRoute("b.example", b),
		route("any", "rules:\n- backendRefs: [{name: any, port: 80}]"))
	return g, a, b, other
}

func TestAbsoluteForm(t *testing.T) {
	g, a, _, _ := hosts(t)
	for _, c := range []struct{ name, target, host, path string }{
		{"B08/http", "http://b.example/p?q", "b.example", "/p?q"},
		{"B08/port", "http://b.example:8080/p", "b.example:8080", "/p"},
		{"B08/no-path", "http://b.example", "b.example", "/"},
		{"B08/query-without-path", "http://b.example?q", "b.example", "/?q"},
		{"B08/scheme-upper-case", "HTTP://b.example/p", "b.example", "/p"},
		{"B08/host-upper-case", "http://B.EXAMPLE/p", "b.example", "/p"},
		{"B08/path-in-query", "http://b.example?x=/y", "b.example", "/?x=/y"},
		{"B08/url-in-path", "http://b.example/http://a.example/", "b.example", "/http://a.example/"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := exchange(t, g.addr, "GET "+c.target+" HTTP/1.1\r\nHost: a.example\r\n\r\n")
			q := seen(t, r)
			if r.get("X-Backend") != "b" {
				t.Errorf("routed to %q, want b: the target's authority counts (RFC 9112, 3.2.2)", r.get("X-Backend"))
			}
			if hs := q.values("Host"); len(hs) != 1 || !strings.EqualFold(hs[0], c.host) {
				t.Errorf("forwarded Host %q, want %q", hs, c.host)
			}
			if q.target != c.path {
				t.Errorf("forwarded target %q, want %q", q.target, c.path)
			}
		})
	}
	t.Run("B08/same-host", func(t *testing.T) {
		r := exchange(t, g.addr, "GET http://a.example/p HTTP/1.1\r\nHost: a.example\r\n\r\n")
		if q := seen(t, r); r.get("X-Backend") != "a" || q.target != "/p" {
			t.Errorf("backend %q got %q", r.get("X-Backend"), q.raw)
		}
	})
	t.Run("B08/https-on-plain", func(t *testing.T) {
		m := a.mark()
		r := exchange(t, g.addr, "GET https://b.example/p HTTP/1.1\r\nHost: a.example\r\n\r\n")
		wantStatus(t, r, 200, 400, 421)
		if r.status == 200 && r.get("X-Backend") != "b" {
			t.Errorf("routed to %q", r.get("X-Backend"))
		}
		a.wantNothingSince(t, m)
	})
	for _, c := range []struct{ name, target string }{
		{"B08/userinfo", "http://a@b.example/"},
		{"B08/userinfo-password", "http://a:p@b.example/"},
		{"B08/userinfo-empty", "http://@b.example/"},
		{"B08/empty-authority", "http:///p"},
		{"B08/no-slashes", "http:b.example/p"},
		{"B08/one-slash", "http:/b.example/p"},
		{"B08/other-scheme", "ftp://b.example/p"},
		{"B08/backslash-authority", "http://b.example\\@a.example/"},
		{"B08/bad-port", "http://b.example:8x/p"},
		{"B08/port-out-of-range", "http://b.example:99999/p"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := a.mark()
			rejected(t, g.addr, "GET "+c.target+" HTTP/1.1\r\nHost: a.example\r\n\r\n", 400)
			a.wantNothingSince(t, m)
		})
	}
	t.Run("B08/fragment", func(t *testing.T) { // not part of a request target (RFC 9112, 3.2)
		r := exchange(t, g.addr, "GET /p#frag HTTP/1.1\r\nHost: a.example\r\n\r\n")
		if r.status != 400 {
			if q := seen(t, r); strings.Contains(q.target, "#") {
				t.Errorf("forwarded target %q", q.target)
			}
		}
	})
}

func TestHost(t *testing.T) {
	g, a, b, other := hosts(t)
	for _, c := range []struct{ name, host, backend string }{
		{"B09/plain", "a.example", "a"},
		{"B09/port", "a.example:8082", "a"},
		{"B09/empty-port", "a.example:", "a"},
		{"B09/upper-case", "A.EXAMPLE", "a"},
		{"B09/trailing-dot", "a.example.", "a"},
		{"B09/trailing-dot-and-port", "a.example.:80", "a"},
		{"B09/ipv6-and-port", "[::1]:8080", "any"},
		{"B09/ipv6", "[::1]", "any"},
		{"B09/ipv4", "127.0.0.1", "any"},
		{"B09/empty", "", "any"},
		{"B09/underscore", "my_host", "any"},
		{"B09/subdomain", "x.a.example", "any"},
		{"B09/prefix-of", "a.exampl", "any"},
		{"B09/suffix-of", "xa.example", "any"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := exchange(t, g.addr, "GET / HTTP/1.1\r\nHost: "+c.host+"\r\n\r\n")
			q := seen(t, r)
			if r.get("X-Backend") != c.backend {
				t.Errorf("routed to %q, want %q", r.get("X-Backend"), c.backend)
			}
			if hs := q.values("Host"); len(hs) != 1 || hs[0] != c.host {
				t.Errorf("forwarded Host %q, want it unmodified: %q", hs, c.host)
			}
		})
	}
	for _, c := range []struct{ name, fields string }{
		{"B09/missing", ""},
		{"B09/two-equal", "Host: a.example\r\nHost: a.example\r\n"},
		{"B09/two-different", "Host: a.example\r\nHost: b.example\r\n"},
		{"B09/two-cases", "Host: a.example\r\nhost: b.example\r\n"},
		{"B09/two-first-empty", "Host:\r\nHost: a.example\r\n"},
		{"B09/slash", "Host: a.example/x\r\n"},
		{"B09/blank", "Host: a b\r\n"},
		{"B09/list", "Host: a.example, b.example\r\n"},
		{"B09/userinfo", "Host: x@a.example\r\n"},
		{"B09/scheme", "Host: http://a.example\r\n"},
		{"B09/query", "Host: a.example?x\r\n"},
		{"B09/fragment", "Host: a.example#x\r\n"},
		{"B09/backslash", "Host: a.example\\x\r\n"},
		{"B09/control", "Host: a.example\x01\r\n"},
		{"B09/port-not-a-number", "Host: a.example:80x\r\n"},
		{"B09/port-negative", "Host: a.example:-1\r\n"},
		{"B09/two-ports", "Host: a.example:80:81\r\n"},
		{"B09/ipv6-unclosed", "Host: [::1\r\n"},
		{"B09/ipv6-unbracketed", "Host: ::1\r\n"},
		{"B09/ipv6-garbage-behind", "Host: [::1]x\r\n"},
		{"B09/ipv6-garbage-within", "Host: [a b]\r\n"},
		{"B09/only-port", "Host: :80\r\n"},
		{"B09/angle-brackets", "Host: <a.example>\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ma, mb, mo := a.mark(), b.mark(), other.mark()
			rejected(t, g.addr, "GET / HTTP/1.1\r\n"+c.fields+"\r\n", 400)
			a.wantNothingSince(t, ma)
			b.wantNothingSince(t, mb)
			other.wantNothingSince(t, mo)
		})
	}
}

// An empty or unknown Host matches only listeners and routes without hostname.
func TestHostWithoutCatchAll(t *testing.T) {
	a := newBackend(t, "a")
	port := freePort(t)
	start(t, options{listeners: []string{fmt.Sprintf("{name: http, port: %d, protocol: HTTP, hostname: a.example}", port)}},
		a.manifest(), route("all", "rules:\n- backendRefs: [{name: a, port: 80}]"))
	addr := loopback(port)
	for _, c := range []struct {
		name, raw string
		status    int
	}{
		{"B09/known-on-hostname-listener", "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n", 200},
		{"B09/empty-on-hostname-listener", "GET / HTTP/1.1\r\nHost:\r\n\r\n", 404},
		{"B09/ipv6-on-hostname-listener", "GET / HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n", 404},
		{"B09/unknown-on-hostname-listener", "GET / HTTP/1.1\r\nHost: b.example\r\n\r\n", 404},
		{"B09/http-1.0-without-host", "GET / HTTP/1.0\r\n\r\n", 404},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := a.mark()
			wantStatus(t, exchange(t, addr, c.raw), c.status)
			if c.status != 200 {
				a.wantNothingSince(t, m)
			}
		})
	}
}

func TestHTTP10(t *testing.T) {
	g, a, _, other := hosts(t)
	t.Run("http10/closes", func(t *testing.T) {
		c := dial(t, g.addr)
		c.send("GET /old HTTP/1.0\r\nHost: a.example\r\n\r\n")
		q := seen(t, c.response("GET"))
		if q.target != "/old" || q.version != "HTTP/1.1" {
			t.Errorf("backend got %q, want HTTP/1.1", q.start)
		}
		c.wantClosed()
	})
	t.Run("http10/no-host", func(t *testing.T) {
		r := exchange(t, g.addr, "GET / HTTP/1.0\r\n\r\n")
		if r.get("X-Backend") != other.name {
			t.Errorf("routed to %q: %q", r.get("X-Backend"), r.raw)
		}
	})
	t.Run("http10/keep-alive", func(t *testing.T) {
		c := dial(t, g.addr)
		c.send("GET /1 HTTP/1.0\r\nHost: a.example\r\nConnection: keep-alive\r\n\r\n")
		r := c.response("GET")
		if !strings.EqualFold(r.get("Connection"), "keep-alive") {
			c.wantClosed() // it may refuse, but then it must close
			return
		}
		c.send("GET /2 HTTP/1.0\r\nHost: a.example\r\nConnection: keep-alive\r\n\r\n")
		if q := seen(t, c.response("GET")); q.target != "/2" {
			t.Errorf("backend got %q", q.raw)
		}
	})
	t.Run("http10/chunked-answer", func(t *testing.T) { // a 1.0 client knows no chunks (RFC 9112, 6.1)
		a.set(answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"))
		defer a.set(a.echo)
		c := dial(t, g.addr)
		c.send("GET / HTTP/1.0\r\nHost: a.example\r\nConnection: keep-alive\r\n\r\n")
		r := c.response("GET")
		if r.has("Transfer-Encoding") || string(r.body) != "hello world" {
			t.Errorf("got %q%q, want the plain body", r.raw, r.body)
		}
	})
	t.Run("http10/interim", func(t *testing.T) { // no 1xx to a 1.0 client (RFC 9110, 15.2)
		a.set(answer("HTTP/1.1 103 Early Hints\r\nLink: </s>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
		defer a.set(a.echo)
		r := exchange(t, g.addr, "GET / HTTP/1.0\r\nHost: a.example\r\n\r\n")
		if len(r.interim) > 0 || string(r.body) != "ok" {
			t.Errorf("got %d interim answers and %q", len(r.interim), r.body)
		}
	})
	t.Run("http10/post", func(t *testing.T) {
		q := seen(t, exchange(t, g.addr, "POST / HTTP/1.0\r\nHost: a.example\r\nContent-Length: 5\r\n\r\nhello"))
		if string(q.body) != "hello" {
			t.Errorf("backend got %q", q.body)
		}
	})
	t.Run("http10/backend", func(t *testing.T) { // an old backend whose body ends with its connection
		a.set(answerClose("HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nhello"))
		defer a.set(a.echo)
		c := dial(t, g.addr)
		r := c.get("a.example", "/")
		if r.minor != "1.1" || string(r.body) != "hello" {
			t.Errorf("got %q%q", r.raw, r.body)
		}
	})
}
