package route

import (
	"errors"
	"fmt"
	"hash/maphash"

	"github.com/headgate/headgate/dataplane/ir"
)

// The promises of package ir without which a table can't be built.
var (
	errSameName     = errors.New("the name is used twice")
	errSameHostname = errors.New("another listener of the socket has the same hostname")
	errUnsorted     = errors.New("the routes are not sorted by unique names")
)

// Update returns the table of new sockets. It is a transaction on t, which
// stays as it is: what both have in common, told by the identity of the
// pointers to sockets, listeners and routes, is neither compiled nor bound
// again nor copied. A listener has in common what the one of the same name had
// on the socket of the same name.
//
// The error names the listener, the route, the rule and the match that can't
// be compiled: a bad regular expression, a path that is not normal, or a
// snapshot that breaks a promise of package ir. Then there is no new table and
// bind was not called.
func (t *Table) Update(sockets []*ir.Socket, bind Bind) (*Table, error) {
	u := update{owner: t.generation + 1, seed: t.seed}
	next := &Table{generation: u.owner, seed: t.seed, sockets: make([]*Socket, 0, len(sockets))}
	before := make(map[string]*Socket, len(t.sockets))
	for _, s := range t.sockets {
		before[s.ir.Name] = s
	}
	seen := make(map[string]bool, len(sockets))
	for _, s := range sockets {
		if seen[s.Name] {
			return nil, fmt.Errorf("socket %s: %w", s.Name, errSameName)
		}
		seen[s.Name] = true
		compiled, err := u.socket(before[s.Name], s)
		if err != nil {
			return nil, fmt.Errorf("socket %s: %w", s.Name, err)
		}
		next.sockets = append(next.sockets, compiled)
	}
	for i := range u.changes {
		u.changes[i].bind(bind)
	}
	for i := range u.changes {
		u.apply(&u.changes[i])
	}
	return next, nil
}

// update is a transaction. It first collects what changes, which may fail, and
// then applies it, which may not.
type update struct {
	owner   uint64
	seed    maphash.Seed
	changes []change
}

// change is what happens to the routes of one listener.
type change struct {
	socket   *ir.Socket
	listener *Listener // of the new table; its hosts are still those of the old one
	gone     []*ir.Route
	come     []*compiledRoute
}

// socket returns the new form of a socket; base is its old one, or nil.
func (u *update) socket(base *Socket, s *ir.Socket) (*Socket, error) {
	if base == nil {
		base = &Socket{ir: &ir.Socket{}}
	}
	if base.ir == s {
		return base, nil
	}
	next := &Socket{ir: s, seed: u.seed, listeners: make([]*Listener, len(s.Listeners)), hosts: base.hosts}
	before := make(map[string]*Listener, len(base.listeners))
	for _, l := range base.listeners {
		before[l.ir.Name] = l
	}
	seen := make(map[string]bool, len(s.Listeners))
	for i, l := range s.Listeners {
		if seen[l.Name] {
			return nil, fmt.Errorf("listener %s: %w", l.Name, errSameName)
		}
		seen[l.Name] = true
		old := before[l.Name]
		if old != nil && old.ir == l {
			next.listeners[i] = old
			delete(before, l.Name)
			continue
		}
		compiled, err := u.listener(s, old, l)
		if err != nil {
			return nil, fmt.Errorf("listener %s: %w", l.Name, err)
		}
		next.listeners[i] = compiled
	}
	for _, l := range before { // gone or changed
		next.hosts.set(u.owner, u.seed, l.ir.Hostname, nil)
	}
	for _, l := range next.listeners {
		switch next.hosts.get(u.seed, l.ir.Hostname) {
		case l:
		case nil:
			next.hosts.set(u.owner, u.seed, l.ir.Hostname, l)
		default:
			return nil, fmt.Errorf("listener %s: %w", l.ir.Name, errSameHostname)
		}
	}
	return next, nil
}

// listener returns the new form of a listener, whose routes are yet to be
// changed; base is its old one, or nil.
func (u *update) listener(s *ir.Socket, base *Listener, l *ir.Listener) (*Listener, error) {
	next := &Listener{ir: l, seed: u.seed}
	var before []*ir.Route
	if base != nil {
		next.hosts = base.hosts
		before = base.ir.Routes
	}
	gone, come, err := compareRoutes(before, l.Routes)
	if err != nil {
		return nil, err
	}
	if len(gone) == 0 && len(come) == 0 {
		return next, nil
	}
	c := change{socket: s, listener: next, gone: gone, come: make([]*compiledRoute, len(come))}
	for i, r := range come {
		if c.come[i], err = compileRoute(r); err != nil {
			return nil, err
		}
	}
	u.changes = append(u.changes, c)
	return next, nil
}

// bind binds the rules that come.
func (c *change) bind(bind Bind) {
	if bind == nil {
		return
	}
	for _, r := range c.come {
		for i := range r.rules {
			r.rules[i].Bound = bind(c.socket, c.listener.ir, r.ir, r.rules[i].IR)
		}
	}
}

// compareRoutes returns the routes that are only in before and those that are
// only in after. Both are sorted by name; before is known to be. It costs a
// comparison of pointers for a route that is in both.
func compareRoutes(before, after []*ir.Route) (gone, come []*ir.Route, err error) {
	i, j := 0, 0
	for i < len(before) || j < len(after) {
		for i < len(before) && j < len(after) && before[i] == after[j] {
			i++
			j++
		}
		switch {
		case i == len(before) && j == len(after):
			return gone, come, nil
		case j == len(after) || i < len(before) && before[i].Name < after[j].Name:
			gone = append(gone, before[i])
			i++
			continue
		case i < len(before) && before[i].Name == after[j].Name:
			gone = append(gone, before[i])
			i++
		}
		// What comes stands in order; what stays is in the order that it had.
		if j > 0 && after[j-1].Name >= after[j].Name || j+1 < len(after) && after[j].Name >= after[j+1].Name {
			return nil, nil, fmt.Errorf("route %s: %w", after[j].Name, errUnsorted)
		}
		come = append(come, after[j])
		j++
	}
	return gone, come, nil
}
