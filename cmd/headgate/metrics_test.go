package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/headgate/headgate/dataplane"
	"github.com/headgate/headgate/dataplane/ir"
)

// The next process has the metrics' address as soon as the last one gave it back.
func TestMetricsAddress(t *testing.T) {
	last, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := last.Addr().String()
	core, logs := observer.New(zap.InfoLevel)
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "test_up", Help: "Up."}))
	m, err := startMetrics(address, registry, zap.New(core))
	if err != nil {
		t.Fatal(err)
	}
	last.Close()
	deadline := time.Now().Add(20 * time.Second)
	for {
		body := ""
		resp, err := http.Get("http://" + address + "/metrics")
		if err == nil {
			b, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			body = string(b)
		}
		if strings.Contains(body, "test_up 0") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("no metrics: %v, %q", err, body)
		}
		time.Sleep(50 * time.Millisecond)
	}
	if n := logs.FilterMessageSnippet("is taken").Len(); n != 1 {
		t.Errorf("the taken address was logged %d times, want once", n)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := m.close(ctx); err != nil {
		t.Error(err)
	}
	again, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatalf("the address is not given back: %v", err)
	}
	again.Close()
}

// A process that ends while the address is taken does not wait for it.
func TestMetricsAddressNeverFree(t *testing.T) {
	last, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer last.Close()
	m, err := startMetrics(last.Addr().String(), prometheus.NewRegistry(), zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	if err := m.close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestMetricsAddressWrong(t *testing.T) {
	if _, err := startMetrics("nonsense", prometheus.NewRegistry(), zap.NewNop()); err == nil || !strings.Contains(err.Error(), "--metrics-address") {
		t.Errorf("error %v", err)
	}
}

// A scrape that takes its time, from a network that must not reach the rest,
// does not put the drain off. The old name of the flag for the drain's length is
// understood.
func TestDrainDoesNotWaitForMetrics(t *testing.T) {
	var f dataPlaneFlags
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	fs.SetOutput(io.Discard) // the note that the name is old
	f.add(fs)
	if err := fs.Parse([]string{"--admin-address=", "--access-log=off", "--workers=1", "--drain-timeout=1h"}); err != nil {
		t.Fatal(err)
	}
	if f.drain != time.Hour {
		t.Errorf("--drain-timeout is taken as %v", f.drain)
	}
	p, err := f.start(t.Context(), says(ir.Process{}), func() error { return nil }, func(*dataplane.Server, *zap.Logger) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	core, logs := observer.New(zap.InfoLevel)
	p.log = zap.New(core)
	asked, release := make(chan struct{}), make(chan struct{})
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "test_slow", Help: "Slow."}, func() float64 {
		close(asked)
		<-release
		return 0
	}))
	if p.scrape, err = startMetrics(address, registry, p.log); err != nil {
		t.Fatal(err)
	}
	defer close(release)
	drained := make(chan bool, 1)
	go func() {
		resp, err := http.Get("http://" + address + "/metrics")
		if err == nil {
			resp.Body.Close()
		}
		drained <- logs.FilterMessage("draining").Len() > 0
	}()
	<-asked
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	if !<-drained {
		t.Error("the drain began when the scrape was over")
	}
}
