package upstream

import (
	"fmt"
	"testing"
	"time"

	"github.com/headgate/headgate/dataplane/ir"
	"github.com/headgate/headgate/dataplane/message"
)

// adaptiveRig is a rig with one cluster of the given adaptive timeout.
func adaptiveRig(t *testing.T, a ir.AdaptiveTimeout, pool ir.Pool) (*rig, *Cluster) {
	t.Helper()
	r := newRig(t, 1, Options{})
	r.Manager.opts.Now = func() time.Time { return r.loops[0].now }
	s := spec(pool, 0, "10.0.0.1:80")
	s.Adaptive = a
	r.Update([]*ir.Cluster{s})
	return r, r.Cluster(s.Name)
}

// answerAfter sends a request, which is answered after d unless it is cut before.
func (r *rig) answerAfter(c *Cluster, t Try, d time.Duration) *caller {
	l := r.loops[0]
	dialed := len(l.dialed)
	x := r.open(c, 0, t)
	tr := l.last()
	if len(l.dialed) > dialed {
		tr.conn.OnConnect()
	}
	l.advance(d)
	if x.Active() {
		tr.conn.OnRead([]byte(okAnswer))
	}
	return x
}

func TestAdaptiveTimeout(t *testing.T) {
	warm := func(r *rig, c *Cluster, d time.Duration) {
		for range 50 {
			r.answerAfter(c, Try{}, d).want(r.t, "ready", "head", "data", "end")
		}
	}
	second := ir.AdaptiveTimeout{Min: time.Second}
	for _, tc := range []struct {
		name   string
		a      ir.AdaptiveTimeout
		pool   ir.Pool
		try    Try
		after  time.Duration // when the hung request is cut
		reason string
	}{
		{"cut at the least deadline", second, ir.Pool{}, Try{}, time.Second, ReasonAdaptiveTimeout},
		{"cut at beta estimates", ir.AdaptiveTimeout{Min: time.Millisecond, Beta: 4}, ir.Pool{}, Try{}, 1600 * time.Millisecond, ReasonAdaptiveTimeout},
		{"by default not before 5 s", ir.AdaptiveTimeout{}, ir.Pool{}, Try{}, 5 * time.Second, ReasonAdaptiveTimeout},
		{"observed only", ir.AdaptiveTimeout{Min: time.Second, Mode: ir.AdaptiveObserve}, ir.Pool{}, Try{}, time.Minute, ReasonResponseTimeout},
		{"off", ir.AdaptiveTimeout{Min: time.Second, Mode: ir.AdaptiveOff}, ir.Pool{}, Try{}, time.Minute, ReasonResponseTimeout},
		{"an event stream", second, ir.Pool{}, Try{Streaming: true}, time.Minute, ReasonResponseTimeout},
		{"the route's own timeouts", second, ir.Pool{}, Try{Untimed: true}, 0, ""},
		{"a shorter response timeout", second, ir.Pool{ResponseTimeout: 900 * time.Millisecond}, Try{}, 900 * time.Millisecond, ReasonResponseTimeout},
		{"no response timeout", second, ir.Pool{ResponseTimeout: -1}, Try{}, 0, ""},
		{"no response timeout, but a greatest deadline", ir.AdaptiveTimeout{Min: time.Second, Max: 9 * time.Second}, ir.Pool{ResponseTimeout: -1}, Try{}, time.Second, ReasonAdaptiveTimeout},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, c := adaptiveRig(t, tc.a, tc.pool)
			r.t = t
			warm(r, c, 400*time.Millisecond)
			tr := r.loops[0].last()
			x := r.open(c, 0, tc.try)
			if tc.reason == "" {
				r.loops[0].advance(time.Hour)
				x.want(t, "ready")
				return
			}
			r.loops[0].advance(tc.after - 50*time.Millisecond)
			x.want(t, "ready")
			r.loops[0].advance(100 * time.Millisecond)
			x.want(t, "ready", "fail "+tc.reason)
			if x.failure.Err.Status != 504 || x.failure.Unsent || !tr.closed {
				t.Errorf("status %d, unsent %v, connection closed %v", x.failure.Err.Status, x.failure.Unsent, tr.closed)
			}
		})
	}
}

// What did not come is learned too: an upstream that becomes 20 times slower for
// good is served again after a bounded number of failures (ewma's DESIGN.md: 3).
func TestNoDeathSpiral(t *testing.T) {
	r, c := adaptiveRig(t, ir.AdaptiveTimeout{Min: time.Millisecond}, ir.Pool{})
	for range 100 {
		r.answerAfter(c, Try{}, 10*time.Millisecond)
	}
	failed := 0
	for range 20 {
		x := r.answerAfter(c, Try{}, 200*time.Millisecond)
		if x.failure.Err == nil {
			break
		}
		failed++
	}
	if failed == 0 || failed > 4 {
		t.Errorf("%d requests failed before one was served", failed)
	}
	if s := c.Stats().Timeout; s.Censored != uint64(failed) || s.Changes == 0 {
		t.Errorf("%d failed: %+v", failed, s)
	}
}

// warm has a cluster answer 100 requests in 5 ms each.
func (r *rig) warm(c *Cluster) {
	for range 100 {
		r.answerAfter(c, Try{}, 5*time.Millisecond)
	}
}

// Default settings hurt nobody who answers within 5 s, and none whose request or
// response takes its time.
func TestDefaultsHurtNobody(t *testing.T) {
	for name, run := range map[string]func(*rig, *Cluster) []*caller{
		"a mixed upstream": func(r *rig, c *Cluster) (out []*caller) {
			for i := range 400 {
				d := 5 * time.Millisecond
				if i%20 == 19 { // 5 %
					d = 3 * time.Second
				}
				out = append(out, r.answerAfter(c, Try{}, d))
			}
			return out
		},
		"a cold start": func(r *rig, c *Cluster) []*caller {
			return []*caller{r.answerAfter(c, Try{}, 50*time.Second), r.answerAfter(c, Try{}, 20*time.Millisecond), r.answerAfter(c, Try{}, 4*time.Second)}
		},
		"one request a minute": func(r *rig, c *Cluster) (out []*caller) {
			for i := range 60 {
				out = append(out, r.answerAfter(c, Try{}, time.Duration(1+i%5)*990*time.Millisecond))
				r.loops[0].advance(time.Minute)
			}
			return out
		},
		"a report after a long silence": func(r *rig, c *Cluster) (out []*caller) {
			r.warm(c)
			r.loops[0].advance(24 * time.Hour)
			return append(out, r.answerAfter(c, Try{}, 50*time.Second))
		},
		"an upload of 2 minutes": func(r *rig, c *Cluster) []*caller {
			r.warm(c)
			x := &caller{}
			x.Init(r.loops[0], x, nil)
			x.onReady = func() {
				x.SendHead(&message.Request{Method: []byte("POST"), Host: []byte("a"), Path: []byte("/"), ContentLength: 120, Major: 1, Minor: 1})
			}
			x.Open(c.Shard(0), Try{})
			tr := r.loops[0].last()
			for range 120 {
				r.loops[0].advance(time.Second)
				x.SendData([]byte("x"))
			}
			x.SendEnd(nil)
			r.loops[0].advance(4 * time.Second)
			tr.conn.OnRead([]byte(okAnswer))
			x.want(r.t, "ready", "head", "data", "end")
			return []*caller{x}
		},
		"events for 10 minutes": func(r *rig, c *Cluster) []*caller {
			r.warm(c)
			x := r.open(c, 0, Try{Streaming: true})
			tr := r.loops[0].last()
			r.loops[0].advance(50 * time.Second) // until there is something to tell
			tr.conn.OnRead([]byte("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"))
			for i := range 10 {
				r.loops[0].advance(time.Minute)
				tr.conn.OnRead([]byte("data: 1\n\n"))
				if len(x.data) != 9*(i+1) {
					r.t.Errorf("after %d minutes %q", i+1, x.data)
				}
			}
			return []*caller{x}
		},
		"a WebSocket": func(r *rig, c *Cluster) []*caller {
			r.warm(c)
			x := r.open(c, 0, Try{Streaming: true})
			tr := r.loops[0].last()
			r.loops[0].advance(50 * time.Second)
			tr.conn.OnRead([]byte("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"))
			r.loops[0].advance(time.Hour)
			tr.sent = nil
			x.SendData([]byte("ping"))
			tr.conn.OnRead([]byte("pong"))
			if string(tr.sent) != "ping" || string(x.data) != "pong" {
				r.t.Errorf("after an hour %q was sent, and %q came", tr.sent, x.data)
			}
			return []*caller{x}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, c := adaptiveRig(t, ir.AdaptiveTimeout{}, ir.Pool{})
			r.t = t
			for i, x := range run(r, c) {
				if x.failure.Err != nil {
					t.Errorf("request %d: %v", i, x.failure.Err)
				}
			}
		})
	}
}

func TestWhatTheEstimatorHears(t *testing.T) {
	r, c := adaptiveRig(t, ir.AdaptiveTimeout{}, ir.Pool{})
	l := r.loops[0]
	seen := func() string {
		c.Stats() // merges nothing by itself
		c.state.Load().adaptive.estimator.Deadline(l.now.Add(10 * time.Second))
		s := c.Stats().Timeout
		return fmt.Sprint(s.Answers-s.Censored, " answers, ", s.Censored, " censored")
	}
	for range 10 {
		r.answerAfter(c, Try{}, 10*time.Millisecond)
		l.advance(time.Second)
	}
	for _, step := range []struct {
		name string
		do   func()
		want string
	}{
		{"answers", func() {}, "10 answers, 0 censored"},
		{"an event stream", func() { r.answerAfter(c, Try{Streaming: true}, time.Second) }, "10 answers, 0 censored"},
		{"reset before the head", func() {
			r.open(c, 0, Try{})
			l.advance(time.Second)
			l.last().conn.OnClose(errRefused)
		}, "10 answers, 1 censored"},
		{"refused", func() {
			r.open(c, 0, Try{Fresh: true})
			l.last().conn.OnClose(errRefused)
		}, "10 answers, 1 censored"},
		{"the client goes away", func() {
			x := r.open(c, 0, Try{})
			l.last().conn.OnConnect()
			l.advance(2 * time.Second)
			x.Cancel()
		}, "10 answers, 2 censored"},
		{"the client goes away at once", func() {
			x := r.open(c, 0, Try{})
			l.last().conn.OnConnect()
			x.Cancel()
		}, "10 answers, 2 censored"},
		{"cut off after the head", func() {
			r.open(c, 0, Try{})
			l.last().conn.OnConnect()
			l.last().conn.OnRead([]byte("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"))
			l.advance(time.Second)
			l.last().conn.OnClose(errRefused)
		}, "11 answers, 2 censored"},
		{"a route with timeouts", func() {
			r.answerAfter(c, Try{Untimed: true}, 20*time.Millisecond)
		}, "12 answers, 2 censored"},
	} {
		step.do()
		l.advance(time.Second)
		if got := seen(); got != step.want {
			t.Errorf("after %s: %s, want %s", step.name, got, step.want)
		}
	}
}

// A policy that lowers the deadline bounds the connect as well.
func TestAdaptiveConnect(t *testing.T) {
	r, c := adaptiveRig(t, ir.AdaptiveTimeout{Min: 100 * time.Millisecond}, ir.Pool{})
	for range 50 {
		r.answerAfter(c, Try{}, time.Millisecond)
	}
	x := r.open(c, 0, Try{Fresh: true})
	r.loops[0].advance(110 * time.Millisecond)
	x.want(t, "fail "+ReasonAdaptiveTimeout)
	if !x.failure.Unsent || x.failure.Err.Status != 504 || c.Stats().Timeout.Censored != 1 {
		t.Errorf("%+v, %+v", x.failure, c.Stats().Timeout)
	}
	y := r.open(c, 0, Try{Fresh: true, Streaming: true})
	r.loops[0].advance(4 * time.Second)
	y.want(t)
	r.loops[0].advance(2 * time.Second)
	y.want(t, "fail "+ReasonConnectTimeout)
}

func TestAdaptiveDefaults(t *testing.T) {
	for _, tc := range []struct {
		name           string
		spec, fallback ir.AdaptiveTimeout
		response       time.Duration
		want           ir.AdaptiveTimeout
	}{
		{"none", ir.AdaptiveTimeout{}, ir.AdaptiveTimeout{}, time.Minute, ir.AdaptiveTimeout{Mode: ir.AdaptiveEnforce, Min: 5 * time.Second, Max: time.Minute}},
		{"a short response timeout", ir.AdaptiveTimeout{}, ir.AdaptiveTimeout{}, time.Second, ir.AdaptiveTimeout{Mode: ir.AdaptiveEnforce, Min: time.Second, Max: time.Second}},
		{"a long one", ir.AdaptiveTimeout{}, ir.AdaptiveTimeout{}, 5 * time.Hour, ir.AdaptiveTimeout{Mode: ir.AdaptiveEnforce, Min: 5 * time.Second, Max: time.Hour}},
		{"no response timeout", ir.AdaptiveTimeout{}, ir.AdaptiveTimeout{}, -1, ir.AdaptiveTimeout{Mode: ir.AdaptiveObserve, Min: 5 * time.Second, Max: time.Minute}},
		{"the gateway's", ir.AdaptiveTimeout{Alpha: 0.2}, ir.AdaptiveTimeout{Mode: ir.AdaptiveObserve, Alpha: 0.3, Beta: 3, Initial: 1, Min: 2, Max: 3}, time.Minute,
			ir.AdaptiveTimeout{Mode: ir.AdaptiveObserve, Alpha: 0.2, Beta: 3, Initial: 1, Min: 2, Max: 3}},
		{"min above the response timeout", ir.AdaptiveTimeout{Min: 5 * time.Second}, ir.AdaptiveTimeout{}, time.Second, ir.AdaptiveTimeout{Mode: ir.AdaptiveEnforce, Min: 5 * time.Second, Max: 5 * time.Second}},
		{"the gateway's min above the cluster's max", ir.AdaptiveTimeout{Max: time.Second}, ir.AdaptiveTimeout{Min: 5 * time.Second, Initial: 5 * time.Second}, time.Minute,
			ir.AdaptiveTimeout{Mode: ir.AdaptiveEnforce, Min: time.Second, Max: time.Second, Initial: time.Second}},
		{"no response timeout, but it is asked for", ir.AdaptiveTimeout{Mode: ir.AdaptiveEnforce}, ir.AdaptiveTimeout{}, -1,
			ir.AdaptiveTimeout{Mode: ir.AdaptiveEnforce, Min: 5 * time.Second, Max: time.Minute}},
	} {
		got := adaptiveDefaults(tc.spec, tc.fallback, ir.Pool{ResponseTimeout: tc.response})
		if got != tc.want {
			t.Errorf("%s: %+v, want %+v", tc.name, got, tc.want)
		}
		newAdaptive(time.Unix(1000, 0), tc.spec, tc.fallback, ir.Pool{ResponseTimeout: tc.response}, nil, 1) // does not panic
	}
}

// The gateway's mode counts for clusters that say nothing, and for no others.
func TestAdaptiveMode(t *testing.T) {
	modes := []ir.AdaptiveMode{ir.AdaptiveEnforce, ir.AdaptiveObserve, ir.AdaptiveOff}
	mode := func(cluster, gateway ir.AdaptiveMode) ir.AdaptiveMode {
		return adaptiveDefaults(ir.AdaptiveTimeout{Mode: cluster, Min: 1}, ir.AdaptiveTimeout{Mode: gateway}, ir.Pool{ResponseTimeout: time.Minute}).Mode
	}
	for _, gateway := range modes {
		if got := mode(ir.AdaptiveDefault, gateway); got != gateway {
			t.Errorf("nothing said, gateway %v: %v", gateway, got)
		}
		for _, cluster := range modes {
			if got := mode(cluster, gateway); got != cluster {
				t.Errorf("cluster %v, gateway %v: %v", cluster, gateway, got)
			}
		}
	}
	if got := mode(ir.AdaptiveDefault, ir.AdaptiveDefault); got != ir.AdaptiveEnforce {
		t.Errorf("nobody says anything: %v", got)
	}

	// A hung request is cut where the cluster says so, whatever the gateway says.
	r := newRig(t, 1, Options{Adaptive: ir.AdaptiveTimeout{Mode: ir.AdaptiveOff}})
	silent, own := spec(ir.Pool{}, 0, "10.0.0.1:80"), spec(ir.Pool{}, 0, "10.0.0.2:80")
	own.Name, own.Adaptive = "own", ir.AdaptiveTimeout{Mode: ir.AdaptiveEnforce, Initial: time.Second, Min: time.Second, Max: 2 * time.Second}
	r.Update([]*ir.Cluster{silent, own})
	for c, want := range map[*Cluster][]string{r.Cluster(silent.Name): {"ready"}, r.Cluster("own"): {"ready", "fail " + ReasonAdaptiveTimeout}} {
		r.answerAfter(c, Try{}, 10*time.Millisecond)
		x := r.open(c, 0, Try{})
		r.loops[0].advance(30 * time.Second)
		x.want(t, want...)
	}
}

// A changed policy goes on from what was learned; the same one keeps its
// estimator.
func TestPolicyChange(t *testing.T) {
	r, c := adaptiveRig(t, ir.AdaptiveTimeout{}, ir.Pool{})
	for range 50 {
		r.answerAfter(c, Try{}, time.Second)
	}
	before := c.state.Load().adaptive
	s := spec(ir.Pool{Size: 7}, 0, "10.0.0.1:80", "10.0.0.2:80")
	r.Update([]*ir.Cluster{s})
	if c.state.Load().adaptive != before {
		t.Error("new endpoints cost what was learned")
	}
	s = spec(ir.Pool{}, 0, "10.0.0.1:80")
	s.Adaptive.Min = time.Millisecond
	r.Update([]*ir.Cluster{s})
	if got := c.Stats().Timeout; got.Estimate < 900*time.Millisecond || got.Estimate > 1100*time.Millisecond || got.Deadline > 3*time.Second {
		t.Errorf("after the change: %+v", got)
	}
	s = spec(ir.Pool{}, 0, "10.0.0.1:80")
	s.Adaptive.Mode = ir.AdaptiveOff
	r.Update([]*ir.Cluster{s})
	if got := c.Stats().Timeout; got != (TimeoutStats{Mode: ir.AdaptiveOff}) {
		t.Errorf("off: %+v", got)
	}
	r.answerAfter(c, Try{}, time.Second).want(t, "ready", "head", "data", "end")
}
