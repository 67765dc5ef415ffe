package main

import (
	"context"
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
