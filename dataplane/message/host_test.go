package message

import (
	"errors"
	"strings"
	"testing"
)

func TestCanonicalHost(t *testing.T) {
	tests := []struct {
		name, authority, want string
	}{
		{"name", "www.example.com", "www.example.com"},
		{"empty", "", ""},
		{"upper case", "WWW.Example.COM", "www.example.com"},
		{"port", "www.example.com:8080", "www.example.com"},
		{"upper case and port", "Www.example.com:80", "www.example.com"},
		{"empty port", "www.example.com:", "www.example.com"},
		{"largest port", "a:65535", "a"},
		{"trailing dot", "www.example.com.", "www.example.com"},
		{"trailing dot and port", "www.example.com.:443", "www.example.com"},
		{"one label", "localhost", "localhost"},
		{"underscore", "my_svc.default", "my_svc.default"},
		{"IPv4", "127.0.0.1:8080", "127.0.0.1"},
		{"IPv6", "[::1]", "[::1]"},
		{"IPv6 and port", "[2001:DB8::1]:8080", "[2001:db8::1]"},
		{"IPv4 in IPv6", "[::ffff:127.0.0.1]", "[::ffff:127.0.0.1]"},
		{"longest", strings.Repeat("abcdefghi.", 25) + "abc", strings.Repeat("abcdefghi.", 25) + "abc"},
		{"longest with a trailing dot", strings.Repeat("abcdefghi.", 25) + "abc.", strings.Repeat("abcdefghi.", 25) + "abc"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dst := append(make([]byte, 0, 300), "kept"...)
			got, err := CanonicalHost(dst, []byte(test.authority))
			if err != nil || string(got) != test.want || string(dst) != "kept" {
				t.Errorf("CanonicalHost(%q) = %q, %v; want %q; dst became %q", test.authority, got, err, test.want, dst)
			}
		})
	}
}

func TestCanonicalHostRefuses(t *testing.T) {
	tests := []struct{ name, authority string }{
		{"port only", ":80"},
		{"dot", "."},
		{"dots", ".."},
		{"two trailing dots", "a.."},
		{"leading dot", ".a"},
		{"empty label", "a..b"},
		{"user information", "user@a"},
		{"password", "user:pw@a"},
		{"wildcard", "*.example.com"},
		{"escape", "%65xample.com"},
		{"space", "a b"},
		{"list", "a, b"},
		{"slash", "a/b"},
		{"backslash", `a\b`},
		{"raw bytes", "ex\xc3\xa4mple.com"},
		{"NUL", "a\x00"},
		{"letters in the port", "a:8x"},
		{"signed port", "a:-1"},
		{"large port", "a:65536"},
		{"long port", "a:000080"},
		{"two ports", "a:80:80"},
		{"IPv6 without brackets", "::1"},
		{"open bracket", "[::1"},
		{"empty brackets", "[]"},
		{"short brackets", "[:]"},
		{"name in brackets", "[example.com]"},
		{"zone", "[fe80::1%eth0]"},
		{"behind the bracket", "[::1]x"},
		{"dot behind the bracket", "[::1]."},
		{"too long", strings.Repeat("abcdefghi.", 25) + "abcd"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := CanonicalHost(nil, []byte(test.authority))
			var refused *RequestError
			if !errors.As(err, &refused) || refused.Origin != Client || refused.Status != 400 || refused.Reason != "bad_host" || got != nil {
				t.Errorf("CanonicalHost(%q) = %q, %v; want bad_host", test.authority, got, err)
			}
		})
	}
}

func TestCanonicalHostAllocations(t *testing.T) {
	canonical, odd := []byte("www.example.com:8080"), []byte("WWW.example.com")
	scratch := make([]byte, 0, 64)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := CanonicalHost(nil, canonical); err != nil {
			t.Error(err)
		}
		if _, err := CanonicalHost(scratch, odd); err != nil {
			t.Error(err)
		}
		if _, err := CanonicalHost(nil, []byte("@")); err == nil {
			t.Error("a bad host passed")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzCanonicalHost(f *testing.F) {
	for _, s := range []string{"", "a", "A.b:80", "[::1]:8", "a.", ".a", "a..b", ":80", "u@a", "[v1.x]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, authority string) {
		got, err := CanonicalHost(nil, []byte(authority))
		if err != nil {
			return
		}
		again, err := CanonicalHost(nil, got)
		if err != nil || string(again) != string(got) {
			t.Errorf("CanonicalHost(%q) = %q, which becomes %q, %v", authority, got, again, err)
		}
		if !strings.HasPrefix(strings.ToLower(authority), string(got)) {
			t.Errorf("CanonicalHost(%q) = %q", authority, got)
		}
		if strings.Contains(string(got), "..") || strings.HasPrefix(string(got), ".") || strings.HasSuffix(string(got), ".") {
			t.Errorf("CanonicalHost(%q) = %q, with an empty label", authority, got)
		}
	})
}

func BenchmarkCanonicalHost(b *testing.B) {
	for _, host := range []string{"api.shop.example.com:8080", "API.shop.example.com"} {
		b.Run(host, func(b *testing.B) {
			b.ReportAllocs()
			scratch, authority := make([]byte, 0, 64), []byte(host)
			for b.Loop() {
				if _, err := CanonicalHost(scratch, authority); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
