package http1

import (
	"bytes"
	"io"
	"net/http/httputil"
	"testing"
)

func FuzzChunked(f *testing.F) {
	for _, in := range []string{
		"5\r\nhello\r\n0\r\n\r\n",
		"5;a=\"b\"\r\nhello\r\nA ; x\r\n0123456789\r\n000;y\r\nX-T: 1\r\n\r\nGET /",
		"5 \r\nhello\r\n0\r\n\r\n",
		"5\nhello\r\n0\r\n\r\n",
		"5;a\nb\r\nhello\r\n",
		"FFFFFFFFFFFFFFFF1\r\n",
		"7fffffffffffffff\r\nabc",
		"-1\r\n", "0x5\r\nhello\r\n0\r\n\r\n",
		"5\r\nhelloXX0\r\n\r\n",
		"1;aaaa\r\nx\r\n1;aaaa\r\nx\r\n0\r\nA: b\r\n c\r\n\r\n",
	} {
		f.Add([]byte(in), uint16(len(in)/2), false)
		f.Add([]byte(in), uint16(1), true)
	}
	f.Fuzz(func(t *testing.T, in []byte, cut uint16, lenient bool) {
		if len(in) > 1<<10 {
			return
		}
		checkSame(t, in, int(cut), func(p ...[]byte) (transcript, []byte) { return chunkedTranscript(lenient, p...) })
		compareChunked(t, in, lenient)
	})
}

// chunkedTranscript decodes one chunked body.
func chunkedTranscript(lenient bool, pieces ...[]byte) (t transcript, rest []byte) {
	var c chunked
	c.reset()
	over := false
	rest = feed(pieces, func(b []byte) (int, bool) {
		if over {
			return 0, false
		}
		n, ev, data, f := c.next(b, &Limits{}, lenient)
		switch {
		case f != nil:
			over = true
			t = append(t, "fault "+f.reason)
		case ev == Data:
			t.data(data)
		case ev == End:
			over = true
			t.end(&c.trailers)
		}
		return n, ev != None
	})
	return t, rest
}

// compareChunked compares the decoder with net/http's, which ends before the
// trailers.
func compareChunked(t *testing.T, in []byte, lenient bool) {
	t.Helper()
	var c chunked
	c.reset()
	var data []byte
	for rest := in; ; {
		n, ev, p, f := c.next(rest, &Limits{}, lenient)
		rest = rest[n:]
		data = append(data, p...)
		std, err := io.ReadAll(httputil.NewChunkedReader(bytes.NewReader(in)))
		switch {
		case f != nil && c.state != inTrailers && err == nil:
			checkDifference(t, chunkedStricter, in, f.reason)
			return
		case ev == None && f == nil && err == nil && c.state != inTrailers:
			t.Fatalf("%q: net/http takes it, the codec waits for more", in)
		case ev == End && err != nil && spaceBeforeExtension.Match(in):
			return
		case ev == End && (err != nil || !bytes.Equal(std, data)):
			t.Fatalf("%q: got %q, net/http %q and %v", in, data, std, err)
		case ev == End || ev == None:
			return
		}
	}
}
