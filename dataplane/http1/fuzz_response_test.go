package http1

import (
	"bytes"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/dataplane/message"
)

func FuzzResponseParser(f *testing.F) {
	for _, in := range []string{
		jsonResponse,
		"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nhello",
		"HTTP/1.0 200 OK\r\nConnection: keep-alive, x-a\r\nX-A: 1\r\nContent-Length: 3\r\n\r\nabc",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n3 ;a=b\r\nabc\r\n0\r\nX-T: 1\r\n\r\n",
		"HTTP/1.1 200\r\nA : b\r\n c\r\n\r\nuntil close",
		"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n",
		"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
		"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nxx",
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nx",
		"HTTP/1.1 200 O\x01K\r\n\r\n",
		"HTTP/1.1 200 OK\n\n",
	} {
		f.Add([]byte(in), uint16(len(in)/2), false)
		f.Add([]byte(in), uint16(17), true)
	}
	for _, in := range responseLaxerExamples {
		f.Add([]byte(in), uint16(20), false)
	}
	for _, d := range responseStricter {
		f.Add([]byte(d.example), uint16(20), false)
	}
	f.Fuzz(func(t *testing.T, in []byte, cut uint16, head bool) {
		if len(in) > 1<<10 {
			return
		}
		method := "GET"
		if head {
			method = "HEAD"
		}
		checkSame(t, in, int(cut), func(p ...[]byte) (transcript, []byte) {
			return responseTranscript(nil, []string{method}, true, p...)
		})
		compareResponse(t, in, method)
	})
}

// firstResponse parses the first head of in and what belongs to it. A 1xx head
// is a whole message.
func firstResponse(resp *message.Response, in []byte, method string) (v verdict) {
	var p ResponseParser
	p.Reset(nil)
	p.Expect([]byte(method))
	for {
		n, ev, data, err := p.Next(resp, in)
		in = in[n:]
		if ev == None && err == nil {
			if ev, err = p.EOF(); ev == None && err == nil {
				v.whole = true // a tunnel
				return v
			}
		}
		var re *message.RequestError
		switch {
		case errors.As(err, &re):
			v.reason = re.Reason
			return v
		case ev == Head:
			if resp.Informational() {
				v.whole = true
				return v
			}
		case ev == Data:
			v.body = append(v.body, data...)
		case ev == End:
			v.whole = true
			v.trailers = comparableHeader(p.Trailers())
			return v
		}
	}
}

// compareResponse compares the codec with net/http over the first head of in.
func compareResponse(t *testing.T, in []byte, method string) {
	if spacedFraming.Match(in) {
		return // net/http keeps the space in the name, and so frames the message without the field
	}
	t.Helper()
	var resp message.Response
	v := firstResponse(&resp, in, method)

	std, body, err := stdResponse(in, method)
	switch {
	case v.reason != "":
		if err == nil {
			checkDifference(t, responseStricter, in, v.reason)
		}
		return
	case !v.whole:
		t.Fatalf("%q: neither a response nor an error", in)
	case err != nil:
		if !responseLaxer(in, err) {
			t.Fatalf("%q: the codec takes it, net/http says %v", in, err)
		}
		return
	}

	status := std.Status[min(len(std.Status), 3):]
	if resp.Status != std.StatusCode || int(resp.Minor) != min(std.ProtoMinor, 1) ||
		strings.Trim(string(resp.Reason), " \t") != strings.Trim(status, " \t") {
		t.Fatalf("%q: %d %q of 1.%d, want %q of %s", in, resp.Status, resp.Reason, resp.Minor, std.Status, std.Proto)
	}
	if lengthKnown(&resp, std) && resp.ContentLength != std.ContentLength {
		t.Fatalf("%q: length %d, want %d", in, resp.ContentLength, std.ContentLength)
	}
	want, got := folded(endToEnd(spaceless(std.Header))), folded(comparableHeader(&resp.Headers))
	if len(spaceless(std.Header)) != len(std.Header) {
		// Two of its names are one: it does not tell the order of the values.
		sortValues(want)
		sortValues(got)
	}
	if diff := diffHeader(want, got); diff != "" {
		t.Fatalf("%q: (-net/http +codec)\n%s", in, diff)
	}
	if resp.Status != 101 && !bytes.Equal(v.body, body) {
		t.Fatalf("%q: body %q, want %q", in, v.body, body)
	}
	if want := allowedTrailers(std.Trailer); len(want)+len(v.trailers) > 0 {
		if diff := cmp.Diff(want, v.trailers); diff != "" {
			t.Fatalf("%q: trailers (-net/http +codec)\n%s", in, diff)
		}
	}
}

// lengthKnown tells whether net/http reports the length by the same rules: it
// keeps one where RFC 9110, 8.6 forbids it or Transfer-Encoding overrides it, and
// forgets that of a 304.
func lengthKnown(r *message.Response, std *http.Response) bool {
	return r.Status >= 200 && r.Status != 204 && r.Status != 304 && (!r.Bodyless || len(std.TransferEncoding) == 0)
}

// spaceless renames the fields with white space before their colon, which
// net/http takes for a part of the name.
func spaceless(h http.Header) http.Header {
	out := http.Header{}
	for key, values := range h {
		key = http.CanonicalHeaderKey(strings.TrimRight(key, " \t"))
		out[key] = append(out[key], values...)
	}
	return out
}

// sortValues sorts the values of each field.
func sortValues(h http.Header) {
	for _, values := range h {
		slices.Sort(values)
	}
}

// folded joins the white space in values: net/http makes one space of an
// obs-fold, the codec several.
func folded(h http.Header) http.Header {
	out := http.Header{}
	for key, values := range h {
		for _, v := range values {
			out[key] = append(out[key], strings.Join(strings.FieldsFunc(v, func(r rune) bool { return r == ' ' || r == '\t' }), " "))
		}
	}
	return out
}

// responseLaxer tells whether err is a known reason for net/http to refuse a
// response that the codec takes. DESIGN.md has the table.
func responseLaxer(in []byte, err error) bool {
	return spaceBeforeExtension.Match(in) ||
		tabBeforeColon.Match(in) && strings.HasPrefix(err.Error(), "malformed MIME header") ||
		strings.HasPrefix(err.Error(), "bad Content-Length ") && strings.Contains(err.Error(), ",") ||
		strings.EqualFold(err.Error(), `unsupported transfer encoding: "identity"`)
}
