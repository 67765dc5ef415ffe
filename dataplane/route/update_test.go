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
	for seed := range uint64(40) {
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
