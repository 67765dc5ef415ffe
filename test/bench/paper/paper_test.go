//go:build linux

package main

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/test/bench/rig"
)

// two is a setup with all that a configuration can have.
var two = setup{
	workers: 2,
	routes:  []route{{name: "fast", prefix: "/", port: 1001}, {name: "work", prefix: "/hung", port: 1002, pool: 50}},
	timeout: 5 * time.Second,
}

func wants(t *testing.T, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestHeadgateObjects(t *testing.T) {
	text := headgateObjects(two, ports{http: 1000})
	wants(t, text, "port: 1000, protocol: HTTP", "hostnames: [paper.example]",
		"  - matches: [{path: {value: /hung}}]\n    backendRefs: [{name: work, port: 80}]\n",
		"ports: [{name: http, port: 1002}]",
		"metadata: {name: work, namespace: paper}\nspec:\n  targetRefs: [{group: \"\", kind: Service, name: work}]\n  pool: {size: 50}\n")
	if n := strings.Count(text, "kind: BackendPolicy"); n != 1 {
		t.Errorf("%d policies, want one: only one upstream has a pool", n)
	}
}

func TestNginxConfig(t *testing.T) {
	tuned, plain := nginxConfig("/d", two, ports{http: 1000}, true), nginxConfig("/d", two, ports{http: 1000}, false)
	for _, text := range []string{tuned, plain} {
		wants(t, text, "worker_processes 2;", "listen 127.0.0.1:1000 ", "proxy_read_timeout 5000ms;",
			"zone work 64k;\n    server 127.0.0.1:1002 max_conns=50 max_fails=0;", "location /hung { proxy_pass http://work; }")
	}
	wants(t, tuned, "keepalive 1024;", "proxy_http_version 1.1;", "keepalive_requests 1000000000;")
	if strings.Contains(plain, "keepalive") || strings.Contains(plain, "http_version") {
		t.Errorf("the defaults are tuned:\n%s", plain)
	}
}

func TestApacheConfig(t *testing.T) {
	worker := apacheConfig("/d", "/m", "worker", two, ports{http: 1000}, true)
	wants(t, worker, "Listen 127.0.0.1:1000\n", "LoadModule mpm_worker_module /m/mod_mpm_worker.so\n", "User nobody\n", "ProxyTimeout 5000ms\n",
		"ThreadLimit 25\nServerLimit 16\nThreadsPerChild 25\nMaxRequestWorkers 400\n",
		// The first match counts.
		"ProxyPass /hung http://127.0.0.1:1002/hung retry=0\nProxyPass / http://127.0.0.1:1001/ retry=0\n")
	many := two
	many.threads = 9100
	wants(t, apacheConfig("/d", "/m", "worker", many, ports{}, false), "ServerLimit 19\nThreadsPerChild 500\nMaxRequestWorkers 9500\n")
	process := apacheConfig("/d", "/m", "prefork", two, ports{}, false)
	wants(t, process, "ServerLimit 256\nMaxRequestWorkers 256\nStartServers 256\n")
	if strings.Contains(process, "User") || strings.Contains(process, "Thread") {
		t.Errorf("a process each has threads, or a user without being root:\n%s", process)
	}
}

func TestPlacement(t *testing.T) {
	for name, c := range map[string]struct {
		cpus, workers int
		proxy, load   []int
	}{
		"one of two":    {2, 1, []int{0}, []int{1}},
		"both of two":   {2, 2, nil, nil},
		"two of five":   {5, 2, []int{0, 1}, []int{2, 3, 4}},
		"one of one":    {1, 1, nil, nil},
		"four of seven": {7, 4, nil, nil},
	} {
		proxy, load := placement(c.cpus, c.workers)
		if !slices.Equal(proxy, c.proxy) || !slices.Equal(load, c.load) {
			t.Errorf("%s: %v and %v, want %v and %v", name, proxy, load, c.proxy, c.load)
		}
	}
	if got := workerCounts(2); !slices.Equal(got, []int{1, 2}) {
		t.Errorf("two CPUs: %v", got)
	}
	if got := workerCounts(6); !slices.Equal(got, []int{1, 2, 4}) {
		t.Errorf("six CPUs: %v", got)
	}
}

func TestValidate(t *testing.T) {
	names := []string{"table1", "storm"}
	good := options{runs: 1, failureRuns: 1, duration: time.Second, storm: time.Second}
	if err := good.validate([]string{"storm"}, names); err != nil {
		t.Error(err)
	}
	for want, c := range map[string]struct {
		change func(*options)
		wanted string
	}{
		`unknown experiment "table5": use table1, storm`: {func(*options) {}, "table5"},
		"must be at least 1":                             {func(o *options) { o.failureRuns = 0 }, "storm"},
		"-duration 1.5s":                                 {func(o *options) { o.duration = 1500 * time.Millisecond }, "storm"},
		"-storm 10ms: use a seco":                        {func(o *options) { o.storm = 10 * time.Millisecond }, "storm"},
	} {
		o := good
		c.change(&o)
		if err := o.validate([]string{c.wanted}, names); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestRateArgs(t *testing.T) {
	r := rate{path: "/x", rate: 1234.56, duration: time.Second, conns: 7, lazy: true, poisson: true, seed: 9}
	want := "rate -addr a:1 -host paper.example -path /x -conns 7 -rate 1234.6 -duration 1s -warmup 0s -slots 0s -lazy -poisson -seed 9"
	if got := strings.Join(r.args("a:1"), " "); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// By the printed form of Erlang's formula: (a^c/c!) / sum a^k/k!.
func TestErlangB(t *testing.T) {
	for _, c := range []struct {
		load float64
		c    int
		want float64
	}{
		{1, 1, 0.5}, {2, 2, 2.0 / 5}, {3, 2, 4.5 / 8.5}, {47.5, 50, 0.0782},
	} {
		if got := erlangB(c.load, c.c); math.Abs(got-c.want) > 1e-4 {
			t.Errorf("load %v on %d: %v, want %v", c.load, c.c, got, c.want)
		}
	}
}

func TestConverged(t *testing.T) {
	ds := []deadline{{0, 0.05}, {0.1, 0.2}, {0.3, 0.26}, {0.5, 0.4}}
	if got := converged(ds, 0.28); got != 0.3 {
		t.Errorf("at %v, want 0.3", got)
	}
	if got := converged(ds, 1); got != -1 {
		t.Errorf("at %v, though it never came close", got)
	}
}

func TestRecovered(t *testing.T) {
	// 20 are due in a slot: ten slots of errors, then good ones.
	var slots []rig.Slot
	for range 10 {
		slots = append(slots, rig.Slot{Errors: 20})
	}
	for range 15 {
		slots = append(slots, rig.Slot{Good: 20})
	}
	if got := recovered(slots, 5, 25); math.Abs(got-0.6) > 1e-9 {
		t.Errorf("after %v s, want 0.6", got)
	}
	slots[12] = rig.Slot{Errors: 20}
	if got := recovered(slots, 5, 25); math.Abs(got-0.9) > 1e-9 {
		t.Errorf("with errors in between after %v s, want 0.9", got)
	}
	if got := recovered(slots[:15], 5, 25); got != -1 {
		t.Errorf("after %v s, though nothing came for long enough", got)
	}
	if got := recovered(nil, 5, 25); got != -1 {
		t.Errorf("of nothing after %v s", got)
	}
}
