package dataplane

import (
	"net/http"
	"testing"

	"github.com/headgate/headgate/dataplane/ir"
)

// A gRPC call that the gateway answers itself gets a status of gRPC's, in one
// head that ends the stream.
func TestLocalRepliesToGRPC(t *testing.T) {
	url, release := hanging(t)
	s := newServer(t, func(o *Options) { o.Pressure.Held = -1 })
	c := clusterOf("default/be:80", url)
	c.Pool.Size = 1
	addr := apply(t, s, secure(t, oneRoute(c, func(r *ir.Rule) { r.Matches[0].Path.Value = "/hang" })))
	busy := dialH2(t, addr)
	busy.request(1, true, ":path", "/hang")
	eventually(t, "the pool is full", func() bool { return clusterStats(s)["default/be:80"].Active == 1 })
	p := dialH2(t, addr)
	for i, tc := range []struct {
		path, kind     string
		status, code   string
		pushback, ends bool
	}{
		{"/hang", "application/grpc+proto", "200", "14", true, true},
		{"/elsewhere", "application/grpc", "200", "12", false, true},
		{"/hang", "application/json", "503", "", false, false},
	} {
		stream := uint32(2*i + 1)
		p.request(stream, true, ":method", "POST", ":path", tc.path, "content-type", tc.kind)
		f := p.wantStatus(stream, tc.status)
		got := map[string]string{}
		for _, x := range f.RegularFields() {
			got[x.Name] = x.Value
		}
		if got["grpc-status"] != tc.code || f.StreamEnded() != tc.ends || (got["grpc-retry-pushback-ms"] != "") != tc.pushback {
			t.Errorf("%s %s: %v, ends the stream: %v", tc.kind, tc.path, got, f.StreamEnded())
		}
		if tc.code != "" && (got["content-type"] != "application/grpc" || got["grpc-message"] == "" || got["content-length"] != "") {
			t.Errorf("%s %s: %v", tc.kind, tc.path, got)
		}
		if tc.code == "" && got["retry-after"] == "" {
			t.Errorf("%s: no Retry-After in %v", tc.kind, got)
		}
	}
	close(release)
	busy.wantStatus(1, "200")
}

func TestGRPCStatus(t *testing.T) {
	for status, want := range map[int]int{400: 13, 401: 16, 403: 7, 404: 12, 408: 2, 421: 2, 429: 14, 500: 2, 502: 14, 503: 14, 504: 14} {
		if got := grpcStatus(status); got != want {
			t.Errorf("%d %s: %d, want %d", status, http.StatusText(status), got, want)
		}
	}
	if got := grpcMessage("50 % of é\n"); got != "50 %25 of %C3%A9%0A" {
		t.Errorf("message %q", got)
	}
}

// Requests of one HTTP/2 connection are held, each with what it takes, and served
// when there is a place.
func TestH2HeldStream(t *testing.T) {
	url, release := hanging(t)
	s := newServer(t, nil)
	c := clusterOf("default/be:80", url)
	c.Pool.Size = 1
	addr := apply(t, s, secure(t, oneRoute(c, nil)))
	busy := dialH2(t, addr)
	busy.request(1, true, ":path", "/hang")
	eventually(t, "the pool is full", func() bool { return clusterStats(s)["default/be:80"].Active == 1 })
	p := dialH2(t, addr)
	for i := range uint32(3) {
		p.request(2*i+1, true, ":path", "/")
	}
	eventually(t, "all are held", func() bool { return clusterStats(s)["default/be:80"].Held == 3 })
	if got := clusterStats(s)["default/be:80"]; got.HeldBytes < 3*heldExchange {
		t.Errorf("%d bytes of %d requests are held", got.HeldBytes, got.Held)
	}
	close(release)
	busy.wantStatus(1, "200")
	for range 3 {
		for {
			if f, ok := p.next().(interface{ StreamEnded() bool }); ok && f.StreamEnded() {
				break
			}
		}
	}
	if got := clusterStats(s)["default/be:80"]; got.Held != 0 || got.HeldBytes != 0 {
		t.Errorf("%+v", got)
	}
}
