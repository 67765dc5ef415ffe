package cases

import (
	"fmt"
	"strings"
	"testing"
)

// marked is a rule that answers through the backend with X-Rule set in the
// answer. Matches are YAML flow mappings.
func marked(rule, backend string, matches ...string) string {
	return fmt.Sprintf(`
- matches: [%s]
  filters:
  - type: ResponseHeaderModifier
    responseHeaderModifier: {set: [{name: X-Rule, value: "%s"}]}
  backendRefs: [{name: %s, port: 80}]`, strings.Join(matches, ", "), rule, backend)
}

// ruleRoute is a route of marked rules on one host.
func ruleRoute(name, host string, rules ...string) string {
	hostnames := ""
	if host != "" {
		hostnames = fmt.Sprintf("hostnames: [%q]\n", host)
	}
	return route(name, hostnames+"rules:"+strings.Join(rules, ""))
}

func exact(v string) string  { return fmt.Sprintf("{path: {type: Exact, value: %q}}", v) }
func prefix(v string) string { return fmt.Sprintf("{path: {type: PathPrefix, value: %q}}", v) }
func regex(v string) string  { return fmt.Sprintf("{path: {type: RegularExpression, value: %q}}", v) }

// ruleCase is one request and the rule that must answer it; "" means 404.
type ruleCase struct{ name, request, rule string }

func runRuleCases(t *testing.T, g *gateway, cases []ruleCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := exchange(t, g.addr, c.request+"\r\n\r\n")
			if c.rule == "" {
				wantStatus(t, r, 404)
				return
			}
			wantStatus(t, r, 200)
			if r.get("X-Rule") != c.rule {
				t.Errorf("rule %q answered, want %q", r.get("X-Rule"), c.rule)
			}
		})
	}
}

func TestPathMatch(t *testing.T) {
	be := newBackend(t, "be")
	g := edge(t, be.manifest(),
		ruleRoute("plain", "p", marked("foo", "be", prefix("/foo"))),
		ruleRoute("slash", "s", marked("foo", "be", prefix("/foo/"))),
		ruleRoute("exact", "e", marked("abc", "be", exact("/abc"))),
		ruleRoute("exact-slash", "f", marked("abc", "be", exact("/abc/"))),
		ruleRoute("root", "r", marked("root", "be", prefix("/"))),
		ruleRoute("no-matches", "n", "\n- backendRefs: [{name: be, port: 80}]\n  filters: [{type: ResponseHeaderModifier, responseHeaderModifier: {set: [{name: X-Rule, value: any}]}}]"),
		ruleRoute("nested", "x", marked("a", "be", prefix("/a")), marked("ab", "be", prefix("/a/b")), marked("abc", "be", prefix("/a/b/c")), marked("axb", "be", prefix("/axb"))),
	)
	var cases []ruleCase
	for _, host := range []string{"p", "s"} {
		for _, c := range []ruleCase{
			{"foo", "/foo", "foo"}, {"foo-slash", "/foo/", "foo"}, {"foo-bar", "/foo/bar", "foo"},
			{"foobar", "/foobar", ""}, {"upper-case", "/Foo", ""}, {"query", "/foo?x", "foo"},
			{"semicolon", "/foo;a", ""}, {"semicolon-below", "/foo/bar;a", "foo"}, {"double-slash-first", "//foo", ""},
			{"double-slash-behind", "/foo//bar", "foo"}, {"root", "/", ""}, {"foo-below", "/x/foo", ""},
			{"query-with-slash", "/foo?/bar", "foo"}, {"path-in-query", "/?/foo", ""}, {"encoded-letter", "/%66oo", "foo"},
			{"encoded-slash", "/foo%2Fbar", ""}, {"dot-segment", "/x/../foo", "foo"}, {"shorter", "/fo", ""},
			{"dot-behind", "/foo.", ""}, {"encoded-question-mark", "/foo%3Fx", ""},
		} {
			cases = append(cases, ruleCase{"B23/" + host + "-" + c.name, "GET " + c.request + " HTTP/1.1\r\nHost: " + host, c.rule})
		}
	}
	get := func(host, target string) string { return "GET " + target + " HTTP/1.1\r\nHost: " + host }
	cases = append(cases,
		ruleCase{"B23/exact", get("e", "/abc"), "abc"},
		ruleCase{"B23/exact-query", get("e", "/abc?x=1"), "abc"},
		ruleCase{"B23/exact-with-slash", get("e", "/abc/"), ""},
		ruleCase{"B23/exact-longer", get("e", "/abcd"), ""},
		ruleCase{"B23/exact-below", get("e", "/abc/d"), ""},
		ruleCase{"B23/exact-case", get("e", "/ABC"), ""},
		ruleCase{"B23/exact-slash-rule", get("f", "/abc/"), "abc"},
		ruleCase{"B23/exact-slash-rule-without", get("f", "/abc"), ""},
		ruleCase{"B23/root-any", get("r", "/x/y"), "root"},
		ruleCase{"B23/root-root", get("r", "/"), "root"},
		ruleCase{"B23/root-double-slash", get("r", "//"), "root"},
		ruleCase{"B23/no-matches", get("n", "/anything"), "any"},
		ruleCase{"B23/nested-1", get("x", "/a"), "a"},
		ruleCase{"B23/nested-2", get("x", "/a/b"), "ab"},
		ruleCase{"B23/nested-2-other", get("x", "/a/bc"), "a"},
		ruleCase{"B23/nested-3", get("x", "/a/b/c/d"), "abc"},
		ruleCase{"B23/nested-3-other", get("x", "/a/b/cd"), "ab"},
		ruleCase{"B23/nested-sibling", get("x", "/axb/c"), "axb"},
		ruleCase{"B23/nested-sibling-other", get("x", "/axbc"), ""},
	)
	runRuleCases(t, g, cases)
}

// Routing and forwarding use one and the same path.
func TestPathNormalisation(t *testing.T) {
	be := newBackend(t, "be")
	guard := `
- matches: [{path: {type: PathPrefix, value: /admin}}]
  filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: X-Guard, value: "on"}]}}]
  backendRefs: [{name: be, port: 80}]`
	g := edge(t, be.manifest(), ruleRoute("a", "a", marked("public", "be", prefix("/public")), guard, marked("rest", "be", prefix("/"))))

	for _, c := range []struct {
		name, target string
		forwarded    string
		guarded      bool
	}{
		{"B24/dot-segments", "/public/../admin", "/admin", true},
		{"B24/encoded-dots", "/public/%2e%2e/admin", "/admin", true},
		{"B24/encoded-dots-upper", "/public/%2E%2E/admin", "/admin", true},
		{"B24/half-encoded-dots", "/public/.%2e/admin", "/admin", true},
		{"B24/single-dot", "/./admin", "/admin", true},
		{"B24/single-dot-encoded", "/%2e/admin/x", "/admin/x", true},
		{"B24/above-root", "/../../admin", "/admin", true},
		{"B24/trailing-dots", "/admin/x/..", "/admin/", true},
		{"B24/trailing-dot", "/admin/.", "/admin/", true},
		{"B24/back-and-forth", "/admin/../public", "/public", false},
		{"B24/unreserved-decoded", "/%61dmin", "/admin", true},
		{"B24/all-unreserved-decoded", "/%41%7a%30%2D%2e%5F%7e", "/Az0-._~", false},
		{"B24/encoded-slash-is-no-separator", "/public%2F..%2Fadmin", "/public%2F..%2Fadmin", false},
		{"B24/encoded-slash-kept", "/a%2Fb/c", "/a%2Fb/c", false},
		{"B24/gitlab", "/api/v4/projects/g%2Fp", "/api/v4/projects/g%2Fp", false},
		{"B24/double-slash-kept", "//admin", "//admin", false},
		{"B24/double-slash-inside", "/admin//x", "/admin//x", true},
		{"B24/dots-over-double-slash", "/public//../admin", "/public/admin", false},
		{"B24/double-encoded", "/public/%252e%252e/admin", "/public/%252e%252e/admin", false},
		{"B24/double-encoded-slash", "/a%252Fb", "/a%252Fb", false},
		{"B24/three-dots", "/public/.../admin", "/public/.../admin", false},
		{"B24/dots-in-name", "/public/..admin", "/public/..admin", false},
		{"B24/encoded-percent", "/a%25", "/a%25", false},
		{"B24/encoded-blank", "/a%20b", "/a%20b", false},
		{"B24/reserved-kept", "/a;b=c:@!$&'()*+,=d", "/a;b=c:@!$&'()*+,=d", false},
		{"B24/reserved-encoded-kept", "/a%3Bb%40%3A", "/a%3Bb%40%3A", false},
		{"B24/utf-8", "/%C3%A4", "/%C3%A4", false},
		{"B24/query-untouched", "/admin?a=/../b&c=%zz%61", "/admin?a=/../b&c=%zz%61", true},
		{"B24/query-with-question-marks", "/p?a?b?", "/p?a?b?", false},
		{"B24/empty-query", "/p?", "/p?", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := seen(t, exchange(t, g.addr, "GET "+c.target+" HTTP/1.1\r\nHost: a\r\n\r\n"))
			if q.target != c.forwarded {
				t.Errorf("forwarded %q, want %q", q.target, c.forwarded)
			}
			if q.has("X-Guard") != c.guarded {
				t.Errorf("guarded %v, want %v", q.has("X-Guard"), c.guarded)
			}
		})
	}
	t.Run("B24/hex-case-of-kept-escapes", func(t *testing.T) { // equivalent (RFC 3986, 6.2.2.1): either spelling
		q := seen(t, exchange(t, g.addr, "GET /a%2fb HTTP/1.1\r\nHost: a\r\n\r\n"))
		if !strings.EqualFold(q.target, "/a%2fb") {
			t.Errorf("forwarded %q", q.target)
		}
	})
	for _, c := range []struct{ name, target string }{
		{"B24/nul", "/admin%00"},
		{"B24/bad-escape", "/a%zz"},
		{"B24/half-escape", "/a%2"},
		{"B24/lone-percent", "/a%"},
		{"B24/backslash", "/a\\b"},
		{"B24/backslash-dots", "/public\\..\\admin"},
		{"B24/control", "/a\x1fb"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := be.mark()
			rejected(t, g.addr, "GET "+c.target+" HTTP/1.1\r\nHost: a\r\n\r\n", 400)
			be.wantNothingSince(t, m)
		})
	}
	t.Run("B24/encoded-backslash", func(t *testing.T) { // an ordinary octet in a URI
		r := exchange(t, g.addr, "GET /public%5C..%5Cadmin HTTP/1.1\r\nHost: a\r\n\r\n")
		if r.status != 400 {
			if q := seen(t, r); !strings.EqualFold(q.target, "/public%5C..%5Cadmin") || q.has("X-Guard") {
				t.Errorf("forwarded %q", q.target)
			}
		}
	})
	t.Run("B24/non-ascii", func(t *testing.T) { // refused, or passed on as it is
		r := exchange(t, g.addr, "GET /\xc3\xa4 HTTP/1.1\r\nHost: a\r\n\r\n")
		if r.status != 400 {
			if q := seen(t, r); q.target != "/\xc3\xa4" && !strings.EqualFold(q.target, "/%c3%a4") {
				t.Errorf("forwarded %q", q.target)
			}
		}
	})
}

func TestPrecedence(t *testing.T) {
	be := newBackend(t, "be")
	dated := func(name, created, doc string) string {
		return strings.Replace(doc, "name: "+name+", ", "name: "+name+", creationTimestamp: \""+created+"\", ", 1)
	}
	older, newer := "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"
	headers := func(n int) string {
		hs := []string{"{name: X-1, value: a}", "{name: X-2, value: b}", "{name: X-3, value: c}"}
		return "headers: [" + strings.Join(hs[:n], ", ") + "]"
	}
	query := func(n int) string {
		qs := []string{"{name: q1, value: a}", "{name: q2, value: b}"}
		return "queryParams: [" + strings.Join(qs[:n], ", ") + "]"
	}
	with := func(path, more string) string { return strings.TrimSuffix(path, "}") + ", " + more + "}" }
	docs := []string{be.manifest(),
		// From the least to the most specific, spread over two routes.
		ruleRoute("p1", "a",
			marked("query-1", "be", with(prefix("/m"), query(1))),
			marked("prefix-m", "be", prefix("/m")),
			marked("exact", "be", exact("/m/one")),
			marked("headers-1", "be", with(prefix("/m"), headers(1))),
			marked("query-2", "be", with(prefix("/m"), query(2))),
			marked("regex", "be", regex("/m/o.*")),
		),
		ruleRoute("p2", "a",
			marked("prefix-long", "be", prefix("/m/one")),
			marked("method", "be", with(prefix("/m"), "method: POST")),
			marked("headers-2", "be", with(prefix("/m"), headers(2))),
			marked("method-headers", "be", with(prefix("/m"), "method: PUT, "+headers(1))),
			marked("exact-headers", "be", with(exact("/m/three"), headers(3))),
			marked("exact-three", "be", exact("/m/three")),
		),
		ruleRoute("catch-all", "", marked("catch-all", "be", exact("/m/one"), exact("/m/only")), marked("catch-all-root", "be", prefix("/"))),
		ruleRoute("wild", "*.w", marked("wild", "be", exact("/long/path/here"))),
		ruleRoute("wild-deep", "*.x.w", marked("wild-deep", "be", prefix("/"))),
		ruleRoute("specific", "s.w", marked("specific", "be", prefix("/"))),
		dated("z-older", older, ruleRoute("z-older", "age", marked("older", "be", prefix("/t")))),
		dated("a-newer", newer, ruleRoute("a-newer", "age", marked("newer", "be", prefix("/t")))),
		dated("t-b", older, ruleRoute("t-b", "tie", marked("b", "be", prefix("/t")))),
		dated("t-a", older, ruleRoute("t-a", "tie", marked("a", "be", prefix("/t")))),
		ruleRoute("list", "list", marked("first", "be", prefix("/t")), marked("second", "be", prefix("/t"))),
		ruleRoute("alternatives", "alt", marked("or", "be", exact("/one"), with(prefix("/two"), "method: POST"), prefix("/three"))),
		ruleRoute("fall", "fall",
			marked("strict", "be", with(exact("/f/x"), "method: POST, "+headers(2))),
			marked("loose", "be", with(prefix("/f"), headers(1))),
			marked("last", "be", prefix("/"))),
	}
	cases := []ruleCase{
		{"B25/exact-first", "GET /m/one HTTP/1.1\r\nHost: a", "exact"},
		{"B25/exact-over-method-and-headers", "POST /m/one HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nX-1: a\r\nX-2: b", "exact"},
		{"B25/longest-prefix", "POST /m/one/x HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nX-1: a", "prefix-long"},
		{"B25/method-over-headers", "POST /m/two HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nX-1: a\r\nX-2: b", "method"},
		{"B25/most-headers", "GET /m/two HTTP/1.1\r\nHost: a\r\nX-2: b\r\nX-1: a", "headers-2"},
		{"B25/headers-over-query", "GET /m/two?q1=a&q2=b HTTP/1.1\r\nHost: a\r\nX-1: a", "headers-1"},
		{"B25/most-query", "GET /m/two?q2=b&q1=a HTTP/1.1\r\nHost: a", "query-2"},
		{"B25/some-query", "GET /m/two?q1=a HTTP/1.1\r\nHost: a", "query-1"},
		{"B25/nothing-more", "GET /m/two HTTP/1.1\r\nHost: a", "prefix-m"},
		{"B25/method-and-headers", "PUT /m/two HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nX-1: a\r\nX-2: b", "method-headers"},
		{"B25/fewer-when-one-fails", "GET /m/two HTTP/1.1\r\nHost: a\r\nX-1: a\r\nX-2: c", "headers-1"},
		{"B25/exact-with-headers", "GET /m/three HTTP/1.1\r\nHost: a\r\nX-1: a\r\nX-2: b\r\nX-3: c", "exact-headers"},
		{"B25/exact-without-headers", "GET /m/three HTTP/1.1\r\nHost: a\r\nX-1: a\r\nX-2: b", "exact-three"},
		{"B25/host-over-exact-path", "GET /m/only HTTP/1.1\r\nHost: a", "prefix-m"},
		{"B25/catch-all-for-others", "GET /m/one HTTP/1.1\r\nHost: other", "catch-all"},
		{"B25/catch-all-root", "GET /x HTTP/1.1\r\nHost: other", "catch-all-root"},
		{"B25/wildcard", "GET /long/path/here HTTP/1.1\r\nHost: q.w", "wild"},
		{"B25/specific-over-wildcard", "GET /long/path/here HTTP/1.1\r\nHost: s.w", "specific"},
		{"B25/longer-wildcard", "GET /long/path/here HTTP/1.1\r\nHost: y.x.w", "wild-deep"},
		{"B25/wildcard-several-labels", "GET /long/path/here HTTP/1.1\r\nHost: a.b.w", "wild"},
		{"B25/oldest", "GET /t HTTP/1.1\r\nHost: age", "older"},
		{"B25/name-tie", "GET /t HTTP/1.1\r\nHost: tie", "a"},
		{"B25/first-in-the-list", "GET /t HTTP/1.1\r\nHost: list", "first"},
		{"B25/alternative-1", "GET /one HTTP/1.1\r\nHost: alt", "or"},
		{"B25/alternative-2", "POST /two HTTP/1.1\r\nHost: alt\r\nContent-Length: 0", "or"},
		{"B25/alternative-3", "GET /three/x HTTP/1.1\r\nHost: alt", "or"},
		{"B25/fall-through-strict", "POST /f/x HTTP/1.1\r\nHost: fall\r\nContent-Length: 0\r\nX-1: a\r\nX-2: b", "strict"},
		{"B25/fall-through-loose", "GET /f/x HTTP/1.1\r\nHost: fall\r\nX-1: a\r\nX-2: b", "loose"},
		{"B25/fall-through-last", "GET /f/x HTTP/1.1\r\nHost: fall", "last"},
	}
	g := edge(t, docs...)
	runRuleCases(t, g, cases)
	t.Run("B25/exact-host-wins-over-catch-all", func(t *testing.T) {
		// The host's routes are asked first; only when none of them matches may a
		// less specific host answer.
		r := exchange(t, g.addr, "GET /unmatched HTTP/1.1\r\nHost: a\r\n\r\n")
		if r.status != 404 && r.get("X-Rule") != "catch-all-root" {
			t.Errorf("status %d, rule %q", r.status, r.get("X-Rule"))
		}
	})
	t.Run("restarted", func(t *testing.T) { // the order does not depend on the order of the files
		var reversed []string
		for i := range docs {
			reversed = append(reversed, docs[len(docs)-1-i])
		}
		runRuleCases(t, edge(t, reversed...), cases)
	})
}

func TestValueMatch(t *testing.T) {
	be := newBackend(t, "be")
	g := edge(t, be.manifest(),
		ruleRoute("header", "h", marked("a", "be", "{headers: [{name: X-V, value: a}]}")),
		ruleRoute("joined", "j", marked("joined", "be", `{headers: [{name: X-V, value: "b, a"}]}`)),
		ruleRoute("and", "and", marked("both", "be", "{headers: [{name: X-1, value: a}, {name: X-2, value: b}]}")),
		ruleRoute("header-regex", "hr", marked("a", "be", `{headers: [{type: RegularExpression, name: X-V, value: "v[0-9]+"}]}`)),
		ruleRoute("query", "q", marked("one", "be", "{queryParams: [{name: v, value: \"1\"}]}")),
		ruleRoute("query-regex", "qr", marked("a", "be", `{queryParams: [{type: RegularExpression, name: v, value: "[0-9]+"}]}`)),
		ruleRoute("method", "m", marked("post", "be", "{method: POST}")),
		ruleRoute("regex", "r", marked("admin", "be", regex("/admin")), marked("dot", "be", regex("/v[0-9]/(a|b)"))),
		ruleRoute("duplicate-names", "d", marked("first", "be", "{headers: [{name: x-v, value: a}, {name: X-V, value: b}]}")),
	)
	runRuleCases(t, g, []ruleCase{
		{"B26/header", "GET / HTTP/1.1\r\nHost: h\r\nX-V: a", "a"},
		{"B26/header-name-case", "GET / HTTP/1.1\r\nHost: h\r\nx-v: a", "a"},
		{"B26/header-blanks", "GET / HTTP/1.1\r\nHost: h\r\nX-V: \t a \t", "a"},
		{"B26/header-value-case", "GET / HTTP/1.1\r\nHost: h\r\nX-V: A", ""},
		{"B26/header-missing", "GET / HTTP/1.1\r\nHost: h", ""},
		{"B26/header-list", "GET / HTTP/1.1\r\nHost: h\r\nX-V: a, b", ""},
		{"B26/header-repeated-is-joined", "GET / HTTP/1.1\r\nHost: h\r\nX-V: b\r\nX-V: a", ""},
		{"B26/header-joined", "GET / HTTP/1.1\r\nHost: j\r\nX-V: b\r\nX-V: a", "joined"},
		{"B26/header-joined-in-one", "GET / HTTP/1.1\r\nHost: j\r\nX-V: b, a", "joined"},
		{"B26/headers-and", "GET / HTTP/1.1\r\nHost: and\r\nX-1: a\r\nX-2: b", "both"},
		{"B26/headers-and-one-missing", "GET / HTTP/1.1\r\nHost: and\r\nX-1: a", ""},
		{"B26/header-regex", "GET / HTTP/1.1\r\nHost: hr\r\nX-V: v12", "a"},
		{"B26/header-regex-whole-value", "GET / HTTP/1.1\r\nHost: hr\r\nX-V: xv12", ""},
		{"B26/header-regex-whole-value-end", "GET / HTTP/1.1\r\nHost: hr\r\nX-V: v12x", ""},
		{"B26/duplicate-name-first-counts", "GET / HTTP/1.1\r\nHost: d\r\nX-V: a", "first"},
		{"B26/query", "GET /?v=1 HTTP/1.1\r\nHost: q", "one"},
		{"B26/query-first-value", "GET /?v=1&v=2 HTTP/1.1\r\nHost: q", "one"},
		{"B26/query-second-value", "GET /?v=2&v=1 HTTP/1.1\r\nHost: q", ""},
		{"B26/query-among-others", "GET /?a=2&v=1&b HTTP/1.1\r\nHost: q", "one"},
		{"B26/query-encoded", "GET /?v=%31 HTTP/1.1\r\nHost: q", "one"},
		{"B26/query-encoded-name", "GET /?%76=1 HTTP/1.1\r\nHost: q", "one"},
		{"B26/query-name-case", "GET /?V=1 HTTP/1.1\r\nHost: q", ""},
		{"B26/query-no-value", "GET /?v HTTP/1.1\r\nHost: q", ""},
		{"B26/query-empty-value", "GET /?v= HTTP/1.1\r\nHost: q", ""},
		{"B26/query-none", "GET / HTTP/1.1\r\nHost: q", ""},
		{"B26/query-prefix-of-name", "GET /?vv=1 HTTP/1.1\r\nHost: q", ""},
		{"B26/query-bad-escape", "GET /?v=%zz HTTP/1.1\r\nHost: q", ""},
		{"B26/query-regex", "GET /?v=12 HTTP/1.1\r\nHost: qr", "a"},
		{"B26/query-regex-whole-value", "GET /?v=12a HTTP/1.1\r\nHost: qr", ""},
		{"B26/method", "POST / HTTP/1.1\r\nHost: m\r\nContent-Length: 0", "post"},
		{"B26/method-other", "GET / HTTP/1.1\r\nHost: m", ""},
		{"B26/method-case", "post / HTTP/1.1\r\nHost: m\r\nContent-Length: 0", ""},
		{"B26/regex", "GET /admin HTTP/1.1\r\nHost: r", "admin"},
		{"B26/regex-is-anchored-front", "GET /foo/admin HTTP/1.1\r\nHost: r", ""},
		{"B26/regex-is-anchored-both", "GET /foo/admin/bar HTTP/1.1\r\nHost: r", ""},
		{"B26/regex-is-anchored-back", "GET /admin/bar HTTP/1.1\r\nHost: r", ""},
		{"B26/regex-alternatives", "GET /v1/b HTTP/1.1\r\nHost: r", "dot"},
		{"B26/regex-alternatives-anchored", "GET /v1/bc HTTP/1.1\r\nHost: r", ""},
		{"B26/regex-without-query", "GET /admin?x HTTP/1.1\r\nHost: r", "admin"},
	})
}

// One bad rule does not take others with it.
func TestInvalidRegex(t *testing.T) {
	be := newBackend(t, "be")
	g := edge(t, be.manifest(),
		ruleRoute("bad", "bad", marked("bad", "be", regex("/["))),
		ruleRoute("good", "good", marked("good", "be", prefix("/"))))
	t.Run("B26/others-live", func(t *testing.T) {
		wantStatus(t, exchange(t, g.addr, "GET / HTTP/1.1\r\nHost: good\r\n\r\n"), 200)
	})
	t.Run("B26/bad-one-does-not-match", func(t *testing.T) {
		if r := exchange(t, g.addr, "GET /[ HTTP/1.1\r\nHost: bad\r\n\r\n"); r.status < 400 {
			t.Errorf("status %d", r.status)
		}
	})
	t.Run("B26/told", func(t *testing.T) {
		out, code := g.check(t)
		if code != 1 || !strings.Contains(out, "bad") {
			t.Errorf("check ended with %d: %s", code, out)
		}
		g.wantCondition(t, "HTTPRoute", "default", "bad", "Accepted", "False", "UnsupportedValue")
		g.wantCondition(t, "HTTPRoute", "default", "good", "Accepted", "True", "Accepted")
	})
}
