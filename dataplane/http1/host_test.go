package http1

import (
	"net/netip"
	"strings"
	"testing"
)

func TestValidAuthority(t *testing.T) {
	for host, want := range map[string]bool{
		"a.example":      true,
		"A.EXAMPLE.":     true,
		"a_b-c~d":        true,
		"a!$&'()*+,;=b":  true,
		"%41%c3%a4":      true,
		"127.0.0.1:80":   true,
		"a:":             true,
		"a:0":            true,
		"a:65535":        true,
		"a:0065535":      true,
		"[::1]":          true,
		"[::1]:8080":     true,
		"[::]:":          true,
		"[1:2::3.4.5.6]": true,

		"":                 false,
		":80":              false,
		"a:65536":          false,
		"a:99999999999999": false,
		"a:8x":             false,
		"a:+80":            false,
		"a:80:80":          false,
		"::1":              false,
		"[::1":             false,
		"::1]":             false,
		"[]":               false,
		"[::1]x":           false,
		"[::1]80":          false,
		"[a.example]":      false,
		"[fe80::1%25eth0]": false,
		"[v1.x]":           false,
		"a@b":              false,
		"a/x":              false,
		"a?x":              false,
		"a#x":              false,
		"a b":              false,
		"a\tb":             false,
		"a\\b":             false,
		"a\"b":             false,
		"<a>":              false,
		"a%4":              false,
		"a%4x":             false,
		"a%x4":             false,
		"a%":               false,
		"\xc3\xa4":         false,
		"a\x00":            false,
	} {
		if got := validAuthority([]byte(host)); got != want {
			t.Errorf("%q: %v", host, got)
		}
	}
}

// TestValidIPv6 compares with net/netip over all short strings of an alphabet,
// and over longer ones that are near to addresses.
func TestValidIPv6(t *testing.T) {
	check := func(s string) {
		_, err := netip.ParseAddr(s)
		want := err == nil && strings.Contains(s, ":") && !strings.Contains(s, "%")
		if got := validIPv6([]byte(s)); got != want {
			t.Errorf("%q: %v", s, got)
		}
	}
	var all func(s string, n int)
	all = func(s string, n int) {
		check(s)
		for _, c := range "1f:.g" {
			if n > 0 {
				all(s+string(c), n-1)
			}
		}
	}
	all("", 7)
	for _, head := range []string{"", "1:2:3:4:", "1:2:3:4:5:6:", "::", "1::", "ffff:", "00000:"} {
		for _, tail := range []string{"", "7", "7:8", "7:8:9", "::", ":8", "1.2.3.4", "1.2.3", "1.2.3.4.5", "256.1.1.1", "01.1.1.1", "1.2.3.4:5", "1.2.3.", "1.1.1.1111", "0.0.0.0", "12345", "7::1.2.3.4", "::1.2.3.4"} {
			check(head + tail)
			check(head + "5:6:" + tail)
		}
	}
}
