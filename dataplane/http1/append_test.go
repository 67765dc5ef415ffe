package http1

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/dataplane/message"
)

// headers makes a header block of names and values.
func headers(pairs ...string) (h message.Headers) {
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

func TestAppendRequest(t *testing.T) {
	b := func(s string) []byte { return []byte(s) }
	for _, tt := range []struct {
		name string
		r    message.Request
		want string
	}{
		{"get", message.Request{Method: b("GET"), Path: b("/a"), Host: b("a.example:80"), Headers: headers("X-A", "1", "x-a", "2")},
			"GET /a HTTP/1.1\r\nHost: a.example:80\r\nX-A: 1\r\nx-a: 2\r\n\r\n"},
		{"query", message.Request{Method: b("GET"), Path: b("/"), Query: b("a?b=%2F"), HasQuery: true, Host: b("a")},
			"GET /?a?b=%2F HTTP/1.1\r\nHost: a\r\n\r\n"},
		{"empty query", message.Request{Method: b("GET"), Path: b("/"), HasQuery: true, Host: b("a")},
			"GET /? HTTP/1.1\r\nHost: a\r\n\r\n"},
		{"asterisk", message.Request{Method: b("OPTIONS"), Path: b("*"), Host: b("a")},
			"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"},
		{"no host", message.Request{Method: b("GET"), Path: b("/")},
			"GET / HTTP/1.1\r\nHost: \r\n\r\n"},
		{"length", message.Request{Method: b("GET"), Path: b("/"), Host: b("a"), ContentLength: 12},
			"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\n\r\n"},
		{"length 0 of POST", message.Request{Method: b("POST"), Path: b("/"), Host: b("a")},
			"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"},
		{"length 0 of PUT", message.Request{Method: b("PUT"), Path: b("/"), Host: b("a")},
			"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"},
		{"length 0 of PATCH", message.Request{Method: b("PATCH"), Path: b("/"), Host: b("a")},
			"PATCH / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"},
		{"length 0 of DELETE", message.Request{Method: b("DELETE"), Path: b("/"), Host: b("a")},
			"DELETE / HTTP/1.1\r\nHost: a\r\n\r\n"},
		{"unknown length, expect", message.Request{Method: b("POST"), Path: b("/"), Host: b("a"), ContentLength: message.Unknown, ExpectContinue: true},
			"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n"},
		{"trailers", message.Request{Method: b("GET"), Path: b("/"), Host: b("a"), AcceptsTrailers: true},
			"GET / HTTP/1.1\r\nHost: a\r\nConnection: TE\r\nTE: trailers\r\n\r\n"},
		{"upgrade", message.Request{Method: b("GET"), Path: b("/"), Host: b("a"), Upgrade: b("websocket")},
			"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"},
		{"upgrade and trailers", message.Request{Method: b("GET"), Path: b("/"), Host: b("a"), Upgrade: b("websocket"), AcceptsTrailers: true},
			"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, TE\r\nUpgrade: websocket\r\nTE: trailers\r\n\r\n"},

		{"what would break the request line", message.Request{Method: b("GET /evil HTTP/1.1\r\n"), Path: b("/a b?c#d\r\n"), Query: b("e f#\x00"), HasQuery: true, Host: b("a\r\n b\x7f")},
			"GETevilHTTP1.1 /a%20b%3Fc%23d%0D%0A?e%20f%23%00 HTTP/1.1\r\nHost: ab\r\n\r\n"},
		{"what would break the head", message.Request{Method: b("GET"), Path: b("/"), Host: b("a"), Upgrade: b("a\r\nX: b"), Headers: headers(
			"A", "1\r\nEvil: 1", "B", "2\n", "C", "3\r", "D", "4\x00", "E: e", "5", "F\r\nG", "6", "", "7", "H ", "8", "I", "\t9 ")},
			"GET / HTTP/1.1\r\nHost: a\r\nI: \t9 \r\n\r\n"},
		{"what would frame twice", message.Request{Method: b("GET"), Path: b("/"), Host: b("a"), ContentLength: 1, Headers: headers(
			"Content-Length", "2", "Transfer-Encoding", "chunked", "Host", "b", "Connection", "close", "Upgrade", "x", "TE", "x", "Keep-Alive", "x", "Proxy-Connection", "x", "Expect", "x")},
			"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := AppendRequest([]byte("x"), &tt.r); string(got) != "x"+tt.want {
				t.Errorf("got  %q\nwant %q", got, "x"+tt.want)
			}
		})
	}
}

func TestAppendResponse(t *testing.T) {
	for _, tt := range []struct {
		name      string
		r         message.Response
		minor     uint8
		keepAlive bool
		want      string // after the status line
	}{
		{"length", message.Response{Status: 200, ContentLength: 5, Headers: headers("X-A", "1")}, 1, true,
			"200 OK\r\nX-A: 1\r\nContent-Length: 5\r\n\r\n"},
		{"length 0", message.Response{Status: 404}, 1, true,
			"404 Not Found\r\nContent-Length: 0\r\n\r\n"},
		{"own reason", message.Response{Status: 200, Reason: []byte("Fine, thanks")}, 1, true,
			"200 Fine, thanks\r\nContent-Length: 0\r\n\r\n"},
		{"no known reason", message.Response{Status: 599}, 1, true,
			"599 \r\nContent-Length: 0\r\n\r\n"},
		{"close", message.Response{Status: 200, ContentLength: 5}, 1, false,
			"200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\n"},
		{"1.0", message.Response{Status: 200, ContentLength: 5}, 0, false,
			"200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\n"},
		{"1.0 keep-alive", message.Response{Status: 200, ContentLength: 5}, 0, true,
			"200 OK\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\n"},
		{"unknown length", message.Response{Status: 200, ContentLength: message.Unknown}, 1, true,
			"200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"},
		{"unknown length, close", message.Response{Status: 200, ContentLength: message.Unknown}, 1, false,
			"200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"},
		{"unknown length in 1.0", message.Response{Status: 200, ContentLength: message.Unknown}, 0, true,
			"200 OK\r\nConnection: close\r\n\r\n"},
		{"B15 HEAD", message.Response{Status: 200, ContentLength: 1234, Bodyless: true}, 1, true,
			"200 OK\r\nContent-Length: 1234\r\n\r\n"},
		{"B15 HEAD, unknown length", message.Response{Status: 200, ContentLength: message.Unknown, Bodyless: true}, 1, true,
			"200 OK\r\n\r\n"},
		{"B15 HEAD in 1.0, unknown length", message.Response{Status: 200, ContentLength: message.Unknown, Bodyless: true}, 0, true,
			"200 OK\r\nConnection: keep-alive\r\n\r\n"},
		{"B15 304", message.Response{Status: 304, ContentLength: 55, Bodyless: true}, 1, true,
			"304 Not Modified\r\nContent-Length: 55\r\n\r\n"},
		{"B15 204", message.Response{Status: 204, ContentLength: 5, Bodyless: true}, 1, false,
			"204 No Content\r\nConnection: close\r\n\r\n"},
		{"B15 103", message.Response{Status: 103, ContentLength: 5, Bodyless: true, Headers: headers("Link", "x")}, 1, false,
			"103 Early Hints\r\nLink: x\r\n\r\n"},
		{"100", message.Response{Status: 100, Bodyless: true}, 1, true,
			"100 Continue\r\n\r\n"},
		{"101", message.Response{Status: 101, Bodyless: true, Upgrade: []byte("websocket"), Headers: headers("Sec-WebSocket-Accept", "x")}, 1, false,
			"101 Switching Protocols\r\nSec-WebSocket-Accept: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"},

		{"what would break the head", message.Response{Status: 200, Reason: []byte("a\r\nb: c"), Headers: headers(
			"A", "1\r\nSet-Cookie: x", "B\n", "1", "C", "\x7f", "Content-Length", "7", "Transfer-Encoding", "chunked", "Connection", "x")}, 1, true,
			"200 OK\r\nContent-Length: 0\r\n\r\n"},
		{"101 that would break the head", message.Response{Status: 101, Upgrade: []byte("a\nb")}, 1, true,
			"101 Switching Protocols\r\n\r\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := "xHTTP/1.1 " + tt.want
			o := Framing(&tt.r, tt.minor, tt.keepAlive)
			if got := AppendResponse([]byte("x"), &tt.r, o); string(got) != want {
				t.Errorf("got  %q\nwant %q", got, want)
			}
			if tt.r.Status >= 200 && o.KeepAlive == strings.Contains(want, "close") {
				t.Errorf("KeepAlive is %v", o.KeepAlive)
			}
		})
	}
}

// TestAppendResponseOptions checks options that Framing does not give.
func TestAppendResponseOptions(t *testing.T) {
	r := message.Response{Status: 200, ContentLength: message.Unknown}
	for _, o := range []ResponseOptions{{Minor: 1, KeepAlive: true}, {Minor: 0, KeepAlive: true, Chunked: true}} {
		if got, want := string(AppendResponse(nil, &r, o)), "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"; got != want {
			t.Errorf("%+v: got %q, want %q", o, got, want)
		}
	}
}

func TestAppendChunks(t *testing.T) {
	got := AppendChunk(nil, []byte("hello"))
	got = AppendChunk(got, nil)
	got = AppendChunkHead(got, 26)
	got = append(got, "abcdefghijklmnopqrstuvwxyz\r\n"...)
	trailers := headers("X-Sum", "1", "Content-Length", "5", "Authorization", "x", "X-Bad", "a\r\nb", "X Y", "1", "x-sum", "2")
	got = AppendLastChunk(got, &trailers)
	if want := "5\r\nhello\r\n1a\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\nX-Sum: 1\r\nx-sum: 2\r\n\r\n"; string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := AppendLastChunk(nil, nil); string(got) != "0\r\n\r\n" {
		t.Errorf("without trailers: %q", got)
	}
}

// TestRoundTripRequest parses requests, writes them and parses them again: the
// second transcript must be the first, but for what belongs to the client's
// connection.
func TestRoundTripRequest(t *testing.T) {
	for _, in := range []string{
		browserRequest,
		"POST /a?b HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\nTE: trailers\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;x\r\n world\r\n0\r\nX-T: 1\r\n\r\n",
		"PUT / HTTP/1.1\r\nHost: [::1]:1\r\nContent-Length: 5\r\nX: \xff\r\n\r\nhello",
		"POST / HTTP/1.1\r\nHost:\r\n\r\n",
		"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /a|b\"<\\>^`{}[]\xc3\xa4%zz?{\xff} HTTP/1.1\r\nHost: a\r\n\r\n",
	} {
		first, _ := requestTranscript(nil, []byte(in))
		second, _ := requestTranscript(nil, rewriteRequest(t, []byte(in)))
		if diff := cmp.Diff(first, second); diff != "" {
			t.Errorf("%q: (-first +second)\n%s", in, diff)
		}
	}
}

// rewriteRequest parses one request and writes what it is told.
func rewriteRequest(t *testing.T, in []byte) (out []byte) {
	t.Helper()
	var p RequestParser
	var req message.Request
	p.Reset(nil)
	for {
		n, ev, data, err := p.Next(&req, in)
		if err != nil || ev == None {
			t.Fatalf("%v, %v", ev, err)
		}
		in = in[n:]
		switch ev {
		case Head:
			out = AppendRequest(out, &req)
		case Data:
			if req.ContentLength == message.Unknown {
				out = AppendChunk(out, data)
			} else {
				out = append(out, data...)
			}
		case End:
			if req.ContentLength == message.Unknown {
				out = AppendLastChunk(out, p.Trailers())
			}
			return out
		}
	}
}

// TestRoundTripResponse does the same with responses.
func TestRoundTripResponse(t *testing.T) {
	for _, tt := range []struct{ method, in, want string }{
		{"GET", jsonResponse, strings.Replace(jsonResponse, "Content-Length: 15\r\nCache-Control: no-store\r\nConnection: keep-alive\r\n", "Cache-Control: no-store\r\nContent-Length: 15\r\n", 1)},
		{"GET", "HTTP/1.0 200\r\n\r\nhello", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"},
		{"GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x\r\nhello\r\n0\r\nX-T : 1\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-T: 1\r\n\r\n"},
		{"HEAD", "HTTP/1.1 200 OK\r\nA : b\r\n c\r\nContent-Length: 5, 5\r\n\r\n", "HTTP/1.1 200 OK\r\nA: b   c\r\nContent-Length: 5\r\n\r\n"},
		{"GET", "HTTP/1.1 103 Early Hints\r\nContent-Length: 5\r\n\r\nHTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"},
	} {
		var p ResponseParser
		var resp message.Response
		p.Reset(nil)
		p.Expect([]byte(tt.method))
		var out []byte
		chunked := func() bool { return !resp.Bodyless && resp.ContentLength == message.Unknown }
		for in, ev := []byte(tt.in), None; ev != End; {
			n, next, data, err := p.Next(&resp, in)
			if next == None && err == nil {
				next, err = p.EOF()
			}
			if err != nil {
				t.Fatalf("%q: %v", tt.in, err)
			}
			in, ev = in[n:], next
			switch {
			case ev == Head:
				out = AppendResponse(out, &resp, Framing(&resp, 1, true))
			case ev == Data && chunked():
				out = AppendChunk(out, data)
			case ev == Data:
				out = append(out, data...)
			case ev == End && chunked():
				out = AppendLastChunk(out, p.Trailers())
			}
		}
		if !bytes.Equal(out, []byte(tt.want)) {
			t.Errorf("%q:\ngot  %q\nwant %q", tt.in, out, tt.want)
		}
	}
}
