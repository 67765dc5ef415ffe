package dataplane

import (
	"io"
	"net/http"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// A request that says it has no body, and never ends, has a deadline like one
// whose body stops: the upstream's begins when the request has ended.
func TestH2RequestWithoutABodyThatDoesNotEnd(t *testing.T) {
	s, addr := h2Server(t, func(o *Options) { o.Timeouts.Body = 150 * time.Millisecond }, func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
	})
	p := dialH2(t, addr)
	p.request(1, false, ":method", "POST", "content-length", "0")
	p.wantStatus(1, "408")
	p.wantReset(1, http2.ErrCodeNo)
	eventually(t, "the pool's place is given back", func() bool { return clusterStats(s)["default/be:80"].Active == 0 })
}

// Frames that come in pieces keep a connection open no more than whole ones.
func TestH2IdleConnectionInPieces(t *testing.T) {
	const ping = "\x00\x00\x08\x06\x00\x00\x00\x00\x0012345678"
	for name, c := range map[string]struct {
		first  string
		pieces []string
	}{
		"halves":          {"", []string{ping[:8], ping[8:]}},
		"always-one-open": {ping[:8], []string{ping[8:] + ping[:8]}},
	} {
		t.Run(name, func(t *testing.T) {
			_, addr := h2Server(t, func(o *Options) { o.Timeouts.Idle, o.Timeouts.Header = 300*time.Millisecond, 400*time.Millisecond }, ok)
			p := dialH2(t, addr)
			p.request(1, true)
			p.wantStatus(1, "200")
			p.settled()
			stop := make(chan struct{})
			defer close(stop)
			go func() {
				_, err := io.WriteString(p.conn, c.first)
				for i := 0; err == nil; i++ {
					select {
					case <-stop:
						return
					case <-time.After(50 * time.Millisecond):
						_, err = io.WriteString(p.conn, c.pieces[i%len(c.pieces)])
					}
				}
			}()
			p.wantGoAway(http2.ErrCodeNo)
		})
	}
}
