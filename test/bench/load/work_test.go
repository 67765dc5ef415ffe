//go:build linux

package main

import (
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/test/bench/rig"
)

// The places and the means, with the clock as an argument.
func TestWorkerCounts(t *testing.T) {
	at := time.Unix(0, 0)
	w := newWorker(at)
	w.replace(rig.Workload{Limit: 2, Mean: time.Second})
	for i, want := range []bool{true, true, false} {
		if d, _, ok := w.begin(at); ok != want || ok && d != time.Second {
			t.Errorf("request %d: %v for %v, want %v", i, ok, d, want)
		}
	}
	w.end(at, at.Add(time.Second), true)
	w.end(at, at.Add(3*time.Second), false)
	want := rig.WorkStats{Served: 1, Refused: 1, Left: 1, Busy: 1, Most: 2, Service: 1}
	if got := w.take(at.Add(4 * time.Second)); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := w.take(at.Add(5 * time.Second)); got != (rig.WorkStats{}) {
		t.Errorf("counted twice: %+v", got)
	}
}

func TestWorkerTimes(t *testing.T) {
	at := time.Unix(0, 0)
	w := newWorker(at)
	mean := func(l rig.Workload) float64 {
		w.replace(l)
		var sum time.Duration
		for range 20_000 {
			d, _, _ := w.begin(at)
			sum += d
		}
		return sum.Seconds() / 20_000
	}
	if m := mean(rig.Workload{Mean: 20 * time.Millisecond, Exponential: true, Seed: 1}); math.Abs(m-0.02) > 0.0005 {
		t.Errorf("exponential: mean %v, want 0.02", m)
	}
	if m := mean(rig.Workload{Mean: 10 * time.Millisecond, SlowShare: 0.5, Slow: 214 * time.Millisecond, Seed: 1}); math.Abs(m-0.112) > 0.003 {
		t.Errorf("half of them slow: mean %v, want 0.112", m)
	}
}

func TestWorkerHangsUntilReplaced(t *testing.T) {
	w := newWorker(time.Now())
	s := httptest.NewServer(w)
	defer s.Close()
	control := func(body string, want int) {
		t.Helper()
		resp, err := http.Post(s.URL+"/control", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Fatalf("control %s: %s", body, resp.Status)
		}
	}
	control(`{"limit":"many"}`, http.StatusBadRequest)
	control(`{"hang":true,"limit":1}`, http.StatusOK)
	answer := make(chan int)
	go func() {
		resp, err := http.Get(s.URL + "/x")
		if err != nil {
			answer <- 0
			return
		}
		resp.Body.Close()
		answer <- resp.StatusCode
	}()
	for taken := false; !taken; time.Sleep(time.Millisecond) {
		w.mu.Lock()
		taken = w.active == 1
		w.mu.Unlock()
	}
	resp, err := http.Get(s.URL + "/y")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("the second of one place got %s", resp.Status)
	}
	control(`{"mean_ns":1000000}`, http.StatusOK)
	if status := <-answer; status != http.StatusOK {
		t.Errorf("who hung got %d", status)
	}
	if resp, err = http.Get(s.URL + "/stats"); err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var stats rig.WorkStats
	if err := json.NewDecoder(resp.Body).Decode(&stats); err != nil || stats.Served != 1 || stats.Refused != 1 {
		t.Errorf("%+v, %v", stats, err)
	}
}
