package admin

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate/headgate/dataplane/ir"
)

// fake is a data plane.
type fake struct {
	notReady error
	snapshot *ir.Snapshot
	loops    []Loop
}

func (f *fake) Ready() error           { return f.notReady }
func (f *fake) Snapshot() *ir.Snapshot { return f.snapshot }
func (f *fake) Loops() []Loop          { return f.loops }

// serve starts a server on addr and returns its base URL.
func serve(t *testing.T, dp DataPlane) string {
	t.Helper()
	return serveWith(t, Options{DataPlane: dp, Version: "v1<2>"})
}

func serveWith(t *testing.T, o Options) string {
	t.Helper()
	registry := prometheus.NewRegistry()
	up := prometheus.NewGauge(prometheus.GaugeOpts{Name: "test_up", Help: "Always 1."})
	up.Set(1)
	registry.MustRegister(up)
	o.Metrics = registry
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ln) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return "http://" + ln.Addr().String()
}

// On an address that others can reach there are the metrics and nothing else.
func TestMetricsOnly(t *testing.T) {
	url := serveWith(t, Options{MetricsOnly: true})
	for path, want := range map[string]int{
		"/metrics": 200, "/": 404, "/healthz": 404, "/readyz": 404, "/debug/snapshot": 404, "/debug/loops": 404,
		"/debug/pprof/": 404, "/debug/pprof/cmdline": 404, "/debug/pprof/heap": 404, "/metrics/../debug/loops": 404,
	} {
		resp, body := call(t, http.MethodGet, url+path, nil)
		if resp.StatusCode != want || want == 200 && !strings.Contains(body, "test_up 1") {
			t.Errorf("%s: %d, want %d: %s", path, resp.StatusCode, want, body)
		}
	}
}

// call makes a request, which edit may change, and returns the answer with its body.
func call(t *testing.T, method, url string, edit func(*http.Request)) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if edit != nil {
		edit(req)
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

func TestOptions(t *testing.T) {
	if _, err := New(Options{DataPlane: &fake{}}); err == nil {
		t.Error("accepted without metrics")
	}
	if _, err := New(Options{Metrics: prometheus.NewRegistry()}); err == nil {
		t.Error("accepted without a data plane")
	}
}

func TestPages(t *testing.T) {
	ready := serve(t, &fake{
		snapshot: &ir.Snapshot{Clusters: []*ir.Cluster{{Name: "shop/cart:80"}}},
		loops:    []Loop{{Index: 0, Conns: 3, Busy: 1500 * time.Millisecond, Events: 4, Wakeups: 5, Panics: 6}, {Index: 1}},
	})
	starting := serve(t, &fake{notReady: errors.New("no listener is bound")})
	for name, c := range map[string]struct {
		url    string
		status int
		kind   string
		body   string // part of it
	}{
		"alive":                {ready + "/healthz", 200, "text/plain", "ok\n"},
		"alive while starting": {starting + "/healthz", 200, "text/plain", "ok\n"},
		"ready":                {ready + "/readyz", 200, "text/plain", "ready\n"},
		"not ready":            {starting + "/readyz", 503, "text/plain", "not ready: no listener is bound\n"},
		"metrics":              {ready + "/metrics", 200, "text/plain", "\ntest_up 1\n"},
		"snapshot":             {ready + "/debug/snapshot", 200, "application/json", `"name": "shop/cart:80"`},
		"no snapshot":          {starting + "/debug/snapshot", 503, "text/plain", "no snapshot was applied yet\n"},
		"no loops":             {starting + "/debug/loops", 200, "application/json", "[]\n"},
		"no clusters":          {ready + "/debug/clusters", 200, "application/json", "[]\n"},
		"no stages":            {ready + "/debug/stages", 200, "application/json", "[]\n"},
		"profiles":             {ready + "/debug/pprof/", 200, "text/html", "goroutine"},
		"a profile":            {ready + "/debug/pprof/goroutine?debug=1", 200, "text/plain", "goroutine profile"},
		"command line":         {ready + "/debug/pprof/cmdline", 200, "text/plain", "admin.test"},
		"symbols":              {ready + "/debug/pprof/symbol", 200, "text/plain", "num_symbols"},
		"CPU profile":          {ready + "/debug/pprof/profile?seconds=1", 200, "application/octet-stream", ""},
		"trace":                {ready + "/debug/pprof/trace?seconds=0.01", 200, "application/octet-stream", ""},
		"index":                {ready + "/", 200, "text/html", "<h1>Headgate v1&lt;2&gt;</h1>"},
		"unknown":              {ready + "/nothing", 404, "text/plain", ""},
		"below a page":         {ready + "/healthz/x", 404, "text/plain", ""},
	} {
		t.Run(name, func(t *testing.T) {
			resp, body := call(t, "GET", c.url, nil)
			if resp.StatusCode != c.status || !strings.HasPrefix(resp.Header.Get("Content-Type"), c.kind) || !strings.Contains(body, c.body) {
				t.Errorf("%d %s %q, want %d %s with %q", resp.StatusCode, resp.Header.Get("Content-Type"), body, c.status, c.kind, c.body)
			}
		})
	}

	_, body := call(t, "GET", ready+"/debug/loops", nil)
	var loops []map[string]float64
	if err := json.Unmarshal([]byte(body), &loops); err != nil {
		t.Fatal(err)
	}
	want := []map[string]float64{
		{"loop": 0, "connections": 3, "busySeconds": 1.5, "events": 4, "wakeups": 5, "panics": 6},
		{"loop": 1, "connections": 0, "busySeconds": 0, "events": 0, "wakeups": 0, "panics": 0},
	}
	if diff := cmp.Diff(want, loops); diff != "" {
		t.Errorf("loops (-want +got):\n%s", diff)
	}
}

func TestClustersAndStages(t *testing.T) {
	p := newPages(Options{
		DataPlane: &fake{}, Metrics: prometheus.NewRegistry(),
		Clusters: func() []Cluster {
			return []Cluster{{Name: "shop/cart:80", State: "holding", Active: 47, Size: 50, Utilisation: 0.94, Held: 3, Timeout: Timeout{Mode: "enforce", Deadline: 5}}}
		},
		Stages: func() []Stage { return []Stage{{Name: "S4", Servers: 50, Rho: 0.94, Time: 0.02}} },
	})
	for path, want := range map[string]map[string]any{
		"/debug/clusters": {"name": "shop/cart:80", "state": "holding", "active": 47.0, "size": 50.0, "utilisation": 0.94, "held": 3.0},
		"/debug/stages":   {"name": "S4", "servers": 50.0, "rho": 0.94, "time": 0.02},
	} {
		rec := httptest.NewRecorder()
		p.ServeHTTP(rec, httptest.NewRequest("GET", path, nil))
		var got []map[string]any
		if err := json.Unmarshal(rec.Body.Bytes(), &got); err != nil || len(got) != 1 {
			t.Fatalf("%s: %v in %s", path, err, rec.Body)
		}
		for k, v := range want {
			if got[0][k] != v {
				t.Errorf("%s: %s is %v, want %v", path, k, got[0][k], v)
			}
		}
	}
}

// Every page that the index names is there.
func TestIndexLinks(t *testing.T) {
	base := serve(t, &fake{snapshot: &ir.Snapshot{}})
	_, index := call(t, "GET", base+"/", nil)
	links := 0
	for _, part := range strings.Split(index, `<a href="`)[1:] {
		path, _, _ := strings.Cut(part, `"`)
		links++
		if resp, _ := call(t, "GET", base+path, nil); resp.StatusCode != 200 {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
	if links < 6 {
		t.Errorf("%d links:\n%s", links, index)
	}
}

func TestGuard(t *testing.T) {
	base := serve(t, &fake{})
	host := func(h string) func(*http.Request) { return func(r *http.Request) { r.Host = h } }
	field := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	for name, c := range map[string]struct {
		method string
		edit   func(*http.Request)
		status int
	}{
		"HEAD":                   {"HEAD", nil, 200},
		"POST":                   {"POST", nil, 405},
		"PUT":                    {"PUT", nil, 405},
		"DELETE":                 {"DELETE", nil, 405},
		"OPTIONS":                {"OPTIONS", nil, 405},
		"localhost":              {"GET", host("localhost"), 200},
		"LocalHost. with a port": {"GET", host("LocalHost.:1234"), 200},
		"another loopback":       {"GET", host("127.1.2.3:80"), 200},
		"IPv6 loopback":          {"GET", host("[::1]:9901"), 200},
		"IPv6 without a port":    {"GET", host("[::1]"), 200},
		"mapped loopback":        {"GET", host("[::ffff:127.0.0.1]"), 200},
		"rebound name":           {"GET", host("evil.example"), 421},
		"rebound with a port":    {"GET", host("evil.example:9901"), 421},
		"name like the loopback": {"GET", host("127.0.0.1.evil.example"), 421},
		"name like localhost":    {"GET", host("localhost.evil.example"), 421},
		"other address":          {"GET", host("192.0.2.1"), 421},
		"brackets only":          {"GET", host("[]"), 421},
		"another site's page":    {"GET", field("Sec-Fetch-Site", "cross-site"), 403},
		"own page":               {"GET", field("Sec-Fetch-Site", "same-origin"), 200},
		"typed by hand":          {"GET", field("Sec-Fetch-Site", "none"), 200},
	} {
		t.Run(name, func(t *testing.T) {
			resp, body := call(t, c.method, base+"/healthz", c.edit)
			if resp.StatusCode != c.status {
				t.Errorf("%d %q, want %d", resp.StatusCode, body, c.status)
			}
			if got, want := resp.Header.Get("X-Frame-Options"), "DENY"; got != want {
				t.Errorf("X-Frame-Options is %q", got)
			}
			if c.status != 200 && strings.Contains(body, "ok\n") {
				t.Error("the page was served")
			}
			if allow := resp.Header.Get("Allow"); (c.status == 405) != (allow == "GET, HEAD") {
				t.Errorf("Allow is %q", allow)
			}
		})
	}
}

// On an address that others can reach, any name may be used; over the loopback
// of the same server still only the loopback's.
func TestGuardKnowsTheConnection(t *testing.T) {
	for _, c := range []struct {
		local  string
		status int
	}{{"192.0.2.1", 200}, {"127.0.0.1", 421}, {"::1", 421}} {
		r, err := http.NewRequest("GET", "http://node.example/", nil)
		if err != nil {
			t.Fatal(err)
		}
		local := &net.TCPAddr{IP: net.ParseIP(c.local), Port: 9901}
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, local))
		w := &recorder{header: http.Header{}, status: 200}
		guard(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, r)
		if w.status != c.status {
			t.Errorf("over %s: %d, want %d", c.local, w.status, c.status)
		}
	}
}

type recorder struct {
	header http.Header
	status int
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(p []byte) (int, error) { return len(p), nil }

// pipes is a listener of connections that are made in memory.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error {
	close(p.closed)
	return nil
}

func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// Clients that do not get to the end of a head, or have no further request, are
// let go in time.
func TestSilentClients(t *testing.T) {
	for name, c := range map[string]struct {
		send string
		wait time.Duration
	}{
		"half a head": {"GET / HTTP/1.1\r\nHost: loc", readHeaderTimeout},
		"keep-alive":  {"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", idleTimeout},
		"half a body": {"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nhalf", 0},
		"no chunk":    {"GET /healthz HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, err := New(Options{DataPlane: &fake{}, Metrics: prometheus.NewRegistry()})
				if err != nil {
					t.Fatal(err)
				}
				ln := pipes{make(chan net.Conn), make(chan struct{})}
				go func() { _ = s.Serve(ln) }()
				client, server := net.Pipe()
				began := time.Now()
				ln.conns <- server
				go func() { _, _ = client.Write([]byte(c.send)) }()
				if _, err := io.ReadAll(client); err != nil {
					t.Error(err)
				}
				if d := time.Since(began); d < c.wait || d > c.wait+time.Second {
					t.Errorf("let go after %v, want %v", d, c.wait)
				}
				if err := s.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// stuck is a data plane that does not answer.
type stuck struct {
	fake
	asked, release chan struct{}
}

func (s *stuck) Ready() error {
	close(s.asked)
	<-s.release
	return nil
}

// Close does not wait longer than it is told.
func TestCloseCutsOff(t *testing.T) {
	dp := &stuck{asked: make(chan struct{}), release: make(chan struct{})}
	defer close(dp.release)
	s, err := New(Options{DataPlane: dp, Metrics: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ln) }()
	conn, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	<-dp.asked
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if err := s.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Close: %v", err)
	}
	if err := <-ended; err != nil {
		t.Errorf("Serve: %v", err)
	}
	if answer, _ := io.ReadAll(conn); len(answer) != 0 {
		t.Errorf("an answer was cut off, but %q came", answer)
	}
}
