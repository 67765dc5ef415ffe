package dataplane

import (
	"bytes"
	"context"
	"io"
	"net"
	"runtime"
	"testing"

	"github.com/headgate/headgate/dataplane/accesslog"
	"github.com/headgate/headgate/dataplane/ir"
)

// rawBackend answers every read with a fixed answer, without allocating.
func rawBackend(t testing.TB, answer []byte) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				buf := make([]byte, 16<<10)
				for {
					if _, err := c.Read(buf); err != nil {
						return
					}
					if _, err := c.Write(answer); err != nil {
						return
					}
				}
			}()
		}
	}()
	return ln.Addr().String()
}

var allocRequest = []byte("GET /a/b?c=d HTTP/1.1\r\nHost: www.example.com\r\nUser-Agent: test\r\nAccept: */*\r\n" +
	"Accept-Encoding: gzip, deflate\r\nCookie: a=b; c=d\r\nConnection: keep-alive\r\n\r\n")

var allocAnswer = []byte("HTTP/1.1 200 OK\r\nServer: test\r\nContent-Type: application/json\r\nContent-Length: 512\r\n\r\n" +
	string(bytes.Repeat([]byte("x"), 512)))

// TestRequestsDoNotAllocate sends requests through a whole server and counts
// what the process allocates.
func TestRequestsDoNotAllocate(t *testing.T) {
	log, err := accesslog.New(accesslog.Options{Output: io.Discard, Loops: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close(context.Background()) })
	s := newServer(t, func(o *Options) { o.AccessLog = log })
	snap := oneRoute(clusterOf("default/be:80", rawBackend(t, allocAnswer)), func(r *ir.Rule) {
		r.Filters = []*ir.Filter{{RequestHeaders: &ir.HeaderChange{Set: []ir.Header{{Name: "X-A", Value: "1"}}}}}
	})
	snap.Sockets[0].AccessLog.SamplePercent = 50
	addr := apply(t, s, snap)
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	buf := make([]byte, 16<<10)
	do := func(n int) {
		for range n {
			if _, err := c.Write(allocRequest); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(c, buf[:len(allocAnswer)]); err != nil {
				t.Fatal(err)
			}
		}
	}
	do(100)
	if !bytes.Equal(buf[:len(allocAnswer)], allocAnswer) {
		t.Fatalf("answer %q", buf[:200])
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const n = 5000
	do(n)
	runtime.ReadMemStats(&after)
	if per := float64(after.Mallocs-before.Mallocs) / n; per > 0.02 {
		t.Errorf("%.3f allocations per request", per)
	}
}

func BenchmarkRequest(b *testing.B) {
	s := newServer(b, nil)
	addr := apply(b, s, oneRoute(clusterOf("default/be:80", rawBackend(b, allocAnswer)), nil))
	c, err := net.Dial("tcp", addr)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	buf := make([]byte, len(allocAnswer))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Write(allocRequest); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(c, buf); err != nil {
			b.Fatal(err)
		}
	}
}
