package envtest

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/controllers"
)

// history follows the routes of a world and keeps every version that they had.
func (w *world) history() (versions func() []*gatewayv1.HTTPRoute) {
	w.Helper()
	c, err := client.NewWithWatch(w.config, client.Options{Scheme: w.Scheme()})
	if err != nil {
		w.Fatal(err)
	}
	watch, err := c.Watch(w.ctx, new(gatewayv1.HTTPRouteList), client.InNamespace(w.name))
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(watch.Stop)
	var mu sync.Mutex
	var all []*gatewayv1.HTTPRoute
	go func() {
		for e := range watch.ResultChan() {
			if hr, ok := e.Object.(*gatewayv1.HTTPRoute); ok {
				mu.Lock()
				all = append(all, hr)
				mu.Unlock()
			}
		}
	}()
	return func() []*gatewayv1.HTTPRoute {
		mu.Lock()
		defer mu.Unlock()
		return append([]*gatewayv1.HTTPRoute(nil), all...)
	}
}

// spoil gives a route a backend that does not exist, and mend takes it away.
func spoil(hr *gatewayv1.HTTPRoute) {
	port := gatewayv1.PortNumber(80)
	hr.Spec.Rules[0].Filters = nil
	hr.Spec.Rules[0].BackendRefs = []gatewayv1.HTTPBackendRef{{BackendRef: gatewayv1.BackendRef{
		BackendObjectReference: gatewayv1.BackendObjectReference{Name: "missing", Port: &port},
	}}}
}

func mend(hr *gatewayv1.HTTPRoute) {
	scheme := "https"
	hr.Spec.Rules[0].BackendRefs = nil
	hr.Spec.Rules[0].Filters = []gatewayv1.HTTPRouteFilter{{
		Type: gatewayv1.HTTPRouteFilterRequestRedirect, RequestRedirect: &gatewayv1.HTTPRequestRedirectFilter{Scheme: &scheme},
	}}
}

func spoilt(generation int64) string {
	return fmt.Sprintf("Accepted=True/Accepted@%[1]d ResolvedRefs=False/BackendNotFound@%[1]d", generation)
}

// An object changes while its status is on the way: what was found out about one
// generation is never said of another.
func TestGenerationRace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var f faults
	arrived, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	f.set(func(q *http.Request) *http.Response {
		if statusOf(q, "hr") {
			once.Do(func() { close(arrived) })
			<-release
		}
		return nil
	})
	r := w.start(f.between)
	w.class()
	w.gateway("gw")
	versions := w.history()
	hr := w.route("hr")
	select {
	case <-arrived:
	case <-time.After(patience):
		t.Fatal("the status of the route is not written")
	}
	update(w, hr, spoil)
	close(release)
	w.wantRoute(hr, "(gw) "+spoilt(2))
	conflicts := 0
	for _, q := range r.traffic.writes() {
		if strings.HasSuffix(q.path, "/hr/status") && q.status == http.StatusConflict {
			conflicts++
		}
	}
	if conflicts == 0 {
		t.Error("the status of the first generation was taken")
	}

	// Without a pause: every even generation is spoilt.
	for i := range 40 {
		if i%2 == 0 {
			update(w, hr, mend)
		} else {
			update(w, hr, spoil)
		}
	}
	w.wantRoute(hr, "(gw) "+spoilt(42))
	seen := 0
	for _, v := range versions() {
		for _, p := range v.Status.Parents {
			got, g := says(p.Conditions), p.Conditions[0].ObservedGeneration
			want := strings.TrimPrefix(attached(int(g)), "(gw) ")
			if g%2 == 0 {
				want = spoilt(g)
			}
			if seen++; got != want || g > v.Generation {
				t.Errorf("generation %d says %s, want %s", v.Generation, got, want)
			}
		}
	}
	t.Logf("%d versions with a status", seen)
	if seen == 0 {
		t.Error("no version with a status was seen")
	}
}

// A route of the same name is another route, whatever its predecessor was told.
func TestRecreatedRoute(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.start()
	w.class()
	w.gateway("gw")
	hr := w.route("hr")
	w.wantRoute(hr, attached(1))
	versions := w.history()
	kinds := map[types.UID]bool{} // whether it is spoilt
	for i := range 20 {
		if err := w.Delete(w.ctx, hr); err != nil {
			t.Fatal(err)
		}
		bad := i%2 == 0
		hr = w.route("hr", func(hr *gatewayv1.HTTPRoute) {
			if bad {
				spoil(hr)
			}
		})
		kinds[hr.UID] = bad
	}
	w.wantRoute(hr, attached(1))
	for _, v := range versions() {
		bad, known := kinds[v.UID]
		for _, p := range v.Status.Parents {
			if got := says(p.Conditions); known && (got == spoilt(1)) != bad {
				t.Errorf("%s says %s; spoilt: %v", v.UID, got, bad)
			}
		}
	}
	w.gone(hr)
	w.eventually(func() string {
		if got := r.plane.routes(); len(got) > 0 {
			return fmt.Sprintf("still served: %v", got)
		}
		return ""
	})
}

// To rename is to make another and to delete the one: Gateway, listener and route
// keep nothing of their old names.
func TestRenamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.start()
	w.class()
	old := w.gateway("gw")
	hr := w.route("hr")
	w.wantRoute(hr, attached(1))
	w.wantGateway(old, programmed(1))
	w.attachedRoutes(old, 1)

	now := w.gateway("renamed")
	w.wantGateway(now, programmed(1))
	if a, b := old.Status.Addresses[0].Value, now.Status.Addresses[0].Value; a == b {
		t.Errorf("two Gateways have the address %s", a)
	}
	update(w, hr, func(hr *gatewayv1.HTTPRoute) { hr.Spec.ParentRefs[0].Name = "renamed" })
	w.wantRoute(hr, strings.Replace(attached(2), "(gw)", "(renamed)", 1))
	w.attachedRoutes(old, 0)
	w.attachedRoutes(now, 1)
	w.gone(old)

	section := gatewayv1.SectionName("http")
	update(w, hr, func(hr *gatewayv1.HTTPRoute) { hr.Spec.ParentRefs[0].SectionName = &section })
	w.wantRoute(hr, strings.Replace(attached(3), "(gw)", "(renamed)", 1))
	update(w, now, func(gw *gatewayv1.Gateway) { gw.Spec.Listeners[0].Name = "web" })
	w.wantRoute(hr, "(renamed) Accepted=False/NoMatchingParent@3 ResolvedRefs=True/ResolvedRefs@3")
	w.wantGateway(now, programmed(2))
	if n := len(now.Status.Listeners); n != 1 || now.Status.Listeners[0].Name != "web" {
		t.Errorf("listeners %v, want web alone", now.Status.Listeners)
	}
	section = "web"
	update(w, hr, func(hr *gatewayv1.HTTPRoute) { hr.Spec.ParentRefs[0].SectionName = &section })
	w.wantRoute(hr, strings.Replace(attached(4), "(gw)", "(renamed)", 1))

	other := w.route("hr-renamed", func(o *gatewayv1.HTTPRoute) { o.Spec = *hr.Spec.DeepCopy() })
	w.gone(hr)
	w.wantRoute(other, strings.Replace(attached(1), "(gw)", "(renamed)", 1))
	w.eventually(func() string {
		if got := fmt.Sprint(r.plane.routes()); got != fmt.Sprintf("[%s/hr-renamed]", w.name) {
			return "served are " + got
		}
		return ""
	})
}

// Writes that fail are tried again ever more slowly, and the status is there once
// they can be made.
func TestWritesFail(t *testing.T) {
	for name, c := range map[string]struct {
		code   int
		reason metav1.StatusReason
		first  time.Duration // pause; they double, and each is half of that at least
	}{
		"conflict":    {http.StatusConflict, metav1.StatusReasonConflict, 20 * time.Millisecond},
		"unavailable": {http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, 200 * time.Millisecond},
		"forbidden":   {http.StatusForbidden, metav1.StatusReasonForbidden, 200 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var f faults
			f.set(func(q *http.Request) *http.Response {
				if statusOf(q, "hr") {
					return refuse(q, c.code, c.reason)
				}
				return nil
			})
			w.start(f.between)
			w.class()
			gw := w.gateway("gw")
			hr := w.route("hr")
			w.attachedRoutes(gw, 1) // another object's status is written meanwhile
			time.Sleep(3 * time.Second)
			times := f.set(nil)
			if n := len(times); n < 3 {
				t.Errorf("%d attempts in about 3 s, want 3 at least", n)
			}
			for i := 1; i < len(times); i++ {
				d, least := times[i].Sub(times[i-1]), min(c.first<<(i-1), 5*time.Second)/2
				if d < least {
					t.Errorf("attempt %d came %v after the one before, want %v at least", i, d, least)
				}
			}
			w.wantRoute(hr, attached(1))
		})
	}
}

// Somebody else writes the Gateway all the time: our writes are in conflict with
// his now and then, but not many, and in the end both have said all.
func TestBusyObject(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.start(func(o *controllers.ManagerOptions) { o.Services = false })
	w.class()
	gw := w.gateway("gw")
	w.wantGateway(gw, programmed(1))
	before := len(r.traffic.writes())
	for i := range 100 {
		update(w, gw, func(gw *gatewayv1.Gateway) {
			gw.Annotations = map[string]string{"example.com/beat": fmt.Sprint(i)}
		})
		if i%10 == 0 {
			w.route(fmt.Sprintf("r-%d", i))
		}
		time.Sleep(20 * time.Millisecond)
	}
	w.attachedRoutes(gw, 10)
	if gw.Annotations["example.com/beat"] != "99" {
		t.Errorf("annotations %v", gw.Annotations)
	}
	n := count(r.traffic.writes()[before:], "/gateways/gw/status")
	t.Logf("%d writes of the Gateway while it was written 100 times", n)
	if n > 60 {
		t.Errorf("%d writes of the Gateway", n)
	}
}
