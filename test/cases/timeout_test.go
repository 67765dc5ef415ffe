package cases

import (
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// within fails the test unless d is about want: not before it, and not much
// later even on a busy machine.
func within(t testing.TB, d, want time.Duration) {
	t.Helper()
	if d < want-50*time.Millisecond || d > want+10*time.Second {
		t.Errorf("took %v, want about %v", d.Round(time.Millisecond), want)
	}
}

func TestRouteTimeouts(t *testing.T) {
	be := newBackend(t, "be")
	timed := func(name, timeouts string) string {
		return route(name, "hostnames: ["+name+"]\nrules:\n- timeouts: "+timeouts+"\n  backendRefs: [{name: be, port: 80}]")
	}
	g := start(t, options{args: []string{"--response-timeout", "2s"}}, be.manifest(), simpleRoute("unset", be),
		timed("request", "{request: 1s}"),
		timed("backend", "{request: 1m, backendRequest: 300ms}"),
		timed("backend-only", "{backendRequest: 300ms}"),
		timed("zero", "{request: 0s}"),
		timed("zero-both", "{request: 0s, backendRequest: 0s}"),
		timed("long", "{request: 10s}"))
	get := func(t *testing.T, host string) (*response, time.Duration) {
		t.Helper()
		c := dial(t, g.addr)
		begin := time.Now()
		c.send("GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n")
		r := c.partial("GET")
		return r, time.Since(begin)
	}
	for _, c := range []struct {
		name, host string
		after      time.Duration
	}{
		{"B36/hang-request", "request", time.Second},
		{"B36/hang-backend-request", "backend", 300 * time.Millisecond},
		{"B36/hang-backend-request-only", "backend-only", 300 * time.Millisecond},
		{"B36/hang-unset", "unset", 2 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			gone := make(chan bool, 1)
			be.set(func(u *upstreamConn, r *request) {
				gone <- u.awaitEnd(patience)
				u.Close()
			})
			r, took := get(t, c.host)
			wantStatus(t, r, 504)
			within(t, took, c.after)
			if !<-gone {
				t.Error("the upstream connection was kept")
			}
		})
	}
	slow := func(d time.Duration) handler {
		return func(u *upstreamConn, r *request) {
			u.body(r)
			time.Sleep(d)
			be.echo(u, r)
		}
	}
	for _, host := range []string{"zero", "zero-both", "long"} {
		t.Run("B36/slow-but-allowed-"+host, func(t *testing.T) { // longer than the default of 2 s
			be.set(slow(3 * time.Second))
			r, took := get(t, host)
			wantStatus(t, r, 200)
			within(t, took, 3*time.Second)
		})
	}
	t.Run("B36/connection-usable-after-504", func(t *testing.T) {
		be.set(byPath(map[string]handler{"/hang": hang, "/next": be.echo}))
		c := dial(t, g.addr)
		r := c.get("backend", "/hang")
		wantStatus(t, r, 504)
		if strings.EqualFold(r.get("Connection"), "close") {
			c.wantClosed()
			return
		}
		if q := seen(t, c.get("backend", "/next")); q.target != "/next" {
			t.Errorf("backend got %q", q.raw)
		}
	})
	trickle := func(fields, before, after string, n int) handler {
		return func(u *upstreamConn, r *request) {
			u.body(r)
			u.write("HTTP/1.1 200 OK\r\n" + fields + "\r\n")
			for range n {
				if u.write(before+"x"+after) != nil {
					break
				}
				time.Sleep(100 * time.Millisecond)
			}
			if before != "" {
				u.write("0\r\n\r\n")
			}
		}
	}
	for _, c := range []struct{ name, fields, before, after string }{
		{"length", "Content-Length: 25\r\n", "", ""},
		{"chunked", "Transfer-Encoding: chunked\r\n", "1\r\n", "\r\n"},
	} {
		t.Run("B36/body-past-request-timeout-"+c.name, func(t *testing.T) { // a cut that shows, no fake end
			be.set(trickle(c.fields, c.before, c.after, 25))
			r, took := get(t, "request")
			if r.status == 200 && r.err == nil {
				t.Errorf("got a whole answer of %d bytes after %v, want it cut at 1s", len(r.body), took)
			}
			within(t, took, time.Second)
		})
		t.Run("B36/body-past-backend-timeout-"+c.name, func(t *testing.T) {
			be.set(trickle(c.fields, c.before, c.after, 25))
			r, took := get(t, "backend-only")
			if r.status == 200 && r.err == nil {
				t.Errorf("got a whole answer of %d bytes after %v, want it cut at 300ms", len(r.body), took)
			}
			within(t, took, 300*time.Millisecond)
		})
		t.Run("B36/body-past-response-timeout-"+c.name, func(t *testing.T) { // which bounds the head only
			be.set(trickle(c.fields, c.before, c.after, 25))
			r, _ := get(t, "unset")
			if r.err != nil || len(r.body) != 25 {
				t.Errorf("got %d bytes, %v; want 25", len(r.body), r.err)
			}
		})
	}
	t.Run("B36/slow-upload", func(t *testing.T) { // the response timeout starts when the request was written
		be.set(be.echo)
		c := dial(t, g.addr)
		c.send("POST / HTTP/1.1\r\nHost: unset\r\nContent-Length: 30\r\n\r\n")
		for range 30 {
			c.send("x")
			time.Sleep(100 * time.Millisecond)
		}
		if q := seen(t, c.response("POST")); len(q.body) != 30 {
			t.Errorf("backend got %d bytes", len(q.body))
		}
	})
	t.Run("B36/interim-is-no-answer", func(t *testing.T) { // a 103 does not stop the clock for good
		be.set(func(u *upstreamConn, r *request) {
			u.body(r)
			u.write("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
			u.awaitEnd(patience)
			u.Close()
		})
		r, took := get(t, "request")
		wantStatus(t, r, 504)
		within(t, took, time.Second)
	})
}

func TestConnectTimeout(t *testing.T) {
	// A listener whose queue is full takes no connection: SYNs are dropped.
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	full := fillQueue(t, ln)
	be := newBackend(t, "be")
	g := start(t, options{args: []string{"--connect-timeout", "500ms"}}, be.manifest(), simpleRoute("be", be),
		service("default", "full", full), route("full", "hostnames: [full]\nrules:\n- backendRefs: [{name: full, port: 80}]"))
	t.Run("B36/connect-timeout", func(t *testing.T) {
		begin := time.Now()
		r := exchange(t, g.addr, "GET / HTTP/1.1\r\nHost: full\r\n\r\n")
		wantStatus(t, r, 504)
		if took := time.Since(begin); took < 400*time.Millisecond || took > 4*time.Second {
			t.Errorf("took %v, want about 500ms or two tries of it", took)
		}
		wantStatus(t, exchange(t, g.addr, "GET / HTTP/1.1\r\nHost: be\r\n\r\n"), 200)
	})
}

func TestClientTimeouts(t *testing.T) {
	be := newBackend(t, "be")
	g := start(t, options{args: []string{"--header-timeout", "700ms", "--idle-timeout", "3s"}}, be.manifest(), simpleRoute("a", be))

	// A slow head is answered 408, then the connection ends; the clock starts
	// with the first byte and does not start again with each further one.
	for _, c := range []struct{ name, first, drip string }{
		{"slowloris/half-a-line", "GET / HT", ""},
		{"slowloris/half-a-head", "GET / HTTP/1.1\r\nHost: a\r\n", ""},
		{"slowloris/dripping-fields", "GET / HTTP/1.1\r\nHost: a\r\n", "X: y\r\n"},
		{"slowloris/dripping-bytes", "GET /", "a"},
		{"slowloris/dripping-empty-lines", "\r\n", "\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := be.mark()
			cl := dial(t, g.addr)
			begin := time.Now()
			cl.send(c.first)
			var wg sync.WaitGroup
			defer wg.Wait()
			stop := make(chan struct{})
			defer close(stop)
			if c.drip != "" {
				wg.Go(func() {
					for cl.trySend(c.drip) == nil {
						select {
						case <-stop:
							return
						case <-time.After(100 * time.Millisecond):
						}
					}
				})
			}
			r, err := readResponse(cl.br, "GET")
			if c.name == "slowloris/dripping-empty-lines" && (err != nil || r.status == 400) {
				return // no request began: an end without a word, or for that, is right too
			}
			within(t, time.Since(begin), 700*time.Millisecond)
			if err != nil {
				t.Fatalf("no answer: %v", err)
			}
			wantStatus(t, r, 408)
			cl.wantClosed()
			be.wantNothingSince(t, m)
		})
	}
	t.Run("slowloris/second-request", func(t *testing.T) {
		c := dial(t, g.addr)
		wantStatus(t, c.get("a", "/"), 200)
		c.send("GET / HTTP/1.1\r\n")
		begin := time.Now()
		wantStatus(t, c.response("GET"), 408)
		within(t, time.Since(begin), 700*time.Millisecond)
		c.wantClosed()
	})
	t.Run("idle/new-connection", func(t *testing.T) { // never said a word
		c := dial(t, g.addr)
		begin := time.Now()
		b, err := io.ReadAll(c.br)
		took := time.Since(begin)
		if err != nil || took < 600*time.Millisecond || took > 15*time.Second {
			t.Errorf("ended with %v after %v", err, took)
		}
		if len(b) > 0 && !strings.HasPrefix(string(b), "HTTP/1.1 408 ") {
			t.Errorf("got %q", b)
		}
	})
	t.Run("idle/keep-alive", func(t *testing.T) {
		c := dial(t, g.addr)
		wantStatus(t, c.get("a", "/"), 200)
		time.Sleep(time.Second) // longer than the header timeout: an idle connection is not a slow one
		wantStatus(t, c.get("a", "/"), 200)
		begin := time.Now()
		c.wantClosed()
		within(t, time.Since(begin), 3*time.Second)
	})
	t.Run("idle/not-while-waiting", func(t *testing.T) { // a slow answer is no idleness
		be.set(func(u *upstreamConn, r *request) {
			time.Sleep(3500 * time.Millisecond)
			be.echo(u, r)
		})
		defer be.set(be.echo)
		c := dial(t, g.addr)
		wantStatus(t, c.get("a", "/"), 200)
	})
	t.Run("slowloris/many", func(t *testing.T) { // others are served meanwhile
		for range 300 {
			c := dial(t, g.addr)
			c.send("GET / HTTP/1.1\r\nHost: a\r\nX: ")
		}
		begin := time.Now()
		for range 20 {
			wantStatus(t, exchange(t, g.addr, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"), 200)
		}
		if took := time.Since(begin); took > 20*time.Second {
			t.Errorf("20 requests took %v", took)
		}
	})
	t.Run("slowloris/tls-handshake", func(t *testing.T) {
		port := freePort(t)
		cert := newCertificate(t, "a")
		start(t, options{args: []string{"--header-timeout", "2s"}, listeners: []string{httpsListener("a", port, "", "{name: cert}")}},
			be.manifest(), cert.secret("default", "cert"), simpleRoute("a", be))
		c := dialTLS(t, loopback(port), "a") // slow behind a good handshake
		c.send("GET / HT")
		wantStatus(t, c.response("GET"), 408)
		c.wantClosed()
	})
}

// fillQueue opens connections to a listener that accepts none, until one more
// does not succeed. It returns the listener's address.
func fillQueue(t *testing.T, ln net.Listener) netip.AddrPort {
	t.Helper()
	addr := netip.MustParseAddrPort(ln.Addr().String())
	raw, err := ln.(*net.TCPListener).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) { err = syscall.Listen(int(fd), 1) }); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		c, err := net.DialTimeout("tcp4", ln.Addr().String(), 2*time.Second)
		if err != nil {
			return addr
		}
		t.Cleanup(func() { c.Close() })
	}
	t.Fatalf("the queue of %v does not fill", ln.Addr())
	return addr
}
