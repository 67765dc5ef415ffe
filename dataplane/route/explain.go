package route

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate/dataplane/ir"
	"github.com/headgate/headgate/dataplane/message"
)

// maxNear bounds [Explanation.Near].
const maxNear = 20

// Explanation says how a request is routed and why not otherwise. It is for
// people: its texts may change.
type Explanation struct {
	// Socket is the name of the socket that was asked.
	Socket string `json:"socket"`
	// Host and Path are what is matched: the canonical host, the normal path.
	Host string `json:"host"`
	Path string `json:"path"`
	// Refused says why the request is answered before any listener is asked:
	// no such socket, a bad Host, a bad path. Everything else is empty then.
	Refused string `json:"refused,omitempty"`
	// Listeners are the listeners whose hostnames match, the most specific
	// first: that one gets the request, whether it has a rule for it or not.
	Listeners []ListenerStep `json:"listeners,omitempty"`
	// Steps are the candidates that the path leads to, in the order of the
	// search. The first one that holds wins; later ones are outranked.
	Steps []Step `json:"steps,omitempty"`
	// Winner is a copy of the step that won; nil means 404.
	Winner *Step `json:"winner,omitempty"`
	// Near are rules that are not asked but come close, at most 20.
	Near []Step `json:"near,omitempty"`
}

// ListenerStep is a listener whose hostname matches the request's host.
type ListenerStep struct {
	Name     string `json:"name"`
	Hostname string `json:"hostname"`
	// Chosen is set for the most specific one.
	Chosen bool `json:"chosen"`
}

// Outcome is what became of a candidate.
type Outcome string

// The outcomes.
const (
	Won       Outcome = "won"
	Outranked Outcome = "outranked" // holds, but something before it did too
	Failed    Outcome = "failed"    // a condition does not hold
	Near      Outcome = "near"      // not asked: the host, the listener or the path differ
)

// Step is one match of one rule, under one of its route's hostnames.
type Step struct {
	Listener string `json:"listener"`
	Hostname string `json:"hostname"`
	Route    string `json:"route"`
	// Rule is the rule's place in the route object and Match the place in the
	// rule, both from 0; RuleName may be empty.
	Rule     int    `json:"rule"`
	RuleName string `json:"ruleName,omitempty"`
	Match    int    `json:"match"`
	// Path is the match's path: "PathPrefix /a".
	Path    string  `json:"path"`
	Outcome Outcome `json:"outcome"`
	// Reason is why it did not win, or why it is only near.
	Reason string `json:"reason,omitempty"`
}

// trace collects the steps of a search.
type trace struct {
	steps  []Step
	winner *candidate // the first that held
	at     Step       // the winner's step
	prefix int        // the winner's
}

// add records a candidate that was tried.
func (t *trace) add(s *search, c *candidate, prefix int, f failure) {
	step := newStep(s.listener, s.host.name, c)
	switch {
	case f.kind != holds:
		step.Outcome, step.Reason = Failed, f.explain(c, s.req)
	case t.winner == nil:
		step.Outcome = Won
		t.winner, t.at, t.prefix = c, step, prefix
	default:
		step.Outcome, step.Reason = Outranked, t.outranks(&step, c, prefix)
	}
	t.steps = append(t.steps, step)
}

// newStep describes a candidate.
func newStep(l *Listener, hostname string, c *candidate) Step {
	return Step{
		Listener: l.ir.Name,
		Hostname: hostname,
		Route:    c.rule.Route.Name,
		Rule:     c.rule.IR.Index,
		RuleName: c.rule.IR.Name,
		Match:    c.place,
		Path:     c.match.Path.Kind.String() + " " + c.match.Path.Value,
	}
}

// outranks says why the winner comes before c, which holds too.
func (t *trace) outranks(step *Step, c *candidate, prefix int) string {
	_, by := t.winner.rank().compare(c.rank())
	switch {
	case step.Hostname != t.at.Hostname:
		by = byHostname
	case c.match.Path.Kind != t.winner.match.Path.Kind:
		by = byPathKind
	case prefix != t.prefix:
		by = byPrefixLength
	}
	return by.String()
}

// String says what the first of two candidates has over the second.
func (c criterion) String() string {
	switch c {
	case byHostname:
		return "the winner's hostname is more specific"
	case byPathKind:
		return "the winner's kind of path comes first"
	case byPrefixLength:
		return "the winner's prefix is longer"
	case byMethod:
		return "the winner asks for a method"
	case byHeaders:
		return "the winner asks for more headers"
	case byQuery:
		return "the winner asks for more query parameters"
	case byAge:
		return "the winner's route is older"
	case byName:
		return "the winner's route is first by name"
	case byRule:
		return "the winner's rule is first in the route"
	case byMatch:
		return "the winner's match is first in the rule"
	}
	return "it is the same"
}

// explain says in words what c asks for and req does not have.
func (f failure) explain(c *candidate, req *message.Request) string {
	switch f.kind {
	case failsPath:
		return "the path does not match"
	case failsMethod:
		return fmt.Sprintf("method: wants %s, got %s", c.conditions.method, req.Method)
	case failsHeader:
		return c.conditions.headers[f.index].explain("header", req)
	case failsQuery:
		return c.conditions.query[f.index].explain("query parameter", req)
	}
	return ""
}

func (v *valueCondition) explain(what string, req *message.Request) string {
	want := fmt.Sprintf("%q", v.value)
	if v.regex != nil {
		want = fmt.Sprintf("a match of %q", v.value)
	}
	value, ok := v.find(req, &Match{})
	if !ok {
		return fmt.Sprintf("%s %s: wants %s, got none", what, v.name, want)
	}
	return fmt.Sprintf("%s %s: wants %s, got %q", what, v.name, want, value)
}

// Explain says how a request on the socket with the given name is routed. The
// request is as a client sent it: the host and the path are brought into their
// canonical forms first. It runs the search that [Listener.Lookup] runs and
// lets it go on behind the winner; it costs time in proportion to the socket's
// routes.
func (t *Table) Explain(socket string, req *message.Request) *Explanation {
	e := &Explanation{Socket: socket, Host: string(req.Host), Path: string(req.Path)}
	s := t.Socket(socket)
	if s == nil {
		e.Refused = "there is no such socket"
		return e
	}
	host, err := message.CanonicalHost(nil, req.Host)
	if err != nil {
		e.Refused = err.Error()
		return e
	}
	path, err := message.NormalizePath(nil, req.Path)
	if err != nil {
		e.Refused = err.Error()
		return e
	}
	e.Host, e.Path = string(host), string(path)
	normal := *req
	normal.Path = path

	var chosen *Listener
	walk := s.hosts.walk(s.seed, host)
	for l := walk.next(); l != nil; l = walk.next() {
		e.Listeners = append(e.Listeners, ListenerStep{Name: l.ir.Name, Hostname: l.ir.Hostname, Chosen: chosen == nil})
		if chosen == nil {
			chosen = l
		}
	}
	if chosen != nil {
		var found trace
		lookup := search{listener: chosen, req: &normal, match: &Match{}, trace: &found}
		lookup.run(host)
		e.Steps = found.steps
		if found.winner != nil {
			e.Winner = &found.at
		}
	}
	e.Near = near(s, chosen, host, &normal)
	return e
}

// near returns rules of the socket that were not asked but come close to a
// request: in another listener, under another hostname, or with a path that
// differs in case or in a trailing slash only.
func near(s *Socket, chosen *Listener, name []byte, req *message.Request) []Step {
	var steps []Step
	for _, l := range s.listeners {
		asked := map[*host]bool{}
		walk := l.hosts.walk(l.seed, name)
		for h := walk.next(); h != nil; h = walk.next() {
			asked[h] = true
		}
		l.hosts.each(func(h *host) {
			if l == chosen && asked[h] {
				steps = append(steps, nearPath(l, h, req)...)
				return
			}
			var found trace
			lookup := search{listener: l, req: req, match: &Match{}, trace: &found}
			lookup.searchHost(h)
			if found.winner == nil {
				return
			}
			step := found.at
			step.Outcome, step.Reason = Near, "the hostname does not match"
			if asked[h] {
				step.Reason = "another listener's hostname is more specific"
			}
			steps = append(steps, step)
		})
	}
	slices.SortFunc(steps, func(a, b Step) int {
		return cmp.Or(
			cmp.Compare(a.Listener, b.Listener), cmp.Compare(a.Hostname, b.Hostname),
			cmp.Compare(a.Route, b.Route), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Match, b.Match),
		)
	})
	return steps[:min(len(steps), maxNear)]
}

// nearPath returns candidates of h that would hold if the path were written a
// little differently.
func nearPath(l *Listener, h *host, req *message.Request) []Step {
	var steps []Step
	h.each(func(list []candidate) {
		for i := range list {
			c := &list[i]
			reason := closePath(c.match.Path, string(req.Path))
			if reason == "" || c.conditions.check(req, &Match{}).kind != holds {
				continue
			}
			step := newStep(l, h.name, c)
			step.Outcome, step.Reason = Near, reason
			steps = append(steps, step)
		}
	})
	return steps
}

// closePath says in what a path that is not matched by p differs from one that
// is, or nothing.
func closePath(p ir.PathMatch, path string) string {
	want := strings.TrimSuffix(p.Value, "/")
	switch p.Kind {
	case ir.MatchExact:
		switch {
		case path == p.Value:
		case want == strings.TrimSuffix(path, "/"):
			return "an exact path: the trailing slash differs"
		case strings.EqualFold(p.Value, path):
			return "paths are compared with regard to case"
		}
	case ir.MatchPrefix:
		if len(path) < len(want) || !strings.EqualFold(path[:len(want)], want) {
			return ""
		}
		whole := len(path) == len(want) || path[len(want)] == '/'
		switch {
		case path[:len(want)] == want && !whole:
			return "a prefix covers whole segments only"
		case path[:len(want)] != want && whole:
			return "paths are compared with regard to case"
		}
	}
	return ""
}
