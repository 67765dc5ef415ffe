package main

import (
	"bufio"
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

// A client of the metrics that never finishes its request, from a network that
// must not reach the rest, does not put the drain off. The old name of the flag
// for its length is understood.
func TestDrainDoesNotWaitForMetrics(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	var f dataPlaneFlags
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	fs.SetOutput(io.Discard) // the note that the name is old
	f.add(fs)
	args := []string{"--metrics-address", address, "--admin-address=", "--access-log=off", "--workers=1", "--drain-timeout=1h"}
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	if f.drain != time.Hour {
		t.Errorf("--drain-timeout is taken as %v", f.drain)
	}
	p, err := f.start(t.Context(), func() error { return nil }, func(*dataplane.Server, *zap.Logger) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const head = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n"
	if _, err := io.WriteString(c, head+"\r\n"+head+"Content-Length: 1\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	time.Sleep(100 * time.Millisecond) // the second request is being read
	stopped := make(chan error, 1)
	go func() { stopped <- p.stop() }()
	select {
	case err := <-stopped:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the process does not stop")
	}
}
