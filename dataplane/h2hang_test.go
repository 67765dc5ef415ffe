package dataplane

import (
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
	if st := clusterStats(s)["default/be:80"]; st.Active != 0 {
		t.Errorf("the pool's place was not given back: %+v", st)
	}
}
