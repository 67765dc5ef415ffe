package status

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/api/v1alpha1"
)

// ceased is when the clusters of these tests ceased to be calm.
var ceased = metav1.NewTime(time.Date(2026, 1, 1, 12, 3, 11, 0, time.UTC))

// on is the cluster orders on nodes one, two and so on.
func on(nodes ...v1alpha1.ClusterOnNode) live {
	l := live{}
	for i, c := range nodes {
		c.Name, c.Since = orders, ceased
		l[orders] = append(l[orders], onNode{fmt.Sprintf("node-%d", i+1), c})
	}
	return l
}

// What is told differs by what keeps the places busy.
func TestPressureMessages(t *testing.T) {
	busy := v1alpha1.ClusterOnNode{State: v1alpha1.PressureShedding, Active: 47, Size: 50, Endpoints: 3, ServiceMillis: 800}
	with := func(f func(*v1alpha1.ClusterOnNode)) v1alpha1.ClusterOnNode {
		c := busy
		f(&c)
		return c
	}
	const raise = "raise pool.size in a BackendPolicy if the backend can do more at once, else add endpoints"
	for name, c := range map[string]struct {
		l    live
		want string
	}{
		"a slow backend sheds": {
			on(with(func(c *v1alpha1.ClusterOnNode) { c.RequestsPerSecond, c.ShedPercent, c.P99Millis = 60, 3, 810 })),
			"node-1: 47 of 50 connections busy since 12:03:11, 3 % of requests shed; " + raise + " or fix p99 = 810 ms",
		},
		"requests are held": {
			on(with(func(c *v1alpha1.ClusterOnNode) {
				c.State, c.Held, c.RequestsPerSecond, c.P99Millis = v1alpha1.PressureHolding, 9, 60, 810
			})),
			"node-1: 47 of 50 connections busy since 12:03:11, 9 requests held; " + raise + " or fix p99 = 810 ms",
		},
		"the last places are paced": {
			on(with(func(c *v1alpha1.ClusterOnNode) {
				c.State, c.RequestsPerSecond, c.P99Millis = v1alpha1.PressurePacing, 60, 810
			})),
			"node-1: 47 of 50 connections busy since 12:03:11, the last places are paced; " + raise + " or fix p99 = 810 ms",
		},
		"nothing is answered": {
			on(with(func(c *v1alpha1.ClusterOnNode) { c.RequestsPerSecond, c.ShedPercent = 60, 100 })),
			"node-1: 47 of 50 connections busy since 12:03:11, 100 % of requests shed; no answer came in the last seconds: see whether its endpoints hang",
		},
		"bodies keep the places": {
			on(with(func(c *v1alpha1.ClusterOnNode) {
				c.RequestsPerSecond, c.ShedPercent, c.P99Millis, c.ServiceMillis = 60, 3, 20, 12000
			})),
			"node-1: 47 of 50 connections busy since 12:03:11, 3 % of requests shed; answers that come begin within p99 = 20 ms, but a request keeps its place for 12000 ms, " +
				"for a long body, a stream, or an answer that does not come: raise pool.size in a BackendPolicy, or see to those",
		},
		"endpoints are missing": {
			on(with(func(c *v1alpha1.ClusterOnNode) {
				c.RequestsPerSecond, c.ShedPercent, c.P99Millis, c.Ejected = 60, 3, 810, 1
			})),
			"node-1: 47 of 50 connections busy since 12:03:11, 3 % of requests shed; bring the endpoints back that are out, see headgate.dev/BackendsHealthy; then " +
				raise + " or fix p99 = 810 ms",
		},
		"figures that another version does not tell": {
			on(busy), "node-1: 47 of 50 connections busy since 12:03:11, others are answered 503; " + raise + ": a request keeps its place for 800 ms",
		},
		"neither figures nor a time": {
			on(with(func(c *v1alpha1.ClusterOnNode) { c.ServiceMillis = 0 })),
			"node-1: 47 of 50 connections busy since 12:03:11, others are answered 503; " + raise,
		},
		"on three nodes, by their requests": {
			on(
				with(func(c *v1alpha1.ClusterOnNode) { c.RequestsPerSecond, c.ShedPercent, c.P99Millis = 900, 2, 810 }),
				with(func(c *v1alpha1.ClusterOnNode) { c.RequestsPerSecond, c.ShedPercent, c.P99Millis = 90, 20, 950 }),
				with(func(c *v1alpha1.ClusterOnNode) {
					c.State, c.RequestsPerSecond, c.P99Millis = v1alpha1.PressurePacing, 10, 100
				}),
			),
			"3 nodes: 141 of 150 connections busy since 12:03:11, 4 % of requests shed (worst on node-2: 47/50, 20 % shed, p99 950 ms); " +
				raise + " or fix p99 = 950 ms on node-2",
		},
		"a little on one of two": {
			on(
				with(func(c *v1alpha1.ClusterOnNode) {
					c.State, c.RequestsPerSecond, c.P99Millis = v1alpha1.PressurePacing, 9900, 10
				}),
				with(func(c *v1alpha1.ClusterOnNode) { c.RequestsPerSecond, c.ShedPercent, c.P99Millis = 10, 1, 400 }),
			),
			"2 nodes: 94 of 100 connections busy since 12:03:11, 1 % of requests shed (worst on node-2: 47/50, 1 % shed, p99 400 ms); " +
				raise + " or fix p99 = 400 ms on node-2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, says := c.l.pressure([]string{orders})
			if diff := cmp.Diff("cluster default/orders:80 on "+c.want, strings.Join(says, "|")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Which endpoints are out, why, and until when.
func TestHealthMessages(t *testing.T) {
	until := metav1.NewTime(time.Date(2026, 1, 1, 12, 3, 34, 0, time.UTC))
	a := v1alpha1.EndpointOnNode{Address: "10.42.0.7:8080", Until: &until, Message: "5 failed requests in a row, the last one: status 503"}
	b := v1alpha1.EndpointOnNode{Address: "10.42.0.8:8080", Message: "a failed check: status 500"}
	outs := func(endpoints, ejected, unwell int32, list ...v1alpha1.EndpointOnNode) v1alpha1.ClusterOnNode {
		return v1alpha1.ClusterOnNode{State: v1alpha1.PressureCalm, Endpoints: endpoints, Ejected: ejected, Unwell: unwell, Out: list}
	}
	var many []v1alpha1.EndpointOnNode
	for i := range v1alpha1.MaxOut {
		many = append(many, v1alpha1.EndpointOnNode{Address: fmt.Sprintf("10.42.0.%d:80", i), Message: "m"})
	}
	const see = "; see the logs of those backends"
	for name, c := range map[string]struct {
		l    live
		want string
	}{
		"well": {on(outs(3, 0, 0)), ""},
		"none is ready": {
			on(outs(0, 0, 0)),
			"cluster default/orders:80 on node-1 has no ready endpoint, so requests are answered 503; see kubectl get endpointslices -n default -l kubernetes.io/service-name=orders",
		},
		"two for two reasons": {
			on(outs(3, 1, 1, a, b)),
			"2 of 3 endpoints of default/orders:80 are out on node-1: 10.42.0.7:8080 (5 failed requests in a row, the last one: status 503; back at 12:03:34), " +
				"10.42.0.8:8080 (a failed check: status 500)" + see,
		},
		"one for two reasons": {
			on(outs(3, 1, 1, b)), "1 of 3 endpoints of default/orders:80 is out on node-1: 10.42.0.8:8080 (a failed check: status 500)" + see,
		},
		"all of them": {
			on(outs(1, 0, 1, b)),
			"1 of 1 endpoints of default/orders:80 is out on node-1: 10.42.0.8:8080 (a failed check: status 500); where all are out all are tried" + see,
		},
		"different ones on two nodes": {
			on(outs(2, 1, 0, a), outs(2, 1, 1, a, b)),
			"2 of 2 endpoints of default/orders:80 are out: 10.42.0.7:8080 (5 failed requests in a row, the last one: status 503; back at 12:03:34; on 2 nodes), " +
				"10.42.0.8:8080 (a failed check: status 500; on node-2); where all are out all are tried" + see,
		},
		"on one of two nodes": {on(outs(0, 0, 0), outs(3, 0, 1, b)),
			"cluster default/orders:80 on node-1 has no ready endpoint, so requests are answered 503; see kubectl get endpointslices -n default -l kubernetes.io/service-name=orders|" +
				"1 of 3 endpoints of default/orders:80 is out on node-2: 10.42.0.8:8080 (a failed check: status 500)" + see},
		"more than are named": {
			on(outs(40, 20, 0, many...)),
			"20 of 40 endpoints of default/orders:80 are out on node-1: 10.42.0.0:80 (m), 10.42.0.1:80 (m), 10.42.0.2:80 (m), 10.42.0.3:80 (m), " +
				"10.42.0.4:80 (m), 10.42.0.5:80 (m), 10.42.0.6:80 (m), 10.42.0.7:80 (m), and 12 more" + see,
		},
		"names that another version does not tell": {on(outs(3, 2, 0)), "2 of 3 endpoints of default/orders:80 are out on node-1" + see},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, strings.Join(c.l.health([]string{orders}), "|")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
