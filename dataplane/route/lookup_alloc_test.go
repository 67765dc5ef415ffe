//go:build !race

package route

import "testing"

// The race detector has sync.Pool drop some of what it is given, at random: then
// package regexp allocates.
func TestLookupAllocations(t *testing.T) {
	table := newTable(t, socketOf(
		listenerFor("l", "",
			routeFor("a/a", "h *.w",
				rule("exact", exact("/exact")),
				rule("prefix", prefix("/a"), prefix("/a/b"), with(prefix("/a/b/c"), "POST")),
				rule("header", with(prefix("/header"), "X-V: b, a", "X-W: ~b.*, a")),
				rule("query", with(prefix("/query"), "?v=1 2", "?w=~[0-9]+")),
				rule("regex", regex("/r[0-9]+/(a|b)*")),
			)),
		listenerFor("m", "*.m"),
	))
	for _, q := range []question{
		{"GET http://h/exact", nil, "exact"},
		{"GET http://q.w/exact", nil, "exact"},
		{"GET http://h/a/b/c/d", nil, "prefix"},
		{"GET http://h/header", []string{"X-V: b", "X-V: a", "X-W: bc", "X-W: a"}, "header"},
		{"GET http://h/query?v=%31+2&w=3", nil, "query"},
		{"GET http://h/r12/ab", nil, "regex"},
		{"GET http://h/nothing", nil, "-"},
		{"GET http://elsewhere/", nil, "-"},
		{"GET http://x.m/", nil, "-"},
	} {
		req := request(q.line, q.headers...)
		socket := table.Socket("s")
		var m Match
		found := false
		if n := testing.AllocsPerRun(100, func() { found = socket.Listener(req.Host).Lookup(req.Host, req, &m) }); n != 0 {
			t.Errorf("%s: %v allocations", q.line, n)
		}
		if found != (q.want != "-") || found && m.Rule.IR.Name != q.want {
			t.Errorf("%s: found %v, want %s", q.line, found, q.want)
		}
	}
}
