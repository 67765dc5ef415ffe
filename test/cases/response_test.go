package cases

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestResponseFraming(t *testing.T) {
	be := newBackend(t, "be")
	g := edge(t, be.manifest(), simpleRoute("a", be))

	bad := func(fields, body string) string {
		return "HTTP/1.1 200 OK\r\n" + fields + "\r\n" + body
	}
	for _, c := range []struct{ name, answer string }{
		{"B04/answer-differing", bad("Content-Length: 5\r\nContent-Length: 6\r\n", "hello!")},
		{"B04/answer-differing-list", bad("Content-Length: 5, 6\r\n", "hello!")},
		{"B04/answer-inner-blank", bad("Content-Length: 1 2\r\n", "hello!")},
		{"B04/answer-plus", bad("Content-Length: +5\r\n", "hello")},
		{"B04/answer-hex", bad("Content-Length: 0x5\r\n", "hello")},
		{"B04/answer-empty", bad("Content-Length:\r\n", "hello")},
		{"B04/answer-20-digits", bad("Content-Length: 99999999999999999999\r\n", "hello")},
		{"B04/answer-wraps-to-5", bad("Content-Length: 18446744073709551621\r\n", "hello")},
		{"B04/answer-minus", bad("Content-Length: -5\r\n", "hello")},
		{"B02/answer-xchunked", bad("Transfer-Encoding: xchunked\r\n", "5\r\nhello\r\n0\r\n\r\n")},
		{"B02/answer-chunked-then-gzip", bad("Transfer-Encoding: chunked, gzip\r\n", "5\r\nhello\r\n0\r\n\r\n")},
		{"B02/answer-two-lines", bad("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n")},
		{"B07/answer-space-in-name", bad("X A: 1\r\nContent-Length: 5\r\n", "hello")},
		{"B07/answer-nul", bad("X-A: a\x00b\r\nContent-Length: 5\r\n", "hello")},
		{"B07/answer-bare-cr", bad("X-A: a\rX-B: b\r\nContent-Length: 5\r\n", "hello")},
		{"B07/answer-no-colon", bad("X-A\r\nContent-Length: 5\r\n", "hello")},
		{"B07/answer-status-letters", "HTTP/1.1 2x0 OK\r\nContent-Length: 5\r\n\r\nhello"},
		{"B07/answer-status-two-digits", "HTTP/1.1 20 OK\r\nContent-Length: 5\r\n\r\nhello"},
		{"B07/answer-status-four-digits", "HTTP/1.1 2000 OK\r\nContent-Length: 5\r\n\r\nhello"},
		{"B07/answer-status-0", "HTTP/1.1 000 OK\r\nContent-Length: 5\r\n\r\nhello"},
		{"B07/answer-http-2", "HTTP/2.0 200 OK\r\nContent-Length: 5\r\n\r\nhello"},
		{"B07/answer-garbage", "SSH-2.0-OpenSSH_9.2\r\n\r\n"},
		{"B07/answer-tls-alert", "\x15\x03\x01\x00\x02\x02\x46\r\n\r\n"},
		{"B07/answer-endless-head", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("a", 1<<20)},
		{"B07/answer-endless-fields", "HTTP/1.1 200 OK\r\n" + strings.Repeat("X: a\r\n", 100_000)},
		{"B07/answer-endless-interim", strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 50_000)},
		{"B07/answer-switching-unasked", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dropped := make(chan bool, 10)
			be.set(func(u *upstreamConn, r *request) {
				u.body(r)
				u.write(c.answer)
				dropped <- u.awaitEnd(patience)
				u.Close()
			})
			defer be.set(be.echo)
			cl := dial(t, g.addr)
			wantStatus(t, cl.get("a", "/"), 502)
			select {
			case closed := <-dropped:
				if !closed {
					t.Error("the upstream connection was kept")
				}
			case <-time.After(patience):
				t.Error("the upstream connection was kept")
			}
			be.set(be.echo)
			if q := seen(t, cl.get("a", "/next")); q.target != "/next" {
				t.Errorf("backend got %q", q.raw)
			}
		})
	}
	for _, c := range []struct{ name, answer, body string }{
		{"B04/answer-identical", bad("Content-Length: 5\r\nContent-Length: 5\r\n", "hello"), "hello"},
		{"B04/answer-identical-list", bad("Content-Length: 5, 5\r\n", "hello"), "hello"},
		{"B07/answer-space-before-colon", bad("Content-Length : 5\r\nX-A : 1\r\n", "hello"), "hello"},
		{"B07/answer-obs-fold", bad("X-A: 1\r\n 2\r\nContent-Length: 5\r\n", "hello"), "hello"},
		{"B07/answer-bare-lf", "HTTP/1.1 200 OK\nContent-Length: 5\n\nhello", "hello"},
		{"B05/answer-bare-lf-chunk", bad("Transfer-Encoding: chunked\r\n", "5\nhello\r\n0\r\n\r\n"), ""},
	} {
		t.Run(c.name, func(t *testing.T) { // may be repaired or refused, but not passed on
			be.set(answer(c.answer))
			defer be.set(be.echo)
			cl := dial(t, g.addr)
			cl.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			r := cl.partial("GET")
			if r.status == 200 && r.err == nil && string(r.body) != c.body {
				t.Errorf("got the body %q, want %q", r.body, c.body)
			}
			wantStatus(t, r, 200, 502)
		})
	}
	for _, c := range []struct{ name, answer, body string }{
		{"B07/answer-no-reason", "HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello", "hello"},
		{"B07/answer-empty-reason", "HTTP/1.1 200 \r\nContent-Length: 5\r\n\r\nhello", "hello"},
		{"B07/answer-odd-status", "HTTP/1.1 299 Odd\r\nContent-Length: 5\r\n\r\nhello", "hello"},
		{"B02/answer-te-and-cl", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "hello"},
		{"B05/answer-extension", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\n\r\n", "hello"},
		{"B05/answer-trailer", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n5\r\nhello\r\n0\r\nX-T: v\r\n\r\n", "hello"},
	} {
		t.Run(c.name, func(t *testing.T) {
			be.set(answer(c.answer))
			defer be.set(be.echo)
			cl := dial(t, g.addr)
			r := cl.get("a", "/")
			if c.name == "B02/answer-te-and-cl" && r.status == 502 {
				return
			}
			if r.status/100 != 2 || string(r.body) != c.body {
				t.Errorf("got %q%q, want the body %q", r.raw, r.body, c.body)
			}
			be.set(be.echo)
			seen(t, cl.get("a", "/next"))
		})
	}
}

// A body that the backend cuts off must not look whole to the client.
func TestTruncatedAnswer(t *testing.T) {
	be := newBackend(t, "be")
	g := edge(t, be.manifest(), simpleRoute("a", be))
	for _, c := range []struct{ name, answer string }{
		{"B36/cut-length", "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello"},
		{"B36/cut-chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nhello"},
		{"B36/cut-between-chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"},
		{"B36/cut-before-final-line", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n"},
		{"B36/bad-chunk-midway", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n"},
	} {
		for _, end := range []string{"fin", "rst"} {
			t.Run(c.name+"-"+end, func(t *testing.T) {
				be.set(func(u *upstreamConn, r *request) {
					u.body(r)
					u.write(c.answer)
					time.Sleep(30 * time.Millisecond) // the gateway reads it first
					if end == "rst" {
						u.reset()
					}
					u.Close()
				})
				cl := dial(t, g.addr)
				cl.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
				r, err := readResponse(cl.br, "GET")
				if err == nil && r.err == nil && r.status != 502 {
					t.Errorf("got %q%q, which looks whole", r.raw, r.body)
				}
			})
		}
	}
}

func TestBodylessAnswers(t *testing.T) {
	be := newBackend(t, "be")
	g := edge(t, be.manifest(), simpleRoute("a", be))
	for _, c := range []struct {
		name, method, answer string
		status               int
		length               string // Content-Length that the client must get
		interim              int
	}{
		{"B15/head-with-length", "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n", 200, "1234", 0},
		{"B15/head-chunked", "HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 200, "", 0},
		{"B15/head-without-length", "HEAD", "HTTP/1.1 200 OK\r\nX-A: b\r\n\r\n", 200, "", 0},
		{"B15/head-404", "HEAD", "HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\n", 404, "9", 0},
		{"B15/304-with-length", "GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 55\r\nETag: \"x\"\r\n\r\n", 304, "55", 0},
		{"B15/304-chunked", "GET", "HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\nETag: \"x\"\r\n\r\n", 304, "", 0},
		{"B15/304-plain", "GET", "HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n", 304, "", 0},
		{"B15/204-with-length", "GET", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", 204, "", 0},
		{"B15/204-chunked", "GET", "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n", 204, "", 0},
		{"B15/204-plain", "DELETE", "HTTP/1.1 204 No Content\r\n\r\n", 204, "", 0},
		{"B15/205-empty", "GET", "HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n", 205, "0", 0},
		{"B15/103-then-200", "GET", "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, "2", 1},
		{"B15/two-103-then-200", "GET", "HTTP/1.1 103 Early Hints\r\nLink: </1>\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </2>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, "2", 2},
		{"B15/102-then-204", "GET", "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", 204, "", 1},
		{"B15/103-then-head", "HEAD", "HTTP/1.1 103 Early Hints\r\nLink: </1>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", 200, "7", 1},
		{"B15/200-length-0", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200, "0", 0},
		{"B15/200-chunked-empty", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 200, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			be.set(byPath(map[string]handler{"/case": answer(c.answer), "/next": be.echo}))
			defer be.set(be.echo)
			cl := dial(t, g.addr)
			cl.send(c.method + " /case HTTP/1.1\r\nHost: a\r\n\r\nGET /next HTTP/1.1\r\nHost: a\r\n\r\n")
			r := cl.response(c.method) // refuses a length or a coding on 1xx and 204
			wantStatus(t, r, c.status)
			if r.get("Content-Length") != c.length {
				t.Errorf("Content-Length %q, want %q", r.get("Content-Length"), c.length)
			}
			if len(r.interim) != c.interim {
				t.Errorf("%d interim answers, want %d", len(r.interim), c.interim)
			}
			for i, h := range r.interim {
				if h.status == 103 && !h.has("Link") {
					t.Errorf("interim answer %d lost its Link: %q", i, h.raw)
				}
			}
			if q := seen(t, cl.response("GET")); q.target != "/next" {
				t.Errorf("the next answer is for %q", q.target)
			}
		})
	}
	t.Run("B15/early-hints-at-once", func(t *testing.T) {
		got := make(chan struct{})
		be.set(func(u *upstreamConn, r *request) {
			u.write("HTTP/1.1 103 Early Hints\r\nLink: </1>\r\n\r\n")
			select {
			case <-got:
			case <-time.After(patience):
			}
			u.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		})
		defer be.set(be.echo)
		c := dial(t, g.addr)
		c.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		if h := c.head("GET"); h.status != 103 {
			t.Errorf("status %d, want 103 before the final answer", h.status)
		}
		close(got)
		wantStatus(t, c.response("GET"), 200)
	})
	// A backend that sends what nobody asked for must not shift later answers.
	for _, c := range []struct{ name, method, answer string }{
		{"B15/body-to-head", "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"},
		{"B15/body-to-204", "GET", "HTTP/1.1 204 No Content\r\n\r\nhello"},
		{"B15/body-to-304", "GET", "HTTP/1.1 304 Not Modified\r\n\r\nhello"},
		{"B15/more-than-length", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"},
		{"B15/two-answers", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			be.set(byPath(map[string]handler{"/case": answer(c.answer), "/next": be.echo}))
			defer be.set(be.echo)
			cl := dial(t, g.addr)
			cl.send(c.method + " /case HTTP/1.1\r\nHost: a\r\n\r\n")
			cl.response(c.method)
			for i := range 5 {
				if q := seen(t, cl.get("a", fmt.Sprintf("/next?%d", i))); q.target != fmt.Sprintf("/next?%d", i) {
					t.Errorf("the next answer is for %q", q.target)
				}
			}
		})
	}
}
