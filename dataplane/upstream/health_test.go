package upstream

import (
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate/dataplane/ir"
)

// TestActiveChecks runs on real sockets.
func TestActiveChecks(t *testing.T) {
	var status atomic.Int64
	var host atomic.Value
	status.Store(200)
	server := func(fixed int64) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			code := fixed
			if fixed == 0 {
				host.Store(r.Host + r.URL.Path)
				code = status.Load()
			}
			w.WriteHeader(int(code))
		}))
		t.Cleanup(s.Close)
		return strings.TrimPrefix(s.URL, "http://")
	}
	changing, steady := server(0), server(204)
	addresses := []string{changing, steady}
	if steady < changing {
		addresses = []string{steady, changing}
	}
	check := func(c *ir.Cluster) {
		c.Check = &ir.HealthCheck{Path: "/healthz?x=1", Host: "app.example", Interval: 100 * time.Millisecond, Unhealthy: 2, Healthy: 2}
	}
	h := newHealth(t, check, addresses...)
	if got := h.shares(100); got[changing] < 45 {
		t.Fatalf("before the first check: %v", got)
	}
	status.Store(500)
	h.wantEvent(EndpointUnwell, changing, 0)
	if got := h.shares(100); got[steady] != 100 {
		t.Fatalf("an unwell endpoint got requests: %v", got)
	}
	if got := host.Load(); got != "app.example/healthz" {
		t.Errorf("the check asked for %v", got)
	}
	if s := h.cluster.Stats(); s.Unwell != 1 {
		t.Errorf("stats %+v", s)
	}
	// An update of something else does not begin anew.
	h.update(func(c *ir.Cluster) { check(c); c.Pool.Size = 7 }, addresses...)
	if !h.endpoint(changing).unwell.Load() {
		t.Error("an update made the endpoint well")
	}
	status.Store(302)
	h.wantEvent(EndpointWell, changing, 0)
	// Other statuses.
	h.update(func(c *ir.Cluster) { check(c); c.Check.Statuses = []ir.StatusRange{{First: 302, Last: 302}} }, addresses...)
	h.wantEvent(EndpointUnwell, steady, 0)
	// When all are unwell, all are asked: the check may be wrong, and there is
	// nothing to lose.
	status.Store(500)
	h.wantEvent(EndpointUnwell, changing, 0)
	if got := h.shares(100); len(got) == 0 {
		t.Error("no requests with all endpoints unwell")
	}
	// Another check begins with the verdict that there is, and ends it when it
	// passes.
	status.Store(302)
	h.update(func(c *ir.Cluster) { check(c); c.Check.Path, c.Check.Interval = "/other", time.Second }, addresses...)
	if s := h.cluster.Stats(); s.Unwell != 2 {
		t.Errorf("another check has forgotten the last verdict: %+v", s)
	}
	for range 2 {
		if e := <-h.events; e.Change != EndpointWell {
			t.Errorf("%+v", e)
		}
	}
	// No check, no verdict, and nobody says that it was passed.
	status.Store(500)
	h.wantEvent(EndpointUnwell, changing, 0)
	h.update(nil, addresses...)
	select {
	case e := <-h.events:
		t.Errorf("an endpoint that is not checked any more: %+v", e)
	case <-time.After(50 * time.Millisecond):
	}
	if n := h.cluster.special.Load(); n != 0 {
		t.Errorf("%d special endpoints, want 0", n)
	}
}

// TestChecksEnd checks that nobody is asked any more after Close.
func TestChecksEnd(t *testing.T) {
	var asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		<-r.Context().Done() // it hangs: Close must not wait for it
	}))
	defer s.Close()
	h := newHealth(t, func(c *ir.Cluster) {
		c.Check = &ir.HealthCheck{Path: "/", Interval: 100 * time.Millisecond, Timeout: time.Hour}
	}, strings.TrimPrefix(s.URL, "http://"))
	for asked.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	h.Close()
	n := asked.Load()
	time.Sleep(50 * time.Millisecond)
	if asked.Load() != n {
		t.Error("a check came after Close")
	}
}

func TestPeakEWMA(t *testing.T) {
	h := newHealth(t, func(c *ir.Cluster) { c.Balance = ir.BalancePeakEWMA }, one, two)
	now := h.loops[0].now
	h.endpoint(one).latency.observe(now, 100*time.Millisecond)
	h.endpoint(two).latency.observe(now, 10*time.Millisecond)
	// The slow one is taken only when all three draws are it.
	if got := h.shares(1000); got[one] > 200 {
		t.Errorf("the slow endpoint got %d of 1000 requests", got[one])
	}
	// Ten requests at the fast one cost as much as one at the slow one.
	h.endpoint(two).active.Store(20)
	if got := h.shares(1000); got[two] > 200 {
		t.Errorf("the busy endpoint got %d of 1000 requests", got[two])
	}
	h.endpoint(two).active.Store(0)
	// A peak counts at once, and is forgotten with time.
	l := &h.endpoint(two).latency
	average := func() time.Duration { return time.Duration(math.Float64frombits(l.nanos.Load())) }
	l.observe(now, time.Second)
	if got := average(); got != time.Second {
		t.Errorf("after a peak of 1 s: %v", got)
	}
	l.observe(now.Add(latencyDecay), 10*time.Millisecond)
	if got, want := average(), 374201*time.Microsecond; got < want-time.Millisecond || got > want+time.Millisecond {
		t.Errorf("after %v: %v, want %v", latencyDecay, got, want)
	}
}

// TestPeakEWMATriesWhoIsNew checks that an endpoint without an answer gets one
// request, and no flood.
func TestPeakEWMATriesWhoIsNew(t *testing.T) {
	h := newHealth(t, func(c *ir.Cluster) { c.Balance = ir.BalancePeakEWMA }, one, two)
	h.endpoint(two).latency.observe(h.loops[0].now, 5*time.Millisecond)
	var first, more int
	for range 100 {
		x := h.open(h.cluster, 0, Try{Fresh: true})
		if x.Endpoint().String() == one {
			if first == 0 {
				first++
			} else {
				more++
			}
		}
	}
	if first != 1 || more > 30 {
		t.Errorf("the new endpoint got %d requests, then %d more before its first answer", first, more)
	}
}

func TestPeakEWMALearnsFromAnswers(t *testing.T) {
	h := newHealth(t, func(c *ir.Cluster) { c.Balance = ir.BalancePeakEWMA }, one)
	x := h.open(h.cluster, 0, Try{})
	tr := h.loops[0].last()
	tr.conn.OnConnect()
	h.loops[0].advance(30 * time.Millisecond)
	tr.conn.OnRead([]byte(okAnswer))
	x.want(t, "ready", "head", "data", "end")
	if got := time.Duration(math.Float64frombits(h.endpoint(one).latency.nanos.Load())); got != 30*time.Millisecond {
		t.Errorf("learned %v, want 30ms", got)
	}
}

func TestSlowStart(t *testing.T) {
	slow := func(c *ir.Cluster) { c.SlowStart = 10 * time.Second }
	h := newHealth(t, slow, one)
	if n := h.cluster.special.Load(); n != 0 {
		t.Fatal("the first endpoints of a cluster have nobody to leave the load to")
	}
	h.update(slow, one, two)
	for _, step := range []struct {
		after time.Duration
		want  float64 // of the weight
	}{{0, 0.1}, {500 * time.Millisecond, 0.1}, {4500 * time.Millisecond, 0.5}, {4 * time.Second, 0.9}, {time.Second, 1}} {
		h.loops[0].advance(step.after)
		const n = 4000
		// Of the draws of the new one the rest goes back to be drawn again.
		want := step.want / (1 + step.want)
		if share := float64(h.shares(n)[two]) / n; math.Abs(share-want) > 0.06 {
			t.Errorf("after %v: the new endpoint has %.3f of the requests, want %.3f", step.after, share, want)
		}
	}
	if n := h.cluster.special.Load(); n != 0 {
		t.Errorf("%d special endpoints after the slow start", n)
	}
}

func TestWarmConnections(t *testing.T) {
	h := newHealth(t, func(c *ir.Cluster) { c.Pool.Warm = 2 }, one)
	loop := h.loops[0]
	loop.run()
	if len(loop.dialed) != 2 {
		t.Fatalf("%d connections were opened, want 2", len(loop.dialed))
	}
	for _, tr := range loop.dialed {
		tr.conn.OnConnect()
	}
	x := h.open(h.cluster, 0, Try{})
	x.want(t, "ready")
	if len(loop.dialed) != 2 {
		t.Error("a request opened a connection of its own")
	}
	// A further update warms what is new, only.
	h.update(func(c *ir.Cluster) { c.Pool.Warm = 2 }, one, two)
	loop.run()
	if len(loop.dialed) != 4 || loop.last().addr.String() != two {
		t.Fatalf("%d connections were opened, want 4", len(loop.dialed))
	}
	// Those that fail, or take too long, are let go of.
	loop.dialed[2].conn.OnClose(nil)
	loop.advance(DefaultConnectTimeout)
	if !loop.dialed[3].aborted {
		t.Error("a connection that does not come about is kept")
	}
	// One that is about to go gets none.
	leaving := spec(ir.Pool{Warm: 2}, ir.BalanceRoundRobin, one, two, three)
	leaving.SlowStart = time.Minute
	leaving.Endpoints[2].Draining = true
	h.Update([]*ir.Cluster{leaving})
	loop.run()
	if len(loop.dialed) != 4 || h.cluster.special.Load() != 0 {
		t.Errorf("%d connections were opened, want 4; %d special endpoints", len(loop.dialed), h.cluster.special.Load())
	}
	h.update(func(c *ir.Cluster) { c.Pool.Warm = 2 }, one, two)
	// One that comes too late is not kept.
	h.update(func(c *ir.Cluster) { c.Pool.Warm = 1 }, one, three)
	loop.run()
	late := loop.last()
	h.update(nil, one)
	loop.run()
	late.conn.OnConnect()
	if !late.closed {
		t.Error("a connection to an endpoint that went is kept")
	}
}

func TestRetryBudget(t *testing.T) {
	now := time.Unix(1000, 0)
	p := withRetryDefaults(ir.RetryBudget{})
	// A quiet cluster may try again.
	var b retryBudget
	b.deposit(now, p, 1)
	n := 0
	for b.withdraw(now, p, 1) {
		n++
	}
	if n != DefaultRetryMinPerSecond {
		t.Errorf("a quiet cluster has %d further tries, want %d", n, DefaultRetryMinPerSecond)
	}
	// Under load, when everything fails, a fifth is tried again.
	b = retryBudget{}
	tries := 0
	const seconds, rate = 60, 1000
	for i := range seconds * rate {
		at := now.Add(time.Duration(i) * time.Second / rate)
		b.deposit(at, p, 1)
		if b.withdraw(at, p, 1) {
			tries++
		}
	}
	want := seconds * (rate/5 + DefaultRetryMinPerSecond)
	if tries < want*9/10 || tries > want*11/10 {
		t.Errorf("%d further tries of %d requests, want %d", tries, seconds*rate, want)
	}
	if p.Off = true; b.withdraw(now.Add(time.Hour), p, 1) {
		t.Error("a budget that is off allows a try")
	}
}

// TestRetryBudgetHolds draws sequences of requests and failures: there are never
// more further tries than the budget's two parts allow.
func TestRetryBudgetHolds(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		p := ir.RetryBudget{Percent: 1 + r.IntN(200), MinPerSecond: 1 + r.IntN(100)}
		loops := 1 + r.IntN(4)
		var b retryBudget
		start := time.Unix(1000, 0)
		now, requests, tries := start, 0, 0
		for range 20000 {
			switch r.IntN(8) {
			case 0:
				now = now.Add(time.Duration(r.Int64N(int64(2 * time.Second))))
			case 1, 2, 3, 4:
				b.deposit(now, p, loops)
				requests++
			default:
				if b.withdraw(now, p, loops) {
					tries++
				}
			}
			elapsed := now.Sub(start).Seconds() + budgetWindow.Seconds()
			most := float64(requests*p.Percent)/100 + max(1, elapsed*float64(p.MinPerSecond)/float64(loops)) + 1
			if float64(tries) > most || b.tries < 0 || math.IsNaN(b.tries) {
				t.Fatalf("seed %d: %d tries after %d requests in %v, at most %.1f allowed; %.1f left", seed, tries, requests, now.Sub(start), most, b.tries)
			}
		}
	}
}

// TestRetryIsCounted checks the way in from the exchange.
func TestRetryIsCounted(t *testing.T) {
	h := newHealth(t, func(c *ir.Cluster) { c.Retries = ir.RetryBudget{MinPerSecond: 2, Percent: 1} }, one)
	h.open(h.cluster, 0, Try{})
	for i := range 3 {
		if got := h.cluster.Retry(0); got != (i < 2) {
			t.Errorf("further try %d allowed: %v", i+1, got)
		}
	}
	// What is tried again is no new request.
	before := h.cluster.Shard(0).budget.requests
	h.open(h.cluster, 0, Try{Again: true})
	if h.cluster.Shard(0).budget.requests != before {
		t.Error("a further try counts as a request")
	}
}
