package dataplane

import (
	"context"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"

	"github.com/headgate/headgate/dataplane/ir"
	"github.com/headgate/headgate/dataplane/metrics"
	"github.com/headgate/headgate/dataplane/reactor"
	"github.com/headgate/headgate/dataplane/upstream"
)

// clusterStats returns the states of the clusters, by name.
func clusterStats(s *Server) map[string]upstream.Stats { return maps.Collect(s.Clusters()) }

// newServer starts a server with two loops that the test's end stops.
func newServer(t testing.TB, change func(*Options)) *Server {
	t.Helper()
	m, err := metrics.New(metrics.Options{Loops: 2, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Reactor: reactor.Options{Workers: 2}, Metrics: m, Logger: zaptest.NewLogger(t), Now: time.Now}
	if change != nil {
		change(&o)
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil && ctx.Err() == nil {
			t.Errorf("Shutdown: %v", err)
		}
	})
	return s
}

// backendServer is an upstream on loopback.
func backendServer(t testing.TB, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	b := httptest.NewServer(h)
	t.Cleanup(b.Close)
	return b
}

// clusterOf returns a cluster of the given "ip:port" addresses.
func clusterOf(name string, addresses ...string) *ir.Cluster {
	c := &ir.Cluster{Name: name, Protocol: ir.UpstreamHTTP1}
	for _, a := range addresses {
		a = strings.TrimPrefix(a, "http://")
		c.Endpoints = append(c.Endpoints, ir.Endpoint{Address: a, AddrPort: netip.MustParseAddrPort(a)})
	}
	return c
}

// oneRoute returns a snapshot in which every path of every host goes to a
// cluster, on a free port of loopback.
func oneRoute(c *ir.Cluster, change func(*ir.Rule)) *ir.Snapshot {
	rule := &ir.Rule{
		Matches:  []*ir.Match{{Path: ir.PathMatch{Kind: ir.MatchPrefix, Value: "/"}}},
		Backends: []*ir.Backend{{Cluster: c.Name, Weight: 1}},
	}
	if change != nil {
		change(rule)
	}
	addr := freeAddress()
	return &ir.Snapshot{
		Clusters: []*ir.Cluster{c},
		Sockets: []*ir.Socket{{
			Name: addr.String(), Addr: addr, Protocol: ir.ProtocolHTTP,
			Listeners: []*ir.Listener{{
				Name:   "default/gw/http",
				Routes: []*ir.Route{{Name: "default/all", Hostnames: []string{""}, Rules: []*ir.Rule{rule}}},
			}},
		}},
	}
}

// portCursor is where the search for a free port goes on.
var portCursor atomic.Uint32

// freeAddress returns a loopback address that nobody listens on. It is below the
// range that the kernel gives to outgoing connections, and to listeners that name
// no port, so that none takes it meanwhile.
func freeAddress() netip.AddrPort {
	const low, span = 12_000, 6_000 // test/cases has those from 20,000
	for range span {
		port := uint16(low + (os.Getpid()*97+int(portCursor.Add(1)))%span)
		addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port)
		if l, err := net.Listen("tcp4", addr.String()); err == nil {
			l.Close()
			return addr
		}
	}
	panic("no free port")
}

// apply applies a snapshot and returns the address of its first socket.
func apply(t testing.TB, s *Server, snap *ir.Snapshot) string {
	t.Helper()
	if r := s.Apply(snap); !r.OK() {
		t.Fatalf("Apply: %+v", r)
	}
	return snap.Sockets[0].Addr.String()
}
