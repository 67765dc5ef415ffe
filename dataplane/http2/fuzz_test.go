package http2

import (
	"bytes"
	"testing"
	"time"

	xhttp2 "golang.org/x/net/http2"

	"github.com/headgate/headgate/dataplane/message"
)

// FuzzConn gives the codec what a client may send, in pieces, answers what it
// can, and holds it to its promises: no panic, progress, the same events however
// the input is cut, windows that are kept, memory that is bounded, and output
// that another implementation takes for frames.
func FuzzConn(f *testing.F) {
	for _, write := range []func(*peer){
		func(p *peer) { p.head(1, true, basic...) },
		func(p *peer) {
			p.head(1, false, with("content-length", "4")...)
			_ = p.WriteDataPadded(1, false, []byte("ab"), make([]byte, 5))
			_ = p.WriteData(1, true, []byte("cd"))
			_ = p.WriteWindowUpdate(0, 1000)
		},
		func(p *peer) {
			p.head(1, false, basic...)
			p.head(3, true, with("cookie", "a", "cookie", "b")...)
			_ = p.WriteRSTStream(3, 8)
			p.head(1, true, "trailer-field", "x")
			p.raw(frameSettings, 0, 0, setting(4, 5)+setting(1, 0))
		},
		func(p *peer) {
			b := p.block(basic...)
			_ = p.WriteHeaders(xhttp2.HeadersFrameParam{StreamID: 1, BlockFragment: b[:2], PadLength: 3, Priority: xhttp2.PriorityParam{Weight: 1}})
			_ = p.WriteContinuation(1, true, b[2:])
			_ = p.WritePing(false, [8]byte{})
			_ = p.WriteGoAway(0, 0, nil)
		},
	} {
		p := newPeer()
		write(p)
		f.Add(p.out.Bytes()[len(preface):], uint16(3))
	}
	f.Fuzz(func(t *testing.T, in []byte, cut uint16) {
		in = append([]byte(preface), in...)
		whole := drive(t, in, len(in))
		pieces := drive(t, in, int(cut)%300+1)
		if !bytes.Equal(whole, pieces) {
			t.Fatalf("whole:\n%s\nin pieces:\n%s", whole, pieces)
		}
	})
}

// drive feeds a codec and returns its events but for the pieces of bodies.
func drive(t *testing.T, in []byte, size int) []byte {
	s := newServer(nil)
	var log []byte
	for len(in) > 0 && s.err == nil {
		n := min(size, len(in))
		s.now = time.Unix(1, 0) // pieces must not earn more than the whole
		s.log = nil
		s.feedAnswering(in[:n])
		in = in[n:]
		for _, e := range s.log {
			log = append(append(log, e...), '\n')
		}
		if len(s.rest) > frameHeader+maxFrame {
			t.Fatalf("%d bytes are not consumed", len(s.rest))
		}
		if c := cap(s.head.block); c > 4*s.maxBlock() {
			t.Fatalf("%d bytes of a block", c)
		}
		if s.Streams() > MaxStreams || s.recvWindow < 0 || s.recvWindow > connWindow || s.sendWindow > maxWindow || s.widened > maxWidened {
			t.Fatalf("streams %d, windows %d %d %d", s.Streams(), s.recvWindow, s.sendWindow, s.widened)
		}
		for _, st := range s.Conn.streams {
			if st.recvWindow < 0 || st.recvWindow > wideWindow || st.sendWindow > maxWindow || !st.open {
				t.Fatalf("stream %d: windows %d %d", st.id, st.recvWindow, st.sendWindow)
			}
		}
	}
	checkFrames(t, s.Out)
	return log
}

// feedAnswering is feed with an owner that answers: what it does depends on the
// stream's number only.
func (s *server) feedAnswering(p []byte) {
	s.feed(p)
	kept := s.log[:0]
	for _, e := range s.log {
		if !bytes.Contains([]byte(e), []byte(" data ")) {
			kept = append(kept, e)
		}
	}
	s.log = kept
	for id, st := range s.streams {
		delete(s.streams, id)
		if id%8 != 7 {
			continue
		}
		s.Head(st, &message.Response{Status: 200, ContentLength: message.Unknown}, false)
	}
}

// checkFrames tells whether what was sent are frames.
func checkFrames(t *testing.T, out []byte) {
	r := xhttp2.NewFramer(nil, bytes.NewReader(out))
	r.AllowIllegalReads = true
	for {
		if _, err := r.ReadFrame(); err != nil {
			if err.Error() != "EOF" {
				t.Fatalf("%v in %d bytes of output", err, len(out))
			}
			return
		}
	}
}
