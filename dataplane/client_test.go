package dataplane

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// dial opens a raw connection that the test's end closes.
func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(2 * patience))
	return c
}

func TestPipelinedRequestsAreAnsweredInOrder(t *testing.T) {
	be := backendServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			time.Sleep(50 * time.Millisecond)
		}
		fmt.Fprint(w, r.URL.Path)
	})
	s := newServer(t, nil)
	c := dial(t, apply(t, s, oneRoute(clusterOf("default/be:80", be.URL), nil)))
	var all strings.Builder
	paths := []string{"/slow", "/a", "/b", "/slow", "/c"}
	for _, p := range paths {
		fmt.Fprintf(&all, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", p)
	}
	if _, err := io.WriteString(c, all.String()); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(c)
	for _, p := range paths {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		if string(body) != p {
			t.Fatalf("answer to %s: %d %q", p, resp.StatusCode, body)
		}
	}
}

// A client that sends request after request and reads nothing must not make the
// gateway collect the answers.
func TestAClientThatDoesNotReadIsNotServedOn(t *testing.T) {
	answer := bytes.Repeat([]byte("x"), 32<<10)
	be := backendServer(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(answer) })
	s := newServer(t, nil)
	c := dial(t, apply(t, s, oneRoute(clusterOf("default/be:80", be.URL), nil)))
	const n = 2000
	sent := make(chan error, 1)
	go func() {
		_, err := io.WriteString(c, strings.Repeat("GET / HTTP/1.1\r\nHost: a\r\n\r\n", n))
		sent <- err
	}()
	var w *worker
	for w == nil {
		for _, x := range s.workers {
			if x.loop.Stats().Accepted > 0 {
				w = x
			}
		}
	}
	// Wait until it is stuck, then look at what is queued.
	var queued, last int
	for still := 0; still < 20; time.Sleep(10 * time.Millisecond) {
		got := make(chan int)
		w.Post(func() {
			if c := w.clients.first; c != nil {
				got <- c.conn.Buffered()
			} else {
				got <- 0
			}
		})
		if queued = <-got; queued == last && queued > 0 {
			still++
		} else {
			still, last = 0, queued
		}
	}
	if queued == 0 || queued > 512<<10 {
		t.Errorf("%d bytes are queued for a client that reads nothing", queued)
	}
	r := bufio.NewReader(c)
	for i := range n {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatalf("answer %d: %v", i, err)
		}
		if got, err := io.Copy(io.Discard, resp.Body); err != nil || got != int64(len(answer)) {
			t.Fatalf("answer %d: %d bytes, %v", i, got, err)
		}
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
}

func TestASlowHeadIsAnswered408(t *testing.T) {
	s := newServer(t, func(o *Options) { o.Timeouts.Header = 50 * time.Millisecond })
	c := dial(t, apply(t, s, oneRoute(clusterOf("default/be:80"), nil)))
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost:"); err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(c)
	if err != nil || !strings.HasPrefix(string(all), "HTTP/1.1 408 ") {
		t.Fatalf("got %q, %v", all, err)
	}
}

func TestAnIdleConnectionIsClosedSilently(t *testing.T) {
	s := newServer(t, func(o *Options) { o.Timeouts.Idle = 50 * time.Millisecond })
	c := dial(t, apply(t, s, oneRoute(clusterOf("default/be:80"), nil)))
	if all, err := io.ReadAll(c); err != nil || len(all) > 0 {
		t.Fatalf("got %q, %v", all, err)
	}
	if n := s.Connections(); n > 1 {
		t.Fatalf("%d connections", n)
	}
}

func TestABodyThatStopsIsAnswered408(t *testing.T) {
	be := backendServer(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	s := newServer(t, func(o *Options) { o.Timeouts.Body = 100 * time.Millisecond })
	c := dial(t, apply(t, s, oneRoute(clusterOf("default/be:80", be.URL), nil)))
	if _, err := io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc"); err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(c)
	if err != nil || !strings.HasPrefix(string(all), "HTTP/1.1 408 ") {
		t.Fatalf("got %q, %v", all, err)
	}
	eventually(t, "the pool's place is given back", func() bool { return clusterStats(s)["default/be:80"].Active == 0 })
}
