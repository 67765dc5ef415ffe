package cases

import (
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Long-lived connections and steady requests do not notice edits that do not
// concern them.
func TestReconfiguration(t *testing.T) {
	const tunnels, streams, edits = 50, 50, 120
	long, steady, edited := newBackend(t, "long"), newBackend(t, "steady"), newBackend(t, "edited")
	spare := newBackend(t, "spare")
	httpPort, httpsPort := freePort(t), freePort(t)
	longRoute := func(version int) string {
		return route("long", fmt.Sprintf(`
hostnames: [a]
rules:
- filters:
  - type: ResponseHeaderModifier
    responseHeaderModifier: {set: [{name: X-Version, value: "%d"}]}
  backendRefs: [{name: long, port: 80}]`, version))
	}
	first, second := newCertificate(t, "secure"), newCertificate(t, "secure")
	g := start(t, options{listeners: []string{
		fmt.Sprintf("{name: http, port: %d, protocol: HTTP}", httpPort),
		fmt.Sprintf("{name: https, port: %d, protocol: HTTPS, tls: {certificateRefs: [{name: cert}]}}", httpsPort),
	}}, long.manifest(), steady.manifest(), simpleRoute("steady", steady))
	g.addr = loopback(httpPort)
	g.apply(t, "long-route.yaml", longRoute(0))
	g.apply(t, "edited.yaml", edited.manifest())
	g.apply(t, "edited-route.yaml", simpleRoute("edited", edited))
	g.apply(t, "cert.yaml", first.secret("default", "cert"))
	g.awaitStatus(t, "edited", "/", 200)
	eventually(t, patience, func() error {
		c, err := tryTLS(loopback(httpsPort), "secure", nil)
		if err == nil {
			c.Close()
		}
		return err
	})

	long.set(func(u *upstreamConn, r *request) {
		if r.has("Upgrade") {
			tunnelEcho(u, r)
			return
		}
		u.write("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
		for u.write("9\r\ndata: 1\n\n\r\n") == nil {
			time.Sleep(20 * time.Millisecond)
		}
		u.Close()
	})
	var stop atomic.Bool
	var wg sync.WaitGroup
	var answers atomic.Int64
	for i := range tunnels {
		c := dial(t, g.addr)
		if i%2 == 1 {
			c = dialTLS(t, loopback(httpsPort), "secure")
		}
		c.patient(2 * time.Minute)
		upgrade(t, c)
		wg.Go(func() {
			for !stop.Load() {
				if err := c.pingpong("ping"); err != nil {
					t.Errorf("tunnel %d ended: %v", i, err)
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
			c.Close()
		})
	}
	for i := range streams {
		c := dial(t, g.addr)
		c.patient(2 * time.Minute)
		c.send("GET /sse HTTP/1.1\r\nHost: a\r\n\r\n")
		wantStatus(t, c.head("GET"), 200)
		wg.Go(func() {
			for !stop.Load() {
				if _, err := c.br.ReadString('\n'); err != nil {
					t.Errorf("event stream %d ended: %v", i, err)
					return
				}
			}
			c.Close()
		})
	}
	for i := range 2 { // one that keeps its connection, one that makes a new one each time
		wg.Go(func() {
			var c *client
			for !stop.Load() {
				if c == nil || i == 1 {
					c = dial(t, g.addr)
					c.patient(2 * time.Minute)
				}
				if err := c.trySend("GET / HTTP/1.1\r\nHost: steady\r\n\r\n"); err != nil {
					t.Errorf("steady request: %v", err)
					return
				}
				r, err := readResponse(c.br, "GET")
				if err != nil || r.status != 200 || r.err != nil {
					t.Errorf("steady request: %v %q%q", err, r.raw, clip(r.body))
					return
				}
				answers.Add(1)
				if i == 1 {
					c.Close()
				}
				time.Sleep(time.Millisecond)
			}
		})
	}

	endpoints := []netip.AddrPort{edited.addr, spare.addr}
	for i := range edits {
		switch i % 6 {
		case 0, 1, 2:
			g.apply(t, "edited.yaml", service("default", "edited", endpoints[:1+i%2]...))
		case 3:
			g.apply(t, fmt.Sprintf("unrelated-%d.yaml", i), route(fmt.Sprintf("unrelated-%d", i), `
hostnames: [unrelated]
rules:
- backendRefs: [{name: edited, port: 80}]`))
		case 4:
			g.apply(t, "long-route.yaml", longRoute(i))
			g.remove(t, fmt.Sprintf("unrelated-%d.yaml", i-1))
		case 5:
			g.apply(t, "cert.yaml", []certificate{first, second}[i/6%2].secret("default", "cert"))
		}
		time.Sleep(15 * time.Millisecond)
	}
	final := edits * 10
	g.apply(t, "long-route.yaml", longRoute(final))
	t.Run("B19/edit-of-the-same-route-applies", func(t *testing.T) { // to new requests
		eventually(t, patience, func() error {
			c := dial(t, g.addr)
			defer c.reset()
			c.send("GET /sse HTTP/1.1\r\nHost: a\r\n\r\n")
			if h := c.head("GET"); h.get("X-Version") != fmt.Sprint(final) {
				return fmt.Errorf("X-Version %q", h.get("X-Version"))
			}
			return nil
		})
	})
	t.Run("B19/nothing-dropped", func(t *testing.T) {
		eventually(t, patience, func() error {
			if n := answers.Load(); n < edits {
				return fmt.Errorf("%d steady answers during %d edits", n, edits)
			}
			return nil
		})
		stop.Store(true)
		wg.Wait()
	})
	t.Run("B19/removed-route-gives-404", func(t *testing.T) {
		g.remove(t, "edited-route.yaml")
		g.awaitStatus(t, "edited", "/", 404)
	})
	t.Run("B19/listener-added-and-removed", func(t *testing.T) { // without touching the others
		keep := dial(t, g.addr)
		wantStatus(t, keep.get("steady", "/"), 200)
		extra := freePort(t)
		http := fmt.Sprintf("{name: http, port: %d, protocol: HTTP}", httpPort)
		g.apply(t, "gateway.yaml", gatewayObject("edge", http, fmt.Sprintf("{name: extra, port: %d, protocol: HTTP}", extra)))
		eventually(t, patience, func() error {
			c, err := tryDial(loopback(extra))
			if err != nil {
				return err
			}
			defer c.Close()
			_, err = c.Write([]byte("GET / HTTP/1.1\r\nHost: steady\r\n\r\n"))
			return err
		})
		wantStatus(t, exchange(t, loopback(extra), "GET / HTTP/1.1\r\nHost: steady\r\n\r\n"), 200)
		g.apply(t, "gateway.yaml", gatewayObject("edge", http))
		eventually(t, patience, func() error {
			c, err := tryDial(loopback(extra))
			if err == nil {
				c.Close()
				return fmt.Errorf("port %d still listens", extra)
			}
			return nil
		})
		wantStatus(t, keep.get("steady", "/"), 200)
	})
}

// A snapshot is swapped as a whole: an answer is of the old or the new one.
func TestSwapUnderLoad(t *testing.T) {
	one, two := newBackend(t, "one"), newBackend(t, "two")
	// The two versions differ in backend, rewritten path, and header.
	version := func(name string) string {
		return route("swapped", fmt.Sprintf(`
hostnames: [a]
rules:
- matches: [{path: {type: PathPrefix, value: /app}}]
  filters:
  - type: URLRewrite
    urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /%[1]s}}
  - type: ResponseHeaderModifier
    responseHeaderModifier: {set: [{name: X-Version, value: %[1]s}]}
  backendRefs: [{name: %[1]s, port: 80}]`, name))
	}
	g := edge(t, one.manifest(), two.manifest())
	g.apply(t, "swapped.yaml", version("one"))
	g.awaitStatus(t, "a", "/app", 200)
	var stop atomic.Bool
	var wg sync.WaitGroup
	var counts [2]atomic.Int64
	for range 8 {
		c := dial(t, g.addr)
		c.patient(2 * time.Minute)
		wg.Go(func() {
			for i := 0; !stop.Load(); i++ {
				target := fmt.Sprintf("/app/%d", i)
				if err := c.trySend("GET " + target + " HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
					t.Error(err)
					return
				}
				r, err := readResponse(c.br, "GET")
				if err != nil || r.err != nil || r.status != 200 {
					t.Errorf("answer: %v %q%q", err, r.raw, clip(r.body))
					return
				}
				v := r.get("X-Version")
				want := fmt.Sprintf("GET /%s/%d HTTP/1.1\r\n", v, i)
				if r.get("X-Backend") != v || !strings.HasPrefix(string(r.body), want) {
					t.Errorf("mixed answer: version %q, backend %q, %q, want %q", v, r.get("X-Backend"), clip(r.body), want)
					return
				}
				counts[map[string]int{"one": 0, "two": 1}[v]].Add(1)
			}
		})
	}
	end := time.Now().Add(patience)
	both := func() bool { return counts[0].Load() > 0 && counts[1].Load() > 0 }
	for i := 0; i < 100 || !both() && time.Now().Before(end); i++ {
		g.apply(t, "swapped.yaml", version([]string{"two", "one"}[i%2]))
		time.Sleep(20 * time.Millisecond)
	}
	stop.Store(true)
	wg.Wait()
	t.Run("swap/both-served", func(t *testing.T) {
		if counts[0].Load() == 0 || counts[1].Load() == 0 {
			t.Errorf("%d answers of the one version, %d of the other", counts[0].Load(), counts[1].Load())
		}
	})
	t.Run("swap/last-one-wins", func(t *testing.T) {
		g.apply(t, "swapped.yaml", version("two"))
		eventually(t, patience, func() error {
			if r := exchange(t, g.addr, "GET /app HTTP/1.1\r\nHost: a\r\n\r\n"); r.get("X-Version") != "two" {
				return fmt.Errorf("version %q", r.get("X-Version"))
			}
			return nil
		})
	})
}

// A broken file keeps the last good snapshot, and is told.
func TestBrokenFiles(t *testing.T) {
	be := newBackend(t, "be")
	good := simpleRoute("a", be)
	g := edge(t, be.manifest())
	g.apply(t, "route.yaml", good)
	g.awaitStatus(t, "a", "/", 200)
	for _, c := range []struct{ name, content string }{
		{"files/not-yaml", "{{{ this is\n\t: not yaml"},
		{"files/half-written", good[:len(good)/2] + "\n  - {"},
		{"files/wrong-type", strings.Replace(good, "port: 80", "port: {no: number}", 1)},
		{"files/unknown-field", strings.Replace(good, "backendRefs", "backendReferences", 1)},
		{"files/binary", "\x00\x01\x02\xff\xfe"},
		{"files/second-document-broken", good + "---\napiVersion: v1\nkind: [Service\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g.apply(t, "route.yaml", c.content)
			g.apply(t, "other.yaml", simpleRoute("other", be)) // in the same directory, good
			time.Sleep(200 * time.Millisecond)
			wantStatus(t, exchange(t, g.addr, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"), 200)
			out, code := g.check(t)
			if code != 1 || !strings.Contains(out, "route.yaml") {
				t.Errorf("check ended with %d, want 1 and the file named: %s", code, out)
			}
			eventually(t, patience, func() error {
				if !strings.Contains(g.log.String(), "route.yaml") {
					return fmt.Errorf("the log does not name the file")
				}
				return nil
			})
			g.apply(t, "route.yaml", good)
			g.awaitStatus(t, "other", "/", 200) // repaired: all is applied
			g.remove(t, "other.yaml")
			g.awaitStatus(t, "other", "/", 404)
		})
	}
	t.Run("files/clean-check", func(t *testing.T) {
		if out, code := g.check(t); code != 0 {
			t.Errorf("check ended with %d: %s", code, out)
		}
	})
	t.Run("files/others-are-ignored", func(t *testing.T) {
		g.apply(t, "README.md", "{{{ not yaml")
		g.apply(t, ".hidden.yaml", "{{{ not yaml")
		g.apply(t, "backup.yaml~", "{{{ not yaml")
		g.apply(t, "more.yml", simpleRoute("more", be))
		g.awaitStatus(t, "more", "/", 200)
	})
	t.Run("files/removed", func(t *testing.T) {
		g.remove(t, "route.yaml")
		g.awaitStatus(t, "a", "/", 404)
	})
}
