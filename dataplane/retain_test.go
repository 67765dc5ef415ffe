package dataplane

import (
	"fmt"
	"testing"

	"github.com/headgate/headgate/dataplane/ir"
)

// The series of routes are only looked through when one may have gone.
func TestRoutesLeft(t *testing.T) {
	routes := make(map[string]*ir.Route)
	for _, name := range []string{"a", "b", "c", "d"} {
		routes[name] = &ir.Route{Name: name}
	}
	// snapshot has a listener for each text, with a route for each letter; a capital
	// is another version of the route.
	snapshot := func(listeners ...string) *ir.Snapshot {
		s := &ir.Snapshot{Sockets: []*ir.Socket{{Name: "one"}, {Name: "other"}}}
		for i, text := range listeners {
			l := &ir.Listener{Name: fmt.Sprint("l", i)}
			for _, c := range text {
				if c < 'a' {
					l.Routes = append(l.Routes, &ir.Route{Name: string(c + 'a' - 'A')})
				} else {
					l.Routes = append(l.Routes, routes[string(c)])
				}
			}
			s.Sockets[i%2].Listeners = append(s.Sockets[i%2].Listeners, l)
		}
		return s
	}
	for _, c := range []struct {
		what       string
		last, next *ir.Snapshot
		want       bool
	}{
		{"nothing was", &ir.Snapshot{}, snapshot("ab"), false},
		{"nothing is", snapshot("ab"), &ir.Snapshot{}, true},
		{"the same", snapshot("abc", "d"), snapshot("abc", "d"), false},
		{"one came first", snapshot("bc"), snapshot("abc"), false},
		{"one came last", snapshot("ab"), snapshot("abc"), false},
		{"one changed", snapshot("abc"), snapshot("aBc"), false},
		{"one changed and one came", snapshot("ac"), snapshot("aBC"), false},
		{"the first went", snapshot("abc"), snapshot("bc"), true},
		{"the last went", snapshot("abc"), snapshot("ab"), true},
		{"one went as another came", snapshot("ac"), snapshot("bc"), true},
		{"one moved to another listener", snapshot("ab", "c"), snapshot("a", "bc"), true},
		{"a listener went", snapshot("ab", "c"), snapshot("ab"), true},
		{"a listener came", snapshot("ab"), snapshot("ab", "c"), false},
	} {
		if got := routesLeft(c.last, c.next); got != c.want {
			t.Errorf("%s: %v", c.what, got)
		}
	}
}
