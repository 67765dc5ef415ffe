package http2

import (
	"strings"
	"testing"

	xhttp2 "golang.org/x/net/http2"
)

// TestRequests is about RFC 9113, 8: what a request may look like.
func TestRequests(t *testing.T) {
	const ok = "1 head GET a.test /p?q 0"
	long := strings.Repeat("x", 70<<10)
	for _, c := range []struct {
		name   string
		fields []string
		want   string // the event; a reset is of a stream that the owner has not heard of
	}{
		{"plain", basic, ok + " last"},
		{"fields", with("a", "1", "b", "2"), ok + " a=1 b=2 last"},
		{"cookie-crumbs-8.2.3", with("cookie", "a=1", "x", "y", "cookie", "b=2"), ok + " x=y cookie=a=1; b=2 last"},
		{"one-cookie", with("cookie", "a=1"), ok + " cookie=a=1 last"},
		{"te-trailers-8.2.2", with("te", "trailers"), ok + " last"},
		{"host-is-authority", with("host", "A.test"), ok + " last"},
		{"host-alone-8.3.1", without(":authority", "host", "b.test"), "1 head GET b.test /p?q 0 last"},
		{"asterisk", []string{":method", "OPTIONS", ":scheme", "https", ":authority", "a", ":path", "*"}, "1 head OPTIONS a * 0 last"},
		{"expect-without-body", with("expect", "100-continue"), ok + " last"},

		{"upper-case-8.2.1", with("Aa", "1"), "0 reset 1 400 bad_header_name"},
		{"no-token-8.2.1", with("a b", "1"), "0 reset 1 400 bad_header_name"},
		{"empty-name", with("", "1"), "0 reset 1 400 bad_header_name"},
		{"colon-in-name", with("a:b", "1"), "0 reset 1 400 bad_header_name"},
		{"nul-8.2.1", with("a", "1\x002"), "0 reset 1 400 bad_header_value"},
		{"lf-8.2.1", with("a", "1\n2"), "0 reset 1 400 bad_header_value"},
		{"cr-8.2.1", with("a", "1\r\nb: 2"), "0 reset 1 400 bad_header_value"},
		{"leading-space-8.2.1", with("a", " 1"), "0 reset 1 400 bad_header_value"},
		{"trailing-tab-8.2.1", with("a", "1\t"), "0 reset 1 400 bad_header_value"},
		{"connection-8.2.2", with("connection", "close"), "0 reset 1 400 connection_field"},
		{"proxy-connection", with("proxy-connection", "close"), "0 reset 1 400 connection_field"},
		{"keep-alive", with("keep-alive", "5"), "0 reset 1 400 connection_field"},
		{"transfer-encoding", with("transfer-encoding", "chunked"), "0 reset 1 400 connection_field"},
		{"upgrade", with("upgrade", "websocket"), "0 reset 1 400 connection_field"},
		{"te-gzip-8.2.2", with("te", "gzip"), "0 reset 1 400 connection_field"},

		{"unknown-pseudo-8.3", with(":x", "1"), "0 reset 1 400 unknown_pseudo_header"},
		{"status-8.3", with(":status", "200"), "0 reset 1 400 unknown_pseudo_header"},
		{"protocol-rfc8441", with(":protocol", "websocket"), "0 reset 1 400 unknown_pseudo_header"},
		{"late-pseudo-8.3", without(":path", "a", "1", ":path", "/"), "0 reset 1 400 late_pseudo_header"},
		{"duplicate-method-8.3", with(":method", "GET"), "0 reset 1 400 duplicate_pseudo_header"},
		{"duplicate-path-8.3", with(":path", "/"), "0 reset 1 400 duplicate_pseudo_header"},
		{"duplicate-authority-8.3", with(":authority", "b"), "0 reset 1 400 duplicate_pseudo_header"},
		{"no-method-8.3.1", without(":method"), "0 reset 1 400 missing_pseudo_header"},
		{"no-scheme-8.3.1", without(":scheme"), "0 reset 1 400 missing_pseudo_header"},
		{"no-path-8.3.1", without(":path"), "0 reset 1 400 missing_pseudo_header"},
		{"empty-path-8.3.1", without(":path", ":path", ""), "0 reset 1 400 empty_pseudo_header"},
		{"empty-authority", without(":authority", ":authority", ""), "0 reset 1 400 empty_pseudo_header"},
		{"host-differs-8.3.1", with("host", "b.test"), "0 reset 1 400 authority_and_host"},
		{"two-hosts", with("host", "a.test", "host", "a.test"), "0 reset 1 400 duplicate_host"},
		{"length-of-nothing-8.1.1", with("content-length", "5"), "0 reset 1 400 content_length_mismatch"},
		{"bad-length", with("content-length", "5x"), "0 reset 1 400 bad_content_length"},
		{"two-lengths", with("content-length", "0", "content-length", "0"), "0 reset 1 400 duplicate_content_length"},
		{"conflicting-lengths", with("content-length", "0", "content-length", "1"), "0 reset 1 400 conflicting_content_length"},

		// These are understood, and answered as for HTTP/1.1.
		{"no-host", without(":authority"), "1 head GET  /p?q 0 last 400 missing_host"},
		{"bad-authority", without(":authority", ":authority", "a b"), "1 head GET a b /p?q 0 last 400 bad_host"},
		{"userinfo", without(":authority", ":authority", "u@a"), "1 head GET u@a /p?q 0 last 400 bad_host"},
		{"scheme", without(":scheme", ":scheme", "ftp"), "1 head GET a.test /p?q 0 last 400 bad_target_scheme"},
		{"relative-path", without(":path", ":path", "a"), "1 head GET a.test a 0 last 400 bad_target"},
		{"absolute-path", without(":path", ":path", "https://b/"), "1 head GET a.test https://b/ 0 last 400 bad_target"},
		{"fragment", without(":path", ":path", "/a#b"), "1 head GET a.test /a#b 0 last 400 fragment_in_target"},
		{"space-in-path", without(":path", ":path", "/a b"), "1 head GET a.test /a b 0 last 400 bad_target_byte"},
		{"asterisk-get", without(":path", ":path", "*"), "1 head GET a.test * 0 last 400 bad_target"},
		{"long-path", without(":path", ":path", "/"+long[:9000]), "414 request_line_too_long"},
		{"bad-method", []string{":method", "G T", ":scheme", "https", ":authority", "a", ":path", "/"}, "1 head G T a / 0 last 400 bad_method"},
		{"long-method", []string{":method", strings.Repeat("M", 33), ":scheme", "https", ":authority", "a", ":path", "/"}, "501 method_too_long"},
		{"connect-8.5", []string{":method", "CONNECT", ":authority", "a:443"}, "1 head CONNECT a:443 / 0 last 501 connect_not_supported"},
		{"expectation", with("expect", "other"), ok + " last 417 unknown_expectation"},
		{"too-large", with("a", long), ok + " last 431 headers_too_large"},
		{"too-large-path", without(":path", ":path", "/"+long), "431 headers_too_large"},
		{"too-many", with(many(101)...), "431 too_many_headers"},
		{"many", with(many(100)...), "last"},
		{"many-crumbs", with(crumbs(150)...), "last"},
	} {
		t.Run(c.name, func(t *testing.T) {
			log, _ := run(t, func(p *peer) { p.head(1, true, c.fields...) })
			if len(log) != 1 || log[0] != c.want && !(strings.HasSuffix(log[0], c.want) && !strings.HasPrefix(c.want, "1 ")) {
				t.Errorf("got %q, want %q", log, c.want)
			}
		})
	}
}

func many(n int) (out []string) {
	for range n {
		out = append(out, "a", "1")
	}
	return out
}

func crumbs(n int) (out []string) {
	for range n {
		out = append(out, "cookie", "a=1")
	}
	return out
}

// A malformed request, a refused one and trailers that nobody wants are decoded
// all the same: the table stays in step.
func TestTableStaysInStep(t *testing.T) {
	log, _ := run(t, func(p *peer) {
		p.head(1, true, with("Upper", "x", "new-name", "new-value")...)
		p.head(3, true, with("new-name", "new-value")...)
		p.head(5, true, with("new-name", "new-value")...)
	})
	want := []string{"0 reset 1 400 bad_header_name", "3 head GET a.test /p?q 0 new-name=new-value last", "5 head GET a.test /p?q 0 new-name=new-value last"}
	if strings.Join(log, "|") != strings.Join(want, "|") {
		t.Errorf("got %q", log)
	}
}

func TestContinuation(t *testing.T) {
	log, _ := run(t, func(p *peer) {
		b := p.block(with("a", "1", "b", "2")...)
		_ = p.WriteHeaders(xhttp2.HeadersFrameParam{StreamID: 1, BlockFragment: b[:3], EndStream: true})
		_ = p.WriteContinuation(1, false, b[3:4])
		_ = p.WriteContinuation(1, false, nil)
		_ = p.WriteContinuation(1, true, b[4:])
	})
	if len(log) != 1 || log[0] != "1 head GET a.test /p?q 0 a=1 b=2 last" {
		t.Errorf("got %q", log)
	}
}

// TestBodies is about RFC 9113, 6.1 and 8.1.
func TestBodies(t *testing.T) {
	const head = "1 head GET a.test /p?q "
	for _, c := range []struct {
		name  string
		write func(*peer)
		want  []string
	}{
		{"data", func(p *peer) {
			p.head(1, false, basic...)
			_ = p.WriteData(1, false, []byte("ab"))
			_ = p.WriteData(1, true, []byte("cd"))
		}, []string{head + "-1", "1 data abcd last"}},
		{"empty-end", func(p *peer) {
			p.head(1, false, with("content-length", "2")...)
			_ = p.WriteData(1, false, []byte("ab"))
			_ = p.WriteData(1, true, nil)
		}, []string{head + "2", "1 data ab", "1 end"}},
		{"padding", func(p *peer) {
			p.head(1, false, basic...)
			_ = p.WriteDataPadded(1, false, []byte("ab"), make([]byte, 255))
			_ = p.WriteDataPadded(1, true, nil, make([]byte, 3))
		}, []string{head + "-1", "1 data ab", "1 end"}},
		{"padded-last", func(p *peer) {
			p.head(1, false, basic...)
			_ = p.WriteDataPadded(1, true, []byte("ab"), make([]byte, 5))
			p.head(3, true, basic...)
		}, []string{head + "-1", "1 data ab last", "3 head GET a.test /p?q 0 last"}},
		{"padding-only-length-byte", func(p *peer) {
			p.head(1, false, basic...)
			p.raw(frameData, flagPadded|flagEndStream, 1, "\x00")
		}, []string{head + "-1", "1 end"}},
		{"trailers", func(p *peer) {
			p.head(1, false, basic...)
			_ = p.WriteData(1, false, []byte("ab"))
			p.head(1, true, "x-a", "1", "content-length", "5", "authorization", "no", "x-b", "2")
		}, []string{head + "-1", "1 data ab", "1 end x-a=1 x-b=2"}},
		{"trailers-with-pseudo", func(p *peer) {
			p.head(1, false, basic...)
			p.head(1, true, ":path", "/")
		}, []string{head + "-1", "1 reset 1 400 pseudo_header_in_trailers"}},
		{"trailers-unended", func(p *peer) {
			p.head(1, false, basic...)
			p.head(1, false, "a", "1")
		}, []string{head + "-1", "1 reset 1 400 unended_trailers"}},
		{"trailers-upper-case", func(p *peer) {
			p.head(1, false, basic...)
			p.head(1, true, "A", "1")
		}, []string{head + "-1", "1 reset 1 400 bad_header_name"}},
		{"trailers-too-many", func(p *peer) {
			p.head(1, false, basic...)
			p.head(1, true, many(33)...)
		}, []string{head + "-1", "1 reset 11 431 too_many_trailers"}},
		{"trailers-too-large", func(p *peer) {
			p.head(1, false, basic...)
			p.head(1, true, "a", strings.Repeat("x", 9000))
		}, []string{head + "-1", "1 reset 11 431 trailers_too_large"}},
		{"length-exceeded-8.1.1", func(p *peer) {
			p.head(1, false, with("content-length", "1")...)
			_ = p.WriteData(1, false, []byte("ab"))
		}, []string{head + "1", "1 reset 1 400 content_length_mismatch"}},
		{"length-not-reached-8.1.1", func(p *peer) {
			p.head(1, false, with("content-length", "3")...)
			_ = p.WriteData(1, true, []byte("ab"))
		}, []string{head + "3", "1 reset 1 400 content_length_mismatch"}},
		{"length-not-reached-by-trailers", func(p *peer) {
			p.head(1, false, with("content-length", "3")...)
			p.head(1, true, "a", "1")
		}, []string{head + "3", "1 reset 1 400 content_length_mismatch"}},
		{"length-0", func(p *peer) {
			p.head(1, false, with("content-length", "0")...)
			_ = p.WriteData(1, true, nil)
		}, []string{head + "0", "1 end"}},
		{"data-after-end-5.1", func(p *peer) {
			p.head(1, true, basic...)
			_ = p.WriteData(1, true, []byte("ab"))
		}, []string{head + "0 last", "1 reset 5 400 data_after_end"}},
		{"headers-after-end-5.1", func(p *peer) {
			p.head(1, true, basic...)
			p.head(1, true, "a", "1")
		}, []string{head + "0 last", "1 reset 5 400 headers_after_end"}},
		{"after-a-reset-all-is-ignored", func(p *peer) {
			p.head(1, false, with("content-length", "1")...)
			_ = p.WriteData(1, false, []byte("ab"))
			_ = p.WriteData(1, false, []byte("ab"))
			p.head(1, true, "a", "1")
			_ = p.WriteWindowUpdate(1, 5)
			_ = p.WriteRSTStream(1, 0)
			p.head(3, true, with("a", "1")...)
		}, []string{head + "1", "1 reset 1 400 content_length_mismatch", "3 head GET a.test /p?q 0 a=1 last"}},
		{"reset-by-client", func(p *peer) {
			p.head(1, false, basic...)
			_ = p.WriteRSTStream(1, 8)
			p.head(3, true, basic...)
		}, []string{head + "-1", "1 reset 8", "3 head GET a.test /p?q 0 last"}},
		{"priority-deprecated", func(p *peer) {
			_ = p.WriteHeaders(xhttp2.HeadersFrameParam{StreamID: 1, BlockFragment: p.block(basic...), EndStream: true, EndHeaders: true,
				PadLength: 9, Priority: xhttp2.PriorityParam{StreamDep: 1, Weight: 3}})
			_ = p.WritePriority(1, xhttp2.PriorityParam{StreamDep: 7})
			_ = p.WritePriority(99, xhttp2.PriorityParam{StreamDep: 7})
		}, []string{head + "0 last"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			log, _ := run(t, c.write)
			if strings.Join(log, "\n") != strings.Join(c.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(log, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}
