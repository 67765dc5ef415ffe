package route

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/dataplane/ir"
	"github.com/headgate/headgate/dataplane/message"
)

// bulk is a socket with one listener and n routes over n/100 hosts. A route
// has one rule, with an exact path, a prefix of one or of three segments, or,
// every twentieth, conditions; each tenth host is a wildcard.
func bulk(n int) *ir.Socket {
	l := &ir.Listener{Name: "ns/gw/http"}
	for i := range n {
		l.Routes = append(l.Routes, bulkRoute(n, i))
	}
	return &ir.Socket{Name: "0.0.0.0:80", Listeners: []*ir.Listener{l}}
}

func bulkRoute(n, i int) *ir.Route {
	hosts := max(1, n/100)
	h, k := i%hosts, i/hosts
	hostname := fmt.Sprintf("shop-%04d.example.com", h)
	if h%10 == 9 {
		hostname = fmt.Sprintf("*.shop-%04d.example.com", h)
	}
	m := &ir.Match{Path: ir.PathMatch{Kind: ir.MatchExact, Value: fmt.Sprintf("/api/v1/items-%03d", k)}}
	switch k % 4 {
	case 1:
		m.Path = ir.PathMatch{Kind: ir.MatchPrefix, Value: fmt.Sprintf("/svc-%03d", k)}
	case 2:
		m.Path = ir.PathMatch{Kind: ir.MatchPrefix, Value: fmt.Sprintf("/api/v2/team-%03d", k)}
	case 3:
		m.Path = ir.PathMatch{Kind: ir.MatchPrefix, Value: "/"}
		m.Method = "POST"
		m.Headers = []ir.ValueMatch{{Name: "X-Tenant", Kind: ir.MatchExact, Value: fmt.Sprintf("t-%03d", k)}}
		if k > 20 {
			m.Path = ir.PathMatch{Kind: ir.MatchExact, Value: fmt.Sprintf("/tenants/%03d", k)}
			m.Headers = nil
		}
	}
	return &ir.Route{
		Name: fmt.Sprintf("ns-%04d/route-%03d", h, k), Hostnames: []string{hostname}, Created: time.Unix(int64(i), 0),
		Rules: []*ir.Rule{{Matches: []*ir.Match{m}}},
	}
}

// bulkSorted is bulk with its routes in the order that the IR promises.
func bulkSorted(n int) *ir.Socket {
	s := bulk(n)
	sortRoutes(s.Listeners[0].Routes)
	return s
}

func bulkTable(b testing.TB, n int) (*Table, *ir.Socket) {
	s := bulkSorted(n)
	table, err := New([]*ir.Socket{s}, nil)
	if err != nil {
		b.Fatal(err)
	}
	return table, s
}

var bulkSizes = []int{1_000, 10_000, 100_000}

// query is a prepared request.
type query struct {
	host []byte
	req  *message.Request
}

func newQuery(host, method, path string) query {
	return query{[]byte(host), &message.Request{Host: []byte(host), Method: []byte(method), Path: []byte(path)}}
}

func BenchmarkLookup(b *testing.B) {
	for _, n := range bulkSizes {
		table, _ := bulkTable(b, n)
		for _, bench := range []struct {
			name  string
			query query
			found bool
		}{
			{"exact", newQuery("shop-0003.example.com", "GET", "/api/v1/items-040"), true},
			{"prefix", newQuery("shop-0003.example.com", "GET", "/svc-041/users/7"), true},
			{"prefix3", newQuery("shop-0003.example.com", "GET", "/api/v2/team-042/users/7"), true},
			{"method", newQuery("shop-0003.example.com", "POST", "/tenants/043"), true},
			{"wildcard", newQuery("eu.shop-0009.example.com", "GET", "/api/v1/items-040"), true},
			{"missPath", newQuery("shop-0003.example.com", "GET", "/api/v2/nothing/here"), false},
			{"missHost", newQuery("www.elsewhere.example.com", "GET", "/api/v1/items-040"), false},
		} {
			b.Run(fmt.Sprintf("routes=%d/%s", n, bench.name), func(b *testing.B) {
				b.ReportAllocs()
				var m Match
				socket := table.Socket("0.0.0.0:80")
				for b.Loop() {
					if socket.Listener(bench.query.host).Lookup(bench.query.host, bench.query.req, &m) != bench.found {
						b.Fatal("wrong answer")
					}
				}
			})
		}
	}
}

// BenchmarkLookupSpread asks for the routes in random order: hot means 1,000
// of them, which the caches hold; all is the worst case, where every lookup
// finds its part of the table in no cache.
func BenchmarkLookupSpread(b *testing.B) {
	for _, n := range bulkSizes {
		table, s := bulkTable(b, n)
		for _, bench := range []struct {
			name  string
			count int
		}{{"hot", 1000}, {"all", n}} {
			b.Run(fmt.Sprintf("routes=%d/%s", n, bench.name), func(b *testing.B) {
				random := rand.New(rand.NewPCG(1, 2))
				asked := newTape(s.Listeners[0].Routes, random.Perm(n)[:bench.count])
				socket := table.Socket("0.0.0.0:80")
				var m Match
				b.ReportAllocs()
				for b.Loop() {
					host, req := asked.next()
					if !socket.Listener(host).Lookup(host, req, &m) {
						b.Fatal("no rule")
					}
				}
			})
		}
	}
}

// tape is a sequence of requests in one piece of memory. Each is copied out
// before it is asked, so that it is in the cache, as one that was just parsed.
type tape struct {
	fields []byte // of each request: method, host, path, value of X-Tenant, each with its length before
	at     int
	host   [64]byte
	path   [64]byte
	tenant [64]byte
	plain  message.Request
	post   message.Request // with the header
}

func newTape(routes []*ir.Route, order []int) *tape {
	t := &tape{}
	add := func(s string) { t.fields = append(append(t.fields, byte(len(s))), s...) }
	for _, i := range order {
		m := routes[i].Rules[0].Matches[0]
		add(m.Method)
		add(strings.Replace(routes[i].Hostnames[0], "*", "eu", 1))
		add(m.Path.Value)
		if len(m.Headers) > 0 {
			add(m.Headers[0].Value)
		} else {
			add("")
		}
	}
	t.plain.Method, t.post.Method = []byte("GET"), []byte("POST")
	t.post.Headers.Add("Accept", "*/*")
	t.post.Headers.Append([]byte("X-Tenant"), t.tenant[:5])
	return t
}

func (t *tape) next() ([]byte, *message.Request) {
	if t.at == len(t.fields) {
		t.at = 0
	}
	method, host, path, tenant := t.field(), t.field(), t.field(), t.field()
	req := &t.plain
	if len(method) > 0 {
		req = &t.post
		copy(t.tenant[:], tenant)
	}
	req.Path = t.path[:copy(t.path[:], path)]
	return t.host[:copy(t.host[:], host)], req
}

func (t *tape) field() []byte {
	n := int(t.fields[t.at])
	f := t.fields[t.at+1 : t.at+1+n]
	t.at += 1 + n
	return f
}

// BenchmarkUpdate replaces one route of many: of many hosts, of one host, of
// one path.
func BenchmarkUpdate(b *testing.B) {
	for _, n := range bulkSizes {
		oneHost := bulkSorted(n)
		for _, r := range oneHost.Listeners[0].Routes {
			r.Hostnames = []string{"shop.example.com"}
			for _, m := range r.Rules[0].Matches {
				m.Path.Value = "/" + r.Name + m.Path.Value
			}
		}
		onePath := bulkSorted(n)
		for _, r := range onePath.Listeners[0].Routes {
			r.Hostnames = oneHost.Listeners[0].Routes[0].Hostnames
			for _, m := range r.Rules[0].Matches {
				m.Path = ir.PathMatch{Kind: ir.MatchPrefix, Value: "/"}
			}
		}
		for _, bench := range []struct {
			name   string
			socket *ir.Socket
		}{{"hosts", bulkSorted(n)}, {"oneHost", oneHost}, {"onePath", onePath}} {
			b.Run(fmt.Sprintf("routes=%d/%s", n, bench.name), func(b *testing.B) { benchmarkUpdate(b, bench.socket) })
		}
	}
}

func benchmarkUpdate(b *testing.B, s *ir.Socket) {
	table, err := New([]*ir.Socket{s}, nil)
	if err != nil {
		b.Fatal(err)
	}
	routes := s.Listeners[0].Routes
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		b.StopTimer() // what the compiler does
		at := i * 7919 % len(routes)
		replaced := *routes[at]
		routes = append([]*ir.Route(nil), routes...)
		routes[at] = &replaced
		l := *s.Listeners[0]
		l.Routes = routes
		next := &ir.Socket{Name: s.Name, Listeners: []*ir.Listener{&l}}
		i++
		b.StartTimer()
		if table, err = table.Update([]*ir.Socket{next}, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkNew compiles everything and reports the table's memory.
func BenchmarkNew(b *testing.B) {
	for _, n := range bulkSizes {
		b.Run(fmt.Sprintf("routes=%d", n), func(b *testing.B) {
			s := bulkSorted(n)
			heap := func() uint64 {
				runtime.GC()
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				return m.HeapAlloc
			}
			before := heap()
			table, err := New([]*ir.Socket{s}, nil)
			if err != nil {
				b.Fatal(err)
			}
			size := float64(heap()-before) / float64(n)
			runtime.KeepAlive(table)
			for b.Loop() {
				if _, err := New([]*ir.Socket{s}, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(size, "B/route")
		})
	}
}
