package http1

import (
	"strings"
	"testing"

	"github.com/headgate/headgate/dataplane/message"
)

func TestResponseParser(t *testing.T) {
	for _, tt := range []struct {
		name    string
		methods string // of the requests, "GET" when there are no more
		in      string
		want    transcript // the connection's end included
	}{
		{"length", "", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: 1\r\n\r\nhello",
			transcript{`200 "OK" 1.1 length=5 [X-A: 1]`, "data hello", "end", "502 no_response"}},
		{"length 0", "", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
			transcript{`200 "OK" 1.1 length=0`, "end", "502 no_response"}},
		{"chunked", "", "HTTP/1.1 200 OK\r\nTransfer-Encoding: CHUNKED\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 1\r\nContent-Length: 1\r\n\r\n",
			transcript{`200 "OK" 1.1 unknown`, "data hello", "end [X-Sum: 1]", "502 no_response"}},
		{"chunk sizes with spaces", "", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5  \r\nhello\r\n0 \t\r\nX-Sum : 1\r\n\r\n",
			transcript{`200 "OK" 1.1 unknown`, "data hello", "end [X-Sum: 1]", "502 no_response"}},
		{"until close", "", "HTTP/1.1 200 OK\r\n\r\nhello\r\n",
			transcript{`200 "OK" 1.1 unknown`, "data hello\r\n", "end", "close"}},
		{"until close, nothing", "", "HTTP/1.1 200 OK\r\n\r\n",
			transcript{`200 "OK" 1.1 unknown`, "end", "close"}},
		{"one after the other", "", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\naHTTP/1.1 404 Not Found\r\nContent-Length: 1\r\n\r\nb",
			transcript{`200 "OK" 1.1 length=1`, "data a", "end", `404 "Not Found" 1.1 length=1`, "data b", "end", "502 no_response"}},

		{"no reason", "", "HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n",
			transcript{`200 1.1 length=0`, "end", "502 no_response"}},
		{"no reason and no space", "", "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n",
			transcript{`200 1.1 length=0`, "end", "502 no_response"}},
		{"odd reason", "", "HTTP/1.1 999  \tv\xe4ry odd \r\nContent-Length: 0\r\n\r\n",
			transcript{`999 " \tv\xe4ry odd " 1.1 length=0`, "end", "502 no_response"}},
		{"minor version above 1", "", "HTTP/1.9 200 OK\r\nContent-Length: 0\r\n\r\n",
			transcript{`200 "OK" 1.1 length=0`, "end", "502 no_response"}},

		{"close", "", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
			transcript{`200 "OK" 1.1 length=0`, "end", "close", "502 no_response"}},
		{"1.0", "", "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
			transcript{`200 "OK" 1.0 length=0`, "end", "close", "502 no_response"}},
		{"1.0 keep-alive", "", "HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n",
			transcript{`200 "OK" 1.0 length=0`, "end", "502 no_response"}},
		{"1.0 keep-alive until close", "", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\nx",
			transcript{`200 "OK" 1.0 unknown`, "data x", "end", "close"}},

		{"hop-by-hop fields", "", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=1\r\nProxy-Connection: a\r\nTE: b\r\nUpgrade: h2c\r\nX-End: 2\r\n\r\n",
			transcript{`200 "OK" 1.1 length=0 [X-End: 2]`, "end", "502 no_response"}},

		{"B07 space before the colon", "", "HTTP/1.1 200 OK\r\nContent-Length : 5\r\nX-A \t : 1\r\n\r\nhello",
			transcript{`200 "OK" 1.1 length=5 [X-A: 1]`, "data hello", "end", "502 no_response"}},
		{"B07 obs-fold", "", "HTTP/1.1 200 OK\r\nX-A: 1\r\n 2\r\n\t \t3 \r\n \r\nContent-Length:\r\n 5\r\n\r\nhello",
			transcript{"200 \"OK\" 1.1 length=5 [X-A: 1   2  \t \t3]", "data hello", "end", "502 no_response"}},

		{"B04 equal lengths", "", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
			transcript{`200 "OK" 1.1 length=5`, "data hello", "end", "502 no_response"}},
		{"B04 list of lengths", "", "HTTP/1.1 200 OK\r\nContent-Length: 5, 05\r\n\r\nhello",
			transcript{`200 "OK" 1.1 length=5`, "data hello", "end", "502 no_response"}},

		{"B15 HEAD with a length", "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
			transcript{`200 "OK" 1.1 length=1234 bodyless`, "end", `200 "OK" 1.1 length=1`, "data x", "end", "502 no_response"}},
		{"B15 HEAD chunked", "HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
			transcript{`200 "OK" 1.1 unknown bodyless`, "end", `200 "OK" 1.1 length=1`, "data x", "end", "502 no_response"}},
		{"B15 HEAD with nothing", "HEAD", "HTTP/1.1 200 OK\r\n\r\n",
			transcript{`200 "OK" 1.1 unknown bodyless`, "end", "502 no_response"}},
		{"B15 304 with a length", "", "HTTP/1.1 304 Not Modified\r\nContent-Length: 55\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
			transcript{`304 "Not Modified" 1.1 length=55 bodyless`, "end", `200 "OK" 1.1 length=1`, "data x", "end", "502 no_response"}},
		{"B15 204", "", "HTTP/1.1 204 No Content\r\n\r\n",
			transcript{`204 "No Content" 1.1 unknown bodyless`, "end", "502 no_response"}},
		{"B15 204 with length 0", "", "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n",
			transcript{`204 "No Content" 1.1 unknown bodyless`, "end", "502 no_response"}},
		{"B15 204 with a length", "", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n",
			transcript{`204 "No Content" 1.1 unknown bodyless`, "end", "close", "502 no_response"}},
		{"B15 204 chunked", "", "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n",
			transcript{`204 "No Content" 1.1 unknown bodyless`, "end", "close", "502 no_response"}},
		{"B15 103 and 200", "HEAD", "HTTP/1.1 100\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
			transcript{`100 1.1 unknown bodyless`, `103 "Early Hints" 1.1 unknown bodyless [Link: </a>]`, `200 "OK" 1.1 length=5 bodyless`, "end", "502 no_response"}},
		{"1xx with a length", "", "HTTP/1.1 103 Early Hints\r\nContent-Length: 5\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
			transcript{`103 "Early Hints" 1.1 unknown bodyless`, `200 "OK" 1.1 length=0`, "end", "close", "502 no_response"}},

		{"101", "", "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
			transcript{`101 "Switching Protocols" 1.1 unknown bodyless upgrade=websocket [Sec-WebSocket-Accept: x]`, "tunnel"}},
		{"CONNECT", "CONNECT", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
			transcript{`200 "OK" 1.1 length=5 bodyless`, "tunnel"}},
		{"CONNECT refused", "CONNECT", "HTTP/1.1 403 Forbidden\r\nContent-Length: 5\r\n\r\nhello",
			transcript{`403 "Forbidden" 1.1 length=5`, "data hello", "end", "502 no_response"}},

		{"B01 length and transfer encoding", "", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
			transcript{`200 "OK" 1.1 unknown`, "data x", "end", "close", "502 no_response"}},
		{"B02 identity", "", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: identity\r\n\r\nhello!",
			transcript{`200 "OK" 1.1 unknown`, "data hello!", "end", "close"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			checkSplits(t, tt.in, tt.want, func(p ...[]byte) (transcript, []byte) {
				return responseTranscript(nil, strings.Fields(tt.methods), true, p...)
			})
		})
	}
}

func TestResponseFaults(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	for _, tt := range []faultCase{
		{"nothing", "", "no_response"},
		{"empty line", "\r\n" + ok + "\r\n", "bad_status_line"},
		{"no HTTP", "220 mail.example ESMTP\r\n\r\n", "bad_status_line"},
		{"other protocol", "ICY/1.1 200 OK\r\n\r\n", "bad_status_line"},
		{"HTTP/2", "HTTP/2.0 200 OK\r\n\r\n", "bad_response_version"},
		{"http in lower case", "http/1.1 200 OK\r\n\r\n", "bad_response_version"},
		{"two digits", "HTTP/1.1 20 OK\r\n\r\n", "bad_status_line"},
		{"four digits", "HTTP/1.1 2000 OK\r\n\r\n", "bad_status_line"},
		{"status below 100", "HTTP/1.1 099 OK\r\n\r\n", "bad_status_line"},
		{"status with a sign", "HTTP/1.1 +20 OK\r\n\r\n", "bad_status_line"},
		{"two spaces", "HTTP/1.1  200 OK\r\n\r\n", "bad_status_line"},
		{"control in the reason", "HTTP/1.1 200 O\x01K\r\n\r\n", "bad_status_line"},
		{"NUL in the reason", "HTTP/1.1 200 O\x00K\r\n\r\n", "nul_byte"},
		{"bare CR in the reason", "HTTP/1.1 200 O\rK\r\n\r\n", "bare_cr"},
		{"long status line", "HTTP/1.1 200 " + longText(8<<10) + "\r\n\r\n", "status_line_too_long"},
		{"bare LF", "HTTP/1.1 200 OK\n\n", "bare_lf"},
		{"bare LF behind a field", ok + "A: b\n\r\n", "bare_lf"},
		{"bare LF at the end", ok + "A: b\r\n\n", "bare_lf"},
		{"bare CR", ok + "A: b\rc\r\n\r\n", "bare_cr"},
		{"NUL", ok + "A: \x00\r\n\r\n", "nul_byte"},
		{"NUL in a fold", ok + "A: b\r\n c\x00\r\n\r\n", "nul_byte"},
		{"bare LF in a fold", ok + "A: b\r\n c\n d\r\n\r\n", "bare_lf"},
		{"control in a value", ok + "A: \x01\r\n\r\n", "bad_header_value"},
		{"fold before the first field", ok + " A: b\r\n\r\n", "obs_fold"},
		{"space in a name", ok + "A b: c\r\n\r\n", "bad_header_name"},
		{"no colon", ok + "Ab\r\n\r\n", "missing_colon"},
		{"space and no colon", ok + "Ab  \r\n\r\n", "bad_header_name"},
		{"too many fields", ok + longFields(101) + "\r\n", "too_many_headers"},
		{"too large", ok + "a: " + longText(64<<10) + "\r\n\r\n", "headers_too_large"},
		{"too large by folds", ok + "a: b\r\n" + strings.Repeat(" \r\n", 22000) + "\r\n", "headers_too_large"},

		{"B04 differing lengths", ok + "Content-Length: 5\r\nContent-Length: 6\r\n\r\n", "conflicting_content_length"},
		{"B04 list of differing lengths", ok + "Content-Length: 5, 6\r\n\r\n", "conflicting_content_length"},
		{"B04 empty element", ok + "Content-Length: 5,\r\n\r\n", "bad_content_length"},
		{"B04 inner blank", ok + "Content-Length: 1 2\r\n\r\n", "bad_content_length"},
		{"B04 inner fold", ok + "Content-Length: 1\r\n 2\r\n\r\n", "bad_content_length"},
		{"B04 plus", ok + "Content-Length: +5\r\n\r\n", "bad_content_length"},
		{"B04 hex", ok + "Content-Length: 0x5\r\n\r\n", "bad_content_length"},
		{"B04 empty", ok + "Content-Length:\r\n\r\n", "bad_content_length"},
		{"B04 twenty digits", ok + "Content-Length: 18446744073709551621\r\n\r\n", "content_length_overflow"},

		{"B02 gzip", ok + "Transfer-Encoding: gzip\r\n\r\n", "unsupported_transfer_coding"},
		{"B02 gzip, chunked", ok + "Transfer-Encoding: gzip, chunked\r\n\r\n", "unsupported_transfer_coding"},
		{"B02 identity twice", ok + "Transfer-Encoding: identity, identity\r\n\r\n", "unsupported_transfer_coding"},
		{"B02 identity, chunked", ok + "Transfer-Encoding: identity, chunked\r\n\r\n", "unsupported_transfer_coding"},
		{"B02 chunked, identity", ok + "Transfer-Encoding: chunked, identity\r\n\r\n", "chunked_not_final"},
		{"B02 chunked twice", ok + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", "bad_transfer_encoding"},
		{"B02 empty", ok + "Transfer-Encoding:\r\n\r\n", "bad_transfer_encoding"},
		{"B02 in HTTP/1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "transfer_encoding_in_http10"},
		{"B02 gzip in HTTP/1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "transfer_encoding_in_http10"},
		{"connection lines", ok + strings.Repeat("Connection: a\r\n", 9) + "\r\n", "too_many_connection_options"},
		{"101 without a protocol", "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\r\n", "bad_switching_protocols"},
		{"101 without Connection", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n", "bad_switching_protocols"},
		{"101 to h2c", "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n", "bad_switching_protocols"},
		{"101 in HTTP/1.0", "HTTP/1.0 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", "bad_switching_protocols"},

		{"head stops", ok + "Content-Len", "truncated_head"},
		{"head stops before its last byte", ok + "\r", "truncated_head"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			checkSplits(t, tt.in, transcript{"502 " + tt.want}, func(p ...[]byte) (transcript, []byte) {
				return responseTranscript(nil, nil, true, p...)
			})
		})
	}
}

// TestResponseFaultsInBody has the faults that come behind a head.
func TestResponseFaultsInBody(t *testing.T) {
	const length = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
	const chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	for _, tt := range []struct {
		name string
		in   string
		want transcript
	}{
		{"length, nothing", length, transcript{`200 "OK" 1.1 length=5`, "502 truncated_body"}},
		{"length, not all", length + "hell", transcript{`200 "OK" 1.1 length=5`, "data hell", "502 truncated_body"}},
		{"chunked, nothing", chunks, transcript{`200 "OK" 1.1 unknown`, "502 truncated_body"}},
		{"chunked, part of a chunk", chunks + "5\r\nhell", transcript{`200 "OK" 1.1 unknown`, "data hell", "502 truncated_body"}},
		{"chunked, no last chunk", chunks + "5\r\nhello\r\n", transcript{`200 "OK" 1.1 unknown`, "data hello", "502 truncated_body"}},
		{"chunked, no end of trailers", chunks + "0\r\nA: b\r\n", transcript{`200 "OK" 1.1 unknown`, "502 truncated_body"}},
		{"chunk size", chunks + "x\r\n", transcript{`200 "OK" 1.1 unknown`, "502 bad_chunk_size"}},
		{"chunk end", chunks + "1\r\nxy\r\n", transcript{`200 "OK" 1.1 unknown`, "data x", "502 bad_chunk_end"}},
		{"trailers", chunks + "0\r\nA: b\r\n c\r\n\r\n", transcript{`200 "OK" 1.1 unknown`, "502 obs_fold"}},
		{"head behind interim", "HTTP/1.1 100 Continue\r\n\r\n", transcript{`100 "Continue" 1.1 unknown bodyless`, "502 no_response"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			checkSplits(t, tt.in, tt.want, func(p ...[]byte) (transcript, []byte) {
				return responseTranscript(nil, nil, true, p...)
			})
		})
	}
}

func TestTooManyInterimResponses(t *testing.T) {
	const interim, final = "HTTP/1.1 102 Processing\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
	got, _ := responseTranscript(nil, nil, false, []byte(strings.Repeat(strings.Repeat(interim, 100)+final, 2)))
	if n := len(got); n != 204 || got[n-1] != "end" {
		t.Errorf("100 of them before each of two responses: %d entries, the last is %q", n, got[n-1])
	}
	got, _ = responseTranscript(nil, nil, false, []byte(strings.Repeat(interim, 101)+final))
	if n := len(got); n != 101 || got[n-1] != "502 too_many_interim_responses" {
		t.Errorf("101 of them: %d entries, the last is %q", n, got[n-1])
	}
}

// TestResponseTunnel checks that what follows a 101 is not consumed.
func TestResponseTunnel(t *testing.T) {
	const head = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
	_, rest := responseTranscript(nil, nil, false, []byte(head+"\x81\x00"), []byte("\r\nmore"))
	if string(rest) != "\x81\x00\r\nmore" {
		t.Errorf("%q is left", rest)
	}
	var p ResponseParser
	p.Reset(nil)
	var resp message.Response
	if _, ev, _, err := p.Next(&resp, []byte(head)); ev != Head || err != nil || p.KeepAlive() {
		t.Errorf("%v, %v, keep-alive %v", ev, err, p.KeepAlive())
	}
}

// TestResponseKeepAlive checks that a connection is not reusable inside of a
// response.
func TestResponseKeepAlive(t *testing.T) {
	var p ResponseParser
	p.Reset(nil)
	in := []byte("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab")
	var resp message.Response
	start, ended := 0, false
	for i := 1; i <= len(in); i++ {
		for more := true; more; {
			n, ev, _, err := p.Next(&resp, in[start:i])
			if err != nil {
				t.Fatal(err)
			}
			start += n
			more = ev != None
			if ended = ended || ev == End; p.KeepAlive() != ended {
				t.Errorf("after %q and %v: KeepAlive is %v", in[:i], ev, !ended)
			}
		}
	}
	if !ended {
		t.Error("no End")
	}
	// Bytes that nobody asked for.
	if _, ev, _, err := p.Next(&resp, []byte("H")); ev != None || err != nil || p.KeepAlive() {
		t.Errorf("with more bytes: %v, %v, KeepAlive is %v", ev, err, p.KeepAlive())
	}
}

// TestResponseParserReset checks that a parser forgets its old connection.
func TestResponseParserReset(t *testing.T) {
	for _, in := range []string{
		"garbage\r\n\r\n",
		"HTTP/1.0 200 OK\r\n\r\nabc",
		"HTTP/1.1 200 OK\r\nContent-Le",
		"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: a\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-A: 1\r\nX-",
	} {
		var p ResponseParser
		var resp message.Response
		p.Reset(nil)
		p.Expect([]byte("GET"))
		for b := []byte(in); ; {
			n, ev, _, err := p.Next(&resp, b)
			if b = b[n:]; err != nil || ev == None {
				break
			}
		}
		p.Reset(nil)
		p.Expect([]byte("GET"))
		if p.Trailers().Len() != 0 {
			t.Errorf("%q: the parser has not been reset", in)
		}
		if err := parseResponse(&p, &resp, []byte("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx")); err != nil || !p.KeepAlive() {
			t.Errorf("%q: then %v, KeepAlive is %v", in, err, p.KeepAlive())
		}
	}
}
