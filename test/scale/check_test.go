//go:build linux

package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/test/cluster/cluster"
)

// The ledger allows the old answer until the new one was seen, and no other.
func TestLedger(t *testing.T) {
	b := newLedger(1)
	b.turn(0, 0)
	a := func(n int) string { return b.states[0][n].answers[0] }
	now := time.Now()
	steps := []struct {
		what string
		low  int
		got  string
		want bool
	}{
		{"the first", 0, a(0), true},
		{"nothing is known", 0, "404 ", false},
		{"another route's", 0, strings.Replace(a(0), "r0", "r1", 1), false},
	}
	b.turn(0, 1)
	b.stored(0, now)
	steps = append(steps, []struct {
		what string
		low  int
		got  string
		want bool
	}{
		{"still the old one", 0, a(0), true},
		{"the new one", 0, a(1), true},
		{"the old one, of a request that began before", 0, a(0), true},
		{"the old one, of a request that began after", 1, a(0), false},
		{"a new one that nobody asked for", 1, strings.Replace(a(1), "s1", "s2", 1), false},
	}...)
	for _, s := range steps {
		if got := b.take(0, s.low, s.got, now.Add(time.Second)); got != s.want {
			t.Errorf("%s: %q is allowed: %v, want %v", s.what, s.got, got, s.want)
		}
	}
	if !b.seen(0) || b.floor(0) != 1 || len(b.served) != 1 || b.served[0] != time.Second {
		t.Errorf("seen %v, floor %d, served %v", b.seen(0), b.floor(0), b.served)
	}
}

// Every state of a route is told by its answer.
func TestVariants(t *testing.T) {
	b := newLedger(2)
	seen := make(map[string]bool)
	for route := range 2 {
		for range 2 {
			for v := range variants {
				b.turn(route, v)
			}
		}
		for _, s := range b.states[route] {
			for _, a := range s.answers {
				if seen[a] {
					t.Errorf("%s: %q is the answer of another state, too", s.kind, a)
				}
				seen[a] = true
			}
		}
	}
}

// A gateway that answers wrongly is found out.
func TestProberNotices(t *testing.T) {
	const name = "r"
	answer := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}
	}
	for what, c := range map[string]struct {
		gateway http.HandlerFunc
		served  bool // what the prober knows
		want    bool // the route answers
		wrong   int
	}{
		"served":                  {answer(200, "a r /"), false, true, 0},
		"not yet":                 {answer(404, ""), false, false, 0},
		"not any more":            {answer(404, ""), true, false, 1},
		"an error":                {answer(503, ""), false, false, 1},
		"another route":           {answer(200, "a q /"), false, false, 1},
		"a route without filters": {answer(200, "a  /"), false, false, 1},
		"nothing":                 {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, false, false, 1},
	} {
		t.Run(what, func(t *testing.T) {
			server := httptest.NewServer(c.gateway)
			defer server.Close()
			l := &lab{gateway: server.Listener.Addr().String()}
			p := prober{l: l, lines: l.lines(1), r: new(propagationResult)}
			defer closeAll(p.lines)
			if got := p.ask(name, c.served); got != c.want || len(p.r.Wrong) != c.wrong {
				t.Errorf("served: %v, want %v; wrong: %q, want %d", got, c.want, p.r.Wrong, c.wrong)
			}
		})
	}
}

// The load finds out, too, and gets over a connection that was cut.
func TestPress(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1)%10 == 3 {
			panic(http.ErrAbortHandler)
		}
		fmt.Fprint(w, r.Host, r.URL.Path)
	}))
	defer server.Close()
	l := &lab{gateway: server.Listener.Addr().String()}
	names := []string{"x", "y"}
	stop := l.press(names, 2000, func(i int, ask func() (answer, error)) string {
		a, err := ask()
		if err != nil {
			return err.Error()
		}
		if want := "200 " + hostname(names[i]) + askedPath; a.String() != want {
			return a.String()
		}
		return ""
	})
	for asked.Load() < 50 {
		time.Sleep(time.Millisecond)
	}
	requests, wrong := stop()
	if requests < 50 || len(wrong) < 5 || len(wrong) > requests/5 {
		t.Errorf("%d requests, %d wrong, want a tenth: %q", requests, len(wrong), wrong)
	}
}

func TestOurs(t *testing.T) {
	all := []cluster.AuditEvent{
		{User: user, Verb: "patch", Resource: "gateways", Subresource: "status"},
		{User: user, Verb: "update", Resource: "leases"},
		{User: "admin", Verb: "create", Resource: "httproutes"},
		{User: user, Verb: "patch", Resource: "httproutes", Subresource: "status"},
	}
	mine := ours(all)
	if len(mine) != 2 || leases(all) != 1 || count(mine, "gateways") != 1 || count(mine, "httproutes") != 1 {
		t.Errorf("%d of %d are ours, %d leases", len(mine), len(all), leases(all))
	}
}

func TestSpread(t *testing.T) {
	var times []time.Duration
	for i := range 200 {
		times = append(times, time.Duration(200-i)*time.Millisecond)
	}
	if diff := cmp.Diff(spread{200, 100, 198, 200}, newSpread(times)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(spread{1, 7, 7, 7}, newSpread([]time.Duration{7 * time.Millisecond})); diff != "" {
		t.Error(diff)
	}
	if newSpread(nil) != (spread{}) {
		t.Error("no times have a spread")
	}
}

func TestStages(t *testing.T) {
	for n, want := range map[int][][2]int{
		1:    {{0, 1}, {0, 1}},
		150:  {{0, 150}, {120, 150}},
		5000: {{0, 3000}, {0, 5000}, {4000, 5000}},
	} {
		if diff := cmp.Diff(want, stages(n)); diff != "" {
			t.Errorf("%d: %s", n, diff)
		}
	}
}

func TestUsage(t *testing.T) {
	if got, err := cpuTime("7 (a) b) S 1 2 3 4 5 6 7 8 9 10 120 30 0 0"); err != nil || got != 1500*time.Millisecond {
		t.Errorf("CPU time %v, %v", got, err)
	}
	if _, err := cpuTime("7 S"); err == nil {
		t.Error("a stat line without fields is read")
	}
	if got, err := kilobytes([]byte("Name:\tx\nVmRSS:\t  12 kB\n"), "VmRSS:"); err != nil || got != 12288 {
		t.Errorf("RSS %d, %v", got, err)
	}
	if got, err := metric([]byte("# x 1\nab 1\na 2.5e3\n"), "a"); err != nil || got != 2500 {
		t.Errorf("metric %v, %v", got, err)
	}
	if _, err := metric([]byte("ab 1\n"), "a"); err == nil {
		t.Error("a metric that is not there is read")
	}
	from := usage{at: time.Unix(0, 0), cpu: time.Second, allocated: 1 << 20, objects: 10, gcs: 1}
	to := usage{at: time.Unix(10, 0), cpu: 2 * time.Second, rss: 5 << 20, anonymous: 3 << 20, allocated: 21 << 20, objects: 30, gcs: 4}
	want := load{Seconds: 10, CPUPercent: 10, RSS: 5, Anonymous: 3, AllocatedPerS: 2, ObjectsPerS: 2, Collections: 3}
	if diff := cmp.Diff(want, between(from, to)); diff != "" {
		t.Error(diff)
	}
}

// Each result that is not as it must be is a problem, and the tables say all.
func TestResult(t *testing.T) {
	r := newResult()
	r.Attached = &attachedResult{Routes: 10, GatewayWrites: 21, RouteWrites: 11, TeardownWrites: 22}
	r.Idle = &idleResult{Writes: []string{"patch"}}
	r.Propagation = &propagationResult{Stages: []stage{{From: 1, To: 5}}, Wrong: []string{"x"}}
	r.Change = &changeResult{Kinds: map[string]int{"redirect": 4}, Wrong: []string{"y"}}
	r.Churn = &churnResult{Writes: []string{"patch"}, Wrong: []string{"z"}, Churn: []load{{EditsPerSecond: 77}}}
	r.finish()
	got := make(map[string]int)
	for name, problems := range r.problems() {
		got[name] = len(problems)
	}
	if diff := cmp.Diff(map[string]int{"attached": 3, "idle": 2, "propagation": 1, "change": 2, "churn": 3}, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	text := r.markdown()
	for _, want := range []string{"## attached", "## idle", "## propagation", "## change", "## churn", "| 21 | 20 |", "routes 1 to 5", "redirect 4", "| 77 |"} {
		if !strings.Contains(text, want) {
			t.Errorf("the tables don't have %q", want)
		}
	}
	for load, want := range map[float64]bool{0: false, 100 * float64(r.CPUs): true} {
		if r.Load[0] = load; strings.Contains(r.markdown(), busyNote) != want {
			t.Errorf("load %v: the note is there: %v", load, !want)
		}
	}
	dir := t.TempDir()
	if err := r.write(dir); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"scale.md": r.markdown(), "scale.json": `"edits_per_s": 77`} {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s is not as it should be: %v", name, err)
		}
	}
}

// An address that may be an endpoint is not one of the loopback.
func TestHostAddress(t *testing.T) {
	a, err := hostAddress()
	if err != nil {
		t.Fatal(err)
	}
	if a.IsLoopback() || !a.Is4() {
		t.Errorf("%v", a)
	}
	ln, err := net.Listen("tcp", net.JoinHostPort(a.String(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
}

func TestIdleAddress(t *testing.T) {
	seen := make(map[string]bool)
	for n := range 100_000 {
		a := idleAddress(n)
		if seen[a] || net.ParseIP(a) == nil {
			t.Fatalf("address %d: %s", n, a)
		}
		seen[a] = true
	}
}
