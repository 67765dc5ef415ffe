package route

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/dataplane/ir"
)

// changeListener returns l with some routes gone, replaced and added.
func changeListener(choose chooser, l *ir.Listener) *ir.Listener {
	next := &ir.Listener{Name: l.Name, Hostname: l.Hostname}
	for i := range 10 {
		name := fmt.Sprintf("ns/%d", i)
		at := slices.IndexFunc(l.Routes, func(r *ir.Route) bool { return r.Name == name })
		switch {
		case at < 0 && choose(8) == 0, at >= 0 && choose(5) == 0:
			next.Routes = append(next.Routes, randomRoute(choose, name))
		case at >= 0 && choose(5) > 0:
			next.Routes = append(next.Routes, l.Routes[at])
		}
	}
	return next
}

// changeSocket returns s with some listeners gone, changed and added.
func changeSocket(choose chooser, s *ir.Socket) *ir.Socket {
	next := &ir.Socket{Name: s.Name}
	hostnames := slices.Clone(someHostnames)
	if choose(4) == 0 { // listeners trade their hostnames
		slices.Reverse(hostnames)
	}
	for i, hostname := range hostnames {
		name := fmt.Sprint("l", i)
		at := slices.IndexFunc(s.Listeners, func(l *ir.Listener) bool { return l.Name == name })
		switch {
		case at < 0 && choose(6) == 0:
			next.Listeners = append(next.Listeners, randomListener(choose, name, hostname))
		case at < 0 || choose(8) == 0:
		case choose(3) == 0 && s.Listeners[at].Hostname == hostname:
			next.Listeners = append(next.Listeners, s.Listeners[at])
		default:
			l := changeListener(choose, s.Listeners[at])
			l.Hostname = hostname
			next.Listeners = append(next.Listeners, l)
		}
	}
	return next
}

// dump writes down all that a table holds, in a fixed order.
func dump(t *Table) string {
	var lines []string
	for _, s := range t.sockets {
		s.hosts.each(func(l *Listener) {
			lines = append(lines, fmt.Sprintf("%s: listener %s %p", s.ir.Name, l.ir.Hostname, l.ir))
			l.hosts.each(func(h *host) {
				lines = append(lines, fmt.Sprintf("%s: %s: host %q", s.ir.Name, l.ir.Name, h.name))
				h.each(func(list []candidate) {
					line := fmt.Sprintf("%s: %s: %q:", s.ir.Name, l.ir.Name, h.name)
					for _, c := range list {
						line += fmt.Sprintf(" %p %p %v;", c.rule.IR, c.match, c.match.Path)
					}
					lines = append(lines, line)
				})
			})
		})
		for i, l := range s.listeners {
			lines = append(lines, fmt.Sprintf("%s: %d: %s", s.ir.Name, i, l.ir.Name))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// TestUpdateIsNew makes random sequences of snapshots: each table that an
// update makes holds what a new one would, what stayed is bound once, and the
// tables before it stay what they were.
func TestUpdateIsNew(t *testing.T) {
	type key struct {
		socket, listener string
		route            *ir.Route
		rule             *ir.Rule
	}
	for seed := range uint64(20) {
		choose := seeded(seed)
		bound := map[key]int{} // of the last table
		calls := 0
		now := map[key]int{}
		bind := func(s *ir.Socket, l *ir.Listener, r *ir.Route, rule *ir.Rule) any {
			calls++
			k := key{s.Name, l.Name, r, rule}
			if before, ok := bound[k]; ok {
				t.Fatalf("%v was bound before, as %d", k, before)
			}
			now[k] = calls
			return calls
		}
		sockets := []*ir.Socket{}
		table, err := New(sockets, bind)
		if err != nil {
			t.Fatal(err)
		}
		type past struct {
			table   *Table
			content string
		}
		var pasts []past
		for range 25 {
			var next []*ir.Socket
			for _, name := range []string{"s", "t"} {
				at := slices.IndexFunc(sockets, func(s *ir.Socket) bool { return s.Name == name })
				switch {
				case at < 0 && choose(2) == 0:
					next = append(next, randomSocket(choose, name))
				case at < 0 || choose(12) == 0:
				case choose(4) == 0:
					next = append(next, sockets[at])
				default:
					next = append(next, changeSocket(choose, sockets[at]))
				}
			}
			pasts = append(pasts, past{table, dump(table)})
			if table, err = table.Update(next, bind); err != nil {
				t.Fatal(err)
			}
			sockets = next

			fresh, err := New(sockets, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(dump(fresh), dump(table)); diff != "" {
				t.Fatalf("seed %d: the updated table (+) is not like a new one (-):\n%s", seed, diff)
			}
			// What is bound now is what is there now.
			current := map[key]int{}
			for _, s := range sockets {
				for _, l := range s.Listeners {
					for _, r := range l.Routes {
						for _, rule := range r.Rules {
							k := key{s.Name, l.Name, r, rule}
							if n, ok := now[k]; ok {
								current[k] = n
							} else if n, ok := bound[k]; ok {
								current[k] = n
							} else {
								t.Fatalf("%v was not bound", k)
							}
						}
					}
				}
			}
			if len(now) > 0 {
				now = map[key]int{}
			}
			bound = current
			for _, s := range table.sockets {
				s.hosts.each(func(l *Listener) {
					l.hosts.each(func(h *host) {
						h.each(func(list []candidate) {
							for _, c := range list {
								k := key{s.ir.Name, l.ir.Name, c.rule.Route, c.rule.IR}
								if c.rule.Bound != bound[k] {
									t.Fatalf("%v has %v, want %d", k, c.rule.Bound, bound[k])
								}
							}
						})
					})
				})
			}
			for range 10 {
				for _, s := range sockets {
					host, req := randomRequest(choose, s.Listeners)
					checkLookup(t, table, s, host, req)
				}
			}
		}
		for i, p := range pasts {
			if dump(p.table) != p.content {
				t.Fatalf("seed %d: table %d changed after it was made", seed, i)
			}
		}
	}
}

// TestUpdateBranches makes two tables from one: neither sees the other.
func TestUpdateBranches(t *testing.T) {
	for seed := range uint64(100) {
		choose := seeded(seed)
		root := randomSocket(choose, "s")
		base, err := New([]*ir.Socket{root}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var tables []*Table
		var sockets []*ir.Socket
		for range 3 {
			s := changeSocket(choose, root)
			table, err := base.Update([]*ir.Socket{s}, nil)
			if err != nil {
				t.Fatal(err)
			}
			tables, sockets = append(tables, table), append(sockets, s)
		}
		for i, s := range sockets {
			fresh, err := New([]*ir.Socket{s}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(dump(fresh), dump(tables[i])); diff != "" {
				t.Fatalf("seed %d: branch %d (+) is not like a new table (-):\n%s", seed, i, diff)
			}
		}
	}
}

func sortRoutes(routes []*ir.Route) {
	slices.SortFunc(routes, func(a, b *ir.Route) int { return strings.Compare(a.Name, b.Name) })
}

// TestUpdateRefuses says that what can't be compiled is named, that nothing was
// bound, and that the table goes on.
func TestUpdateRefuses(t *testing.T) {
	good := routeFor("ns/good", "-", rule("good", prefix("/good")))
	bad := func(m *ir.Match) *ir.Socket {
		r := routeFor("ns/bad", "-", rule("fine", prefix("/")), rule("", prefix("/a"), m))
		r.Rules[1].Index = 7
		return socketOf(listenerFor("ns/gw/http", "", good, r))
	}
	other := routeFor("ns/other", "-", rule("other", prefix("/other")))
	tests := []struct {
		name    string
		sockets []*ir.Socket
		want    []string
	}{
		{"path regex", []*ir.Socket{bad(regex("["))}, []string{"socket s", "listener ns/gw/http", "route ns/bad", "rule 7", "match 1", "path", "missing closing ]"}},
		{"regex that only wrapping would close", []*ir.Socket{bad(regex("a)|(b"))}, []string{"rule 7: match 1", "unexpected )"}},
		{"header regex", []*ir.Socket{bad(with(prefix("/"), "X-V: ~*"))}, []string{"rule 7: match 1: header X-V", "missing argument"}},
		{"query regex", []*ir.Socket{bad(with(prefix("/"), "?v=~("))}, []string{"rule 7: match 1: query parameter v", "missing closing )"}},
		{"unknown path kind", []*ir.Socket{bad(&ir.Match{Path: ir.PathMatch{Value: "/"}})}, []string{"rule 7: match 1: path", "kind 0"}},
		{"unknown value kind", []*ir.Socket{bad(&ir.Match{Path: prefix("/").Path, Headers: []ir.ValueMatch{{Name: "H", Kind: ir.MatchPrefix}}})}, []string{"header H", "kind 2"}},
		{"relative path", []*ir.Socket{bad(exact("a"))}, []string{`path "a"`, "slash"}},
		{"asterisk", []*ir.Socket{bad(exact("*"))}, []string{`path "*"`, "slash"}},
		{"dot segment", []*ir.Socket{bad(exact("/a/../b"))}, []string{`path "/a/../b"`, `want "/b"`}},
		{"escape", []*ir.Socket{bad(prefix("/%zz"))}, []string{"path_bad_escape"}},
		{"no matches", []*ir.Socket{socketOf(listenerFor("l", "", routeFor("ns/bad", "-", rule("empty"))))}, []string{"listener l: route ns/bad: rule 0", "no matches"}},
		{"one socket twice", []*ir.Socket{socketOf(), socketOf()}, []string{"socket s", "twice"}},
		{"one listener twice", []*ir.Socket{socketOf(listenerFor("l", "a"), listenerFor("l", "b"))}, []string{"socket s: listener l", "twice"}},
		{"one hostname twice", []*ir.Socket{socketOf(listenerFor("l", "a"), listenerFor("m", "a"))}, []string{"listener m", "same hostname"}},
		{"hostname of one that stays", []*ir.Socket{{Name: "s", Listeners: []*ir.Listener{nil, listenerFor("z", "")}}}, []string{"listener z", "same hostname"}},
		{"unsorted routes", []*ir.Socket{{Name: "s", Listeners: []*ir.Listener{{Name: "l", Routes: []*ir.Route{other, good}}}}}, []string{"listener l: route ns/other", "not sorted"}},
		{"unsorted behind one that stays", []*ir.Socket{socketOf(&ir.Listener{Name: "ns/gw/http", Routes: []*ir.Route{good, routeFor("ns/first", "-")}})}, []string{"route ns/first", "not sorted"}},
		{"one route twice", []*ir.Socket{{Name: "s", Listeners: []*ir.Listener{{Name: "l", Routes: []*ir.Route{good, good}}}}}, []string{"listener l: route ns/good", "not sorted"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			stays := listenerFor("ns/gw/http", "", good)
			table := newTable(t, socketOf(stays))
			for _, s := range test.sockets {
				if len(s.Listeners) > 0 && s.Listeners[0] == nil {
					s.Listeners[0] = stays
				}
			}
			before := dump(table)
			next, err := table.Update(test.sockets, func(*ir.Socket, *ir.Listener, *ir.Route, *ir.Rule) any {
				t.Error("a rule was bound")
				return nil
			})
			if err == nil || next != nil {
				t.Fatalf("got %v, %v", next, err)
			}
			for _, part := range test.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
			if dump(table) != before {
				t.Error("the table changed")
			}
			next, err = table.Update([]*ir.Socket{socketOf(listenerFor("ns/gw/http", "", good, other))}, nil)
			if err != nil || ask(t, next, request("GET http://h/other")) != "other" || ask(t, next, request("GET http://h/good")) != "good" {
				t.Errorf("the update after the refused one: %v", err)
			}
		})
	}
}

// TestUpdateShares says that what did not change is not made again.
func TestUpdateShares(t *testing.T) {
	s := bulkSorted(2_000) // 20 hosts
	l := s.Listeners[0]
	other := &ir.Socket{Name: "other"}
	before, err := New([]*ir.Socket{s, other}, nil)
	if err != nil {
		t.Fatal(err)
	}
	changed := slices.Clone(l.Routes)
	replaced := *changed[5]
	changed[5] = &replaced
	calls := 0
	next := &ir.Socket{Name: s.Name, Listeners: []*ir.Listener{{Name: l.Name, Routes: changed}}}
	after, err := before.Update([]*ir.Socket{next, other}, func(_ *ir.Socket, _ *ir.Listener, r *ir.Route, _ *ir.Rule) any {
		calls++
		if r != &replaced {
			t.Errorf("%s was bound again", r.Name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if calls != 1 {
		t.Errorf("%d rules were bound, want 1", calls)
	}
	if before.Socket("other") != after.Socket("other") {
		t.Error("a socket that did not change was made again")
	}
	seen := map[*host]bool{}
	before.Socket(s.Name).listeners[0].hosts.each(func(h *host) { seen[h] = true })
	fresh := 0
	after.Socket(s.Name).listeners[0].hosts.each(func(h *host) {
		if !seen[h] {
			fresh++
		}
	})
	if len(seen) != 20 || fresh != 1 {
		t.Errorf("%d of %d hosts were made again, want 1", fresh, len(seen))
	}
	same, err := after.Update([]*ir.Socket{next, other}, nil)
	if err != nil || same.Socket(s.Name) != after.Socket(s.Name) {
		t.Errorf("an update without a change makes the socket again: %v", err)
	}
	// A listener that changed only in itself keeps its routes as they are; one
	// that comes beside it leaves it alone.
	renewed := *next.Listeners[0]
	renewed.TLS = &ir.TLS{}
	beside := listenerFor("beside", "beside.example.com")
	withBeside, err := after.Update([]*ir.Socket{{Name: s.Name, Listeners: []*ir.Listener{next.Listeners[0], beside}}}, nil)
	if err != nil || withBeside.Socket(s.Name).Listener([]byte("h")) != after.Socket(s.Name).Listener([]byte("h")) {
		t.Errorf("a listener that did not change was made again: %v", err)
	}
	same, err = after.Update([]*ir.Socket{{Name: s.Name, Listeners: []*ir.Listener{&renewed}}}, func(*ir.Socket, *ir.Listener, *ir.Route, *ir.Rule) any {
		t.Error("a rule was bound again")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := same.Socket(s.Name).Listener([]byte("h")).IR(); got != &renewed {
		t.Error("the listener is still the old one")
	}
	if same.Socket("other") != nil {
		t.Error("a socket that is gone is still there")
	}
}

// TestUpdateManyOfOnePath changes routes that all lead to one path.
func TestUpdateManyOfOnePath(t *testing.T) {
	const n = 2_000
	l := &ir.Listener{Name: "l"}
	for i := range n {
		name := fmt.Sprintf("ns/%05d", i)
		l.Routes = append(l.Routes, routeFor(name, "-", rule(name, with(prefix("/"), fmt.Sprintf("H: %d", i)))))
	}
	table := newTable(t, socketOf(l))
	next := &ir.Listener{Name: "l"}
	for i, r := range l.Routes {
		switch i % 3 {
		case 0:
			replaced := *r
			next.Routes = append(next.Routes, &replaced)
		case 1:
			next.Routes = append(next.Routes, r)
		}
	}
	after, err := table.Update([]*ir.Socket{socketOf(next)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		want := fmt.Sprintf("ns/%05d", i)
		if i%3 == 2 {
			want = "-"
		}
		if got := ask(t, after, request("GET http://h/x", fmt.Sprintf("H: %d", i))); got != want {
			t.Fatalf("H: %d is served by %q, want %q", i, got, want)
		}
	}
}

// TestUpdateRepeatedHostname has a route that names a hostname twice, which the
// IR rules out: it counts once.
func TestUpdateRepeatedHostname(t *testing.T) {
	r := routeFor("ns/r", "a.b a.b", rule("r", prefix("/")))
	table := newTable(t, socketOf(listenerFor("l", "", r)))
	if e := table.Explain("s", request("GET http://a.b/")); len(e.Steps) != 1 {
		t.Errorf("steps: %v", lines(e.Steps))
	}
	table, err := table.Update([]*ir.Socket{socketOf(listenerFor("l", ""))}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := ask(t, table, request("GET http://a.b/")); got != "-" {
		t.Errorf("a route that is gone serves as %q", got)
	}
}
