package route

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/dataplane/ir"
	"github.com/headgate/headgate/dataplane/message"
)

// exact, prefix and regex return a match by path.
func exact(path string) *ir.Match {
	return &ir.Match{Path: ir.PathMatch{Kind: ir.MatchExact, Value: path}}
}
func prefix(path string) *ir.Match {
	return &ir.Match{Path: ir.PathMatch{Kind: ir.MatchPrefix, Value: path}}
}
func regex(expr string) *ir.Match {
	return &ir.Match{Path: ir.PathMatch{Kind: ir.MatchRegex, Value: expr}}
}

// with returns m with conditions: "GET", "X-A: b", "?v=1"; "~" before a value
// makes it a regular expression.
func with(m *ir.Match, conditions ...string) *ir.Match {
	value := func(name, v string) ir.ValueMatch {
		if expr, ok := strings.CutPrefix(v, "~"); ok {
			return ir.ValueMatch{Name: name, Kind: ir.MatchRegex, Value: expr}
		}
		return ir.ValueMatch{Name: name, Kind: ir.MatchExact, Value: v}
	}
	for _, c := range conditions {
		if query, ok := strings.CutPrefix(c, "?"); ok {
			name, v, _ := strings.Cut(query, "=")
			m.Query = append(m.Query, value(name, v))
		} else if name, v, ok := strings.Cut(c, ": "); ok {
			m.Headers = append(m.Headers, value(name, v))
		} else {
			m.Method = c
		}
	}
	return m
}

// rule returns a named rule.
func rule(name string, matches ...*ir.Match) *ir.Rule { return &ir.Rule{Name: name, Matches: matches} }

// routeFor returns a route for hostnames, separated by spaces; "-" is "".
func routeFor(name, hostnames string, rules ...*ir.Rule) *ir.Route {
	r := &ir.Route{Name: name, Rules: rules, Created: time.Unix(1, 0)}
	for h := range strings.FieldsSeq(hostnames) {
		r.Hostnames = append(r.Hostnames, strings.TrimPrefix(h, "-"))
	}
	for i, rule := range rules {
		rule.Index = i
	}
	return r
}

func listenerFor(name, hostname string, routes ...*ir.Route) *ir.Listener {
	sortRoutes(routes)
	return &ir.Listener{Name: name, Hostname: hostname, Routes: routes}
}

func socketOf(listeners ...*ir.Listener) *ir.Socket {
	return &ir.Socket{Name: "s", Listeners: listeners}
}

func newTable(t *testing.T, sockets ...*ir.Socket) *Table {
	t.Helper()
	table, err := New(sockets, nil)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// request reads "GET http://host/path?query" and header lines.
func request(line string, headers ...string) *message.Request {
	method, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimPrefix(rest, "http://")
	host, path := rest, ""
	if i := strings.IndexAny(rest, "/*"); i >= 0 {
		host, path = rest[:i], rest[i:]
	}
	path, query, hasQuery := strings.Cut(path, "?")
	req := &message.Request{Method: []byte(method), Host: []byte(host), Path: []byte(path), Query: []byte(query), HasQuery: hasQuery}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Headers.Add(name, value)
	}
	return req
}

// ask returns the name of the rule that serves a request on the socket s, "-"
// when there is none, "no listener" when no listener takes its host.
func ask(t *testing.T, table *Table, req *message.Request) string {
	t.Helper()
	host, err := message.CanonicalHost(nil, req.Host)
	if err != nil {
		t.Fatal(err)
	}
	l := table.Socket("s").Listener(host)
	if l == nil {
		return "no listener"
	}
	var m Match
	if !l.Lookup(host, req, &m) {
		return "-"
	}
	return m.Rule.IR.Name
}

// question is a request and the name of the rule that serves it.
type question struct {
	line    string
	headers []string
	want    string
}

func askAll(t *testing.T, table *Table, questions []question) {
	t.Helper()
	for _, q := range questions {
		t.Run(q.line+" "+strings.Join(q.headers, ", "), func(t *testing.T) {
			if got := ask(t, table, request(q.line, q.headers...)); got != q.want {
				t.Errorf("served by %q, want %q", got, q.want)
			}
		})
	}
}

// TestPathKinds is case B23.
func TestPathKinds(t *testing.T) {
	table := newTable(t, socketOf(listenerFor("l", "",
		routeFor("ns/a", "-",
			rule("foo", prefix("/foo")),
			rule("bar", prefix("/bar/")),
			rule("abc", exact("/abc")),
			rule("xyz", exact("/xyz/")),
			rule("escaped", prefix("/e%2Ff")),
			rule("double", prefix("/d//e")),
		),
		routeFor("ns/b", "root", rule("root", prefix("/")), rule("exact root", with(exact("/"), "GET"))),
	)))
	askAll(t, table, []question{
		{"GET http://h/foo", nil, "foo"},
		{"GET http://h/foo/", nil, "foo"},
		{"GET http://h/foo/bar", nil, "foo"},
		{"GET http://h/foo//bar", nil, "foo"},
		{"GET http://h/foo?x", nil, "foo"},
		{"GET http://h/foobar", nil, "-"},
		{"GET http://h/Foo", nil, "-"},
		{"GET http://h/foo;a", nil, "-"},
		{"GET http://h/foo%2Fbar", nil, "-"},
		{"GET http://h//foo", nil, "-"},
		{"GET http://h/fo", nil, "-"},
		{"GET http://h/", nil, "-"},
		{"GET http://h/bar", nil, "bar"},
		{"GET http://h/bar/", nil, "bar"},
		{"GET http://h/bar/x", nil, "bar"},
		{"GET http://h/barx", nil, "-"},
		{"GET http://h/abc", nil, "abc"},
		{"GET http://h/abc/", nil, "-"},
		{"GET http://h/abc/d", nil, "-"},
		{"GET http://h/ABC", nil, "-"},
		{"GET http://h/xyz/", nil, "xyz"},
		{"GET http://h/xyz", nil, "-"},
		{"GET http://h/e%2Ff", nil, "escaped"},
		{"GET http://h/e%2Ff/g", nil, "escaped"},
		{"GET http://h/e/f", nil, "-"},
		{"GET http://h/d//e", nil, "double"},
		{"GET http://h/d/e", nil, "-"},
		{"GET http://root/", nil, "exact root"},
		{"POST http://root/", nil, "root"},
		{"GET http://root/any/thing", nil, "root"},
		{"GET http://root//", nil, "root"},
		{"OPTIONS http://root*", nil, "-"},
	})
}

// TestPrecedence is case B25: the criteria one after the other, each against
// candidates that are better in everything below it.
func TestPrecedence(t *testing.T) {
	old := func(r *ir.Route) *ir.Route { r.Created = time.Unix(0, 0); return r }
	tests := []struct {
		name   string
		routes []*ir.Route
		line   string
		want   string
	}{
		{"exact host before wildcard", []*ir.Route{
			old(routeFor("a/a", "*.x.b", rule("wildcard", with(exact("/m/one"), "GET", "H: 1", "?q=1")))),
			routeFor("b/b", "a.x.b", rule("exact", prefix("/"))),
		}, "GET http://a.x.b/m/one?q=1", "exact"},
		{"longer wildcard before shorter", []*ir.Route{
			old(routeFor("a/a", "*.b", rule("shorter", with(exact("/m/one"), "GET", "H: 1")))),
			routeFor("b/b", "*.x.b", rule("longer", prefix("/"))),
		}, "GET http://a.x.b/m/one", "longer"},
		{"wildcard before any host", []*ir.Route{
			old(routeFor("a/a", "-", rule("any", with(exact("/m/one"), "GET", "H: 1")))),
			routeFor("b/b", "*.b", rule("wildcard", prefix("/"))),
		}, "GET http://a.x.b/m/one", "wildcard"},
		{"exact path before prefix", []*ir.Route{
			old(routeFor("a/a", "-", rule("prefix", with(prefix("/m/one"), "GET", "H: 1", "?q=1")))),
			routeFor("b/b", "-", rule("exact", exact("/m/one"))),
		}, "GET http://h/m/one?q=1", "exact"},
		{"longer prefix before shorter", []*ir.Route{
			old(routeFor("a/a", "-", rule("shorter", with(prefix("/m"), "GET", "H: 1", "?q=1")))),
			routeFor("b/b", "-", rule("longer", prefix("/m/one"))),
		}, "GET http://h/m/one/two?q=1", "longer"},
		{"a trailing slash does not make a prefix longer", []*ir.Route{
			routeFor("a/a", "-", rule("slash", prefix("/m/"))),
			old(routeFor("b/b", "-", rule("plain", prefix("/m")))),
		}, "GET http://h/m/one", "plain"},
		{"prefix before regular expression", []*ir.Route{
			old(routeFor("a/a", "-", rule("regex", with(regex("/m/one"), "GET", "H: 1", "?q=1")))),
			routeFor("b/b", "-", rule("prefix", prefix("/"))),
		}, "GET http://h/m/one?q=1", "prefix"},
		{"method before none", []*ir.Route{
			old(routeFor("a/a", "-", rule("headers", with(prefix("/m"), "H: 1", "I: 1", "?q=1")))),
			routeFor("b/b", "-", rule("method", with(prefix("/m"), "GET"))),
		}, "GET http://h/m?q=1", "method"},
		{"more headers before fewer", []*ir.Route{
			old(routeFor("a/a", "-", rule("one", with(prefix("/m"), "H: 1", "?q=1", "?r=1")))),
			routeFor("b/b", "-", rule("two", with(prefix("/m"), "H: 1", "I: 1"))),
		}, "GET http://h/m?q=1&r=1", "two"},
		{"a name that is repeated counts once", []*ir.Route{
			old(routeFor("a/a", "-", rule("repeated", with(prefix("/m"), "H: 1", "h: 2", "H: 3")))),
			routeFor("b/b", "-", rule("two", with(prefix("/m"), "H: 1", "I: 1"))),
		}, "GET http://h/m", "two"},
		{"more parameters before fewer", []*ir.Route{
			old(routeFor("a/a", "-", rule("one", with(prefix("/m"), "?q=1")))),
			routeFor("b/b", "-", rule("two", with(prefix("/m"), "?q=1", "?r=1"))),
		}, "GET http://h/m?q=1&r=1", "two"},
		{"older before newer", []*ir.Route{
			routeFor("a/a", "-", rule("newer", prefix("/m"))),
			old(routeFor("b/b", "-", rule("older", prefix("/m")))),
		}, "GET http://h/m", "older"},
		{"first name of routes of one age", []*ir.Route{
			routeFor("a/z", "-", rule("first", prefix("/m"))),
			routeFor("b/a", "-", rule("second", prefix("/m"))),
		}, "GET http://h/m", "first"},
		{"first rule of a route", []*ir.Route{
			routeFor("a/a", "-", rule("first", prefix("/m")), rule("second", prefix("/m"))),
		}, "GET http://h/m", "first"},
		{"first of the regular expressions of a route", []*ir.Route{
			routeFor("a/a", "-", rule("first", regex("/.*")), rule("second", regex("/m/one"))),
		}, "GET http://h/m/one", "first"},
		{"method among regular expressions", []*ir.Route{
			routeFor("a/a", "-", rule("any", regex("/m/one")), rule("get", with(regex("/m/.*"), "GET"))),
		}, "GET http://h/m/one", "get"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			l := listenerFor("l", "", test.routes...)
			req := request(test.line, "H: 1", "I: 1")
			if got := ask(t, newTable(t, socketOf(l)), req); got != test.want {
				t.Errorf("served by %q, want %q", got, test.want)
			}
			if winner := naiveLookup(l, string(req.Host), req); winner == nil || winner.route.Rules[winner.rule].Name != test.want {
				t.Errorf("the oracle says %+v", winner)
			}
		})
	}
}

// TestMatchOfRule says which of a rule's matches held.
func TestMatchOfRule(t *testing.T) {
	first, second := with(prefix("/m"), "GET"), prefix("/m/n")
	table := newTable(t, socketOf(listenerFor("l", "", routeFor("a/a", "*.b -", rule("r", first, second, with(prefix("/m"), "GET"))))))
	for _, test := range []struct {
		line, hostname string
		want           *ir.Match
		prefix         int
	}{
		{"GET http://a.b/m", "*.b", first, 2},
		{"GET http://c/m", "", first, 2},
		{"POST http://c/m/n/o", "", second, 4},
		{"GET http://c/m/n/", "", second, 4},
	} {
		req := request(test.line)
		var m Match
		if !table.Socket("s").Listener(req.Host).Lookup(req.Host, req, &m) {
			t.Fatalf("%s: no rule", test.line)
		}
		if m.Match != test.want || m.Hostname != test.hostname || m.Prefix != test.prefix || m.Rule.Route.Name != "a/a" {
			t.Errorf("%s: got %+v", test.line, m)
		}
	}
	m := Match{Hostname: "before"}
	if req := request("GET http://c/"); table.Socket("s").Listener(req.Host).Lookup(req.Host, req, &m) || m.Hostname != "before" {
		t.Errorf("a lookup without a winner left %+v", m)
	}
}

// TestFallThrough says that the search goes on when conditions fail: to the
// next candidate of a path, to shorter prefixes, to regular expressions, to
// less specific hostnames.
func TestFallThrough(t *testing.T) {
	table := newTable(t, socketOf(listenerFor("l", "",
		routeFor("a/exact", "a.x.b",
			rule("exact", with(exact("/m/n/o"), "H: 1")),
			rule("long", with(prefix("/m/n"), "H: 2")),
			rule("short", with(prefix("/m"), "H: 3")),
			rule("regex", with(regex("/m/.*"), "H: 4")),
		),
		routeFor("a/longer", "*.x.b", rule("longer", with(prefix("/m"), "H: 5"))),
		routeFor("a/shorter", "*.b", rule("shorter", with(exact("/m/n/o"), "H: 6"))),
		routeFor("a/any", "-", rule("any", with(regex(".*/o"), "H: 7"))),
	)))
	for i, want := range []string{"-", "exact", "long", "short", "regex", "longer", "shorter", "any", "-"} {
		if got := ask(t, table, request("GET http://a.x.b/m/n/o", fmt.Sprintf("H: %d", i))); got != want {
			t.Errorf("H: %d is served by %q, want %q", i, got, want)
		}
	}
	askAll(t, table, []question{
		{"GET http://q.a.x.b/m", []string{"H: 5"}, "longer"},
		{"GET http://q.a.x.b/m", []string{"H: 3"}, "-"},
		{"GET http://x.b/m/n/o", []string{"H: 6"}, "shorter"},
		{"GET http://x.b/m/n/o", []string{"H: 5"}, "-"},
		{"GET http://b/m/n/o", []string{"H: 6"}, "-"},
		{"GET http://b/m/n/o", []string{"H: 7"}, "any"},
	})
}

// TestConditions is case B26.
func TestConditions(t *testing.T) {
	table := newTable(t, socketOf(listenerFor("l", "",
		routeFor("a/a", "-",
			rule("a", with(prefix("/header"), "X-V: a")),
			rule("b, a", with(prefix("/header"), "X-V: b, a")),
			rule("both", with(prefix("/and"), "X-V: a", "X-W: b")),
			rule("header regex", with(prefix("/hregex"), "X-V: ~a|b.")),
			rule("repeated regex", with(prefix("/hregex"), "X-V: ~a, .*")),
			rule("first name", with(prefix("/names"), "X-V: a", "x-v: b")),
			rule("empty", with(prefix("/empty"), "X-V: ")),
			rule("v is 1", with(prefix("/query"), "?v=1")),
			rule("v is empty", with(prefix("/query"), "?v=")),
			rule("v is a b", with(prefix("/query"), "?v=a b")),
			rule("query regex", with(prefix("/qregex"), "?v=~[0-9]+")),
			rule("two parameters", with(prefix("/query2"), "?v=1", "?w=2")),
			rule("first parameter", with(prefix("/query3"), "?v=1", "?v=2")),
			rule("method", with(prefix("/method"), "GET")),
			rule("host", with(prefix("/host"), "Host: h:8080")),
			rule("upgrade", with(prefix("/upgrade"), "upgrade: ~(?i)websocket")),
			rule("connection", with(prefix("/connection"), "Connection: ~.*")),
			rule("admin", regex("/admin")),
			rule("alternatives", regex("/x1|/x2")),
			rule("fold", regex("(?i)/fold")),
		))))
	askAll(t, table, []question{
		{"GET http://h/header", []string{"X-V: a"}, "a"},
		{"GET http://h/header", []string{"x-v: a"}, "a"},
		{"GET http://h/header", []string{"X-V: A"}, "-"},
		{"GET http://h/header", []string{"X-V: b", "X-V: a"}, "b, a"},
		{"GET http://h/header", []string{"X-V: b", "Other: 1", "x-v: a"}, "b, a"},
		{"GET http://h/header", []string{"X-V: b, a"}, "b, a"},
		{"GET http://h/header", []string{"X-V: a", "X-V: b"}, "-"},
		{"GET http://h/header", nil, "-"},
		{"GET http://h/and", []string{"X-V: a"}, "-"},
		{"GET http://h/and", []string{"X-W: b", "X-V: a"}, "both"},
		{"GET http://h/hregex", []string{"X-V: bx"}, "header regex"},
		{"GET http://h/hregex", []string{"X-V: xbx"}, "-"},
		{"GET http://h/hregex", []string{"X-V: ax"}, "-"},
		{"GET http://h/hregex", []string{"X-V: a", "X-V: c"}, "repeated regex"},
		{"GET http://h/names", []string{"X-V: a"}, "first name"},
		{"GET http://h/names", []string{"X-V: b"}, "-"},
		{"GET http://h/empty", []string{"X-V: "}, "empty"},
		{"GET http://h/empty", nil, "-"},
		{"GET http://h/query?v=1&v=2", nil, "v is 1"},
		{"GET http://h/query?v=2&v=1", nil, "-"},
		{"GET http://h/query?v=%31", nil, "v is 1"},
		{"GET http://h/query?%76=1", nil, "v is 1"},
		{"GET http://h/query?V=1", nil, "-"},
		{"GET http://h/query?v", nil, "v is empty"},
		{"GET http://h/query?v=", nil, "v is empty"},
		{"GET http://h/query", nil, "-"},
		{"GET http://h/query?v=a+b", nil, "v is a b"},
		{"GET http://h/query?v=a%20b", nil, "v is a b"},
		{"GET http://h/qregex?v=12", nil, "query regex"},
		{"GET http://h/qregex?v=%31%32", nil, "query regex"},
		{"GET http://h/qregex?v=12x", nil, "-"},
		{"GET http://h/query2?w=2&v=1", nil, "two parameters"},
		{"GET http://h/query2?v=1", nil, "-"},
		{"GET http://h/query3?v=1", nil, "first parameter"},
		{"GET http://h/query3?v=2", nil, "-"},
		{"GET http://h/method", nil, "method"},
		{"get http://h/method", nil, "-"},
		{"HEAD http://h/method", nil, "-"},
		{"GET http://h:8080/host", nil, "host"},
		{"GET http://h/host", nil, "-"},
		{"GET http://h/upgrade", []string{"Upgrade: websocket"}, "-"},
		{"GET http://h/connection", []string{"Other: x"}, "-"},
		{"GET http://h/admin", nil, "admin"},
		{"GET http://h/foo/admin/bar", nil, "-"},
		{"GET http://h/admin/", nil, "-"},
		{"GET http://h/x1", nil, "alternatives"},
		{"GET http://h/x2", nil, "alternatives"},
		{"GET http://h/x1/x2", nil, "-"},
		{"GET http://h/FOLD", nil, "fold"},
	})
	req := request("GET http://h/upgrade")
	req.Upgrade = []byte("WebSocket")
	if got := ask(t, table, req); got != "upgrade" {
		t.Errorf("a request that asks for an upgrade is served by %q", got)
	}
}

// TestListenerIsolation is case B29.
func TestListenerIsolation(t *testing.T) {
	all := func(name string) *ir.Rule { return rule(name, prefix("/")) }
	table := newTable(t, socketOf(
		listenerFor("any", "", routeFor("a/any", "-", all("any"))),
		listenerFor("foo", "foo.example.com", routeFor("a/foo", "foo.example.com", rule("foo", prefix("/routed")))),
		listenerFor("wild", "*.example.com", routeFor("a/wild", "*.example.com", all("wild"))),
		listenerFor("wildfoo", "*.foo.example.com", routeFor("a/wildfoo", "a.foo.example.com", all("wildfoo"))),
	))
	askAll(t, table, []question{
		{"GET http://example.com/", nil, "any"},
		{"GET http://other.org/", nil, "any"},
		{"GET http://EXAMPLE.com:8080/", nil, "any"},
		{"GET http://bar.example.com/", nil, "wild"},
		{"GET http://x.y.example.com/", nil, "wild"},
		{"GET http://xfoo.example.com/", nil, "wild"},
		{"GET http://foo.example.com/routed", nil, "foo"},
		{"GET http://foo.example.com/unrouted", nil, "-"},
		{"GET http://Foo.Example.com.:80/routed", nil, "foo"},
		{"GET http://a.foo.example.com/", nil, "wildfoo"},
		{"GET http://b.foo.example.com/", nil, "-"},
		{"GET http://x.a.foo.example.com/", nil, "-"},
		{"GET http://fooexample.com/", nil, "any"},
		{"GET http://[::1]:80/", nil, "any"},
		{"GET http:///", nil, "any"},
	})
	table = newTable(t, socketOf(listenerFor("foo", "foo.example.com", routeFor("a/foo", "foo.example.com", all("foo")))))
	askAll(t, table, []question{
		{"GET http://foo.example.com/", nil, "foo"},
		{"GET http://bar.example.com/", nil, "no listener"},
	})
	if l := table.Socket("s").Listener([]byte("foo.example.com")); l.IR().Name != "foo" {
		t.Errorf("the listener is %s", l.IR().Name)
	}
	if table.Socket("t") != nil || (*Table)(nil).Socket("s") != nil {
		t.Error("there is a socket that is not in the snapshot")
	}
	if s := table.Socket("s"); s.IR().Name != "s" {
		t.Errorf("the socket is %s", s.IR().Name)
	}
}

// TestNestedPrefixes has more prefixes inside each other than any fixed bound,
// each with a condition that fails.
func TestNestedPrefixes(t *testing.T) {
	const depth = 500
	r := routeFor("a/a", "-", rule("root", prefix("/")))
	path := ""
	for range depth {
		path += "/d"
		r.Rules = append(r.Rules, rule(path, with(prefix(path), "H: "+fmt.Sprint(len(path)))))
	}
	table := newTable(t, socketOf(listenerFor("l", "", r)))
	for _, n := range []int{2, 4, 500, 998, 1000} {
		if got := ask(t, table, request("GET http://h"+path+"/e", fmt.Sprint("H: ", n))); len(got) != n {
			t.Errorf("H: %d is served by a prefix of %d bytes", n, len(got))
		}
	}
	if got := ask(t, table, request("GET http://h"+path+"/e")); got != "root" {
		t.Errorf("served by %q, want root", got)
	}
}

// TestLongHosts says that a host with thousands of labels costs no more than a
// short one, whatever reaches the table.
func TestLongHosts(t *testing.T) {
	table := newTable(t, socketOf(listenerFor("l", "",
		routeFor("a/a", "*.example.com", rule("wildcard", prefix("/"))),
		routeFor("a/b", "-", rule("any", prefix("/"))),
	)))
	ask := func(host string) string {
		var m Match
		if !table.Socket("s").Listener([]byte(host)).Lookup([]byte(host), request("GET http://h/"), &m) {
			return "-"
		}
		return m.Rule.IR.Name
	}
	labels := strings.Repeat("a.", 120)
	if got := ask(labels + "example.com"); got != "wildcard" {
		t.Errorf("120 labels are served by %q", got)
	}
	if got := ask(strings.Repeat(labels, 300) + "example.com"); got != "any" {
		t.Errorf("36,000 labels are served by %q", got)
	}
}

// TestMisdirected has the pairs of server name and Host of the conformance
// suite: a request is misdirected when the two belong to different listeners.
func TestMisdirected(t *testing.T) {
	var listeners []*ir.Listener
	for i, hostname := range []string{"", "second-example.org", "*.wildcard.org", "fourth-example.wildcard.org"} {
		listeners = append(listeners, listenerFor(fmt.Sprint(i), hostname))
	}
	socket := newTable(t, socketOf(listeners...)).Socket("s")
	for _, test := range []struct {
		server, host string
		misdirected  bool
	}{
		{"example.org", "example.org", false},
		{"example.org", "second-example.org", true},
		{"example.org", "unknown-example.org", false},
		{"second-example.org", "second-example.org", false},
		{"second-example.org", "example.org", true},
		{"second-example.org", "unknown-example.org", true},
		{"third-example.wildcard.org", "fifth-example.wildcard.org", false},
		{"third-example.wildcard.org", "fourth-example.wildcard.org", true},
		{"fourth-example.wildcard.org", "third-example.wildcard.org", true},
		{"", "second-example.org", true},
		{"", "example.org", false},
	} {
		if got := socket.Listener([]byte(test.server)) != socket.Listener([]byte(test.host)); got != test.misdirected {
			t.Errorf("%s over a connection for %q is misdirected: %v", test.host, test.server, got)
		}
	}
}
