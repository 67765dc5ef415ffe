package cases

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// h2Client is a client that speaks HTTP/2 only, on one connection to addr.
func h2Client(t testing.TB, addr, serverName string) *http.Client {
	t.Helper()
	tr := &http.Transport{
		TLSClientConfig:   &tls.Config{ServerName: serverName, InsecureSkipVerify: true, NextProtos: []string{"h2"}},
		ForceAttemptHTTP2: true,
		HTTP2:             &http.HTTP2Config{StrictMaxConcurrentRequests: true},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, addr)
		},
	}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 60 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// h2Edge starts a gateway with one HTTPS listener for any host.
func h2Edge(t testing.TB, be *backend) (g *gateway, addr string) {
	t.Helper()
	port := freePort(t)
	g = start(t, options{listeners: []string{httpsListener("https", port, "", "{name: cert}")}},
		be.manifest(), newCertificate(t, "a").secret("default", "cert"), simpleRoute("a", be))
	return g, loopback(port)
}

// do sends a request and returns the answer with its body.
func do(t testing.TB, c *http.Client, method, url string, body io.Reader) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequest(method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.ProtoMajor != 2 {
		t.Errorf("the answer is %s", resp.Proto)
	}
	return resp, string(got)
}

func TestHTTP2Misdirected(t *testing.T) {
	addr, be := misdirected(t)
	for _, c := range []struct {
		sni, host string
		status    int
	}{
		{"example.org", "example.org", 200},
		{"second-example.org", "second-example.org", 200},
		{"third-example.wildcard.org", "fifth-example.wildcard.org", 200},
		{"example.org", "second-example.org", 421},
		{"example.org", "unknown-example.org", 404},
		{"third-example.wildcard.org", "fourth-example.wildcard.org", 421},
		{"fourth-example.wildcard.org", "second-example.org", 421},
	} {
		t.Run("B35/h2-"+c.sni+"-"+c.host, func(t *testing.T) {
			m := be.mark()
			resp, _ := do(t, h2Client(t, addr, c.sni), "GET", "https://"+c.host+"/", nil)
			if resp.StatusCode != c.status {
				t.Errorf("status %d, want %d", resp.StatusCode, c.status)
			}
			if c.status != 200 {
				be.wantNothingSince(t, m)
			}
		})
	}
}

func TestHTTP2(t *testing.T) {
	be := newBackend(t, "be")
	_, addr := h2Edge(t, be)
	c := h2Client(t, addr, "a")

	t.Run("B14/h2-early-response", func(t *testing.T) { // the answer comes, and the upload is stopped
		be.set(func(u *upstreamConn, _ *request) {
			u.write("HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig")
			u.Close()
		})
		resp, body := do(t, c, "POST", "https://a/", io.LimitReader(endless{}, 1<<30))
		if resp.StatusCode != 413 || body != "big" {
			t.Errorf("got %d %q", resp.StatusCode, body)
		}
	})
	for _, k := range []struct {
		name, method, answer string
		status               int
		length               int64
	}{
		{"B15/h2-head", "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", 200, 5},
		{"B15/h2-head-chunked", "HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 200, -1},
		{"B15/h2-204", "GET", "HTTP/1.1 204 No Content\r\n\r\n", 204, 0},
		{"B15/h2-304", "GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", 304, 0},
		{"B15/h2-empty", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200, 0},
	} {
		t.Run(k.name, func(t *testing.T) {
			be.set(answer(k.answer))
			for range 3 { // on one connection: nobody waits for a body
				resp, body := do(t, c, k.method, "https://a/", nil)
				if resp.StatusCode != k.status || body != "" || resp.ContentLength != k.length {
					t.Errorf("got %d %q, length %d, want %d", resp.StatusCode, body, resp.ContentLength, k.length)
				}
			}
		})
	}
	t.Run("B13/h2-fields", func(t *testing.T) { // nothing of HTTP/1.1's connections goes either way
		be.set(be.echo)
		m := be.mark()
		do(t, c, "POST", "https://a/x?y", strings.NewReader("hello"))
		q := be.requestsSince(m)[0]
		if q.method != "POST" || q.target != "/x?y" || q.get("Host") != "a" || string(q.body) != "hello" || q.get("Content-Length") != "5" || q.has("Connection") {
			t.Errorf("the backend got %q", q.raw)
		}
		wantForwarded(t, q, "127.0.0.1", "https", "a")
		be.set(answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nKeep-Alive: timeout=5\r\nConnection: X-Hop\r\nX-Hop: 1\r\nX-Kept: 1\r\n\r\n"))
		resp, _ := do(t, c, "GET", "https://a/", nil)
		if h := resp.Header; h.Get("X-Hop") != "" || h.Get("Connection") != "" || h.Get("Keep-Alive") != "" || h.Get("X-Kept") != "1" {
			t.Errorf("headers %v", h)
		}
	})
	t.Run("B16/h2-truncated", func(t *testing.T) { // an answer that breaks off is seen to
		for name, a := range map[string]string{"length": "Content-Length: 100\r\n\r\nabc", "chunked": "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"} {
			be.set(answerClose("HTTP/1.1 200 OK\r\n" + a))
			resp, err := c.Get("https://a/")
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(resp.Body); err == nil {
				t.Errorf("%s: %q looks like a whole answer", name, got)
			}
		}
	})
	t.Run("B17/h2-trailers", func(t *testing.T) {
		be.set(answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 7\r\n\r\n"))
		resp, body := do(t, c, "GET", "https://a/", nil)
		if body != "ok" || resp.Trailer.Get("X-Sum") != "7" {
			t.Errorf("got %q, trailers %v", body, resp.Trailer)
		}
	})
	for _, kind := range []struct{ name, media, message, status string }{
		{"events", "text/event-stream", "data: x\n\n", ""},
		{"grpc", "application/grpc", "\x00\x00\x00\x00\x04four", "0"}, // a message of four bytes
	} {
		t.Run("B20/h2-"+kind.name, func(t *testing.T) { // each is there when it was sent
			next := make(chan struct{})
			be.set(func(u *upstreamConn, _ *request) {
				u.write("HTTP/1.1 200 OK\r\nContent-Type: " + kind.media + "\r\nTransfer-Encoding: chunked\r\nTrailer: Grpc-Status\r\n\r\n")
				for range next {
					u.write("9\r\n" + kind.message + "\r\n")
				}
				if kind.status != "" {
					u.write("0\r\nGrpc-Status: " + kind.status + "\r\n\r\n")
				} else {
					u.write("0\r\n\r\n")
				}
			})
			q, err := http.NewRequest(http.MethodPost, "https://a/", nil)
			if err != nil {
				t.Fatal(err)
			}
			q.Header.Set("Content-Type", kind.media)
			q.Header.Set("Te", "trailers")
			resp, err := c.Do(q)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			buf := make([]byte, len(kind.message))
			for range 10 {
				next <- struct{}{}
				if _, err := io.ReadFull(resp.Body, buf); err != nil || string(buf) != kind.message {
					t.Fatalf("got %q, %v", buf, err)
				}
			}
			close(next)
			if _, err := resp.Body.Read(buf); err != io.EOF {
				t.Errorf("the stream ended with %v", err)
			}
			if got := resp.Trailer.Get("Grpc-Status"); got != kind.status {
				t.Errorf("the status is %q, want %q", got, kind.status)
			}
		})
	}
}

// endless is a body without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// Streams whose client does not read cost a bounded amount of memory and leave
// the connection to the others.
func TestHTTP2StalledReaders(t *testing.T) {
	be := newBackend(t, "be")
	g, addr := h2Edge(t, be)
	block := strings.Repeat("x", 64<<10)
	be.set(byPath(map[string]handler{
		"/large": func(u *upstreamConn, _ *request) {
			u.write("HTTP/1.1 200 OK\r\nContent-Length: 2000000000\r\n\r\n")
			for u.write(block) == nil {
			}
			u.Close()
		},
		"/small": answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
	}))
	t.Run("B21/h2-stalled-readers", func(t *testing.T) {
		c := h2Client(t, addr, "a")
		// With 4 MiB for each stream, the default, this machine is busy for a minute when
		// it is busy with something else, too.
		c.Transport.(*http.Transport).HTTP2.MaxReceiveBufferPerStream = 256 << 10
		c.Timeout = 3 * time.Minute
		do(t, c, "GET", "https://a/small", nil)
		before := g.rss(t)
		var stalled []*http.Response
		for range 60 {
			resp, err := c.Get("https://a/large")
			if err != nil {
				t.Fatal(err)
			}
			stalled = append(stalled, resp)
		}
		for range 20 {
			if _, body := do(t, c, "GET", "https://a/small", nil); body != "ok" {
				t.Errorf("got %q beside stalled streams", body)
			}
		}
		most := int64(60*(128<<10) + 24<<20) // what is queued, and what the runtime takes meanwhile
		if raceDetector {
			most *= 3
		}
		if grown := g.rss(t) - before; grown > most {
			t.Errorf("memory grew by %d KiB for %d stalled streams", grown>>10, len(stalled))
		}
		if _, err := io.CopyN(io.Discard, stalled[0].Body, 20<<20); err != nil {
			t.Errorf("a stream that is read again did not go on: %v", err)
		}
		for _, r := range stalled {
			r.Body.Close()
		}
	})
	t.Run("B21/h2-rapid-reset", func(t *testing.T) { // CVE-2023-44487
		conn, err := tryTLS(addr, "a", func(c *tls.Config) { c.NextProtos = []string{"h2"} })
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(60 * time.Second))
		f := http2.NewFramer(conn, conn)
		if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
			t.Fatal(err)
		}
		if err := f.WriteSettings(); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			var block headBlock
			e := hpack.NewEncoder(&block)
			for i := range uint32(20_000) {
				block = block[:0]
				for _, h := range []hpack.HeaderField{{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: "a"}, {Name: ":path", Value: "/large"}} {
					if e.WriteField(h) != nil {
						return
					}
				}
				if f.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*i + 1, BlockFragment: block, EndStream: true, EndHeaders: true}) != nil ||
					f.WriteRSTStream(2*i+1, http2.ErrCodeCancel) != nil {
					return
				}
			}
		})
		for {
			frame, err := f.ReadFrame()
			if err != nil {
				t.Fatalf("no GOAWAY: %v", err)
			}
			if goAway, ok := frame.(*http2.GoAwayFrame); ok {
				if goAway.ErrCode != http2.ErrCodeEnhanceYourCalm {
					t.Errorf("got %v", goAway)
				}
				break
			}
		}
		conn.Close()
		wg.Wait()
		if _, body := do(t, h2Client(t, addr, "a"), "GET", "https://a/small", nil); body != "ok" {
			t.Errorf("got %q afterwards", body)
		}
	})
}

type headBlock []byte

func (b *headBlock) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}

// A stopping gateway lets every request on its HTTP/2 connections finish.
func TestHTTP2Drain(t *testing.T) {
	be := newBackend(t, "be")
	release := newGate(t)
	be.set(func(u *upstreamConn, _ *request) {
		u.write("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab")
		release.wait()
		u.write("cd")
	})
	port := freePort(t)
	g := start(t, options{
		args:      []string{"--drain-timeout", "20s"},
		listeners: []string{httpsListener("https", port, "", "{name: cert}")},
	}, be.manifest(), newCertificate(t, "a").secret("default", "cert"), simpleRoute("a", be))
	c := h2Client(t, loopback(port), "a")
	t.Run("B26/h2-drain", func(t *testing.T) {
		var under []*http.Response
		for range 5 {
			resp, err := c.Get("https://a/")
			if err != nil {
				t.Fatal(err)
			}
			under = append(under, resp)
		}
		if err := g.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		eventually(t, patience, func() error { // new connections are refused
			conn, err := tryDial(loopback(port))
			if err == nil {
				conn.Close()
				return fmt.Errorf("the socket is still open")
			}
			return nil
		})
		release.open()
		for i, resp := range under {
			if body, err := io.ReadAll(resp.Body); string(body) != "abcd" || err != nil {
				t.Errorf("answer %d: %q, %v", i, body, err)
			}
		}
		select {
		case <-g.done:
			if g.err != nil {
				t.Errorf("the gateway ended with %v", g.err)
			}
		case <-time.After(15 * time.Second):
			t.Error("the gateway did not end")
		}
	})
}
