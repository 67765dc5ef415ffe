package route

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/headgate/headgate/dataplane/ir"
)

// TestReadersSeeOneTable lets readers look up while updates run at full speed.
// Every update replaces some routes; which generation of each route a table
// holds is written down beside it. A reader that saw half of an update, or a
// table that changed after it was published, would find another generation.
func TestReadersSeeOneTable(t *testing.T) {
	const routes, readers = 60, 3
	type version struct {
		table *Table
		want  [routes]int // the generation of each route's rule
	}
	questions := make([]query, routes)
	hostname := func(i int) string { return fmt.Sprintf("h%d.example.com", i%5) }
	makeRoute := func(i, generation int) *ir.Route {
		m := []func(string) *ir.Match{exact, prefix, regex}[i%3](fmt.Sprintf("/r%d", i))
		r := routeFor(fmt.Sprintf("ns/%03d", i), hostname(i), rule("", m))
		r.Rules[0].Index = generation
		return r
	}
	bind := func(_ *ir.Socket, _ *ir.Listener, _ *ir.Route, r *ir.Rule) any { return r.Index }
	l := &ir.Listener{Name: "l"}
	for i := range routes {
		questions[i] = newQuery(hostname(i), "GET", fmt.Sprintf("/r%d", i))
		l.Routes = append(l.Routes, makeRoute(i, 0))
	}
	first, err := New([]*ir.Socket{socketOf(l)}, bind)
	if err != nil {
		t.Fatal(err)
	}
	var current atomic.Pointer[version]
	current.Store(&version{table: first})

	var done atomic.Bool
	var lookups atomic.Int64
	var wait sync.WaitGroup
	for range readers {
		wait.Go(func() {
			var m Match
			for !done.Load() {
				v := current.Load()
				socket := v.table.Socket("s")
				for i := range questions {
					q := &questions[i]
					if !socket.Listener(q.host).Lookup(q.host, q.req, &m) {
						t.Errorf("route %d is missing", i)
						return
					}
					if m.Rule.Bound != v.want[i] || m.Rule.IR.Index != v.want[i] {
						t.Errorf("route %d is of generation %v, want %d", i, m.Rule.Bound, v.want[i])
						return
					}
				}
				lookups.Add(routes)
			}
		})
	}
	choose := seeded(3)
	generation := 0
	for (generation < 300 || lookups.Load() < 100*routes) && !t.Failed() {
		generation++
		last := current.Load()
		next := &version{want: last.want}
		changed := &ir.Listener{Name: "l", Routes: append([]*ir.Route(nil), l.Routes...)}
		share := 1 + choose(routes)/4*choose(5) // few routes, or nearly all
		for i := range changed.Routes {
			if choose(routes) < share {
				changed.Routes[i] = makeRoute(i, generation)
				next.want[i] = generation
			}
		}
		if next.table, err = last.table.Update([]*ir.Socket{socketOf(changed)}, bind); err != nil {
			t.Fatal(err)
		}
		l = changed
		current.Store(next)
	}
	done.Store(true)
	wait.Wait()
	t.Logf("%d updates, %d lookups", generation, lookups.Load())
}
