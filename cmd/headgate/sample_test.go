package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/dataplane"
	"github.com/headgate/headgate/dataplane/ir"
	"github.com/headgate/headgate/dataplane/metrics"
	"github.com/headgate/headgate/dataplane/reactor"
	"github.com/headgate/headgate/dataplane/upstream"
)

// started is a data plane with two loops that serves nothing yet.
func started(tb testing.TB) *dataplane.Server {
	tb.Helper()
	m, err := metrics.New(metrics.Options{Loops: 2, Version: "test"})
	if err != nil {
		tb.Fatal(err)
	}
	s, err := dataplane.New(dataplane.Options{Reactor: reactor.Options{Workers: 2}, Metrics: m, Logger: zap.NewNop(), Now: time.Now})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// A sample has the loops and the clusters of the data plane.
func TestSample(t *testing.T) {
	s := started(t)
	at := netip.MustParseAddrPort("192.0.2.1:80")
	res := s.Apply(&ir.Snapshot{Clusters: []*ir.Cluster{{
		Name: "default/web:80", Protocol: ir.UpstreamHTTP1, Pool: ir.Pool{Size: 7},
		Endpoints: []ir.Endpoint{{Address: at.String(), AddrPort: at, Weight: 1}},
	}}})
	if !res.OK() {
		t.Fatal(res)
	}
	got := sampler{s}.Sample()
	clusters := slices.Collect(got.Clusters)
	if len(got.Loops) != 2 || len(clusters) != 1 {
		t.Fatalf("sample %+v, clusters %+v", got.Loops, clusters)
	}
	if c := clusters[0]; c.Name != "default/web:80" || c.State != v1alpha1.PressureCalm || c.Size != 7 || c.Endpoints != 1 || c.Active != 0 {
		t.Errorf("cluster %+v", c)
	}
}

// A sample tells what became of a cluster's requests, and of none that is gone.
func TestSampleDetail(t *testing.T) {
	s := started(t)
	at := netip.MustParseAddrPort("192.0.2.1:80")
	if res := s.Apply(&ir.Snapshot{Clusters: []*ir.Cluster{{
		Name: "default/web:80", Protocol: ir.UpstreamHTTP1, Endpoints: []ir.Endpoint{{Address: at.String(), AddrPort: at, Weight: 1}},
	}}}); !res.OK() {
		t.Fatal(res)
	}
	got := sampler{s}.Sample()
	d, ok := got.Detail("default/web:80")
	if !ok || d.Placed != 0 || d.Shed != 0 || len(d.Times) != upstream.TimeBuckets || len(d.Out) != 0 || d.Instance == 0 {
		t.Errorf("detail %+v, %v", d, ok)
	}
	if got.TimeOf(upstream.TimeBuckets-1) < time.Minute {
		t.Error("no times")
	}
	if _, ok := got.Detail("default/gone:80"); ok {
		t.Error("detail of a cluster that is gone")
	}
}

func TestWhy(t *testing.T) {
	until, check := time.Unix(1000, 0), errors.New("status 500")
	for want, e := range map[string]upstream.OutEndpoint{
		"5 failed requests in a row, the last one: no answer in time":                   {Ejected: until, Times: 1, Failures: 5, Fault: upstream.FaultSlow},
		"a failed request: status 503":                                                  {Ejected: until, Times: 1, Failures: 1, Fault: 503},
		"ejected 3 times in a row, each time it failed again: it can't be connected to": {Ejected: until, Times: 3, Failures: 1, Fault: upstream.FaultConnect},
		"3 failed checks in a row, the last one: status 500":                            {Unwell: check, Checks: 3},
		"a failed check: status 500":                                                    {Unwell: check, Checks: 1},
		"a failed request: status 502; a failed check: status 500":                      {Ejected: until, Failures: 1, Fault: 502, Unwell: check},
	} {
		if got := why(e); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// BenchmarkSample is what a data plane with 5,000 calm clusters does every two
// seconds, and a loop has nothing to do with.
func BenchmarkSample(b *testing.B) {
	snapshot := &ir.Snapshot{}
	at := netip.MustParseAddrPort("192.0.2.1:80")
	for i := range 5000 {
		snapshot.Clusters = append(snapshot.Clusters, &ir.Cluster{
			Name: fmt.Sprintf("default/web%04d:80", i), Protocol: ir.UpstreamHTTP1,
			Endpoints: []ir.Endpoint{{Address: at.String(), AddrPort: at, Weight: 1}},
		})
	}
	s := started(b)
	if res := s.Apply(snapshot); !res.OK() {
		b.Fatal(res)
	}
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for c := range (sampler{s}).Sample().Clusters {
			n += c.Endpoints
		}
		if n != 5000 {
			b.Fatal(n)
		}
	}
}

// BenchmarkDetail is what each cluster that is not calm adds to a sample.
func BenchmarkDetail(b *testing.B) {
	s := started(b)
	at := netip.MustParseAddrPort("192.0.2.1:80")
	if res := s.Apply(&ir.Snapshot{Clusters: []*ir.Cluster{{
		Name: "default/web:80", Protocol: ir.UpstreamHTTP1, Endpoints: []ir.Endpoint{{Address: at.String(), AddrPort: at, Weight: 1}},
	}}}); !res.OK() {
		b.Fatal(res)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := (sampler{s}).detail("default/web:80"); !ok {
			b.Fatal("gone")
		}
	}
}
