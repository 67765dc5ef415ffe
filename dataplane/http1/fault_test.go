package http1

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// A faultCase is input that a parser refuses, and what it says.
type faultCase struct {
	name string
	in   string
	want string
}

func requestFaults() []faultCase {
	const ok = "GET / HTTP/1.1\r\nHost: a\r\n"
	const post = "POST / HTTP/1.1\r\nHost: a\r\n"
	const chunks = post + "Transfer-Encoding: chunked\r\n\r\n"
	return []faultCase{
		{"B07 leading space", " Host: a\r\nGET / HTTP/1.1\r\n\r\n", "400 bad_method"},
		{"TLS hello", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "400 bad_method"},
		{"bare LF before the request", "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "400 bare_lf"},
		{"bare CR before the request", "\r\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "400 bare_cr"},
		{"five empty lines", "\r\n\r\n\r\n\r\n\r\n" + ok + "\r\n", "400 too_many_empty_lines"},
		{"method is no token", "GE(T / HTTP/1.1\r\nHost: a\r\n\r\n", "400 bad_method"},
		{"method and tab", "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", "400 bad_method"},
		{"long method", strings.Repeat("M", 33) + " / HTTP/1.1\r\nHost: a\r\n\r\n", "501 method_too_long"},
		{"HTTP/0.9", "GET /\r\n\r\n", "400 bad_request_line"},
		{"only a method", "GET\r\n\r\n", "400 bad_request_line"},
		{"no target", "GET  HTTP/1.1\r\nHost: a\r\n\r\n", "400 bad_request_line"},
		{"two spaces before the target", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n", "400 bad_target"},
		{"two spaces before the version", "GET /  HTTP/1.1\r\nHost: a\r\n\r\n", "400 bad_target_byte"},
		{"space in the target", "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", "400 bad_target_byte"},
		{"space behind the version", "GET / HTTP/1.1 \r\nHost: a\r\n\r\n", "400 bad_version"},
		{"version in lower case", "GET / http/1.1\r\nHost: a\r\n\r\n", "400 bad_version"},
		{"version with two digits", "GET / HTTP/1.10\r\nHost: a\r\n\r\n", "400 bad_version"},
		{"version without minor", "GET / HTTP/1\r\nHost: a\r\n\r\n", "400 bad_version"},
		{"version with letters", "GET / HTTP/x.1\r\nHost: a\r\n\r\n", "400 bad_version"},
		{"version 2", "GET / HTTP/2.0\r\nHost: a\r\n\r\n", "505 unsupported_version"},
		{"version 0.9", "GET / HTTP/0.9\r\nHost: a\r\n\r\n", "505 unsupported_version"},
		{"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505 http2_preface"},
		{"bare LF behind the request line", "GET / HTTP/1.1\nHost: a\r\n\r\n", "400 bare_lf"},
		{"bare CR in the request line", "GET /\r HTTP/1.1\r\nHost: a\r\n\r\n", "400 bare_cr"},
		{"NUL in the request line", "GET /\x00 HTTP/1.1\r\nHost: a\r\n\r\n", "400 nul_byte"},
		{"control in the target", "GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n", "400 bad_target_byte"},
		{"DEL in the query", "GET /?\x7f HTTP/1.1\r\nHost: a\r\n\r\n", "400 bad_target_byte"},
		{"tab in the target", "GET /\t HTTP/1.1\r\nHost: a\r\n\r\n", "400 bad_target_byte"},
		{"fragment", "GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n", "400 fragment_in_target"},
		{"fragment in the query", "GET /a?b#c HTTP/1.1\r\nHost: a\r\n\r\n", "400 fragment_in_target"},
		{"fragment behind an authority", "GET http://a#c HTTP/1.1\r\nHost: a\r\n\r\n", "400 fragment_in_target"},
		{"relative target", "GET a HTTP/1.1\r\nHost: a\r\n\r\n", "400 bad_target"},
		{"asterisk with GET", "GET * HTTP/1.1\r\nHost: a\r\n\r\n", "400 bad_target"},
		{"asterisk with more", "OPTIONS *a HTTP/1.1\r\nHost: a\r\n\r\n", "400 bad_target"},
		{"authority form", "GET a:80 HTTP/1.1\r\nHost: a\r\n\r\n", "400 bad_target"},
		{"connect", "CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n", "501 connect_not_supported"},
		{"B08 other scheme", "GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n", "400 bad_target_scheme"},
		{"B08 userinfo", "GET http://a@b.example/ HTTP/1.1\r\nHost: a\r\n\r\n", "400 userinfo_in_target"},
		{"B08 no authority", "GET http:///p HTTP/1.1\r\nHost: a\r\n\r\n", "400 bad_target_authority"},
		{"B08 bad authority", "GET http://a:b/p HTTP/1.1\r\nHost: a\r\n\r\n", "400 bad_target_authority"},
		{"B08 bad host beside it", "GET http://b/p HTTP/1.1\r\nHost: a b\r\n\r\n", "400 bad_host"},
		{"B08 no host beside it", "GET http://b/p HTTP/1.1\r\n\r\n", "400 missing_host"},

		{"B09 no host", "GET / HTTP/1.1\r\n\r\n", "400 missing_host"},
		{"B09 two equal hosts", ok + "Host: a\r\n\r\n", "400 duplicate_host"},
		{"B09 two hosts in 1.0", "GET / HTTP/1.0\r\nHost: a\r\nhost: b\r\n\r\n", "400 duplicate_host"},
		{"B09 host with a path", "GET / HTTP/1.1\r\nHost: a.example/x\r\n\r\n", "400 bad_host"},
		{"B09 host with a space", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", "400 bad_host"},
		{"B09 bad host in 1.0", "GET / HTTP/1.0\r\nHost: a@b\r\n\r\n", "400 bad_host"},

		{"B07 space before the colon", post + "Content-Length : 5\r\n\r\nhello", "400 space_before_colon"},
		{"B07 tab before the colon", post + "Content-Length\t: 5\r\n\r\nhello", "400 space_before_colon"},
		{"B07 obs-fold", ok + "X-A: 1\r\n 2\r\n\r\n", "400 obs_fold"},
		{"B07 obs-fold with tab", ok + "X-A: 1\r\n\t2\r\n\r\n", "400 obs_fold"},
		{"B07 space before the first field", "GET / HTTP/1.1\r\n Host: a\r\n\r\n", "400 obs_fold"},
		{"B07 line of spaces", ok + "  \r\n\r\n", "400 obs_fold"},
		{"B07 bare CR", ok + "X-A: 1\rX-B: 2\r\n\r\n", "400 bare_cr"},
		{"B07 bare CR before CRLF", ok + "X-A: 1\r\r\n\r\n", "400 bare_cr"},
		{"B07 bare CR in a name", ok + "X-A\rX-B: 2\r\n\r\n", "400 bare_cr"},
		{"B07 bare CR at a line's start", ok + "\rX-B: 2\r\n\r\n", "400 bare_cr"},
		{"B07 bare LF", "GET / HTTP/1.1\r\nHost: a\nX: 1\n\n", "400 bare_lf"},
		{"B07 bare LF ends the head", ok + "\n", "400 bare_lf"},
		{"B07 bare LF in a name", ok + "X-A\nX-B: 1\r\n\r\n", "400 bare_lf"},
		{"B07 NUL", ok + "X-A: a\x00b\r\n\r\n", "400 nul_byte"},
		{"B07 NUL in a name", ok + "X\x00A: a\r\n\r\n", "400 nul_byte"},
		{"control in a value", ok + "X-A: a\x1bb\r\n\r\n", "400 bad_header_value"},
		{"DEL in a value", ok + "X-A: aaaaaaaaaaaaaaa\x7fb\r\n\r\n", "400 bad_header_value"},
		{"no colon", ok + "X-A\r\n\r\n", "400 missing_colon"},
		{"no colon but a space", ok + "X-A b\r\n\r\n", "400 bad_header_name"},
		{"no name", ok + ": b\r\n\r\n", "400 bad_header_name"},
		{"name with a quote", ok + "X\"A: b\r\n\r\n", "400 bad_header_name"},
		{"name that is not ASCII", ok + "X-\xe2\x84\xaa: b\r\n\r\n", "400 bad_header_name"},
		{"the first fault in the text counts", ok + "Content-Length: x\r\nX Y: 1\r\n\r\n", "400 bad_header_name"},

		{"B04 differing lengths", post + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", "400 conflicting_content_length"},
		{"B04 equal lengths", post + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", "400 duplicate_content_length"},
		{"B04 list of lengths", post + "Content-Length: 5, 5\r\n\r\nhello", "400 bad_content_length"},
		{"B04 inner blank", post + "Content-Length: 1 2\r\n\r\nhello", "400 bad_content_length"},
		{"B04 plus", post + "Content-Length: +5\r\n\r\nhello", "400 bad_content_length"},
		{"B04 minus", post + "Content-Length: -5\r\n\r\nhello", "400 bad_content_length"},
		{"B04 hex", post + "Content-Length: 0x5\r\n\r\nhello", "400 bad_content_length"},
		{"B04 empty", post + "Content-Length:\r\n\r\nhello", "400 bad_content_length"},
		{"B04 twenty digits", post + "Content-Length: 18446744073709551621\r\n\r\nhello", "400 content_length_overflow"},
		{"B04 one too much", post + "Content-Length: 9223372036854775808\r\n\r\nhello", "400 content_length_overflow"},
		{"B04 too large and wrong", post + "Content-Length: 99999999999999999999x\r\n\r\nhello", "400 bad_content_length"},

		{"B01 length and transfer encoding", post + "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n1c\r\nGET /x HTTP/1.1\r\nHost: b\r\n\r\n\r\n0\r\n\r\n", "400 length_and_transfer_encoding"},
		{"B01 transfer encoding and length", post + "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n1c\r\nGET /x HTTP/1.1\r\nHost: b\r\n\r\n\r\n0\r\n\r\n", "400 length_and_transfer_encoding"},
		{"B01 length 50 and transfer encoding", post + "Content-Length: 50\r\nTransfer-Encoding: chunked\r\n\r\n1c\r\nGET /x HTTP/1.1\r\nHost: b\r\n\r\n\r\n0\r\n\r\n", "400 length_and_transfer_encoding"},
		{"B02 chunked and nothing", post + "Transfer-Encoding: chunked,\r\n\r\n0\r\n\r\n", "400 chunked_not_final"},
		{"B02 nothing and chunked", post + "Transfer-Encoding: ,chunked\r\n\r\n0\r\n\r\n", "400 bad_transfer_encoding"},
		{"B02 empty", post + "Transfer-Encoding:\r\n\r\n0\r\n\r\n", "400 bad_transfer_encoding"},
		{"B02 chunked, gzip", post + "Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n", "400 chunked_not_final"},
		{"B02 gzip", post + "Transfer-Encoding: gzip\r\n\r\n0\r\n\r\n", "400 chunked_not_final"},
		{"B02 gzip, chunked", post + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "501 unsupported_transfer_coding"},
		{"B02 gzip;q=1, chunked", post + "Transfer-Encoding: gzip;q=1, chunked\r\n\r\n0\r\n\r\n", "501 unsupported_transfer_coding"},
		{"B02 identity", post + "Transfer-Encoding: identity\r\n\r\n0\r\n\r\n", "400 chunked_not_final"},
		{"B02 identity, chunked", post + "Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n", "501 unsupported_transfer_coding"},
		{"B02 xchunked", post + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", "400 chunked_not_final"},
		{"B02 chunked with a parameter", post + "Transfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n", "400 chunked_not_final"},
		{"B02 quoted", post + "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n", "400 bad_transfer_encoding"},
		{"B02 vertical tab", post + "Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n", "400 bad_header_value"},
		{"B02 twice in a line", post + "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", "400 bad_transfer_encoding"},
		{"B02 twice in two lines", post + "Transfer-Encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", "400 bad_transfer_encoding"},
		{"B02 two lines", post + "Transfer-Encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", "501 unsupported_transfer_coding"},
		{"B02 two lines, chunked first", post + "Transfer-Encoding: chunked\r\ntransfer-encoding: identity\r\n\r\n0\r\n\r\n", "400 chunked_not_final"},
		{"B02 chunked, gzip with a length", post + "Content-Length: 5\r\nTransfer-Encoding: chunked, gzip\r\n\r\nhello", "400 chunked_not_final"},
		{"B02 identity with a length", post + "Transfer-Encoding: identity\r\nContent-Length: 5\r\n\r\nhello", "400 length_and_transfer_encoding"},
		{"B02 in HTTP/1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400 transfer_encoding_in_http10"},
		{"B02 nothing in HTTP/1.0", "POST / HTTP/1.0\r\nTransfer-Encoding:\r\n\r\n", "400 transfer_encoding_in_http10"},

		{"expectation", post + "Expect: 200-ok\r\nContent-Length: 1\r\n\r\nx", "417 unknown_expectation"},
		{"empty expectation", post + "Expect:\r\n\r\n", "417 unknown_expectation"},
		{"expectation beside another", post + "Expect: 100-continue, more\r\n\r\n", "417 unknown_expectation"},
		{"connection lines", ok + strings.Repeat("Connection: a\r\n", 9) + "\r\n", "400 too_many_connection_options"},
		{"connection options", ok + "Connection: " + strings.Repeat(",", 64) + "\r\n\r\n", "400 too_many_connection_options"},

		{"B05 bare LF", chunks + "5\nhello\r\n0\r\n\r\n", "400 bare_lf"},
		{"B05 bare LF in an extension", chunks + "5;a\nb\r\nhello\r\n0\r\n\r\n", "400 bare_lf"},
		{"B05 bare CR in an extension", chunks + "5;a\rb\r\nhello\r\n0\r\n\r\n", "400 bare_cr"},
		{"B05 bare CR instead of a size", chunks + "\r5\r\nhello\r\n0\r\n\r\n", "400 bare_cr"},
		{"B05 NUL in an extension", chunks + "5;a=\x00\r\nhello\r\n0\r\n\r\n", "400 nul_byte"},
		{"B05 control in an extension", chunks + "5;a=\x01\r\nhello\r\n0\r\n\r\n", "400 bad_chunk_extension"},
		{"B05 64 KB of extension", chunks + "5;" + strings.Repeat("x", 64<<10) + "\r\nhello\r\n0\r\n\r\n", "400 chunk_line_too_long"},
		{"B05 overflow", chunks + "FFFFFFFFFFFFFFFF1\r\nhello\r\n0\r\n\r\n", "400 chunk_size_overflow"},
		{"B05 overflow of the sign", chunks + "8000000000000000\r\nhello\r\n0\r\n\r\n", "400 chunk_size_overflow"},
		{"B05 minus", chunks + "-1\r\nhello\r\n0\r\n\r\n", "400 bad_chunk_size"},
		{"B05 plus", chunks + "+5\r\nhello\r\n0\r\n\r\n", "400 bad_chunk_size"},
		{"B05 0x", chunks + "0x5\r\nhello\r\n0\r\n\r\n", "400 bad_chunk_size"},
		{"B05 control", chunks + "\x015\r\nhello\r\n0\r\n\r\n", "400 bad_chunk_size"},
		{"B05 underscore", chunks + "1_0\r\nhello\r\n0\r\n\r\n", "400 bad_chunk_size"},
		{"B05 empty", chunks + "\r\nhello\r\n0\r\n\r\n", "400 bad_chunk_size"},
		{"B05 extension without a size", chunks + ";a\r\nhello\r\n0\r\n\r\n", "400 bad_chunk_size"},
		{"B05 space before the size", chunks + " 5\r\nhello\r\n0\r\n\r\n", "400 bad_chunk_size"},
		{"B05 space behind the size", chunks + "5 \r\nhello\r\n0\r\n\r\n", "400 bad_chunk_size"},
		{"B05 word behind the size", chunks + "5 a\r\nhello\r\n0\r\n\r\n", "400 bad_chunk_size"},
		{"trailer without a colon", chunks + "0\r\nX-A\r\n\r\n", "400 missing_colon"},
		{"trailer with obs-fold", chunks + "0\r\nX-A: 1\r\n 2\r\n\r\n", "400 obs_fold"},
		{"trailer with a space before the colon", chunks + "0\r\nX-A : 1\r\n\r\n", "400 space_before_colon"},
		{"trailer with bare LF", chunks + "0\r\nX-A: 1\n\r\n", "400 bare_lf"},
		{"trailers end with bare LF", chunks + "0\r\n\n", "400 bare_lf"},
		{"a trailer that is dropped is checked", chunks + "0\r\nHost: \x01\r\n\r\n", "400 bad_header_value"},
	}
}

func TestRequestFaults(t *testing.T) {
	for _, tt := range requestFaults() {
		t.Run(tt.name, func(t *testing.T) {
			want := transcript{tt.want}
			if strings.Contains(tt.in, "Transfer-Encoding: chunked\r\n\r\n") && !strings.Contains(tt.want, "transfer") {
				want = transcript{"POST / 1.1 host=a chunked", tt.want}
			}
			checkSplits(t, tt.in, want, func(p ...[]byte) (transcript, []byte) { return requestTranscript(nil, p...) })
		})
	}
}

// TestRequestFaultsInData has the faults that come behind a piece of the body.
func TestRequestFaultsInData(t *testing.T) {
	const chunks = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
	for _, tt := range []faultCase{
		{"B05 no CRLF behind the data", chunks + "5\r\nhelloXX0\r\n\r\n", "400 bad_chunk_end"},
		{"B05 LF behind the data", chunks + "5\r\nhello\n0\r\n\r\n", "400 bad_chunk_end"},
		{"B05 CR behind the data", chunks + "5\r\nhello\rX0\r\n\r\n", "400 bad_chunk_end"},
		{"B05 bad second chunk", chunks + "5\r\nhello\r\nx\r\n", "400 bad_chunk_size"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := transcript{"POST / 1.1 host=a chunked", "data hello", tt.want}
			checkSplits(t, tt.in, want, func(p ...[]byte) (transcript, []byte) { return requestTranscript(nil, p...) })
		})
	}
}

// TestFaultsAreKnown checks that every reason in fault.go is in the tables of
// DESIGN.md with its status, and that no two faults have one reason.
func TestFaultsAreKnown(t *testing.T) {
	source, err := os.ReadFile("fault.go")
	if err != nil {
		t.Fatal(err)
	}
	design, err := os.ReadFile("DESIGN.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, m := range regexp.MustCompile(`fault\{(\d+), "(\w+)"`).FindAllStringSubmatch(string(source), -1) {
		if seen[m[2]] {
			t.Errorf("two faults are called %s", m[2])
		}
		seen[m[2]] = true
		if row := fmt.Sprintf("| %s | `%s` |", m[1], m[2]); !strings.Contains(string(design), row) {
			t.Errorf("DESIGN.md has no row with %s", row)
		}
	}
	if len(seen) < 50 {
		t.Errorf("only %d faults found in fault.go", len(seen))
	}
}
