package message

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestNormalizePath(t *testing.T) {
	tests := []struct {
		name, path, want string
	}{
		{"root", "/", "/"},
		{"plain", "/a/b-c_d~e.f/0", "/a/b-c_d~e.f/0"},
		{"asterisk form", "*", "*"},
		{"sub-delimiters", "/!$&'()*+,;=:@", "/!$&'()*+,;=:@"},
		{"parameter", "/foo;a=1/b", "/foo;a=1/b"},
		{"escaped sub-delimiters are others", "/%24%3b", "/%24%3B"},
		{"unreserved escapes", "/%61%2D%5f%7E%2E%30x", "/a-_~.0x"},
		{"upper case escapes are normal", "/a%2Fb%C3%A9", "/a%2Fb%C3%A9"},
		{"escapes in upper case", "/a%2fb%c3%a9", "/a%2Fb%C3%A9"},
		{"escaped slash stays", "/a%2Fb/c", "/a%2Fb/c"},
		{"escaped slash of a project", "/api/v4/projects/g%2Fp", "/api/v4/projects/g%2Fp"},
		{"escaped percent is not decoded twice", "/%252e%252e/a", "/%252e%252e/a"},
		{"escaped backslash stays", "/a%5cb", "/a%5Cb"},
		{"escaped controls stay", "/a%0a%7f", "/a%0A%7F"},
		{"raw bytes become escapes", "/\xc3\xa9 {x}|\"<>^`[0]", "/%C3%A9%20%7Bx%7D%7C%22%3C%3E%5E%60%5B0%5D"},
		{"dot", "/a/./b", "/a/b"},
		{"dot at the end", "/a/.", "/a/"},
		{"dot dot", "/a/../b", "/b"},
		{"dot dot at the end", "/a/b/..", "/a/"},
		{"dot dot of the first", "/a/..", "/"},
		{"above the root", "/../../a", "/a"},
		{"above the root at the end", "/..", "/"},
		{"only a dot", "/.", "/"},
		{"RFC 3986, 5.2.4", "/a/b/c/./../../g", "/a/g"},
		{"escaped dots", "/public/%2e%2e/admin", "/admin"},
		{"half escaped dots", "/public/.%2E/admin", "/admin"},
		{"escaped dots before an escaped slash", "/public%2F..%2Fadmin", "/public%2F..%2Fadmin"},
		{"dot dot with an escaped slash", "/public/..%2fadmin", "/public/..%2Fadmin"},
		{"escaped letter", "/%61dmin", "/admin"},
		{"slashes are not merged", "//admin", "//admin"},
		{"many slashes", "/a///b//", "/a///b//"},
		{"dot dot takes an empty segment", "/a//../b", "/a/b"},
		{"dot dot takes the last empty segment", "//..", "/"},
		{"dot between slashes", "/.//a", "//a"},
		{"three dots", "/.../a", "/.../a"},
		{"dots in a name", "/..a/.b/c..", "/..a/.b/c.."},
		{"hidden file", "/.well-known/x", "/.well-known/x"},
		{"dot dot with an escaped semicolon", "/..%3Ba/b", "/..%3Ba/b"},
		{"a parameter that only contains dots", "/a;../b", "/a;../b"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := NormalizePath(nil, []byte(test.path))
			if err != nil || string(got) != test.want {
				t.Fatalf("NormalizePath(%q) = %q, %v; want %q", test.path, got, err, test.want)
			}
			again, err := NormalizePath(nil, got)
			if err != nil || &again[0] != &got[0] {
				t.Errorf("NormalizePath(%q) copies a normal path, or fails: %v", got, err)
			}
		})
	}
}

func TestNormalizePathRefuses(t *testing.T) {
	tests := []struct {
		name, path, reason string
	}{
		{"empty", "", "path_not_absolute"},
		{"relative", "a/b", "path_not_absolute"},
		{"more than an asterisk", "*/", "path_not_absolute"},
		{"bad escape", "/a%zz", "path_bad_escape"},
		{"half an escape", "/a%2", "path_bad_escape"},
		{"bare percent", "/100%", "path_bad_escape"},
		{"second digit", "/%2g", "path_bad_escape"},
		{"escaped NUL", "/admin%00", "path_nul"},
		{"NUL", "/admin\x00", "path_nul"},
		{"backslash", `/a\b`, "path_backslash"},
		{"dot dot backslash", `/..\admin`, "path_backslash"},
		{"control", "/a\tb", "path_control_character"},
		{"delete", "/a\x7fb", "path_control_character"},
		{"line feed", "/a\nb", "path_control_character"},
		{"fragment", "/a#b", "path_delimiter"},
		{"question mark", "/a?b", "path_delimiter"},
		{"dot dot parameter", "/public/..;/admin", "path_dot_segment_parameter"},
		{"dot dot parameter at the end", "/public/..;", "path_dot_segment_parameter"},
		{"dot parameter", "/.;x/admin", "path_dot_segment_parameter"},
		{"escaped dots, parameter", "/public/%2e%2e;a=1/admin", "path_dot_segment_parameter"},
		{"half escaped dots, parameter", "/public/.%2E;/admin", "path_dot_segment_parameter"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := NormalizePath(nil, []byte(test.path))
			var refused *RequestError
			if !errors.As(err, &refused) || got != nil {
				t.Fatalf("NormalizePath(%q) = %q, %v; want a RequestError", test.path, got, err)
			}
			if refused.Origin != Client || refused.Status != 400 || refused.Reason != test.reason {
				t.Errorf("NormalizePath(%q) fails with %v; want client: 400 %s", test.path, refused, test.reason)
			}
		})
	}
}

func TestNormalizePathKeepsDst(t *testing.T) {
	dst := append(make([]byte, 0, 64), "kept:/x/"...)
	got, err := NormalizePath(dst, []byte("/../%61"))
	if err != nil || string(got) != "/a" || string(dst) != "kept:/x/" {
		t.Errorf("got %q, %v, and dst became %q", got, err, dst)
	}
	if &got[0] != &dst[:cap(dst)][len(dst)] {
		t.Error("the result is not in the room behind dst")
	}
}

func TestNormalizePathAllocations(t *testing.T) {
	normal := []byte("/api/v1/namespaces/default/pods/a%2Fb")
	odd := []byte("/api/./v1/%61/../x")
	scratch := make([]byte, 0, 64)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := NormalizePath(nil, normal); err != nil {
			t.Error(err)
		}
		if _, err := NormalizePath(scratch, odd); err != nil {
			t.Error(err)
		}
		if _, err := NormalizePath(scratch, []byte("/%")); err == nil {
			t.Error("a bad escape passed")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// naiveNormalize is NormalizePath as the RFC tells it, in as many passes as it
// has steps. It reports only that a path is refused.
func naiveNormalize(path string) (string, bool) {
	if path == "*" {
		return path, true
	}
	if !strings.HasPrefix(path, "/") {
		return "", false
	}
	const hex = "0123456789ABCDEF"
	const unreserved = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
	const pchar = unreserved + "!$&'()*+,;=:@"
	var decoded strings.Builder
	for i := 0; i < len(path); i++ {
		c := path[i]
		switch {
		case c == '%':
			if i+3 > len(path) {
				return "", false
			}
			high := strings.IndexByte(hex, strings.ToUpper(path[i+1 : i+2])[0])
			low := strings.IndexByte(hex, strings.ToUpper(path[i+2 : i+3])[0])
			if high < 0 || low < 0 || high+low == 0 {
				return "", false
			}
			if c = byte(high<<4 | low); strings.IndexByte(unreserved, c) >= 0 {
				decoded.WriteByte(c)
			} else {
				decoded.WriteString(strings.ToUpper(path[i : i+3]))
			}
			i += 2
		case c < ' ' || c == 0x7f || c == '\\' || c == '?' || c == '#':
			return "", false
		case c != '/' && strings.IndexByte(pchar, c) < 0:
			decoded.Write([]byte{'%', hex[c>>4], hex[c&15]})
		default:
			decoded.WriteByte(c)
		}
	}
	for segment := range strings.SplitSeq(decoded.String(), "/") {
		if strings.HasPrefix(segment, ".;") || strings.HasPrefix(segment, "..;") {
			return "", false
		}
	}
	// RFC 3986, 5.2.4, word by word.
	in, out := decoded.String(), ""
	for in != "" {
		switch {
		case strings.HasPrefix(in, "/./"):
			in = in[2:]
		case in == "/.":
			in = "/"
		case strings.HasPrefix(in, "/../"), in == "/..":
			in = "/" + strings.TrimPrefix(in[3:], "/")
			out = out[:max(strings.LastIndexByte(out, '/'), 0)]
		default:
			end := strings.IndexByte(in[1:], '/') + 1
			if end == 0 {
				end = len(in)
			}
			out += in[:end]
			in = in[end:]
		}
	}
	return out, true
}

// checkNormalize compares NormalizePath with the naive twin and checks what is
// promised of every result.
func checkNormalize(t *testing.T, path string) {
	t.Helper()
	got, err := NormalizePath(make([]byte, 3, 8), []byte(path))
	want, ok := naiveNormalize(path)
	if (err == nil) != ok || string(got) != want {
		t.Fatalf("NormalizePath(%q) = %q, %v; want %q, %v", path, got, err, want, ok)
	}
	if err != nil {
		var refused *RequestError
		if !errors.As(err, &refused) || refused.Status != 400 || refused.Origin != Client {
			t.Fatalf("NormalizePath(%q) fails with %v", path, err)
		}
		return
	}
	again, err := NormalizePath(nil, got)
	if err != nil || string(again) != string(got) {
		t.Fatalf("NormalizePath(%q) = %q, which becomes %q, %v", path, got, again, err)
	}
	if len(got) > 3*len(path) {
		t.Fatalf("NormalizePath(%q) is %d bytes long", path, len(got))
	}
	for segment := range strings.SplitSeq(string(got), "/") {
		if segment == "." || segment == ".." {
			t.Fatalf("NormalizePath(%q) = %q, with a dot segment", path, got)
		}
	}
}

func TestNormalizePathIsTheRFCs(t *testing.T) {
	parts := []string{"/", "/", ".", "..", "%2e", "%2E", "a", "%61", "%2f", "%2F", ";", "%3b", "%", "%zz", "\x00", "%00", `\`, "\xff", " ", "?", "#", "é"}
	random := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		var path strings.Builder
		path.WriteByte('/')
		last := len(parts)
		if random.IntN(3) > 0 {
			last = 12 // what is accepted
		}
		for range random.IntN(12) {
			path.WriteString(parts[random.IntN(last)])
		}
		checkNormalize(t, path.String())
	}
}

func FuzzNormalizePath(f *testing.F) {
	for _, path := range []string{"/", "*", "", "/a/./b/../%2e%2e/%61%2fx", "/..;/a", "/%00", "//a\\b", "/\xff{}", "/.%2e/..", "/a?b#c"} {
		f.Add(path)
	}
	f.Fuzz(checkNormalize)
}

func BenchmarkNormalizePath(b *testing.B) {
	for _, bench := range []struct{ name, path string }{
		{"normal", "/api/v1/namespaces/default/pods/web-7d4b9"},
		{"escape", "/api/v1/namespaces/default/%70ods/web-7d4b9"},
		{"dots", "/api/v1/./namespaces/../default/pods/web-7d4b9"},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			scratch := make([]byte, 0, 128)
			path := []byte(bench.path)
			for b.Loop() {
				if _, err := NormalizePath(scratch, path); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
