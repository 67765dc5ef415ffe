package message

import (
	"net/url"
	"strings"
	"testing"
)

func TestQueryValue(t *testing.T) {
	tests := []struct {
		name, query, param, want string
		ok                       bool
	}{
		{"one", "v=1", "v", "1", true},
		{"first value counts", "v=1&v=2", "v", "1", true},
		{"another order", "v=2&v=1", "v", "2", true},
		{"behind others", "a=1&b&v=3", "v", "3", true},
		{"escaped value", "v=%31", "v", "1", true},
		{"plus is a space", "v=a+b", "v", "a b", true},
		{"escaped plus", "v=a%2Bb", "v", "a+b", true},
		{"escaped separators", "v=a%26b%3Dc", "v", "a&b=c", true},
		{"escaped name", "%76=1", "v", "1", true},
		{"plus in a name", "a+b=1", "a b", "1", true},
		{"names have a case", "V=1", "v", "", false},
		{"no equals sign", "v", "v", "", true},
		{"nothing behind the equals sign", "v=", "v", "", true},
		{"first value is empty", "v&v=1", "v", "", true},
		{"two equals signs", "v=a=b", "v", "a=b", true},
		{"longer name", "vv=1", "v", "", false},
		{"shorter name", "v=1", "vv", "", false},
		{"empty", "", "v", "", false},
		{"ampersands", "&&v=1&", "v", "1", true},
		{"only ampersands", "&&", "", "", false},
		{"empty name", "=1", "", "1", true},
		{"semicolon does not separate", "a=1;v=2", "v", "", false},
		{"semicolon in a value", "v=1;2", "v", "1;2", true},
		{"percent that is no escape", "v=100%", "v", "100%", true},
		{"bad escape", "v=%zz%31", "v", "%zz1", true},
		{"question mark", "v=?", "v", "?", true},
		{"NUL", "v=%00", "v", "\x00", true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dst := append(make([]byte, 0, 64), "kept"...)
			got, ok := QueryValue(dst, []byte(test.query), test.param)
			if string(got) != test.want || ok != test.ok || string(dst) != "kept" {
				t.Errorf("QueryValue(%q, %q) = %q, %v; want %q, %v; dst became %q", test.query, test.param, got, ok, test.want, test.ok, dst)
			}
		})
	}
}

func TestQueryValueAllocations(t *testing.T) {
	plain, escaped := []byte("a=1&b=2&v=3"), []byte("a=1&%76=%33")
	scratch := make([]byte, 0, 16)
	if n := testing.AllocsPerRun(100, func() {
		if _, ok := QueryValue(nil, plain, "v"); !ok {
			t.Error("v is missing")
		}
		if _, ok := QueryValue(scratch, escaped, "v"); !ok {
			t.Error("v is missing")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzQueryValue takes net/url as the oracle. The two differ in what is not an
// escape, which net/url drops with its pair, and in semicolons, which it
// refuses: such pairs are left out.
func FuzzQueryValue(f *testing.F) {
	f.Add("v=1&v=2&V=3", "v")
	f.Add("%76=%31+2&&=", "v")
	f.Add("v=%zz&v=1", "v")
	f.Fuzz(func(t *testing.T, query, name string) {
		if strings.Contains(query, ";") {
			return
		}
		values, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		got, ok := QueryValue(nil, []byte(query), name)
		if len(got) > len(query) {
			t.Errorf("QueryValue(%q, %q) = %q, longer than the query", query, name, got)
		}
		if ok != values.Has(name) || string(got) != values.Get(name) {
			t.Errorf("QueryValue(%q, %q) = %q, %v; net/url has %q, %v", query, name, got, ok, values.Get(name), values.Has(name))
		}
	})
}
