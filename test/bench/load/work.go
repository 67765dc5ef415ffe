//go:build linux

package main

import (
	"encoding/json"
	"flag"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/headgate/headgate/test/bench/rig"
)

// worker is a backend with a number of places and a service time.
type worker struct {
	mu      sync.Mutex
	load    rig.Workload
	chance  *rand.Rand
	release chan struct{} // closed when the workload is replaced
	body    []byte

	active   int
	stats    rig.WorkStats
	since    time.Time // of the stats
	moved    time.Time // of active
	busy     float64   // requests times seconds
	services time.Duration
}

func newWorker(now time.Time) *worker {
	w := &worker{since: now, moved: now, body: []byte(`{"payload":"` + strings.Repeat("x", 498) + `"}`)}
	w.replace(rig.Workload{Mean: time.Millisecond})
	return w
}

func runWork(args []string) error {
	fs := flag.NewFlagSet("work", flag.ExitOnError)
	listen := fs.String("listen", "127.0.0.1:9002", "address")
	fs.Parse(args)
	ln, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	if err := report(map[string]string{"listening": ln.Addr().String()}); err != nil {
		return err
	}
	return http.Serve(ln, newWorker(time.Now()))
}

// ServeHTTP serves work at any path but those that control it.
func (w *worker) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/control":
		var l rig.Workload
		if err := json.NewDecoder(r.Body).Decode(&l); err != nil {
			http.Error(rw, err.Error(), http.StatusBadRequest)
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.replace(l)
	case "/stats":
		w.mu.Lock()
		defer w.mu.Unlock()
		json.NewEncoder(rw).Encode(w.take(time.Now()))
	default:
		w.work(rw, r)
	}
}

// replace changes the workload; who hangs is served now.
func (w *worker) replace(l rig.Workload) {
	if w.release != nil {
		close(w.release)
	}
	w.load, w.release, w.chance = l, make(chan struct{}), rand.New(rand.NewPCG(l.Seed, 0))
}

func (w *worker) work(rw http.ResponseWriter, r *http.Request) {
	began := time.Now()
	d, release, ok := w.begin(began)
	if !ok {
		http.Error(rw, "all places are taken", http.StatusServiceUnavailable)
		return
	}
	served := true
	if d != 0 {
		var after <-chan time.Time // never, when it hangs
		if d > 0 {
			t := time.NewTimer(d)
			defer t.Stop()
			after = t.C
		}
		select {
		case <-after:
		case <-release:
		case <-r.Context().Done():
			served = false
		}
	}
	w.end(began, time.Now(), served)
	if served {
		rw.Header().Set("Content-Type", "application/json")
		rw.Header().Set("Content-Length", strconv.Itoa(len(w.body)))
		rw.Write(w.body)
	}
}

// begin takes a place. The service time is negative when the request hangs.
func (w *worker) begin(now time.Time) (d time.Duration, release <-chan struct{}, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.load.Limit > 0 && w.active >= w.load.Limit {
		w.stats.Refused++
		return 0, nil, false
	}
	w.pass(now)
	w.active++
	w.stats.Most = max(w.stats.Most, w.active)
	d = w.load.Mean
	if w.load.Exponential {
		d = time.Duration(w.chance.ExpFloat64() * float64(d))
	}
	if w.load.SlowShare > 0 && w.chance.Float64() < w.load.SlowShare {
		d = w.load.Slow
	}
	if w.load.Hang {
		d = -1
	}
	return d, w.release, true
}

// end gives the place back.
func (w *worker) end(began, now time.Time, served bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pass(now)
	w.active--
	if !served {
		w.stats.Left++
		return
	}
	w.stats.Served++
	w.services += now.Sub(began)
}

// pass counts the time since the last change.
func (w *worker) pass(now time.Time) {
	if d := now.Sub(w.moved); d > 0 {
		w.busy += float64(w.active) * d.Seconds()
		w.moved = now
	}
}

// take returns the counts and begins new ones.
func (w *worker) take(now time.Time) rig.WorkStats {
	w.pass(now)
	s := w.stats
	if d := now.Sub(w.since).Seconds(); d > 0 {
		s.Busy = w.busy / d
	}
	if s.Served > 0 {
		s.Service = w.services.Seconds() / float64(s.Served)
	}
	w.stats, w.since, w.busy, w.services = rig.WorkStats{Most: w.active}, now, 0, 0
	return s
}
