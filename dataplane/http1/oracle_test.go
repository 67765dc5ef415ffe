package http1

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/dataplane/message"
)

// What the fuzz targets need to compare the codec with net/http.

// verdict is how a parser fared with the first message of an input.
type verdict struct {
	reason   string // of the error, "" when there was none
	whole    bool   // the message is complete
	body     []byte
	trailers http.Header
}

// checkSame fails when pieces of an input give another transcript than the
// whole.
func checkSame(t *testing.T, in []byte, cut int, of func(...[]byte) (transcript, []byte)) {
	t.Helper()
	whole, _ := of(in)
	var single [][]byte
	for i := range in {
		single = append(single, in[i:i+1])
	}
	ways := [][][]byte{single}
	if len(in) > 0 {
		cut %= len(in)
		ways = append(ways, [][]byte{in[:cut], in[cut:]})
	}
	for _, way := range ways {
		if again, _ := of(way...); !slices.Equal(whole, again) {
			t.Fatalf("%q in %d pieces, the first of %d bytes: (-whole +pieces)\n%s", in, len(way), len(way[0]), cmp.Diff(whole, again))
		}
	}
}

// comparableHeader puts a header block into the form that net/http uses.
func comparableHeader(h *message.Headers) http.Header {
	out := http.Header{}
	for _, f := range h.Fields() {
		key := http.CanonicalHeaderKey(string(f.Name))
		out[key] = append(out[key], string(f.Value))
	}
	return out
}

// endToEnd removes from what net/http has read, by plain means, what a codec of
// this package does not leave in a Headers.
func endToEnd(h http.Header) http.Header {
	out := http.Header{}
	for key, values := range h {
		if specialOf([]byte(key)) == ordinary {
			out[key] = values
		}
	}
	for _, value := range h["Connection"] {
		for option := range strings.SplitSeq(value, ",") {
			option = strings.Trim(option, " \t")
			for key := range out {
				if message.EqualFold([]byte(key), option) {
					delete(out, key)
				}
			}
		}
	}
	return out
}

// allowedTrailers removes the trailer fields that the codec drops.
func allowedTrailers(h http.Header) http.Header {
	out := http.Header{}
	for key, values := range h {
		if len(values) > 0 && trailerAllowed([]byte(key)) {
			out[key] = values
		}
	}
	return out
}

// diffHeader compares two header blocks; the fields that net/http changes are
// left out: it takes Trailer away and translates Pragma into Cache-Control.
func diffHeader(want, got http.Header) string {
	want, got = want.Clone(), got.Clone()
	for _, h := range []http.Header{want, got} {
		h.Del("Trailer")
		if _, ok := h["Pragma"]; ok {
			h.Del("Cache-Control")
		}
	}
	if len(want) == 0 && len(got) == 0 {
		return ""
	}
	return cmp.Diff(want, got)
}

// stdRequest reads the first request of in by net/http, which takes no empty
// lines before it.
func stdRequest(in []byte) (*http.Request, []byte, error) {
	std, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(bytes.TrimLeft(in, "\r\n"))))
	if err != nil {
		return nil, nil, err
	}
	body, err := io.ReadAll(std.Body)
	return std, body, err
}

// stdResponse reads the first head of in, and what belongs to it, by net/http.
func stdResponse(in []byte, method string) (*http.Response, []byte, error) {
	std, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(in)), &http.Request{Method: method})
	if err != nil || std.StatusCode == 101 {
		return std, nil, err
	}
	body, err := io.ReadAll(std.Body)
	return std, body, err
}

// spaceBeforeExtension is white space between a chunk's size and its extensions,
// which RFC 9112, 7.1.1 tells a recipient to take and net/http does not.
var spaceBeforeExtension = regexp.MustCompile(`[0-9A-Fa-f][ \t]+;`)

// tabBeforeColon is white space with a tab between a field's name and its colon:
// net/http keeps spaces there, and refuses tabs.
var tabBeforeColon = regexp.MustCompile(`\t[ \t]*:`)

// spacedFraming is a field that frames a message, with white space before its
// colon: the codec removes it from a response, net/http does not.
var spacedFraming = regexp.MustCompile(`(?i)\n(content-length|transfer-encoding|connection|trailer|upgrade)[ \t]+:`)
