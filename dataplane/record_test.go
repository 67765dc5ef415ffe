package dataplane

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/dataplane/accesslog"
	"github.com/headgate/headgate/dataplane/ir"
	"github.com/headgate/headgate/dataplane/metrics"
	"github.com/headgate/headgate/dataplane/reactor"
)

// lines is the output of an access log.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// paths returns what was logged, sorted.
func (l *lines) paths(t *testing.T) []string {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	out := []string{}
	for line := range strings.Lines(l.text.String()) {
		var e struct{ Path string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		out = append(out, e.Path)
	}
	slices.Sort(out)
	return out
}

// logging returns a server with one loop and an access log, and what ends the log:
// then all of it is there.
func logging(t *testing.T) (*Server, func() []string) {
	t.Helper()
	var out lines
	log, err := accesslog.New(accesslog.Options{Output: &out, Loops: 1})
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(t, func(o *Options) {
		o.Reactor = reactor.Options{Workers: 1}
		o.AccessLog = log
		if o.Metrics, err = metrics.New(metrics.Options{Loops: 1}); err != nil {
			t.Fatal(err)
		}
	})
	return s, func() []string {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if err := log.Close(ctx); err != nil {
			t.Error(err)
		}
		return out.paths(t)
	}
}

// statuses is a backend that answers with the status that the path names.
func statuses(t *testing.T) *ir.Cluster {
	b := backendServer(t, func(w http.ResponseWriter, r *http.Request) {
		status := 200
		_, _ = fmt.Sscanf(r.URL.Path, "/%d", &status)
		w.WriteHeader(status)
	})
	return clusterOf("default/be:80", b.URL)
}

// Each socket says which of its requests are logged, and a change counts for the
// requests that end after it.
func TestAccessLogOfSockets(t *testing.T) {
	s, end := logging(t)
	snap, first, second := twoSockets(oneRoute(statuses(t), nil))
	first.AccessLog.Mode = ir.LogOff
	apply(t, s, snap)
	a, b := connect(t, first.Addr.String()), connect(t, second.Addr.String())
	ask := func(c *asker, path string) {
		t.Helper()
		c.send(t, path)
		if c.status(patience) == 0 {
			t.Fatalf("no answer to %s", path)
		}
	}
	for _, path := range []string{"/200/a-off", "/404/a-off", "/500/a-off"} {
		ask(a, path)
	}
	ask(b, "/200/b-all")
	ask(b, "/404/b-all")

	apply(t, s, changed(snap, first, func(k *ir.Socket) { k.AccessLog.Mode = ir.LogErrors }))
	for _, path := range []string{"/204/a-errors", "/302/a-errors", "/404/a-errors", "/503/a-errors"} {
		ask(a, path)
	}
	ask(b, "/200/b-still")
	// What is malformed is logged as well. It ends the connection.
	if _, err := fmt.Fprint(a, "GET / HTTP/1.1\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if got := a.status(patience); got != 400 {
		t.Errorf("a request without a Host is answered %d", got)
	}
	apply(t, s, snap)
	ask(b, "/200/b-last")
	want := []string{"", "/200/b-all", "/200/b-last", "/200/b-still", "/404/a-errors", "/404/b-all", "/503/a-errors"}
	if diff := cmp.Diff(want, end()); diff != "" {
		t.Errorf("logged (-want +got):\n%s", diff)
	}
}

// A sample is as large as it should be on each of the sockets, whose requests
// alternate, and has all errors.
func TestAccessLogSample(t *testing.T) {
	s, end := logging(t)
	snap, first, second := twoSockets(oneRoute(statuses(t), nil))
	first.AccessLog.SamplePercent, second.AccessLog.SamplePercent = 50, 10
	apply(t, s, snap)
	a, b := connect(t, first.Addr.String()), connect(t, second.Addr.String())
	const n = 400
	for i := range n {
		for _, c := range []*asker{a, b} {
			path := "/200/first"
			if c == b {
				path = "/200/second"
			}
			if c == a && i%40 == 0 {
				path = "/500/first"
			}
			c.send(t, path)
			if c.status(patience) == 0 {
				t.Fatal("no answer")
			}
		}
	}
	got := map[string]int{}
	for _, path := range end() {
		got[path]++
	}
	for path, want := range map[string]int{"/200/first": (n - n/40) / 2, "/200/second": n / 10, "/500/first": n / 40} {
		if off := got[path] - want; off < -2 || off > 2 || path == "/500/first" && off != 0 {
			t.Errorf("%s was logged %d times, want %d", path, got[path], want)
		}
	}
}

// Over any run of a loop's turns the share is as it should be.
func TestDrawn(t *testing.T) {
	for _, percent := range []uint8{1, 7, 50, 99} {
		k := &socket{logTurns: []turn{{n: 1 << 60}}} // anywhere
		n, in := 10_000, 0
		for range n {
			if k.drawn(0, percent) {
				in++
			}
		}
		if want := n * int(percent) / 100; in < want-3 || in > want+3 {
			t.Errorf("%d %%: %d of %d, want %d", percent, in, n, want)
		}
	}
	k := &socket{logTurns: make([]turn, 1)}
	for _, percent := range []uint8{0, 100} {
		for range 1000 {
			if !k.drawn(0, percent) {
				t.Fatalf("%d %%: one was left out", percent)
			}
		}
	}
}
