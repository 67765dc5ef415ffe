package route

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/dataplane/ir"
	"github.com/headgate/headgate/dataplane/message"
)

// The oracle: a linear scan over every match of every rule under every
// hostname, sorted by the precedence that the Gateway API spells out. It shares
// nothing with the table but the IR.

// naiveMatch is one match that holds.
type naiveMatch struct {
	hostname string
	route    *ir.Route
	rule     int
	match    int
}

// naiveLookup returns the winner of a listener, or nil.
func naiveLookup(l *ir.Listener, host string, req *message.Request) *naiveMatch {
	var all []naiveMatch
	for _, r := range l.Routes {
		for _, hostname := range r.Hostnames {
			if !naiveHost(hostname, host) {
				continue
			}
			for i, rule := range r.Rules {
				for j, m := range rule.Matches {
					if naiveHolds(m, req) {
						all = append(all, naiveMatch{hostname, r, i, j})
					}
				}
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	first := slices.MinFunc(all, naiveOrder)
	return &first
}

// naiveListener returns the listener that a host belongs to, or nil.
func naiveListener(s *ir.Socket, host string) *ir.Listener {
	var best *ir.Listener
	for _, l := range s.Listeners {
		if naiveHost(l.Hostname, host) && (best == nil || naiveHostOrder(l.Hostname, best.Hostname) < 0) {
			best = l
		}
	}
	return best
}

func naiveHost(hostname, host string) bool {
	if suffix, ok := strings.CutPrefix(hostname, "*"); ok {
		return strings.HasSuffix(host, suffix) && len(host) > len(suffix)
	}
	return hostname == "" || hostname == host
}

// naiveHostOrder: the largest number of characters in a matching hostname
// without a wildcard, then in any matching hostname.
func naiveHostOrder(a, b string) int {
	precise := func(h string) int {
		if strings.HasPrefix(h, "*") {
			return 0
		}
		return len(h)
	}
	return cmp.Or(-cmp.Compare(precise(a), precise(b)), -cmp.Compare(len(a), len(b)))
}

func naiveOrder(a, b naiveMatch) int {
	x, y := a.route.Rules[a.rule].Matches[a.match], b.route.Rules[b.rule].Matches[b.match]
	kind := func(k ir.MatchKind) int {
		return map[ir.MatchKind]int{ir.MatchExact: 0, ir.MatchPrefix: 1, ir.MatchRegex: 2}[k]
	}
	prefix := func(p ir.PathMatch) int {
		if p.Kind != ir.MatchPrefix {
			return 0
		}
		return len(strings.TrimSuffix(p.Value, "/"))
	}
	method := func(m *ir.Match) int { return min(len(m.Method), 1) }
	names := func(ms []ir.ValueMatch, fold bool) int {
		seen := map[string]bool{}
		for _, m := range ms {
			if fold {
				m.Name = strings.ToLower(m.Name)
			}
			seen[m.Name] = true
		}
		return len(seen)
	}
	return cmp.Or(
		naiveHostOrder(a.hostname, b.hostname),
		cmp.Compare(kind(x.Path.Kind), kind(y.Path.Kind)),
		-cmp.Compare(prefix(x.Path), prefix(y.Path)),
		-cmp.Compare(method(x), method(y)),
		-cmp.Compare(names(x.Headers, true), names(y.Headers, true)),
		-cmp.Compare(names(x.Query, false), names(y.Query, false)),
		a.route.Created.Compare(b.route.Created),
		strings.Compare(a.route.Name, b.route.Name),
		cmp.Compare(a.rule, b.rule),
		cmp.Compare(a.match, b.match),
	)
}

func naiveHolds(m *ir.Match, req *message.Request) bool {
	path := string(req.Path)
	if path[0] != '/' {
		return false
	}
	switch m.Path.Kind {
	case ir.MatchExact:
		if path != m.Path.Value {
			return false
		}
	case ir.MatchPrefix:
		want := strings.Split(strings.TrimSuffix(m.Path.Value, "/"), "/")
		got := strings.Split(path, "/")
		if len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
			return false
		}
	case ir.MatchRegex:
		if !naiveRegex(m.Path.Value, path) {
			return false
		}
	}
	if m.Method != "" && m.Method != string(req.Method) {
		return false
	}
	return naiveValues(m.Headers, true, func(name string) (string, bool) {
		var values []string
		for _, f := range req.Headers.Fields() {
			if strings.EqualFold(string(f.Name), name) {
				values = append(values, string(f.Value))
			}
		}
		return strings.Join(values, ", "), len(values) > 0
	}) && naiveValues(m.Query, false, func(name string) (string, bool) {
		for pair := range strings.SplitSeq(string(req.Query), "&") {
			key, value, _ := strings.Cut(pair, "=")
			if decoded, _ := url.QueryUnescape(key); pair != "" && decoded == name {
				value, _ = url.QueryUnescape(value)
				return value, true
			}
		}
		return "", false
	})
}

// naiveValues checks the first condition for each name.
func naiveValues(conditions []ir.ValueMatch, fold bool, get func(name string) (string, bool)) bool {
	for i, c := range conditions {
		if slices.ContainsFunc(conditions[:i], func(o ir.ValueMatch) bool {
			return o.Name == c.Name || fold && strings.EqualFold(o.Name, c.Name)
		}) {
			continue
		}
		value, ok := get(c.Name)
		if !ok || c.Kind == ir.MatchExact && value != c.Value || c.Kind == ir.MatchRegex && !naiveRegex(c.Value, value) {
			return false
		}
	}
	return true
}

func naiveRegex(expr, s string) bool {
	re, ok := compiledRegexes[expr]
	if !ok {
		re = regexp.MustCompile(expr)
		re.Longest()
	}
	// The leftmost-longest match is all of s when any match is.
	at := re.FindStringIndex(s)
	return at != nil && at[0] == 0 && at[1] == len(s)
}

// chooser makes random choices: choose(n) is in [0,n).
type chooser func(n int) int

func seeded(seed uint64) chooser { return rand.New(rand.NewPCG(seed, 1)).IntN }

// fromBytes makes the choices that a fuzzer's input says.
func fromBytes(data []byte) chooser {
	return func(n int) int {
		if len(data) == 0 {
			return 0
		}
		c := int(data[0])
		data = data[1:]
		return c % n
	}
}

func pick[T any](choose chooser, from []T) T { return from[choose(len(from))] }

// Few of everything, so that things meet.
var (
	someHostnames = []string{"", "*.b", "*.a.b", "*.x.a.b", "a.b", "x.a.b", "y.x.a.b", "c"}
	someHosts     = []string{"", "b", "a.b", "x.a.b", "y.x.a.b", "z.y.x.a.b", "q.b", "c", "d.c", "[::1]"}
	someSegments  = []string{"a", "b", "ab", "", "a%2Fb", "A"}
	someMethods   = []string{"", "", "GET", "POST"}
	someHeaders   = []string{"X-A", "x-a", "X-B"}
	someParams    = []string{"v", "V", "w"}
	someValues    = []string{"1", "2", "1, 2", ""}
	someRegexes   = []string{"/a.*", "/(a|b)/b", "[^b]*", "/a/b|/ab", "/A?", "(?i)/a", ".+", "1|2", "1.*"}
)

// compiledRegexes holds someRegexes, compiled for naiveRegex.
var compiledRegexes = func() map[string]*regexp.Regexp {
	compiled := map[string]*regexp.Regexp{}
	for _, expr := range someRegexes {
		re := regexp.MustCompile(expr)
		re.Longest()
		compiled[expr] = re
	}
	return compiled
}()

func randomPath(choose chooser) string {
	path := ""
	for range 1 + choose(4) {
		path += "/" + pick(choose, someSegments)
	}
	return path
}

func randomValues(choose chooser, names []string) []ir.ValueMatch {
	var values []ir.ValueMatch
	for range max(0, choose(6)-3) {
		v := ir.ValueMatch{Name: pick(choose, names), Kind: ir.MatchExact, Value: pick(choose, someValues)}
		if choose(4) == 0 {
			v.Kind, v.Value = ir.MatchRegex, pick(choose, someRegexes)
		}
		values = append(values, v)
	}
	return values
}

func randomMatch(choose chooser) *ir.Match {
	m := &ir.Match{Method: pick(choose, someMethods), Headers: randomValues(choose, someHeaders), Query: randomValues(choose, someParams)}
	switch choose(5) {
	case 0:
		m.Path = ir.PathMatch{Kind: ir.MatchRegex, Value: pick(choose, someRegexes)}
	case 1, 2:
		m.Path = ir.PathMatch{Kind: ir.MatchExact, Value: randomPath(choose)}
	default:
		m.Path = ir.PathMatch{Kind: ir.MatchPrefix, Value: randomPath(choose)}
	}
	return m
}

func randomRoute(choose chooser, name string) *ir.Route {
	r := &ir.Route{Name: name, Created: time.Unix(int64(choose(2)), 0)}
	for range 1 + choose(3) {
		if h := pick(choose, someHostnames); !slices.Contains(r.Hostnames, h) {
			r.Hostnames = append(r.Hostnames, h)
		}
	}
	for i := range 1 + choose(3) {
		rule := &ir.Rule{Index: 2 * i}
		for range 1 + choose(3) {
			rule.Matches = append(rule.Matches, randomMatch(choose))
		}
		r.Rules = append(r.Rules, rule)
	}
	return r
}

func randomListener(choose chooser, name, hostname string) *ir.Listener {
	l := &ir.Listener{Name: name, Hostname: hostname}
	for i := range choose(8) {
		if choose(4) > 0 {
			l.Routes = append(l.Routes, randomRoute(choose, fmt.Sprintf("ns/%d", i)))
		}
	}
	return l
}

func randomSocket(choose chooser, name string) *ir.Socket {
	s := &ir.Socket{Name: name}
	for i, hostname := range someHostnames {
		if choose(3) == 0 {
			s.Listeners = append(s.Listeners, randomListener(choose, fmt.Sprint("l", i), hostname))
		}
	}
	return s
}

// randomRequest returns a request, mostly one that a match of a listener could
// be for.
func randomRequest(choose chooser, listeners []*ir.Listener) (host string, req *message.Request) {
	host = pick(choose, someHosts)
	req = &message.Request{Path: []byte(randomPath(choose)), Method: []byte(pick(choose, []string{"GET", "POST", "PUT"}))}
	if len(listeners) > 0 && choose(4) > 0 {
		if l := pick(choose, listeners); len(l.Routes) > 0 {
			r := pick(choose, l.Routes)
			if h := pick(choose, r.Hostnames); h != "" && choose(4) > 0 {
				host = strings.Replace(h, "*", "q", 1)
			}
			m := pick(choose, pick(choose, r.Rules).Matches)
			if m.Path.Kind != ir.MatchRegex {
				req.Path = []byte(m.Path.Value)
			}
			if m.Path.Kind == ir.MatchPrefix && choose(3) == 0 {
				req.Path = append(req.Path, randomPath(choose)...)
			}
			if m.Method != "" {
				req.Method = []byte(m.Method)
			}
			for _, h := range m.Headers {
				req.Headers.Add(h.Name, h.Value)
			}
		}
	}
	if choose(40) == 0 {
		req.Path = []byte("*")
	}
	for range max(0, choose(5)-2) {
		req.Headers.Add(pick(choose, someHeaders), pick(choose, someValues))
	}
	pairs := make([]string, max(0, choose(5)-2))
	for i := range pairs {
		pairs[i] = pick(choose, someParams) + pick(choose, []string{"=1", "=%31", "=2", "=1%2c+2", "", "="})
	}
	req.Query = []byte(strings.Join(pairs, "&"))
	req.Host = []byte(host)
	return host, req
}

// checkLookup compares a table with the oracle for one request on one socket.
func checkLookup(t *testing.T, table *Table, s *ir.Socket, host string, req *message.Request) {
	t.Helper()
	l := table.Socket(s.Name).Listener([]byte(host))
	want := naiveListener(s, host)
	if l == nil || want == nil {
		if l != nil || want != nil {
			t.Fatalf("host %q: listener %v, want %v", host, l, want)
		}
		return
	}
	if l.IR() != want {
		t.Fatalf("host %q: listener %q, want %q", host, l.IR().Hostname, want.Hostname)
	}
	var m Match
	found := l.Lookup([]byte(host), req, &m)
	winner := naiveLookup(want, host, req)
	what := fmt.Sprintf("%s %s%s?%s %v", req.Method, host, req.Path, req.Query, headerText(req))
	if !found || winner == nil {
		if found || winner != nil {
			t.Fatalf("%s: found %v %+v, want %+v", what, found, m, winner)
		}
		return
	}
	rule := winner.route.Rules[winner.rule]
	match := rule.Matches[winner.match]
	if m.Rule.Route != winner.route || m.Rule.IR != rule || m.Match != match || m.Hostname != winner.hostname {
		t.Fatalf("%s: got %s rule %d %+v under %q; want %s rule %d %+v under %q", what,
			m.Rule.Route.Name, m.Rule.IR.Index, m.Match, m.Hostname, winner.route.Name, rule.Index, match, winner.hostname)
	}
	prefix := 0
	if match.Path.Kind == ir.MatchPrefix {
		prefix = len(strings.TrimSuffix(match.Path.Value, "/"))
	}
	if m.Prefix != prefix {
		t.Fatalf("%s: prefix %d, want %d", what, m.Prefix, prefix)
	}
}

func headerText(req *message.Request) string {
	var b bytes.Buffer
	for _, f := range req.Headers.Fields() {
		fmt.Fprintf(&b, "%s: %s; ", f.Name, f.Value)
	}
	return b.String()
}

func TestLookupIsTheOracles(t *testing.T) {
	found := 0
	for seed := range uint64(3000) {
		choose := seeded(seed)
		s := randomSocket(choose, "s")
		table, err := New([]*ir.Socket{s}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 30 {
			host, req := randomRequest(choose, s.Listeners)
			checkLookup(t, table, s, host, req)
			if l := naiveListener(s, host); l != nil && naiveLookup(l, host, req) != nil {
				found++
			}
		}
	}
	if found < 8_000 {
		t.Errorf("only %d requests had a winner: the test tests little", found)
	}
}

func FuzzLookup(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("a listener, its routes, and what is asked of them"))
	f.Add(bytes.Repeat([]byte{0, 1, 2, 3, 5, 7, 11, 13}, 40))
	f.Fuzz(func(t *testing.T, data []byte) {
		choose := fromBytes(data)
		s := &ir.Socket{Name: "s", Listeners: []*ir.Listener{randomListener(choose, "l", "")}}
		before, err := New([]*ir.Socket{s}, nil)
		if err != nil {
			t.Fatal(err)
		}
		next := &ir.Socket{Name: "s", Listeners: []*ir.Listener{changeListener(choose, s.Listeners[0])}}
		after, err := before.Update([]*ir.Socket{next}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 8 {
			host, req := randomRequest(choose, next.Listeners)
			checkLookup(t, after, next, host, req)
			checkLookup(t, before, s, host, req)
		}
	})
}
