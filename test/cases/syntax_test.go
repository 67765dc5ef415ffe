package cases

import (
	"fmt"
	"strings"
	"testing"
)

func TestRequestSyntax(t *testing.T) {
	g, be := framed(t)
	for _, c := range []struct{ name, raw string }{
		{"B07/space-before-colon", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length : 5\r\n\r\nhello"},
		{"B07/tab-before-colon", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length\t: 5\r\n\r\nhello"},
		{"B07/space-before-colon-te", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n"},
		{"B07/space-in-name", "GET / HTTP/1.1\r\nHost: a\r\nX A: 1\r\n\r\n"},
		{"B07/leading-space-line", "GET / HTTP/1.1\r\n Host: a\r\n\r\n"},
		{"B07/leading-tab-line", "GET / HTTP/1.1\r\n\tX: 1\r\nHost: a\r\n\r\n"},
		{"B07/bare-cr-in-value", "GET / HTTP/1.1\r\nHost: a\r\nX-A: 1\rX-B: 2\r\n\r\n"},
		{"B07/bare-cr-before-crlf", "GET / HTTP/1.1\r\nHost: a\r\nX-A: 1\r\r\n\r\n"},
		{"B07/bare-cr-in-name", "GET / HTTP/1.1\r\nHost: a\r\nX\rA: 1\r\n\r\n"},
		{"B07/bare-cr-in-request-line", "GET /\rx HTTP/1.1\r\nHost: a\r\n\r\n"},
		{"B07/nul-in-value", "GET / HTTP/1.1\r\nHost: a\r\nX-A: a\x00b\r\n\r\n"},
		{"B07/nul-in-name", "GET / HTTP/1.1\r\nHost: a\r\nX\x00A: b\r\n\r\n"},
		{"B07/nul-in-target", "GET /a\x00b HTTP/1.1\r\nHost: a\r\n\r\n"},
		{"B07/control-in-target", "GET /a\x01b HTTP/1.1\r\nHost: a\r\n\r\n"},
		{"B07/delete-in-target", "GET /a\x7fb HTTP/1.1\r\nHost: a\r\n\r\n"},
		{"B07/empty-name", "GET / HTTP/1.1\r\nHost: a\r\n: 1\r\n\r\n"},
		{"B07/no-colon", "GET / HTTP/1.1\r\nHost: a\r\nX-A\r\n\r\n"},
		{"B07/name-not-a-token", "GET / HTTP/1.1\r\nHost: a\r\nX(A): 1\r\n\r\n"},
		{"B07/name-not-ascii", "GET / HTTP/1.1\r\nHost: a\r\nX\xe4: 1\r\n\r\n"},
		{"B07/space-in-target", "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n"},
		{"B07/no-version", "GET /\r\nHost: a\r\n\r\n"},
		{"B07/no-target", "GET HTTP/1.1\r\nHost: a\r\n\r\n"},
		{"B07/empty-method", " / HTTP/1.1\r\nHost: a\r\n\r\n"},
		{"B07/method-not-a-token", "G(T / HTTP/1.1\r\nHost: a\r\n\r\n"},
		{"B07/http-name-lower-case", "GET / http/1.1\r\nHost: a\r\n\r\n"},
		{"B07/version-two-digits", "GET / HTTP/1.10\r\nHost: a\r\n\r\n"},
		{"B07/version-comma", "GET / HTTP/1,1\r\nHost: a\r\n\r\n"},
		{"B07/trailing-blank-in-request-line", "GET / HTTP/1.1 \r\nHost: a\r\n\r\n"},
		{"B07/target-without-slash", "GET foo HTTP/1.1\r\nHost: a\r\n\r\n"},
		{"B07/asterisk-with-get", "GET * HTTP/1.1\r\nHost: a\r\n\r\n"},
		{"B07/garbage", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := be.mark()
			rejected(t, g.addr, c.raw, 400)
			be.wantNothingSince(t, m)
		})
	}

	t.Run("B07/obs-fold", func(t *testing.T) {
		m := be.mark()
		r := exchange(t, g.addr, "GET / HTTP/1.1\r\nHost: a\r\nX-A: 1\r\n 2\r\n\r\n")
		if r.status == 400 {
			be.wantNothingSince(t, m)
			return
		}
		if q := seen(t, r); strings.Join(strings.Fields(q.get("X-A")), " ") != "1 2" {
			t.Errorf("backend got X-A: %q, want the fold replaced by a blank", q.get("X-A"))
		}
	})
	t.Run("B07/bare-lf", func(t *testing.T) {
		m := be.mark()
		r := exchange(t, g.addr, "GET / HTTP/1.1\nHost: a\nX: 1\n\n")
		if r.status == 400 {
			be.wantNothingSince(t, m)
			return
		}
		if q := seen(t, r); q.get("X") != "1" { // the echo's parser refuses a bare LF
			t.Errorf("backend got %q", q.raw)
		}
	})
	for _, c := range []struct{ name, raw string }{
		{"B07/one-lf-between", "GET / HTTP/1.1\r\nHost: a\r\nX-A: 1\nX-B: 2\r\n\r\n"},
		{"B07/lf-cr", "GET / HTTP/1.1\n\rHost: a\r\n\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := be.mark()
			if r := exchange(t, g.addr, c.raw); r.status != 400 {
				seen(t, r)
				return
			}
			be.wantNothingSince(t, m)
		})
	}
	t.Run("B07/empty-line-first", func(t *testing.T) {
		if q := seen(t, exchange(t, g.addr, "\r\nGET /z HTTP/1.1\r\nHost: a\r\n\r\n")); q.target != "/z" {
			t.Errorf("backend got %q", q.raw)
		}
	})
	t.Run("B07/empty-line-between", func(t *testing.T) {
		c := dial(t, g.addr)
		c.send("POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n")
		seen(t, c.response("POST"))
		if q := seen(t, c.response("GET")); q.target != "/2" {
			t.Errorf("backend got %q", q.raw)
		}
	})
	t.Run("B07/version-2", func(t *testing.T) {
		m := be.mark()
		rejected(t, g.addr, "GET / HTTP/2.0\r\nHost: a\r\n\r\n", 400, 505)
		be.wantNothingSince(t, m)
	})
	t.Run("B07/version-1.2", func(t *testing.T) { // a higher minor is spoken to as 1.1 (RFC 9110, 2.5)
		r := exchange(t, g.addr, "GET / HTTP/1.2\r\nHost: a\r\n\r\n")
		wantStatus(t, r, 200, 400, 505)
		if r.minor != "1.1" {
			t.Errorf("answered with HTTP/%s", r.minor)
		}
	})
	t.Run("B07/values-kept", func(t *testing.T) {
		q := seen(t, exchange(t, g.addr, "GET / HTTP/1.1\r\nHost: a\r\nX-A:\t one  two\t \r\nX-B:\r\nX-C: \xe4\xff\r\nx-d: \"a\tb\"\r\n\r\n"))
		for name, want := range map[string]string{"X-A": "one  two", "X-B": "", "X-C": "\xe4\xff", "X-D": "\"a\tb\""} {
			if !q.has(name) || q.get(name) != want {
				t.Errorf("backend got %s: %q, want %q", name, q.get(name), want)
			}
		}
	})
	t.Run("B07/unknown-method", func(t *testing.T) {
		if q := seen(t, exchange(t, g.addr, "PURGE /c HTTP/1.1\r\nHost: a\r\n\r\n")); q.method != "PURGE" {
			t.Errorf("backend got %q", q.raw)
		}
	})
	t.Run("B07/connect", func(t *testing.T) {
		m := be.mark()
		r := exchange(t, g.addr, "CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n")
		if r.status < 400 {
			t.Errorf("status %d, want a refusal", r.status)
		}
		be.wantNothingSince(t, m)
	})
	t.Run("B07/options-asterisk", func(t *testing.T) {
		r := exchange(t, g.addr, "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n")
		wantStatus(t, r, 200, 204, 400, 404, 405, 501)
		if r.has("X-Backend") {
			if q := seen(t, r); q.target != "*" {
				t.Errorf("backend got %q", q.target)
			}
		}
	})
	t.Run("B07/one-byte-per-segment", func(t *testing.T) {
		c := dial(t, g.addr)
		for _, b := range []byte("GET /slow HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\n") {
			c.send(string(b))
		}
		if q := seen(t, c.response("GET")); q.target != "/slow" || q.get("X") != "y" {
			t.Errorf("backend got %q", q.raw)
		}
	})
}

func TestRequestLimits(t *testing.T) {
	be := newBackend(t, "be")
	g := start(t, options{args: []string{"--max-request-line", "1024", "--max-header-bytes", "8192", "--max-headers", "20"}},
		be.manifest(), simpleRoute("a", be))
	many := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "X-%d: v\r\n", i)
		}
		return b.String()
	}
	for _, c := range []struct {
		name, raw string
		statuses  []int
	}{
		{"limits/request-line", "GET /" + strings.Repeat("a", 2000) + " HTTP/1.1\r\nHost: a\r\n\r\n", []int{414}},
		{"limits/request-line-without-end", "GET /" + strings.Repeat("a", 20_000), []int{414}},
		{"limits/method", strings.Repeat("A", 5000) + " / HTTP/1.1\r\nHost: a\r\n\r\n", []int{400, 414, 501}},
		{"limits/header-bytes", "GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("a", 9000) + "\r\n\r\n", []int{431}},
		{"limits/header-bytes-in-many", "GET / HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("X: "+strings.Repeat("a", 990)+"\r\n", 10) + "\r\n", []int{431}},
		{"limits/header-without-end", "GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("a", 20_000), []int{431}},
		{"limits/header-name", "GET / HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("N", 20_000), []int{431, 400}},
		{"limits/header-count", "GET / HTTP/1.1\r\nHost: a\r\n" + many(40) + "\r\n", []int{431}},
		{"limits/empty-lines", strings.Repeat("\r\n", 50_000) + "GET / HTTP/1.1\r\nHost: a\r\n\r\n", []int{200, 400, 414, 431}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := be.mark()
			if c.statuses[0] == 200 {
				wantStatus(t, exchange(t, g.addr, c.raw), c.statuses...)
				return
			}
			rejected(t, g.addr, c.raw, c.statuses...)
			be.wantNothingSince(t, m)
		})
	}
	t.Run("limits/just-below", func(t *testing.T) {
		path := "/" + strings.Repeat("a", 1000)
		r := exchange(t, g.addr, "GET "+path+" HTTP/1.1\r\nHost: a\r\nY: "+strings.Repeat("b", 7000)+"\r\n"+many(15)+"\r\n")
		if q := seen(t, r); q.target != path || len(q.get("Y")) != 7000 {
			t.Errorf("backend got %q", clip([]byte(q.raw)))
		}
	})
}
