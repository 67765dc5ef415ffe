package filter

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/dataplane/ir"
	"github.com/headgate/headgate/dataplane/message"
)

// exchange returns an exchange for a request to path?query of www.example.
func exchange(path, query string, prefix int) *Exchange {
	r := &message.Request{Method: []byte("GET"), Host: []byte("www.example:8080"), Path: []byte(path), Query: []byte(query), HasQuery: query != ""}
	return &Exchange{Request: r, Host: []byte("www.example"), Port: 8080, Prefix: prefix}
}

func compile(t *testing.T, f ...*ir.Filter) *Chain {
	t.Helper()
	c, err := Compile(f)
	if err != nil {
		t.Fatal(err)
	}
	return &c
}

// The first eleven rows are the table in Gateway API's HTTPPathModifier.
func TestReplacePrefixMatch(t *testing.T) {
	for _, tc := range []struct{ path, prefix, value, want string }{
		{"/foo/bar", "/foo", "/xyz", "/xyz/bar"},
		{"/foo/bar", "/foo", "/xyz/", "/xyz/bar"},
		{"/foo/bar", "/foo/", "/xyz", "/xyz/bar"},
		{"/foo/bar", "/foo/", "/xyz/", "/xyz/bar"},
		{"/foo", "/foo", "/xyz", "/xyz"},
		{"/foo/", "/foo", "/xyz", "/xyz/"},
		{"/foo/bar", "/foo", "", "/bar"},
		{"/foo/", "/foo", "", "/"},
		{"/foo", "/foo", "", "/"},
		{"/foo/", "/foo", "/", "/"},
		{"/foo", "/foo", "/", "/"},
		{"/test", "/", "/foo", "/foo/test"},
		{"/", "/", "/foo", "/foo/"},
		{"/a%2Fb", "/a%2Fb", "/x", "/x"},
		{"/a/b%2Fc", "/a", "/x", "/x/b%2Fc"},
		{"/a//c", "/a", "/x", "/x//c"},
		{"/a//c", "/a", "/", "//c"},
	} {
		prefix := len(tc.prefix)
		if tc.prefix[prefix-1] == '/' {
			prefix--
		}
		x := exchange(tc.path, "a=/a/c", prefix)
		c := compile(t, &ir.Filter{Rewrite: &ir.Rewrite{Path: &ir.PathChange{Prefix: true, Value: tc.value}}})
		if !c.Request(x) {
			t.Fatal("a rewrite answered")
		}
		if got := string(x.Request.Path); got != tc.want {
			t.Errorf("%s with %s -> %q: %q, want %q", tc.path, tc.prefix, tc.value, got, tc.want)
		}
		if string(x.Request.Query) != "a=/a/c" {
			t.Errorf("%s: the query became %q", tc.path, x.Request.Query)
		}
	}
}

func TestRewriteWholePathAndHost(t *testing.T) {
	x := exchange("/a/b", "q", 2)
	compile(t, &ir.Filter{Rewrite: &ir.Rewrite{Hostname: "other.example", Path: &ir.PathChange{Value: "/one"}}}).Request(x)
	if string(x.Request.Path) != "/one" || string(x.Request.Host) != "other.example" {
		t.Fatalf("path %q, host %q", x.Request.Path, x.Request.Host)
	}
}

func TestRedirectLocation(t *testing.T) {
	for name, tc := range map[string]struct {
		redirect ir.Redirect
		secure   bool
		want     string
	}{
		"nothing but a status keeps scheme and port": {ir.Redirect{Status: 301}, false, "http://www.example:8080/a/b?q=1"},
		"scheme brings its well-known port":          {ir.Redirect{Scheme: "https"}, false, "https://www.example/a/b?q=1"},
		"scheme with a port":                         {ir.Redirect{Scheme: "https", Port: 8443}, false, "https://www.example:8443/a/b?q=1"},
		"port of the scheme is left out":             {ir.Redirect{Port: 80}, false, "http://www.example/a/b?q=1"},
		"443 is left out of https only":              {ir.Redirect{Scheme: "http", Port: 443}, false, "http://www.example:443/a/b?q=1"},
		"port alone keeps the scheme":                {ir.Redirect{Port: 8443}, true, "https://www.example:8443/a/b?q=1"},
		"unknown scheme takes the listener's port":   {ir.Redirect{Scheme: "foo"}, false, "foo://www.example:8080/a/b?q=1"},
		"host":       {ir.Redirect{Hostname: "new.example", Scheme: "http"}, false, "http://new.example/a/b?q=1"},
		"whole path": {ir.Redirect{Scheme: "http", Path: &ir.PathChange{Value: "/new"}}, false, "http://www.example/new?q=1"},
		"prefix":     {ir.Redirect{Scheme: "http", Path: &ir.PathChange{Prefix: true, Value: "/x"}}, false, "http://www.example/x/b?q=1"},
	} {
		t.Run(name, func(t *testing.T) {
			x := exchange("/a/b", "q=1", 2)
			x.Request.Secure = tc.secure
			tc.redirect.Status = 302
			c := compile(t, &ir.Filter{Redirect: &tc.redirect})
			if c.Request(x) || !c.Answers() {
				t.Fatal("a redirect did not answer")
			}
			if diff := cmp.Diff(Answer{Status: 302, Location: tc.want}, x.Answer); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRedirectOfARequestWithoutHost(t *testing.T) {
	x := exchange("/a", "", 0)
	x.Host = nil
	compile(t, &ir.Filter{Redirect: &ir.Redirect{Scheme: "https", Status: 301}}).Request(x)
	if x.Answer.Location != "/a" {
		t.Fatalf("Location %q", x.Answer.Location)
	}
	x = exchange("//evil.example/a", "", 0)
	x.Host = nil
	compile(t, &ir.Filter{Redirect: &ir.Redirect{Status: 301}}).Request(x)
	if x.Answer.Location != "/.//evil.example/a" {
		t.Fatalf("Location %q leads to another host", x.Answer.Location)
	}
}

func TestHeaderChanges(t *testing.T) {
	change := &ir.HeaderChange{
		Set:    []ir.Header{{Name: "X-Set", Value: "new"}, {Name: "x-added", Value: "1"}},
		Add:    []ir.Header{{Name: "X-Added", Value: "2"}},
		Remove: []string{"X-GONE", "X-None"},
	}
	fields := func(h *message.Headers) (out []string) {
		for _, f := range h.Fields() {
			out = append(out, string(f.Name)+": "+string(f.Value))
		}
		return out
	}
	fill := func(h *message.Headers) {
		for _, n := range []string{"x-set", "Keep", "X-Gone", "X-Set", "x-gone"} {
			h.Add(n, "old")
		}
	}
	want := []string{"x-set: new", "Keep: old", "x-added: 1", "X-Added: 2"}
	c := compile(t, &ir.Filter{Order: 1, RequestHeaders: change}, &ir.Filter{Order: 2, ResponseHeaders: change})
	x := exchange("/", "", 0)
	fill(&x.Request.Headers)
	c.Request(x)
	if diff := cmp.Diff(want, fields(&x.Request.Headers)); diff != "" {
		t.Error("request:", diff)
	}
	var r message.Response
	fill(&r.Headers)
	c.Response(&r)
	if diff := cmp.Diff(want, fields(&r.Headers)); diff != "" {
		t.Error("response:", diff)
	}
}

func TestFiltersRunInTheirOrder(t *testing.T) {
	set := func(order int, value string) *ir.Filter {
		return &ir.Filter{Order: order, RequestHeaders: &ir.HeaderChange{Set: []ir.Header{{Name: "X", Value: value}}}}
	}
	x := exchange("/", "", 0)
	compile(t, set(3, "last"), set(1, "first"), set(2, "second")).Request(x)
	if got := string(x.Request.Headers.Get("x")); got != "last" {
		t.Fatalf("X is %q", got)
	}
	if _, err := Compile([]*ir.Filter{set(1, "a"), set(1, "b")}); err == nil {
		t.Error("two filters with one order were taken")
	}
	if _, err := Compile([]*ir.Filter{{}}); !errors.Is(err, ErrUnknown) {
		t.Errorf("an empty filter: %v", err)
	}
}

func TestHeaderChangesDoNotAllocate(t *testing.T) {
	c := compile(t, &ir.Filter{RequestHeaders: &ir.HeaderChange{
		Set: []ir.Header{{Name: "X-Set", Value: "new"}}, Add: []ir.Header{{Name: "X-Added", Value: "2"}}, Remove: []string{"X-Gone"}}})
	x := exchange("/", "", 0)
	allocs := testing.AllocsPerRun(100, func() {
		x.Request.Headers.Reset()
		x.Request.Headers.Add("X-Gone", "a")
		c.Request(x)
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}
