package http1

import (
	"bufio"
	"bytes"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/dataplane/message"
)

func FuzzRequestParser(f *testing.F) {
	for _, tt := range requestFaults() {
		if len(tt.in) < 2000 {
			f.Add([]byte(tt.in), uint16(len(tt.in)/2))
		}
	}
	for _, d := range requestStricter {
		f.Add([]byte(d.example), uint16(20))
	}
	for _, in := range requestLaxerExamples {
		f.Add([]byte(in), uint16(20))
	}
	f.Add([]byte(browserRequest), uint16(40))
	f.Add([]byte("POST http://b/p?q HTTP/1.0\r\nConnection: keep-alive, x-a\r\nX-A: 1\r\nContent-Length: 3\r\n\r\nabc\r\n\r\nGET / HTTP/1.1\r\nHost:\r\n\r\n"), uint16(40))
	f.Add([]byte("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n3;a=b\r\nabc\r\n0\r\nX-T: 1\r\n\r\n"), uint16(70))
	f.Fuzz(func(t *testing.T, in []byte, cut uint16) {
		if len(in) > 1<<10 {
			return
		}
		checkSame(t, in, int(cut), func(p ...[]byte) (transcript, []byte) { return requestTranscript(nil, p...) })
		compareRequest(t, in)
	})
}

// firstRequest parses the first request of in.
func firstRequest(req *message.Request, in []byte) (v verdict, p *RequestParser) {
	p = new(RequestParser)
	p.Reset(nil)
	for {
		n, ev, data, err := p.Next(req, in)
		in = in[n:]
		var re *message.RequestError
		switch {
		case errors.As(err, &re):
			v.reason = re.Reason
			return v, p
		case ev == None:
			return v, p
		case ev == Data:
			v.body = append(v.body, data...)
		case ev == End:
			v.whole = true
			v.trailers = comparableHeader(p.Trailers())
			return v, p
		}
	}
}

// compareRequest compares the codec with net/http over the first request of in.
func compareRequest(t *testing.T, in []byte) {
	t.Helper()
	var req message.Request
	v, p := firstRequest(&req, in)

	std, body, err := stdRequest(in)
	switch {
	case v.reason != "":
		if err == nil {
			checkDifference(t, requestStricter, in, v.reason)
		}
		return
	case !v.whole:
		if err == nil {
			t.Fatalf("%q: net/http takes it, the codec waits for more", in)
		}
		return
	case err != nil:
		if !requestLaxer(in, &req) {
			t.Fatalf("%q: the codec takes it, net/http says %v", in, err)
		}
		return
	}

	if string(req.Method) != std.Method || int(req.Major) != std.ProtoMajor || int(req.Minor) != min(std.ProtoMinor, 1) {
		t.Fatalf("%q: %s of %d.%d, want %s of %s", in, req.Method, req.Major, req.Minor, std.Method, std.Proto)
	}
	target := string(req.Path)
	if req.HasQuery {
		target += "?" + string(req.Query)
	}
	if want := originForm(std); target != want {
		t.Fatalf("%q: target %q, want %q", in, target, want)
	}
	if string(req.Host) != std.Host {
		t.Fatalf("%q: host %q, want %q", in, req.Host, std.Host)
	}
	if req.ContentLength != std.ContentLength {
		t.Fatalf("%q: length %d, want %d", in, req.ContentLength, std.ContentLength)
	}
	if p.KeepAlive() == std.Close {
		t.Fatalf("%q: KeepAlive is %v", in, p.KeepAlive())
	}
	if diff := diffHeader(endToEnd(std.Header), comparableHeader(&req.Headers)); diff != "" {
		t.Fatalf("%q: (-net/http +codec)\n%s", in, diff)
	}
	if !bytes.Equal(v.body, body) {
		t.Fatalf("%q: body %q, want %q", in, v.body, body)
	}
	if want := allowedTrailers(std.Trailer); len(want)+len(v.trailers) > 0 {
		if diff := cmp.Diff(want, v.trailers); diff != "" {
			t.Fatalf("%q: trailers (-net/http +codec)\n%s", in, diff)
		}
	}

	// What is written must be read the same by net/http.
	out := AppendRequest(nil, &req)
	again, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(out)))
	if err != nil {
		t.Fatalf("%q: written %q: net/http says %v", in, out, err)
	}
	if again.Method != std.Method || again.RequestURI != target || again.Host != std.Host {
		t.Fatalf("%q: written %q: net/http reads %s %s of %s", in, out, again.Method, again.RequestURI, again.Host)
	}
	if diff := diffHeader(endToEnd(std.Header), endToEnd(again.Header)); diff != "" {
		t.Fatalf("%q: written %q: (-first +second)\n%s", in, out, diff)
	}
}

// originForm returns the target of a request without scheme and authority.
func originForm(r *http.Request) string {
	target := r.RequestURI
	if target[0] == '/' || target == "*" {
		return target
	}
	_, target, _ = strings.Cut(target, "://")
	i := strings.IndexAny(target, "/?")
	switch {
	case i < 0 && r.Method == "OPTIONS":
		return "*"
	case i < 0:
		return "/"
	case target[i] == '?':
		return "/" + target[i:]
	}
	return target[i:]
}

// requestLaxer tells whether there is a known reason for net/http to refuse a
// request that the codec takes. DESIGN.md has the table.
func requestLaxer(in []byte, r *message.Request) bool {
	if r.ContentLength == message.Unknown && spaceBeforeExtension.Match(in) {
		return true
	}
	// It parses the target as a URL; here the exchange does, later.
	target := string(r.Path)
	if r.HasQuery {
		target += "?" + string(r.Query)
	}
	if _, err := url.ParseRequestURI(target); err != nil {
		return true
	}
	if _, err := url.ParseRequestURI("http://" + string(r.Host) + "/"); err != nil {
		return true
	}
	// It refuses to announce these as trailers.
	if value, ok := r.Headers.Combined("Trailer"); ok {
		for name := range strings.SplitSeq(string(value), ",") {
			switch http.CanonicalHeaderKey(strings.TrimSpace(name)) {
			case "Transfer-Encoding", "Trailer", "Content-Length":
				return true
			}
		}
	}
	return false
}
