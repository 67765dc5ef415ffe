package http1

import (
	"testing"

	"github.com/headgate/headgate/dataplane/message"
)

const browserRequest = "GET /products/42?ref=home HTTP/1.1\r\n" +
	"Host: shop.example.com\r\n" +
	"User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n" +
	"Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n" +
	"Accept-Language: en-US,en;q=0.5\r\n" +
	"Accept-Encoding: gzip, deflate, br, zstd\r\n" +
	"Connection: keep-alive\r\n" +
	"Referer: https://shop.example.com/products\r\n" +
	"Cookie: session=4f1c2b9a7d; theme=dark\r\n" +
	"Upgrade-Insecure-Requests: 1\r\n" +
	"Sec-Fetch-Dest: document\r\n" +
	"Sec-Fetch-Mode: navigate\r\n" +
	"Cache-Control: max-age=0\r\n\r\n"

const jsonResponse = "HTTP/1.1 200 OK\r\n" +
	"Server: backend\r\n" +
	"Date: Mon, 01 Jan 2024 00:00:00 GMT\r\n" +
	"Content-Type: application/json\r\n" +
	"Content-Length: 15\r\n" +
	"Cache-Control: no-store\r\n" +
	"Connection: keep-alive\r\n\r\n" +
	`{"status":"ok"}`

func BenchmarkRequestParser(b *testing.B) {
	for _, bm := range []struct{ name, in string }{
		{"small", "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"},
		{"browser", browserRequest},
		{"post", "POST /x HTTP/1.1\r\nHost: a.example\r\nContent-Length: 5\r\n\r\nhello"},
		{"chunked", "POST /x HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"},
	} {
		b.Run(bm.name, func(b *testing.B) {
			var p RequestParser
			p.Reset(nil)
			var req message.Request
			in := []byte(bm.in)
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				if err := parseRequest(&p, &req, in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkResponseParser(b *testing.B) {
	var p ResponseParser
	p.Reset(nil)
	var resp message.Response
	in, get := []byte(jsonResponse), []byte("GET")
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		p.Expect(get)
		if err := parseResponse(&p, &resp, in); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendRequest(b *testing.B) {
	var p RequestParser
	p.Reset(nil)
	var req message.Request
	if err := parseRequest(&p, &req, []byte(browserRequest)); err != nil {
		b.Fatal(err)
	}
	buf := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		buf = AppendRequest(buf[:0], &req)
	}
}

func BenchmarkAppendResponse(b *testing.B) {
	var p ResponseParser
	p.Reset(nil)
	var resp message.Response
	if err := parseResponse(&p, &resp, []byte(jsonResponse)); err != nil {
		b.Fatal(err)
	}
	buf := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		buf = AppendResponse(buf[:0], &resp, ResponseOptions{Minor: 1, KeepAlive: true})
	}
}

// TestAllocations holds the codec to no allocation per message in steady state.
func TestAllocations(t *testing.T) {
	var (
		reqs    RequestParser
		resps   ResponseParser
		req     message.Request
		resp    message.Response
		get     = []byte("GET")
		in      = []byte(browserRequest)
		nominee = []byte("GET / HTTP/1.1\r\nHost: [::1]:80\r\nConnection: x-a, close\r\nX-A: 1\r\nTE: trailers\r\n\r\n")
		chunks  = []byte("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n")
		out     = []byte(jsonResponse)
		buf     = make([]byte, 0, 4096)
	)
	reqs.Reset(nil)
	resps.Reset(nil)
	for _, tt := range []struct {
		name string
		run  func() error
	}{
		{"request", func() error { return parseRequest(&reqs, &req, in) }},
		{"nominated", func() error { return parseRequest(&reqs, &req, nominee) }},
		{"chunked", func() error { return parseRequest(&reqs, &req, chunks) }},
		{"trailers", func() error { buf = AppendLastChunk(buf[:0], reqs.Trailers()); return nil }},
		{"response", func() error { resps.Expect(get); return parseResponse(&resps, &resp, out) }},
		{"append request", func() error { buf = AppendRequest(buf[:0], &req); return nil }},
		{"append response", func() error { buf = AppendResponse(buf[:0], &resp, Framing(&resp, 1, true)); return nil }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if n := testing.AllocsPerRun(100, func() {
				if err := tt.run(); err != nil {
					t.Fatal(err)
				}
			}); n != 0 {
				t.Errorf("%v allocations per run", n)
			}
		})
	}
}

// parseRequest parses one whole request.
func parseRequest(p *RequestParser, req *message.Request, in []byte) error {
	for {
		n, ev, _, err := p.Next(req, in)
		if in = in[n:]; err != nil || ev == End || ev == None {
			return err
		}
	}
}

// parseResponse parses one whole response.
func parseResponse(p *ResponseParser, resp *message.Response, in []byte) error {
	for {
		n, ev, _, err := p.Next(resp, in)
		if in = in[n:]; err != nil || ev == End || ev == None {
			return err
		}
	}
}
