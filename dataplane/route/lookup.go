package route

import (
	"github.com/headgate/headgate/dataplane/ir"
	"github.com/headgate/headgate/dataplane/message"
)

// Match is the result of a lookup. Its zero value is ready; one that is used
// again and again keeps the scratch memory that it needed before, so that a
// lookup allocates nothing. It must not be used by two lookups at once.
type Match struct {
	// Rule is the winner.
	Rule *Rule
	// Match is the one of the rule's matches that held.
	Match *ir.Match
	// Hostname is the one of the route's hostnames that matched.
	Hostname string
	// Prefix is how many bytes of the path a [ir.MatchPrefix] covered, without a
	// trailing slash: 0 for "/". It is 0 for the other kinds.
	Prefix int

	scratch []byte
}

// host is what a listener serves under one hostname. It is immutable once its
// table is built.
type host struct {
	name     string // as in ir.Route.Hostnames
	exact    hash[*leaf]
	prefixes trie
	regexes  []candidate
}

// empty tells whether the host serves nothing.
func (h *host) empty() bool {
	return h.exact.len == 0 && h.prefixes.empty() && len(h.regexes) == 0
}

// each calls visit with every list of candidates, in no order.
func (h *host) each(visit func([]candidate)) {
	for _, l := range h.exact.all() {
		visit(l.list)
	}
	h.prefixes.each(visit)
	if len(h.regexes) > 0 {
		visit(h.regexes)
	}
}

// Lookup finds the rule for a request of this listener and tells whether there
// is one; m is only changed when there is. The host is canonical and the
// request's path is normal. A path without a leading slash ("*") has no rule.
//
// The search goes from the most specific hostname to the least, and in each
// from the exact path to the longest prefix, the shorter ones, and the regular
// expressions. Among the candidates of one path the order is that of the
// Gateway API. What holds first wins.
func (l *Listener) Lookup(host []byte, req *message.Request, m *Match) bool {
	s := search{listener: l, req: req, match: m}
	return s.run(host)
}

// search is one lookup.
type search struct {
	listener *Listener
	req      *message.Request
	match    *Match
	host     *host
	trace    *trace // nil unless the search is explained: then it goes on behind the winner
}

// run searches all hostnames that match and tells whether it was ended by a
// winner.
func (s *search) run(host []byte) bool {
	if len(s.req.Path) == 0 || s.req.Path[0] != '/' {
		return false
	}
	walk := s.listener.hosts.walk(s.listener.seed, host)
	for h := walk.next(); h != nil; h = walk.next() {
		if s.searchHost(h) {
			return true
		}
	}
	return false
}

// searchHost searches one hostname.
func (s *search) searchHost(h *host) bool {
	s.host = h
	if l, ok := h.exact.get(s.listener.seed, s.req.Path); ok && s.try(l.list, 0) {
		return true
	}
	return s.searchPrefixes(&h.prefixes, 0) || s.try(h.regexes, 0)
}

// searchPrefixes tries the prefixes below n, which covers the first done bytes
// of the path, and then n's own: the longest first.
func (s *search) searchPrefixes(n *trie, done int) bool {
	for {
		rest := s.req.Path[done:]
		kid := n.next(rest)
		// A prefix ends where a segment does: "/a" covers "/a" and "/a/b", but not "/ab".
		if n.leaf != nil && (len(rest) == 0 || rest[0] == '/') {
			// The recursion is as deep as prefixes are nested.
			return kid != nil && s.searchPrefixes(kid, done+int(kid.len)) || s.try(n.leaf.list, done)
		}
		if kid == nil {
			return false
		}
		n, done = kid, done+int(kid.len)
	}
}

// try tries the candidates of one path and tells whether the search is over.
func (s *search) try(list []candidate, prefix int) bool {
	for i := range list {
		c := &list[i]
		failure := c.conditions.check(s.req, s.match)
		if s.trace != nil {
			s.trace.add(s, c, prefix, failure)
			continue
		}
		if failure.kind != holds {
			continue
		}
		m := s.match
		m.Rule, m.Match, m.Hostname, m.Prefix = c.rule, c.match, s.host.name, prefix
		return true
	}
	return false
}
