package cases

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

// reject413 answers after limit bytes of the body and closes at once, as many
// application servers do; what is still unread then makes its kernel send a RST.
func reject413(limit int64) handler {
	return func(u *upstreamConn, r *request) {
		io.CopyN(io.Discard, u.br, limit)
		u.write("HTTP/1.1 413 Content Too Large\r\nContent-Length: 17\r\nConnection: close\r\n\r\nway too much data")
		u.Close()
	}
}

func TestEarlyAnswer(t *testing.T) {
	be := newBackend(t, "be")
	g := edge(t, be.manifest(), simpleRoute("a", be))
	const size = 32 << 20
	block := strings.Repeat("x", 64<<10)
	upload := func(c *client, chunked bool) error {
		fields, before, after := fmt.Sprintf("Content-Length: %d", size), "", ""
		if chunked {
			fields, before, after = "Transfer-Encoding: chunked", "10000\r\n", "\r\n"
		}
		if err := c.trySend("POST /up HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n\r\n"); err != nil {
			return err
		}
		for range size / len(block) {
			if err := c.trySend(before + block + after); err != nil {
				return err
			}
		}
		if chunked {
			return c.trySend("0\r\n\r\n")
		}
		return nil
	}
	for _, chunked := range []bool{false, true} {
		name := map[bool]string{false: "length", true: "chunked"}[chunked]
		t.Run("B14/read-while-sending-"+name, func(t *testing.T) {
			be.set(byPath(map[string]handler{"/up": reject413(64 << 10), "/next": be.echo}))
			c := dial(t, g.addr)
			sent := make(chan error, 1)
			go func() { sent <- upload(c, chunked) }()
			r := c.response("POST")
			wantStatus(t, r, 413)
			if string(r.body) != "way too much data" {
				t.Errorf("got the body %q", r.body)
			}
			err := <-sent
			if strings.EqualFold(r.get("Connection"), "close") {
				c.wantClosed()
				return
			}
			if err != nil {
				t.Fatalf("the connection broke without Connection: close: %v", err)
			}
			if q := seen(t, c.get("a", "/next")); q.target != "/next" {
				t.Errorf("backend got %q", q.raw)
			}
		})
		t.Run("B14/send-all-then-read-"+name, func(t *testing.T) { // a RST would lose the answer
			be.set(reject413(64 << 10))
			c := dial(t, g.addr)
			if err := upload(c, chunked); err != nil && !isReset(err) {
				t.Logf("upload: %v", err)
			}
			wantStatus(t, c.response("POST"), 413)
		})
	}
	t.Run("B14/reset-with-answer", func(t *testing.T) { // the answer was readable before the RST
		be.set(func(u *upstreamConn, r *request) {
			io.CopyN(io.Discard, u.br, 64<<10)
			u.write("HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n")
			time.Sleep(50 * time.Millisecond)
			u.reset()
		})
		c := dial(t, g.addr)
		go upload(c, false)
		wantStatus(t, c.response("POST"), 413)
	})
	t.Run("B14/keeps-reading", func(t *testing.T) { // answers early but takes the whole body
		be.set(func(u *upstreamConn, r *request) {
			u.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nearly")
			if r.readBody(u.br, io.Discard) != nil {
				u.Close()
			}
		})
		c := dial(t, g.addr)
		go upload(c, false)
		if r := c.response("POST"); string(r.body) != "early" {
			t.Errorf("got %q%q", r.raw, r.body)
		}
	})
	t.Run("B14/streamed-early-answer", func(t *testing.T) { // the answer's body goes on while the upload does
		be.set(func(u *upstreamConn, r *request) {
			u.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
			buf := make([]byte, 5)
			for range 10 {
				if _, err := io.ReadFull(u.br, buf); err != nil {
					u.Close()
					return
				}
				u.write("5\r\n" + string(buf) + "\r\n")
			}
			u.write("0\r\n\r\n")
		})
		c := dial(t, g.addr)
		c.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 50\r\n\r\n")
		if h := c.head("POST"); h.status != 200 {
			t.Fatalf("status %d", h.status)
		}
		for i := range 10 {
			c.send(fmt.Sprintf("ping%d", i))
			line, _ := c.br.ReadString('\n')
			data := make([]byte, 7)
			if _, err := io.ReadFull(c.br, data); err != nil || line != "5\r\n" || string(data) != fmt.Sprintf("ping%d\r\n", i) {
				t.Fatalf("round %d: got %q%q, %v", i, line, data, err)
			}
		}
	})
}

func TestExpectContinue(t *testing.T) {
	be := newBackend(t, "be")
	g := start(t, options{args: []string{"--response-timeout", "2s"}}, be.manifest(), simpleRoute("a", be))
	post := "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n"

	t.Run("expect/backend-sends-100", func(t *testing.T) {
		be.set(func(u *upstreamConn, r *request) {
			if !strings.EqualFold(r.get("Expect"), "100-continue") {
				be.echo(u, r) // the gateway answered for itself, which is right as well
				return
			}
			u.write("HTTP/1.1 100 Continue\r\n\r\n")
			be.echo(u, r)
		})
		c := dial(t, g.addr)
		c.send(post)
		if h := c.head("POST"); h.status != 100 {
			t.Fatalf("status %d, want 100", h.status)
		}
		c.send("hello")
		if q := seen(t, c.response("POST")); string(q.body) != "hello" {
			t.Errorf("backend got %q", q.body)
		}
		if q := seen(t, c.get("a", "/next")); q.target != "/next" {
			t.Errorf("backend got %q", q.raw)
		}
	})
	t.Run("expect/backend-never-sends-100", func(t *testing.T) { // it reads the body only
		be.set(be.echo)
		c := dial(t, g.addr)
		c.send(post)
		c.SetReadDeadline(time.Now().Add(time.Second))
		if _, err := c.br.Peek(1); err == nil {
			if h := c.head("POST"); h.status != 100 {
				t.Fatalf("status %d, want 100 or silence", h.status)
			}
		}
		c.patient(patience)
		c.send("hello") // a client sends it after a while in any case (RFC 9110, 10.1.1)
		if q := seen(t, c.response("POST")); string(q.body) != "hello" {
			t.Errorf("backend got %q", q.body)
		}
	})
	t.Run("expect/refused", func(t *testing.T) {
		be.set(func(u *upstreamConn, r *request) {
			u.write("HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			u.Close()
		})
		c := dial(t, g.addr)
		c.send(post)
		r := c.response("POST")
		wantStatus(t, r, 417)
		if len(r.interim) > 0 && r.interim[0].status != 100 {
			t.Errorf("interim %q", r.interim[0].raw)
		}
	})
	t.Run("expect/no-route", func(t *testing.T) { // known to be refused before a body is asked for
		c := dial(t, g.addr)
		c.send("POST / HTTP/1.1\r\nHost: unknown\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
		r := c.response("POST")
		wantStatus(t, r, 404)
		if len(r.interim) > 0 {
			t.Errorf("the body was asked for: %q", r.interim[0].raw)
		}
	})
	t.Run("expect/body-sent-at-once", func(t *testing.T) {
		be.set(be.echo)
		c := dial(t, g.addr)
		c.send(post + "hello")
		if q := seen(t, c.response("POST")); string(q.body) != "hello" {
			t.Errorf("backend got %q", q.body)
		}
	})
	t.Run("expect/unknown", func(t *testing.T) {
		be.set(be.echo)
		r := exchange(t, g.addr, "POST / HTTP/1.1\r\nHost: a\r\nExpect: magic\r\nContent-Length: 5\r\n\r\nhello")
		wantStatus(t, r, 200, 417)
	})
	t.Run("expect/http-1.0", func(t *testing.T) { // must be ignored (RFC 9110, 10.1.1)
		be.set(be.echo)
		r := exchange(t, g.addr, "POST / HTTP/1.0\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello")
		if len(r.interim) > 0 {
			t.Errorf("a 1.0 client got %q", r.interim[0].raw)
		}
		seen(t, r)
	})
	t.Run("expect/without-body", func(t *testing.T) {
		be.set(be.echo)
		c := dial(t, g.addr)
		c.send("GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n")
		wantStatus(t, c.response("GET"), 200)
	})
}

func TestPipelining(t *testing.T) {
	be := newBackend(t, "be")
	g := edge(t, be.manifest(), simpleRoute("a", be))
	t.Run("pipelining/in-order", func(t *testing.T) { // the first are the slowest
		be.set(func(u *upstreamConn, r *request) {
			var n int
			fmt.Sscanf(r.target, "/%d", &n)
			time.Sleep(time.Duration(40-n) * time.Millisecond / 4)
			be.echo(u, r)
		})
		c := dial(t, g.addr)
		var raw strings.Builder
		for i := range 40 {
			if i%4 == 3 {
				fmt.Fprintf(&raw, "POST /%d HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nGET ", i)
			} else {
				fmt.Fprintf(&raw, "GET /%d HTTP/1.1\r\nHost: a\r\n\r\n", i)
			}
		}
		c.send(raw.String())
		for i := range 40 {
			if q := seen(t, c.response("GET")); q.target != fmt.Sprintf("/%d", i) {
				t.Fatalf("answer %d is for %q", i, q.target)
			}
		}
	})
	t.Run("pipelining/error-behind", func(t *testing.T) { // answers before a bad request still come
		be.set(func(u *upstreamConn, r *request) {
			time.Sleep(30 * time.Millisecond)
			be.echo(u, r)
		})
		c := dial(t, g.addr)
		c.send("GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\nGET /3 HTTP/1.1\r\nHost : a\r\n\r\nGET /4 HTTP/1.1\r\nHost: a\r\n\r\n")
		for _, want := range []string{"/1", "/2"} {
			if q := seen(t, c.response("GET")); q.target != want {
				t.Fatalf("answer is for %q, want %q", q.target, want)
			}
		}
		wantStatus(t, c.response("GET"), 400)
		c.wantClosed()
	})
	t.Run("pipelining/half-closed", func(t *testing.T) { // a client that has said all gets its answers
		be.set(func(u *upstreamConn, r *request) {
			time.Sleep(30 * time.Millisecond)
			be.echo(u, r)
		})
		c := dial(t, g.addr)
		c.send("GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n")
		c.halfClose()
		for _, want := range []string{"/1", "/2"} {
			if q := seen(t, c.response("GET")); q.target != want {
				t.Fatalf("answer is for %q, want %q", q.target, want)
			}
		}
		c.wantClosed()
	})
	t.Run("pipelining/flood-is-bounded", func(t *testing.T) { // requests nobody reads the answers of
		be.set(be.echo)
		before := g.rss(t)
		c := dial(t, g.addr)
		c.SetWriteDeadline(time.Now().Add(2 * time.Second))
		burst := strings.Repeat("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 1000)
		sent := 0
		for sent < 256<<20 {
			if err := c.trySend(burst); err != nil {
				break
			}
			sent += len(burst)
		}
		if grown := g.rss(t) - before; grown > 48<<20 {
			t.Errorf("memory grew by %d KiB for one client that does not read", grown>>10)
		}
	})
}
