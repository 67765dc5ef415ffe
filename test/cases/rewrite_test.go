package cases

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// pathCase is one row of the table in HTTPPathModifier, or one like them. Where
// the table leaves the result open, the alternatives are separated by "|".
type pathCase struct{ name, request, prefix, replacement, result string }

var pathCases = []pathCase{
	// The 11 rows, in their order.
	{"row-01", "/foo/bar", "/foo", "/xyz", "/xyz/bar"},
	{"row-02", "/foo/bar", "/foo", "/xyz/", "/xyz/bar"},
	{"row-03", "/foo/bar", "/foo/", "/xyz", "/xyz/bar"},
	{"row-04", "/foo/bar", "/foo/", "/xyz/", "/xyz/bar"},
	{"row-05", "/foo", "/foo", "/xyz", "/xyz"},
	{"row-06", "/foo/", "/foo", "/xyz", "/xyz/"},
	{"row-07", "/foo/bar", "/foo", "", "/bar"},
	{"row-08", "/foo/", "/foo", "", "/"},
	{"row-09", "/foo", "/foo", "", "/"},
	{"row-10", "/foo/", "/foo", "/", "/"},
	{"row-11", "/foo", "/foo", "/", "/"},
	// Their like.
	{"root-to-foo", "/test", "/", "/foo", "/foo/test"},
	{"root-to-foo-root", "/", "/", "/foo", "/foo|/foo/"},
	{"root-to-foo-query", "/?q=1", "/", "/foo", "/foo?q=1|/foo/?q=1"},
	{"root-to-foo-slash", "/test", "/", "/foo/", "/foo/test"},
	{"root-to-root", "/test", "/", "/", "/test"},
	{"root-to-empty", "/test", "/", "", "/test"},
	{"slash-rules-no-bar", "/foo/", "/foo/", "/xyz/", "/xyz/"},
	{"slash-rules-bare", "/foo", "/foo/", "/xyz", "/xyz"},
	{"query-kept", "/a?b=/a/c", "/a", "/x", "/x?b=/a/c"},
	{"query-kept-deep", "/a/b?c=%2F&d=%zz", "/a", "/x", "/x/b?c=%2F&d=%zz"},
	{"query-empty-path", "/foo?x=1", "/foo", "", "/?x=1"},
	{"query-slash", "/foo?x=1", "/foo", "/", "/?x=1"},
	{"escapes-kept", "/a/x%2Fb", "/a", "/x", "/x/x%2Fb"},
	{"double-slash-kept", "/a//c", "/a", "/x", "/x//c"},
	{"double-slash-not-made", "/a//c", "/a", "/x/", "/x//c"},
	{"longer", "/a/b", "/a", "/x/y/z", "/x/y/z/b"},
	{"longer-prefix", "/a/b/c/d", "/a/b/c", "/x", "/x/d"},
	{"same-again", "/a/a/a", "/a", "/x", "/x/a/a"},
	{"decoded-prefix", "/%61/b", "/a", "/x", "/x/b"},
	{"dots-resolved-first", "/q/../a/b", "/a", "/x", "/x/b"},
}

func TestURLRewrite(t *testing.T) {
	be := newBackend(t, "be")
	var docs []string
	rewrite := func(name, prefix, body string) {
		docs = append(docs, route(name, fmt.Sprintf(`
hostnames: [%s]
rules:
- matches: [{path: {type: PathPrefix, value: %q}}]
  filters: [{type: URLRewrite, urlRewrite: %s}]
  backendRefs: [{name: be, port: 80}]`, name, prefix, body)))
	}
	for _, c := range pathCases {
		rewrite(c.name, c.prefix, fmt.Sprintf("{path: {type: ReplacePrefixMatch, replacePrefixMatch: %q}}", c.replacement))
	}
	rewrite("full", "/", "{path: {type: ReplaceFullPath, replaceFullPath: /one}}")
	rewrite("host", "/", "{hostname: inner.example}")
	rewrite("both", "/a", "{hostname: inner.example, path: {type: ReplacePrefixMatch, replacePrefixMatch: /b}}")
	g := edge(t, append(docs, be.manifest())...)

	for _, c := range pathCases {
		t.Run("B27/"+c.name, func(t *testing.T) {
			q := seen(t, exchange(t, g.addr, "GET "+c.request+" HTTP/1.1\r\nHost: "+c.name+"\r\n\r\n"))
			if !slices.Contains(strings.Split(c.result, "|"), q.target) {
				t.Errorf("%s with %q -> %q became %q, want %q", c.request, c.prefix, c.replacement, q.target, c.result)
			}
		})
	}
	t.Run("B27/segment-boundary", func(t *testing.T) { // /a%2Fb is one segment, so /a does not match it
		wantStatus(t, exchange(t, g.addr, "GET /a%2Fb HTTP/1.1\r\nHost: query-kept\r\n\r\n"), 404)
	})
	for _, c := range []struct{ name, host, target, want, wantHost string }{
		{"B27/full-path", "full", "/a/b", "/one", "full"},
		{"B27/full-path-keeps-query", "full", "/a/b?x=1&y=%20", "/one?x=1&y=%20", "full"},
		{"B27/hostname", "host", "/a/b?x", "/a/b?x", "inner.example"},
		{"B27/hostname-and-prefix", "both", "/a/c", "/b/c", "inner.example"},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := seen(t, exchange(t, g.addr, "GET "+c.target+" HTTP/1.1\r\nHost: "+c.host+"\r\n\r\n"))
			if hs := q.values("Host"); q.target != c.want || len(hs) != 1 || hs[0] != c.wantHost {
				t.Errorf("backend got %q at %q, want %q at %q", q.target, hs, c.want, c.wantHost)
			}
			if q.get("X-Forwarded-Host") != c.host {
				t.Errorf("X-Forwarded-Host %q, want what the client asked for: %q", q.get("X-Forwarded-Host"), c.host)
			}
		})
	}
}

func TestRedirect(t *testing.T) {
	be := newBackend(t, "be")
	type redirect struct {
		name, prefix, body, target, location string
		status                               int
	}
	port := freePort(t)
	p := fmt.Sprint(port)
	cases := []redirect{
		{"host", "/", "{hostname: other.example}", "/a/b?c=d", "http://other.example:" + p + "/a/b?c=d", 302},
		{"scheme", "/", "{scheme: https}", "/a?b", "https://scheme/a?b", 302},
		{"scheme-same", "/", "{scheme: http}", "/a", "http://scheme-same/a", 302},
		{"port", "/", "{port: 8443}", "/a", "http://port:8443/a", 302},
		{"port-well-known", "/", "{port: 80}", "/a", "http://port-well-known/a", 302},
		{"scheme-and-port", "/", "{scheme: https, port: 8443}", "/a", "https://scheme-and-port:8443/a", 302},
		{"scheme-and-well-known-port", "/", "{scheme: https, port: 443}", "/a", "https://scheme-and-well-known-port/a", 302},
		{"scheme-and-other-port", "/", "{scheme: https, port: 80}", "/a", "https://scheme-and-other-port:80/a", 302},
		{"all", "/a", "{scheme: https, hostname: o.example, port: 444, statusCode: 301, path: {type: ReplacePrefixMatch, replacePrefixMatch: /z}}", "/a/b?c", "https://o.example:444/z/b?c", 301},
		{"full-path", "/", "{path: {type: ReplaceFullPath, replaceFullPath: /one}}", "/a/b?c=1", "http://full-path:" + p + "/one?c=1", 302},
		{"status-301", "/", "{statusCode: 301, scheme: https}", "/", "https://status-301/", 301},
		{"status-302", "/", "{statusCode: 302, scheme: https}", "/", "https://status-302/", 302},
		{"status-303", "/", "{statusCode: 303, scheme: https}", "/", "https://status-303/", 303},
		{"status-307", "/", "{statusCode: 307, scheme: https}", "/", "https://status-307/", 307},
		{"status-308", "/", "{statusCode: 308, scheme: https}", "/", "https://status-308/", 308},
		{"escapes", "/", "{scheme: https}", "/a%2Fb%20c?d=%zz", "https://escapes/a%2Fb%20c?d=%zz", 302},
	}
	for _, c := range pathCases {
		origin := "https://prefix-" + c.name
		cases = append(cases, redirect{"prefix-" + c.name, c.prefix,
			fmt.Sprintf("{scheme: https, path: {type: ReplacePrefixMatch, replacePrefixMatch: %q}}", c.replacement),
			c.request, origin + strings.ReplaceAll(c.result, "|", "|"+origin), 302})
	}
	docs := []string{be.manifest()}
	for _, c := range cases {
		docs = append(docs, route(c.name, fmt.Sprintf(`
hostnames: [%s]
rules:
- matches: [{path: {type: PathPrefix, value: %q}}]
  filters: [{type: RequestRedirect, requestRedirect: %s}]`, c.name, c.prefix, c.body)))
	}
	docs = append(docs, route("with-header", `
hostnames: [with-header]
rules:
- filters:
  - {type: RequestRedirect, requestRedirect: {scheme: https}}
  - {type: ResponseHeaderModifier, responseHeaderModifier: {set: [{name: X-Set, value: "1"}]}}`))
	start(t, options{listeners: []string{fmt.Sprintf("{name: http, port: %d, protocol: HTTP}", port)}}, docs...)
	addr := loopback(port)
	for _, c := range cases {
		t.Run("B27/redirect-"+c.name, func(t *testing.T) {
			r := exchange(t, addr, "GET "+c.target+" HTTP/1.1\r\nHost: "+c.name+":"+p+"\r\n\r\n")
			wantStatus(t, r, c.status)
			if got := r.get("Location"); !slices.Contains(strings.Split(c.location, "|"), got) {
				t.Errorf("Location %q, want %q", got, c.location)
			}
		})
	}
	t.Run("B27/redirect-keeps-the-connection", func(t *testing.T) {
		c := dial(t, addr)
		for range 3 {
			c.send("POST /x HTTP/1.1\r\nHost: scheme\r\nContent-Length: 5\r\n\r\nhello")
			wantStatus(t, c.response("POST"), 302)
		}
		c.send("HEAD /x HTTP/1.1\r\nHost: scheme\r\n\r\nGET /y HTTP/1.1\r\nHost: scheme\r\n\r\n")
		wantStatus(t, c.response("HEAD"), 302)
		if r := c.response("GET"); r.get("Location") != "https://scheme/y" {
			t.Errorf("Location %q", r.get("Location"))
		}
	})
	t.Run("B27/redirect-no-header-injection", func(t *testing.T) {
		r := exchange(t, addr, "GET /a%0d%0aX-Evil:%201 HTTP/1.1\r\nHost: scheme\r\n\r\n")
		if r.has("X-Evil") {
			t.Errorf("got %q", r.raw)
		}
	})
	t.Run("B27/redirect-response-headers", func(t *testing.T) {
		r := exchange(t, addr, "GET / HTTP/1.1\r\nHost: with-header\r\n\r\n")
		wantStatus(t, r, 302)
		if r.get("X-Set") != "1" {
			t.Errorf("got %q, want the rule's response header too", r.raw)
		}
	})
}

func TestHeaderModifier(t *testing.T) {
	be := newBackend(t, "be")
	rule := func(name, filters string) string {
		return route(name, "hostnames: ["+name+"]\nrules:\n- backendRefs: [{name: be, port: 80}]\n  filters:\n"+filters)
	}
	g := edge(t, be.manifest(),
		rule("request", `  - type: RequestHeaderModifier
    requestHeaderModifier:
      set: [{name: X-One, value: set}, {name: X-Unsent, value: set}]
      add: [{name: X-New, value: added}, {name: x-three, value: added}]
      remove: [X-Gone, x-absent]`),
		rule("same-name", `  - type: RequestHeaderModifier
    requestHeaderModifier:
      set: [{name: X-One, value: set}]
      add: [{name: X-One, value: added}]`),
		rule("response", `  - type: ResponseHeaderModifier
    responseHeaderModifier:
      set: [{name: X-One, value: set}]
      add: [{name: X-Two, value: added}, {name: Set-Cookie, value: "b=2"}]
      remove: [X-Gone, Server]`),
		rule("framing", `  - type: RequestHeaderModifier
    requestHeaderModifier:
      set: [{name: Host, value: evil.example}, {name: Content-Length, value: "1"}, {name: Transfer-Encoding, value: gzip}, {name: Connection, value: close}]`),
		route("backend-filter", `
hostnames: [backend-filter]
rules:
- backendRefs:
  - name: be
    port: 80
    filters:
    - {type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: X-Backend-Only, value: "1"}]}}
    - {type: ResponseHeaderModifier, responseHeaderModifier: {set: [{name: X-Backend-Answer, value: "1"}]}}`))

	t.Run("B26/set-add-remove", func(t *testing.T) {
		q := seen(t, exchange(t, g.addr, "GET / HTTP/1.1\r\nHost: request\r\nX-One: c1\r\nX-One: c2\r\nX-Three: c\r\nX-Gone: c\r\nX-GONE: d\r\n\r\n"))
		for name, want := range map[string]string{"X-One": "set", "X-Unsent": "set", "X-New": "added", "X-Three": "c, added"} {
			if got := q.get(name); got != want {
				t.Errorf("backend got %s: %q, want %q", name, got, want)
			}
		}
		if q.has("X-Gone") || len(q.values("X-One")) != 1 {
			t.Errorf("backend got %q", q.raw)
		}
	})
	t.Run("B26/set-and-add-of-one-name", func(t *testing.T) { // refused, or one after the other
		r := exchange(t, g.addr, "GET / HTTP/1.1\r\nHost: same-name\r\nX-One: c1\r\n\r\n")
		if r.status != 200 {
			g.wantCondition(t, "HTTPRoute", "default", "same-name", "Accepted", "False", "UnsupportedValue")
			return
		}
		if q := seen(t, r); q.get("X-One") != "set, added" {
			t.Errorf("backend got X-One: %q", q.get("X-One"))
		}
	})
	t.Run("B26/response-set-add-remove", func(t *testing.T) {
		be.set(answer("HTTP/1.1 200 OK\r\nX-One: b1\r\nX-One: b2\r\nX-Gone: 1\r\nServer: be\r\nSet-Cookie: a=1\r\nContent-Length: 2\r\n\r\nok"))
		defer be.set(be.echo)
		r := exchange(t, g.addr, "GET / HTTP/1.1\r\nHost: response\r\n\r\n")
		if r.get("X-One") != "set" || r.get("X-Two") != "added" || r.has("X-Gone") || r.has("Server") {
			t.Errorf("client got %q", r.raw)
		}
		if cs := r.values("Set-Cookie"); len(cs) != 2 || cs[0] != "a=1" || cs[1] != "b=2" {
			t.Errorf("cookies %q, want two fields", cs)
		}
	})
	t.Run("B26/framing-and-host-are-not-modified", func(t *testing.T) { // or the rule is refused
		r := exchange(t, g.addr, "POST / HTTP/1.1\r\nHost: framing\r\nContent-Length: 5\r\n\r\nhello")
		if r.status >= 400 {
			return
		}
		q := seen(t, r)
		if len(q.values("Host")) != 1 || q.get("Content-Length") != "5" || q.has("Transfer-Encoding") || string(q.body) != "hello" {
			t.Errorf("backend got %q", r.body)
		}
	})
	t.Run("B26/backend-filter", func(t *testing.T) {
		r := exchange(t, g.addr, "GET / HTTP/1.1\r\nHost: backend-filter\r\n\r\n")
		if q := seen(t, r); q.get("X-Backend-Only") != "1" || r.get("X-Backend-Answer") != "1" {
			t.Errorf("backend got %q, client %q", q.raw, r.raw)
		}
	})
}
