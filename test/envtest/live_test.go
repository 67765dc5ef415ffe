package envtest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers"
	"github.com/headgate/headgate/controllers/compile"
	"github.com/headgate/headgate/dataplane"
	"github.com/headgate/headgate/dataplane/metrics"
	"github.com/headgate/headgate/dataplane/reactor"
)

// freePort returns a port that nobody listens on. It is below the range that the
// kernel gives to outgoing connections, so that none takes it meanwhile.
func freePort(t testing.TB) int {
	t.Helper()
	const low, span = 18_000, 2_000
	for range span {
		port := low + (os.Getpid()*97+int(portCursor.Add(1)))%span
		ln, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			ln.Close()
			return port
		}
	}
	t.Fatal("no free port")
	return 0
}

// portCursor is where the search for a free port goes on.
var portCursor atomic.Int64

// live makes a replica with a real data plane on the loopback address.
func (w *world) live(edit ...func(*dataplane.Options)) (*dataplane.Server, func(*controllers.ManagerOptions)) {
	w.Helper()
	m, err := metrics.New(metrics.Options{Loops: 2, Version: "test"})
	if err != nil {
		w.Fatal(err)
	}
	o := dataplane.Options{
		Reactor: reactor.Options{Workers: 2}, Metrics: m, Now: time.Now,
		Logger: zaptest.NewLogger(w.TB, zaptest.Level(zapcore.WarnLevel)),
	}
	for _, e := range edit {
		e(&o)
	}
	s, err := dataplane.New(o)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			w.Errorf("the data plane ended with %v", err)
		}
	})
	return s, func(o *controllers.ManagerOptions) {
		o.DataPlane = s
		o.Compile.TrustEndpoints = true // the backends are on this host
		o.Compile.Addresses = compile.Addresses{Bind: []netip.Addr{netip.MustParseAddr("127.0.0.1")}, Node: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}
	}
}

// endpoints gives the port http of a Service one endpoint.
func (w *world) endpoints(service string, backend *httptest.Server) {
	w.Helper()
	w.slice(service, service, netip.MustParseAddrPort(backend.Listener.Addr().String()))
}

// slice gives the port http of a Service one more endpoint.
func (w *world) slice(name, service string, at netip.AddrPort) {
	w.Helper()
	http, port := "http", int32(at.Port())
	w.create(&discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: w.name, Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &http, Port: &port}},
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{at.Addr().String()}}},
	})
}

// ownAddress returns an address of this host that an EndpointSlice may have: not the
// loopback one.
func ownAddress(t testing.TB) netip.Addr {
	t.Helper()
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() && p.Addr().IsGlobalUnicast() {
			return p.Addr()
		}
	}
	t.Fatal("this host has no IPv4 address besides the loopback one")
	return netip.Addr{}
}

// backendServer starts a backend that an EndpointSlice may name. edit may change it
// before.
func backendServer(t testing.TB, h http.HandlerFunc, edit ...func(*http.Server)) *httptest.Server {
	t.Helper()
	ln, err := net.Listen("tcp", netip.AddrPortFrom(ownAddress(t), 0).String())
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(h)
	s.Listener.Close()
	s.Listener = ln
	for _, e := range edit {
		e(s.Config)
	}
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// caller is a client with one connection, used by one goroutine at a time. When it
// is lost a request fails, and the next one makes another: net/http's client gives
// connections up by itself when this machine is slow.
type caller struct {
	addr  string
	host  string
	conn  net.Conn // nil before the first request
	r     *bufio.Reader
	dials atomic.Int64
}

func newCaller(t testing.TB, port int, host string) *caller {
	c := &caller{addr: fmt.Sprintf("127.0.0.1:%d", port), host: host}
	t.Cleanup(func() { c.close() })
	return c
}

func (c *caller) close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// ask sends a GET to a host. The body is to be read before the next one.
func (c *caller) ask(host, path string, edit ...func(*http.Request)) (*http.Response, error) {
	if c.conn == nil {
		conn, err := net.Dial("tcp", c.addr)
		if err != nil {
			return nil, err
		}
		c.dials.Add(1)
		c.conn, c.r = conn, bufio.NewReader(conn)
	}
	q, err := http.NewRequest(http.MethodGet, "http://"+host+path, nil)
	if err != nil {
		return nil, err
	}
	for _, e := range edit {
		e(q)
	}
	_ = c.conn.SetDeadline(time.Now().Add(5 * time.Minute))
	if err = q.Write(c.conn); err == nil {
		var res *http.Response
		if res, err = http.ReadResponse(c.r, q); err == nil {
			return res, nil
		}
	}
	c.close()
	return nil, err
}

// get returns the status of a GET.
func (c *caller) get(path string) (int, error) {
	res, err := c.ask(c.host, path)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return res.StatusCode, err
}

// A policy takes effect in a data plane under traffic: a pool of one place refuses
// a second request, a larger one takes it; and while policies come, change and go,
// no connection is lost and no request fails.
func TestPolicyTakesEffect(t *testing.T) {
	w := newWorld(t)
	_, live := w.live()
	hold, entered := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(hold) })
	backend := backendServer(t, func(_ http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/hold") {
			close(entered)
			<-hold
		}
	})
	defer release()
	port := freePort(t)
	w.start(live)
	w.class()
	gw := w.gateway("gw", func(gw *gatewayv1.Gateway) { gw.Spec.Listeners[0].Port = gatewayv1.PortNumber(port) })
	w.backend("web")
	w.endpoints("web", backend)
	w.route("web", to("web", 80))
	w.wantGateway(gw, programmed(1))
	host := "web.example.com"
	until := func(c *caller, want int) {
		t.Helper()
		w.eventually(func() string {
			if got, err := c.get("/"); got != want || err != nil {
				return fmt.Sprintf("it answers %d, %v; want %d", got, err, want)
			}
			return ""
		})
	}
	first, second := newCaller(t, port, host), newCaller(t, port, host)
	until(second, 200)
	one, none := int32(1), int32(0)
	policy := w.policy("web", "web", func(p *v1alpha1.BackendPolicy) { p.Spec.Pool = &v1alpha1.Pool{Size: &one, Waiting: &none} })
	w.wantPolicy(policy, "web Accepted=True/Accepted@1")
	held := make(chan string, 1)
	go func() {
		got, err := first.get("/hold")
		held <- fmt.Sprint(got, " ", err)
	}()
	select {
	case <-entered: // the place is taken
	case got := <-held:
		t.Fatalf("the request that should be held got %s", got)
	}
	until(second, 503)
	update(w, policy, func(p *v1alpha1.BackendPolicy) { *p.Spec.Pool.Size = 10 })
	until(second, 200)
	release()
	if got := <-held; got != "200 <nil>" {
		t.Errorf("the request that was held got %s", got)
	}

	// Traffic on several connections while the policy changes all the time.
	ctx, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	var requests atomic.Int64
	callers := []*caller{first, second, newCaller(t, port, host), newCaller(t, port, host)}
	for _, c := range callers {
		clients.Go(func() {
			for ctx.Err() == nil {
				if got, err := c.get("/"); got != 200 || err != nil {
					t.Errorf("a request got %d, %v", got, err)
					return
				}
				requests.Add(1)
			}
		})
	}
	for i := range 20 {
		update(w, policy, func(p *v1alpha1.BackendPolicy) {
			*p.Spec.Pool.Size = int32(10 + i)
			idle, age := v1alpha1.Duration(fmt.Sprintf("%ds", 10+i)), v1alpha1.Duration("1s")
			p.Spec.Pool.IdleTimeout, p.Spec.Pool.MaxAge = &idle, &age
			p.Spec.Balancing = &v1alpha1.Balancing{Type: []v1alpha1.BalancingType{v1alpha1.BalancingRoundRobin, v1alpha1.BalancingLeastRequest}[i%2]}
		})
		time.Sleep(20 * time.Millisecond)
	}
	w.gone(policy)
	some := requests.Load() + 100
	w.eventually(func() string {
		if n := requests.Load(); n < some && !t.Failed() {
			return fmt.Sprintf("%d requests, want %d", n, some)
		}
		return ""
	})
	stop()
	clients.Wait()
	t.Logf("%d requests during 20 changes", requests.Load())
	for i, c := range callers {
		if n := c.dials.Load(); n != 1 {
			t.Errorf("client %d made %d connections, want 1", i, n)
		}
	}
}
