package envtest

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers"
	"github.com/headgate/headgate/controllers/compile"
	"github.com/headgate/headgate/dataplane/ir"
)

// patience is how long a state is waited for. It says nothing about how soon it
// comes: where that matters a test measures it.
const patience = 90 * time.Second

// plane is a data plane that serves nothing and opens no socket.
type plane struct {
	mu       sync.Mutex
	snapshot *ir.Snapshot
	applied  int
	broken   map[string]error     // by socket
	first    map[string]time.Time // when a route was served first
}

func (p *plane) Apply(s *ir.Snapshot) ir.ApplyResult {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.snapshot = s
	p.applied++
	now := time.Now()
	for _, k := range s.Sockets {
		for _, l := range k.Listeners {
			for _, r := range l.Routes {
				if _, ok := p.first[r.Name]; !ok {
					if p.first == nil {
						p.first = make(map[string]time.Time)
					}
					p.first[r.Name] = now
				}
			}
		}
	}
	res := ir.ApplyResult{}
	for _, k := range s.Sockets {
		if err := p.broken[k.Name]; err != nil {
			if res.Sockets == nil {
				res.Sockets = make(map[string]error)
			}
			res.Sockets[k.Name] = err
		}
	}
	return res
}

// breaks has sockets fail from now on.
func (p *plane) breaks(sockets map[string]error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = sockets
}

// count tells how many snapshots were applied.
func (p *plane) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.applied
}

// routes returns the names of all routes that are served, sorted.
func (p *plane) routes() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	found := make(map[string]bool)
	if p.snapshot != nil {
		for _, s := range p.snapshot.Sockets {
			for _, l := range s.Listeners {
				for _, r := range l.Routes {
					found[r.Name] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// request is one request to the API server.
type request struct {
	at     time.Time // when it was sent
	method string
	path   string
	query  string
	status int
}

// traffic records the requests of one replica.
type traffic struct {
	base http.RoundTripper
	mu   sync.Mutex
	all  []request
}

func (w *traffic) RoundTrip(r *http.Request) (*http.Response, error) {
	q := request{at: time.Now(), method: r.Method, path: r.URL.Path, query: r.URL.RawQuery}
	res, err := w.base.RoundTrip(r)
	if err == nil {
		q.status = res.StatusCode
	}
	w.mu.Lock()
	w.all = append(w.all, q)
	w.mu.Unlock()
	return res, err
}

// writes returns the requests that changed something besides leases.
func (w *traffic) writes() []request {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []request
	for _, r := range w.all {
		if r.method != http.MethodGet && !strings.Contains(r.path, "/leases") {
			out = append(out, r)
		}
	}
	return out
}

func (w *traffic) requests() []request {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.all)
}

// replica is a running control plane.
type replica struct {
	*controllers.Manager
	plane   *plane
	traffic *traffic
	stop    func()
}

// world is a namespace, a GatewayClass, and what is needed to fill them.
type world struct {
	testing.TB
	client.Client
	ctx        context.Context
	config     *rest.Config
	name       string // of the namespace and the class
	controller gatewayv1.GatewayController
}

var worlds atomic.Int64

// newWorld makes a world on the shared API server.
func newWorld(t testing.TB) *world { return newWorldOn(t, server.config) }

func newWorldOn(t testing.TB, config *rest.Config) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, gatewayv1.Install, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("world-%d", worlds.Add(1))
	w := &world{TB: t, Client: c, ctx: t.Context(), config: config, name: name, controller: gatewayv1.GatewayController("headgate.dev/" + name)}
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	return w
}

// class makes the world's GatewayClass.
func (w *world) class() *gatewayv1.GatewayClass {
	w.Helper()
	gc := &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: w.name}, Spec: gatewayv1.GatewayClassSpec{ControllerName: w.controller}}
	w.create(gc)
	return gc
}

// start starts a replica and returns when it is ready. edit may change its
// options.
func (w *world) start(edit ...func(*controllers.ManagerOptions)) *replica {
	w.Helper()
	r := w.launch(edit...)
	select {
	case <-r.Loop().Ready():
	case <-time.After(patience):
		w.Fatal("the replica is not ready")
	}
	return r
}

// launch starts a replica.
func (w *world) launch(edit ...func(*controllers.ManagerOptions)) *replica {
	w.Helper()
	r := &replica{plane: &plane{}, traffic: &traffic{}}
	config := rest.CopyConfig(w.config)
	config.Wrap(func(base http.RoundTripper) http.RoundTripper {
		return roundTripper(func(q *http.Request) (*http.Response, error) {
			one := &traffic{base: base}
			res, err := one.RoundTrip(q)
			r.traffic.mu.Lock()
			r.traffic.all = append(r.traffic.all, one.all...)
			r.traffic.mu.Unlock()
			return res, err
		})
	})
	o := controllers.ManagerOptions{
		Config: config, DataPlane: r.plane, Services: true,
		Compile: compile.Options{
			ControllerName: string(w.controller),
			Addresses:      compile.Addresses{Pool: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}},
		},
		Logger: zaptest.NewLogger(w.TB, zaptest.Level(zapcore.WarnLevel)),
	}
	for _, e := range edit {
		e(&o)
	}
	m, err := controllers.NewManager(o)
	if err != nil {
		w.Fatal(err)
	}
	r.Manager = m
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				w.Errorf("the replica ended with %v", err)
			}
		case <-time.After(patience):
			w.Error("the replica does not end")
		}
	})
	w.Cleanup(r.stop)
	return r
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// elected has the replicas of a world elect a leader.
func (w *world) elected(identity string) func(*controllers.ManagerOptions) {
	return func(o *controllers.ManagerOptions) {
		o.Election = controllers.Election{Namespace: w.name, Name: "leader", Identity: identity, Lease: 4 * time.Second}
		o.Logger = zaptest.NewLogger(w.TB, zaptest.Level(zapcore.InfoLevel)).Named(identity)
	}
}

func (w *world) create(o client.Object) {
	w.Helper()
	if err := w.Create(w.ctx, o); err != nil {
		w.Fatal(err)
	}
}

// refresh reads an object anew.
func (w *world) refresh(o client.Object) {
	w.Helper()
	if err := w.Get(w.ctx, client.ObjectKeyFromObject(o), o); err != nil {
		w.Fatal(err)
	}
}

// update changes an object, whatever version it has now.
func update[T client.Object](w *world, o T, change func(T)) {
	w.Helper()
	w.refresh(o)
	base := o.DeepCopyObject().(client.Object)
	change(o)
	if err := w.Patch(w.ctx, o, client.MergeFrom(base)); err != nil {
		w.Fatal(err)
	}
}

// updateStatus changes an object's status as another program would.
func updateStatus[T client.Object](w *world, o T, change func(T)) {
	w.Helper()
	w.refresh(o)
	base := o.DeepCopyObject().(client.Object)
	change(o)
	if err := w.Status().Patch(w.ctx, o, client.MergeFrom(base)); err != nil {
		w.Fatal(err)
	}
}

// eventually waits until what is as it should be; it returns "" then, and else
// says why not.
func (w *world) eventually(what func() string) {
	w.Helper()
	deadline := time.Now().Add(patience)
	for {
		why := what()
		if why == "" {
			return
		}
		if time.Now().After(deadline) {
			w.Fatal(why)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
