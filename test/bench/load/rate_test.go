//go:build linux

package main

import (
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// loop is an open loop against a handler.
func loop(t *testing.T, h http.HandlerFunc, interval time.Duration) *openLoop {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	addr := netip.MustParseAddrPort(s.Listener.Addr().(*net.TCPAddr).String())
	return &openLoop{
		addr:     &unix.SockaddrInet4{Port: int(addr.Port()), Addr: addr.Addr().As4()},
		request:  []byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
		interval: interval,
	}
}

func TestOpenLoopKeepsItsRate(t *testing.T) {
	var got atomic.Int64
	l := loop(t, func(w http.ResponseWriter, _ *http.Request) {
		got.Add(1)
		w.Write([]byte("hello"))
	}, 2*time.Millisecond)
	if err := l.run(4, 100*time.Millisecond, 500*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if l.latency.count+l.unsent < 249 || l.latency.count+l.unsent > 251 || l.errors > 0 {
		t.Errorf("%d answers counted, %d unsent, %d errors; want 250 in all", l.latency.count, l.unsent, l.errors)
	}
	if n := got.Load(); n < int64(l.latency.count)+49 {
		t.Errorf("the server got %d requests, want 50 more for the warm-up", n)
	}
}

// A pause of the server is charged to each request that was due meanwhile, not
// to the one per connection that noticed it.
func TestOpenLoopCountsDelayedRequests(t *testing.T) {
	begin := time.Now()
	l := loop(t, func(w http.ResponseWriter, _ *http.Request) {
		if since := time.Since(begin); since > 200*time.Millisecond && since < 400*time.Millisecond {
			time.Sleep(400*time.Millisecond - since)
		}
	}, time.Millisecond)
	if err := l.run(2, 0, 800*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if p := l.latency.quantile(0.9); p < 50*time.Millisecond {
		t.Errorf("the 90th percentile is %v, though a quarter of the requests fell due in a pause of 200ms", p)
	}
}

func TestOpenLoopCountsErrors(t *testing.T) {
	var n atomic.Int64
	l := loop(t, func(w http.ResponseWriter, _ *http.Request) {
		switch n.Add(1) % 4 {
		case 0:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 1:
			c, _, _ := w.(http.Hijacker).Hijack()
			c.Close()
		}
	}, 5*time.Millisecond)
	if err := l.run(2, 0, 500*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if l.errors < 45 || l.errors > 55 || l.latency.count < 45 {
		t.Errorf("%d errors and %d answers of 100 requests, want half of each", l.errors, l.latency.count)
	}
}

// A connection that is closed between two requests, announced or not, is no
// error.
func TestOpenLoopReplacesClosedConnections(t *testing.T) {
	var n atomic.Int64
	l := loop(t, func(w http.ResponseWriter, _ *http.Request) {
		if n.Add(1)%3 == 0 {
			w.Header().Set("Connection", "close")
		}
		w.Write([]byte("hello"))
	}, 5*time.Millisecond)
	if err := l.run(2, 0, 500*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if l.errors > 0 || l.unsent > 0 || l.latency.count != 100 {
		t.Errorf("%d answers, %d errors, %d unsent; want 100, 0, 0", l.latency.count, l.errors, l.unsent)
	}
}

// With connections on demand there are as many as are needed, up to the limit;
// what ends is counted in its slot.
func TestOpenLoopConnectsOnDemand(t *testing.T) {
	var open, most atomic.Int64
	l := loop(t, func(w http.ResponseWriter, _ *http.Request) {
		if n := open.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer open.Add(-1)
		time.Sleep(100 * time.Millisecond)
		w.Write([]byte("hello"))
	}, 10*time.Millisecond)
	l.lazy, l.span = true, 250*time.Millisecond
	l.chance = rand.New(rand.NewPCG(1, 0))
	if err := l.run(200, 0, time.Second); err != nil {
		t.Fatal(err)
	}
	if n := len(l.conns); n < 5 || n >= 200 || most.Load() > int64(n) {
		t.Errorf("%d connections, %d requests at once at most; want about 10", n, most.Load())
	}
	var good uint64
	for _, s := range l.slots {
		good += s.Good
	}
	if good != l.latency.count || good < 60 || good > 140 || l.errors > 0 {
		t.Errorf("%d in slots, %d answers, %d errors; want about 100 in both", good, l.latency.count, l.errors)
	}
}

func TestParseHead(t *testing.T) {
	for head, want := range map[string]struct {
		length, status int
		last, bad      bool
	}{
		"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n":                     {12, 200, false, false},
		"HTTP/1.1 200 OK\r\ncontent-length:7 \r\nX: y":                  {7, 200, false, false},
		"HTTP/1.1 503 No\r\nContent-Length: 3\r\n":                      {3, 503, false, false},
		"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n": {3, 200, true, false},
		"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n":                      {3, 200, true, false},
		"HTTP/1.1 200 OK\r\n":                                           {0, 0, false, true},
		"HTTP/1.1 200 OK\r\nContent-Length: x\r\n":                      {0, 0, false, true},
		"HTTP/1.1 \r\nContent-Length: 1\r\n":                            {0, 0, false, true},
	} {
		length, status, last, err := parseHead([]byte(head))
		if length != want.length || status != want.status || last != want.last || err != nil != want.bad {
			t.Errorf("%q: %d, %d, %v, %v; want %v", head, length, status, last, err, want)
		}
	}
}
