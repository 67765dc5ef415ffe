package envtest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers"
	"github.com/headgate/headgate/controllers/node"
)

// node makes a Node that is ready.
func (w *world) node(name string) *corev1.Node {
	w.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.name + "-" + name}}
	w.create(n)
	w.Cleanup(func() { _ = w.Delete(w.ctx, n.DeepCopy()) })
	w.ready(n, corev1.ConditionTrue)
	return n
}

func (w *world) ready(n *corev1.Node, is corev1.ConditionStatus) {
	w.Helper()
	updateStatus(w, n, func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: is, LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now()}}
	})
}

// on runs a replica on a node, which reports itself.
func on(n *corev1.Node, stats node.Stats) func(*controllers.ManagerOptions) {
	return func(o *controllers.ManagerOptions) {
		o.Report = controllers.ReportOptions{Name: n.Name, NodeName: n.Name, Version: "test", Stats: stats, Every: 100 * time.Millisecond, Pace: time.Second}
	}
}

// dataPlane returns a DataPlane object, or nil.
func (w *world) dataPlane(name string) *v1alpha1.DataPlane {
	w.Helper()
	p := &v1alpha1.DataPlane{}
	err := w.Get(w.ctx, client.ObjectKey{Name: name}, p)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.Fatal(err)
	}
	return p
}

// busy is a data plane with one loop, always as busy.
type busy struct{ began time.Time }

func (b busy) Sample() node.Sample {
	return node.Sample{Connections: 42, Loops: []node.Loop{{Connections: 50, Busy: time.Since(b.began) / 2}}}
}

// Each replica says in an object of its node's what it serves and how busy it is;
// a Gateway's status tells what all nodes serve, and names the one that does not.
func TestDataPlanes(t *testing.T) {
	w := newWorld(t)
	one, two := w.node("one"), w.node("two")
	first := w.start(on(one, busy{time.Now()}), w.elected("one"))
	second := w.start(on(two, nil), w.elected("two"))
	w.class()
	gw := w.gateway("gw")
	w.wantGateway(gw, programmed(1))
	w.eventually(func() string {
		p := w.dataPlane(one.Name)
		switch {
		case p == nil:
			return "there is no DataPlane"
		case p.Status.Version != "test" || p.Status.NodeName != one.Name || p.Status.ControllerName != w.controller,
			p.Status.Connections != 42 || p.Status.BusyPercent != 50 || len(p.Status.Loops) != 1 || p.Status.Loops[0].BusyPercent != 50,
			len(p.Status.Gateways) != 1 || p.Status.Gateways[0].Name != "gw" || p.Status.Gateways[0].Generation != 1,
			p.Status.Snapshot.Hash != first.Loop().State().Hash || p.Status.Snapshot.Applied.IsZero() || p.Status.Started.IsZero(),
			len(p.OwnerReferences) != 1 || p.OwnerReferences[0].UID != one.UID:
			return fmt.Sprintf("it says %+v, owned by %v", p.Status, p.OwnerReferences)
		}
		return ""
	})

	// What is zero is there, too: a column that is blank says nothing.
	raw := &unstructured.Unstructured{}
	raw.SetAPIVersion(v1alpha1.GroupVersion.String())
	raw.SetKind("DataPlane")
	raw.SetName(two.Name)
	w.eventually(func() string {
		if p := w.dataPlane(two.Name); p == nil || p.Status.Version == "" {
			return "the second data plane has said nothing yet"
		}
		return ""
	})
	w.refresh(raw)
	for _, name := range []string{"connections", "busyPercent", "faults", "troubled"} {
		if n, ok, err := unstructured.NestedInt64(raw.Object, "status", name); n != 0 || !ok || err != nil {
			t.Errorf("%s is %d, %v, %v", name, n, ok, err)
		}
	}

	// Node two can't open the port; whichever replica leads, that is told.
	socket := gw.Status.Addresses[0].Value + ":80"
	second.plane.breaks(map[string]error{socket: fmt.Errorf("bind: %w", syscall.EADDRINUSE)})
	hostname := gatewayv1.Hostname("*.example.com")
	update(w, gw, func(g *gatewayv1.Gateway) { g.Spec.Listeners[0].Hostname = &hostname })
	w.eventually(func() string {
		w.refresh(gw)
		for _, c := range gw.Status.Listeners[0].Conditions {
			if c.Type == "Programmed" && c.Status == "False" && c.Reason == "PortUnavailable" && strings.HasPrefix(c.Message, "On "+two.Name+": ") {
				return ""
			}
		}
		return fmt.Sprintf("the listener says %v", gw.Status.Listeners[0].Conditions)
	})
	w.eventually(func() string {
		if p := w.dataPlane(two.Name); p.Status.Faults != 1 || len(p.Status.Gateways[0].Listeners) != 1 {
			return fmt.Sprintf("node two says %+v", p.Status)
		}
		return ""
	})
	second.plane.breaks(nil)
	w.wantGateway(gw, programmed(2))

	// When all is said it is quiet on all replicas.
	w.settled(first, second)
	quiet := [2]int{len(first.traffic.writes()), len(second.traffic.writes())}
	time.Sleep(2 * time.Second)
	for _, q := range append(first.traffic.writes()[quiet[0]:], second.traffic.writes()[quiet[1]:]...) {
		t.Errorf("%s %s though nothing changed", q.method, q.path)
	}

	// A replica that ends takes its object along, and is not waited for.
	second.stop()
	if p := w.dataPlane(two.Name); p != nil {
		t.Error("its object is still there")
	}
	update(w, gw, func(g *gatewayv1.Gateway) { g.Spec.Listeners[0].Hostname = nil })
	w.wantGateway(gw, programmed(3))
}

// A data plane that does not apply a Gateway is named after a while, and not
// before: until then its status stays. One whose Node is not ready does not count.
func TestDataPlaneBehind(t *testing.T) {
	w := newWorld(t)
	one, two := w.node("one"), w.node("two")
	w.start(on(one, nil))
	w.class()
	gw := w.gateway("gw")
	w.wantGateway(gw, programmed(1))
	silent := &v1alpha1.DataPlane{ObjectMeta: metav1.ObjectMeta{Name: two.Name}}
	w.create(silent)
	defer func() { _ = w.Delete(w.ctx, silent.DeepCopy()) }()
	applied := func(generation int64) {
		t.Helper()
		updateStatus(w, silent, func(p *v1alpha1.DataPlane) {
			p.Status.ControllerName, p.Status.NodeName = w.controller, two.Name
			p.Status.Gateways = []v1alpha1.GatewayOnNode{{Namespace: w.name, Name: "gw", Generation: generation}}
		})
	}
	applied(1)
	time.Sleep(300 * time.Millisecond)
	began := time.Now()
	update(w, gw, func(g *gatewayv1.Gateway) { g.Spec.Listeners[0].AllowedRoutes = fromAll() })
	const waiting = "Accepted=True/Accepted@2 Programmed=False/Pending@2 ResolvedRefs=True/ResolvedRefs@2"
	w.wantGateway(gw, waiting)
	if d := time.Since(began); d < 8*time.Second {
		t.Errorf("it was named after %v", d)
	}
	for _, c := range gw.Status.Conditions {
		if c.Type == "Programmed" && !strings.Contains(c.Message, two.Name+" still serves generation 1") {
			t.Errorf("it says %q", c.Message)
		}
	}
	applied(2)
	w.wantGateway(gw, programmed(2))
	applied(1)
	w.wantGateway(gw, waiting)
	w.ready(two, corev1.ConditionUnknown)
	w.wantGateway(gw, programmed(2))
}

// trouble is a data plane with a cluster whose state a test sets.
type trouble struct {
	mu sync.Mutex
	c  node.Cluster
}

func (s *trouble) Sample() node.Sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	return node.Sample{Loops: []node.Loop{{}}, Clusters: slices.Values([]node.Cluster{s.c})}
}

func (s *trouble) set(c node.Cluster) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.c = c
}

// events are the reasons of the events of a Service.
func (w *world) events(service string) []string {
	w.Helper()
	var list corev1.EventList
	if err := w.List(w.ctx, &list, client.InNamespace(w.name)); err != nil {
		w.Fatal(err)
	}
	var out []string
	for _, e := range list.Items {
		if e.InvolvedObject.Kind == "Service" && e.InvolvedObject.Name == service {
			out = append(out, e.Type+" "+e.Reason)
		}
	}
	slices.Sort(out)
	return out
}

// A pool that sheds and an endpoint that is ejected are told: by the DataPlane, the
// routes, the policy and an event; every 10 s at most, and once more when it is
// over.
func TestTrouble(t *testing.T) {
	w := newWorld(t)
	one := w.node("one")
	name := w.name + "/web:80"
	well := node.Cluster{Name: name, State: v1alpha1.PressureCalm, Size: 50, Active: 3, Endpoints: 3}
	stats := &trouble{c: well}
	r := w.start(on(one, stats))
	w.class()
	w.gateway("gw")
	w.backend("web")
	policy := w.policy("web", "web", nil)
	routes := []*gatewayv1.HTTPRoute{w.route("one", to("web", 80)), w.route("two", to("web", 80)), w.route("other")}
	for _, hr := range routes {
		w.wantRoute(hr, attached(1))
	}
	w.wantPolicy(policy, "web Accepted=True/Accepted@1")

	bad := well
	bad.State, bad.Active, bad.Held, bad.Ejected, bad.Service = v1alpha1.PressureShedding, 50, 20, 1, 812*time.Millisecond
	stats.set(bad)
	const troubled = " headgate.dev/BackendsHealthy=False/EndpointsOut@1 headgate.dev/Pressure=True/Shedding@1"
	w.wantRoute(routes[0], attached(1)+troubled)
	w.wantRoute(routes[1], attached(1)+troubled)
	w.wantRoute(routes[2], attached(1))
	w.eventually(func() string {
		w.refresh(policy)
		if policy.Status.State != v1alpha1.PressureShedding || policy.Status.Busiest != name+" on "+one.Name+": 50/50" {
			return fmt.Sprintf("the policy says %+v", policy.Status)
		}
		if got := w.events("web"); !slices.Equal(got, []string{"Warning BackendsUnhealthy", "Warning Pressure"}) {
			return fmt.Sprintf("events %q", got)
		}
		return ""
	})
	if p := w.dataPlane(one.Name); p.Status.Troubled != 1 || p.Status.Clusters[0].Name != name {
		t.Errorf("the DataPlane says %+v", p.Status)
	}

	// The figures go up and down for 3 s: nothing that was written is written again
	// because of them, but where 10 s have passed since.
	began := time.Now()
	for i := range 6 {
		next := bad
		next.Held = int64(20 + 20*i)
		stats.set(next)
		time.Sleep(500 * time.Millisecond)
	}
	last := make(map[string]time.Time)
	for _, q := range r.traffic.writes() {
		before, ok := last[q.path]
		last[q.path] = q.at
		if q.at.Before(began) || strings.Contains(q.path, "/dataplanes/") {
			continue
		}
		// The pause is counted from the answer, and half of it is plenty for that.
		if since := q.at.Sub(before); !ok || since < 5*time.Second {
			t.Errorf("%s %s, %v after it was written last", q.method, q.path, since)
		}
	}
	stats.set(well)
	const over = " headgate.dev/BackendsHealthy=True/Healthy@1 headgate.dev/Pressure=False/Calm@1"
	deadline := time.Now().Add(time.Minute)
	for {
		w.refresh(routes[0])
		if says(routes[0].Status.Parents[0].Conditions) == strings.TrimPrefix(attached(1)+over, "(gw) ") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the route says %v", routes[0].Status.Parents[0].Conditions)
		}
		time.Sleep(100 * time.Millisecond)
	}
	w.eventually(func() string {
		if got := w.events("web"); len(got) != 4 {
			return fmt.Sprintf("events %q", got)
		}
		return ""
	})
}
