package http1

import (
	"strings"
	"testing"

	"github.com/headgate/headgate/dataplane/message"
)

// The names of cases from the field start with their number.
func TestRequestParser(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   string
		want transcript
	}{
		{"get", "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
			transcript{"GET / 1.1 host=a", "end"}},
		{"fields keep case, order and repetitions",
			"GET / HTTP/1.1\r\nHost: a\r\nx-b:1\r\nX-A:  2 \t\r\nx-b: 3\r\nEmpty:\r\nBlank:  \r\nUmlaut: \xe4\tx\r\n\r\n",
			transcript{"GET / 1.1 host=a [x-b: 1] [X-A: 2] [x-b: 3] [Empty: ] [Blank: ] [Umlaut: \xe4\tx]", "end"}},
		{"query", "GET /a?b?c=/d HTTP/1.1\r\nHost: a\r\n\r\n",
			transcript{"GET /a?b?c=/d 1.1 host=a", "end"}},
		{"empty query", "GET /? HTTP/1.1\r\nHost: a\r\n\r\n",
			transcript{"GET /? 1.1 host=a", "end"}},
		{"unwise bytes in the target", "GET /a|b\"<\\>^`{}[]\xc3\xa4%zz?{\xff} HTTP/1.1\r\nHost: a\r\n\r\n",
			transcript{"GET /a|b\"<\\>^`{}[]\xc3\xa4%zz?{\xff} 1.1 host=a", "end"}},
		{"own method", "x-Y!z / HTTP/1.1\r\nHost: a\r\n\r\n",
			transcript{"x-Y!z / 1.1 host=a", "end"}},
		{"longest method", strings.Repeat("M", 32) + " / HTTP/1.1\r\nHost: a\r\n\r\n",
			transcript{strings.Repeat("M", 32) + " / 1.1 host=a", "end"}},
		{"options asterisk", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
			transcript{"OPTIONS * 1.1 host=a", "end"}},
		{"minor version above 1", "GET / HTTP/1.7\r\nHost: a\r\n\r\n",
			transcript{"GET / 1.1 host=a", "end"}},
		{"B07 empty lines before the request", "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n\r\n\r\n\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n",
			transcript{"GET / 1.1 host=a", "end", "GET /2 1.1 host=a", "end"}},
		{"a request that stops", "GET / HTTP/1.1\r\nHost: a\r\n\r", nil},

		{"pipelined", "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nPOST /2 HTTP/1.1\r\nHost: b\r\nContent-Length: 3\r\n\r\nabcGET /3 HTTP/1.1\r\nHost: c\r\n\r\n",
			transcript{"GET /1 1.1 host=a", "end", "POST /2 1.1 host=b length=3", "data abc", "end", "GET /3 1.1 host=c", "end"}},
		{"state of one request does not leak into the next",
			"POST /1 HTTP/1.1\r\nHost: a\r\nConnection: upgrade, x-a\r\nUpgrade: websocket\r\nTE: trailers\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-T: 1\r\n\r\n" +
				"GET /2 HTTP/1.1\r\nHost: b\r\nX-A: 1\r\n\r\n",
			transcript{"POST /1 1.1 host=a chunked upgrade=websocket expect trailers", "end [X-T: 1]", "GET /2 1.1 host=b [X-A: 1]", "end"}},

		{"keep-alive of 1.1", "GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5\r\n\r\n",
			transcript{"GET / 1.1 host=a", "end"}},
		{"close", "GET / HTTP/1.1\r\nHost: a\r\nConnection: x , Close \t, y\r\n\r\n",
			transcript{"GET / 1.1 host=a close", "end"}},
		{"close wins", "GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\nConnection: close\r\n\r\n",
			transcript{"GET / 1.1 host=a close", "end"}},
		{"1.0", "GET / HTTP/1.0\r\n\r\n",
			transcript{"GET / 1.0 host= close", "end"}},
		{"1.0 keep-alive", "GET / HTTP/1.0\r\nHost: a\r\nConnection: Keep-Alive\r\n\r\n",
			transcript{"GET / 1.0 host=a", "end"}},
		{"1.0 can't upgrade, expect or take trailers", "POST / HTTP/1.0\r\nConnection: upgrade, te\r\nUpgrade: websocket\r\nTE: trailers\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx",
			transcript{"POST / 1.0 host= length=1 close", "data x", "end"}},
		{"proxy-connection means nothing", "GET / HTTP/1.1\r\nHost: a\r\nProxy-Connection: close\r\n\r\n",
			transcript{"GET / 1.1 host=a", "end"}},

		{"B11 nominated fields", "POST / HTTP/1.1\r\nHost: a\r\nConnection: X-Forwarded-For, x-forwarded-host\r\nX-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Host: evil\r\n" +
			"Authorization: secret\r\nX-Kept: 1\r\nContent-Length: 1\r\nConnection: ,Authorization, Host, Content-Length,\t\r\nKeep-Alive: 1\r\nProxy-Connection: keep-alive\r\nTE: gzip\r\nx-forwarded-for: 7.7.7.7\r\n\r\nx",
			transcript{"POST / 1.1 host=a length=1 [X-Kept: 1]", "data x", "end"}},
		{"B11 a nominated field may be long", "GET / HTTP/1.1\r\nHost: a\r\nConnection: X-" + strings.Repeat("a", 40) + ", X-K\r\nx-" + strings.Repeat("A", 40) + ": 1\r\nX-A: 1\r\n\r\n",
			transcript{"GET / 1.1 host=a [X-A: 1]", "end"}},
		{"B11 options are tokens", "GET / HTTP/1.1\r\nHost: a\r\nConnection: x-\xe2\x84\xaa, x y, X-A z\r\nX-K: 1\r\nX-A: 2\r\n\r\n",
			transcript{"GET / 1.1 host=a [X-K: 1] [X-A: 2]", "end"}},
		{"te trailers", "GET / HTTP/1.1\r\nHost: a\r\nTE: gzip;q=0.5, Trailers;q=1\r\n\r\n",
			transcript{"GET / 1.1 host=a trailers", "end"}},
		{"te without trailers", "GET / HTTP/1.1\r\nHost: a\r\nTE: deflate, xtrailers\r\nTE:\r\n\r\n",
			transcript{"GET / 1.1 host=a", "end"}},

		{"upgrade", "GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n",
			transcript{"GET / 1.1 host=a upgrade=websocket", "end"}},
		{"upgrade that Connection does not list", "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n",
			transcript{"GET / 1.1 host=a", "end"}},
		{"upgrade that is missing", "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\n\r\n",
			transcript{"GET / 1.1 host=a", "end"}},
		{"upgrade in two lines", "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: a/1\r\nUpgrade: b\r\nUpgrade: c\r\n\r\n",
			transcript{"GET / 1.1 host=a upgrade=a/1, b, c", "end"}},
		{"upgrade around a field", "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: a\r\nX-A: 1\r\nUpgrade: bbbbbbbbbbbbbbbbbbbbbbb\r\n\r\n",
			transcript{"GET / 1.1 host=a upgrade=a, bbbbbbbbbbbbbbbbbbbbbbb [X-A: 1]", "end"}},
		{"upgrade to h2c", "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n\r\n",
			transcript{"GET / 1.1 host=a", "end"}},
		{"upgrade to h2c behind another", "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket, H2C\r\n\r\n",
			transcript{"GET / 1.1 host=a", "end"}},
		{"upgrade to h2", "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2\r\n\r\n",
			transcript{"GET / 1.1 host=a", "end"}},
		{"upgrade to HTTP", "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: HTTP/2.0\r\n\r\n",
			transcript{"GET / 1.1 host=a", "end"}},
		{"upgrade to TLS", "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: TLS/1.0\r\n\r\n",
			transcript{"GET / 1.1 host=a", "end"}},
		{"upgrade to no token", "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: a b\r\n\r\n",
			transcript{"GET / 1.1 host=a", "end"}},

		{"expect", "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 1\r\n\r\nx",
			transcript{"POST / 1.1 host=a length=1 expect", "data x", "end"}},
		{"expect without a body", "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 0\r\n\r\n",
			transcript{"POST / 1.1 host=a", "end"}},

		{"B08 absolute form", "GET http://b.example/p?q HTTP/1.1\r\nHost: a.example\r\n\r\n",
			transcript{"GET /p?q 1.1 host=b.example", "end"}},
		{"B08 absolute form of https", "GET HTTPS://b.example:8443/ HTTP/1.1\r\nHost: a.example\r\n\r\n",
			transcript{"GET / 1.1 host=b.example:8443", "end"}},
		{"B08 absolute form without a path", "GET http://b.example?q HTTP/1.1\r\nHost: a.example\r\n\r\n",
			transcript{"GET /?q 1.1 host=b.example", "end"}},
		{"B08 absolute form without anything", "GET http://b.example HTTP/1.1\r\nHost: a.example\r\n\r\n",
			transcript{"GET / 1.1 host=b.example", "end"}},
		{"B08 absolute form in 1.0", "GET http://b.example/ HTTP/1.0\r\n\r\n",
			transcript{"GET / 1.0 host=b.example close", "end"}},
		{"B08 absolute form of IPv6", "GET http://[::1]:80/ HTTP/1.1\r\nHost:\r\n\r\n",
			transcript{"GET / 1.1 host=[::1]:80", "end"}},
		{"absolute form of options asterisk", "OPTIONS http://b.example HTTP/1.1\r\nHost: a\r\n\r\n",
			transcript{"OPTIONS * 1.1 host=b.example", "end"}},
		{"absolute form of options", "OPTIONS http://b.example? HTTP/1.1\r\nHost: a\r\n\r\n",
			transcript{"OPTIONS /? 1.1 host=b.example", "end"}},

		{"B09 empty host", "GET / HTTP/1.1\r\nHost:\r\n\r\n",
			transcript{"GET / 1.1 host=", "end"}},
		{"B09 host as received", "GET / HTTP/1.1\r\nHost: A.Example.:8082\r\n\r\n",
			transcript{"GET / 1.1 host=A.Example.:8082", "end"}},
		{"B09 IPv6", "GET / HTTP/1.1\r\nHost: [2001:db8::1]:8080\r\n\r\n",
			transcript{"GET / 1.1 host=[2001:db8::1]:8080", "end"}},

		{"B02 chunked", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \t Chunked \t\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
			transcript{"POST / 1.1 host=a chunked", "data hello", "end"}},
		{"leading zeros of a length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 00000000000000000000003\r\n\r\nabc",
			transcript{"POST / 1.1 host=a length=3", "data abc", "end"}},
		{"largest length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9223372036854775807\r\n\r\nabc",
			transcript{"POST / 1.1 host=a length=9223372036854775807", "data abc"}},
		{"body on a GET", "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx",
			transcript{"GET / 1.1 host=a length=1", "data x", "end"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			checkSplits(t, tt.in, tt.want, func(p ...[]byte) (transcript, []byte) { return requestTranscript(nil, p...) })
		})
	}
}

func TestRequestStarted(t *testing.T) {
	var p RequestParser
	var req message.Request
	p.Reset(nil)
	in := []byte("\r\nPOST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab\r\n")
	end := len(in) - 2
	start := 0
	for i := range len(in) + 1 {
		for {
			n, ev, _, err := p.Next(&req, in[start:i])
			if err != nil {
				t.Fatal(err)
			}
			if start += n; ev == None {
				break
			}
		}
		if want := i > 2 && i < end; p.Started() != want {
			t.Errorf("after %q: Started is %v", in[:i], !want)
		}
	}
}

// TestRequestOwnership checks what the parser leaves alone and what it resets.
func TestRequestOwnership(t *testing.T) {
	var p RequestParser
	req := message.Request{Secure: true}
	p.Reset(nil)
	in := []byte("GET http://b?q HTTP/1.1\r\nHost: a\r\nX-A: 1\r\n\r\n")
	for range 2 {
		if err := parseRequest(&p, &req, in); err != nil {
			t.Fatal(err)
		}
	}
	for i := range in {
		in[i] = '#'
	}
	if got, want := describe(&req, p.KeepAlive()), "GET /?q 1.1 host=b [X-A: 1]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if !req.Secure {
		t.Error("Secure was reset")
	}
}

// TestRequestParserReset checks that a parser forgets its old connection.
func TestRequestParserReset(t *testing.T) {
	for _, in := range []string{
		"garbage\r\n\r\n",
		"GET / HTTP/1.1\r\nHos",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-A: 1\r\nX-",
	} {
		var p RequestParser
		var req message.Request
		p.Reset(nil)
		for b := []byte(in); ; {
			n, ev, _, err := p.Next(&req, b)
			if b = b[n:]; err != nil || ev == None {
				break
			}
		}
		p.Reset(nil)
		if p.Started() || p.Trailers().Len() != 0 {
			t.Errorf("%q: the parser has not been reset", in)
		}
		if err := parseRequest(&p, &req, []byte("GET / HTTP/1.1\r\nHost: b\r\n\r\n")); err != nil || string(req.Host) != "b" {
			t.Errorf("%q: then host %q, %v", in, req.Host, err)
		}
	}
}

func TestEventString(t *testing.T) {
	for ev, want := range map[Event]string{None: "none", Head: "head", Data: "data", End: "end", 9: "unknown"} {
		if ev.String() != want {
			t.Errorf("%d is %q, want %q", ev, ev, want)
		}
	}
}
