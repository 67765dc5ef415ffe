package dataplane

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/headgate/headgate/dataplane/ir"
)

// h2Server starts a server with one backend behind TLS.
func h2Server(t testing.TB, change func(*Options), h http.HandlerFunc) (*Server, string) {
	t.Helper()
	be := backendServer(t, h)
	s := newServer(t, change)
	return s, apply(t, s, secure(t, oneRoute(clusterOf("default/be:80", be.URL), nil)))
}

func ok(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	fmt.Fprint(w, "ok")
}

// settled waits until the settings of both sides are known: reading writes
// nothing any more.
func (p *h2Peer) settled() {
	p.t.Helper()
	p.must(p.WritePing(false, [8]byte{1}))
	for {
		if f, ok := p.next().(*http2.PingFrame); ok && f.IsAck() {
			return
		}
	}
}

// ended reads until the connection ends, in order.
func (p *h2Peer) ended() {
	p.t.Helper()
	if _, err := io.Copy(io.Discard, p.conn); err != nil {
		p.t.Errorf("the connection ended with %v", err)
	}
}

func TestH2IdleConnection(t *testing.T) {
	_, addr := h2Server(t, func(o *Options) { o.Timeouts.Idle = 2 * time.Second }, ok)
	p := dialH2(t, addr)
	p.request(1, true)
	p.wantStatus(1, "200")
	p.settled()
	stop := make(chan struct{})
	defer close(stop)
	go func() { // PINGs keep nothing open
		for {
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Millisecond):
				if p.WritePing(false, [8]byte{}) != nil {
					return
				}
			}
		}
	}()
	for {
		switch f := p.next().(type) {
		case *http2.GoAwayFrame:
			if f.ErrCode != http2.ErrCodeNo || f.LastStreamID != 1<<31-1 {
				t.Errorf("got %v", f)
			}
			p.wantGoAway(http2.ErrCodeNo) // no answer to the PING: after a second
			p.ended()
			return
		case *http2.DataFrame, *http2.PingFrame:
		default:
			t.Fatalf("got %v", f)
		}
	}
}

func TestH2SlowBeginnings(t *testing.T) {
	// Has room for the handshake.
	s, addr := h2Server(t, func(o *Options) { o.Timeouts.Header = 2 * time.Second }, ok)
	t.Cleanup(func() {
		if n := s.clusters.Clusters()[0].Stats().Active; n != 0 {
			t.Errorf("%d requests are under way", n)
		}
	})
	for name, begin := range map[string]func(*h2Peer){
		"nothing":      func(*h2Peer) {},
		"half-preface": func(p *h2Peer) { _, _ = io.WriteString(p.conn, http2.ClientPreface[:10]) },
		"no-settings":  func(p *h2Peer) { _, _ = io.WriteString(p.conn, http2.ClientPreface) },
		"half-head": func(p *h2Peer) {
			_, _ = io.WriteString(p.conn, http2.ClientPreface)
			p.must(p.WriteSettings())
			p.must(p.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x82}}))
		},
		"dribble": func(p *h2Peer) {
			_, _ = io.WriteString(p.conn, http2.ClientPreface)
			p.must(p.WriteSettings())
			_, _ = p.conn.Write([]byte{0, 0, 9, 1, 4, 0, 0, 0, 1})
			for range 4 {
				time.Sleep(20 * time.Millisecond)
				_, _ = p.conn.Write([]byte{0x82})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := tls.Dial("tcp", addr, clientTLS("h2"))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(20 * time.Second))
			p := &h2Peer{Framer: http2.NewFramer(c, c), t: t, conn: c}
			begin(p)
			for {
				f, err := p.ReadFrame()
				if err != nil {
					t.Fatal(err)
				}
				if f, ok := f.(*http2.GoAwayFrame); ok {
					if f.ErrCode != http2.ErrCodeNo {
						t.Errorf("got %v", f)
					}
					break
				}
			}
			p.ended()
		})
	}
}

func TestH2BodyThatStops(t *testing.T) {
	s, addr := h2Server(t, func(o *Options) { o.Timeouts.Body = 150 * time.Millisecond }, ok)
	p := dialH2(t, addr)
	p.request(1, false, ":method", "POST")
	p.must(p.WriteData(1, false, []byte("abc")))
	p.wantStatus(1, "408")
	p.wantReset(1, http2.ErrCodeNo)
	p.request(3, true)
	p.wantStatus(3, "200")
	eventually(t, "the pool's place is given back", func() bool { return clusterStats(s)["default/be:80"].Active == 0 })
}

// A client that opens no window is given up, stream by stream, whether it is the
// stream's or the connection's; one that is slow is not.
func TestH2ReaderThatStops(t *testing.T) {
	big := make([]byte, 1<<20)
	_, addr := h2Server(t, func(o *Options) { o.Timeouts.Write = 2 * time.Second }, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/big" {
			_, _ = w.Write(big)
			return
		}
		ok(w, r)
	})
	t.Run("stream", func(t *testing.T) {
		t.Parallel()
		p := dialH2(t, addr, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10})
		p.request(1, true, ":path", "/big")
		p.wantStatus(1, "200")
		p.wantReset(1, http2.ErrCodeCancel)
		p.request(3, true)
		p.wantStatus(3, "200")
	})
	t.Run("connection", func(t *testing.T) {
		t.Parallel()
		p := dialH2(t, addr, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 30})
		p.request(1, true, ":path", "/big")
		p.wantStatus(1, "200")
		p.wantReset(1, http2.ErrCodeCancel)
	})
	t.Run("slow", func(t *testing.T) {
		t.Parallel()
		p := dialH2(t, addr, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10})
		p.request(1, true, ":path", "/big")
		p.wantStatus(1, "200")
		for range 25 {
			time.Sleep(100 * time.Millisecond)
			p.must(p.WriteWindowUpdate(1, 10))
			if f, ok := p.next().(*http2.DataFrame); !ok {
				t.Fatalf("got %v", f)
			}
		}
	})
}

func TestH2MaxRequests(t *testing.T) {
	_, addr := h2Server(t, func(o *Options) { o.MaxRequests = 3 }, ok)
	c := h2Client(t, addr)
	for i := range 20 { // over several connections, without a failure
		resp, err := c.Get("https://a.test/")
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		if body, err := io.ReadAll(resp.Body); string(body) != "ok" || err != nil {
			t.Errorf("request %d: %q, %v", i, body, err)
		}
	}
	p := dialH2(t, addr)
	for i := range 3 {
		p.request(uint32(2*i+1), true)
	}
	if f := p.wantGoAway(http2.ErrCodeNo); f.LastStreamID != 1<<31-1 {
		t.Errorf("the first GOAWAY refuses streams above %d", f.LastStreamID)
	}
	p.request(7, true) // is on its way
	p.wantGoAway2(7)
	p.ended()
}

// wantGoAway2 answers the PING that follows a warning, and expects the last
// GOAWAY.
func (p *h2Peer) wantGoAway2(last uint32) {
	p.t.Helper()
	for {
		switch f := p.next().(type) {
		case *http2.PingFrame:
			p.must(p.WritePing(true, f.Data))
		case *http2.GoAwayFrame:
			if f.LastStreamID != last {
				p.t.Errorf("the last stream is %d, want %d", f.LastStreamID, last)
			}
			return
		}
	}
}

func TestH2RapidReset(t *testing.T) {
	s, addr := h2Server(t, nil, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	p := dialH2(t, addr)
	p.settled()
	go func() {
		for i := range uint32(5000) {
			if p.tryRequest(2*i+1, true) != nil || p.WriteRSTStream(2*i+1, http2.ErrCodeCancel) != nil {
				return
			}
		}
	}()
	p.wantGoAway(http2.ErrCodeEnhanceYourCalm)
	eventually(t, "no request is under way", func() bool { return clusterStats(s)["default/be:80"].Active == 0 })
}

// A client that sends PINGs and reads nothing does not make the gateway collect
// the answers.
func TestH2PingsThatNobodyReads(t *testing.T) {
	s, addr := h2Server(t, nil, func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := w.Write(make([]byte, 32<<10)); err != nil {
				return
			}
		}
	})
	p := dialH2(t, addr, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 30})
	p.must(p.WriteWindowUpdate(0, 1<<30))
	p.request(1, true)
	_ = p.conn.SetDeadline(time.Now().Add(3 * time.Second))
	for range 900 {
		if p.WritePing(false, [8]byte{}) != nil {
			break
		}
	}
	var w *worker
	for _, x := range s.workers {
		if x.loop.Stats().Accepted > 0 {
			w = x
		}
	}
	queued := make(chan int)
	for range 20 {
		time.Sleep(10 * time.Millisecond)
		w.Post(func() { queued <- w.clients.first.conn.Buffered() })
		if n := <-queued; n > 1<<20 {
			t.Fatalf("%d bytes are queued", n)
		}
	}
}

// The end of the client's sending ends requests that are not whole, and lets the
// others finish.
func TestH2HalfClose(t *testing.T) {
	release := make(chan struct{})
	s, addr := h2Server(t, nil, func(w http.ResponseWriter, r *http.Request) {
		<-release
		ok(w, r)
	})
	p := dialH2(t, addr)
	p.request(1, true)
	p.request(3, false, ":method", "POST")
	for clusterStats(s)["default/be:80"].Active < 2 {
		time.Sleep(time.Millisecond)
	}
	p.settled()
	p.must(p.conn.(*tls.Conn).CloseWrite())
	p.wantReset(3, http2.ErrCodeCancel)
	close(release)
	p.wantStatus(1, "200")
	p.ended()
}

// HTTP/2 with prior knowledge is not spoken on plain sockets, and said so.
func TestH2PriorKnowledgeIsRefused(t *testing.T) {
	s := newServer(t, nil)
	c := dial(t, apply(t, s, oneRoute(clusterOf("default/be:80"), nil)))
	if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	if body, _ := io.ReadAll(resp.Body); resp.StatusCode != 505 || !strings.Contains(string(body), "HTTP/2") {
		t.Errorf("got %d %q", resp.StatusCode, body)
	}
}

// TestH2RequestsAllocateLittle counts what a request costs in steady state: two
// objects of crypto/tls on each side.
func TestH2RequestsAllocateLittle(t *testing.T) {
	s := newServer(t, nil)
	addr := apply(t, s, secure(t, oneRoute(clusterOf("default/be:80", rawBackend(t, allocAnswer)), func(r *ir.Rule) {
		r.Filters = []*ir.Filter{{RequestHeaders: &ir.HeaderChange{Set: []ir.Header{{Name: "X-A", Value: "1"}}}}}
	})))
	p := dialH2(t, addr)
	fields := []string{":path", "/a/b?c=d", "user-agent", "test", "accept", "*/*", "accept-encoding", "gzip, deflate", "cookie", "a=b"}
	answer := func() {
		for {
			if f, ok := p.next().(*http2.DataFrame); ok && f.StreamEnded() {
				return
			}
		}
	}
	p.request(1, true, fields...)
	answer()
	p.must(p.WriteWindowUpdate(0, 1<<30))
	p.request(3, true, fields...)
	frame := append([]byte{0, 0, byte(len(p.head)), 1, 5, 0, 0, 0, 0}, p.head...)
	answer()
	id := uint32(3)
	one := make([]byte, 4096)
	next := func(want int) int {
		id += 2
		frame[5], frame[6], frame[7], frame[8] = byte(id>>24), byte(id>>16), byte(id>>8), byte(id)
		if _, err := p.conn.Write(frame); err != nil {
			t.Fatal(err)
		}
		n := 0
		for n < want || want == 0 && !bytes.HasSuffix(one[:n], bytes.Repeat([]byte("x"), 512)) {
			k, err := p.conn.Read(one[n:])
			if err != nil {
				t.Fatal(err)
			}
			n += k
		}
		return n
	}
	size := next(0)
	for range 300 {
		next(size)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const n = 3000
	for range n {
		next(size)
	}
	runtime.ReadMemStats(&after)
	per := float64(after.Mallocs-before.Mallocs) / n
	t.Logf("%.2f allocations per request", per)
	if per > 6 { // 2 but for the race detector
		t.Errorf("%.2f allocations per request", per)
	}
}

// A connection without a request is kept for a while when the server drains: a
// request that is on its way is answered, and is the last.
func TestH2DrainOfAnIdleConnection(t *testing.T) {
	s, addr := h2Server(t, nil, ok)
	p := dialH2(t, addr)
	p.settled()
	s.Drain(time.Minute)
	time.Sleep(20 * time.Millisecond)
	p.request(1, true)
	seen := ""
	for seen != "200 warned left" {
		switch f := p.next().(type) {
		case *http2.MetaHeadersFrame:
			seen = strings.TrimSpace(f.PseudoValue("status") + " " + seen)
		case *http2.GoAwayFrame:
			if f.LastStreamID == 1<<31-1 {
				seen = strings.TrimSpace(seen + " warned")
			} else if f.LastStreamID == 1 {
				seen += " left"
			}
		case *http2.PingFrame:
			p.must(p.WritePing(true, f.Data))
		case *http2.DataFrame:
		default:
			t.Fatalf("got %v", f)
		}
	}
	p.ended()
}
