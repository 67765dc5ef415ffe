package http1

import (
	"strings"
	"testing"
)

func TestChunked(t *testing.T) {
	const head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
	for _, tt := range []struct {
		name string
		body string
		want transcript
	}{
		{"empty", "0\r\n\r\n", transcript{"end"}},
		{"B05 one byte per segment", "5\r\nhello\r\n0\r\n\r\n", transcript{"data hello", "end"}},
		{"several", "5\r\nhello\r\n1\r\n \r\n5\r\nworld\r\n0\r\n\r\n", transcript{"data hello world", "end"}},
		{"hex of both cases", "a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n", transcript{"data 01234567890123456789", "end"}},
		{"leading zeros", "0000000000000000000005\r\nhello\r\n000\r\n\r\n", transcript{"data hello", "end"}},
		{"data that looks like chunks", "5\r\n0\r\n\r\n\r\n0\r\n\r\n", transcript{"data 0\r\n\r\n", "end"}},
		{"B05 extensions", "5;a;b=c;d=\"e;f, \xff\"\r\nhello\r\n0;end\r\n\r\n", transcript{"data hello", "end"}},
		{"B05 bad white space", "5 ;x=y\r\nhello\r\n0\t; z = 1 \r\n\r\n", transcript{"data hello", "end"}},
		{"largest size", "7fffffffffffffff\r\nhello", transcript{"data hello"}},
		{"size whose double overflows", "6000000000000000\r\nhello", transcript{"data hello"}},
		{"trailers", "0\r\nX-Sum:  abc \r\nx-sum: d\r\nEmpty:\r\n\r\n", transcript{"end [X-Sum: abc] [x-sum: d] [Empty: ]"}},
		{"trailers that are not allowed", "1\r\nx\r\n0\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\nHost: b\r\nConnection: close\r\nAuthorization: x\r\n" +
			"Cookie: a\r\nCONTENT-TYPE: a\r\nX-Forwarded-For: 1\r\nIf-Match: *\r\nTE: trailers\r\nTrailer: a\r\nSet-Cookie: b\r\nX-Ok: 1\r\n\r\n",
			transcript{"data x", "end [X-Ok: 1]"}},
		{"names that start like forbidden ones", "0\r\nHosts: 1\r\nX-Forwarded: 2\r\nI: 3\r\n\r\n",
			transcript{"end [Hosts: 1] [X-Forwarded: 2] [I: 3]"}},
		{"next request", "1\r\nx\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: b\r\n\r\n", transcript{"data x", "end", "GET / 1.1 host=b", "end"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := append(transcript{"POST / 1.1 host=a chunked"}, tt.want...)
			checkSplits(t, head+tt.body, want, func(p ...[]byte) (transcript, []byte) { return requestTranscript(nil, p...) })
		})
	}
}

// TestChunkOverhead sends chunks whose lines cost more than their data pays for,
// and small chunks that are paid for.
func TestChunkOverhead(t *testing.T) {
	const head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
	got, _ := requestTranscript(nil, []byte(head+strings.Repeat("1;"+longText(1000)+"\r\nx\r\n", 30)))
	if n := len(got); got[n-1] != "400 chunk_overhead" {
		t.Errorf("long extensions: got %q", got)
	}
	got, _ = requestTranscript(nil, []byte(head+strings.Repeat("1;abcdefgh\r\nx\r\n", 10000)+"0\r\n\r\n"))
	if n := len(got); got[n-1] != "end" || len(got[1]) != len("data ")+10000 {
		t.Errorf("small chunks: got %.100q", got)
	}
	// A large chunk must not pay for everything that follows it.
	large := "100000\r\n" + strings.Repeat("x", 1<<20)
	got, _ = requestTranscript(nil, []byte(head), []byte(large), []byte("\r\n"+strings.Repeat("1;"+longText(1000)+"\r\nx\r\n", 30)))
	if n := len(got); got[n-1] != "400 chunk_overhead" {
		t.Errorf("behind a large chunk: got %.100q", got)
	}
}
