package envtest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/controllers"
	"github.com/headgate/headgate/controllers/compile"
)

// Two replicas serve; one writes. When it ends the other takes over, and does not
// write again what is written.
func TestTwoReplicas(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.start(w.elected("first"))
	w.class()
	gw := w.gateway("gw")
	hr := w.route("hr")
	w.wantGateway(gw, programmed(1)) // so it leads
	second := w.start(w.elected("second"))
	w.wantRoute(hr, attached(1))
	other := w.route("other")
	w.wantRoute(other, attached(1))
	w.attachedRoutes(gw, 2)
	w.eventually(func() string {
		if !slices.Equal(first.plane.routes(), second.plane.routes()) {
			return fmt.Sprintf("one serves %v, the other %v", first.plane.routes(), second.plane.routes())
		}
		return ""
	})
	w.settled(first)
	first.stop()
	third := w.route("third")
	w.wantRoute(third, attached(1))
	w.attachedRoutes(gw, 3)
	for _, q := range second.traffic.writes() {
		if q.path != fmt.Sprintf("/apis/gateway.networking.k8s.io/v1/namespaces/%s/httproutes/third/status", w.name) &&
			q.path != fmt.Sprintf("/apis/gateway.networking.k8s.io/v1/namespaces/%s/gateways/gw/status", w.name) {
			t.Errorf("the second wrote %s", q.path)
		}
	}
}

// The API server is away: what was served is served on, and what changed
// meanwhile is taken afterwards. The replica leads again by itself.
func TestServerAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	way, config := newLine(t, w.config)
	r := w.start(w.elected("one"), func(o *controllers.ManagerOptions) { o.Config.Host = config.Host })
	w.class()
	gw := w.gateway("gw")
	hr := w.route("hr")
	w.wantGateway(gw, programmed(1))
	w.wantRoute(hr, attached(1))
	applied := r.plane.count()
	way.cut(true)
	meanwhile := w.route("meanwhile")
	time.Sleep(8 * time.Second) // the lease is lost
	if n := r.plane.count(); n != applied || len(r.plane.routes()) != 1 {
		t.Errorf("the data plane was touched: %d snapshots, %d before; routes %v", n, applied, r.plane.routes())
	}
	select {
	case <-r.Loop().Ready():
	default:
		t.Error("not ready any more")
	}
	way.restore()
	began := time.Now()
	for time.Since(began) < 60*time.Second && len(r.plane.routes()) != 2 {
		time.Sleep(50 * time.Millisecond)
	}
	t.Logf("what was missed was served %v after the API server's return", time.Since(began))
	w.wantRoute(meanwhile, attached(1))
}

// Connections to the API server break while routes come: none is lost.
func TestBrokenWatches(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	way, config := newLine(t, w.config)
	r := w.start(func(o *controllers.ManagerOptions) { o.Config.Host = config.Host })
	w.class()
	gw := w.gateway("gw")
	for i := range 20 {
		w.route(fmt.Sprintf("r-%d", i))
		if i%5 == 0 {
			way.cut(false)
		}
	}
	w.attachedRoutes(gw, 20)
	if n := len(r.plane.routes()); n != 20 {
		t.Errorf("%d routes are served, want 20", n)
	}
}

// Without an API server a replica waits; it is not ready, and does not end.
func TestServerAwayAtStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.class()
	gw := w.gateway("gw")
	way, config := newLine(t, w.config)
	way.cut(true)
	r := w.launch(func(o *controllers.ManagerOptions) { o.Config.Host = config.Host })
	select {
	case <-r.Loop().Ready():
		t.Fatal("ready without an API server")
	case <-time.After(3 * time.Second):
	}
	if n := r.plane.count(); n != 0 {
		t.Errorf("%d snapshots were applied", n)
	}
	way.restore()
	w.wantGateway(gw, programmed(1))
}

// Kinds that the cluster lacks are left out, said, and picked up when they come;
// and they may go again.
func TestMissingKinds(t *testing.T) {
	env, err := environment(false)
	if err != nil {
		t.Fatal(err)
	}
	config, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // after the replica has ended: the server waits for its watches
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	config.QPS = -1
	w := newWorldOn(t, config)
	r := w.start()
	missing := func() (names []string) {
		for _, p := range r.Loop().State().Problems {
			if p.Reason == "KindMissing" {
				names = append(names, p.Name)
			}
		}
		return names
	}
	if got := missing(); len(got) != 7 {
		t.Errorf("missing are %v, want the four of the Gateway API and ours", got)
	}
	crds := w.install()
	w.eventually(func() string {
		if got := missing(); len(got) != 0 {
			return fmt.Sprintf("still missing: %v", got)
		}
		return ""
	})
	gc := w.class()
	w.wantClass(gc, "SupportedVersion=True/SupportedVersion@1 headgate.dev/KindsServed=True/KindsServed@1", "")
	gw := w.gateway("gw")
	hr := w.route("hr")
	w.wantGateway(gw, programmed(1))
	w.wantRoute(hr, attached(1))
	for _, crd := range crds {
		if crd.GetName() == "httproutes.gateway.networking.k8s.io" {
			w.gone(crd)
		}
	}
	w.eventually(func() string {
		if got := r.plane.routes(); len(got) != 0 {
			return fmt.Sprintf("still served: %v", got)
		}
		if got := missing(); len(got) != 1 {
			return fmt.Sprintf("missing are %v", got)
		}
		return ""
	})
	w.attachedRoutes(gw, 0)
	w.wantClass(gc, "SupportedVersion=True/SupportedVersion@1 headgate.dev/KindsServed=False/KindMissing@1",
		"The cluster does not have httproutes.gateway.networking.k8s.io: ")
	if !strings.Contains(gc.Status.Conditions[2].Message, compile.InstallCRDs) {
		t.Errorf("the class says %q, want the command that installs them", gc.Status.Conditions[2].Message)
	}

	// And come again; another release is told.
	crds = w.install()
	w.wantClass(gc, "SupportedVersion=True/SupportedVersion@1 headgate.dev/KindsServed=True/KindsServed@1", "")
	again := w.route("again")
	w.wantRoute(again, attached(1))
	for _, crd := range crds {
		if crd.GetName() == "gateways.gateway.networking.k8s.io" {
			update(w, crd, func(o client.Object) {
				o.GetAnnotations()["gateway.networking.k8s.io/bundle-version"] = "v1.4.0"
			})
		}
	}
	w.wantClass(gc, "SupportedVersion=False/UnsupportedVersion@1 headgate.dev/KindsServed=True/KindsServed@1", "v1.4.0")
	w.wantGateway(gw, programmed(1)) // it does its best
}

// Only the Secrets that a Gateway names are read, and what they hold is told.
func TestSecretsByName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.start()
	w.class()
	w.secret("other", nil, nil)
	gw := w.gateway("gw", w.https("cert"))
	const unresolved = "Accepted=True/Accepted@1 Programmed=True/Programmed@1 ResolvedRefs=False/ListenersNotResolved@1"
	w.wantGateway(gw, unresolved)
	garbage := w.secret("cert", []byte("not a certificate"), []byte("not a key"))
	w.eventually(func() string {
		w.refresh(gw)
		return unlessContains(says(gw.Status.Listeners[0].Conditions), "InvalidCertificateRef", gw.Status.Listeners[0].Conditions[2].Message, "key pair")
	})
	w.gone(garbage)
	chain, key := pair(t, "a.example.com")
	good := w.secret("cert", chain, key)
	w.wantGateway(gw, programmed(1))
	w.gone(good)
	w.wantGateway(gw, unresolved)
	for _, q := range r.traffic.requests() {
		if q.path == "/api/v1/secrets" || q.path == "/api/v1/namespaces/"+w.name+"/secrets" &&
			!slices.Contains([]string{"cert"}, fieldName(q.query)) {
			t.Errorf("%s %s?%s reads more than what is named", q.method, q.path, q.query)
		}
	}
}

// A Gateway whose certificate is there is never seen without it.
func TestNoFlap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.start()
	w.class()
	chain, key := pair(t, "a.example.com")
	w.secret("one", chain, key)
	w.secret("two", chain, key)
	gw := w.gateway("gw", w.https("one"))
	w.wantGateway(gw, programmed(1))
	update(w, gw, func(gw *gatewayv1.Gateway) { gw.Spec.Listeners[0].TLS.CertificateRefs[0].Name = "two" })
	w.wantGateway(gw, programmed(2))
	w.settled(r)
	n := 0
	for _, q := range r.traffic.writes() {
		if q.method == http.MethodPatch && q.path == fmt.Sprintf("/apis/gateway.networking.k8s.io/v1/namespaces/%s/gateways/gw/status", w.name) {
			n++
		}
	}
	if n != 2 {
		t.Errorf("the Gateway was written %d times, want once for each of its generations", n)
	}
}
