package http1

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/dataplane/message"
)

// A transcript is what a parser said about an input, one entry per head, body,
// end and error; pieces of a body are joined, so that transcripts of one input
// in different pieces are equal.
type transcript []string

// data adds a piece of a body.
func (t *transcript) data(p []byte) {
	if n := len(*t); n > 0 && strings.HasPrefix((*t)[n-1], "data ") {
		(*t)[n-1] += string(p)
		return
	}
	*t = append(*t, "data "+string(p))
}

func (t *transcript) end(trailers *message.Headers) {
	*t = append(*t, "end"+fields(trailers))
}

// fault adds an error and checks that it says who is at fault.
func (t *transcript) fault(err error, origin message.Origin) {
	var re *message.RequestError
	if !errors.As(err, &re) || re.Origin != origin || re.Err == nil {
		*t = append(*t, fmt.Sprintf("not a *message.RequestError of the %v: %#v", origin, err))
		return
	}
	*t = append(*t, fmt.Sprintf("%d %s", re.Status, re.Reason))
}

func fields(h *message.Headers) string {
	var s strings.Builder
	for _, f := range h.Fields() {
		fmt.Fprintf(&s, " [%s: %s]", f.Name, f.Value)
	}
	return s.String()
}

// describe writes a request head in one line.
func describe(r *message.Request, keepAlive bool) string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s %s", r.Method, r.Path)
	if r.HasQuery {
		fmt.Fprintf(&s, "?%s", r.Query)
	}
	fmt.Fprintf(&s, " %d.%d host=%s", r.Major, r.Minor, r.Host)
	if r.ContentLength == message.Unknown {
		s.WriteString(" chunked")
	} else if r.ContentLength > 0 {
		fmt.Fprintf(&s, " length=%d", r.ContentLength)
	}
	if r.Upgrade != nil {
		fmt.Fprintf(&s, " upgrade=%s", r.Upgrade)
	}
	if r.ExpectContinue {
		s.WriteString(" expect")
	}
	if r.AcceptsTrailers {
		s.WriteString(" trailers")
	}
	if !keepAlive {
		s.WriteString(" close")
	}
	return s.String() + fields(&r.Headers)
}

// describeResponse writes a response head in one line.
func describeResponse(r *message.Response) string {
	var s strings.Builder
	fmt.Fprintf(&s, "%d", r.Status)
	if r.Reason != nil {
		fmt.Fprintf(&s, " %q", r.Reason)
	}
	fmt.Fprintf(&s, " %d.%d", r.Major, r.Minor)
	if r.ContentLength == message.Unknown {
		s.WriteString(" unknown")
	} else {
		fmt.Fprintf(&s, " length=%d", r.ContentLength)
	}
	if r.Bodyless {
		s.WriteString(" bodyless")
	}
	if r.Upgrade != nil {
		fmt.Fprintf(&s, " upgrade=%s", r.Upgrade)
	}
	return s.String() + fields(&r.Headers)
}

// requestTranscript feeds the pieces to a new parser. What the parser does not
// consume is presented again, in new memory, with the next piece behind it; the
// old memory is overwritten, as a read buffer is.
func requestTranscript(l *Limits, pieces ...[]byte) (t transcript, rest []byte) {
	var p RequestParser
	var req message.Request
	p.Reset(l)
	head := ""
	var failure error
	rest = feed(pieces, func(b []byte) (int, bool) {
		n, ev, data, err := p.Next(&req, b)
		switch {
		case failure != nil:
			if err != failure || n != 0 {
				t = append(t, "the error is not final")
			}
			return len(b), false
		case err != nil:
			failure = err
			t.fault(err, message.Client)
			if p.KeepAlive() || !p.Started() {
				t = append(t, "the connection goes on")
			}
			return n, true
		case ev == None:
			return n, false
		case ev == Head:
			head = describe(&req, p.KeepAlive())
			t = append(t, head)
		case ev == Data:
			t.data(data)
		case ev == End:
			if again := describe(&req, p.KeepAlive()); again != head {
				t = append(t, "the head has changed: "+again)
			}
			t.end(p.Trailers())
		}
		return n, true
	})
	return t, rest
}

// responseTranscript is requestTranscript for responses to methods, one after
// the other. At the end of the pieces comes the connection's end when eof is set.
func responseTranscript(l *Limits, methods []string, eof bool, pieces ...[]byte) (t transcript, rest []byte) {
	var p ResponseParser
	var resp message.Response
	p.Reset(l)
	expect := func() {
		method := "GET"
		if len(methods) > 0 {
			method, methods = methods[0], methods[1:]
		}
		p.Expect([]byte(method))
	}
	end := func() {
		t.end(p.Trailers())
		if !p.KeepAlive() {
			t = append(t, "close")
		}
		expect()
	}
	expect()
	var failure error
	rest = feed(pieces, func(b []byte) (int, bool) {
		n, ev, data, err := p.Next(&resp, b)
		switch {
		case failure != nil:
			if err != failure || n != 0 {
				t = append(t, "the error is not final")
			}
			return len(b), false
		case err != nil:
			failure = err
			t.fault(err, message.Upstream)
			return n, true
		case ev == None:
			return n, false
		case ev == Head:
			t = append(t, describeResponse(&resp))
		case ev == Data:
			t.data(data)
		case ev == End:
			end()
		}
		return n, true
	})
	if eof {
		switch ev, err := p.EOF(); {
		case failure != nil:
			if err != failure {
				t = append(t, "the error is not final")
			}
		case err != nil:
			t.fault(err, message.Upstream)
		case ev == End:
			end()
		case ev == None:
			t = append(t, "tunnel")
		}
	}
	return t, rest
}

// feed gives the pieces to next, which tells what it consumed and whether it
// wants to be called again at once.
func feed(pieces [][]byte, next func([]byte) (int, bool)) (rest []byte) {
	for _, piece := range pieces {
		b := append(append([]byte(nil), rest...), piece...)
		rest = b
		for more := true; more; {
			var n int
			n, more = next(rest)
			rest = rest[n:]
		}
		rest = append([]byte(nil), rest...)
		for i := range b {
			b[i] = '#'
		}
	}
	return rest
}

// pieces returns ways to cut in: byte by byte, and in two at every place. Of
// long inputs, the pieces are longer and the places are fewer.
func pieces(in string) (ways [][][]byte) {
	step := 1 + len(in)/2000*53
	var single [][]byte
	for i := 0; i < len(in); i += step {
		single = append(single, []byte(in[i:min(i+step, len(in))]))
		if i > 0 {
			ways = append(ways, [][]byte{[]byte(in[:i]), []byte(in[i:])})
		}
	}
	return append(ways, single)
}

// checkSplits checks that of, which gives a transcript, gives want for in as a
// whole and in pieces.
func checkSplits(t *testing.T, in string, want transcript, of func(...[]byte) (transcript, []byte)) {
	t.Helper()
	got, rest := of([]byte(in))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%.200q: (-want +got)\n%s", in, diff)
	}
	for _, way := range pieces(in) {
		again, restAgain := of(way...)
		if diff := cmp.Diff(got, again); diff != "" {
			t.Fatalf("%.200q in %d pieces, the first of %d bytes: (-whole +pieces)\n%s", in, len(way), len(way[0]), diff)
		}
		if n := len(got); n > 0 && got[n-1][0] != '4' && got[n-1][0] != '5' && string(rest) != string(restAgain) {
			t.Fatalf("%.200q in pieces: %q is left, want %q", in, restAgain, rest)
		}
	}
}
