package upstream

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/dataplane/ir"
)

func TestAConnectionIsUsedAgain(t *testing.T) {
	r := newRig(t, 1, Options{})
	c := r.cluster(ir.Pool{}, 0, "10.0.0.1:80")
	x := r.open(c, 0, Try{})
	tr := r.loops[0].last()
	r.serve(tr, okAnswer)
	x.want(t, "ready", "head", "data", "end")
	if string(x.data) != "ok" || x.Response.Status != 200 {
		t.Fatalf("response %d %q", x.Response.Status, x.data)
	}
	y := r.open(c, 0, Try{})
	tr.conn.OnRead([]byte(okAnswer))
	y.want(t, "ready", "head", "data", "end")
	if len(r.loops[0].dialed) != 1 {
		t.Fatalf("%d connections for two requests in turn", len(r.loops[0].dialed))
	}
	if got := strings.Count(string(tr.sent), "GET / HTTP/1.1\r\n"); got != 2 {
		t.Fatalf("%d requests sent: %q", got, tr.sent)
	}
	if s := c.Stats(); s.Active != 0 || s.Held != 0 {
		t.Fatalf("after both: %+v", s)
	}
}

func TestConnectionsThatMustNotBeUsedAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		answer string
		then   func(r *rig, tr *fakeTransport)
	}{
		"upstream says close":         {answer: "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"},
		"bytes behind the answer":     {answer: okAnswer + "HTTP/1.1 200 OK\r\n"},
		"closed while idle":           {answer: okAnswer, then: func(_ *rig, tr *fakeTransport) { tr.conn.OnRead(nil) }},
		"says something while idle":   {answer: okAnswer, then: func(_ *rig, tr *fakeTransport) { tr.conn.OnRead([]byte("H")) }},
		"reset while idle":            {answer: okAnswer, then: func(_ *rig, tr *fakeTransport) { tr.conn.OnClose(errRefused) }},
		"idle for too long":           {answer: okAnswer, then: func(r *rig, _ *fakeTransport) { r.loops[0].advance(61 * time.Second) }},
		"endpoint removed while idle": {answer: okAnswer, then: func(r *rig, _ *fakeTransport) { r.cluster(ir.Pool{}, 0, "10.0.0.2:80"); r.loops[0].run() }},
		"older than the maximum age":  {answer: okAnswer, then: func(r *rig, _ *fakeTransport) { r.loops[0].advance(31 * time.Second) }},
		"length told by the close":    {answer: "HTTP/1.1 200 OK\r\n\r\nok", then: func(_ *rig, tr *fakeTransport) { tr.conn.OnRead(nil) }},
		"cluster retired":             {answer: okAnswer, then: func(r *rig, _ *fakeTransport) { r.Retire(nil); r.loops[0].run() }},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 1, Options{})
			pool := ir.Pool{}
			if strings.Contains(name, "maximum age") {
				pool.MaxAge = 30 * time.Second
			}
			c := r.cluster(pool, 0, "10.0.0.1:80")
			x := r.open(c, 0, Try{})
			tr := r.loops[0].last()
			r.serve(tr, tc.answer)
			if tc.then != nil {
				tc.then(r, tr)
			}
			if got := x.events[len(x.events)-1]; got != "end" {
				t.Fatalf("the answer ended with %q", got)
			}
			if next := r.Cluster("ns/svc:80"); next != nil {
				r.open(next, 0, Try{})
				if len(r.loops[0].dialed) != 2 {
					t.Fatal("the next request used the old connection")
				}
			}
			if !tr.closed && !strings.Contains(name, "reset") {
				t.Fatal("the old connection is still open")
			}
		})
	}
}

func TestPoolBoundsAllLoopsTogether(t *testing.T) {
	r := newRig(t, 2, Options{Pressure: ir.Pressure{Held: 2, HoldTime: time.Second}})
	c := r.cluster(ir.Pool{Size: 2}, 0, "10.0.0.1:80")
	a, b := r.open(c, 0, Try{}), r.open(c, 1, Try{})
	r.loops[0].last().conn.OnConnect()
	r.loops[1].last().conn.OnConnect()
	w1, w2 := r.open(c, 1, Try{}), r.open(c, 1, Try{})
	shed := r.open(c, 0, Try{})
	shed.want(t, "fail pool_full")
	if shed.failure.Err.Status != 503 || !shed.failure.Unsent {
		t.Fatalf("shed with %+v", shed.failure)
	}
	w1.want(t)
	// The place that loop 0 gives back goes to loop 1, to the one that waited
	// longest.
	r.loops[0].last().conn.OnRead([]byte(okAnswer))
	a.want(t, "ready", "head", "data", "end")
	r.loops[1].run()
	r.loops[1].last().conn.OnConnect()
	w1.want(t, "ready")
	w2.want(t)
	r.loops[1].advance(2 * time.Second)
	w2.want(t, "fail pool_timeout")
	b.want(t, "ready")
	if s := c.Stats(); s.Active != 2 || s.Held != 0 {
		t.Fatalf("%+v", s)
	}
}

func TestWaitersAreServedInOrderAndNotOvertaken(t *testing.T) {
	r := newRig(t, 1, Options{})
	c := r.cluster(ir.Pool{Size: 1}, 0, "10.0.0.1:80")
	r.open(c, 0, Try{})
	tr := r.loops[0].last()
	tr.conn.OnConnect()
	first, second, third := r.open(c, 0, Try{}), r.open(c, 0, Try{}), r.open(c, 0, Try{})
	second.Cancel()
	tr.conn.OnRead([]byte(okAnswer))
	first.want(t, "ready")
	second.want(t)
	third.want(t)
	tr.conn.OnRead([]byte(okAnswer))
	third.want(t, "ready")
	third.Cancel()
	if s := c.Stats(); s.Active != 0 || s.Held != 0 {
		t.Fatalf("%+v", s)
	}
}

func TestWaitersFailWhenTheLastEndpointGoes(t *testing.T) {
	r := newRig(t, 1, Options{})
	c := r.cluster(ir.Pool{Size: 1}, 0, "10.0.0.1:80")
	r.open(c, 0, Try{})
	w := r.open(c, 0, Try{})
	r.Update([]*ir.Cluster{spec(ir.Pool{Size: 1}, 0)})
	r.Retire([]*ir.Cluster{{Name: c.Name()}})
	r.loops[0].last().conn.OnConnect()
	r.loops[0].last().conn.OnRead([]byte(okAnswer))
	w.want(t, "fail no_endpoints")
	n := r.open(c, 0, Try{})
	n.want(t, "fail no_endpoints")
}

// A loop may have matched a request by routes that are gone a moment later.
func TestARetiredClusterStillServesWhatWasMatched(t *testing.T) {
	r := newRig(t, 1, Options{})
	c := r.cluster(ir.Pool{Size: 1}, 0, "10.0.0.1:80")
	r.open(c, 0, Try{})
	waiting := r.open(c, 0, Try{})
	r.Retire(nil)
	r.loops[0].run()
	r.serve(r.loops[0].last(), okAnswer)
	if !r.loops[0].dialed[0].closed {
		t.Error("a connection of a retired cluster was kept")
	}
	r.serve(r.loops[0].last(), okAnswer)
	waiting.want(t, "ready", "head", "data", "end")
	late := r.open(c, 0, Try{})
	r.serve(r.loops[0].last(), okAnswer)
	late.want(t, "ready", "head", "data", "end")
}

func TestDrainingEndpointsGetNothingNew(t *testing.T) {
	r := newRig(t, 1, Options{})
	s := spec(ir.Pool{}, ir.BalanceRoundRobin, "10.0.0.1:80", "10.0.0.2:80")
	s.Endpoints[0].Draining = true
	r.Update([]*ir.Cluster{s})
	for range 20 {
		r.open(r.Cluster(s.Name), 0, Try{})
	}
	for _, tr := range r.loops[0].dialed {
		if tr.addr.String() != "10.0.0.2:80" {
			t.Fatalf("a request went to %s", tr.addr)
		}
	}
}

// TestClustersAreListed checks that the list follows what comes and goes, and that
// one which was handed out does not change.
func TestClustersAreListed(t *testing.T) {
	r := newRig(t, 1, Options{})
	want := func(list []*Cluster, names ...string) {
		t.Helper()
		var got []string
		for _, c := range list {
			got = append(got, c.Name())
		}
		if !slices.Equal(got, names) {
			t.Errorf("clusters %q, want %q", got, names)
		}
	}
	named := func(name string) *ir.Cluster {
		c := spec(ir.Pool{}, ir.BalanceRoundRobin, one)
		c.Name = name
		return c
	}
	a, b, c := named("a"), named("b"), named("c")
	want(r.Clusters())
	r.Update([]*ir.Cluster{b, c})
	first := r.Clusters()
	want(first, "b", "c")
	r.Update([]*ir.Cluster{a, c})
	want(r.Clusters(), "a", "b", "c")
	r.Retire([]*ir.Cluster{a, c})
	want(r.Clusters(), "a", "c")
	want(first, "b", "c")
	if n := testing.AllocsPerRun(10, func() { r.Clusters() }); n != 0 {
		t.Errorf("%v allocations for a list that did not change", n)
	}
}
