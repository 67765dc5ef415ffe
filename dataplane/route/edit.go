package route

import (
	"slices"
	"strings"

	"github.com/headgate/headgate/dataplane/ir"
)

// edits are what happens to the candidates of one hostname, by path.
type edits struct {
	exact    map[string]*edit
	prefixes map[string]*edit
	regexes  *edit
}

// edit is what happens to the candidates of one path.
type edit struct {
	gone []rank
	come []candidate
}

// apply makes the changes to a listener's hosts.
func (u *update) apply(c *change) {
	byHost := map[string]*edits{}
	for _, r := range c.gone {
		eachHostname(r, byHost, func(e *edits) {
			for i, rule := range r.Rules {
				for j, match := range rule.Matches {
					at := e.at(match.Path)
					at.gone = append(at.gone, rankOf(r, i, j))
				}
			}
		})
	}
	for _, r := range c.come {
		eachHostname(r.ir, byHost, func(e *edits) {
			for _, candidate := range r.candidates {
				at := e.at(candidate.match.Path)
				at.come = append(at.come, candidate)
			}
		})
	}
	hosts := &c.listener.hosts
	for name, e := range byHost {
		next := &host{name: name}
		if old := hosts.get(u.seed, name); old != nil {
			*next = *old
			next.name = name
		}
		u.applyHost(next, e)
		if next.empty() {
			next = nil
		}
		hosts.set(u.owner, u.seed, name, next)
	}
}

// eachHostname calls visit once with the edits of each hostname of r.
func eachHostname(r *ir.Route, byHost map[string]*edits, visit func(*edits)) {
	for i, name := range r.Hostnames {
		if slices.Contains(r.Hostnames[:i], name) {
			continue
		}
		e := byHost[name]
		if e == nil {
			e = &edits{exact: map[string]*edit{}, prefixes: map[string]*edit{}, regexes: &edit{}}
			byHost[name] = e
		}
		visit(e)
	}
}

// at returns the edit of a path.
func (e *edits) at(p ir.PathMatch) *edit {
	var edits map[string]*edit
	key := p.Value
	switch p.Kind {
	case ir.MatchRegex:
		return e.regexes
	case ir.MatchPrefix:
		edits, key = e.prefixes, strings.TrimSuffix(p.Value, "/")
	default:
		edits = e.exact
	}
	if edits[key] == nil {
		edits[key] = &edit{}
	}
	return edits[key]
}

// applyHost makes the changes to h, which the transaction made.
func (u *update) applyHost(h *host, e *edits) {
	for path, edit := range e.exact {
		old, _ := h.exact.get(u.seed, []byte(path))
		if l := edit.apply(old); l != nil {
			h.exact.set(u.owner, u.seed, path, l)
		} else {
			h.exact.del(u.owner, u.seed, path)
		}
	}
	for path, edit := range e.prefixes {
		if l := edit.apply(h.prefixes.get(path)); l != nil {
			h.prefixes.set(u.owner, path, l)
		} else {
			h.prefixes.del(u.owner, path)
		}
	}
	h.regexes = e.regexes.merge(h.regexes)
}

// apply returns the leaf that old becomes; both may be nil.
func (e *edit) apply(old *leaf) *leaf {
	if old == nil {
		return newLeaf(e.merge(nil))
	}
	return newLeaf(e.merge(old.list))
}

// merge returns the sorted candidates that old becomes; old is left alone.
func (e *edit) merge(old []candidate) []candidate {
	kept := old
	if len(e.gone) > 0 {
		places := make([]int, 0, len(e.gone))
		for _, k := range e.gone {
			if i, ok := find(old, k); ok {
				places = append(places, i)
			}
		}
		slices.Sort(places)
		kept = make([]candidate, 0, len(old)-len(places))
		from := 0
		for _, i := range places {
			kept = append(kept, old[from:i]...)
			from = i + 1
		}
		kept = append(kept, old[from:]...)
	}
	if len(e.come) == 0 {
		return kept
	}
	slices.SortFunc(e.come, func(a, b candidate) int {
		order, _ := a.rank().compare(b.rank())
		return order
	})
	next := make([]candidate, 0, len(kept)+len(e.come))
	for _, c := range e.come {
		i, _ := find(kept, c.rank())
		next = append(append(next, kept[:i]...), c)
		kept = kept[i:]
	}
	return append(next, kept...)
}
