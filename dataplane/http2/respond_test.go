package http2

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	xhttp2 "golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/headgate/headgate/dataplane/message"
)

// opened returns a server with one stream, whose request has ended or not.
func opened(t *testing.T, end bool, settings ...xhttp2.Setting) (*server, *Stream) {
	t.Helper()
	p, s := newPeer(), newServer(nil)
	_ = p.WriteSettings(settings...)
	p.head(1, end, basic...)
	s.feed(p.out.Bytes())
	s.Out, s.log = nil, nil
	return s, s.streams[1]
}

func response(status int, length int64, fields ...string) *message.Response {
	r := &message.Response{Status: status, ContentLength: length}
	for i := 0; i < len(fields); i += 2 {
		r.Headers.Add(fields[i], fields[i+1])
	}
	return r
}

func TestHeads(t *testing.T) {
	for _, c := range []struct {
		name string
		r    *message.Response
		want string
	}{
		{"indexed", response(200, 5, "Content-Type", "text/plain"), ":status=200 content-type=text/plain content-length=5"},
		{"status", response(418, message.Unknown), ":status=418"},
		{"case", response(200, 0, "X-FooBar", "A B"), ":status=200 x-foobar=A B content-length=0"},
		{"informational", response(103, message.Unknown, "Link", "</a>"), ":status=103 link=</a>"},
		{"no-length-in-204", response(204, 0), ":status=204"},
		{"no-length-in-304", response(304, 5, "ETag", "x"), ":status=304 etag=x"},
		{"connection-fields-8.2.2", response(200, message.Unknown, "Connection", "x", "Keep-Alive", "1", "Transfer-Encoding", "chunked",
			"Upgrade", "h2c", "Proxy-Connection", "x", "Content-Length", "9", "Te", "gzip", "Host", "a"), ":status=200"},
		{"what-no-parser-lets-through", response(200, message.Unknown, "a b", "1", "A:", "1", "c", "1\r\n2", "", "1", "d", " 1\t", "e", "\x00"), ":status=200 d=1"},
		{"long-name", response(200, message.Unknown, strings.Repeat("N", 300), "v"), ":status=200 " + strings.Repeat("n", 300) + "=v"},
		{"long-value", response(200, message.Unknown, "a", strings.Repeat("v", 5000)), ":status=200 a=" + strings.Repeat("v", 5000)},
		{"continuation", response(200, message.Unknown, "a", strings.Repeat("v", 40000), "b", "c"), ":status=200 a=" + strings.Repeat("v", 40000) + " b=c"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, st := opened(t, true)
			s.Head(st, c.r, false)
			sent := s.sent(t)
			if len(sent) != 1 || sent[0] != "1 head "+c.want {
				t.Errorf("sent %.300q\nwant %.300q", sent, c.want)
			}
		})
	}
}

// Every name of the static table that responses have stands for itself.
func TestStaticTable(t *testing.T) {
	for i, name := range []string{"accept-ranges", "access-control-allow-origin", "age", "allow", "cache-control", "content-disposition",
		"content-encoding", "content-language", "content-location", "content-range", "content-type", "date", "etag", "expires",
		"last-modified", "link", "location", "proxy-authenticate", "refresh", "retry-after", "server", "set-cookie",
		"strict-transport-security", "vary", "via", "www-authenticate"} {
		if staticIndex(name) == 0 {
			t.Errorf("%s has no index", name)
		}
		var got hpack.HeaderField
		d := hpack.NewDecoder(4096, func(f hpack.HeaderField) { got = f })
		value := fmt.Sprint(i)
		if _, err := d.Write(appendField(nil, []byte(name), []byte(value))); err != nil || d.Close() != nil {
			t.Fatal(err)
		}
		if got.Name != name || got.Value != value || got.Sensitive != (name == "set-cookie") {
			t.Errorf("%s became %v", name, got)
		}
	}
	for status := 100; status < 1000; status++ {
		var got hpack.HeaderField
		d := hpack.NewDecoder(4096, func(f hpack.HeaderField) { got = f })
		if _, err := d.Write(appendStatus(nil, status)); err != nil || got.Name != ":status" || got.Value != fmt.Sprint(status) {
			t.Fatalf("%d became %v, %v", status, got, err)
		}
	}
}

func TestIntegers(t *testing.T) {
	// RFC 7541, C.1.
	if got := appendInt(nil, 0, 5, 10); !bytes.Equal(got, []byte{10}) {
		t.Errorf("C.1.1: %v", got)
	}
	if got := appendInt(nil, 0, 5, 1337); !bytes.Equal(got, []byte{31, 154, 10}) {
		t.Errorf("C.1.2: %v", got)
	}
	if got := appendInt(nil, 0, 8, 42); !bytes.Equal(got, []byte{42}) {
		t.Errorf("C.1.3: %v", got)
	}
}

func TestSending(t *testing.T) {
	s, st := opened(t, true, xhttp2.Setting{ID: xhttp2.SettingInitialWindowSize, Val: 10})
	s.Head(st, response(200, message.Unknown), false)
	if n := s.Room(st); n != 10 || s.Blocked(st) {
		t.Fatalf("room %d", n)
	}
	s.DataHead(st, 10, false)
	s.Out = append(s.Out, "0123456789"...)
	if s.Room(st) != 0 || !s.Blocked(st) {
		t.Fatalf("room %d", s.Room(st))
	}
	p := newPeer()
	p.out.Reset()
	p.raw(frameSettings, 0, 0, setting(4, 4)) // 6.9.2: the window is negative now
	s.feed(p.out.Bytes())
	p.out.Reset()
	_ = p.WriteWindowUpdate(1, 3)
	s.feed(p.out.Bytes())
	if s.Room(st) != 0 || !s.Blocked(st) {
		t.Fatalf("room %d", s.Room(st))
	}
	p.out.Reset()
	_ = p.WriteWindowUpdate(1, 100_000)
	s.feed(p.out.Bytes())
	if s.Room(st) != maxFrame {
		t.Fatalf("room %d", s.Room(st))
	}
	s.Trailers(st, AppendTrailers(nil, &response(0, 0, "X-Sum", "1", "Content-Length", "5", "Set-Cookie", "a").Headers))
	if st.Open() || s.Streams() != 0 || s.Room(st) != 0 {
		t.Error("the stream did not end")
	}
	s.DataHead(st, 0, true) // what comes too late has no effect
	s.Head(st, response(200, 0), true)
	s.Reset(st, CodeCancel)
	want := "1 head :status=200|1 data 10 false|settings ack|1 head x-sum=1 end"
	if got := strings.Join(s.sent(t), "|"); got != want {
		t.Errorf("sent %q, want %q", got, want)
	}
	if got := strings.Join(s.log, "|"); got != "1 window|1 window" {
		t.Errorf("events %q", got)
	}
}

// The connection's window holds for all streams together.
func TestConnectionWindow(t *testing.T) {
	s, st := opened(t, true, xhttp2.Setting{ID: xhttp2.SettingInitialWindowSize, Val: 1 << 20})
	s.Head(st, response(200, message.Unknown), false)
	total := 0
	for s.Room(st) > 0 {
		n := s.Room(st)
		s.DataHead(st, n, false)
		total += n
	}
	if total != defaultWindow || s.Blocked(st) {
		t.Errorf("%d bytes, want %d", total, defaultWindow)
	}
	p := newPeer()
	p.out.Reset()
	_ = p.WriteWindowUpdate(0, 5)
	s.feed(p.out.Bytes())
	if s.Room(st) != 5 || s.log[0] != "0 window" {
		t.Errorf("room %d, %q", s.Room(st), s.log)
	}
}

// An answer that is whole before the request is: the client is told to stop
// (RFC 9113, 8.1).
func TestEarlyEnd(t *testing.T) {
	s, st := opened(t, false)
	s.Head(st, response(413, 0), true)
	if !st.Open() || !st.LocalEnded() || st.RemoteEnded() {
		t.Error("the stream should be half closed")
	}
	s.Reset(st, CodeNone)
	if st.Open() {
		t.Error("the stream should be closed")
	}
	if got := strings.Join(s.sent(t), "|"); got != "1 head :status=413 content-length=0 end|1 reset 0" {
		t.Errorf("sent %q", got)
	}
}

// After the first head no change of the client's table needs a word from us.
func TestTableSizeIsTold(t *testing.T) {
	s, st := opened(t, true)
	s.Head(st, response(103, message.Unknown), false)
	s.Head(st, response(200, message.Unknown), false)
	if n := frameHeader + int(s.Out[2]); s.Out[frameHeader] != 0x20 || s.Out[n+frameHeader] != 0x88 {
		t.Errorf("sent %x", s.Out)
	}
}

func TestManyResetsAreRemembered(t *testing.T) {
	p, s := newPeer(), newServer(nil)
	for i := range 300 {
		id := uint32(2*i + 1)
		p.out.WriteString("")
		p.head(id, false, basic...)
		s.feed(p.out.Bytes())
		p.out.Reset()
		s.Reset(s.streams[id], CodeNone)
	}
	for i := range 300 { // all of them may still have data on its way
		_ = p.WriteData(uint32(2*i+1), false, []byte("x"))
	}
	s.feed(p.out.Bytes())
	if s.err != nil {
		t.Error(s.err)
	}
}
