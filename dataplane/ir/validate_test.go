package ir_test

import (
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/dataplane/ir"
)

// valid returns a snapshot that has one of everything.
func valid() *ir.Snapshot {
	second, minute := time.Second, time.Minute
	rule := &ir.Rule{
		Name: "named",
		Matches: []*ir.Match{{
			Path: ir.PathMatch{Kind: ir.MatchPrefix, Value: "/a"}, Method: "GET",
			Headers: []ir.ValueMatch{{Name: "X-A", Kind: ir.MatchExact, Value: "1"}, {Name: "x-b", Kind: ir.MatchRegex, Value: "a|b"}},
			Query:   []ir.ValueMatch{{Name: "q", Kind: ir.MatchExact}},
		}},
		Filters: []*ir.Filter{
			{Order: 1, RequestHeaders: &ir.HeaderChange{Set: []ir.Header{{Name: "A", Value: "1"}}, Add: []ir.Header{{Name: "B"}}, Remove: []string{"C"}}},
			{Order: 2, ResponseHeaders: &ir.HeaderChange{}},
			{Order: 3, Rewrite: &ir.Rewrite{Hostname: "b.example.com", Path: &ir.PathChange{Prefix: true}}},
		},
		Backends: []*ir.Backend{
			{Cluster: "default/web:80", Weight: 1, Filters: []*ir.Filter{{Order: 4, RequestHeaders: &ir.HeaderChange{}}}},
			{Invalid: "gone", Weight: 1_000_000},
		},
		Timeouts: ir.Timeouts{Request: &minute, Backend: &second},
	}
	redirect := &ir.Rule{
		Index:   2,
		Matches: []*ir.Match{{Path: ir.PathMatch{Kind: ir.MatchExact, Value: "/"}}, {Path: ir.PathMatch{Kind: ir.MatchRegex, Value: "/[a-z]+"}}},
		Filters: []*ir.Filter{{Order: -1, Redirect: &ir.Redirect{Scheme: "https", Hostname: "www.example.com", Status: 301, Path: &ir.PathChange{Value: "/b"}}}},
	}
	return &ir.Snapshot{
		Sockets: []*ir.Socket{
			{
				Name: "0.0.0.0:443", Addr: netip.MustParseAddrPort("0.0.0.0:443"), Protocol: ir.ProtocolHTTPS,
				Client: ir.Client{
					TrustedProxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")},
					ProxiedFrom:    []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")},
				},
				Listeners: []*ir.Listener{{
					Name: "default/edge/https", Hostname: "*.example.com",
					TLS:    &ir.TLS{Certificates: []*ir.Certificate{{Name: "default/cert", Chain: []byte("c"), Key: ir.NewSecret([]byte("k"))}}},
					Routes: []*ir.Route{{Name: "default/a", Hostnames: []string{"*.b.example.com", "a.example.com"}, Rules: []*ir.Rule{rule, redirect}}},
				}},
			},
			{
				Name: "[::]:80", Addr: netip.MustParseAddrPort("[::]:80"), Protocol: ir.ProtocolHTTP,
				Listeners: []*ir.Listener{
					{Name: "default/edge/a", Routes: []*ir.Route{{Name: "default/a", Hostnames: []string{""}}, {Name: "default/b", Hostnames: []string{"b"}}}},
					{Name: "default/edge/b", Hostname: "b.example.com"},
				},
			},
		},
		Clusters: []*ir.Cluster{
			{Name: "default/api:80", Protocol: ir.UpstreamHTTP1, Balance: ir.BalanceRoundRobin},
			{
				Name: "default/web:80", Protocol: ir.UpstreamHTTP1,
				Endpoints: []ir.Endpoint{
					{Address: "10.0.0.1:80", AddrPort: netip.MustParseAddrPort("10.0.0.1:80"), Weight: 1},
					{Address: "web.example.com:80", Draining: true},
				},
				Pool:  ir.Pool{Size: 10, ResponseTimeout: -1},
				Check: &ir.HealthCheck{Path: "/healthz", Statuses: []ir.StatusRange{{First: 200, Last: 299}}},
			},
		},
	}
}

func TestValidate(t *testing.T) {
	if err := valid().Validate(); err != nil {
		t.Fatalf("a valid snapshot: %v", err)
	}
	if err := new(ir.Snapshot).Validate(); err != nil {
		t.Fatalf("the empty snapshot: %v", err)
	}
	route := func(s *ir.Snapshot) *ir.Route { return s.Sockets[0].Listeners[0].Routes[0] }
	rule := func(s *ir.Snapshot) *ir.Rule { return route(s).Rules[0] }
	redirect := func(s *ir.Snapshot) *ir.Rule { return route(s).Rules[1] }
	negative, hour := -time.Second, time.Hour
	for _, tt := range []struct {
		name string
		edit func(*ir.Snapshot)
		want string
	}{
		{"a client's negative timeout", func(s *ir.Snapshot) { s.Sockets[0].Client.IdleTimeout = -1 }, "timeout is negative"},
		{"a client's negative limit", func(s *ir.Snapshot) { s.Sockets[0].Client.MaxHeaders = -1 }, "limit of heads is negative"},
		{"an access log of an unknown mode", func(s *ir.Snapshot) { s.Sockets[0].AccessLog.Mode = ir.LogOff + 1 }, "mode 4 is unknown"},
		{"an access log's large sample", func(s *ir.Snapshot) { s.Sockets[0].AccessLog.SamplePercent = 101 }, "sample of 101 percent"},
		{"workers below zero", func(s *ir.Snapshot) { s.Process.Workers = -1 }, "is negative"},
		{"connections below zero", func(s *ir.Snapshot) { s.Process.MaxConnections = -1 }, "is negative"},
		{"memory below zero", func(s *ir.Snapshot) { s.Process.MemoryLimit = -1 }, "is negative"},
		{"pinning that is unknown", func(s *ir.Snapshot) { s.Process.Pinning = ir.PinOff + 1 }, "pinning 3 is unknown"},
		{"balance that is unknown", func(s *ir.Snapshot) { s.Clusters[0].Balance = ir.BalanceConsistentHash + 1 }, "balance 4"},
		{"hash of what is unknown", func(s *ir.Snapshot) { s.Clusters[0].HashOn.Kind = ir.HashCookie + 1 }, "hash of 3"},
		{"hash of the client with a name", func(s *ir.Snapshot) { s.Clusters[0].HashOn.Name = "x" }, "has no name"},
		{"hash of a malformed header", func(s *ir.Snapshot) { s.Clusters[0].HashOn = ir.HashOn{Kind: ir.HashHeader, Name: "a b"} }, "\"a b\" is malformed"},
		{"hash of no cookie", func(s *ir.Snapshot) { s.Clusters[0].HashOn.Kind = ir.HashCookie }, "is malformed"},
		{"ejection after -1 failures", func(s *ir.Snapshot) { s.Clusters[0].Ejection.Failures = -1 }, "1 to 1000"},
		{"ejection after too many failures", func(s *ir.Snapshot) { s.Clusters[0].Ejection.Failures = 1001 }, "1 to 1000"},
		{"ejection for less than no time", func(s *ir.Snapshot) { s.Clusters[0].Ejection.Period = -1 }, "negative"},
		{"ejection of more than all", func(s *ir.Snapshot) { s.Clusters[0].Ejection.MaxPercent = 101 }, "1 to 100"},
		{"check without path", func(s *ir.Snapshot) { s.Clusters[0].Check = &ir.HealthCheck{} }, "slash"},
		{"check of a path with a line end", func(s *ir.Snapshot) { s.Clusters[0].Check = &ir.HealthCheck{Path: "/a\r\nb"} }, "control"},
		{"check of a malformed host", func(s *ir.Snapshot) { s.Clusters[0].Check = &ir.HealthCheck{Path: "/", Host: "a b"} }, "host \"a b\""},
		{"check that comes too often", func(s *ir.Snapshot) { s.Clusters[0].Check = &ir.HealthCheck{Path: "/", Interval: time.Millisecond} }, "100ms or more"},
		{"check that ends before it begins", func(s *ir.Snapshot) { s.Clusters[0].Check = &ir.HealthCheck{Path: "/", Timeout: -1} }, "negative"},
		{"check with a threshold too many", func(s *ir.Snapshot) { s.Clusters[0].Check = &ir.HealthCheck{Path: "/", Unhealthy: 101} }, "1 to 100"},
		{"check of statuses in the wrong order", func(s *ir.Snapshot) {
			s.Clusters[0].Check = &ir.HealthCheck{Path: "/", Statuses: []ir.StatusRange{{300, 200}}}
		}, "300 to 200"},
		{"check of a status that is none", func(s *ir.Snapshot) {
			s.Clusters[0].Check = &ir.HealthCheck{Path: "/", Statuses: []ir.StatusRange{{99, 200}}}
		}, "within 100 to 599"},
		{"retry budget below zero", func(s *ir.Snapshot) { s.Clusters[0].Retries.Percent = -1 }, "1 to 1000"},
		{"retry budget of too many a second", func(s *ir.Snapshot) { s.Clusters[0].Retries.MinPerSecond = 10_001 }, "1 to 10000"},
		{"slow start before it began", func(s *ir.Snapshot) { s.Clusters[0].SlowStart = -1 }, "negative"},
		{"too many warm connections", func(s *ir.Snapshot) { s.Clusters[0].Pool.Warm = 1001 }, "0 to 1000"},
		{"nil socket", func(s *ir.Snapshot) { s.Sockets[0] = nil }, "socket 0 is nil"},
		{"sockets out of order", func(s *ir.Snapshot) { s.Sockets[0], s.Sockets[1] = s.Sockets[1], s.Sockets[0] }, "sorted"},
		{"socket twice", func(s *ir.Snapshot) { s.Sockets[1] = s.Sockets[0] }, "unique"},
		{"socket without address", func(s *ir.Snapshot) { s.Sockets[0].Addr = netip.AddrPort{} }, "no address"},
		{"socket with another name", func(s *ir.Snapshot) { s.Sockets[0].Name = "0.0.0.0:80" }, "name must be the address"},
		{"socket without protocol", func(s *ir.Snapshot) { s.Sockets[0].Protocol = 0 }, "protocol 0"},
		{"nil listener", func(s *ir.Snapshot) { s.Sockets[1].Listeners[0] = nil }, "listener 0 is nil"},
		{"listeners out of order", func(s *ir.Snapshot) { s.Sockets[1].Listeners[0].Name = "z" }, "sorted"},
		{"hostname twice", func(s *ir.Snapshot) { s.Sockets[1].Listeners[1].Hostname = "" }, "same hostname"},
		{"hostname in upper case", func(s *ir.Snapshot) { s.Sockets[1].Listeners[1].Hostname = "B.example.com" }, "malformed"},
		{"hostname with empty label", func(s *ir.Snapshot) { s.Sockets[1].Listeners[1].Hostname = "a..b" }, "malformed"},
		{"hostname that ends with a hyphen", func(s *ir.Snapshot) { s.Sockets[1].Listeners[1].Hostname = "a-.b" }, "malformed"},
		{"hostname that is too long", func(s *ir.Snapshot) { s.Sockets[1].Listeners[1].Hostname = strings.Repeat("a", 254) }, "malformed"},
		{"TLS on HTTP", func(s *ir.Snapshot) { s.Sockets[1].Listeners[0].TLS = &ir.TLS{} }, "TLS must be set"},
		{"no TLS on HTTPS", func(s *ir.Snapshot) { s.Sockets[0].Listeners[0].TLS = nil }, "TLS must be set"},
		{"certificate without key", func(s *ir.Snapshot) { s.Sockets[0].Listeners[0].TLS.Certificates[0].Key = ir.Secret{} }, "incomplete"},
		{"nil route", func(s *ir.Snapshot) { s.Sockets[1].Listeners[0].Routes[0] = nil }, "route 0 is nil"},
		{"routes out of order", func(s *ir.Snapshot) { s.Sockets[1].Listeners[0].Routes[0].Name = "z" }, "sorted"},
		{"route without hostname", func(s *ir.Snapshot) { route(s).Hostnames = nil }, "no hostname"},
		{"route with a malformed hostname", func(s *ir.Snapshot) { route(s).Hostnames[0] = "*" }, "malformed"},
		{"route with a hostname twice", func(s *ir.Snapshot) { route(s).Hostnames[1] = "*.b.example.com" }, "twice"},
		{"route at the apex of a wildcard", func(s *ir.Snapshot) { route(s).Hostnames[0] = "example.com" }, "outside"},
		{"route for any host below a wildcard", func(s *ir.Snapshot) { route(s).Hostnames[0] = "" }, "outside"},
		{"route of another host", func(s *ir.Snapshot) { route(s).Hostnames[0] = "*.example.org" }, "outside"},
		{"trusted prefix", func(s *ir.Snapshot) { s.Sockets[0].Client.TrustedProxies[0] = netip.Prefix{} }, "a trusted prefix is malformed"},
		{"prefix of the PROXY protocol", func(s *ir.Snapshot) { s.Sockets[0].Client.ProxiedFrom[0] = netip.Prefix{} }, "peers is malformed"},
		{"the PROXY protocol from nobody", func(s *ir.Snapshot) { s.Sockets[0].Client.ProxiedFrom = []netip.Prefix{} }, "nobody may speak it"},
		{"nil rule", func(s *ir.Snapshot) { route(s).Rules[0] = nil }, "rule 0 is nil"},
		{"rules out of order", func(s *ir.Snapshot) { redirect(s).Index = 0 }, "indexes"},
		{"no match", func(s *ir.Snapshot) { rule(s).Matches = nil }, "no match"},
		{"nil match", func(s *ir.Snapshot) { rule(s).Matches[0] = nil }, "match 0 is nil"},
		{"path without slash", func(s *ir.Snapshot) { rule(s).Matches[0].Path.Value = "a" }, "slash"},
		{"path kind", func(s *ir.Snapshot) { rule(s).Matches[0].Path.Kind = 9 }, "path kind 9"},
		{"path expression", func(s *ir.Snapshot) { redirect(s).Matches[1].Path.Value = "a)(b" }, "regular expression"},
		{"method", func(s *ir.Snapshot) { rule(s).Matches[0].Method = "G T" }, "method"},
		{"header name", func(s *ir.Snapshot) { rule(s).Matches[0].Headers[0].Name = "a:" }, "header name"},
		{"header kind", func(s *ir.Snapshot) { rule(s).Matches[0].Headers[0].Kind = ir.MatchPrefix }, "kind 2"},
		{"header expression", func(s *ir.Snapshot) { rule(s).Matches[0].Headers[1].Value = "(" }, "regular expression"},
		{"query name", func(s *ir.Snapshot) { rule(s).Matches[0].Query[0].Name = "" }, "no name"},
		{"query kind", func(s *ir.Snapshot) { rule(s).Matches[0].Query[0].Kind = 0 }, "kind 0"},
		{"nil filter", func(s *ir.Snapshot) { rule(s).Filters[0] = nil }, "filter 0 is nil"},
		{"filters of one order", func(s *ir.Snapshot) { rule(s).Filters[1].Order = 1 }, "orders"},
		{"filter with two actions", func(s *ir.Snapshot) { rule(s).Filters[0].ResponseHeaders = &ir.HeaderChange{} }, "2 of the actions"},
		{"filter without action", func(s *ir.Snapshot) { rule(s).Filters[0].RequestHeaders = nil }, "0 of the actions"},
		{"filter with a malformed name", func(s *ir.Snapshot) { rule(s).Filters[0].RequestHeaders.Add[0].Name = "" }, "header name"},
		{"filter with a line break", func(s *ir.Snapshot) { rule(s).Filters[0].RequestHeaders.Set[0].Value = "a\r\nb" }, "control character"},
		{"filter that removes nothing", func(s *ir.Snapshot) { rule(s).Filters[0].RequestHeaders.Remove[0] = "a b" }, "header name"},
		{"redirect scheme", func(s *ir.Snapshot) { redirect(s).Filters[0].Redirect.Scheme = "ftp" }, "scheme"},
		{"redirect hostname", func(s *ir.Snapshot) { redirect(s).Filters[0].Redirect.Hostname = "*.example.com" }, "redirect hostname"},
		{"redirect status", func(s *ir.Snapshot) { redirect(s).Filters[0].Redirect.Status = 304 }, "status"},
		{"redirect path", func(s *ir.Snapshot) { redirect(s).Filters[0].Redirect.Path.Value = "b" }, "slash"},
		{"redirect to an empty path", func(s *ir.Snapshot) { redirect(s).Filters[0].Redirect.Path.Value = "" }, "slash"},
		{"redirect of a prefix that is none", func(s *ir.Snapshot) { redirect(s).Filters[0].Redirect.Path.Prefix = true }, "single prefix match"},
		{"rewrite hostname", func(s *ir.Snapshot) { rule(s).Filters[2].Rewrite.Hostname = "A" }, "rewrite hostname"},
		{"rewrite for one backend", func(s *ir.Snapshot) { rule(s).Backends[0].Filters[0] = &ir.Filter{Rewrite: &ir.Rewrite{}} }, "only change headers"},
		{"nil backend", func(s *ir.Snapshot) { rule(s).Backends[0] = nil }, "backend 0 is nil"},
		{"backend without cluster", func(s *ir.Snapshot) { rule(s).Backends[1].Invalid = "" }, "neither"},
		{"backend with cluster and fault", func(s *ir.Snapshot) { rule(s).Backends[0].Invalid = "x" }, "a cluster and"},
		{"backend of an unknown cluster", func(s *ir.Snapshot) { rule(s).Backends[0].Cluster = "x" }, "not in the snapshot"},
		{"backend that is too heavy", func(s *ir.Snapshot) { rule(s).Backends[0].Weight = 1_000_001 }, "weight"},
		{"negative timeout", func(s *ir.Snapshot) { rule(s).Timeouts.Request = &negative }, "negative"},
		{"longer timeout of a try", func(s *ir.Snapshot) { rule(s).Timeouts.Backend = &hour }, "longer"},
		{"nil cluster", func(s *ir.Snapshot) { s.Clusters[0] = nil }, "cluster 0 is nil"},
		{"clusters out of order", func(s *ir.Snapshot) { s.Clusters[0].Name = "z" }, "sorted"},
		{"cluster protocol", func(s *ir.Snapshot) { s.Clusters[0].Protocol = 0 }, "protocol 0"},
		{"cluster balance", func(s *ir.Snapshot) { s.Clusters[0].Balance = 9 }, "balance"},
		{"endpoints out of order", func(s *ir.Snapshot) { s.Clusters[1].Endpoints[1].Address = "0.example.com:80" }, "sorted"},
		{"endpoint without address", func(s *ir.Snapshot) { s.Clusters[1].Endpoints[0].Address = "" }, "addresses must be set"},
		{"endpoint with another address", func(s *ir.Snapshot) { s.Clusters[1].Endpoints[0].Address = "10.0.0.1:81" }, "parsed address"},
		{"endpoint without port", func(s *ir.Snapshot) { s.Clusters[1].Endpoints[1].Address = "web.example.com" }, "port"},
		{"endpoint with port 0", func(s *ir.Snapshot) { s.Clusters[1].Endpoints[1].Address = "web.example.com:0" }, "port"},
		{"endpoint without host", func(s *ir.Snapshot) { s.Clusters[1].Endpoints[1].Address = ":80" }, "name is malformed"},
		{"endpoint with a malformed name", func(s *ir.Snapshot) { s.Clusters[1].Endpoints[1].Address = "w_b:80" }, "name"},
		{"endpoint that is too heavy", func(s *ir.Snapshot) { s.Clusters[1].Endpoints[0].Weight = 1_000_001 }, "weight"},
		{"negative pool", func(s *ir.Snapshot) { s.Clusters[1].Pool.Size = -1 }, "pool"},
		{"theta above 1", func(s *ir.Snapshot) { s.Clusters[1].Pressure.Theta = 85 }, "theta 85 must be above 0 and at most 1"},
		{"theta that is no number", func(s *ir.Snapshot) { s.Clusters[1].Pressure.Theta = math.NaN() }, "theta NaN must be"},
		{"too many held", func(s *ir.Snapshot) { s.Clusters[1].Pressure.Held = 1_000_001 }, "1000001 held requests"},
		{"negative held bytes", func(s *ir.Snapshot) { s.Clusters[1].Pressure.HeldBytes = -1 }, "must not be negative"},
		{"negative hold time", func(s *ir.Snapshot) { s.Clusters[1].Pressure.HoldTime = -1 }, "hold time -1ns must be between"},
		{"hold time of hours", func(s *ir.Snapshot) { s.Clusters[1].Pressure.HoldTime = 2 * hour }, "hold time 2h0m0s must be between"},
		{"unknown mode", func(s *ir.Snapshot) { s.Clusters[1].Adaptive.Mode = 4 }, "mode 4 is unknown"},
		{"alpha of 1", func(s *ir.Snapshot) { s.Clusters[1].Adaptive.Alpha = 1 }, "alpha 1 must be between 0 and 1"},
		{"alpha that is no number", func(s *ir.Snapshot) { s.Clusters[1].Adaptive.Alpha = math.NaN() }, "alpha NaN must be"},
		{"beta of 1", func(s *ir.Snapshot) { s.Clusters[1].Adaptive.Beta = 1 }, "beta 1 must be above 1"},
		{"beta of 101", func(s *ir.Snapshot) { s.Clusters[1].Adaptive.Beta = 101 }, "at most 100"},
		{"negative deadline", func(s *ir.Snapshot) { s.Clusters[1].Adaptive.Min = -1 }, "must not be negative"},
		{"deadline of hours", func(s *ir.Snapshot) { s.Clusters[1].Adaptive.Max = 2 * hour }, "at most 1h0m0s"},
		{"min above max", func(s *ir.Snapshot) {
			s.Clusters[1].Adaptive = ir.AdaptiveTimeout{Min: 2 * time.Second, Max: time.Second}
		}, "min 2s is above max 1s"},
		{"initial above max", func(s *ir.Snapshot) {
			s.Clusters[1].Adaptive = ir.AdaptiveTimeout{Initial: 2 * time.Second, Max: time.Second}
		}, "initial 2s is above max 1s"},
		{"negative pool timeout", func(s *ir.Snapshot) { s.Clusters[1].Pool.IdleTimeout = -1 }, "timeout of the pool"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := valid()
			tt.edit(s)
			err := s.Validate()
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
