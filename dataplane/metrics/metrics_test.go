package metrics

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
)

func newMetrics(t testing.TB, o Options) *Metrics {
	t.Helper()
	if o.Loops == 0 {
		o.Loops = 2
	}
	m, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// series gathers what m shows, but for Go's and the process's own metrics, as
// name{label="value"} to value.
func series(t testing.TB, m *Metrics) map[string]float64 {
	t.Helper()
	families, err := m.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]float64)
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "headgate_") {
			continue
		}
		for _, s := range f.GetMetric() {
			var labels []string
			for _, l := range s.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			key := func(suffix string, more ...string) string {
				return f.GetName() + suffix + "{" + strings.Join(append(slices.Clone(labels), more...), ",") + "}"
			}
			switch {
			case s.Counter != nil:
				out[key("")] = s.GetCounter().GetValue()
			case s.Gauge != nil:
				out[key("")] = s.GetGauge().GetValue()
			case s.Summary != nil:
				out[key("_sum")] = s.GetSummary().GetSampleSum()
				out[key("_count")] = float64(s.GetSummary().GetSampleCount())
			case s.Histogram != nil:
				out[key("_sum")] = s.GetHistogram().GetSampleSum()
				out[key("_count")] = float64(s.GetHistogram().GetSampleCount())
				for _, b := range s.GetHistogram().GetBucket() {
					out[key("_bucket", fmt.Sprintf("le=%q", fmt.Sprint(b.GetUpperBound())))] = float64(b.GetCumulativeCount())
				}
			}
		}
	}
	return out
}

// only keeps the series whose key has one of the prefixes.
func only(all map[string]float64, prefixes ...string) map[string]float64 {
	out := make(map[string]float64)
	for k, v := range all {
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(k, p) }) {
			out[k] = v
		}
	}
	return out
}

func wantSeries(t *testing.T, got, want map[string]float64) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
}

func TestOptions(t *testing.T) {
	for name, o := range map[string]Options{
		"no loops":          {},
		"negative loops":    {Loops: -1},
		"negative routes":   {Loops: 1, MaxRoutes: -1},
		"negative clusters": {Loops: 1, MaxClusters: -1},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := New(o); err == nil {
				t.Error("accepted")
			}
		})
	}
}

func TestRequestsByRouteAndCode(t *testing.T) {
	m := newMetrics(t, Options{})
	r := m.Route("shop/cart")
	for range 3 {
		r.Observe(0, 200, 2*time.Millisecond)
	}
	r.Observe(1, 200, 2*time.Millisecond)
	r.Observe(1, 503, 61*time.Second)
	r.Observe(1, 0, 500*time.Microsecond)
	r.Observe(0, 600, -time.Second) // a clock that went back is no negative time
	r.Observe(0, 99, 0)
	m.Unmatched().Observe(0, 404, 0)
	m.Route("shop/unused")

	got := series(t, m)
	wantSeries(t, only(got, "headgate_requests_total"), map[string]float64{
		`headgate_requests_total{code="200",route="shop/cart"}`:   4,
		`headgate_requests_total{code="503",route="shop/cart"}`:   1,
		`headgate_requests_total{code="none",route="shop/cart"}`:  1,
		`headgate_requests_total{code="other",route="shop/cart"}`: 2,
		`headgate_requests_total{code="404",route="none"}`:        1,
	})
	const d = "headgate_request_duration_seconds"
	for k, v := range map[string]float64{
		d + `_count{route="shop/cart"}`:              8,
		d + `_sum{route="shop/cart"}`:                61.0085,
		d + `_bucket{route="shop/cart",le="0.0005"}`: 3, // a bound belongs to its bucket
		d + `_bucket{route="shop/cart",le="0.001"}`:  3,
		d + `_bucket{route="shop/cart",le="0.0025"}`: 7,
		d + `_bucket{route="shop/cart",le="60"}`:     7,
		d + `_bucket{route="none",le="60"}`:          1,
		d + `_bucket{route="shop/unused",le="60"}`:   0,
	} {
		if g := got[k]; g-v > 1e-9 || v-g > 1e-9 {
			t.Errorf("%s = %v, want %v", k, g, v)
		}
	}
}

func TestRouteCardinalityIsBounded(t *testing.T) {
	m := newMetrics(t, Options{MaxRoutes: 10})
	for i := range 1000 {
		m.Route(fmt.Sprintf("ns/r%d", i)).Observe(i%2, 200, 0)
	}
	got := only(series(t, m), "headgate_requests_total")
	if len(got) != 11 {
		t.Errorf("%d series of requests, want 10 and the shared one", len(got))
	}
	if n := got[`headgate_requests_total{code="200",route="other"}`]; n != 990 {
		t.Errorf("other = %v, want 990", n)
	}
	if got, want := len(m.routes), 10; got != want {
		t.Errorf("%d routes are kept, want %d", got, want)
	}
	if first := m.Route("ns/r0"); first != m.Route("ns/r0") || first == m.Route("ns/r1") {
		t.Error("a route does not keep its own counters")
	}
}

func TestCodesAreBounded(t *testing.T) {
	m := newMetrics(t, Options{})
	r := m.Route("a/b")
	for status := -10; status < 70_000; status++ {
		r.Observe(0, status, 0)
	}
	got := only(series(t, m), "headgate_requests_total")
	if len(got) != 502 {
		t.Errorf("%d series, want 500 codes, none and other", len(got))
	}
	for _, code := range []string{"100", "404", "599", "none"} {
		if n := got[fmt.Sprintf(`headgate_requests_total{code=%q,route="a/b"}`, code)]; n != 1 {
			t.Errorf("code %s = %v, want 1", code, n)
		}
	}
}

func TestRemovedRoutesDisappear(t *testing.T) {
	m := newMetrics(t, Options{MaxRoutes: 2})
	for _, name := range []string{"a/1", "a/2", "a/3"} {
		m.Route(name).Observe(0, 200, 0)
	}
	m.Unmatched().Observe(0, 404, 0)
	m.RetainRoutes(func(name string) bool { return name == "a/2" })
	m.Route("a/3").Observe(0, 200, 0) // there is room for it now
	wantSeries(t, only(series(t, m), "headgate_requests_total"), map[string]float64{
		`headgate_requests_total{code="200",route="a/2"}`:   1,
		`headgate_requests_total{code="200",route="a/3"}`:   1,
		`headgate_requests_total{code="200",route="other"}`: 1,
		`headgate_requests_total{code="404",route="none"}`:  1,
	})
}

func TestClusters(t *testing.T) {
	m := newMetrics(t, Options{})
	c := m.Cluster("shop/cart:80")
	c.SetPoolSize(64)
	a, b := c.Loop(0), c.Loop(1)
	a.AddActive(3)
	b.AddActive(2)
	a.AddActive(-1)
	a.AddIdle(5)
	b.AddIdle(-1) // a gauge may be below zero on one loop, and is signed
	a.AddHeld(1)
	for range 4 {
		a.Connected()
	}
	b.ConnectFailed()
	a.TimedOut(TimeoutWait)
	a.TimedOut(TimeoutConnect)
	b.TimedOut(TimeoutConnect)
	b.TimedOut(TimeoutResponse)
	a.Retried()
	a.RetryRefused()
	b.RetryRefused()
	c.Ejected()
	a.Responded(250 * time.Millisecond)
	b.Responded(500 * time.Millisecond)
	b.Responded(-1)
	b.TimedOut(TimeoutAdaptive)
	a.Shed(ShedFull)
	b.Shed(ShedFull)
	b.Shed(ShedShare)
	a.Shed(ShedTimeout)
	a.Propagated(2 * time.Millisecond)
	b.Propagated(4 * time.Millisecond)
	c.Show(func() ClusterLive {
		return ClusterLive{State: 2, Limit: 60, HeldBytes: 4096, Capacity: 1000, Rate: 62.5, Timed: true, Estimate: 2 * time.Second, Deadline: 5 * time.Second, Censored: 7}
	})

	const l = `{cluster="shop/cart:80"}`
	want := map[string]float64{
		"headgate_upstream_requests_active" + l:                                    4,
		"headgate_upstream_requests_held" + l:                                      1,
		"headgate_upstream_connections_idle" + l:                                   4,
		"headgate_upstream_pool_size" + l:                                          64,
		"headgate_upstream_response_seconds_sum" + l:                               0.75,
		"headgate_upstream_response_seconds_count" + l:                             3,
		"headgate_upstream_connects_total" + l:                                     4,
		"headgate_upstream_connect_failures_total" + l:                             1,
		`headgate_upstream_timeouts_total{cluster="shop/cart:80",kind="wait"}`:     1,
		`headgate_upstream_timeouts_total{cluster="shop/cart:80",kind="connect"}`:  2,
		`headgate_upstream_timeouts_total{cluster="shop/cart:80",kind="response"}`: 1,
		`headgate_upstream_timeouts_total{cluster="shop/cart:80",kind="adaptive"}`: 1,
		"headgate_upstream_retries_total" + l:                                      1,
		"headgate_upstream_retries_refused_total" + l:                              2,
		"headgate_upstream_ejections_total" + l:                                    1,
		`headgate_upstream_shed_total{cluster="shop/cart:80",reason="full"}`:       2,
		`headgate_upstream_shed_total{cluster="shop/cart:80",reason="share"}`:      1,
		`headgate_upstream_shed_total{cluster="shop/cart:80",reason="timeout"}`:    1,
		`headgate_upstream_shed_total{cluster="shop/cart:80",reason="gone"}`:       0,
		"headgate_upstream_limit" + l:                                              60,
		"headgate_upstream_pressure" + l:                                           2,
		"headgate_upstream_held_bytes" + l:                                         4096,
		"headgate_upstream_capacity" + l:                                           1000,
		"headgate_upstream_pace" + l:                                               62.5,
		"headgate_upstream_estimate_seconds" + l:                                   2,
		"headgate_upstream_deadline_seconds" + l:                                   5,
		"headgate_upstream_censored_total" + l:                                     7,
	}
	all := series(t, m)
	wantSeries(t, only(all, "headgate_upstream_"), want)
	wantSeries(t, only(all, "headgate_backpressure_propagation_seconds_sum", "headgate_backpressure_propagation_seconds_count",
		`headgate_backpressure_propagation_seconds_bucket{cluster="shop/cart:80",le="0.0025"}`), map[string]float64{
		"headgate_backpressure_propagation_seconds_sum" + l:                                    0.006,
		"headgate_backpressure_propagation_seconds_count" + l:                                  2,
		`headgate_backpressure_propagation_seconds_bucket{cluster="shop/cart:80",le="0.0025"}`: 1,
	})

	if m.Cluster("shop/cart:80") != c {
		t.Error("a cluster does not keep its counters")
	}
	m.RetainClusters(func(string) bool { return false })
	wantSeries(t, only(series(t, m), "headgate_upstream_"), map[string]float64{})
}

func TestClusterCardinalityIsBounded(t *testing.T) {
	m := newMetrics(t, Options{MaxClusters: 3})
	for i := range 20 {
		c := m.Cluster(fmt.Sprintf("ns/s%02d:80", i))
		c.SetPoolSize(10)
		c.Loop(i % 2).Connected()
	}
	got := only(series(t, m), "headgate_upstream_connects_total", "headgate_upstream_pool_size")
	if len(got) != 8 {
		t.Errorf("%d series, want those of 3 clusters and the shared one: %v", len(got), slices.Sorted(maps.Keys(got)))
	}
	if n := got[`headgate_upstream_connects_total{cluster="other"}`]; n != 17 {
		t.Errorf("other connects = %v, want 17", n)
	}
	if n := got[`headgate_upstream_pool_size{cluster="other"}`]; n != 170 {
		t.Errorf("other pool size = %v, want 170", n)
	}
	m.RetainClusters(func(name string) bool { return name > "ns/s01:80" })
	m.Cluster("ns/new:80").Loop(0).Connected()
	m.Cluster("ns/late:80").Loop(0).Connected()
	m.Cluster("ns/many:80").Loop(0).Connected()
	got = only(series(t, m), "headgate_upstream_connects_total")
	wantSeries(t, got, map[string]float64{
		`headgate_upstream_connects_total{cluster="ns/s02:80"}`:  1,
		`headgate_upstream_connects_total{cluster="ns/new:80"}`:  1,
		`headgate_upstream_connects_total{cluster="ns/late:80"}`: 1,
		`headgate_upstream_connects_total{cluster="other"}`:      18,
	})
}

func TestLoops(t *testing.T) {
	m := newMetrics(t, Options{
		Reactor: func(loop int) ReactorStats {
			n := uint64(loop + 1)
			return ReactorStats{Conns: int64(n), Busy: time.Duration(n) * time.Second, Events: 10 * n, Wakeups: 20 * n, Panics: 30 * n}
		},
		AccessLog: func() (uint64, uint64) { return 7, 8 },
		Accepts:   func() (uint64, uint64) { return 9, 10 },
		Handover: func() HandoverStats {
			return HandoverStats{Taken: 1, Given: 2, Resumed: 3, Refused: 4, Sockets: 5, Accepting: true}
		},
		Version: "v1.2.3",
	})
	a, b := m.Loop(0), m.Loop(1)
	a.Accepted()
	a.Accepted()
	a.Closed()
	b.Accepted()
	b.Request()
	a.Received(100)
	b.Received(20)
	a.Sent(7)
	a.Handshake(true)
	a.Handshake(false)
	b.Handshake(false)
	a.AddUpgrades(2)
	b.AddUpgrades(-1)
	a.ClientError("bad_chunk_size")
	b.ClientError("bad_chunk_size")
	b.ClientError("host\xff")
	a.LocalReply("no_route")
	a.ProxyRefused("missing")
	b.ProxyRefused("missing")

	got := series(t, m)
	for k, v := range map[string]float64{
		`headgate_connections{loop="0"}`:                          1,
		`headgate_connections{loop="1"}`:                          1,
		`headgate_connections_accepted_total{loop="0"}`:           2,
		`headgate_loop_requests_total{loop="1"}`:                  1,
		`headgate_received_bytes_total{}`:                         120,
		`headgate_sent_bytes_total{}`:                             7,
		`headgate_tls_handshakes_total{result="ok"}`:              1,
		`headgate_tls_handshakes_total{result="failed"}`:          2,
		`headgate_upgrades{}`:                                     1,
		`headgate_client_errors_total{reason="bad_chunk_size"}`:   2,
		"headgate_client_errors_total{reason=\"host\uFFFD\"}":     1,
		`headgate_local_replies_total{reason="no_route"}`:         1,
		`headgate_proxy_protocol_refused_total{reason="missing"}`: 2,
		`headgate_loop_connections{loop="1"}`:                     2,
		`headgate_loop_busy_seconds_total{loop="1"}`:              2,
		`headgate_loop_events_total{loop="0"}`:                    10,
		`headgate_loop_wakeups_total{loop="0"}`:                   20,
		`headgate_loop_panics_total{loop="1"}`:                    60,
		`headgate_access_log_entries_total{}`:                     7,
		`headgate_access_log_dropped_total{}`:                     8,
		`headgate_accept_errors_total{}`:                          9,
		`headgate_accept_shed_total{}`:                            10,
		`headgate_accepting{}`:                                    1,
		`headgate_handovers_total{direction="in"}`:                1,
		`headgate_handovers_total{direction="out"}`:               2,
		`headgate_handover_resumed_total{}`:                       3,
		`headgate_handover_refused_total{}`:                       4,
		`headgate_handover_sockets{}`:                             5,
	} {
		if g, ok := got[k]; !ok || g != v {
			t.Errorf("%s = %v, %v; want %v", k, g, ok, v)
		}
	}
	info := slices.Collect(maps.Keys(only(got, "headgate_build_info")))
	if len(info) != 1 || !strings.Contains(info[0], `version="v1.2.3"`) || !strings.Contains(info[0], `go_version="go`) {
		t.Errorf("build info %v", info)
	}
}

func TestReasonsAreBounded(t *testing.T) {
	m := newMetrics(t, Options{})
	for i := range 1000 {
		m.Loop(0).ClientError(fmt.Sprint("r", i))
		m.Loop(1).LocalReply(fmt.Sprint("r", i))
		m.Loop(1).ProxyRefused(fmt.Sprint("r", i))
	}
	got := series(t, m)
	for _, f := range []string{"headgate_client_errors_total", "headgate_local_replies_total", "headgate_proxy_protocol_refused_total"} {
		if n := len(only(got, f)); n != maxReasons+1 {
			t.Errorf("%d series of %s, want %d", n, f, maxReasons+1)
		}
		if n := got[f+`{reason="other"}`]; n != 1000-maxReasons {
			t.Errorf("other reasons = %v, want %d", n, 1000-maxReasons)
		}
	}
}

func TestGoAndProcessMetrics(t *testing.T) {
	families, err := newMetrics(t, Options{}).Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range families {
		names = append(names, f.GetName())
	}
	for _, want := range []string{"go_goroutines", "process_resident_memory_bytes"} {
		if !slices.Contains(names, want) {
			t.Errorf("no %s", want)
		}
	}
}

// Every loop counts at full speed while scrapes and changes of the table go on:
// nothing is lost, and the race detector has nothing to say.
func TestScrapesWhileCounting(t *testing.T) {
	const loops, requests = 4, 20_000
	m := newMetrics(t, Options{Loops: loops})
	r, c := m.Route("a/b"), m.Cluster("a/b:80")
	var counting sync.WaitGroup
	for i := range loops {
		counting.Go(func() {
			for n := range requests {
				r.Observe(i, 200+n%7, time.Duration(n)*time.Microsecond)
				c.Loop(i).AddActive(1)
				m.Loop(i).Request()
				m.Loop(i).ClientError("x")
				c.Loop(i).AddActive(-1)
			}
		})
	}
	done := make(chan struct{})
	var scraping sync.WaitGroup
	scraping.Go(func() {
		last := 0.0
		for {
			n := 0.0
			for _, v := range only(series(t, m), "headgate_requests_total") {
				n += v
			}
			if n < last {
				t.Errorf("the count went back from %v to %v", last, n)
			}
			last = n
			m.Route("c/d")
			m.RetainRoutes(func(name string) bool { return name == "a/b" })
			select {
			case <-done:
				return
			default:
			}
		}
	})
	counting.Wait()
	close(done)
	scraping.Wait()
	got := series(t, m)
	if n := got[`headgate_request_duration_seconds_count{route="a/b"}`]; n != loops*requests {
		t.Errorf("%v requests, want %d", n, loops*requests)
	}
	if n := got[`headgate_client_errors_total{reason="x"}`]; n != loops*requests {
		t.Errorf("%v client errors, want %d", n, loops*requests)
	}
	if n := got[`headgate_upstream_requests_active{cluster="a/b:80"}`]; n != 0 {
		t.Errorf("%v requests under way, want 0", n)
	}
}

func TestNoAllocations(t *testing.T) {
	m := newMetrics(t, Options{})
	request := oneRequest(m)
	request() // the first one makes the code's and the reasons' counters
	if n := testing.AllocsPerRun(100, request); n != 0 {
		t.Errorf("%v allocations per request, want 0", n)
	}
}

// Shards of different loops must not share a cache line.
func TestShardsFillCacheLines(t *testing.T) {
	const line = 64
	for name, size := range map[string]uintptr{
		"route":   unsafe.Sizeof(routeShard{}),
		"cluster": unsafe.Sizeof(ClusterLoop{}),
	} {
		if size%line != 0 {
			t.Errorf("a %s's shard has %d bytes, want a multiple of %d", name, size, line)
		}
	}
}

// oneRequest returns all the counting that one request gives rise to.
func oneRequest(m *Metrics) func() {
	r, c, l := m.Route("a/b"), m.Cluster("a/b:80").Loop(1), m.Loop(1)
	return func() {
		l.Request()
		l.Received(400)
		c.AddActive(1)
		c.Responded(3 * time.Millisecond)
		c.AddActive(-1)
		l.Sent(700)
		l.LocalReply("no_route")
		r.Observe(1, 200, 3*time.Millisecond)
	}
}

func BenchmarkRequest(b *testing.B) {
	request := oneRequest(newMetrics(b, Options{}))
	b.ReportAllocs()
	for b.Loop() {
		request()
	}
}

func BenchmarkObserve(b *testing.B) {
	r := newMetrics(b, Options{}).Route("a/b")
	b.ReportAllocs()
	for b.Loop() {
		r.Observe(0, 200, 3*time.Millisecond)
	}
}

func BenchmarkScrape(b *testing.B) {
	m := newMetrics(b, Options{})
	for i := range 1000 {
		r := m.Route(fmt.Sprint("ns/r", i))
		r.Observe(0, 200, time.Millisecond)
		r.Observe(1, 404, time.Millisecond)
	}
	for b.Loop() {
		if _, err := m.Registry().Gather(); err != nil {
			b.Fatal(err)
		}
	}
}
