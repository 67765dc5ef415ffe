package dataplane

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/headgate/headgate/dataplane/ir"
)

func TestALPN(t *testing.T) {
	be := backendServer(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Proto, r.Host) })
	s := newServer(t, nil)
	addr := apply(t, s, secure(t, oneRoute(clusterOf("default/be:80", be.URL), nil)))
	for _, c := range []struct {
		offer []string
		want  string
	}{
		{[]string{"h2", "http/1.1"}, "h2"},
		{[]string{"http/1.1", "h2"}, "h2"}, // the server's preference
		{[]string{"h2"}, "h2"},
		{[]string{"http/1.1"}, "http/1.1"},
		{nil, ""},
	} {
		conn, err := tls.Dial("tcp", addr, clientTLS(c.offer...))
		if err != nil {
			t.Fatalf("%v: %v", c.offer, err)
		}
		if got := conn.ConnectionState().NegotiatedProtocol; got != c.want {
			t.Errorf("offered %v, got %q, want %q", c.offer, got, c.want)
		}
		if c.want != "h2" {
			_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
			if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			buf := make([]byte, 12)
			if _, err := io.ReadFull(conn, buf); err != nil || string(buf) != "HTTP/1.1 200" {
				t.Errorf("offered %v: got %q, %v", c.offer, buf, err)
			}
		}
		conn.Close()
	}
	if _, err := tls.Dial("tcp", addr, clientTLS("spdy/3")); err == nil {
		t.Error("a client that speaks none of our protocols was taken")
	}
}

func TestH2Requests(t *testing.T) {
	be := backendServer(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Seen", strings.Join([]string{r.Method, r.Proto, r.Host, r.RequestURI, r.Header.Get("Cookie"),
			r.Header.Get("X-Forwarded-Proto"), strings.Join(r.TransferEncoding, ","), fmt.Sprint(r.ContentLength)}, " "))
		w.Header().Set("Keep-Alive", "timeout=5")
		w.Header().Add("Set-Cookie", "a=b")
		w.Header().Add("Set-Cookie", "c=d")
		switch r.URL.Path {
		case "/204":
			w.WriteHeader(204)
		case "/304":
			w.Header().Set("Etag", `"x"`)
			w.WriteHeader(304)
		default:
			_, _ = w.Write(body)
		}
	})
	s := newServer(t, nil)
	addr := apply(t, s, secure(t, oneRoute(clusterOf("default/be:80", be.URL), nil)))
	c := h2Client(t, addr)
	for _, k := range []struct {
		name, method, path string
		body               io.Reader
		status             int
		seen, answer       string
	}{
		{"get", "GET", "/a?b=c", nil, 200, "GET HTTP/1.1 a.test /a?b=c x=1; y=2 https  0", ""},
		{"length", "POST", "/", strings.NewReader("hello"), 200, "POST HTTP/1.1 a.test / x=1; y=2 https  5", "hello"},
		{"no-length", "POST", "/", io.MultiReader(strings.NewReader("hello")), 200, "POST HTTP/1.1 a.test / x=1; y=2 https chunked -1", "hello"},
		{"head", "HEAD", "/", nil, 200, "HEAD HTTP/1.1 a.test / x=1; y=2 https  0", ""},
		{"204", "GET", "/204", nil, 204, "GET HTTP/1.1 a.test /204 x=1; y=2 https  0", ""},
		{"304", "GET", "/304", nil, 304, "GET HTTP/1.1 a.test /304 x=1; y=2 https  0", ""},
	} {
		t.Run(k.name, func(t *testing.T) {
			r, err := http.NewRequest(k.method, "https://a.test"+k.path, k.body)
			if err != nil {
				t.Fatal(err)
			}
			r.Header["Cookie"] = []string{"x=1; y=2"} // the transport sends crumbs
			resp, err := c.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			got, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != k.status || string(got) != k.answer || resp.Proto != "HTTP/2.0" {
				t.Errorf("got %s %d %q %v", resp.Proto, resp.StatusCode, got, err)
			}
			if seen := resp.Header.Get("X-Seen"); seen != k.seen {
				t.Errorf("the backend saw %q, want %q", seen, k.seen)
			}
			if resp.Header.Get("Keep-Alive") != "" || len(resp.Header["Set-Cookie"]) != 2 {
				t.Errorf("headers %v", resp.Header)
			}
		})
	}
}

func TestH2ManyStreams(t *testing.T) {
	be := backendServer(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		w.Header().Set("Trailer", "X-Sum")
		sum := sha256.New()
		n, err := io.Copy(io.MultiWriter(w, sum), r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("X-Sum", fmt.Sprintf("%x %d", sum.Sum(nil), n))
	})
	s := newServer(t, nil)
	addr := apply(t, s, secure(t, oneRoute(clusterOf("default/be:80", be.URL), nil)))
	c := h2Client(t, addr)
	if resp, err := c.Get("https://a.test/"); err != nil || resp.StatusCode != 200 {
		t.Fatal(err) // the others share its connection
	}
	var wg sync.WaitGroup
	for i := range 90 { // with more than 100 the client's own queue gets stuck
		wg.Go(func() {
			body := bytes.Repeat([]byte{byte(i)}, i*i*25)
			pr, pw := io.Pipe()
			go func() {
				for rest := body; len(rest) > 0; {
					n := min(len(rest), 10_000)
					if _, err := pw.Write(rest[:n]); err != nil {
						return
					}
					rest = rest[n:]
				}
				pw.Close()
			}()
			resp, err := c.Post("https://a.test/", "text/plain", pr)
			if err != nil {
				t.Errorf("stream %d: %v", i, err)
				return
			}
			defer resp.Body.Close()
			got, err := io.ReadAll(resp.Body)
			if err != nil || !bytes.Equal(got, body) {
				t.Errorf("stream %d: %d bytes of %d, %v", i, len(got), len(body), err)
			}
			if want := fmt.Sprintf("%x %d", sha256.Sum256(body), len(body)); resp.Trailer.Get("X-Sum") != want {
				t.Errorf("stream %d: trailer %q, want %q", i, resp.Trailer.Get("X-Sum"), want)
			}
		})
	}
	wg.Wait()
	if n := s.Connections(); n != 1 {
		t.Errorf("%d connections were opened, want 1", n)
	}
}

func TestH2LargeBodies(t *testing.T) {
	be := backendServer(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		_, _ = io.Copy(w, r.Body)
	})
	s := newServer(t, nil)
	addr := apply(t, s, secure(t, oneRoute(clusterOf("default/be:80", be.URL), nil)))
	c := h2Client(t, addr)
	const size = 32 << 20
	resp, err := c.Post("https://a.test/", "text/plain", io.LimitReader(zeros{}, size))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if n, err := io.Copy(io.Discard, resp.Body); n != size || err != nil {
		t.Errorf("%d bytes came back, %v", n, err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestH2RequestTrailersAndInformational(t *testing.T) {
	be := backendServer(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</a.css>; rel=preload")
		w.WriteHeader(103)
		w.Header().Del("Link")
		_, _ = io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, r.Trailer.Get("X-End"), r.Header.Get("Te"))
	})
	s := newServer(t, nil)
	addr := apply(t, s, secure(t, oneRoute(clusterOf("default/be:80", be.URL), nil)))
	c := h2Client(t, addr)
	r, err := http.NewRequest("POST", "https://a.test/", io.MultiReader(strings.NewReader("x")))
	if err != nil {
		t.Fatal(err)
	}
	r.Trailer = http.Header{"X-End": {"done"}}
	r.Header.Set("Te", "trailers")
	var early atomic.Int32
	r = r.WithContext(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
			if code == 103 && h.Get("Link") != "" {
				early.Add(1)
			}
			return nil
		},
	}))
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got, err := io.ReadAll(resp.Body); string(got) != "donetrailers" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if early.Load() != 1 {
		t.Errorf("%d early hints", early.Load())
	}
}

func TestH2Cancel(t *testing.T) {
	gone := make(chan struct{})
	be := backendServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/hang" {
			return
		}
		w.WriteHeader(200)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(gone)
	})
	s := newServer(t, nil)
	addr := apply(t, s, secure(t, oneRoute(clusterOf("default/be:80", be.URL), nil)))
	c := h2Client(t, addr)
	ctx, cancel := context.WithCancel(t.Context())
	r, _ := http.NewRequestWithContext(ctx, "GET", "https://a.test/hang", nil)
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	cancel()
	<-gone
	if resp, err := c.Get("https://a.test/"); err != nil || resp.StatusCode != 200 {
		t.Errorf("the connection is of no use after a reset: %v", err)
	}
	if n := s.Connections(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

func TestH2MisdirectedAndLocalReplies(t *testing.T) {
	be := backendServer(t, func(http.ResponseWriter, *http.Request) {})
	s := newServer(t, nil)
	snap := oneRoute(clusterOf("default/be:80", be.URL), nil)
	sock := snap.Sockets[0]
	first := sock.Listeners[0]
	other := *first
	other.Name, other.Hostname = "default/gw/other", "b.test"
	route := *first.Routes[0]
	route.Hostnames = []string{"b.test"}
	other.Routes = []*ir.Route{&route}
	first.Hostname, first.Routes[0].Hostnames = "a.test", []string{"a.test"}
	sock.Listeners = append(sock.Listeners, &other)
	addr := apply(t, s, secure(t, snap))
	c := h2Client(t, addr)
	for host, want := range map[string]int{"a.test": 200, "b.test": 421, "c.test": 404} {
		resp, err := c.Get("https://" + host + "/")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if resp.StatusCode != want || err != nil || want != 200 && int64(len(body)) != resp.ContentLength {
			t.Errorf("%s: got %d %q %v, want %d", host, resp.StatusCode, body, err, want)
		}
	}
}

// Nothing is refused and nothing fails while the server stops.
func TestH2DrainFailsNoRequest(t *testing.T) {
	be := backendServer(t, func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(5 * time.Millisecond)
		fmt.Fprint(w, "ok")
	})
	s := newServer(t, nil)
	addr := apply(t, s, secure(t, oneRoute(clusterOf("default/be:80", be.URL), nil)))
	c := h2Client(t, addr)
	var stop atomic.Bool
	var served atomic.Int64
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			for !stop.Load() {
				resp, err := c.Get("https://a.test/")
				var op *net.OpError
				if errors.As(err, &op) && op.Op == "dial" {
					return // the socket is closed: no new connection is made
				}
				if err != nil {
					t.Errorf("a request failed: %v", err)
					return
				}
				body, err := io.ReadAll(resp.Body)
				if string(body) != "ok" || err != nil {
					t.Errorf("got %q, %v", body, err)
				}
				served.Add(1)
			}
		})
	}
	for served.Load() < 200 {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	stop.Store(true)
	wg.Wait()
}

// A stream whose client does not read costs a bounded amount of memory and does
// not stop the others.
func TestH2StalledStreams(t *testing.T) {
	var moved atomic.Int64
	be := backendServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/small" {
			fmt.Fprint(w, "ok")
			return
		}
		block := make([]byte, 64<<10)
		for {
			n, err := w.Write(block)
			moved.Add(int64(n))
			if err != nil {
				return
			}
		}
	})
	s := newServer(t, nil)
	addr := apply(t, s, secure(t, oneRoute(clusterOf("default/be:80", be.URL), nil)))
	p := dialH2(t, addr, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1000})
	const streams = 30
	for i := range streams {
		p.request(uint32(2*i+1), true, ":path", "/large")
	}
	got := map[uint32]int{}
	for total := 0; total < streams*1000; {
		if f, ok := p.next().(*http2.DataFrame); ok {
			got[f.StreamID] += len(f.Data())
			total += len(f.Data())
		}
	}
	for id, n := range got {
		if n != 1000 {
			t.Errorf("stream %d: %d bytes, its window has 1000", id, n)
		}
	}
	p.request(101, true, ":path", "/small")
	p.wantStatus(101, "200")
	queued := make(chan [2]int)
	var w *worker
	for _, x := range s.workers {
		if x.loop.Stats().Accepted > 0 {
			w = x
		}
	}
	w.Post(func() {
		sum, open := 0, 0
		for st := w.clients.first.h2.first; st != nil; st = st.next {
			sum += len(st.queue)
			open++
		}
		queued <- [2]int{sum, open}
	})
	if q := <-queued; q[0] > streams*(80<<10) || q[1] < streams {
		t.Errorf("%d bytes are queued for %d streams", q[0], q[1])
	}
	// One that goes on gets what it asks for.
	p.must(p.WriteWindowUpdate(1, 500_000))
	p.must(p.WriteWindowUpdate(0, 500_000))
	for n := 0; n < 500_000; {
		if f, ok := p.next().(*http2.DataFrame); ok && f.StreamID == 1 {
			n += len(f.Data())
		}
	}
}

func TestH2EarlyResponse(t *testing.T) {
	be := backendServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		w.WriteHeader(413)
		fmt.Fprint(w, "too large")
	})
	s := newServer(t, nil)
	addr := apply(t, s, secure(t, oneRoute(clusterOf("default/be:80", be.URL), nil)))
	p := dialH2(t, addr)
	p.request(1, false, ":method", "POST")
	p.must(p.WriteData(1, false, make([]byte, 1000)))
	p.wantStatus(1, "413")
	p.wantReset(1, http2.ErrCodeNo)
	// What was on its way is ignored, and the connection goes on.
	p.must(p.WriteData(1, false, make([]byte, 1000)))
	p.must(p.WriteData(1, true, nil))
	p.request(3, true)
	p.wantStatus(3, "413")
}

// An upload whose backend does not read is stopped by its window, and the
// others' is not.
func TestH2StalledUpload(t *testing.T) {
	release := make(chan struct{})
	be := backendServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/stall" {
			<-release
		}
		n, _ := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, n)
	})
	s := newServer(t, nil)
	addr := apply(t, s, secure(t, oneRoute(clusterOf("default/be:80", be.URL), nil)))
	c := h2Client(t, addr)
	c.Timeout = 0
	const size = 40 << 20
	var sent [3]atomic.Int64
	var wg sync.WaitGroup
	for i := range sent {
		wg.Go(func() {
			resp, err := c.Post("https://a.test/stall", "text/plain", io.LimitReader(counting{&sent[i]}, size))
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			if body, err := io.ReadAll(resp.Body); string(body) != fmt.Sprint(size) || err != nil {
				t.Errorf("the backend got %s of %d, %v", body, size, err)
			}
		})
	}
	resp, err := c.Post("https://a.test/", "text/plain", io.LimitReader(zeros{}, 5<<20))
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(resp.Body); string(body) != fmt.Sprint(5<<20) || err != nil {
		t.Errorf("beside a stalled upload: %s, %v", body, err)
	}
	var last int64
	for still := 0; still < 20; time.Sleep(20 * time.Millisecond) {
		if n := sent[0].Load() + sent[1].Load() + sent[2].Load(); n == last {
			still++
		} else {
			still, last = 0, n
		}
	}
	if last >= 3*size {
		t.Error("all of it was taken, though nobody read it")
	}
	close(release)
	wg.Wait()
}

type counting struct{ n *atomic.Int64 }

func (c counting) Read(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return zeros{}.Read(p)
}
