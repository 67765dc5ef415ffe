package envtest

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/controllers"
)

// outage is how long the API server is away in TestOutage.
func outage(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("HEADGATE_OUTAGE")
	if text == "" {
		return 15 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("HEADGATE_OUTAGE: %v", err)
	}
	return d
}

// settled waits until replicas have written nothing for two seconds: longer than
// a status that changed waits for more changes.
func (w *world) settled(replicas ...*replica) {
	w.Helper()
	writes := func() (n int) {
		for _, r := range replicas {
			n += len(r.traffic.writes())
		}
		return n
	}
	last, since := writes(), time.Now()
	w.eventually(func() string {
		if n := writes(); n != last {
			last, since = n, time.Now()
		}
		if time.Since(since) < 2*time.Second {
			return fmt.Sprintf("it goes on writing: %d times", last)
		}
		return ""
	})
}

// The API server is away for a while (HEADGATE_OUTAGE, 15 s): every request of a
// client is answered, the replica stays ready, and nothing is written afterwards,
// for nothing has changed. Then changes are taken as before.
func TestOutage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, live := w.live()
	way, config := newLine(t, w.config)
	r := w.start(live, w.elected("one"), func(o *controllers.ManagerOptions) { o.Config.Host = config.Host })
	w.class()
	port := freePort(t)
	gw := w.gateway("gw", func(gw *gatewayv1.Gateway) { gw.Spec.Listeners[0].Port = gatewayv1.PortNumber(port) })
	hr := w.route("hr")
	w.wantGateway(gw, programmed(1))
	w.wantRoute(hr, attached(1))
	w.attachedRoutes(gw, 1)
	w.settled(r)
	versions := func() (out []string) {
		gc := &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: w.name}}
		for _, o := range []client.Object{gc, gw, hr, w.service(gw)} {
			w.refresh(o)
			out = append(out, fmt.Sprintf("%T %s", o, o.GetResourceVersion()))
		}
		return out
	}
	before, writes := versions(), len(r.traffic.writes())

	c := newCaller(t, port, "hr.example.com")
	var good, bad atomic.Int64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
			if got, err := c.get("/"); got == http.StatusFound && err == nil {
				good.Add(1)
			} else if bad.Add(1) == 1 {
				t.Errorf("a request was answered %d, %v", got, err)
			}
			select {
			case <-r.Loop().Ready():
			default:
				t.Error("not ready any more")
			}
		}
	}()
	long := outage(t)
	way.cut(true)
	time.Sleep(long)
	way.restore()
	back := time.Now()
	// It leads again: only then could it write.
	w.eventually(func() string {
		var lease leaseHolder
		if err := lease.read(w); err != nil {
			return err.Error()
		}
		if lease.renewed.Before(back) {
			return "it does not lead again"
		}
		return ""
	})
	t.Logf("leading again %v after the API server's return", time.Since(back))
	time.Sleep(5 * time.Second)
	close(stop)
	<-stopped
	t.Logf("away for %v: %d requests answered, %d not, on %d connections", long, good.Load(), bad.Load(), c.dials.Load())
	if c.dials.Load() != 1 {
		t.Errorf("the client had to connect %d times", c.dials.Load())
	}
	if after := versions(); !slices.Equal(before, after) {
		t.Errorf("written: %v, before %v", after, before)
	}
	for _, q := range r.traffic.writes()[writes:] {
		if q.status != 0 { // 0: it did not come to the API server
			t.Errorf("%s %s was written, though nothing had changed", q.method, q.path)
		}
	}

	// The longer it was away, the longer the watches wait before they try again: up
	// to a minute.
	more := w.route("more")
	c.host = "more.example.com"
	for time.Since(back) < 90*time.Second {
		if got, err := c.get("/"); got == http.StatusFound && err == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Logf("a change is served %v after the API server's return", time.Since(back))
	w.wantRoute(more, attached(1))
	w.attachedRoutes(gw, 2)
}

// The leader is cut off without a word: the other one takes over when the lease has
// run out, both go on serving, and the old one, when it is back, writes nothing.
func TestLeaderCutOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	way, config := newLine(t, w.config)
	first := w.start(w.elected("first"), func(o *controllers.ManagerOptions) { o.Config.Host = config.Host })
	w.class()
	gw := w.gateway("gw")
	w.wantGateway(gw, programmed(1)) // so it leads
	second := w.start(w.elected("second"))
	w.wantRoute(w.route("one"), attached(1))
	w.attachedRoutes(gw, 1)
	w.settled(first)
	cut := len(first.traffic.writes())
	way.cut(true)
	w.wantRoute(w.route("two"), attached(1))
	w.attachedRoutes(gw, 2)
	if n := len(first.plane.routes()); n != 1 {
		t.Errorf("the one that is cut off serves %d routes, want the one that it knew", n)
	}
	way.restore()
	w.eventually(func() string {
		if n := len(first.plane.routes()); n != 2 {
			return fmt.Sprintf("the old leader serves %d routes", n)
		}
		return ""
	})
	w.wantRoute(w.route("three"), attached(1))
	w.attachedRoutes(gw, 3)
	w.settled(second)
	for _, q := range first.traffic.writes()[cut:] {
		if q.status != 0 {
			t.Errorf("%v: the old leader wrote %s: %d", q.at.Format("15:04:05.000"), q.path, q.status)
		}
	}
	if got := len(second.plane.routes()); got != 3 {
		t.Errorf("the new leader serves %d routes", got)
	}
}

// What the API server says when it has forgotten the version from which a watch
// should go on: everything is read anew, and nothing is lost.
func TestExpiredWatches(t *testing.T) {
	for name, answer := range map[string]func(*http.Request) *http.Response{
		"at once": func(q *http.Request) *http.Response {
			return refuse(q, http.StatusGone, metav1.StatusReasonExpired)
		},
		"in the stream": func(q *http.Request) *http.Response {
			return breakOff(q, http.StatusGone, metav1.StatusReasonExpired)
		},
		"server error": func(q *http.Request) *http.Response {
			return breakOff(q, http.StatusInternalServerError, metav1.StatusReasonInternalError)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			way, config := newLine(t, w.config)
			var f faults
			r := w.start(f.between, func(o *controllers.ManagerOptions) { o.Config.Host = config.Host })
			w.class()
			gw := w.gateway("gw")
			goes := w.route("goes")
			w.wantRoute(goes, attached(1))
			var left atomic.Int64
			left.Store(4)
			f.set(func(q *http.Request) *http.Response {
				if (isWatch(q, "httproutes") || isWatch(q, "gateways")) && left.Add(-1) >= 0 {
					return answer(q)
				}
				return nil
			})
			way.cut(false) // so that the watches begin anew
			w.gone(goes)
			w.wantRoute(w.route("comes"), attached(1))
			w.attachedRoutes(gw, 1)
			if got := r.plane.routes(); len(got) != 1 || got[0] != w.name+"/comes" {
				t.Errorf("served are %v", got)
			}
			if n := len(f.set(nil)); n == 0 {
				t.Error("no watch was refused")
			}
		})
	}
}

// A connection that says nothing any more, though nobody has closed it, is noticed
// by HTTP/2's pings: by default after 45 s, here after 5.
func TestSilentConnection(t *testing.T) {
	t.Setenv("HTTP2_READ_IDLE_TIMEOUT_SECONDS", "3")
	t.Setenv("HTTP2_PING_TIMEOUT_SECONDS", "2")
	w := newWorld(t)
	way, config := newLine(t, w.config)
	r := w.start(func(o *controllers.ManagerOptions) {
		o.Config.Host = config.Host
		o.Config.Dial = way.dial // a transport of its own, made with these times
	})
	w.class()
	gw := w.gateway("gw")
	w.wantGateway(gw, programmed(1))
	way.freeze()
	hr := w.route("hr")
	began := time.Now()
	w.wantRoute(hr, attached(1))
	t.Logf("noticed after %v", time.Since(began))
	if time.Since(began) < 2*time.Second {
		t.Error("the connection was not silent")
	}
	if got := r.plane.routes(); len(got) != 1 {
		t.Errorf("served are %v", got)
	}
}

// Somebody has the port of a listener (B34 f): the status names him, and when he
// goes it is served within moments, without a restart.
func TestPortHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, live := w.live()
	w.start(live, withPorts)
	w.class()
	other := holdPort(t)
	gw := w.gateway("gw", func(gw *gatewayv1.Gateway) { gw.Spec.Listeners[0].Port = gatewayv1.PortNumber(other.port) })
	w.route("hr")
	w.wantGateway(gw, "Accepted=False/ListenersNotValid@1 Programmed=False/NoResources@1 ResolvedRefs=True/ResolvedRefs@1")
	cs := gw.Status.Listeners[0].Conditions
	if why := unlessContains(says(cs), "Programmed=False/PortUnavailable", cs[0].Message, fmt.Sprintf("127.0.0.1:%d is held by ", other.port),
		cs[0].Message, fmt.Sprintf("(pid %d, user %d)", other.pid, os.Getuid())); why != "" {
		t.Error(why)
	}
	other.stop()
	gone := time.Now()
	c := newCaller(t, other.port, "hr.example.com")
	w.eventually(func() string {
		if got, err := c.get("/"); err != nil || got != http.StatusFound {
			return fmt.Sprintf("it answers %d, %v", got, err)
		}
		return ""
	})
	t.Logf("served %v after the port was free", time.Since(gone))
	w.wantGateway(gw, programmed(1))
}

// A Service of type LoadBalancer with the address and port of a listener is told:
// connections may be taken by it before they come to us.
func TestRivalService(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.class()
	gw := w.gateway("gw")
	w.wantGateway(gw, programmed(1))
	lb := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.name, Name: "lb"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80}}},
	}
	w.create(lb)
	updateStatus(w, lb, func(lb *corev1.Service) {
		lb.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: gw.Status.Addresses[0].Value}}
	})
	message := func(part string, has bool) {
		t.Helper()
		w.eventually(func() string {
			w.refresh(gw)
			got := gw.Status.Listeners[0].Conditions[1].Message
			if has == (unlessContains(got, part) == "") {
				return ""
			}
			return "the listener says " + got
		})
	}
	message("Service "+w.name+"/lb of type LoadBalancer, which has "+gw.Status.Addresses[0].Value+":80 too", true)
	w.wantGateway(gw, programmed(1))
	w.gone(lb)
	message("LoadBalancer", false)
}
