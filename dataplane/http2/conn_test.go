package http2

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	xhttp2 "golang.org/x/net/http2"

	"github.com/headgate/headgate/dataplane/http1"
	"github.com/headgate/headgate/dataplane/message"
)

// TestConnectionErrors is about what ends a connection (RFC 9113, 5.4.1).
func TestConnectionErrors(t *testing.T) {
	for _, c := range []struct {
		name  string
		write func(*peer)
		want  string // the error, which is the last event, without its code
	}{
		{"preface-3.4", func(p *peer) { p.out.Reset(); p.out.WriteString("GET / HTTP/1.1\r\n\r\n") }, "1 bad_preface"},
		{"no-settings-3.4", func(p *peer) { p.out.Reset(); p.out.WriteString(preface); _ = p.WritePing(false, [8]byte{}) }, "1 no_settings"},
		{"settings-ack-first-3.4", func(p *peer) { p.out.Reset(); p.out.WriteString(preface); _ = p.WriteSettingsAck() }, "1 no_settings"},
		{"frame-too-large-4.2", func(p *peer) { p.raw(0x77, 0, 0, strings.Repeat("x", maxFrame+1)) }, "6 frame_too_large"},
		{"field-block-4.3", func(p *peer) { p.raw(frameHeaders, flagEndHeaders, 1, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff") }, "9 bad_field_block"},
		{"truncated-block-4.3", func(p *peer) { p.raw(frameHeaders, flagEndHeaders, 1, "\x00\x05ab") }, "9 bad_field_block"},
		{"table-size-above-limit-7541-6.3", func(p *peer) { p.raw(frameHeaders, flagEndHeaders, 1, "\x3f\xe2\x1f") }, "9 bad_field_block"},
		{"even-stream-5.1.1", func(p *peer) { p.head(2, true, basic...) }, "1 even_stream"},
		{"stream-id-goes-down-5.1.1", func(p *peer) { p.head(5, true, basic...); p.head(3, true, basic...) }, "5 headers_on_closed_stream"},
		{"data-on-connection-6.1", func(p *peer) { _ = p.WriteData(0, true, nil) }, "1 data_on_connection"},
		{"data-on-idle-5.1", func(p *peer) { _ = p.WriteData(1, true, nil) }, "1 frame_on_idle_stream"},
		{"data-padding-6.1", func(p *peer) { p.head(1, false, basic...); p.raw(frameData, flagPadded, 1, "\x02ab") }, ""},
		{"data-padding-too-long-6.1", func(p *peer) { p.head(1, false, basic...); p.raw(frameData, flagPadded, 1, "\x03ab") }, "1 bad_padding"},
		{"data-padding-missing-6.1", func(p *peer) { p.head(1, false, basic...); p.raw(frameData, flagPadded, 1, "") }, "6 bad_padding"},
		{"headers-on-connection-6.2", func(p *peer) { p.head(0, true, basic...) }, "1 headers_on_connection"},
		{"headers-padding-6.2", func(p *peer) { p.raw(frameHeaders, flagPadded|flagEndHeaders, 1, "\x05\x82") }, "1 bad_padding"},
		{"headers-priority-short", func(p *peer) { p.raw(frameHeaders, flagPriority|flagEndHeaders, 1, "\x05\x82") }, "6 bad_priority_length"},
		{"interrupted-head-6.2", func(p *peer) {
			_ = p.WriteHeaders(xhttp2.HeadersFrameParam{StreamID: 1, BlockFragment: p.block(basic...)})
			_ = p.WritePing(false, [8]byte{})
		}, "1 interrupted_head"},
		{"continuation-of-another-6.10", func(p *peer) {
			_ = p.WriteHeaders(xhttp2.HeadersFrameParam{StreamID: 1, BlockFragment: p.block(basic...)})
			_ = p.WriteContinuation(3, true, nil)
		}, "1 interrupted_head"},
		{"continuation-alone-6.10", func(p *peer) { _ = p.WriteContinuation(1, true, nil) }, "1 unexpected_continuation"},
		{"priority-length-6.3", func(p *peer) { p.raw(framePriority, 0, 1, "1234") }, "6 bad_priority_length"},
		{"priority-on-connection-6.3", func(p *peer) { p.raw(framePriority, 0, 0, "12345") }, "1 priority_on_connection"},
		{"reset-length-6.4", func(p *peer) { p.head(1, false, basic...); p.raw(frameReset, 0, 1, "123") }, "6 bad_reset_length"},
		{"reset-on-connection-6.4", func(p *peer) { p.raw(frameReset, 0, 0, "1234") }, "1 reset_on_connection"},
		{"reset-of-idle-6.4", func(p *peer) { p.raw(frameReset, 0, 1, "1234") }, "1 reset_of_idle_stream"},
		{"settings-length-6.5", func(p *peer) { p.raw(frameSettings, 0, 0, "12345") }, "6 bad_settings_length"},
		{"settings-ack-length-6.5", func(p *peer) { p.raw(frameSettings, flagAck, 0, "123456") }, "6 bad_settings_length"},
		{"settings-on-stream-6.5", func(p *peer) { p.raw(frameSettings, 0, 1, "") }, "1 settings_on_stream"},
		{"enable-push-6.5.2", func(p *peer) { p.raw(frameSettings, 0, 0, setting(2, 2)) }, "1 bad_enable_push"},
		{"initial-window-6.5.2", func(p *peer) { p.raw(frameSettings, 0, 0, setting(4, 1<<31)) }, "3 bad_initial_window"},
		{"max-frame-low-6.5.2", func(p *peer) { p.raw(frameSettings, 0, 0, setting(5, 16383)) }, "1 bad_max_frame_size"},
		{"max-frame-high-6.5.2", func(p *peer) { p.raw(frameSettings, 0, 0, setting(5, 1<<24)) }, "1 bad_max_frame_size"},
		{"push-promise-8.4", func(p *peer) { p.raw(framePushPromise, flagEndHeaders, 1, "\x00\x00\x00\x02") }, "1 push_promise_from_client"},
		{"ping-length-6.7", func(p *peer) { p.raw(framePing, 0, 0, "1234567") }, "6 bad_ping_length"},
		{"ping-on-stream-6.7", func(p *peer) { p.raw(framePing, 0, 1, "12345678") }, "1 ping_on_stream"},
		{"goaway-on-stream-6.8", func(p *peer) { p.raw(frameGoAway, 0, 1, "12345678") }, "1 goaway_on_stream"},
		{"goaway-length-6.8", func(p *peer) { p.raw(frameGoAway, 0, 0, "1234567") }, "6 bad_goaway_length"},
		{"window-length-6.9", func(p *peer) { p.raw(frameWindowUpdate, 0, 0, "123") }, "6 bad_window_update_length"},
		{"window-of-0-6.9", func(p *peer) { _ = p.WriteWindowUpdate(0, 0) }, "1 empty_window_update"},
		{"window-overflow-6.9.1", func(p *peer) { _ = p.WriteWindowUpdate(0, maxWindow-defaultWindow+1) }, "3 window_overflow"},
		{"window-on-idle-5.1", func(p *peer) { _ = p.WriteWindowUpdate(1, 1) }, "1 window_update_on_idle_stream"},
		{"settings-overflow-6.9.2", func(p *peer) {
			p.head(1, false, basic...)
			_ = p.WriteWindowUpdate(1, maxWindow-defaultWindow)
			p.raw(frameSettings, 0, 0, setting(4, defaultWindow+1))
		}, "3 window_overflow"},
		{"connection-window-exceeded-6.9.1", func(p *peer) {
			for i := range 20 {
				p.head(uint32(2*i+1), false, basic...)
				for range 4 {
					_ = p.WriteData(uint32(2*i+1), false, make([]byte, maxFrame))
				}
			}
		}, ""}, // it is given back at once, whatever the streams do
	} {
		t.Run(c.name, func(t *testing.T) {
			log, sent := run(t, c.write)
			last := ""
			if len(log) > 0 {
				last = log[len(log)-1]
			}
			if c.want == "" {
				if strings.HasPrefix(last, "error") {
					t.Errorf("got %q", last)
				}
				return
			}
			if last != "error "+c.want {
				t.Errorf("got %q, want %q", log, c.want)
			}
			code, reason, _ := strings.Cut(c.want, " ")
			if end := sent[len(sent)-1]; !strings.HasPrefix(end, "goaway ") || !strings.HasSuffix(end, " "+code+" "+reason) {
				t.Errorf("sent %q", end)
			}
		})
	}
}

func TestControlFrames(t *testing.T) {
	log, sent := run(t, func(p *peer) {
		_ = p.WritePing(false, [8]byte{'1', '2', '3', '4', '5', '6', '7', '8'})
		_ = p.WritePing(true, [8]byte{'n', 'o', 't', ' ', 'o', 'u', 'r', 's'})
		_ = p.WritePing(true, [8]byte([]byte(probe)))
		p.raw(0xbe, 0xff, 77, "an extension") // 5.5
		p.raw(frameSettings, 0, 0, setting(0x99, 5)+setting(2, 0)+setting(2, 1)+setting(1, 0)+setting(5, 1<<20))
		_ = p.WriteSettingsAck()
		_ = p.WriteGoAway(0, 0, []byte("bye"))
		p.head(1, true, basic...)
	})
	if want := []string{"pong", "goaway", "1 head GET a.test /p?q 0 last"}; strings.Join(log, "|") != strings.Join(want, "|") {
		t.Errorf("got %q", log)
	}
	want := []string{fmt.Sprintf("0 window %d", connWindow-defaultWindow), "settings ack", "ping true 12345678", "settings ack"}
	if strings.Join(sent, "|") != strings.Join(want, "|") {
		t.Errorf("sent %q", sent)
	}
}

func TestStreamWindow(t *testing.T) {
	log, _ := run(t, func(p *peer) {
		p.head(1, false, basic...)
		_ = p.WriteWindowUpdate(1, 0) // 6.9: a stream error
		p.head(3, false, basic...)
		_ = p.WriteWindowUpdate(3, maxWindow-defaultWindow+1) // 6.9.1
		p.head(5, false, basic...)
		_ = p.WriteWindowUpdate(5, maxWindow-defaultWindow)
	})
	var got []string
	for _, e := range log {
		if !strings.Contains(e, "head") {
			got = append(got, e)
		}
	}
	if want := []string{"1 reset 1 400 empty_window_update", "3 reset 3 400 window_overflow", "5 window"}; strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("got %q", got)
	}
}

// A body that nobody takes ends at the stream's window, and padding counts.
func TestUploadWindow(t *testing.T) {
	p := newPeer()
	p.head(1, false, basic...)
	for range FirstWindow / maxFrame {
		_ = p.WriteData(1, false, make([]byte, maxFrame))
	}
	_ = p.WriteData(1, false, make([]byte, 1))
	s := newServer(nil)
	s.credit = false
	s.feed(p.out.Bytes())
	if last := s.log[len(s.log)-1]; last != "1 reset 3 400 stream_window_exceeded" {
		t.Errorf("got %q", last)
	}

	// One that is taken goes on for ever, and what is wider is counted.
	p, s = newPeer(), newServer(nil)
	p.head(1, false, basic...)
	s.feed(p.out.Bytes())
	s.Widen(s.streams[1])
	for range 500 {
		p.out.Reset()
		for range 3 {
			_ = p.WriteDataPadded(1, false, make([]byte, 16000), make([]byte, 200))
		}
		s.feed(p.out.Bytes())
	}
	if s.err != nil || s.streams[1].recvWindow <= 0 || s.streams[1].recvWindow > wideWindow {
		t.Errorf("%v, window %d", s.err, s.streams[1].recvWindow)
	}
	if s.recvWindow <= 0 || s.recvWindow > connWindow {
		t.Errorf("the connection's window is %d", s.recvWindow)
	}
	var told int64
	for _, f := range s.sent(t) {
		var n int64
		if k, _ := fmt.Sscanf(f, "1 window %d", &n); k == 1 {
			told += n
		}
	}
	if want := int64(500 * 3 * 16201); told+s.streams[1].credit != want+wideWindow-FirstWindow {
		t.Errorf("told %d, holds back %d, want %d in all", told, s.streams[1].credit, want)
	}
}

func TestWidenIsBounded(t *testing.T) {
	p := newPeer()
	for i := range 20 {
		p.head(uint32(2*i+1), false, basic...)
	}
	s := newServer(nil)
	s.feed(p.out.Bytes())
	for _, st := range s.streams {
		s.Widen(st)
		s.Widen(st)
	}
	if s.widened != maxWidened {
		t.Errorf("widened by %d, the bound is %d", s.widened, maxWidened)
	}
	for _, st := range s.streams {
		s.Reset(st, CodeCancel)
	}
	if s.widened != 0 || s.Streams() != 0 {
		t.Errorf("widened by %d with %d streams", s.widened, s.Streams())
	}
}

func TestMaxStreams(t *testing.T) {
	p := newPeer()
	for i := range MaxStreams + 2 {
		p.head(uint32(2*i+1), true, basic...)
	}
	s := newServer(nil)
	s.feed(p.out.Bytes())
	sent := s.sent(t)
	if len(s.log) != MaxStreams || s.Streams() != MaxStreams || sent[len(sent)-1] != fmt.Sprintf("%d reset 7", 2*MaxStreams+3) { // 5.1.2
		t.Errorf("%d events, %d streams, sent %q", len(s.log), s.Streams(), sent)
	}
	s.Head(s.streams[1], &message.Response{Status: 200, ContentLength: 0}, true)
	p.out.Reset()
	p.head(2*MaxStreams+5, true, basic...)
	s.feed(p.out.Bytes())
	if len(s.log) != MaxStreams+1 {
		t.Error("a place that became free is not given")
	}
}

func TestLeave(t *testing.T) {
	p, s := newPeer(), newServer(nil)
	p.head(1, false, basic...)
	s.feed(p.out.Bytes())
	s.Warn()
	p.out.Reset()
	p.head(3, false, basic...) // was on its way
	s.feed(p.out.Bytes())
	s.Leave()
	p.out.Reset()
	p.head(5, false, with("a", "b")...)
	_ = p.WriteData(5, false, []byte("x"))
	_ = p.WriteWindowUpdate(5, 1)
	_ = p.WriteRSTStream(5, 8)
	_ = p.WriteData(3, true, []byte("y"))
	s.feed(p.out.Bytes())
	if want := "1 head GET a.test /p?q -1|3 head GET a.test /p?q -1|3 data y last"; strings.Join(s.log, "|") != want {
		t.Errorf("got %q", s.log)
	}
	sent := s.sent(t)
	if want := fmt.Sprintf("goaway %d 0 |ping false %s|goaway 3 0 ", maxWindow, probe); strings.Join(sent[2:], "|") != want {
		t.Errorf("sent %q", sent)
	}
}

// Each flood ends its connection with ENHANCE_YOUR_CALM, and not before there
// was much of it; the same at a quiet pace does not.
func TestFloods(t *testing.T) {
	floods := map[string]struct {
		least int
		write func(p *peer, i int)
	}{
		"rapid-reset": {abortBurst, func(p *peer, i int) {
			p.head(uint32(2*i+3), true, basic...)
			_ = p.WriteRSTStream(uint32(2*i+3), 8)
		}},
		"made-you-reset": {abortBurst, func(p *peer, i int) {
			p.head(uint32(2*i+3), true, basic...)
			_ = p.WriteWindowUpdate(uint32(2*i+3), 0)
		}},
		"malformed":       {abortBurst, func(p *peer, i int) { p.head(uint32(2*i+3), true, "A", "b") }},
		"settings":        {400, func(p *peer, _ int) { _ = p.WriteSettings() }},
		"ping":            {900, func(p *peer, _ int) { _ = p.WritePing(false, [8]byte{}) }},
		"empty-data":      {9000, func(p *peer, _ int) { _ = p.WriteData(1, false, nil) }},
		"padding":         {9000, func(p *peer, _ int) { _ = p.WriteDataPadded(1, false, nil, make([]byte, 1)) }},
		"window-update":   {9000, func(p *peer, _ int) { _ = p.WriteWindowUpdate(1, 1) }},
		"priority":        {9000, func(p *peer, _ int) { _ = p.WritePriority(1, xhttp2.PriorityParam{}) }},
		"unknown":         {9000, func(p *peer, _ int) { p.raw(0xee, 0, 0, "") }},
		"reset-of-closed": {9000, func(p *peer, _ int) { p.raw(frameReset, 0, 1, "\x00\x00\x00\x08") }},
	}
	for name, f := range floods {
		t.Run(name, func(t *testing.T) {
			for _, pace := range []time.Duration{0, time.Second / 10} {
				p, s := newPeer(), newServer(nil)
				p.head(1, false, basic...)
				s.feed(p.out.Bytes())
				n := 0
				for ; n < 12_000 && s.err == nil; n++ {
					p.out.Reset()
					f.write(p, n)
					s.feed(p.out.Bytes())
					s.Out, s.log = s.Out[:0], s.log[:min(len(s.log), 0)]
					s.now = s.now.Add(pace)
				}
				switch {
				case pace == 0 && s.err == nil:
					t.Fatal("no end")
				case pace == 0 && (n < f.least || !strings.Contains(s.err.Error(), "flood")):
					t.Errorf("after %d: %v", n, s.err)
				case pace > 0 && s.err != nil:
					t.Errorf("at a quiet pace, after %d: %v", n, s.err)
				}
			}
		})
	}
}

// A client that takes what it asked for may reset now and then, and may update
// its windows for every frame.
func TestUsefulWorkIsNoFlood(t *testing.T) {
	p, s := newPeer(), newServer(nil)
	s.feed(p.out.Bytes())
	for i := range 20_000 {
		id := uint32(2*i + 1)
		p.out.Reset()
		p.head(id, true, basic...)
		s.feed(p.out.Bytes())
		if s.err != nil {
			t.Fatalf("after %d requests: %v", i, s.err)
		}
		st := s.streams[id]
		delete(s.streams, id)
		p.out.Reset()
		if i%2 == 0 {
			_ = p.WriteRSTStream(id, 8)
		} else {
			s.Head(st, &message.Response{Status: 200, ContentLength: 1000}, false)
			s.DataHead(st, 1000, true)
			_ = p.WriteWindowUpdate(0, 1000)
			_ = p.WriteWindowUpdate(id, 1)
		}
		s.feed(p.out.Bytes())
		s.Out, s.log = s.Out[:0], nil
	}
	if s.Streams() != 0 {
		t.Errorf("%d streams are left", s.Streams())
	}
}

// A client that opens its window byte by byte makes us send a frame for each
// (CVE-2019-9511, "data dribble").
func TestDataDribble(t *testing.T) {
	s, st := opened(t, true, xhttp2.Setting{ID: xhttp2.SettingInitialWindowSize, Val: 0})
	s.Head(st, &message.Response{Status: 200, ContentLength: message.Unknown}, false)
	p := newPeer()
	n := 0
	for ; n < 20_000 && s.err == nil; n++ {
		p.out.Reset()
		_ = p.WriteWindowUpdate(1, 1)
		s.feed(p.out.Bytes())
		if s.Room(st) > 0 {
			s.DataHead(st, 1, false)
		}
		s.Out, s.log = s.Out[:0], nil
	}
	if s.err == nil || n < 9000 || !strings.Contains(s.err.Error(), "frame_flood") {
		t.Errorf("after %d: %v", n, s.err)
	}
}

// TestContinuationFlood: a head that does not end is given up, by bytes and by
// frames, and costs no more memory than the limit.
func TestContinuationFlood(t *testing.T) {
	for name, size := range map[string]int{"bytes": maxFrame, "frames": 1, "empty": 0} {
		t.Run(name, func(t *testing.T) {
			p, s := newPeer(), newServer(nil)
			_ = p.WriteHeaders(xhttp2.HeadersFrameParam{StreamID: 1, BlockFragment: p.block(basic...)})
			s.feed(p.out.Bytes())
			n := 0
			for ; n < 1000 && s.err == nil; n++ {
				p.out.Reset()
				_ = p.WriteContinuation(1, false, bytes.Repeat([]byte{0x82}, size))
				s.feed(p.out.Bytes())
				if cap(s.head.block) > 2*s.maxBlock() {
					t.Fatalf("%d bytes are kept", cap(s.head.block))
				}
			}
			if s.err == nil || n > maxHeadFrames+1 || s.log[0] != "error 11 head_too_large" {
				t.Errorf("after %d: %q", n, s.log)
			}
		})
	}
}

// A block of references to one large field is decoded, but not kept.
func TestHeaderBomb(t *testing.T) {
	p, s := newPeer(), newServer(nil)
	p.head(1, true, with("x", strings.Repeat("y", 4000))...)
	s.feed(p.out.Bytes())
	p.out.Reset()
	p.raw(frameHeaders, flagEndHeaders|flagEndStream, 3, "\x82\x87\x84\x01\x06a.test"+strings.Repeat("\xbe", 16000))
	s.req = message.Request{}
	s.feed(p.out.Bytes())
	if len(s.log) != 2 || !strings.HasSuffix(s.log[1], "431 headers_too_large") {
		t.Fatalf("got %.200q", s.log)
	}
	if n := s.streams[3]; n == nil || s.req.Headers.Retained() > 300<<10 {
		t.Errorf("%d bytes are kept", s.req.Headers.Retained())
	}
}

// Behind the limit of a head nothing is looked at, not even to find it malformed:
// 120 KiB of references to one field of 4 KiB took 0.4 s of a loop.
func TestHeaderBombIsNotLookedAt(t *testing.T) {
	bomb := strings.Repeat("\xbe", 100) + "\x00\x01A\x01b" // a name that is malformed
	for _, c := range []struct {
		name  string
		write func(*peer)
		want  string
	}{
		{"head", func(p *peer) {
			p.raw(frameHeaders, flagEndHeaders|flagEndStream, 5, "\x82\x87\x84\x01\x06a.test"+bomb)
		}, "5 head GET a.test / 0"},
		{"pseudo-header", func(p *peer) {
			p.raw(frameHeaders, flagEndHeaders|flagEndStream, 5, "\x82\x87\x84\x01\x06a.test"+bomb+"\x82")
		}, "5 head GET a.test / 0"},
		{"trailers", func(p *peer) {
			p.raw(frameHeaders, flagEndHeaders|flagEndStream, 1, bomb)
		}, "1 reset 11 431 trailers_too_large"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, s := newPeer(), newServer(nil)
			p.head(1, false, basic...)
			p.head(3, true, with("x", strings.Repeat("y", 3900))...)
			c.write(p)
			s.feed(p.out.Bytes())
			if len(s.log) != 3 || !strings.HasPrefix(s.log[2], c.want) || !strings.HasSuffix(s.log[2], "_too_large") {
				t.Errorf("got %.200q", s.log)
			}
		})
	}
}

// Other limits count for the heads to come, not for one that has begun, and the
// client is told when it may send other heads.
func TestSetLimits(t *testing.T) {
	p, s := newPeer(), newServer(&http1.Limits{HeaderBytes: 2000})
	feed := func() {
		s.feed(bytes.Clone(p.out.Bytes()))
		p.out.Reset()
	}
	feed()
	s.Out = nil
	other := &http1.Limits{HeaderBytes: 4000}

	block := p.block(with("x", strings.Repeat("a", 3000))...)
	_ = p.WriteHeaders(xhttp2.HeadersFrameParam{StreamID: 1, BlockFragment: block[:100], EndStream: true})
	feed()
	s.SetLimits(other)
	if len(s.Out) > 0 {
		t.Errorf("in the middle of a head it sends %q", s.Out)
	}
	_ = p.WriteContinuation(1, true, block[100:])
	feed()
	s.SetLimits(other)
	f, err := xhttp2.NewFramer(nil, bytes.NewReader(s.Out)).ReadFrame()
	if err != nil {
		t.Fatal(err)
	}
	if f, ok := f.(*xhttp2.SettingsFrame); !ok || f.NumSettings() != 1 || f.Setting(0) != (xhttp2.Setting{ID: xhttp2.SettingMaxHeaderListSize, Val: 4000}) {
		t.Errorf("it sends %v", f)
	}
	s.Out = nil
	s.SetLimits(&http1.Limits{HeaderBytes: 4000, HeaderCount: 7})
	if len(s.Out) > 0 {
		t.Errorf("it tells %q though the client may send what it might", s.Out)
	}
	p.head(3, true, with("x", strings.Repeat("a", 3000))...)
	p.head(5, true, with("x", strings.Repeat("a", 5000))...)
	feed()
	var got []string
	for _, line := range s.log {
		stream, _, _ := strings.Cut(line, " ")
		_, refused := strings.CutSuffix(line, " 431 headers_too_large")
		got = append(got, fmt.Sprint(stream, refused))
	}
	if diff := cmp.Diff([]string{"1true", "3false", "5true"}, got); diff != "" {
		t.Errorf("streams that were refused (-want +got):\n%s", diff)
	}
}
