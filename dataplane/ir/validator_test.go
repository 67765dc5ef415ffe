package ir_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/dataplane/ir"
)

// world makes snapshots of routes and clusters that come, change and go. Parts
// that did not change are the same pointers.
type world struct {
	random   *rand.Rand
	routes   map[string]*ir.Route
	clusters map[string]*ir.Cluster
	hostname string // of the listener
}

func (w *world) cluster() string { return fmt.Sprintf("default/c%d:80", w.random.IntN(6)) }

func (w *world) step() {
	name := fmt.Sprintf("default/r%d", w.random.IntN(8))
	switch w.random.IntN(10) {
	case 0:
		delete(w.routes, name)
	case 1:
		delete(w.clusters, w.cluster()) // routes may name it still
	case 2, 3:
		c := w.cluster()
		w.clusters[c] = &ir.Cluster{Name: c, Protocol: ir.UpstreamHTTP1, Pool: ir.Pool{Size: w.random.IntN(50) - 1}}
	case 4:
		w.hostname = []string{"", "*.example.com", "a.example.com"}[w.random.IntN(3)]
	default:
		w.routes[name] = &ir.Route{Name: name, Hostnames: []string{"a.example.com"}, Rules: []*ir.Rule{{
			Matches:  []*ir.Match{{Path: ir.PathMatch{Kind: ir.MatchPrefix, Value: []string{"/a", "/b", "/c", "bad"}[min(3, w.random.IntN(40))]}}},
			Backends: []*ir.Backend{{Cluster: w.cluster(), Weight: 1}},
		}}}
	}
}

func (w *world) snapshot() *ir.Snapshot {
	listener := &ir.Listener{Name: "default/edge/http", Hostname: w.hostname}
	for _, name := range slices.Sorted(maps.Keys(w.routes)) {
		listener.Routes = append(listener.Routes, w.routes[name])
	}
	s := &ir.Snapshot{}
	for _, addr := range []string{"0.0.0.0:80", "[::]:80"} {
		s.Sockets = append(s.Sockets, &ir.Socket{
			Name: addr, Addr: netip.MustParseAddrPort(addr), Protocol: ir.ProtocolHTTP, Listeners: []*ir.Listener{listener},
		})
	}
	for _, name := range slices.Sorted(maps.Keys(w.clusters)) {
		s.Clusters = append(s.Clusters, w.clusters[name])
	}
	return s
}

// TestOneAfterTheOther compares a Validator and a Hasher that have seen all
// snapshots before with ones that start afresh.
func TestOneAfterTheOther(t *testing.T) {
	w := &world{random: rand.New(rand.NewPCG(1, 2)), routes: make(map[string]*ir.Route), clusters: make(map[string]*ir.Cluster)}
	var v ir.Validator
	var h ir.Hasher
	good, bad := 0, 0
	for i := range 20000 {
		w.step()
		s := w.snapshot()
		got, want := v.Validate(s), s.Validate()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("step %d: got %v, want %v", i, got, want)
		}
		if want == nil {
			good++
		} else {
			bad++
		}
		if got, want := h.Hash(s), s.Hash(); got != want {
			t.Fatalf("step %d: hash %s, want %s", i, got, want)
		}
		if bad > 0 && w.random.IntN(20) == 0 { // start anew, or it stays bad for long
			clear(w.routes)
		}
	}
	if good < 1000 || bad < 1000 {
		t.Errorf("%d good snapshots, %d bad ones: too few to say anything", good, bad)
	}
}

// A cluster goes, but not the route that names it.
func TestLostCluster(t *testing.T) {
	var v ir.Validator
	s := valid()
	if err := v.Validate(s); err != nil {
		t.Fatal(err)
	}
	next := &ir.Snapshot{Sockets: s.Sockets, Clusters: s.Clusters[:1]}
	for range 2 { // a snapshot that is refused changes nothing
		if err := v.Validate(next); err == nil || !strings.Contains(err.Error(), "not in the snapshot") {
			t.Fatalf("got %v", err)
		}
	}
	if err := v.Validate(s); err != nil {
		t.Error(err)
	}
}
