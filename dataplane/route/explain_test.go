package route

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/dataplane/ir"
	"github.com/headgate/headgate/dataplane/message"
)

// lines writes steps down, one a line.
func lines(steps []Step) []string {
	var out []string
	for _, s := range steps {
		line := fmt.Sprintf("%s %q %s/%s %s: %s", s.Listener, s.Hostname, s.Route, s.RuleName, s.Path, s.Outcome)
		if s.Reason != "" {
			line += ", " + s.Reason
		}
		out = append(out, line)
	}
	return out
}

func TestExplain(t *testing.T) {
	table := newTable(t, socketOf(
		listenerFor("any", "",
			routeFor("ns/any", "-", rule("any", prefix("/"))),
			routeFor("ns/zip", "zip.org", rule("zip", prefix("/shop/cart"))),
		),
		listenerFor("wild", "*.b",
			routeFor("ns/exact", "a.b",
				rule("post", with(exact("/shop/cart"), "POST")),
				rule("header", with(prefix("/shop"), "X-V: a", "X-W: ~b+")),
				rule("query", with(prefix("/shop"), "?v=1")),
				rule("plain", prefix("/shop")),
				rule("plain again", prefix("/shop")),
				rule("regex", regex("/s.*")),
				rule("other regex", regex("/t.*")),
				rule("slash", exact("/shop/cart/")),
				rule("case", prefix("/Shop")),
				rule("segment", prefix("/sho")),
				rule("far", prefix("/elsewhere")),
			),
			routeFor("ns/wild", "*.b", rule("root", prefix("/"))),
			routeFor("ns/c", "c.b", rule("c", prefix("/shop"))),
		),
	))
	req := request("GET http://A.b:8080/shop/./c%61rt?v=2", "X-V: a", "X-W: c")
	e := table.Explain("s", req)
	if e.Host != "a.b" || e.Path != "/shop/cart" || e.Socket != "s" || e.Refused != "" {
		t.Errorf("asked %q for %q on %q, refused: %q", e.Host, e.Path, e.Socket, e.Refused)
	}
	if string(req.Path) != "/shop/./c%61rt" {
		t.Errorf("the request's path became %q", req.Path)
	}
	wantListeners := []ListenerStep{{"wild", "*.b", true}, {"any", "", false}}
	if diff := cmp.Diff(wantListeners, e.Listeners); diff != "" {
		t.Errorf("listeners (-want +got):\n%s", diff)
	}
	wantSteps := []string{
		`wild "a.b" ns/exact/post Exact /shop/cart: failed, method: wants POST, got GET`,
		`wild "a.b" ns/exact/header PathPrefix /shop: failed, header X-W: wants a match of "b+", got "c"`,
		`wild "a.b" ns/exact/query PathPrefix /shop: failed, query parameter v: wants "1", got "2"`,
		`wild "a.b" ns/exact/plain PathPrefix /shop: won`,
		`wild "a.b" ns/exact/plain again PathPrefix /shop: outranked, the winner's rule is first in the route`,
		`wild "a.b" ns/exact/regex RegularExpression /s.*: outranked, the winner's kind of path comes first`,
		`wild "a.b" ns/exact/other regex RegularExpression /t.*: failed, the path does not match`,
		`wild "*.b" ns/wild/root PathPrefix /: outranked, the winner's hostname is more specific`,
	}
	if diff := cmp.Diff(wantSteps, lines(e.Steps)); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if e.Winner == nil || *e.Winner != e.Steps[3] {
		t.Errorf("the winner is %+v", e.Winner)
	}
	if e.Winner.Rule != 3 || e.Winner.Match != 0 {
		t.Errorf("the winner is match %d of rule %d", e.Winner.Match, e.Winner.Rule)
	}
	wantNear := []string{
		`any "" ns/any/any PathPrefix /: near, another listener's hostname is more specific`,
		`any "zip.org" ns/zip/zip PathPrefix /shop/cart: near, the hostname does not match`,
		`wild "a.b" ns/exact/slash Exact /shop/cart/: near, an exact path: the trailing slash differs`,
		`wild "a.b" ns/exact/case PathPrefix /Shop: near, paths are compared with regard to case`,
		`wild "a.b" ns/exact/segment PathPrefix /sho: near, a prefix covers whole segments only`,
		`wild "c.b" ns/c/c PathPrefix /shop: near, the hostname does not match`,
	}
	if diff := cmp.Diff(wantNear, lines(e.Near)); diff != "" {
		t.Errorf("near (-want +got):\n%s", diff)
	}
}

func TestExplainWithoutWinner(t *testing.T) {
	table := newTable(t, socketOf(listenerFor("l", "*.b",
		routeFor("ns/r", "a.b", rule("cart", exact("/Cart")), rule("header", with(prefix("/cart"), "X-V: a"))),
	)))
	for _, test := range []struct {
		socket, line   string
		headers        []string
		refused        string
		listeners      int
		steps, near    []string
		hostOf, pathOf string
	}{
		{socket: "t", line: "GET http://a.b/", refused: "there is no such socket"},
		{socket: "s", line: "GET http://a@b/", refused: "client: 400 bad_host"},
		{socket: "s", line: "GET http://a.b/%", refused: "client: 400 path_bad_escape"},
		{socket: "s", line: "GET http://b/cart"},
		{socket: "s", line: "OPTIONS http://a.b*", listeners: 1},
		{
			socket: "s", line: "GET http://a.b/cart", listeners: 1,
			steps: []string{`l "a.b" ns/r/header PathPrefix /cart: failed, header X-V: wants "a", got none`},
			near:  []string{`l "a.b" ns/r/cart Exact /Cart: near, paths are compared with regard to case`},
		},
		{socket: "s", line: "GET http://c.b/Cart", listeners: 1, near: []string{`l "a.b" ns/r/cart Exact /Cart: near, the hostname does not match`}},
		{socket: "s", line: "GET http://c.b/", listeners: 1},
	} {
		t.Run(test.line, func(t *testing.T) {
			e := table.Explain(test.socket, request(test.line, test.headers...))
			if e.Refused != test.refused || len(e.Listeners) != test.listeners || e.Winner != nil {
				t.Errorf("got %+v", e)
			}
			if diff := cmp.Diff(test.steps, lines(e.Steps)); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.near, lines(e.Near)); diff != "" {
				t.Errorf("near (-want +got):\n%s", diff)
			}
		})
	}
}

// TestExplainSaysWhy gives each criterion of precedence as the reason.
func TestExplainSaysWhy(t *testing.T) {
	young := func(r *ir.Route) *ir.Route { r.Created = r.Created.Add(1); return r }
	for _, test := range []struct {
		want          string
		first, second *ir.Route
	}{
		{"the winner's hostname is more specific", routeFor("a/a", "h.b", rule("", prefix("/"))), routeFor("a/b", "*.b", rule("", prefix("/p")))},
		{"the winner's kind of path comes first", routeFor("a/a", "-", rule("", exact("/p/q"))), routeFor("a/b", "-", rule("", prefix("/p/q")))},
		{"the winner's prefix is longer", routeFor("a/b", "-", rule("", prefix("/p/q"))), routeFor("a/a", "-", rule("", prefix("/p")))},
		{"the winner asks for a method", routeFor("a/b", "-", rule("", with(prefix("/p"), "GET"))), routeFor("a/a", "-", rule("", prefix("/p")))},
		{"the winner asks for more headers", routeFor("a/b", "-", rule("", with(prefix("/p"), "H: 1"))), routeFor("a/a", "-", rule("", prefix("/p")))},
		{"the winner asks for more query parameters", routeFor("a/b", "-", rule("", with(prefix("/p"), "?v=1"))), routeFor("a/a", "-", rule("", prefix("/p")))},
		{"the winner's route is older", routeFor("a/b", "-", rule("", prefix("/p"))), young(routeFor("a/a", "-", rule("", prefix("/p"))))},
		{"the winner's route is first by name", routeFor("a/a", "-", rule("", prefix("/p"))), routeFor("a/b", "-", rule("", prefix("/p")))},
		{"the winner's match is first in the rule", routeFor("a/a", "-", rule("", prefix("/p"), prefix("/p"))), nil},
	} {
		t.Run(test.want, func(t *testing.T) {
			routes := []*ir.Route{test.first}
			if test.second != nil {
				routes = append(routes, test.second)
			}
			e := newTable(t, socketOf(listenerFor("l", "", routes...))).Explain("s", request("GET http://h.b/p/q?v=1", "H: 1"))
			if len(e.Steps) != 2 || e.Steps[0].Outcome != Won || e.Steps[0].Route != test.first.Name || e.Steps[1].Reason != test.want {
				t.Errorf("got %v", lines(e.Steps))
			}
		})
	}
}

func TestExplainBoundsWhatIsNear(t *testing.T) {
	l := &ir.Listener{Name: "l"}
	for i := range 3 * maxNear {
		name := fmt.Sprintf("ns/%03d", i)
		l.Routes = append(l.Routes, routeFor(name, fmt.Sprintf("h%03d", i), rule(name, prefix("/"))))
	}
	e := newTable(t, socketOf(l)).Explain("s", request("GET http://elsewhere/"))
	if len(e.Near) != maxNear || e.Near[0].Route != "ns/000" || e.Near[maxNear-1].Route != "ns/019" {
		t.Errorf("near are %d: %v", len(e.Near), lines(e.Near))
	}
}

// TestExplainIsLookup says that Explain tells what Lookup does: the same
// winner, and steps that are all candidates that the oracle knows, in its order.
func TestExplainIsLookup(t *testing.T) {
	winners := 0
	for seed := range uint64(500) {
		choose := seeded(seed)
		s := randomSocket(choose, "s")
		table := newTable(t, s)
		for range 10 {
			host, req := randomRequest(choose, s.Listeners)
			e := table.Explain("s", req)
			l := table.Socket("s").Listener([]byte(host))
			if e.Refused != "" || l == nil {
				if l == nil && len(e.Steps)+len(e.Listeners) > 0 {
					t.Fatalf("no listener, but %+v", e)
				}
				continue
			}
			normal := *req
			normal.Path, _ = message.NormalizePath(nil, req.Path)
			var m Match
			found := l.Lookup([]byte(host), &normal, &m)
			if found != (e.Winner != nil) {
				t.Fatalf("Lookup found %v, Explain has %+v", found, e.Winner)
			}
			if found {
				winners++
				if e.Winner.Route != m.Rule.Route.Name || e.Winner.Rule != m.Rule.IR.Index || e.Winner.Hostname != m.Hostname ||
					m.Rule.IR.Matches[e.Winner.Match] != m.Match {
					t.Fatalf("Lookup found %+v, Explain has %+v", m, e.Winner)
				}
			}
			checkSteps(t, l.IR(), host, &normal, e)
		}
	}
	if winners < 300 {
		t.Errorf("only %d requests had a winner", winners)
	}
}

// checkSteps compares the steps that hold with what the oracle says.
func checkSteps(t *testing.T, l *ir.Listener, host string, req *message.Request, e *Explanation) {
	t.Helper()
	var holding []naiveMatch
	for _, r := range l.Routes {
		for _, hostname := range r.Hostnames {
			for i, rule := range r.Rules {
				for j, m := range rule.Matches {
					if naiveHost(hostname, host) && naiveHolds(m, req) {
						holding = append(holding, naiveMatch{hostname, r, i, j})
					}
				}
			}
		}
	}
	slices.SortFunc(holding, naiveOrder)
	var want, got []string
	for _, n := range holding {
		want = append(want, fmt.Sprint(n.hostname, n.route.Name, n.route.Rules[n.rule].Index, n.match))
	}
	outcomes := map[Outcome]int{}
	for _, s := range e.Steps {
		outcomes[s.Outcome]++
		if s.Outcome == Failed {
			if s.Reason == "" {
				t.Fatalf("no reason: %+v", s)
			}
			continue
		}
		got = append(got, fmt.Sprint(s.Hostname, s.Route, s.Rule, s.Match))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%s %s%s: holding steps (-want +got):\n%s", req.Method, host, req.Path, diff)
	}
	if outcomes[Won] > 1 || outcomes[Outranked] != max(len(holding)-1, 0) {
		t.Fatalf("outcomes: %v of %s", outcomes, strings.Join(lines(e.Steps), "\n"))
	}
}
