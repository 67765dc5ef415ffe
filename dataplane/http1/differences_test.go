package http1

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/dataplane/message"
)

// A difference is a reason for which the codec refuses what net/http takes, an
// example, and what net/http does. The tables are those of DESIGN.md.
type difference struct {
	reason, example, why string
}

const postChunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"

// requestStricter is the table for http.ReadRequest.
var requestStricter = []difference{
	{"too_many_empty_lines", "\r\n\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "ReadRequest takes none; the comparison skips all"},
	{"bare_lf", "GET / HTTP/1.1\nHost: a\n\n", "takes LF for a line end, which RFC 9112, 2.2 allows"},
	{"bare_cr", "\r\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "the comparison skips a CR before the request; in a head, a CR before CRLF is dropped"},
	{"nul_byte", postChunked + "1;\x00\r\nx\r\n0\r\n\r\n", "does not look into chunk extensions"},
	{"method_too_long", "MMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMM / HTTP/1.1\r\nHost: a\r\n\r\n", "has no limit of its own for the method"},
	{"unsupported_version", "GET / HTTP/3.0\r\nHost: a\r\n\r\n", "reads any version; its server refuses it later"},
	{"http2_preface", "PRI * HTTP/2.0\r\n\r\n", "reads it; its server goes on with HTTP/2"},
	{"bad_target", "GET * HTTP/1.1\r\nHost: a\r\n\r\n", "takes `*` for every method, and opaque targets such as `a:b`"},
	{"bad_target_scheme", "GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n", "takes any scheme"},
	{"fragment_in_target", "GET /#a HTTP/1.1\r\nHost: a\r\n\r\n", "takes `#` for a part of the path"},
	{"userinfo_in_target", "GET http://a@b/ HTTP/1.1\r\nHost: a\r\n\r\n", "reads it into the URL"},
	{"bad_target_authority", "GET http:///p HTTP/1.1\r\nHost: a\r\n\r\n", "takes an empty authority, and what url.Parse lets pass"},
	{"connect_not_supported", "CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n", "reads CONNECT"},
	{"missing_host", "GET / HTTP/1.1\r\n\r\n", "its server checks it later"},
	{"bad_host", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", "its server checks it later, against a wider set of bytes"},
	{"obs_fold", "GET / HTTP/1.1\r\nHost: a\r\nA: b\r\n c\r\n\r\n", "joins the lines, which RFC 9112, 5.2 allows"},
	{"space_before_colon", "GET / HTTP/1.1\r\nHost: a\r\nA : b\r\n\r\n", "keeps the space as a part of the name"},
	{"bad_header_name", "GET / HTTP/1.1\r\nHost: a\r\nA b: c\r\n\r\n", "takes spaces inside of a name"},
	{"duplicate_content_length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx", "takes equal lines for one, which RFC 9112, 6.3 allows"},
	{"length_and_transfer_encoding", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "drops the length, which RFC 9112, 6.1 allows"},
	{"transfer_encoding_in_http10", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", "ignores the field in HTTP/1.0; RFC 9112, 6.1 calls the framing faulty"},
	{"unknown_expectation", "GET / HTTP/1.1\r\nHost: a\r\nExpect: x\r\n\r\n", "its server answers 417 later"},
	{"too_many_connection_options", "GET / HTTP/1.1\r\nHost: a\r\nConnection: " + strings.Repeat(",", 64) + "\r\n\r\n", "has no such limit"},
	{"bad_chunk_size", postChunked + "1 \r\nx\r\n0\r\n\r\n", "ignores white space behind the size"},
	{"bad_chunk_extension", postChunked + "1;\x01\r\nx\r\n0\r\n\r\n", "does not look into chunk extensions"},
}

// responseStricter is the table for http.ReadResponse.
var responseStricter = []difference{
	{"bare_lf", "HTTP/1.1 200 OK\n\n", "takes LF for a line end, which RFC 9112, 2.2 allows"},
	{"bare_cr", "HTTP/1.1 200 OK\r\r\n\r\n", "takes a CR before a line end for white space"},
	{"nul_byte", "HTTP/1.1 200 \x00\r\n\r\n", "does not look into the reason phrase and into chunk extensions"},
	{"bad_status_line", "HTTP/1.1 200 \x01\r\n\r\n", "does not look into the reason phrase, and skips spaces before the status"},
	{"bad_response_version", "HTTP/2.0 200 OK\r\n\r\n", "takes any version"},
	{"bad_header_name", "HTTP/1.1 200 OK\r\nA b: c\r\n\r\n", "takes spaces inside of a name"},
	{"bad_switching_protocols", "HTTP/1.1 101 Switching Protocols\r\n\r\n", "does not ask a 101 for its Upgrade"},
	{"transfer_encoding_in_http10", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "ignores the field in HTTP/1.0; RFC 9112, 6.1 calls the framing faulty"},
	{"too_many_connection_options", "HTTP/1.1 200 OK\r\nConnection: " + strings.Repeat(",", 64) + "\r\n\r\n", "has no such limit"},
	{"bad_chunk_extension", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;\x01\r\nx\r\n0\r\n\r\n", "does not look into chunk extensions"},
	{"obs_fold", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\n c\r\n\r\n", "joins lines also in trailers"},
}

// chunkedStricter is the table for httputil.NewChunkedReader. It has no rows in
// DESIGN.md: those for requests include it.
var chunkedStricter = []difference{
	{"bad_chunk_size", "1 \r\nx\r\n0\r\n\r\n", "ignores white space behind the size"},
	{"bad_chunk_extension", "1;\x01\r\nx\r\n0\r\n\r\n", "does not look into chunk extensions"},
	{"nul_byte", "1;\x00\r\nx\r\n0\r\n\r\n", "does not look into chunk extensions"},
}

// requestLaxerExamples are requests that the codec takes and net/http refuses,
// one for each row of that table in DESIGN.md.
var requestLaxerExamples = []string{
	"GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET http://%41/ HTTP/1.1\r\nHost: a\r\n\r\n",
	postChunked + "1 ;x\r\nx\r\n0\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: a\r\nTrailer: Content-Length\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
}

// responseLaxerExamples are the same for responses.
var responseLaxerExamples = []string{
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nx",
	"HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\nx",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1 ;x\r\nx\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nX-A\t: 1\r\nContent-Length: 1\r\n\r\nx",
}

// checkDifference fails when reason is no known difference.
func checkDifference(t *testing.T, table []difference, in []byte, reason string) {
	t.Helper()
	if !slices.ContainsFunc(table, func(d difference) bool { return d.reason == reason }) {
		t.Fatalf("%q: net/http takes it, the codec says %q", in, reason)
	}
}

// TestDifferences checks the tables: every example is what its row says, and
// every row is in DESIGN.md.
func TestDifferences(t *testing.T) {
	design, err := os.ReadFile("DESIGN.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := func(d difference) {
		if row := fmt.Sprintf("| `%s` | %s |", d.reason, d.why); !strings.Contains(string(design), row) {
			t.Errorf("DESIGN.md has no row with %s", row)
		}
	}
	for _, d := range requestStricter {
		var req message.Request
		v, _ := firstRequest(&req, []byte(d.example))
		if _, _, err := stdRequest([]byte(d.example)); err != nil || v.reason != d.reason {
			t.Errorf("%q: net/http says %v, the codec %q", d.example, err, v.reason)
		}
		documented(d)
	}
	for _, d := range responseStricter {
		var resp message.Response
		v := firstResponse(&resp, []byte(d.example), "GET")
		if _, _, err := stdResponse([]byte(d.example), "GET"); err != nil || v.reason != d.reason {
			t.Errorf("%q: net/http says %v, the codec %q", d.example, err, v.reason)
		}
		documented(d)
	}
	for _, in := range requestLaxerExamples {
		var req message.Request
		v, _ := firstRequest(&req, []byte(in))
		if _, _, err := stdRequest([]byte(in)); err == nil || !v.whole {
			t.Errorf("%q: net/http says %v, the codec %q", in, err, v.reason)
		}
	}
	for _, in := range responseLaxerExamples {
		var resp message.Response
		v := firstResponse(&resp, []byte(in), "GET")
		if _, _, err := stdResponse([]byte(in), "GET"); err == nil || !v.whole {
			t.Errorf("%q: net/http says %v, the codec %q", in, err, v.reason)
		}
	}
}
