package ir

import (
	"fmt"
	"slices"
	"strings"
)

// Validator checks one snapshot after the other, and does not check again what is
// the same pointer as in the last good one. Its answers are those of
// [Snapshot.Validate]. The zero value is ready. It is for one goroutine.
type Validator struct {
	last Snapshot // good
}

// Validate checks the snapshot.
func (v *Validator) Validate(s *Snapshot) error {
	if err := s.Process.validate(); err != nil {
		return err
	}
	c := check{snapshot: s}
	old := follow(v.last.Clusters, clusterName)
	last := ""
	for i, x := range s.Clusters {
		if x == nil {
			return fmt.Errorf("cluster %d is nil", i)
		}
		if x.Name == "" || x.Name <= last && i > 0 {
			return fmt.Errorf("cluster %q: names must be set, unique and sorted", x.Name)
		}
		last = x.Name
		if _, ok := old.find(x); ok {
			continue
		}
		if err := x.validate(); err != nil {
			return fmt.Errorf("cluster %q: %w", x.Name, err)
		}
	}
	for _, x := range v.last.Clusters {
		c.lost = c.lost || !c.has(x.Name)
	}
	last = ""
	for i, k := range s.Sockets {
		if k == nil {
			return fmt.Errorf("socket %d is nil", i)
		}
		if k.Name == "" || k.Name <= last && i > 0 {
			return fmt.Errorf("socket %q: names must be set, unique and sorted", k.Name)
		}
		last = k.Name
		if err := k.validate(&c, v.last.socket(k.Name)); err != nil {
			return fmt.Errorf("socket %q: %w", k.Name, err)
		}
	}
	v.last = *s
	return nil
}

// check is what a snapshot's routes are checked against.
type check struct {
	snapshot *Snapshot
	at       int  // in the snapshot's clusters
	lost     bool // a cluster of the last snapshot is gone: a route may have named it
}

// has tells whether the snapshot has a cluster. Names that ascend are found at
// once.
func (c *check) has(name string) bool {
	all := c.snapshot.Clusters
	for n := range 2 {
		if at := c.at + n; at < len(all) && all[at].Name == name {
			c.at = at
			return true
		}
	}
	at, ok := slices.BinarySearchFunc(all, name, func(x *Cluster, name string) int { return strings.Compare(x.Name, name) })
	if ok {
		c.at = at
	}
	return ok
}

// socket returns the socket of a name, or nil.
func (s *Snapshot) socket(name string) *Socket {
	if i, ok := slices.BinarySearchFunc(s.Sockets, name, func(k *Socket, name string) int { return strings.Compare(k.Name, name) }); ok {
		return s.Sockets[i]
	}
	return nil
}

// listener returns the listener of a name, or nil.
func (k *Socket) listener(name string) *Listener {
	if k == nil {
		return nil
	}
	if i, ok := slices.BinarySearchFunc(k.Listeners, name, func(l *Listener, name string) int { return strings.Compare(l.Name, name) }); ok {
		return k.Listeners[i]
	}
	return nil
}

// refer checks that the clusters which the route names are there.
func (r *Route) refer(c *check) error {
	for _, x := range r.Rules {
		for i, b := range x.Backends {
			if b.Cluster != "" && !c.has(b.Cluster) {
				return fmt.Errorf("rule %d: backend %d: cluster %q is not in the snapshot", x.Index, i, b.Cluster)
			}
		}
	}
	return nil
}
