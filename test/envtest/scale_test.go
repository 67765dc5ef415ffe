package envtest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// each runs f for 0..n-1, a few at once.
func each(n int, f func(i int)) {
	var wg sync.WaitGroup
	next := make(chan int)
	for range 8 {
		wg.Go(func() {
			for i := range next {
				f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}

// count counts the writes to paths with the suffix since the first.
func count(all []request, suffix string) int {
	n := 0
	for _, q := range all {
		if strings.HasSuffix(q.path, suffix) {
			n++
		}
	}
	return n
}

// attachedRoutes waits until a Gateway counts n routes.
func (w *world) attachedRoutes(gw *gatewayv1.Gateway, n int32) {
	w.Helper()
	w.eventually(func() string {
		w.refresh(gw)
		if len(gw.Status.Listeners) == 0 || gw.Status.Listeners[0].AttachedRoutes != n {
			return fmt.Sprintf("attachedRoutes is not %d: %v", n, gw.Status.Listeners)
		}
		return ""
	})
}

// A thousand routes attach: their status settles soon after the last one, the
// Gateway is written a few times only, and then it is quiet.
func TestThousandRoutes(t *testing.T) {
	const routes = 1000
	w := newWorld(t)
	r := w.start()
	w.class()
	gw := w.gateway("gw")
	w.wantGateway(gw, programmed(1))
	before := len(r.traffic.writes())
	began := time.Now()
	list := make([]*gatewayv1.HTTPRoute, routes)
	each(routes, func(i int) { list[i] = w.route(fmt.Sprintf("r-%d", i)) })
	created := time.Now()
	w.eventually(func() string {
		all := r.traffic.writes()[before:]
		w.refresh(gw)
		if n := gw.Status.Listeners[0].AttachedRoutes; n != routes {
			return fmt.Sprintf("attachedRoutes is %d, want %d", n, routes)
		}
		if n := count(all, "/status"); n < routes {
			return fmt.Sprintf("%d status writes", n)
		}
		return ""
	})
	settled := time.Since(created)
	w.settled(r)
	all := r.traffic.writes()[before:]
	gateways := count(all, "/gateways/gw/status")
	t.Logf("created %d routes in %v; settled %v later; %d writes of the Gateway, %d of routes", routes, created.Sub(began), settled, gateways, len(all)-gateways)
	// Where the API server takes its time to create them, it does so here, too.
	if most := max(2*time.Second, created.Sub(began)/4); settled > most {
		t.Errorf("settled after %v, want %v at most", settled, most)
	}
	// One every other second, and some more before they are that slow.
	if most := 12 + int(settled+created.Sub(began))/int(2*time.Second); gateways > most {
		t.Errorf("%d writes of the Gateway, want %d at most", gateways, most)
	}
	seen := make(map[string]int)
	for _, q := range all {
		if seen[q.path]++; seen[q.path] > 1 && !strings.HasSuffix(q.path, "/gateways/gw/status") {
			t.Errorf("%s %s once more: %d", q.method, q.path, q.status)
		}
	}

	// Nothing happens: nothing is written. Somebody touches all: neither.
	quietly := len(r.traffic.writes())
	time.Sleep(2 * time.Second)
	each(routes, func(i int) {
		base := list[i].DeepCopy()
		list[i].Annotations = map[string]string{"example.com/touched": "yes"}
		list[i].Labels = map[string]string{"example.com/touched": "yes"}
		if err := w.Patch(w.ctx, list[i], client.MergeFrom(base)); err != nil {
			t.Error(err)
		}
	})
	time.Sleep(time.Second)
	for _, q := range r.traffic.writes()[quietly:] {
		t.Fatalf("%s %s though nothing changed", q.method, q.path)
	}

	began = time.Now()
	if err := w.DeleteAllOf(w.ctx, new(gatewayv1.HTTPRoute), client.InNamespace(w.name)); err != nil {
		t.Fatal(err)
	}
	deleted := time.Now()
	w.attachedRoutes(gw, 0)
	t.Logf("deleted in %v; settled %v later; %d writes of the Gateway", deleted.Sub(began), time.Since(deleted), count(r.traffic.writes()[quietly:], "/gateways/gw/status"))
}

// Routes are made one after the other beside many others: each is served soon
// after the API server has it.
func TestPropagation(t *testing.T) {
	const others, routes = 2000, 300
	w := newWorld(t)
	r := w.start()
	w.class()
	gw := w.gateway("gw")
	each(others, func(i int) { w.route(fmt.Sprintf("other-%d", i)) })
	w.attachedRoutes(gw, others)
	took, creation := make([]time.Duration, routes), make([]time.Duration, routes)
	for i := range took {
		name := fmt.Sprintf("r-%d", i)
		began := time.Now()
		w.route(name)
		created := time.Now()
		creation[i] = created.Sub(began)
		var served time.Time
		w.eventually(func() string {
			r.plane.mu.Lock()
			defer r.plane.mu.Unlock()
			if served = r.plane.first[w.name+"/"+name]; served.IsZero() {
				return name + " is not served"
			}
			return ""
		})
		// It may be served before the API server's answer is here.
		took[i] = max(0, served.Sub(created))
	}
	slices.Sort(took)
	p50, p99 := took[routes/2], took[routes*99/100]
	t.Logf("%d routes beside %d: served p50 %v, p99 %v, at most %v after the API server's answer", routes, others, p50, p99, took[routes-1])
	// On a machine that has other work, so has the API server.
	slices.Sort(creation)
	if most := max(100*time.Millisecond, 4*creation[routes/2]); p50 > most {
		t.Errorf("half of the routes took more than %v, want %v at most", p50, most)
	}
}

// Routes come and go; the count is right in the end.
func TestAttachedRoutes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.class()
	gw := w.gateway("gw")
	list := make([]*gatewayv1.HTTPRoute, 50)
	for i := range list {
		list[i] = w.route(fmt.Sprintf("r-%d", i))
	}
	w.attachedRoutes(gw, 50)
	for _, hr := range list[:30] {
		if err := w.Delete(w.ctx, hr); err != nil {
			t.Fatal(err)
		}
	}
	w.attachedRoutes(gw, 20)
}

// Another replica starts when all is said: it writes nothing.
func TestRestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.start()
	w.class()
	gw := w.gateway("gw")
	for i := range 20 {
		w.route(fmt.Sprintf("r-%d", i))
	}
	w.attachedRoutes(gw, 20)
	w.refresh(gw)
	had := gw.Status.Addresses[0].Value
	w.settled(first) // the routes' own status, and the Service
	first.stop()
	second := w.start()
	if n := len(second.plane.routes()); n != 20 {
		t.Errorf("ready with %d routes, want all 20", n)
	}
	time.Sleep(time.Second)
	for _, q := range second.traffic.writes() {
		t.Errorf("%s %s", q.method, q.path)
	}
	w.refresh(gw)
	if now := gw.Status.Addresses[0].Value; now != had {
		t.Errorf("the Gateway has %s, and had %s", now, had)
	}
}
