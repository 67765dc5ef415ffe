package cases

import (
	"net/netip"
	"strings"
	"testing"
)

func TestConnectionNominated(t *testing.T) {
	be := newBackend(t, "be")
	g := edge(t, be.manifest(), route("a", `
hostnames: [a]
rules:
- filters:
  - type: RequestHeaderModifier
    requestHeaderModifier:
      set: [{name: X-Set-By-Filter, value: filter}]
      add: [{name: X-Added-By-Filter, value: filter}]
  - type: ResponseHeaderModifier
    responseHeaderModifier:
      set: [{name: X-Answer-Set, value: filter}]
  backendRefs: [{name: be, port: 80}]`))

	t.Run("B11/nominated", func(t *testing.T) {
		q := seen(t, exchange(t, g.addr, strings.Join([]string{
			"POST / HTTP/1.1", "Host: a",
			"Connection: close, X-Forwarded-For, X-Forwarded-Host, X-Forwarded-Proto, Authorization, Host, Content-Length, X-Set-By-Filter, X-Added-By-Filter, X-Mine",
			"Connection: X-Second-Line", "X-Second-Line: 1",
			"X-Forwarded-For: 6.6.6.6", "X-Set-By-Filter: client", "Authorization: Basic Zm9v", "X-Mine: 1",
			"Keep-Alive: timeout=5", "Proxy-Connection: keep-alive", "TE: gzip", "X-Kept: 1",
			"Content-Length: 5", "", "hello"}, "\r\n")))
		for name, want := range map[string]string{
			"Host": "a", "Content-Length": "5", "X-Forwarded-For": "127.0.0.1", "X-Forwarded-Host": "a",
			"X-Forwarded-Proto": "http", "X-Set-By-Filter": "filter", "X-Added-By-Filter": "filter", "X-Kept": "1",
		} {
			if q.get(name) != want {
				t.Errorf("backend got %s: %q, want %q", name, q.get(name), want)
			}
		}
		for _, name := range []string{"X-Mine", "X-Second-Line", "Authorization", "Keep-Alive", "Proxy-Connection", "TE"} {
			if q.has(name) {
				t.Errorf("backend got %s: %q, want it removed", name, q.get(name))
			}
		}
		if strings.Contains(strings.ToLower(q.get("Connection")), "x-") || strings.Contains(q.get("Connection"), "close") {
			t.Errorf("backend got Connection: %q, the client's", q.get("Connection"))
		}
		if string(q.body) != "hello" {
			t.Errorf("backend got the body %q", q.body)
		}
	})
	t.Run("B11/te-trailers", func(t *testing.T) {
		q := seen(t, exchange(t, g.addr, "GET / HTTP/1.1\r\nHost: a\r\nTE: gzip, trailers\r\nConnection: TE\r\n\r\n"))
		if te := q.get("TE"); te != "" && te != "trailers" {
			t.Errorf("backend got TE: %q", te)
		}
	})
	t.Run("B11/upgrade-without-nomination", func(t *testing.T) { // not an upgrade (RFC 9110, 7.8)
		q := seen(t, exchange(t, g.addr, "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n"))
		if q.has("Upgrade") {
			t.Errorf("backend got Upgrade: %q", q.get("Upgrade"))
		}
	})
	t.Run("B11/h2c-upgrade-not-forwarded", func(t *testing.T) {
		q := seen(t, exchange(t, g.addr, "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n"))
		if q.has("HTTP2-Settings") || strings.EqualFold(q.get("Upgrade"), "h2c") {
			t.Errorf("backend got %q", q.raw)
		}
	})
	t.Run("B11/odd-lists", func(t *testing.T) {
		q := seen(t, exchange(t, g.addr, "GET / HTTP/1.1\r\nHost: a\r\nConnection: ,, x-mine ,\r\nConnection:\r\nX-Mine: 1\r\nX-Kept: 1\r\n\r\n"))
		if q.has("X-Mine") || q.get("X-Kept") != "1" {
			t.Errorf("backend got %q", q.raw)
		}
	})
	t.Run("B11/answer", func(t *testing.T) {
		be.set(answer("HTTP/1.1 200 OK\r\nConnection: keep-alive, X-Hop, X-Answer-Set, Content-Length\r\nKeep-Alive: timeout=5\r\nX-Hop: 1\r\nX-Kept: 1\r\nProxy-Connection: x\r\nContent-Length: 2\r\n\r\nok"))
		defer be.set(be.echo)
		c := dial(t, g.addr)
		r := c.get("a", "/")
		for _, name := range []string{"X-Hop", "Keep-Alive", "Proxy-Connection"} {
			if r.has(name) {
				t.Errorf("client got %s: %q, want it removed", name, r.get(name))
			}
		}
		if r.get("X-Kept") != "1" || r.get("X-Answer-Set") != "filter" || string(r.body) != "ok" {
			t.Errorf("client got %q%q", r.raw, r.body)
		}
	})
	t.Run("B11/backend-close-stays-there", func(t *testing.T) { // the backend's close is not the client's
		be.set(answerClose("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"))
		defer be.set(be.echo)
		c := dial(t, g.addr)
		for range 3 {
			if r := c.get("a", "/"); strings.Contains(strings.ToLower(r.get("Connection")), "close") {
				t.Fatalf("client got %q", r.raw)
			}
		}
	})
	t.Run("B11/client-close", func(t *testing.T) {
		c := dial(t, g.addr)
		m := be.mark()
		c.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: CLOSE\r\n\r\nGET /x HTTP/1.1\r\nHost: a\r\n\r\n")
		if r := c.response("GET"); !strings.Contains(strings.ToLower(r.get("Connection")), "close") {
			t.Errorf("answer says Connection: %q, want close", r.get("Connection"))
		}
		c.wantClosed()
		if n := len(be.requestsSince(m)); n != 1 {
			t.Errorf("backend got %d requests, want the first only", n)
		}
	})
}

func TestForwardedFields(t *testing.T) {
	be := newBackend(t, "be")
	hostile := strings.Join([]string{
		"GET /p HTTP/1.1", "Host: a",
		"X-Forwarded-For: 6.6.6.6", "X-Forwarded-For: 7.7.7.7", "x-forwarded-proto: https", "X-Forwarded-Host: evil",
		"X-Forwarded-Port: 6666", "X_Forwarded_Proto: https", "X_Forwarded_For: 6.6.6.6", "X-Forwarded_For: 6.6.6.6",
		"x_forwarded-host: evil", "X-Forwarded-Prefix: /admin", "X-Forwarded-Server: evil", "X-Forwarded: for=6.6.6.6",
		"Forwarded: for=6.6.6.6;proto=https;host=evil", "X-Real-Ip: 6.6.6.6", "X_Real_Ip: 6.6.6.6", "", ""}, "\r\n")

	t.Run("untrusted", func(t *testing.T) {
		g := edge(t, be.manifest(), simpleRoute("a", be))
		t.Run("B12/spoofed", func(t *testing.T) {
			q := seen(t, exchange(t, g.addr, hostile))
			for _, bad := range []string{"6.6.6.6", "7.7.7.7", "evil", "/admin", "6666", "https"} {
				if strings.Contains(q.raw, bad) {
					t.Errorf("backend got %q of an untrusted client: %q", bad, q.raw)
				}
			}
			wantForwarded(t, q, "127.0.0.1", "http", "a")
		})
		t.Run("B12/none", func(t *testing.T) {
			q := seen(t, exchange(t, g.addr, "GET / HTTP/1.1\r\nHost: a:8080\r\n\r\n"))
			wantForwarded(t, q, "127.0.0.1", "http", "a:8080")
			port := netip.MustParseAddrPort(g.addr).Port()
			if got := q.get("X-Forwarded-Port"); got != "" && got != "8080" && got != netip.AddrPortFrom(netip.IPv4Unspecified(), port).String()[len("0.0.0.0:"):] {
				t.Errorf("backend got X-Forwarded-Port: %q, want %d", got, port)
			}
		})
		t.Run("B12/request-id", func(t *testing.T) {
			ids := make(map[string]bool)
			c := dial(t, g.addr)
			for range 20 {
				q := seen(t, c.get("a", "/"))
				id := q.get("X-Request-Id")
				if len(id) < 16 || len(q.values("X-Request-Id")) != 1 || ids[id] {
					t.Fatalf("request ID %q is short, double or not new", q.values("X-Request-Id"))
				}
				ids[id] = true
			}
		})
		t.Run("B12/request-id-hostile", func(t *testing.T) {
			q := seen(t, exchange(t, g.addr, "GET / HTTP/1.1\r\nHost: a\r\nX-Request-Id: "+strings.Repeat("x", 5000)+"\r\nX-Request-Id: two\r\n\r\n"))
			if ids := q.values("X-Request-Id"); len(ids) != 1 || len(ids[0]) > 256 {
				t.Errorf("backend got %d request IDs, the first of %d bytes", len(ids), len(ids[0]))
			}
		})
	})
	t.Run("trusted", func(t *testing.T) {
		g := start(t, options{args: []string{"--trusted-cidr", "127.0.0.0/8", "--trusted-cidr", "10.0.0.0/8"}}, be.manifest(), simpleRoute("a", be))
		t.Run("B12/appended", func(t *testing.T) {
			q := seen(t, exchange(t, g.addr, "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 6.6.6.6\r\nX-Forwarded-For: 10.1.1.1\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: outer.example\r\n\r\n"))
			wantForwarded(t, q, "6.6.6.6, 10.1.1.1, 127.0.0.1", "https", "outer.example")
		})
		t.Run("B12/aliases-dropped", func(t *testing.T) {
			q := seen(t, exchange(t, g.addr, "GET / HTTP/1.1\r\nHost: a\r\nX_Forwarded_For: 6.6.6.6\r\nX_Forwarded_Proto: https\r\n\r\n"))
			if strings.Contains(q.raw, "6.6.6.6") {
				t.Errorf("backend got an alias: %q", q.raw)
			}
			wantForwarded(t, q, "127.0.0.1", "http", "a")
		})
		t.Run("B12/nothing-sent", func(t *testing.T) {
			wantForwarded(t, seen(t, exchange(t, g.addr, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")), "127.0.0.1", "http", "a")
		})
		t.Run("B12/request-id-kept", func(t *testing.T) {
			q := seen(t, exchange(t, g.addr, "GET / HTTP/1.1\r\nHost: a\r\nX-Request-Id: 0123456789abcdef0123\r\n\r\n"))
			if got := q.get("X-Request-Id"); got != "0123456789abcdef0123" {
				t.Errorf("backend got X-Request-Id: %q, want the trusted proxy's", got)
			}
		})
	})
	t.Run("other-cidr", func(t *testing.T) {
		g := start(t, options{args: []string{"--trusted-cidr", "192.0.2.0/24"}}, be.manifest(), simpleRoute("a", be))
		t.Run("B12/peer-outside", func(t *testing.T) {
			wantForwarded(t, seen(t, exchange(t, g.addr, hostile)), "127.0.0.1", "http", "a")
		})
	})
}

func wantForwarded(t *testing.T, q *request, addr, proto, host string) {
	t.Helper()
	for name, want := range map[string]string{"X-Forwarded-For": addr, "X-Forwarded-Proto": proto, "X-Forwarded-Host": host} {
		if got := q.get(name); got != want {
			t.Errorf("backend got %s: %q, want %q", name, got, want)
		}
	}
}
