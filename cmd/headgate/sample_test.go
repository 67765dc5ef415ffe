package main

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/dataplane"
	"github.com/headgate/headgate/dataplane/ir"
	"github.com/headgate/headgate/dataplane/metrics"
	"github.com/headgate/headgate/dataplane/reactor"
)

// A sample has the loops and the clusters of the data plane.
func TestSample(t *testing.T) {
	m, err := metrics.New(metrics.Options{Loops: 2, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := dataplane.New(dataplane.Options{Reactor: reactor.Options{Workers: 2}, Metrics: m, Logger: zap.NewNop(), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	}()
	at := netip.MustParseAddrPort("192.0.2.1:80")
	res := s.Apply(&ir.Snapshot{Clusters: []*ir.Cluster{{
		Name: "default/web:80", Protocol: ir.UpstreamHTTP1, Pool: ir.Pool{Size: 7},
		Endpoints: []ir.Endpoint{{Address: at.String(), AddrPort: at, Weight: 1}},
	}}})
	if !res.OK() {
		t.Fatal(res)
	}
	got := sampler{s}.Sample()
	if len(got.Loops) != 2 || len(got.Clusters) != 1 {
		t.Fatalf("sample %+v", got)
	}
	if c := got.Clusters[0]; c.Name != "default/web:80" || c.State != v1alpha1.PressureCalm || c.Size != 7 || c.Endpoints != 1 || c.Active != 0 {
		t.Errorf("cluster %+v", c)
	}
}
