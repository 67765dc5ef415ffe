package http2

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	xhttp2 "golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/headgate/headgate/dataplane/http1"
	"github.com/headgate/headgate/dataplane/message"
)

// peer writes a client's frames.
type peer struct {
	*xhttp2.Framer
	out bytes.Buffer
	enc *hpack.Encoder
	blk bytes.Buffer
}

// newPeer returns a peer that has sent its preface and settings.
func newPeer() *peer {
	p := &peer{}
	p.Framer = xhttp2.NewFramer(&p.out, nil)
	p.AllowIllegalWrites = true
	p.enc = hpack.NewEncoder(&p.blk)
	p.out.WriteString(preface)
	_ = p.WriteSettings()
	return p
}

// block encodes fields: name, value, name, value.
func (p *peer) block(fields ...string) []byte {
	p.blk.Reset()
	for i := 0; i < len(fields); i += 2 {
		_ = p.enc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return bytes.Clone(p.blk.Bytes())
}

var basic = []string{":method", "GET", ":scheme", "https", ":authority", "a.test", ":path", "/p?q"}

// with returns the fields of a request with more of them behind.
func with(more ...string) []string { return append(append([]string(nil), basic...), more...) }

// without returns the fields of a request but for one, and more of them.
func without(name string, more ...string) []string {
	var out []string
	for i := 0; i < len(basic); i += 2 {
		if basic[i] != name {
			out = append(out, basic[i], basic[i+1])
		}
	}
	return append(out, more...)
}

// head sends a HEADERS frame, and CONTINUATION frames when it is long.
func (p *peer) head(stream uint32, end bool, fields ...string) {
	b := p.block(fields...)
	n := min(len(b), maxFrame)
	_ = p.WriteHeaders(xhttp2.HeadersFrameParam{StreamID: stream, BlockFragment: b[:n], EndStream: end, EndHeaders: n == len(b)})
	for b = b[n:]; len(b) > 0; b = b[n:] {
		n = min(len(b), maxFrame)
		_ = p.WriteContinuation(stream, n == len(b), b[:n])
	}
}

// server is a Conn under test with what its owner does.
type server struct {
	*Conn
	now     time.Time
	spare   *Stream
	req     message.Request
	rest    []byte
	log     []string
	streams map[uint32]*Stream
	credit  bool // bodies are taken at once
	err     error
}

func newServer(l *http1.Limits) *server {
	return &server{Conn: New(l), now: time.Unix(1, 0), streams: map[uint32]*Stream{}, credit: true}
}

// feed gives the codec input and notes its events.
func (s *server) feed(p []byte) {
	s.rest = append(s.rest, p...)
	for s.err == nil {
		if s.spare == nil {
			s.spare = &Stream{}
		}
		n, ev, err := s.Next(s.now, s.spare, &s.req, s.rest)
		s.rest = s.rest[n:]
		if err != nil {
			s.err = err
			var ce *ConnError
			if errors.As(err, &ce) {
				s.log = append(s.log, fmt.Sprintf("error %d %s", ce.Code, ce.Reason))
			}
			return
		}
		if ev.Kind == None {
			return
		}
		s.note(&ev)
	}
}

func (s *server) note(ev *Event) {
	id := uint32(0)
	if ev.Stream != nil {
		id = ev.Stream.ID()
	}
	reason := ""
	var re *message.RequestError
	if errors.As(ev.Err, &re) {
		reason = fmt.Sprintf(" %d %s", re.Status, re.Reason)
	}
	last := ""
	if ev.Last {
		last = " last"
	}
	switch ev.Kind {
	case Head:
		s.streams[id] = s.spare
		s.spare = nil
		s.log = append(s.log, fmt.Sprintf("%d head %s%s%s", id, describe(&s.req), last, reason))
	case Data:
		if s.credit {
			s.Credit(ev.Stream, len(ev.Data))
		}
		text := string(ev.Data)
		if ev.Data[0] == 0 {
			text = "" // a large one
		}
		s.log = append(s.log, fmt.Sprintf("%d data %s%s", id, text, last))
	case End:
		text := ""
		if ev.Trailers != nil {
			text = fields(ev.Trailers)
		}
		s.log = append(s.log, fmt.Sprintf("%d end%s", id, text))
	case Reset:
		s.log = append(s.log, fmt.Sprintf("%d reset %d%s", id, ev.Code, reason))
	case Window:
		s.log = append(s.log, fmt.Sprintf("%d window", id))
	case GoAway:
		s.log = append(s.log, "goaway")
	case Pong:
		s.log = append(s.log, "pong")
	case None:
	}
}

func describe(r *message.Request) string {
	query := ""
	if r.HasQuery {
		query = "?" + string(r.Query)
	}
	return fmt.Sprintf("%s %s %s%s %d%s", r.Method, r.Host, r.Path, query, r.ContentLength, fields(&r.Headers))
}

func fields(h *message.Headers) string {
	var b strings.Builder
	for _, f := range h.Fields() {
		fmt.Fprintf(&b, " %s=%s", f.Name, f.Value)
	}
	return b.String()
}

// sent returns what the codec wants to be sent, as text, and empties it. The
// frames of the beginning are left out.
func (s *server) sent(t testing.TB) []string {
	t.Helper()
	var out []string
	r := xhttp2.NewFramer(nil, bytes.NewReader(s.Out))
	r.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	for {
		f, err := r.ReadFrame()
		if err != nil {
			break
		}
		switch f := f.(type) {
		case *xhttp2.SettingsFrame:
			if f.IsAck() {
				out = append(out, "settings ack")
			}
		case *xhttp2.RSTStreamFrame:
			out = append(out, fmt.Sprintf("%d reset %d", f.StreamID, f.ErrCode))
		case *xhttp2.GoAwayFrame:
			out = append(out, fmt.Sprintf("goaway %d %d %s", f.LastStreamID, f.ErrCode, f.DebugData()))
		case *xhttp2.PingFrame:
			out = append(out, fmt.Sprintf("ping %v %s", f.IsAck(), f.Data[:]))
		case *xhttp2.WindowUpdateFrame:
			out = append(out, fmt.Sprintf("%d window %d", f.StreamID, f.Increment))
		case *xhttp2.DataFrame:
			out = append(out, fmt.Sprintf("%d data %d %v", f.StreamID, len(f.Data()), f.StreamEnded()))
		case *xhttp2.MetaHeadersFrame:
			text := fmt.Sprintf("%d head", f.StreamID)
			for _, h := range f.Fields {
				text += " " + h.Name + "=" + h.Value
			}
			if f.StreamEnded() {
				text += " end"
			}
			out = append(out, text)
		}
	}
	s.Out = nil
	return out
}

// run feeds what a peer has written, whole, byte by byte and in pieces, and
// returns the events: they must be the same, but for the pieces of bodies.
func run(t *testing.T, write func(*peer)) (log, sent []string) {
	t.Helper()
	for i, size := range []int{1 << 30, 1, 7, 1000} {
		p := newPeer()
		write(p)
		s := newServer(nil)
		if size == 1 && p.out.Len() > 200<<10 {
			continue
		}
		for in := p.out.Bytes(); len(in) > 0; {
			n := min(size, len(in))
			s.feed(in[:n])
			in = in[n:]
		}
		got, out := merge(s.log), s.sent(t)[:]
		if i == 0 {
			log, sent = got, out
			continue
		}
		if strings.Join(got, "\n") != strings.Join(log, "\n") {
			t.Errorf("in pieces of %d:\n%s\nbut whole:\n%s", size, strings.Join(got, "\n"), strings.Join(log, "\n"))
		}
	}
	return log, sent
}

// merge joins the pieces of a body.
func merge(log []string) []string {
	var out []string
	for _, e := range log {
		if i := len(out) - 1; i >= 0 && strings.Contains(e, " data ") && strings.Contains(out[i], " data ") && !strings.HasSuffix(out[i], "last") &&
			strings.Split(e, " ")[0] == strings.Split(out[i], " ")[0] {
			out[i] += strings.SplitN(e, " data ", 2)[1]
			out[i] = strings.Replace(out[i], " last", "", 1)
			if strings.HasSuffix(e, " last") {
				out[i] += " last"
			}
			continue
		}
		out = append(out, e)
	}
	return out
}

// raw appends a frame as it is.
func (p *peer) raw(kind, flags uint8, stream uint32, payload string) {
	p.out.Write(appendFrame(nil, len(payload), kind, flags, stream))
	p.out.WriteString(payload)
}

func setting(id uint16, value uint32) string {
	return string(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(nil, id), value))
}
