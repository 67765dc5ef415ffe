package http1

import (
	"bytes"
	"strings"
	"testing"

	"github.com/headgate/headgate/dataplane/message"
)

// FuzzAppend writes messages with any bytes in them. Whatever they are, one
// message must come out, and no field that was not put in.
func FuzzAppend(f *testing.F) {
	f.Add("GET", "/a", "b=c", "a.example", "X-A", "1", "websocket", int64(0))
	f.Add("PO ST\r\n", "/a b\r\nX: y", "c#d\x00", "a b\n", "Content-Length", "5", "a\r\nb", int64(-1))
	f.Add("OPTIONS", "*", "?", "", "A:b", "c\r\n\r\nGET / HTTP/1.1", "h2c", int64(7))
	f.Fuzz(func(t *testing.T, method, path, query, host, name, value, upgrade string, length int64) {
		if len(method)+len(path)+len(query)+len(host)+len(name)+len(value)+len(upgrade) > 4<<10 {
			return
		}
		if path != "*" {
			path = "/" + path
		}
		if length = max(length, message.Unknown); length > 100 {
			length = 100
		}
		req := message.Request{
			Method: []byte(method), Path: []byte(path), Query: []byte(query), HasQuery: query != "", Host: []byte(host),
			ContentLength: length, Upgrade: []byte(upgrade), ExpectContinue: length != 0, AcceptsTrailers: len(name)%2 == 0,
		}
		req.Headers.Add(name, value)
		out := AppendRequest(nil, &req)
		if n := len(name) + len(value) + len(method) + len(host) + len(upgrade) + 3*len(path+query) + 200; len(out) > n {
			t.Fatalf("%q: more than %d bytes", out, n)
		}
		checkWritten(t, out, appendBody(out, length, &req.Headers), name, value, func(b []byte) (transcript, []byte) { return requestTranscript(nil, b) })

		resp := message.Response{Status: 200 + int(uint64(length)%100), Reason: []byte(method), ContentLength: length, Upgrade: []byte(upgrade)}
		resp.Headers.Add(name, value)
		if resp.Status == 204 {
			resp.Bodyless, length = true, 0
		}
		out = AppendResponse(nil, &resp, Framing(&resp, 1, true))
		checkWritten(t, out, appendBody(out, length, &resp.Headers), name, value, func(b []byte) (transcript, []byte) {
			return responseTranscript(nil, nil, false, b)
		})
	})
}

// appendBody appends a body behind a head.
func appendBody(head []byte, length int64, trailers *message.Headers) []byte {
	out := bytes.Clone(head)
	if length == message.Unknown {
		return AppendLastChunk(AppendChunk(out, []byte("data\r\n\r\n")), trailers)
	}
	return append(out, bytes.Repeat([]byte("x"), int(length))...)
}

// checkWritten checks that a written head has only the lines that it may have,
// and that the codec's own parser finds one message or one fault of what was
// written as it was told: an empty method, an invalid host or path.
func checkWritten(t *testing.T, head, whole []byte, name, value string, parse func([]byte) (transcript, []byte)) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(string(head), "\r\n\r\n"), "\r\n")
	for _, line := range lines[1:] {
		if i := strings.IndexAny(line, "\r\n\x00"); i >= 0 {
			t.Fatalf("%q: a control character in %q", head, line)
		}
		key, _, _ := strings.Cut(line, ":")
		if specialOf([]byte(key)) == ordinary && line != name+": "+value {
			t.Fatalf("%q: nobody asked for %q", head, line)
		}
	}
	got, rest := parse(whole)
	ends := 0
	for i, entry := range got {
		if strings.HasPrefix(entry, "end") {
			ends++
		}
		if len(entry) > 4 && entry[3] == ' ' && (entry[0] == '4' || entry[0] == '5') && i > 0 {
			t.Fatalf("%q: a fault behind the head: %q", whole, got)
		}
	}
	if ends > 1 || len(rest) > 0 && ends > 0 || len(got) == 0 {
		t.Fatalf("%q: %q, and %q is left", whole, got, rest)
	}
	if ends == 0 && !knownFaults[got[0]] {
		t.Fatalf("%q: %q", whole, got)
	}
}

// knownFaults are those of what the writers write as they are told.
var knownFaults = map[string]bool{
	"400 bad_method":            true, // an empty one
	"501 method_too_long":       true,
	"501 connect_not_supported": true,
	"400 bad_target":            true, // "*" without OPTIONS, or with a query
	"400 bad_host":              true,
	"414 request_line_too_long": true,
}
