package upstream

import (
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/dataplane/ir"
	"github.com/headgate/headgate/dataplane/message"
)

func TestFailuresSayWhetherToTryAgain(t *testing.T) {
	type want struct {
		reason        string
		status        int
		unsent, stale bool
	}
	for name, tc := range map[string]struct {
		pooled bool
		do     func(r *rig, tr *fakeTransport)
		want   want
	}{
		"refused": {do: func(_ *rig, tr *fakeTransport) { tr.conn.OnClose(errRefused) },
			want: want{ReasonConnectFailed, 502, true, false}},
		"connect takes too long": {do: func(r *rig, _ *fakeTransport) { r.loops[0].advance(6 * time.Second) },
			want: want{ReasonConnectTimeout, 504, true, false}},
		"fresh connection closed without an answer": {do: func(_ *rig, tr *fakeTransport) { tr.conn.OnConnect(); tr.conn.OnRead(nil) },
			want: want{ReasonClosed, 502, false, false}},
		"fresh connection reset": {do: func(_ *rig, tr *fakeTransport) { tr.conn.OnConnect(); tr.conn.OnClose(errRefused) },
			want: want{ReasonReset, 502, false, false}},
		"pooled connection closed": {pooled: true, do: func(_ *rig, tr *fakeTransport) { tr.conn.OnRead(nil) },
			want: want{ReasonClosed, 502, false, true}},
		"pooled connection reset": {pooled: true, do: func(_ *rig, tr *fakeTransport) { tr.conn.OnClose(errRefused) },
			want: want{ReasonReset, 502, false, true}},
		"pooled connection closed within the head": {pooled: true,
			do:   func(_ *rig, tr *fakeTransport) { tr.conn.OnRead([]byte("HTTP/1.1 200")); tr.conn.OnRead(nil) },
			want: want{ReasonClosed, 502, false, false}},
		"no head in time": {do: func(r *rig, tr *fakeTransport) { tr.conn.OnConnect(); r.loops[0].advance(61 * time.Second) },
			want: want{ReasonResponseTimeout, 504, false, false}},
		"body cut off": {do: func(_ *rig, tr *fakeTransport) {
			tr.conn.OnConnect()
			tr.conn.OnRead([]byte("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"))
			tr.conn.OnRead(nil)
		}, want: want{ReasonClosed, 502, false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 1, Options{})
			c := r.cluster(ir.Pool{}, 0, "10.0.0.1:80")
			if tc.pooled {
				r.open(c, 0, Try{})
				r.serve(r.loops[0].last(), okAnswer)
			}
			x := r.open(c, 0, Try{})
			tc.do(r, r.loops[0].last())
			f := x.failure
			if f.Err == nil {
				t.Fatalf("no failure: %q", x.events)
			}
			if got := (want{f.Err.Reason, f.Err.Status, f.Unsent, f.Stale}); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
			if f.Err.Origin != message.Upstream || f.Endpoint == nil || f.Endpoint.String() != "10.0.0.1:80" {
				t.Errorf("blames %v %v", f.Err.Origin, f.Endpoint)
			}
			if s := c.Stats(); s.Active != 0 {
				t.Errorf("place not given back: %+v", s)
			}
		})
	}
}

func TestAnUpstreamThatDoesNotSpeakHTTP(t *testing.T) {
	r := newRig(t, 1, Options{})
	x := r.open(r.cluster(ir.Pool{}, 0, "10.0.0.1:80"), 0, Try{})
	r.serve(r.loops[0].last(), "SSH-2.0-OpenSSH_9.2\r\n\r\n")
	if x.failure.Err == nil || x.failure.Err.Status != 502 || x.failure.Unsent || x.failure.Stale {
		t.Fatalf("got %+v", x.failure)
	}
	if !r.loops[0].last().closed {
		t.Fatal("the connection is still open")
	}
}

func TestResponseClockStartsWhenTheRequestIsWritten(t *testing.T) {
	r := newRig(t, 1, Options{})
	c := r.cluster(ir.Pool{ResponseTimeout: time.Second}, 0, "10.0.0.1:80")
	x := &caller{}
	x.Init(r.loops[0], x, nil)
	x.onReady = func() {
		x.SendHead(&message.Request{Method: []byte("POST"), Path: []byte("/"), ContentLength: 3, Major: 1, Minor: 1})
	}
	x.Open(c.Shard(0), Try{})
	tr := r.loops[0].last()
	tr.conn.OnConnect()
	r.loops[0].advance(time.Hour) // the upload takes its time
	tr.congested = true
	x.SendData([]byte("abc"))
	x.SendEnd(nil)
	r.loops[0].advance(time.Hour) // and so does its last piece
	x.want(t, "ready")
	tr.congested = false
	tr.conn.OnDrained()
	r.loops[0].advance(1100 * time.Millisecond)
	x.want(t, "ready", "drained", "fail "+ReasonResponseTimeout)
}

func TestUntimedAndAnsweredStreamsAreNotCut(t *testing.T) {
	r := newRig(t, 1, Options{})
	c := r.cluster(ir.Pool{ResponseTimeout: time.Second}, 0, "10.0.0.1:80")
	x := r.open(c, 0, Try{Untimed: true})
	r.loops[0].last().conn.OnConnect()
	y := r.open(c, 0, Try{})
	r.loops[0].last().conn.OnConnect()
	r.loops[0].last().conn.OnRead([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"))
	r.loops[0].advance(time.Hour)
	x.want(t, "ready")
	y.want(t, "ready", "head")
}

func TestInformationalHeadsComeFirst(t *testing.T) {
	r := newRig(t, 1, Options{})
	x := r.open(r.cluster(ir.Pool{}, 0, "10.0.0.1:80"), 0, Try{})
	r.serve(r.loops[0].last(), "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n"+okAnswer)
	x.want(t, "ready", "head", "head", "data", "end")
}

func TestTunnel(t *testing.T) {
	r := newRig(t, 1, Options{})
	c := r.cluster(ir.Pool{}, 0, "10.0.0.1:80")
	x := r.open(c, 0, Try{})
	tr := r.loops[0].last()
	r.serve(tr, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello")
	x.want(t, "ready", "head", "data")
	tr.sent = nil
	x.SendData([]byte("world"))
	if string(tr.sent) != "world" || string(x.data) != "hello" {
		t.Fatalf("sent %q, got %q", tr.sent, x.data)
	}
	tr.conn.OnRead(nil)
	x.want(t, "ready", "head", "data", "end")
	x.SendEnd(nil)
	if !tr.half {
		t.Fatal("the tunnel's writing side was not ended")
	}
	x.Close()
	if !tr.closed || tr.aborted || c.Stats().Active != 0 {
		t.Fatalf("closed %v, aborted %v, %+v", tr.closed, tr.aborted, c.Stats())
	}
}

func TestEarlyAnswerEndsTheConnection(t *testing.T) {
	r := newRig(t, 1, Options{})
	c := r.cluster(ir.Pool{}, 0, "10.0.0.1:80")
	x := &caller{}
	x.Init(r.loops[0], x, nil)
	x.onReady = func() {
		x.SendHead(&message.Request{Method: []byte("POST"), Path: []byte("/"), ContentLength: message.Unknown, Major: 1, Minor: 1})
	}
	x.Open(c.Shard(0), Try{})
	tr := r.loops[0].last()
	tr.conn.OnConnect()
	x.SendData([]byte("part"))
	tr.conn.OnRead([]byte("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n"))
	x.want(t, "ready", "head", "end")
	x.SendData([]byte("more")) // nobody wants it, and nothing breaks
	if !tr.closed || strings.Contains(string(tr.sent), "more") {
		t.Fatalf("closed %v, sent %q", tr.closed, tr.sent)
	}
}

func TestChunkedRequestBody(t *testing.T) {
	r := newRig(t, 1, Options{})
	x := &caller{}
	x.Init(r.loops[0], x, nil)
	x.onReady = func() {
		x.SendHead(&message.Request{Method: []byte("POST"), Host: []byte("a"), Path: []byte("/"), ContentLength: message.Unknown, Major: 1, Minor: 1})
		x.SendData([]byte("hello"))
		x.SendData(nil) // must not end the body
		var trailers message.Headers
		trailers.Add("X-Sum", "1")
		x.SendEnd(&trailers)
	}
	x.Open(r.cluster(ir.Pool{}, 0, "10.0.0.1:80").Shard(0), Try{})
	tr := r.loops[0].last()
	tr.conn.OnConnect()
	_, body, _ := strings.Cut(string(tr.sent), "\r\n\r\n")
	if want := "5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n"; body != want {
		t.Fatalf("body %q, want %q", body, want)
	}
}

func TestDialThatFailsAtOnce(t *testing.T) {
	r := newRig(t, 1, Options{})
	r.loops[0].dialErr = errRefused
	c := r.cluster(ir.Pool{}, 0, "10.0.0.1:80")
	x := r.open(c, 0, Try{})
	x.want(t, "fail "+ReasonConnectFailed)
	if c.Stats().Active != 0 || x.Active() {
		t.Fatalf("%+v active=%v", c.Stats(), x.Active())
	}
}
