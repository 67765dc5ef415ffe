package dataplane

import (
	"fmt"
	"io"
	"net/http"
	"testing"

	"golang.org/x/net/http2"
)

// A client whose request is held may send as much as its stream's first window
// takes, and gets no more window before the request has its place; then all of it
// arrives.
func TestH2HeldStreamKeepsItsWindow(t *testing.T) {
	release := make(chan struct{})
	be := backendServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hang" {
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}
		n, _ := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, n)
	})
	s := newServer(t, nil)
	c := clusterOf("default/be:80", be.URL)
	c.Pool.Size = 1
	addr := apply(t, s, secure(t, oneRoute(c, nil)))
	busy := dialH2(t, addr)
	busy.request(1, true, ":path", "/hang")
	eventually(t, "the pool is full", func() bool { return clusterStats(s)["default/be:80"].Active == 1 })

	const size = 300_000
	p := dialH2(t, addr)
	p.request(1, false, ":method", "POST", "content-length", fmt.Sprint(size))
	eventually(t, "the request is held", func() bool { return clusterStats(s)["default/be:80"].Held == 1 })
	// Windows that were given, of the connection and of the stream; what the frame
	// was that ended the reading.
	window := map[uint32]int{0: 65535}
	var sent int
	var body []byte
	read := func(until func(http2.Frame) bool) {
		t.Helper()
		for {
			f, err := p.ReadFrame()
			if err != nil {
				t.Fatal(err)
			}
			switch f := f.(type) {
			case *http2.SettingsFrame:
				if v, ok := f.Value(http2.SettingInitialWindowSize); ok {
					window[1] = int(v)
				}
				if !f.IsAck() {
					p.must(p.WriteSettingsAck())
				}
			case *http2.WindowUpdateFrame:
				window[f.StreamID] += int(f.Increment)
			case *http2.DataFrame:
				body = append(body, f.Data()...)
			}
			if until(f) {
				return
			}
		}
	}
	// ping waits until the server has seen all that was sent.
	ping := func() {
		t.Helper()
		p.must(p.WritePing(false, [8]byte{1}))
		read(func(f http2.Frame) bool {
			ack, ok := f.(*http2.PingFrame)
			return ok && ack.IsAck()
		})
	}
	send := func() {
		t.Helper()
		for sent < size && window[0] > 0 && window[1] > 0 {
			n := min(16<<10, size-sent, window[0], window[1])
			p.must(p.WriteData(1, sent+n == size, make([]byte, n)))
			sent, window[0], window[1] = sent+n, window[0]-n, window[1]-n
		}
	}
	ping()
	first := window[1]
	for range 3 {
		send()
		ping()
	}
	if sent > first || window[1] > 0 && window[0] > 0 {
		t.Errorf("the client of a held request could send %d bytes of %d, its first window was %d", sent, size, first)
	}
	if st := clusterStats(s)["default/be:80"]; st.Held != 1 || st.HeldBytes < int64(sent) {
		t.Errorf("%d bytes were sent: %+v", sent, st)
	}
	close(release)
	for ended := false; !ended; send() {
		read(func(f http2.Frame) bool {
			d, ok := f.(*http2.DataFrame)
			ended = ok && d.StreamEnded()
			_, more := f.(*http2.WindowUpdateFrame)
			return ended || more
		})
	}
	if string(body) != fmt.Sprint(size) {
		t.Errorf("the backend got %s bytes of %d", body, size)
	}
}
