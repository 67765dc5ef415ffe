package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/dataplane/metrics"
)

// model runs headgate model with the arguments.
func model(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := modelCmd()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

// modelJSON runs it and reads its JSON.
func modelJSON(t *testing.T, args ...string) plan {
	t.Helper()
	out, err := model(t, append(args, "-o", "json")...)
	if err != nil {
		t.Fatal(err)
	}
	var p plan
	if err := json.Unmarshal([]byte(out), &p); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestModelText(t *testing.T) {
	got, err := model(t, "--service", "1ms", "--workers", "1", "--service-cv", "2", "--target", "5ms", "--load", "1200")
	if err != nil {
		t.Fatal(err)
	}
	// M/M/1: W = 1/(mu-lambda). M/G/1 at CV 2: W_q is 2.5 times as long.
	want := `    stage  servers  service  CV  capacity/s
  workers        1      1ms   2        1000

Capacity: 1000 requests per second, bounded by the workers (Eq. 1).
Knee: 387/s (39 %), where the mean is 2.58ms.
Within a mean of 5ms: 615/s (62 %) by G/G/c, 800/s (80 %) by M/M/c.

   load  per second     M/M/c     G/G/c  waiting
   20 %         200    1.25ms    1.63ms    625us
   40 %         400    1.67ms    2.67ms   1.67ms #
   60 %         600     2.5ms    4.75ms   3.75ms ##
   80 %         800       5ms      11ms     10ms ######
   95 %         950      20ms    48.5ms   47.5ms ##############################
  120 %        1200  overload  overload

Memory of 10000 connections: 297 MB (Eq. 12); with a thread for each it would be 10256 MB (Eq. 11).
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestModelPlan(t *testing.T) {
	t.Run("the paper's gateway", func(t *testing.T) {
		// Table 2: four cores of 28,100; 3.5: 300 and 10,256 MB.
		p := modelJSON(t, "--mu", "28100", "--workers", "4")
		if p.Capacity != 112400 || p.Bottleneck != "workers" || p.Memory != (planMemory{10000, 300_000_000, 10_256_000_000}) {
			t.Errorf("%+v", p)
		}
		if len(p.Rows) != 5 || p.Rows[3].Load != 0.8*112400 || !p.Rows[4].Stable || p.Rows[4].TimeGGc != p.Rows[4].TimeMMc {
			t.Errorf("rows %+v", p.Rows)
		}
		if want := 2.0 / 28100; math.Abs(p.Target-want) > 1e-12 {
			t.Errorf("target %v, want twice the service, %v", p.Target, want)
		}
	})
	t.Run("thread per request", func(t *testing.T) {
		if p := modelJSON(t, "--service", "1ms", "--io", "4ms", "--async", "0", "--workers", "10"); math.Abs(p.Capacity-2000) > 1e-9 {
			t.Errorf("capacity %v", p.Capacity)
		}
	})
	t.Run("the pool bounds", func(t *testing.T) {
		p := modelJSON(t, "--service", "40us", "--workers", "2", "--pool", "50", "--upstream", "20ms", "--upstream-cv", "2")
		if p.Capacity != 2500 || p.Bottleneck != "pool" || len(p.Stages) != 2 {
			t.Errorf("%+v", p)
		}
	})
	t.Run("a target out of reach", func(t *testing.T) {
		if p := modelJSON(t, "--service", "1ms", "--target", "900us"); p.MaxLoadGGc != 0 || p.MaxLoadMMc != 0 {
			t.Errorf("%+v", p)
		}
		out, err := model(t, "--service", "1ms", "--target", "900us")
		if err != nil || !strings.Contains(out, "out of reach") {
			t.Errorf("%v\n%s", err, out)
		}
	})
	t.Run("simulated", func(t *testing.T) {
		p := modelJSON(t, "--service", "1ms", "--workers", "1", "--simulate")
		for _, r := range p.Rows[:4] { // at 95 % the simulation itself is 15 % off
			if math.Abs(r.Simulated/r.TimeMMc-1) > 0.05 {
				t.Errorf("at %v: simulated %v, M/M/c %v", r.Load, r.Simulated, r.TimeMMc)
			}
		}
		out, err := model(t, "--service", "1ms", "--workers", "1", "--simulate", "--load", "2000")
		if err != nil || !strings.Contains(out, "simulated") {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

func TestModelErrors(t *testing.T) {
	for _, c := range []struct {
		name, args, want string
	}{
		{"nothing", "", "give --service"},
		{"both", "--service 1ms --mu 1000", "--service and --mu"},
		{"mu", "--mu -1", "--mu"},
		{"mu not a number", "--mu NaN", "--mu"},
		{"service", "--service -1ms", "--service"},
		{"async", "--service 1ms --io 1ms --async 2", "--async"},
		{"workers", "--service 1ms --workers 0", "domain"},
		{"CV", "--service 1ms --service-cv -1", "CV"},
		{"pool alone", "--service 1ms --pool 5", "go together"},
		{"upstream alone", "--service 1ms --upstream 5ms", "go together"},
		{"pool", "--service 1ms --pool -5 --upstream 5ms", "--pool"},
		{"target", "--service 1ms --target -5ms", "--target"},
		{"load", "--service 1ms --load -5", "at -5"},
		{"connections", "--service 1ms --connections -5", "--connections"},
		{"output", "--service 1ms -o yaml", "--output"},
		{"size", "--service 1ms --memory-base 1XB", "--memory-base"},
		{"size without number", "--service 1ms --memory-request KB", "--memory-request"},
		{"size negative", "--service 1ms --memory-thread -1KB", "--memory-thread"},
		{"plot", "--service 1ms --plot /nonexistent/plan.svg", "--plot"},
		{"admin", "--admin http://127.0.0.1:1 --interval 1ms", "--admin"},
		{"interval", "--admin http://127.0.0.1:1 --interval -1s", "interval"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := model(t, strings.Fields(c.args)...); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one about %q", err, c.want)
			}
		})
	}
}

func TestParseBytes(t *testing.T) {
	for s, want := range map[string]int64{"0": 0, "4096": 4096, "4096B": 4096, "4KB": 4000, "4KiB": 4096, "1.5MiB": 3 << 19, "256MB": 256e6, "2GiB": 2 << 30} {
		if got, err := parseBytes(s); err != nil || got != want {
			t.Errorf("parseBytes(%q) = %d, %v, want %d", s, got, err, want)
		}
	}
}

// TestModelPlot: the drawing is well-formed, within its frame, and rises.
func TestModelPlot(t *testing.T) {
	file := filepath.Join(t.TempDir(), "plan.svg")
	if _, err := model(t, "--service", "40us", "--workers", "4", "--service-cv", "2", "--plot", file); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	curves := 0
	d := xml.NewDecoder(bytes.NewReader(data))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		e, ok := token.(xml.StartElement)
		if !ok || e.Name.Local != "polyline" {
			continue
		}
		curves++
		points := strings.Fields(e.Attr[len(e.Attr)-1].Value)
		lastX, lastY := 0.0, math.Inf(1)
		for _, p := range points {
			xs, ys, _ := strings.Cut(p, ",")
			x, err1 := strconv.ParseFloat(xs, 64)
			y, err2 := strconv.ParseFloat(ys, 64)
			if err1 != nil || err2 != nil || x < plotLeft || x > plotRight || y < plotTop || y > plotB || x < lastX || y > lastY {
				t.Fatalf("point %q after %v,%v", p, lastX, lastY)
			}
			lastX, lastY = x, y
		}
		if len(points) < 300 {
			t.Errorf("%d points", len(points))
		}
	}
	if curves != 2 {
		t.Errorf("%d curves, want 2", curves)
	}
}

// scrapes answers /metrics, each time with the next text.
func scrapes(t *testing.T, texts ...string) string {
	t.Helper()
	var n atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, texts[min(int(n.Add(1)), len(texts))-1])
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// exposition is the text of a gateway with two loops and two clusters.
func exposition(requests, busy, orders, cart float64) string {
	return fmt.Sprintf(`# HELP headgate_loop_busy_seconds_total Time.
# TYPE headgate_loop_busy_seconds_total counter
headgate_loop_busy_seconds_total{loop="0"} %g
headgate_loop_busy_seconds_total{loop="1"} %g
headgate_loop_requests_total{loop="0"} %g
headgate_loop_requests_total{loop="1"} %g
headgate_upstream_pool_size{cluster="default/orders:80"} 50
headgate_upstream_pool_size{cluster="default/cart:80"} 1024
headgate_upstream_response_seconds_sum{cluster="default/orders:80"} %g
headgate_upstream_response_seconds_count{cluster="default/orders:80"} %g
headgate_upstream_response_seconds_sum{cluster="default/cart:80"} %g
headgate_upstream_response_seconds_count{cluster="default/cart:80"} %g
go_goroutines 12
`, busy, busy, requests, requests, orders*0.02, orders, cart*0.1, cart)
}

func TestModelAdmin(t *testing.T) {
	before, after := exposition(1000, 5, 500, 7), exposition(1500, 5.02, 1400, 107)
	t.Run("the busiest cluster", func(t *testing.T) {
		p := modelJSON(t, "--admin", scrapes(t, before, after), "--interval", "20ms")
		m := p.Measured
		if m == nil || m.Workers != 2 || math.Abs(m.Mu-25000) > 0.01 || m.Cluster != "default/orders:80" || m.Pool != 50 ||
			math.Abs(m.Upstream-0.02) > 1e-9 {
			t.Fatalf("%+v", m)
		}
		if rate := 1000 / m.Interval; math.Abs(m.Lambda-rate) > 1e-6*rate || math.Abs(m.ClusterLambda-0.9*rate) > 1e-6*rate {
			t.Errorf("rates %v and %v in %v s", m.Lambda, m.ClusterLambda, m.Interval)
		}
		if p.Capacity != 2500 || p.Bottleneck != "pool" || len(p.Rows) != 6 || p.Rows[5].Load != m.Lambda {
			t.Errorf("plan %+v", p)
		}
	})
	t.Run("a cluster by name, and flags that win", func(t *testing.T) {
		p := modelJSON(t, "--admin", scrapes(t, before, after)+"/metrics", "--interval", "1ms", "--cluster", "default/cart:80",
			"--workers", "8", "--pool", "5", "--service", "1ms", "--load", "10")
		if p.Stages[0].Servers != 8 || p.Stages[0].Mu != 1000 || p.Stages[1].Servers != 5 || math.Abs(p.Stages[1].Mu-10) > 1e-6 || p.Rows[5].Load != 10 {
			t.Errorf("plan %+v", p)
		}
	})
	t.Run("the CVs", func(t *testing.T) {
		cvs := `headgate_stage_arrival_cv{stage="S2"} 9
headgate_stage_arrival_cv{stage="loop"} 1.18
headgate_stage_service_cv{stage="loop"} 0.5
headgate_stage_service_cv{stage="S4"} 1.74
`
		url := scrapes(t, before+cvs, after+cvs)
		p := modelJSON(t, "--admin", url, "--interval", "1ms", "--service-cv", "3")
		if a, b := p.Stages[0], p.Stages[1]; a.ArrivalCV != 1.18 || a.ServiceCV != 3 || b.ArrivalCV != 1.18 || b.ServiceCV != 1.74 {
			t.Errorf("stages %+v; a flag wins, the rest is measured", p.Stages)
		}
	})
	t.Run("text", func(t *testing.T) {
		out, err := model(t, "--admin", strings.TrimPrefix(scrapes(t, before, after), "http://"), "--interval", "1ms")
		if err != nil || !strings.Contains(out, "a worker's time per request 40us,\ndefault/orders:80 answers in 20ms") {
			t.Errorf("%v\n%s", err, out)
		}
	})
	for _, c := range []struct {
		name, want string
		texts      []string
		args       []string
	}{
		{"idle", "no request", []string{before, before}, nil},
		{"restarted", "restarted", []string{after, before}, nil},
		{"unknown cluster", "default/cart:80, default/orders:80", []string{before, after}, []string{"--cluster", "x"}},
		{"idle cluster", "gave no answer", []string{before, exposition(1500, 5.02, 500, 107)}, []string{"--cluster", "default/orders:80"}},
		{"not a gateway", "is this a gateway", []string{"go_goroutines 12\n"}, nil},
		{"not a number", "not a sample", []string{`headgate_upstream_pool_size{cluster="x"} y`}, nil},
		{"not a sample", "not a sample", []string{`headgate_upstream_pool_size{cluster="x"`}, nil},
		{"an endless line", "too long", []string{strings.Repeat("x", 2<<20)}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := append([]string{"--admin", scrapes(t, c.texts...), "--interval", "1ms"}, c.args...)
			if _, err := model(t, args...); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one about %q", err, c.want)
			}
		})
	}
	t.Run("not found", func(t *testing.T) {
		if _, err := model(t, "--admin", scrapes(t, before)+"/wrong", "--interval", "1ms"); err == nil || !strings.Contains(err.Error(), "404") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("interrupted", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := measure(ctx, scrapes(t, before), "", time.Hour); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
	})
}

// TestMetricNames: the metrics that a plan reads are those that the data plane
// exports.
func TestMetricNames(t *testing.T) {
	known := make(map[string]bool)
	for _, f := range metrics.Families() {
		known[f.Name] = true
	}
	for _, name := range []string{metricRequests, metricBusy, metricPool, strings.TrimSuffix(metricUpstreamN, "_count"), strings.TrimSuffix(metricUpstreamS, "_sum")} {
		if !known[name] {
			t.Errorf("no metric %s", name)
		}
	}
}
