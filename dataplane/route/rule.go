package route

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate/dataplane/ir"
)

// Rule is a rule of a route on one listener.
type Rule struct {
	// Bound is what the table's [Bind] returned for the rule.
	Bound any
	// IR is the rule's description.
	IR *ir.Rule
	// Route is the route that the rule is of.
	Route *ir.Route

	place int // among the rules of the route
}

// candidate is one match of a rule: what a path leads to.
type candidate struct {
	rule       *Rule
	match      *ir.Match
	conditions *conditions // nil: the path is enough
	place      int         // of match among the matches of the rule
}

// compiledRoute is a route on its way into a listener.
type compiledRoute struct {
	ir         *ir.Route
	rules      []Rule
	candidates []candidate // in the order of the route's matches
}

// compileRoute compiles a route. Its rules are not bound yet.
func compileRoute(r *ir.Route) (*compiledRoute, error) {
	c := &compiledRoute{ir: r, rules: make([]Rule, len(r.Rules))}
	for i, rule := range r.Rules {
		c.rules[i] = Rule{IR: rule, Route: r, place: i}
		if len(rule.Matches) == 0 {
			return nil, fmt.Errorf("route %s: rule %d: %w", r.Name, rule.Index, errNoMatches)
		}
		for j, match := range rule.Matches {
			err := checkPath(match.Path)
			var conditions *conditions
			if err == nil {
				conditions, err = compileConditions(match)
			}
			if err != nil {
				return nil, fmt.Errorf("route %s: rule %d: match %d: %w", r.Name, rule.Index, j, err)
			}
			c.candidates = append(c.candidates, candidate{rule: &c.rules[i], match: match, conditions: conditions, place: j})
		}
	}
	return c, nil
}

// criterion is why one candidate comes before another.
type criterion uint8

// The criteria of HTTPRouteRule.matches in the Gateway API, in its order.
const (
	sameCandidate criterion = iota
	byHostname
	byPathKind
	byPrefixLength
	byMethod
	byHeaders
	byQuery
	byAge
	byName
	byRule
	byMatch
)

// rank is what orders the candidates of one path.
type rank struct {
	method         bool
	headers, query int
	route          *ir.Route
	rule, match    int
}

// rank returns the candidate's rank.
func (c *candidate) rank() rank {
	r := rank{route: c.rule.Route, rule: c.rule.place, match: c.place}
	if c.conditions != nil {
		r.method = c.conditions.method != ""
		r.headers = len(c.conditions.headers)
		r.query = len(c.conditions.query)
	}
	return r
}

// rankOf returns the rank that the candidate of a match of r has.
func rankOf(r *ir.Route, rule, match int) rank {
	m := r.Rules[rule].Matches[match]
	k := rank{method: m.Method != "", route: r, rule: rule, match: match}
	for i := range m.Headers {
		if !repeats(m.Headers, i, strings.EqualFold) {
			k.headers++
		}
	}
	for i := range m.Query {
		if !repeats(m.Query, i, func(a, b string) bool { return a == b }) {
			k.query++
		}
	}
	return k
}

// compare returns a negative number when a comes first, and the criterion that
// decided. The order is total within a listener.
func (a rank) compare(b rank) (int, criterion) {
	if a.method != b.method {
		if a.method {
			return -1, byMethod
		}
		return 1, byMethod
	}
	if c := cmp.Compare(b.headers, a.headers); c != 0 {
		return c, byHeaders
	}
	if c := cmp.Compare(b.query, a.query); c != 0 {
		return c, byQuery
	}
	if a.route != b.route {
		if c := a.route.Created.Compare(b.route.Created); c != 0 {
			return c, byAge
		}
		if c := cmp.Compare(a.route.Name, b.route.Name); c != 0 {
			return c, byName
		}
	}
	if c := cmp.Compare(a.rule, b.rule); c != 0 {
		return c, byRule
	}
	if c := cmp.Compare(a.match, b.match); c != 0 {
		return c, byMatch
	}
	return 0, sameCandidate
}

// find returns the place of k in a sorted list and whether it is there.
func find(list []candidate, k rank) (int, bool) {
	return slices.BinarySearchFunc(list, k, func(c candidate, k rank) int {
		order, _ := c.rank().compare(k)
		return order
	})
}
