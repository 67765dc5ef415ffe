package status

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/compile"
)

const orders = "default/orders:80"

// full is a cluster that sheds on node-1, and whose pool fills on node-2.
func full() live {
	since, back := metav1.NewTime(time.Date(2026, 1, 1, 12, 3, 11, 0, time.UTC)), metav1.NewTime(time.Date(2026, 1, 1, 12, 3, 34, 0, time.UTC))
	return live{orders: {
		{"node-1", v1alpha1.ClusterOnNode{Name: orders, State: v1alpha1.PressureShedding, Since: since, Active: 50, Size: 50, Held: 12, Endpoints: 3, ServiceMillis: 900,
			RequestsPerSecond: 90, ShedPercent: 4, P50Millis: 640, P99Millis: 850}},
		{"node-2", v1alpha1.ClusterOnNode{Name: orders, State: v1alpha1.PressurePacing, Since: since, Active: 44, Size: 50, Endpoints: 3, Ejected: 1, Unwell: 1, ServiceMillis: 700,
			RequestsPerSecond: 30, P50Millis: 640, P99Millis: 740, Out: []v1alpha1.EndpointOnNode{
				{Address: "10.42.0.7:8080", Until: &back, Message: "5 failed requests in a row, the last one: status 503"},
				{Address: "10.42.0.8:8080", Message: "3 failed checks in a row, the last one: status 500"},
			}}},
	}}
}

func parent(cs ...metav1.Condition) gatewayv1.RouteParentStatus {
	return gatewayv1.RouteParentStatus{ControllerName: "us", ParentRef: gatewayv1.ParentReference{Name: "gw"}, Conditions: cs}
}

func told(ps []gatewayv1.RouteParentStatus) (out []string) {
	for _, c := range ps[0].Conditions {
		out = append(out, fmt.Sprintf("%s=%s %s @%d", c.Type, c.Status, c.Reason, c.ObservedGeneration))
	}
	return out
}

// A Service in trouble on very many nodes is told once, with the worst of them.
func TestLiveMany(t *testing.T) {
	l := live{}
	for i := range 200 {
		state := v1alpha1.PressurePacing
		if i >= 199 {
			state = v1alpha1.PressureShedding
		}
		l[orders] = append(l[orders], onNode{fmt.Sprintf("node-%03d", i), v1alpha1.ClusterOnNode{Name: orders, State: state, Size: 50, Endpoints: 3, Unwell: 1,
			Out: []v1alpha1.EndpointOnNode{{Address: "10.0.0.1:80", Message: "a failed check: status 500"}}}})
	}
	for _, c := range l.conditions([]string{orders}, 1) {
		has := map[string]string{
			ConditionPressure:        "cluster default/orders:80 on 200 nodes: 0 of 10000 connections busy since 00:00:00, others are answered 503 (worst on node-199: 0/50)",
			ConditionBackendsHealthy: "1 of 3 endpoints of default/orders:80 is out: 10.0.0.1:80 (a failed check: status 500; on 200 nodes); see",
		}[c.Type]
		if !strings.HasPrefix(c.Message, has) || len(c.Message) > 1024 {
			t.Errorf("%s: %d bytes: %s", c.Type, len(c.Message), c.Message)
		}
	}
}

// The conditions come with the first trouble and stay, and their messages say what
// an operator needs.
func TestLiveConditions(t *testing.T) {
	accepted := metav1.Condition{Type: "Accepted", Status: "True", Reason: "Accepted", ObservedGeneration: 7}
	r := &compile.RouteReport{Generation: 7, Clusters: []string{"default/other:80", orders}, Parents: []gatewayv1.RouteParentStatus{parent(accepted)}}
	got := full().parents(r, nil, "us")
	if diff := cmp.Diff([]string{
		"Accepted=True Accepted @7", "headgate.dev/BackendsHealthy=False EndpointsOut @7", "headgate.dev/Pressure=True Shedding @7",
	}, told(got)); diff != "" {
		t.Errorf("in trouble (-want +got):\n%s", diff)
	}
	if len(r.Parents[0].Conditions) != 1 {
		t.Error("the report was changed")
	}
	for i, want := range map[int]string{
		1: "2 of 3 endpoints of default/orders:80 are out on node-2: 10.42.0.7:8080 (5 failed requests in a row, the last one: status 503; back at 12:03:34), " +
			"10.42.0.8:8080 (3 failed checks in a row, the last one: status 500); see the logs of those backends",
		2: "cluster default/orders:80 on 2 nodes: 94 of 100 connections busy since 12:03:11, 12 requests held, 3 % of requests shed " +
			"(worst on node-1: 50/50, 4 % shed, p99 850 ms); bring the endpoints back that are out, see headgate.dev/BackendsHealthy; " +
			"then raise pool.size in a BackendPolicy if the backend can do more at once, else add endpoints or fix p99 = 850 ms on node-1",
	} {
		if m := got[0].Conditions[i].Message; m != want {
			t.Errorf("it says\n%s, want\n%s", m, want)
		}
	}
	if got := told((live{}).parents(r, nil, "us")); len(got) != 1 {
		t.Errorf("never in trouble: %v", got)
	}
	if diff := cmp.Diff([]string{
		"Accepted=True Accepted @7", "headgate.dev/BackendsHealthy=True Healthy @7", "headgate.dev/Pressure=False Calm @7",
	}, told((live{}).parents(r, got, "us"))); diff != "" {
		t.Errorf("out of trouble (-want +got):\n%s", diff)
	}
	if got := told((live)(nil).parents(r, got, "us")); len(got) != 1 {
		t.Errorf("nobody asks: %v", got)
	}
	none := live{orders: {{"node-1", v1alpha1.ClusterOnNode{Name: orders, State: v1alpha1.PressureCalm}}}}
	if got := told(none.parents(r, nil, "us")); len(got) != 2 || got[1] != "headgate.dev/BackendsHealthy=False EndpointsOut @7" {
		t.Errorf("no endpoint: %v", got)
	}
	if (live{}).digest(r.Clusters) != "" || full().digest(r.Clusters) == "" || full().digest(r.Clusters[:1]) != "" {
		t.Error("digests")
	}
}

func TestLivePolicy(t *testing.T) {
	p := &v1alpha1.BackendPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}}
	http := gatewayv1.SectionName("http")
	p.Spec.TargetRefs = []gatewayv1.LocalPolicyTargetReferenceWithSectionName{
		{LocalPolicyTargetReference: gatewayv1.LocalPolicyTargetReference{Kind: "Service", Name: "gone"}},
		{LocalPolicyTargetReference: gatewayv1.LocalPolicyTargetReference{Kind: "Service", Name: "orders"}, SectionName: &http},
	}
	services := []*corev1.Service{{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "orders"}, Spec: corev1.ServiceSpec{
		Ports: []corev1.ServicePort{{Name: "admin", Port: 81}, {Name: "http", Port: 80}},
	}}}
	clusters := targets(p, services)
	if diff := cmp.Diff([]string{orders}, clusters); diff != "" {
		t.Errorf("targets (-want +got):\n%s", diff)
	}
	var s v1alpha1.BackendPolicyStatus
	(live{}).policy(clusters, &s)
	if s.State != v1alpha1.PressureCalm || s.Since != nil {
		t.Errorf("never in trouble: %q", s.State)
	}
	full().policy(clusters, &s)
	if s.State != v1alpha1.PressureShedding || s.Busiest != "default/orders:80 on node-1: 50/50, 4 % shed, p99 850 ms" ||
		s.Since == nil || s.Since.Format(time.TimeOnly) != "12:03:11" {
		t.Errorf("in trouble: %q, %q, since %v", s.State, s.Busiest, s.Since)
	}
	(live{}).policy(clusters, &s)
	if s.State != v1alpha1.PressureCalm || s.Busiest != "" || s.Since != nil {
		t.Errorf("out of trouble: %q, %q", s.State, s.Busiest)
	}
	full().policy(clusters, &s)
	(live)(nil).policy(clusters, &s)
	if s.State != "" || s.Busiest != "" || s.Since != nil {
		t.Errorf("nobody asks: %q, %q", s.State, s.Busiest)
	}
	(live{}).policy(nil, &s)
	if s.State != "" {
		t.Errorf("no target: %q", s.State)
	}
}

// Transitions are told once, as events of the Service, and not those of a new
// leader's first look.
func TestHerald(t *testing.T) {
	in := compile.Input{Services: []*corev1.Service{{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "orders", UID: "uid"}}}}
	now := time.Unix(1e9, 0)
	h := &herald{}
	look := func(l live, want ...string) {
		t.Helper()
		var got []string
		for _, e := range h.news(now, &turn{input: in, live: l}, "us") {
			if e.InvolvedObject.UID != "uid" || e.Namespace != "default" || e.Message == "" || e.ReportingController != "us" {
				t.Errorf("event %+v", e)
			}
			got = append(got, e.Type+" "+e.Reason)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	}
	look(full())
	look(full())
	look(live{}, "Normal BackendsHealthy", "Normal PressureRelieved")
	now = now.Add(time.Second)
	look(full()) // too soon
	now = now.Add(livePace)
	look(full(), "Warning BackendsUnhealthy", "Warning Pressure")
	now = now.Add(time.Minute)
	look(full())
	in.Services = nil
	look(live{}) // the Service is gone
}

// What changes with the backends alone is written every 10 s at most; a change of
// the rest takes it along at once.
func TestLivePace(t *testing.T) {
	at := time.Unix(1e9, 0)
	p := planner{progress: make(map[subjectKey]*progress), now: func() time.Time { return at }}
	object := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Name: "r", ResourceVersion: "1"}}
	key := subjectKey{"HTTPRoute", types.NamespacedName{Name: "r"}}
	writes, said := 0, ""
	want := func(says, live string) {
		p.take(&turn{}, []subject{{subjectKey: key, says: says, live: live, object: object, change: func(client.Object, metav1.Time) write {
			if said == says+live {
				return nil
			}
			said = says + live
			return func(context.Context, client.Client) (client.Object, error) { return object, nil }
		}}})
	}
	run := func(d time.Duration) time.Duration {
		at = at.Add(d)
		jobs, wait := p.next(1)
		for _, j := range jobs {
			writes++
			p.done(outcome{key: j.key, says: j.says, live: j.live, base: j.base, object: object}, func(d time.Duration) time.Duration { return d })
			jobs, wait = p.next(1)
			if len(jobs) > 0 {
				t.Fatal("it is written twice")
			}
		}
		return wait
	}
	expect := func(what string, n int) {
		t.Helper()
		if writes != n {
			t.Errorf("%s: %d writes, want %d", what, writes, n)
		}
	}
	want("a", "")
	run(0)
	expect("the first look", 1)
	want("a", "busy")
	if wait := run(time.Second); wait != livePace-time.Second {
		t.Errorf("it waits for %v", wait)
	}
	want("a", "busier")
	run(8 * time.Second)
	expect("within 10 s", 1)
	run(time.Second)
	expect("after 10 s", 2)
	want("b", "busiest")
	run(4 * time.Second)
	expect("with another change", 3)
	want("b", "")
	run(time.Minute)
	expect("later", 4)
	want("b", "")
	run(time.Minute)
	expect("nothing new", 4)
}
