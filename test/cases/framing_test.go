package cases

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// framed starts a gateway with the hosts a and b on one backend.
func framed(t *testing.T) (*gateway, *backend) {
	be := newBackend(t, "be")
	g := edge(t, be.manifest(), route("all", `
hostnames: [a, b]
rules:
- backendRefs: [{name: be, port: 80}]`))
	return g, be
}

func TestRequestFraming(t *testing.T) {
	g, be := framed(t)

	smuggled := "1c\r\nGET /x HTTP/1.1\r\nHost: b\r\n\r\n\r\n0\r\n\r\n"
	for _, c := range []struct{ name, raw string }{
		{"B01/cl-0-then-te", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n" + smuggled},
		{"B01/te-then-cl-0", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n" + smuggled},
		{"B01/cl-50-then-te", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 50\r\nTransfer-Encoding: chunked\r\n\r\n" + smuggled},
		{"B01/te-then-cl-50", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 50\r\n\r\n" + smuggled},
		{"B01/get-with-both", "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + smuggled},
		{"B01/fields-between", "POST / HTTP/1.1\r\nContent-Length: 5\r\nHost: a\r\nX: y\r\ntransfer-encoding: CHUNKED\r\n\r\n" + smuggled},
		{"B01/http-1.0-te", "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + smuggled},
		{"B01/nominated-cl", "POST / HTTP/1.1\r\nHost: a\r\nConnection: content-length\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + smuggled},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := be.mark()
			rejected(t, g.addr, c.raw, 400)
			be.wantNothingSince(t, m)
		})
	}

	chunks := "5\r\nhello\r\n0\r\n\r\n"
	for _, c := range []struct {
		name, te string
		valid    bool // may pass as chunked when no Content-Length is there
		statuses []int
	}{
		{"B02/trailing-comma", "Transfer-Encoding: chunked,\r\n", true, []int{400, 501}},
		{"B02/chunked-then-gzip", "Transfer-Encoding: chunked, gzip\r\n", false, []int{400, 501}},
		{"B02/gzip-then-chunked", "Transfer-Encoding: gzip, chunked\r\n", false, []int{400, 501}},
		{"B02/identity", "Transfer-Encoding: identity\r\n", false, []int{400, 501}},
		{"B02/trailing-tab", "Transfer-Encoding: chunked\t\r\n", true, nil},
		{"B02/leading-blanks", "Transfer-Encoding: \t chunked \r\n", true, nil},
		{"B02/upper-case", "Transfer-Encoding: CHUNKED\r\n", true, nil},
		{"B02/xchunked", "Transfer-Encoding: xchunked\r\n", false, []int{400, 501}},
		{"B02/chunkedx", "Transfer-Encoding: chunkedx\r\n", false, []int{400, 501}},
		{"B02/quoted", "Transfer-Encoding: \"chunked\"\r\n", false, []int{400, 501}},
		{"B02/vertical-tab", "Transfer-Encoding: \vchunked\r\n", false, []int{400, 501}},
		{"B02/empty", "Transfer-Encoding:\r\n", false, []int{400, 501}},
		{"B02/parameter", "Transfer-Encoding: chunked;q=1\r\n", false, []int{400, 501}},
		{"B02/two-lines-chunked", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", false, []int{400, 501}},
		{"B02/two-lines-identity-last", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", false, []int{400, 501}},
		{"B02/two-lines-identity-first", "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n", false, []int{400, 501}},
		{"B02/two-lines-gzip-first", "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", false, []int{400, 501}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := be.mark()
			raw := "POST / HTTP/1.1\r\nHost: a\r\n" + c.te + "\r\n" + chunks
			if !c.valid {
				rejected(t, g.addr, raw, c.statuses...)
				be.wantNothingSince(t, m)
				return
			}
			r := exchange(t, g.addr, raw)
			if r.status != 200 {
				wantStatus(t, r, c.statuses...)
				be.wantNothingSince(t, m)
				return
			}
			q := seen(t, r)
			if string(q.body) != "hello" || q.method != "POST" || len(be.requestsSince(m)) != 1 {
				t.Errorf("backend got %q, want one POST of hello", be.since(m))
			}
		})
		t.Run(c.name+"-with-cl", func(t *testing.T) {
			m := be.mark()
			statuses := append([]int{400}, c.statuses...)
			rejected(t, g.addr, "POST / HTTP/1.1\r\nHost: a\r\n"+c.te+"Content-Length: 5\r\n\r\n"+chunks, statuses...)
			be.wantNothingSince(t, m)
		})
	}
}

func TestRequestLength(t *testing.T) {
	g, be := framed(t)
	for _, c := range []struct{ name, fields string }{
		{"B04/differing", "Content-Length: 5\r\nContent-Length: 6\r\n"},
		{"B04/differing-list", "Content-Length: 5, 6\r\n"},
		{"B04/inner-blank", "Content-Length: 1 2\r\n"},
		{"B04/plus", "Content-Length: +5\r\n"},
		{"B04/minus", "Content-Length: -5\r\n"},
		{"B04/minus-zero", "Content-Length: -0\r\n"},
		{"B04/hex", "Content-Length: 0x5\r\n"},
		{"B04/empty", "Content-Length:\r\n"},
		{"B04/empty-and-5", "Content-Length:\r\nContent-Length: 5\r\n"},
		{"B04/comma-only", "Content-Length: ,\r\n"},
		{"B04/trailing-comma", "Content-Length: 5,\r\n"},
		{"B04/decimal-point", "Content-Length: 5.0\r\n"},
		{"B04/exponent", "Content-Length: 1e1\r\n"},
		{"B04/underscore", "Content-Length: 1_0\r\n"},
		{"B04/quoted", "Content-Length: \"5\"\r\n"},
		{"B04/form-feed", "Content-Length: \f5\r\n"},
		{"B04/non-ascii-digit", "Content-Length: \xd9\xa5\r\n"},
		{"B04/2-to-the-64-plus-5", "Content-Length: 18446744073709551621\r\n"},
		{"B04/20-digits", "Content-Length: 99999999999999999999\r\n"},
		{"B04/2-to-the-63", "Content-Length: 9223372036854775808\r\n"},
		{"B04/40-digits", "Content-Length: " + strings.Repeat("9", 40) + "\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := be.mark()
			rejected(t, g.addr, "POST / HTTP/1.1\r\nHost: a\r\n"+c.fields+"\r\nhello", 400, 413)
			be.wantNothingSince(t, m)
		})
	}
	for _, c := range []struct{ name, fields string }{
		{"B04/identical", "Content-Length: 5\r\nContent-Length: 5\r\n"},
		{"B04/identical-list", "Content-Length: 5, 5\r\n"},
		{"B04/leading-zeros", "Content-Length: 0005\r\n"},
		{"B04/leading-zeros-and-5", "Content-Length: 05\r\nContent-Length: 5\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := be.mark()
			cl := dial(t, g.addr)
			cl.send("POST / HTTP/1.1\r\nHost: a\r\n" + c.fields + "\r\nhello")
			r := cl.response("POST")
			if r.status == 400 {
				cl.wantClosed()
				be.wantNothingSince(t, m)
				return
			}
			q := seen(t, r) // [head.bodyFraming] refuses a list
			if string(q.body) != "hello" || q.get("Content-Length") != "5" {
				t.Errorf("backend got %q, want one Content-Length: 5", q.raw)
			}
		})
	}
	t.Run("B04/zero", func(t *testing.T) {
		q := seen(t, exchange(t, g.addr, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"))
		if q.get("Content-Length") != "0" {
			t.Errorf("backend got %q, want Content-Length: 0", q.raw)
		}
	})
	t.Run("B04/post-without-length", func(t *testing.T) {
		c := dial(t, g.addr)
		c.send("POST /one HTTP/1.1\r\nHost: a\r\n\r\nGET /two HTTP/1.1\r\nHost: a\r\n\r\n")
		if q := seen(t, c.response("POST")); q.target != "/one" || len(q.body) != 0 {
			t.Errorf("backend got %q", q.raw)
		}
		if q := seen(t, c.response("GET")); q.target != "/two" {
			t.Errorf("backend got %q", q.raw)
		}
	})
	t.Run("B04/get-with-body", func(t *testing.T) {
		q := seen(t, exchange(t, g.addr, "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"))
		if string(q.body) != "hello" {
			t.Errorf("backend got the body %q, want hello", q.body)
		}
	})
	t.Run("B04/short-body", func(t *testing.T) {
		m := be.mark()
		c := dial(t, g.addr)
		c.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 50\r\n\r\nhello")
		c.reset()
		be.wantNoWholeRequestSince(t, m)
		eventually(t, patience, func() error { return be.idleAfter(m) })
	})
}

func TestRequestChunks(t *testing.T) {
	g, be := framed(t)
	post := "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
	for _, c := range []struct {
		name, body string
	}{
		{"B05/bare-lf-after-size", "5\nhello\r\n0\r\n\r\n"},
		{"B05/bare-lf-in-extension", "5;a\nb\r\nhello\r\n0\r\n\r\n"},
		{"B05/bare-cr-in-extension", "5;a\rb\r\nhello\r\n0\r\n\r\n"},
		{"B05/bare-cr-after-size", "5\rhello\r\n0\r\n\r\n"},
		{"B05/nul-in-extension", "5;a\x00b\r\nhello\r\n0\r\n\r\n"},
		{"B05/chunk-size-overflow", "FFFFFFFFFFFFFFFF1\r\nhello\r\n0\r\n\r\n"},
		{"B05/chunk-size-2-to-the-64-plus-5", "10000000000000005\r\nhello\r\n0\r\n\r\n"},
		{"B05/chunk-size-2-to-the-63", "8000000000000000\r\nhello\r\n0\r\n\r\n"},
		{"B05/chunk-size-all-f", "FFFFFFFFFFFFFFFF\r\nhello\r\n0\r\n\r\n"},
		{"B05/negative", "-1\r\nhello\r\n0\r\n\r\n"},
		{"B05/plus", "+5\r\nhello\r\n0\r\n\r\n"},
		{"B05/hex-prefix", "0x5\r\nhello\r\n0\r\n\r\n"},
		{"B05/underscore", "0_5\r\nhello\r\n0\r\n\r\n"},
		{"B05/leading-blank", " 5\r\nhello\r\n0\r\n\r\n"},
		{"B05/empty-size", "\r\nhello\r\n0\r\n\r\n"},
		{"B05/only-extension", ";a=b\r\nhello\r\n0\r\n\r\n"},
		{"B05/not-hex", "g\r\nhello\r\n0\r\n\r\n"},
		{"B05/no-crlf-after-data", "5\r\nhelloXX0\r\n\r\n"},
		{"B05/lf-after-data", "5\r\nhello\n0\r\n\r\n"},
		{"B05/data-longer-than-size", "4\r\nhello\r\n0\r\n\r\n"},
		{"B05/bare-lf-after-last-chunk", "5\r\nhello\r\n0\n\r\n"},
		{"B05/bare-lf-ends-trailers", "5\r\nhello\r\n0\r\n\n"},
		{"B05/bare-lf-in-trailer", "5\r\nhello\r\n0\r\nX-T: a\nX-U: b\r\n\r\n"},
		{"B05/trailer-without-colon", "5\r\nhello\r\n0\r\nGET /x HTTP/1.1\r\n\r\n"},
		{"B05/trailer-space-before-colon", "5\r\nhello\r\n0\r\nX-T : a\r\n\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := be.mark()
			rejected(t, g.addr, post+c.body, 400)
			be.wantNoWholeRequestSince(t, m)
		})
	}
	for _, c := range []struct {
		name, body string
	}{
		{"B05/extension-64-kib", "5;" + strings.Repeat("a", 64<<10) + "\r\nhello\r\n0\r\n\r\n"},
		{"B05/extension-value-64-kib", "5;x=\"" + strings.Repeat("a", 64<<10) + "\"\r\nhello\r\n0\r\n\r\n"},
		{"B05/size-of-64-k-zeros", strings.Repeat("0", 64<<10) + "5\r\nhello\r\n0\r\n\r\n"},
		{"B05/trailers-1-mib", "5\r\nhello\r\n0\r\n" + strings.Repeat("X-T: "+strings.Repeat("a", 1000)+"\r\n", 1024) + "\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := be.mark()
			cl := dial(t, g.addr)
			cl.trySend(post + c.body)
			r := cl.response("POST")
			if r.status < 400 || r.status > 499 {
				t.Errorf("status %d, want 4xx", r.status)
			}
			cl.wantClosed()
			be.wantNoWholeRequestSince(t, m)
		})
	}
	for _, c := range []struct {
		name, body string
		lenient    bool // 400 is right as well
	}{
		{"B05/plain", "5\r\nhello\r\n0\r\n\r\n", false},
		{"B05/upper-and-lower-hex", "1\r\nh\r\n0004\r\nello\r\n000\r\n\r\n", false},
		{"B05/extension", "5;x=y\r\nhello\r\n0;z\r\n\r\n", false},
		{"B05/quoted-extension", "5;x=\"a;b\"\r\nhello\r\n0\r\n\r\n", false},
		{"B05/blank-before-extension", "5 ;x=y\r\nhello\r\n0\r\n\r\n", true},
		{"B05/blank-after-size", "5 \r\nhello\r\n0\r\n\r\n", true},
		{"B05/forbidden-trailers", "5\r\nhello\r\n0\r\nContent-Length: 9\r\nTransfer-Encoding: gzip\r\nHost: evil\r\n\r\n", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := be.mark()
			cl := dial(t, g.addr)
			cl.send(post + c.body)
			r := cl.response("POST")
			if c.lenient && r.status == 400 {
				be.wantNoWholeRequestSince(t, m)
				return
			}
			q := seen(t, r)
			body, _, _ := strings.Cut(string(q.body), "\r\n")
			if body != "hello" || strings.Contains(string(r.body), "evil") {
				t.Errorf("backend got %q, want the body hello", r.body)
			}
			if q := seen(t, cl.get("a", "/next")); q.target != "/next" {
				t.Errorf("next request arrived as %q", q.target)
			}
		})
	}
	t.Run("B05/one-byte-per-segment", func(t *testing.T) {
		c := dial(t, g.addr)
		for _, b := range []byte(post + "5;x=y\r\nhello\r\n3\r\n, w\r\n0\r\nX-T: v\r\n\r\n") {
			c.send(string(b))
			time.Sleep(200 * time.Microsecond)
		}
		if q := seen(t, c.response("POST")); !strings.HasPrefix(string(q.body), "hello, w") {
			t.Errorf("backend got the body %q, want \"hello, w\"", q.body)
		}
	})
	for _, parts := range [][]string{
		{"5", "\r", "\n", "hello", "\r", "\n", "0", "\r\n\r", "\n"},
		{"5\r\nhel", "lo\r\n0\r", "\n", "\r\n"},
		{"5;a=", "b\r\nhello\r\n", "0;x", "\r\nX-T: ", "v\r\n\r\n"},
	} {
		t.Run(fmt.Sprintf("B05/size-line-in-parts-%q", parts[0]), func(t *testing.T) {
			c := dial(t, g.addr)
			c.send(post)
			for _, p := range parts {
				time.Sleep(5 * time.Millisecond)
				c.send(p)
			}
			if q := seen(t, c.response("POST")); !strings.HasPrefix(string(q.body), "hello") {
				t.Errorf("backend got the body %q, want hello", q.body)
			}
		})
	}
	t.Run("B05/cut-off", func(t *testing.T) {
		m := be.mark()
		c := dial(t, g.addr)
		c.send(post + "5\r\nhello\r\n")
		c.reset()
		be.wantNoWholeRequestSince(t, m)
		eventually(t, patience, func() error { return be.idleAfter(m) })
	})
	t.Run("B05/half-closed-before-the-end", func(t *testing.T) {
		m := be.mark()
		c := dial(t, g.addr)
		c.send(post + "5\r\nhello\r\n")
		c.halfClose()
		rest, err := readResponse(c.br, "POST")
		if err == nil && rest.status != 400 {
			t.Errorf("status %d, want 400 or the connection's end", rest.status)
		}
		be.wantNoWholeRequestSince(t, m)
	})
}
