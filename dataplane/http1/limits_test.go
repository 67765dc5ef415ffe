package http1

import (
	"strings"
	"testing"

	"github.com/headgate/headgate/dataplane/message"
)

// TestRequestLimits has inputs that are just within a limit and just above it.
func TestRequestLimits(t *testing.T) {
	small := &Limits{RequestLine: 20, HeaderBytes: 40, HeaderCount: 3, ChunkLine: 6, TrailerBytes: 16, TrailerCount: 2}
	const head = "GET /123456 HTTP/1.1\r\n" // 20 bytes
	const chunks = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:chunked\r\n\r\n"
	get := transcript{"GET /123456 1.1 host=a", "end"}
	post := transcript{"POST / 1.1 host=a chunked"}
	for _, tt := range []struct {
		name string
		l    *Limits
		in   string
		want transcript
	}{
		{"line fits", small, head + "Host: a\r\n\r\n", get},
		{"line does not fit", small, "GET /1234567 HTTP/1.1\r\nHost: a\r\n\r\n", transcript{"414 request_line_too_long"}},
		{"line without an end", small, "GET /" + strings.Repeat("a", 16), transcript{"414 request_line_too_long"}},
		{"line that may have its end", small, "GET /123456 HTTP/1.1\r", nil},
		{"long and bad line", small, "GET /123456789 HTTP/9\n\r\n", transcript{"414 request_line_too_long"}},
		{"bad line that fits", small, "GET /12345678 HTTP/9\n\r\n", transcript{"400 bare_lf"}},
		{"bytes fit", small, head + "Host: a\r\n" + "A: " + strings.Repeat("b", 26) + "\r\n\r\n",
			transcript{"GET /123456 1.1 host=a [A: " + strings.Repeat("b", 26) + "]", "end"}},
		{"bytes do not fit", small, head + "Host: a\r\n" + "A: " + strings.Repeat("b", 27) + "\r\n\r\n", transcript{"431 headers_too_large"}},
		{"bytes without an end", small, head + "Host: a\r\n" + strings.Repeat("b", 32), transcript{"431 headers_too_large"}},
		{"bytes that may have their end", small, head + "Host: a\r\n" + strings.Repeat("b", 31) + "\r", nil},
		{"too many bytes behind a bad field", small, head + "Host a\r\n" + strings.Repeat("b", 40) + "\r\n\r\n", transcript{"400 bad_header_name"}},
		{"bad field behind too many bytes", small, head + strings.Repeat("b", 40) + "\r\nHost a\r\n\r\n", transcript{"431 headers_too_large"}},
		{"fields fit", small, head + "Host: a\r\nb:\r\nc:\r\n\r\n", transcript{"GET /123456 1.1 host=a [b: ] [c: ]", "end"}},
		{"fields do not fit", small, head + "Host: a\r\nb:\r\nc:\r\nd:\r\n\r\n", transcript{"431 too_many_headers"}},
		{"fields do not fit and are bad", small, head + "Host: a\r\nb:\r\nc:\r\nd\r\n\r\n", transcript{"431 too_many_headers"}},
		{"chunk line fits", small, chunks + "0;1234\r\n\r\n", append(post, "end")},
		{"chunk line does not fit", small, chunks + "0;12345\r\n\r\n", append(post, "400 chunk_line_too_long")},
		{"chunk line without an end", small, chunks + "1;12345", append(post, "400 chunk_line_too_long")},
		{"trailer bytes fit", small, chunks + "0\r\na: 1\r\nbcd: 345\r\n\r\n", append(post, "end [a: 1] [bcd: 345]")},
		{"trailer bytes do not fit", small, chunks + "0\r\na: 1\r\nbcdef: 34567\r\n\r\n", append(post, "431 trailers_too_large")},
		{"trailer bytes without an end", small, chunks + "0\r\n" + strings.Repeat("a", 17), append(post, "431 trailers_too_large")},
		{"trailer fields do not fit", small, chunks + "0\r\na:\r\nb:\r\nc:\r\n\r\n", append(post, "431 too_many_trailers")},

		{"default line", nil, "GET /" + strings.Repeat("a", 8<<10-14) + " HTTP/1.1\r\nHost: a\r\n\r\n",
			transcript{"GET /" + strings.Repeat("a", 8<<10-14) + " 1.1 host=a", "end"}},
		{"default line, one more", nil, "GET /" + strings.Repeat("a", 8<<10-13) + " HTTP/1.1\r\nHost: a\r\n\r\n", transcript{"414 request_line_too_long"}},
		{"default bytes, one more", nil, head + "Host: a\r\nb: " + strings.Repeat("c", 64<<10-13) + "\r\n\r\n", transcript{"431 headers_too_large"}},
		{"default fields", nil, head + "Host: a\r\n" + strings.Repeat("b:\r\n", 99) + "\r\n",
			transcript{"GET /123456 1.1 host=a" + strings.Repeat(" [b: ]", 99), "end"}},
		{"default fields, one more", nil, head + "Host: a\r\n" + strings.Repeat("b:\r\n", 100) + "\r\n", transcript{"431 too_many_headers"}},
		{"default trailer fields, one more", nil, chunks + "0\r\n" + strings.Repeat("b:\r\n", 33) + "\r\n", append(post, "431 too_many_trailers")},
		{"default trailer bytes, one more", nil, chunks + "0\r\nb:" + strings.Repeat("c", 8<<10-1) + "\r\n\r\n", append(post, "431 trailers_too_large")},
		{"default chunk line, one more", nil, chunks + "0;" + strings.Repeat("c", 4<<10-1) + "\r\n\r\n", append(post, "400 chunk_line_too_long")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			checkSplits(t, tt.in, tt.want, func(p ...[]byte) (transcript, []byte) { return requestTranscript(tt.l, p...) })
		})
	}
}

// TestEarlyFaults has inputs whose fault must be told although they stop before
// their head is complete.
func TestEarlyFaults(t *testing.T) {
	for in, want := range map[string]string{
		"\x16":                                  "400 bad_method",
		"GET / HTTP/3.0\r\n":                    "505 unsupported_version",
		"PRI * HTTP/2.0\r\n":                    "505 http2_preface",
		"GET / HTTP/1.1\r\nHost a\r\n":          "400 bad_header_name",
		"GET / HTTP/1.1\r\nA: b\r\n c\r\n":      "400 obs_fold",
		"GET / HTTP/1.1\r\n" + longFields(101):  "431 too_many_headers",
		"GET / HTTP/1.1\r\na: " + longText(1e5): "431 headers_too_large",
		"GET /" + longText(9000):                "414 request_line_too_long",
	} {
		got, _ := requestTranscript(nil, []byte(in))
		if len(got) != 1 || got[0] != want {
			t.Errorf("%.40q: got %q, want %s", in, got, want)
		}
	}
	for in, want := range map[string]string{
		"HTTP/2.0 200 OK\r\n":                    "502 bad_response_version",
		"HTTP/1.1 200 OK\r\nA b\r\n":             "502 bad_header_name",
		"HTTP/1.1 200 OK\r\n A: b\r\n":           "502 obs_fold",
		"HTTP/1.1 200 OK\r\n" + longFields(101):  "502 too_many_headers",
		"HTTP/1.1 200 OK\r\na: " + longText(1e5): "502 headers_too_large",
		"HTTP/1.1 200 " + longText(9000):         "502 status_line_too_long",
	} {
		got, _ := responseTranscript(nil, nil, false, []byte(in))
		if len(got) != 1 || got[0] != want {
			t.Errorf("%.40q: got %q, want %s", in, got, want)
		}
	}
}

func longText(n int) string   { return strings.Repeat("x", n) }
func longFields(n int) string { return strings.Repeat("a:\r\n", n) }

// TestScanIsLinear feeds a head byte by byte and counts how often bytes are
// searched: the scan's place must move with the input.
func TestScanIsLinear(t *testing.T) {
	var p RequestParser
	var req message.Request
	p.Reset(nil)
	in := []byte("GET / HTTP/1.1\r\nHost: a\r\nX-A: " + longText(1000) + "\r\n")
	for i := 1; i <= len(in); i++ {
		if n, ev, _, err := p.Next(&req, in[:i]); n != 0 || ev != None || err != nil {
			t.Fatalf("after %d bytes: %d, %v, %v", i, n, ev, err)
		}
		if p.scan.seen < i-1 || p.scan.checked != p.scan.line {
			t.Fatalf("after %d bytes: searched %d, checked %d of the lines up to %d", i, p.scan.seen, p.scan.checked, p.scan.line)
		}
	}
	chunk := []byte("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
	p.Reset(nil)
	if n, _, _, err := p.Next(&req, chunk); n != len(chunk) || err != nil {
		t.Fatal(err)
	}
	line := []byte("1;" + longText(1000))
	for i := 1; i <= len(line); i++ {
		if n, ev, _, err := p.Next(&req, line[:i]); n != 0 || ev != None || err != nil || p.chunks.seen != i {
			t.Fatalf("after %d bytes of a chunk line: searched %d, %v, %v", i, p.chunks.seen, ev, err)
		}
	}
}

// TestParserForgetsLargeTrailers checks that one request with long trailers does
// not make its connection expensive for good.
func TestParserForgetsLargeTrailers(t *testing.T) {
	var p RequestParser
	var req message.Request
	p.Reset(nil)
	const head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
	if err := parseRequest(&p, &req, []byte(head+"0\r\na: "+longText(8000)+"\r\n\r\n")); err != nil || p.Trailers().Len() != 1 {
		t.Fatalf("%d trailers, %v", p.Trailers().Len(), err)
	}
	if err := parseRequest(&p, &req, []byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	if n := p.Trailers().Retained(); n > keepTrailers {
		t.Errorf("%d bytes are kept", n)
	}
}
