package accesslog

import (
	"bytes"
	"encoding/json"
	"math"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// full returns an entry that has every field.
func full() *Entry {
	return &Entry{
		RequestID: []byte("4bf92f35"), Client: netip.MustParseAddrPort("192.0.2.7:40312"),
		Method: []byte("GET"), Host: []byte("shop.example:8080"), Path: []byte("/cart/%2F"), Query: []byte("a=1&b="),
		Protocol: "HTTP/1.1", Status: 503, BytesIn: 12, BytesOut: 1 << 40, Duration: 1234567 * time.Nanosecond,
		UserAgent: []byte("curl/8"), Referer: []byte("http://a/"), Listener: "shop/gw/http", Route: "shop/cart",
		Cluster: "shop/cart:80", Upstream: "10.0.0.1:8080", UpstreamDuration: 70 * time.Second,
		Origin: "upstream", Reason: "connect_timeout", TLS: "TLS 1.3", SNI: "shop.example",
	}
}

func TestLine(t *testing.T) {
	const stamp = "2026-01-02T03:04:05.006Z"
	for name, c := range map[string]struct {
		entry *Entry
		want  string
	}{
		"every field": {full(), `{"time":"2026-01-02T03:04:05.006Z","request_id":"4bf92f35","client":"192.0.2.7","client_port":40312,` +
			`"method":"GET","host":"shop.example:8080","path":"/cart/%2F","query":"a=1&b=","protocol":"HTTP/1.1","status":503,` +
			`"bytes_in":12,"bytes_out":1099511627776,"duration_ms":1.234,"listener":"shop/gw/http","route":"shop/cart",` +
			`"cluster":"shop/cart:80","upstream":"10.0.0.1:8080","upstream_ms":70000.000,"origin":"upstream",` +
			`"reason":"connect_timeout","tls":"TLS 1.3","sni":"shop.example","user_agent":"curl/8","referer":"http://a/"}` + "\n"},
		"nothing": {&Entry{}, `{"time":"2026-01-02T03:04:05.006Z","method":"","host":"","path":"","protocol":"","status":0,` +
			`"bytes_in":0,"bytes_out":0,"duration_ms":0.000}` + "\n"},
		"mapped address without a port, time that went back": {
			&Entry{Client: netip.AddrPortFrom(netip.MustParseAddr("::ffff:192.0.2.7"), 0), Duration: -time.Second},
			`{"time":"2026-01-02T03:04:05.006Z","client":"192.0.2.7","method":"","host":"","path":"","protocol":"","status":0,` +
				`"bytes_in":0,"bytes_out":0,"duration_ms":0.000}` + "\n"},
		"zone": {
			&Entry{Client: netip.MustParseAddrPort(`[fe80::1%"x]:1`)},
			`{"time":"2026-01-02T03:04:05.006Z","client":"fe80::1%\"x","client_port":1,"method":"","host":"","path":"","protocol":"","status":0,` +
				`"bytes_in":0,"bytes_out":0,"duration_ms":0.000}` + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got := appendLine(nil, []byte(stamp), c.entry)
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Errorf("line (-want +got):\n%s", diff)
			}
			if !json.Valid(got) {
				t.Error("not JSON")
			}
		})
	}
}

func TestText(t *testing.T) {
	long := strings.Repeat("a", 200)
	for name, c := range map[string]struct{ in, want string }{
		"empty":              {"", `""`},
		"plain":              {"/a b?c", `"/a b?c"`},
		"quote, backslash":   {`a"b\c`, `"a\"b\\c"`},
		"line ends and tab":  {"a\r\n\tb", `"a\r\n\tb"`},
		"forged entry":       {"x\"}\n{\"status\":200", `"x\"}\n{\"status\":200"`},
		"NUL, ESC, DEL":      {"\x00\x1b\x7f", `"\u0000\u001b\u007f"`},
		"UTF-8":              {"grün €", `"grün €"`},
		"C1 control":         {"a\u009bb", `"a\u009bb"`},
		"first after C1":     {"\u00a0", "\"\u00a0\""},
		"line separators":    {"\u2028\u2029", `"\u2028\u2029"`},
		"invalid bytes":      {"a\xff\xfeb", `"a\ufffd\ufffdb"`},
		"half a rune at end": {"a\xe2\x82", `"a\ufffd\ufffd"`},
		"overlong":           {"\xc0\xaf", `"\ufffd\ufffd"`},
		"surrogate":          {"\xed\xa0\x80", `"\ufffd\ufffd\ufffd"`},
		"replacement itself": {"\ufffd", "\"\ufffd\""},
		"at the limit":       {long[:128], `"` + long[:128] + `"`},
		"cut":                {long, `"` + long[:125] + `…"`},
		"cut before a rune":  {long[:124] + "€" + long, `"` + long[:124] + `…"`},
		"cut amid no runes":  {long[:120] + strings.Repeat("\x80", 80), `"` + long[:120] + `\ufffd\ufffd…"`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(appendText(nil, c.in, maxShort)); got != c.want {
				t.Errorf("string: %s, want %s", got, c.want)
			}
			if got := string(appendText(nil, []byte(c.in), maxShort)); got != c.want {
				t.Errorf("bytes: %s, want %s", got, c.want)
			}
		})
	}
}

// encoding/json reads back what was put in, but for invalid bytes.
func FuzzText(f *testing.F) {
	for _, s := range []string{"", "/a?b=c", "\x00\"\\\n\x7f", "\u0085\u2028€\xff\xc0\xaf", strings.Repeat("é", 80)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		line := appendText(nil, in, maxShort)
		for _, c := range line {
			if c < ' ' || c == 0x7f {
				t.Fatalf("control character in %q", line)
			}
		}
		if len(line) > 2+maxShort*escaped {
			t.Fatalf("%d bytes of line from %d bytes of text", len(line), len(in))
		}
		if !utf8.Valid(line) {
			t.Fatalf("%q is not UTF-8", line)
		}
		var got string
		if err := json.Unmarshal(line, &got); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		want := string([]rune(string(in))) // each invalid byte is one U+FFFD
		if len(in) > maxShort {
			text, cut := strings.CutSuffix(got, cutMark)
			if !cut || !strings.HasPrefix(want, text) {
				t.Fatalf("%q was cut to %q", in, got)
			}
			return
		}
		if got != want {
			t.Fatalf("%q became %q", in, got)
		}
	})
}

// No entry is longer than its bound, and no bound is larger than a buffer.
func TestLineBound(t *testing.T) {
	worst := bytes.Repeat([]byte{0xff}, 100_000)
	text := string(worst)
	e := &Entry{
		RequestID: worst, Client: netip.AddrPortFrom(netip.MustParseAddr("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff").WithZone(text), 65535),
		Method: worst, Host: worst, Path: worst, Query: worst, Protocol: text, Status: math.MinInt,
		BytesIn: -1 << 63, BytesOut: -1 << 63, Duration: 1<<63 - 1, UserAgent: worst, Referer: worst, Listener: text, Route: text,
		Cluster: text, Upstream: text, UpstreamDuration: 1<<63 - 1, Origin: text, Reason: text, TLS: text, SNI: text,
	}
	if bound := lineBound(e); bound > minBuffer {
		t.Errorf("bound of %d bytes is larger than the smallest buffer", bound)
	}
	for name, e := range map[string]*Entry{"worst": e, "nothing": {}, "usual": full()} {
		line := appendLine(nil, []byte("2026-01-02T03:04:05.006Z"), e)
		if bound := lineBound(e); len(line) > bound {
			t.Errorf("%s: line of %d bytes is beyond its bound, %d", name, len(line), bound)
		}
	}
}

func TestStamp(t *testing.T) {
	w := newWriter(&Log{}, minBuffer)
	for _, c := range []struct{ now, want string }{
		{"2026-01-02T03:04:05.006Z", "2026-01-02T03:04:05.006Z"},
		{"2026-01-02T03:04:05.123999Z", "2026-01-02T03:04:05.123Z"},
		{"2026-01-02T03:04:06Z", "2026-01-02T03:04:06.000Z"},
		{"2026-01-02T05:04:06.7+02:00", "2026-01-02T03:04:06.700Z"},
		{"1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59.999Z"},
	} {
		now, err := time.Parse(time.RFC3339Nano, c.now)
		if err != nil {
			t.Fatal(err)
		}
		if w.setStamp(now); string(w.stamp) != c.want {
			t.Errorf("%s is written %s", c.now, w.stamp)
		}
	}
}

// Every field is in the documentation.
func TestFieldsAreDocumented(t *testing.T) {
	const document = "../../docs/access-log.md"
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(appendLine(nil, []byte("2026-01-02T03:04:05.006Z"), full()), &fields); err != nil {
		t.Fatal(err)
	}
	for name := range fields {
		if !bytes.Contains(text, []byte("`"+name+"`")) {
			t.Errorf("%s does not have `%s`", document, name)
		}
	}
}
