package envtest

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/dataplane"
	"github.com/headgate/headgate/dataplane/ir"
	"github.com/headgate/headgate/dataplane/upstream"
)

// origin is a backend that says who it is and does as it is told.
type origin struct {
	addr     netip.AddrPort
	conns    atomic.Int64 // that were ever made to it
	requests atomic.Int64
	held     atomic.Int64 // requests for /hold that came
	status   atomic.Int64 // of what it answers, 200 before it is set
	delay    atomic.Int64 // before it does, nanoseconds
	health   atomic.Int64 // status of /healthz
	asked    atomic.Value // Host of the last /healthz
	release  chan struct{}
	let      func() // ends /hold and /stream
}

// slow is how long /slow takes.
const slow = time.Second

func newOrigin(t testing.TB) *origin {
	t.Helper()
	o := &origin{release: make(chan struct{})}
	o.let = sync.OnceFunc(func() { close(o.release) })
	o.status.Store(http.StatusOK)
	o.health.Store(http.StatusOK)
	s := backendServer(t, o.serve, func(s *http.Server) {
		s.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				o.conns.Add(1)
			}
		}
	})
	o.addr = netip.MustParseAddrPort(s.Listener.Addr().String())
	t.Cleanup(o.let) // before the server's, which waits for requests
	return o
}

func (o *origin) serve(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/healthz" {
		o.asked.Store(r.Host)
		w.WriteHeader(int(o.health.Load()))
		return
	}
	o.requests.Add(1)
	w.Header().Set("Origin", o.addr.String())
	w.Header().Set("From", r.RemoteAddr)
	switch r.URL.Path {
	case "/slow":
		time.Sleep(slow)
	case "/never":
		<-r.Context().Done()
	case "/hold":
		o.held.Add(1)
		o.wait(r)
	case "/stream":
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: first\n\n")
		_ = http.NewResponseController(w).Flush()
		o.wait(r)
		_, _ = io.WriteString(w, "data: last\n\n")
		return
	}
	time.Sleep(time.Duration(o.delay.Load()))
	w.WriteHeader(int(o.status.Load()))
}

func (o *origin) wait(r *http.Request) {
	select {
	case <-o.release:
	case <-r.Context().Done():
	}
}

// taken is a socket with an address of this host that nobody listens on.
func taken(t testing.TB) (fd int, at netip.AddrPort) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	own := ownAddress(t)
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: own.As4()}); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fd, netip.AddrPortFrom(own, uint16(name.(*syscall.SockaddrInet4).Port))
}

// refuser is an address whose connections are refused.
func refuser(t testing.TB) netip.AddrPort {
	t.Helper()
	_, at := taken(t)
	return at
}

// mute is an address that answers no SYN: its listener's queue is full.
func mute(t testing.TB) netip.AddrPort {
	t.Helper()
	fd, at := taken(t)
	if err := syscall.Listen(fd, 1); err != nil {
		t.Fatal(err)
	}
	for failed := 0; failed < 2; {
		c, err := net.DialTimeout("tcp4", at.String(), 500*time.Millisecond)
		if err != nil {
			failed++ // once may be this machine's being slow
			continue
		}
		failed = 0
		t.Cleanup(func() { c.Close() })
	}
	return at
}

// bench is a data plane that the controller feeds from the API server, and one client
// whose connection all requests come on.
type bench struct {
	*world
	server *dataplane.Server
	client *caller
	port   int
}

// subject is a Service with a route and a policy, on a bench.
type subject struct {
	*bench
	name   string
	policy *v1alpha1.BackendPolicy
}

// on runs a part of a test, with one Service and its origins. A response streams
// from one of them all the while, and must come whole, whatever is changed.
func (b *bench) on(name string, origins int, spec v1alpha1.BackendPolicySpec, run func(s *subject, o []*origin, busy *origin)) {
	b.Helper()
	b.TB.(*testing.T).Run(name, func(t *testing.T) {
		w, own := *b.world, *b
		w.TB, own.world = t, &w
		s := &subject{bench: &own, name: name}
		s.backend(name)
		s.policy = s.world.policy(name, name, func(p *v1alpha1.BackendPolicy) {
			spec.TargetRefs = p.Spec.TargetRefs
			p.Spec = spec
		})
		all := make([]*origin, origins)
		for i := range all {
			all[i] = newOrigin(t)
			s.join(i, all[i].addr)
		}
		s.route(name, to(name, 80))
		s.endpoints(origins)
		if origins == 0 {
			run(s, nil, nil)
			return
		}
		s.serves("/")
		var res *http.Response
		stream := newCaller(t, s.port, "")
		s.eventually(func() string {
			var err error
			if res, err = stream.ask(s.host(), "/stream"); err != nil {
				t.Fatal(err)
			}
			if res.StatusCode != http.StatusOK { // the policy may be a strict one
				_, _ = io.Copy(io.Discard, res.Body)
			}
			return unless(res.StatusCode, http.StatusOK)
		})
		defer res.Body.Close()
		busy := all[0]
		for _, o := range all {
			if o.addr.String() == res.Header.Get("Origin") {
				busy = o
			}
		}
		run(s, all, busy)
		busy.let()
		got, err := io.ReadAll(res.Body)
		if want := "data: first\n\ndata: last\n\n"; string(got) != want || err != nil {
			t.Errorf("the response that streamed all the while is %q, %v; want %q", got, err, want)
		}
	})
}

func (s *subject) host() string { return s.name + ".example.com" }

// join gives the Service an endpoint.
func (s *subject) join(i int, at netip.AddrPort) {
	s.Helper()
	s.slice(fmt.Sprintf("%s-%d", s.name, i), s.name, at)
}

// ask sends a GET on the connection that is never to be lost. The body of the answer
// is read.
func (s *subject) ask(path string, edit ...func(*http.Request)) *http.Response {
	s.Helper()
	res, err := s.client.ask(s.host(), path, edit...)
	if err != nil {
		s.Fatalf("the connection of the client is lost: %v", err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		s.Fatal(err)
	}
	res.Body = io.NopCloser(strings.NewReader(string(body)))
	return res
}

// shares sends n requests and tells how many each origin answered with 200.
func (s *subject) shares(n int, edit ...func(*http.Request)) map[string]int {
	s.Helper()
	got := make(map[string]int)
	for range n {
		if res := s.ask("/", edit...); res.StatusCode == http.StatusOK {
			got[res.Header.Get("Origin")]++
		}
	}
	return got
}

// fails waits until a request fails with a status and a reason.
func (s *subject) fails(path string, status int, reason string) {
	s.Helper()
	s.eventually(func() string {
		res := s.ask(path)
		body, _ := io.ReadAll(res.Body)
		if res.StatusCode != status || !strings.Contains(string(body), reason) {
			return fmt.Sprintf("%s is answered %d %q, want %d and %q", path, res.StatusCode, body, status, reason)
		}
		return ""
	})
}

// serves waits until a request is answered 200.
func (s *subject) serves(path string) {
	s.Helper()
	s.eventually(func() string { return unless(s.ask(path).StatusCode, http.StatusOK) })
}

// edit changes the policy and waits until the data plane has what it says.
func (s *subject) edit(change func(*v1alpha1.BackendPolicySpec), served func(*ir.Cluster) bool) {
	s.Helper()
	update(s.world, s.policy, func(p *v1alpha1.BackendPolicy) { change(&p.Spec) })
	s.eventually(func() string {
		snap, _ := s.server.Snapshot()
		for _, c := range snap.Clusters {
			if c.Name == s.cluster() && served(c) {
				return ""
			}
		}
		return "the data plane does not get what the policy says"
	})
}

func (s *subject) cluster() string { return s.world.name + "/" + s.name + ":80" }

// stats is what the data plane says of the Service.
func (s *subject) stats() upstream.Stats {
	for name, st := range s.server.Clusters() {
		if name == s.cluster() {
			return st
		}
	}
	return upstream.Stats{}
}

// is waits until the data plane says something of the Service.
func (s *subject) is(want func(upstream.Stats) bool) {
	s.Helper()
	s.eventually(func() string {
		if st := s.stats(); !want(st) {
			return fmt.Sprintf("it is %+v", st)
		}
		return ""
	})
}

// endpoints waits until the Service has n endpoints that take requests.
func (s *subject) endpoints(n int) {
	s.Helper()
	s.is(func(st upstream.Stats) bool { return st.Endpoints == n })
}

// aside sends a GET on a connection of its own and returns its status by and by.
func (s *subject) aside(path string) <-chan int {
	s.Helper()
	c, got := newCaller(s, s.port, s.host()), make(chan int, 1)
	go func() {
		status, _ := c.get(path) // 0 when it is lost
		got <- status
	}()
	return got
}

// unless compares two values.
func unless[T comparable](got, want T) string {
	if got != want {
		return fmt.Sprintf("got %v, want %v", got, want)
	}
	return ""
}

// newBench starts a replica with a data plane and a Gateway.
func newBench(t *testing.T, edit ...func(*dataplane.Options)) *bench {
	t.Helper()
	w := newWorld(t)
	server, live := w.live(edit...)
	b := &bench{world: w, server: server, port: freePort(t)}
	b.client = newCaller(t, b.port, "")
	w.start(live)
	w.class()
	gw := w.gateway("gw", func(gw *gatewayv1.Gateway) { gw.Spec.Listeners[0].Port = gatewayv1.PortNumber(b.port) })
	w.wantGateway(gw, programmed(1))
	return b
}
