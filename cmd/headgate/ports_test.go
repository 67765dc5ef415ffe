package main

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"

	"github.com/headgate/headgate/controllers/port"
	"github.com/headgate/headgate/dataplane"
	"github.com/headgate/headgate/dataplane/ir"
	"github.com/headgate/headgate/dataplane/metrics"
	"github.com/headgate/headgate/dataplane/reactor"
)

// The controller's look at a port says nothing on it, so it finds the port as it is
// where the PROXY protocol is required, whether the node may speak it or not, and is
// not counted as a refusal.
func TestReachWithTheProxyProtocol(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := netip.MustParseAddrPort(ln.Addr().String())
	ln.Close()
	m, err := metrics.New(metrics.Options{Loops: 1, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := dataplane.New(dataplane.Options{Reactor: reactor.Options{Workers: 1}, Metrics: m, Logger: zaptest.NewLogger(t), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	host := port.New(port.Options{})
	for _, from := range []string{"127.0.0.0/8", "192.0.2.0/24"} {
		if r := s.Apply(&ir.Snapshot{Sockets: []*ir.Socket{{
			Name: addr.String(), Addr: addr, Protocol: ir.ProtocolHTTP,
			Client:    ir.Client{ProxiedFrom: []netip.Prefix{netip.MustParsePrefix(from)}},
			Listeners: []*ir.Listener{{Name: "default/edge/http"}},
		}}}); !r.OK() {
			t.Fatalf("Apply: %+v", r)
		}
		for range 3 {
			if v := host.Reach(t.Context(), []netip.AddrPort{addr})[addr]; v != port.Arrives {
				t.Errorf("with headers from %s: %s, want arrives", from, v)
			}
		}
	}
	families, err := m.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "headgate_proxy_protocol_refused_total" {
			t.Errorf("counted: %v", f.GetMetric())
		}
	}
}
