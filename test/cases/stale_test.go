package cases

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestStaleUpstream(t *testing.T) {
	be := newBackend(t, "be")
	g := start(t, options{args: []string{"--workers", "1"}}, be.manifest(), simpleRoute("a", be))

	// onlyFirst answers the first request of a connection and closes at the
	// second one, without a byte: the pool's connection was stale.
	onlyFirst := func(u *upstreamConn, r *request) {
		if u.body(r); u.served > 1 {
			u.Close()
			return
		}
		ok(u, r)
	}
	// warm leaves one usable connection in the pool.
	warm := func(t *testing.T) {
		be.closeConns()
		time.Sleep(20 * time.Millisecond)
		be.set(onlyFirst)
		wantStatus(t, exchange(t, g.addr, "GET /warm HTTP/1.1\r\nHost: a\r\n\r\n"), 200)
	}
	// emptyPool waits until the gateway has seen that no connection is of use.
	emptyPool := func(t *testing.T) {
		eventually(t, patience, func() error {
			if n := g.metric(t, `headgate_upstream_connections_idle{cluster="default/be:80"}`); n != 0 {
				return fmt.Errorf("%v connections are in the pool", n)
			}
			return nil
		})
	}
	count := func(m mark, method string) int {
		n := 0
		for _, r := range be.requestsSince(m) {
			if r.method == method {
				n++
			}
		}
		return n
	}

	for _, method := range []string{"GET", "HEAD", "OPTIONS"} {
		t.Run("B16/stale-"+method+"-retried", func(t *testing.T) {
			warm(t)
			m := be.mark()
			wantStatus(t, exchange(t, g.addr, method+" /x HTTP/1.1\r\nHost: a\r\n\r\n"), 200)
			if n := count(m, method); n != 2 {
				t.Errorf("backend got the request %d times, want 2", n)
			}
		})
	}
	for _, c := range []struct{ name, raw string }{
		{"B16/stale-POST-with-body", "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"},
		{"B16/stale-POST-empty", "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"},
		{"B16/stale-PATCH", "PATCH /x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"},
	} {
		t.Run(c.name, func(t *testing.T) {
			warm(t)
			m := be.mark()
			method, _, _ := strings.Cut(c.raw, " ")
			wantStatus(t, exchange(t, g.addr, c.raw), 502)
			if n := count(m, method); n != 1 {
				t.Errorf("backend got the request %d times, want 1: it is not idempotent", n)
			}
		})
	}
	for _, method := range []string{"GET", "POST"} {
		t.Run("B16/never-answers-"+method, func(t *testing.T) {
			be.closeConns()
			be.set(func(u *upstreamConn, r *request) {
				u.body(r)
				u.Close()
			})
			m := be.mark()
			wantStatus(t, exchange(t, g.addr, method+" /x HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"), 502)
			if n := count(m, method); n < 1 || n > 2 || method == "POST" && n != 1 {
				t.Errorf("backend got %s %d times", method, n)
			}
		})
		t.Run("B16/many-stale-"+method, func(t *testing.T) { // a pool full of stale connections is no endless loop
			be.closeConns()
			time.Sleep(20 * time.Millisecond)
			var gate sync.WaitGroup
			gate.Add(8)
			be.set(func(u *upstreamConn, r *request) {
				u.body(r)
				if u.served > 1 {
					u.Close()
					return
				}
				gate.Done()
				gate.Wait()
				ok(u, r)
			})
			var clients sync.WaitGroup
			for range 8 {
				clients.Go(func() { exchange(t, g.addr, "GET /warm HTTP/1.1\r\nHost: a\r\n\r\n") })
			}
			clients.Wait()
			be.set(func(u *upstreamConn, r *request) { // nothing answers from now on
				u.body(r)
				u.Close()
			})
			m := be.mark()
			wantStatus(t, exchange(t, g.addr, method+" /x HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"), 502)
			if n := count(m, method); n > 2 || method == "POST" && n != 1 {
				t.Errorf("backend got %s %d times", method, n)
			}
		})
	}
	t.Run("B16/closed-while-idle", func(t *testing.T) { // the pool watches for FIN: nothing is written to a dead connection
		for _, how := range []string{"fin", "rst"} {
			be.set(ok)
			wantStatus(t, exchange(t, g.addr, "GET /warm HTTP/1.1\r\nHost: a\r\n\r\n"), 200)
			if how == "fin" {
				be.closeConns()
			} else {
				be.mu.Lock()
				for _, u := range be.conns {
					u.reset()
				}
				be.mu.Unlock()
			}
			emptyPool(t)
			m := be.mark()
			wantStatus(t, exchange(t, g.addr, "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"), 200)
			if n := count(m, "POST"); n != 1 {
				t.Errorf("%s: backend got the POST %d times", how, n)
			}
		}
	})
	t.Run("B16/answer-on-idle-connection", func(t *testing.T) { // a parting 408 is nobody's answer
		be.closeConns()
		be.set(func(u *upstreamConn, r *request) {
			u.body(r)
			u.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			time.Sleep(30 * time.Millisecond)
			u.write("HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		})
		wantStatus(t, exchange(t, g.addr, "GET /warm HTTP/1.1\r\nHost: a\r\n\r\n"), 200)
		emptyPool(t)
		be.set(be.echo)
		for i := range 4 {
			target := fmt.Sprintf("/%d", i)
			if q := seen(t, exchange(t, g.addr, "GET "+target+" HTTP/1.1\r\nHost: a\r\n\r\n")); q.target != target {
				t.Errorf("answer is for %q, want %q", q.target, target)
			}
		}
	})
	t.Run("B16/connection-close-not-reused", func(t *testing.T) {
		be.closeConns()
		time.Sleep(20 * time.Millisecond)
		be.set(func(u *upstreamConn, r *request) {
			if u.served > 1 {
				t.Error("a connection was used again after Connection: close")
			}
			answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")(u, r)
		})
		for range 5 {
			wantStatus(t, exchange(t, g.addr, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"), 200)
		}
	})
	t.Run("B16/reset-after-half-a-head", func(t *testing.T) {
		be.closeConns()
		be.set(func(u *upstreamConn, r *request) {
			u.body(r)
			u.write("HTTP/1.1 200 O")
			u.reset()
		})
		m := be.mark()
		wantStatus(t, exchange(t, g.addr, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"), 502)
		if n := count(m, "POST"); n != 1 {
			t.Errorf("backend got the POST %d times", n)
		}
	})
	t.Run("B16/idle-close-race", func(t *testing.T) {
		const idle = 20 * time.Millisecond
		var posts sync.Map
		be.closeConns()
		be.set(func(u *upstreamConn, r *request) {
			u.body(r)
			if r.method == "POST" {
				n, _ := posts.LoadOrStore(r.target, new(atomic.Int32))
				n.(*atomic.Int32).Add(1)
			}
			u.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			u.SetReadDeadline(time.Now().Add(idle)) // then the next head's read ends it
		})
		for i := range 80 {
			wantStatus(t, exchange(t, g.addr, "GET /warm HTTP/1.1\r\nHost: a\r\n\r\n"), 200)
			time.Sleep(idle - time.Millisecond + time.Duration(i%20)*100*time.Microsecond)
			if i%2 == 0 {
				wantStatus(t, exchange(t, g.addr, "GET /get HTTP/1.1\r\nHost: a\r\n\r\n"), 200)
				continue
			}
			r := exchange(t, g.addr, fmt.Sprintf("POST /%d HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", i))
			wantStatus(t, r, 200, 502)
		}
		posts.Range(func(target, n any) bool {
			if n := n.(*atomic.Int32).Load(); n != 1 {
				t.Errorf("POST %v reached the backend %d times", target, n)
			}
			return true
		})
	})
}

func TestConnectFailures(t *testing.T) {
	be := newBackend(t, "be")
	gone := newBackend(t, "gone")
	gone.stop()
	g := edge(t, be.manifest(), gone.manifest(), simpleRoute("a", be), simpleRoute("gone", gone))
	t.Run("B31/connection-refused", func(t *testing.T) {
		r := exchange(t, g.addr, "GET / HTTP/1.1\r\nHost: gone\r\n\r\n")
		wantStatus(t, r, 502)
	})
	t.Run("B31/refused-post-keeps-the-client", func(t *testing.T) {
		c := dial(t, g.addr)
		c.send("POST / HTTP/1.1\r\nHost: gone\r\nContent-Length: 5\r\n\r\nhello")
		r := c.response("POST")
		wantStatus(t, r, 502)
		if strings.EqualFold(r.get("Connection"), "close") {
			c.wantClosed()
			return
		}
		if q := seen(t, c.get("a", "/next")); q.target != "/next" {
			t.Errorf("backend got %q", q.raw)
		}
	})
	t.Run("B31/comes-back", func(t *testing.T) {
		newBackendAt(t, "gone", gone.addr.String())
		g.awaitStatus(t, "gone", "/", 200)
	})
}
