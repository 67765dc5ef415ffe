package cases

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// adaptiveTimeout is what the admin server says of a cluster's.
func (g *gateway) adaptiveTimeout(t testing.TB, cluster string) (mode string, deadline, estimate time.Duration) {
	t.Helper()
	resp, err := http.Get("http://" + g.admin + "/debug/clusters")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var list []struct {
		Name            string
		AdaptiveTimeout struct {
			Mode               string
			Deadline, Estimate float64
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	for _, c := range list {
		if c.Name == cluster {
			return c.AdaptiveTimeout.Mode, seconds(c.AdaptiveTimeout.Deadline), seconds(c.AdaptiveTimeout.Estimate)
		}
	}
	t.Fatalf("no cluster %s in %+v", cluster, list)
	return "", 0, 0
}

// warmUp makes a cluster's estimate that of fast answers.
func (g *gateway) warmUp(t testing.TB, host string, low time.Duration) {
	t.Helper()
	c := dial(t, g.addr)
	eventually(t, patience, func() error {
		for range 10 {
			if r := c.get(host, "/fast"); r.status != 200 && r.status != 504 { // or this machine is slow just now
				t.Fatalf("got %d", r.status)
			}
		}
		if _, d, _ := g.adaptiveTimeout(t, "default/"+host+":80"); d > low {
			return fmt.Errorf("the deadline is %v", d)
		}
		return nil
	})
}

// wait is a handler that answers after d.
func (b *backend) wait(d time.Duration) handler {
	return func(u *upstreamConn, r *request) {
		u.body(r)
		time.Sleep(d)
		b.echo(u, r)
	}
}

// By default nobody is cut who answers within 5 s, however fast the others were.
func TestAdaptiveTimeoutByDefault(t *testing.T) {
	be := newBackend(t, "be")
	g := start(t, options{}, be.manifest(), simpleRoute("be", be))
	be.set(byPath(map[string]handler{"/fast": be.echo, "/report": be.wait(3 * time.Second)}))
	t.Run("B36/cold-start", func(t *testing.T) {
		if mode, d, _ := g.adaptiveTimeout(t, "default/be:80"); mode != "enforce" || d != time.Minute {
			t.Errorf("before the first answer: %s, %v", mode, d)
		}
		wantStatus(t, exchange(t, g.addr, "GET /report HTTP/1.1\r\nHost: be\r\n\r\n"), 200)
	})
	t.Run("B36/slow-among-fast", func(t *testing.T) {
		g.warmUp(t, "be", 5*time.Second)
		wantStatus(t, exchange(t, g.addr, "GET /report HTTP/1.1\r\nHost: be\r\n\r\n"), 200)
		wantStatus(t, exchange(t, g.addr, "GET /fast HTTP/1.1\r\nHost: be\r\n\r\n"), 200)
		if _, d, e := g.adaptiveTimeout(t, "default/be:80"); d < 5*time.Second || e <= 0 {
			t.Errorf("deadline %v, estimate %v", d, e)
		}
	})
}

// A policy may ask for more: here the least deadline is 800 ms.
func TestAdaptiveTimeout(t *testing.T) {
	const low = 800 * time.Millisecond
	be := newBackend(t, "be")
	limited := route("limited", "hostnames: [limited]\nrules:\n- timeouts: {request: 10s}\n  backendRefs: [{name: be, port: 80}]")
	untimed := route("untimed", "hostnames: [untimed]\nrules:\n- timeouts: {request: 0s}\n  backendRefs: [{name: be, port: 80}]")
	g := start(t, options{args: []string{"--adaptive-min", low.String(), "--response-timeout", "30s"}}, be.manifest(), simpleRoute("be", be), limited, untimed)
	handlers := map[string]handler{
		"/fast": be.echo, "/slow": be.wait(2200 * time.Millisecond), "/hang": hang, "/shift": be.wait(2200 * time.Millisecond),
		"/events": func(u *upstreamConn, r *request) { // the first event is late
			u.body(r)
			time.Sleep(2200 * time.Millisecond)
			u.write("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n0\r\n\r\n")
		},
		"/body": func(u *upstreamConn, r *request) {
			u.body(r)
			u.write("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n")
			for range 20 {
				u.write("x")
				time.Sleep(110 * time.Millisecond)
			}
		},
		"/ws": func(u *upstreamConn, r *request) {
			time.Sleep(2200 * time.Millisecond)
			tunnelEcho(u, r)
		},
	}
	be.set(byPath(handlers))
	g.warmUp(t, "be", low)
	t.Run("B36/adaptive-cuts", func(t *testing.T) {
		const counted = `headgate_upstream_timeouts_total{cluster="default/be:80",kind="adaptive"}`
		before := g.metric(t, counted) // of warmUp, where the machine was slow
		begin := time.Now()
		r := exchange(t, g.addr, "GET /hang HTTP/1.1\r\nHost: be\r\n\r\n")
		wantStatus(t, r, 504)
		within(t, time.Since(begin), low)
		if !strings.Contains(string(r.body), "adaptive_timeout") {
			t.Errorf("got %q, want the reason", r.body)
		}
		if n := g.metric(t, counted) - before; n != 1 {
			t.Errorf("%v adaptive timeouts were counted", n)
		}
	})
	for _, c := range []struct{ name, request string }{
		{"route-timeout-wins", "GET /slow HTTP/1.1\r\nHost: limited\r\n\r\n"},
		{"route-0s-wins", "GET /slow HTTP/1.1\r\nHost: untimed\r\n\r\n"},
		{"event-stream", "GET /events HTTP/1.1\r\nHost: be\r\nAccept: text/html, Text/Event-Stream\r\n\r\n"},
		{"grpc", "POST /slow HTTP/1.1\r\nHost: be\r\nContent-Type: application/grpc+proto\r\nContent-Length: 0\r\n\r\n"},
		{"body", "GET /body HTTP/1.1\r\nHost: be\r\n\r\n"},
	} {
		t.Run("B36/adaptive-spares-"+c.name, func(t *testing.T) {
			g.warmUp(t, "be", low)
			r := exchange(t, g.addr, c.request)
			wantStatus(t, r, 200)
			if r.err != nil {
				t.Errorf("the body ended with %v", r.err)
			}
		})
	}
	t.Run("B36/adaptive-spares-upload", func(t *testing.T) { // the clock starts when the request was written
		g.warmUp(t, "be", low)
		c := dial(t, g.addr)
		c.send("POST /fast HTTP/1.1\r\nHost: be\r\nContent-Length: 20\r\n\r\n")
		for range 20 {
			c.send("x")
			time.Sleep(110 * time.Millisecond)
		}
		wantStatus(t, c.response("POST"), 200)
	})
	t.Run("B36/adaptive-spares-websocket", func(t *testing.T) {
		g.warmUp(t, "be", low)
		c := dial(t, g.addr)
		c.send(strings.Replace(upgradeRequest, "Host: a", "Host: be", 1))
		if h := c.head("GET"); h.status != 101 {
			t.Fatalf("got %q, want the switch", h.raw)
		}
		time.Sleep(2 * low)
		if err := c.pingpong("hello"); err != nil {
			t.Errorf("the tunnel: %v", err)
		}
	})
	t.Run("B36/shift-for-good", func(t *testing.T) { // an upstream that became slower is served again
		g.warmUp(t, "be", low)
		failed := 0
		c := dial(t, g.addr)
		for {
			r := c.get("be", "/shift")
			if r.status == 200 {
				break
			}
			wantStatus(t, r, 504)
			if failed++; failed > 8 {
				t.Fatalf("%d requests failed since answers take 2.2 s", failed)
			}
		}
		if failed == 0 {
			t.Error("none failed: the deadline was not enforced")
		}
	})
}

func TestAdaptiveTimeoutObserve(t *testing.T) {
	const low = 200 * time.Millisecond
	be := newBackend(t, "be")
	be.set(byPath(map[string]handler{"/fast": be.echo, "/slow": be.wait(time.Second)}))
	g := start(t, options{args: []string{"--adaptive-min", low.String(), "--adaptive-timeout", "observe"}}, be.manifest(), simpleRoute("be", be))
	g.warmUp(t, "be", low)
	wantStatus(t, exchange(t, g.addr, "GET /slow HTTP/1.1\r\nHost: be\r\n\r\n"), 200)
	if mode, d, _ := g.adaptiveTimeout(t, "default/be:80"); mode != "observe" || d < low {
		t.Errorf("%s, %v", mode, d)
	}
}
