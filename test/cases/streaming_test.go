package cases

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Each write of a backend is at the client at once, whatever the content type.
func TestStreamingFlush(t *testing.T) {
	be := newBackend(t, "be")
	g := edge(t, be.manifest(), simpleRoute("a", be))
	const event = "data: 1\n\n"
	for _, c := range []struct{ name, fields, before, after string }{
		{"B20/event-stream", "Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n", "9\r\n", "\r\n"},
		{"B20/octet-stream", "Content-Type: application/octet-stream\r\nTransfer-Encoding: chunked\r\n", "9\r\n", "\r\n"},
		{"B20/no-type", "Transfer-Encoding: chunked\r\n", "9\r\n", "\r\n"},
		{"B20/with-length", "Content-Type: text/event-stream\r\nContent-Length: 90\r\n", "", ""},
		{"B20/until-close", "Content-Type: text/event-stream\r\n", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			next := make(chan struct{})
			sentAt := make(chan time.Time, 1)
			be.set(func(u *upstreamConn, r *request) {
				u.write("HTTP/1.1 200 OK\r\n" + c.fields + "\r\n")
				for range next {
					sentAt <- time.Now()
					u.write(c.before + event + c.after)
				}
				u.Close()
			})
			cl := dial(t, g.addr)
			cl.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			wantStatus(t, cl.head("GET"), 200)
			var delays []time.Duration
			var got string
			for i := range 10 {
				next <- struct{}{}
				for strings.Count(got, event) < i+1 {
					b, err := cl.br.ReadByte()
					if err != nil {
						t.Fatalf("event %d: %v", i, err)
					}
					got += string(b)
				}
				delays = append(delays, time.Since(<-sentAt))
			}
			close(next)
			slices.Sort(delays)
			if median := delays[5]; median > 100*time.Millisecond {
				t.Errorf("median delay %v, want below 100ms: %v", median, delays)
			}
		})
	}
	t.Run("B20/head-before-body", func(t *testing.T) { // the head does not wait for the first byte of the body
		release := newGate(t)
		be.set(func(u *upstreamConn, r *request) {
			u.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
			release.wait()
			u.write("ok")
		})
		c := dial(t, g.addr)
		c.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		wantStatus(t, c.head("GET"), 200)
		release.open()
	})
	t.Run("B20/upload", func(t *testing.T) { // each write of a client is at the backend at once
		arrived := make(chan string)
		be.set(func(u *upstreamConn, r *request) {
			buf := make([]byte, 4)
			for range 5 {
				if _, err := io.ReadFull(u.br, buf); err != nil {
					u.Close()
					return
				}
				arrived <- string(buf)
			}
			u.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		})
		c := dial(t, g.addr)
		c.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 20\r\n\r\n")
		for i := range 5 {
			c.send(fmt.Sprintf("blk%d", i))
			select {
			case got := <-arrived:
				if got != fmt.Sprintf("blk%d", i) {
					t.Errorf("backend got %q", got)
				}
			case <-time.After(patience):
				t.Fatalf("block %d did not arrive", i)
			}
		}
		wantStatus(t, c.response("POST"), 200)
	})
}

// A slow side stops the other one; nothing piles up in the gateway.
func TestBackPressure(t *testing.T) {
	be := newBackend(t, "be")
	g := edge(t, be.manifest(), simpleRoute("a", be))
	const clients = 8
	// What a stalled stream may have on its way: the kernel's buffers of two
	// connections, and the watermarks.
	inKernel := 2*(kernelBuffer(t, "tcp_rmem")+kernelBuffer(t, "tcp_wmem")) + 4<<20
	t.Logf("a stalled stream may hold %d MiB in the kernel", inKernel>>20)
	// The gateway's own memory for all streams: its watermarks, many times over,
	// and the race detector's overhead.
	growth := int64(24 << 20)
	if raceDetector {
		growth *= 3
	}
	block := strings.Repeat("x", 64<<10)

	// stalled waits until no stream moves any more and returns what each moved.
	stalled := func(t *testing.T, moved *[clients]int64, mu *sync.Mutex) (now [clients]int64) {
		t.Helper()
		var last int64 = -1
		eventually(t, 30*time.Second, func() error {
			time.Sleep(300 * time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			var sum int64
			for _, n := range moved {
				sum += n
			}
			if sum == 0 || sum != last {
				last = sum
				return fmt.Errorf("bytes still move: %d", sum)
			}
			now = *moved
			return nil
		})
		return now
	}

	t.Run("B21/stalled-readers", func(t *testing.T) {
		before := g.rss(t)
		var mu sync.Mutex
		var moved [clients]int64
		be.set(func(u *upstreamConn, r *request) {
			var i int
			fmt.Sscanf(r.target, "/%d", &i)
			u.write("HTTP/1.1 200 OK\r\nContent-Length: 2000000000\r\n\r\n")
			for {
				if u.write(block) != nil {
					u.Close()
					return
				}
				mu.Lock()
				moved[i] += int64(len(block))
				mu.Unlock()
			}
		})
		var cs []*client
		for i := range clients {
			c := dial(t, g.addr)
			c.send(fmt.Sprintf("GET /%d HTTP/1.1\r\nHost: a\r\n\r\n", i))
			cs = append(cs, c)
		}
		before0 := int64(0)
		for i, n := range stalled(t, &moved, &mu) {
			if i == 0 {
				before0 = n
			}
			if n > inKernel {
				t.Errorf("stream %d: the backend could send %d MiB to a client that reads nothing", i, n>>20)
			}
		}
		if grown := g.rss(t) - before; grown > growth {
			t.Errorf("memory grew by %d KiB for %d stalled readers", grown>>10, clients)
		}
		if q := exchange(t, g.addr, "GET /x HTTP/1.1\r\nHost: nobody\r\n\r\n"); q.status != 404 {
			t.Errorf("another client got %d", q.status)
		}
		cs[0].patient(patience) // a reader that goes on gets the rest
		if _, err := io.CopyN(io.Discard, cs[0].br, inKernel*2); err != nil {
			t.Errorf("the stream did not go on: %v", err)
		}
		mu.Lock()
		if moved[0] <= before0 {
			t.Error("the backend could not send more")
		}
		mu.Unlock()
		for _, c := range cs {
			c.reset()
		}
	})
	t.Run("B21/stalled-uploads", func(t *testing.T) {
		before := g.rss(t)
		release := newGate(t)
		be.set(func(u *upstreamConn, r *request) {
			release.wait()
			if r.readBody(u.br, io.Discard) == nil {
				u.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			}
		})
		var mu sync.Mutex
		var moved [clients]int64
		var senders sync.WaitGroup
		size := 2*int(inKernel) + 16<<20
		for i := range clients {
			c := dial(t, g.addr)
			c.patient(90 * time.Second)
			senders.Go(func() {
				if c.trySend(fmt.Sprintf("POST /%d HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", i, size)) != nil {
					return
				}
				for left := size; left > 0; {
					n := min(left, len(block))
					if c.trySend(block[:n]) != nil {
						t.Error("upload was cut")
						return
					}
					left -= n
					mu.Lock()
					moved[i] += int64(n)
					mu.Unlock()
				}
				if r, err := readResponse(c.br, "POST"); err != nil || r.status != 200 {
					t.Errorf("upload: %v", err)
				}
			})
		}
		for i, n := range stalled(t, &moved, &mu) {
			if n > inKernel {
				t.Errorf("stream %d: the client could send %d MiB to a backend that reads nothing", i, n>>20)
			}
		}
		if grown := g.rss(t) - before; grown > growth {
			t.Errorf("memory grew by %d KiB for %d stalled uploads", grown>>10, clients)
		}
		release.open()
		senders.Wait()
	})
}

// kernelBuffer is the largest size of a socket's buffer.
func kernelBuffer(t *testing.T, name string) int64 {
	t.Helper()
	data, err := os.ReadFile("/proc/sys/net/ipv4/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var low, middle, high int64
	if _, err := fmt.Sscan(string(data), &low, &middle, &high); err != nil {
		t.Fatal(err)
	}
	return high
}

// A hung backend fills its own pool and queue only.
func TestHungBackend(t *testing.T) {
	const wait = 5 * time.Second
	hung, well := newBackend(t, "hung"), newBackend(t, "well")
	g := start(t, options{args: []string{"--pool-size", "20", "--pool-waiting", "20", "--pool-wait-timeout", wait.String(), "--response-timeout", "2m", "--adaptive-timeout", "off", "--trusted-cidr", "127.0.0.1"}},
		hung.manifest(), well.manifest(), simpleRoute("hung", hung), simpleRoute("well", well))
	undisturbed := latencies(t, g.addr, "well", 300)

	release := newGate(t)
	hung.set(func(u *upstreamConn, r *request) {
		release.wait()
		hung.echo(u, r)
	})
	type result struct {
		r    *response
		err  error
		took time.Duration
	}
	const requests = 200
	results := make(chan result, requests)
	var wg sync.WaitGroup
	for range requests {
		c := dial(t, g.addr)
		wg.Go(func() {
			begin := time.Now()
			if err := c.trySend("GET / HTTP/1.1\r\nHost: hung\r\n\r\n"); err != nil {
				results <- result{err: err}
				return
			}
			c.patient(2 * time.Minute)
			r, err := readResponse(c.br, "GET")
			results <- result{r, err, time.Since(begin)}
		})
	}
	t.Run("B21/bounded-queue", func(t *testing.T) {
		fast := 0
		for range requests - 40 {
			res := <-results
			if res.err != nil {
				t.Fatal(res.err)
			}
			if res.r.status != 503 || !res.r.has("Retry-After") {
				t.Fatalf("got %q, want 503 with Retry-After", res.r.raw)
			}
			if res.took < wait/2 {
				fast++
			}
		}
		if fast < requests-40 {
			t.Errorf("%d of %d refusals were fast", fast, requests-40)
		}
		if n := hung.open(); n > 20 {
			t.Errorf("%d connections to the hung backend, the pool has 20", n)
		}
	})
	t.Run("B21/others-unaffected", func(t *testing.T) {
		disturbed := latencies(t, g.addr, "well", 300)
		t.Logf("p99 of the healthy backend: %v, undisturbed %v", disturbed[297], undisturbed[297])
		if d := disturbed[299]; d > wait/2 {
			t.Errorf("a request to the healthy backend took %v", d)
		}
	})
	t.Run("B21/queue-timeout", func(t *testing.T) { // those who waited are shed at their deadline
		for range 20 {
			res := <-results
			if res.err != nil || res.r.status != 503 || !res.r.has("Retry-After") {
				t.Fatalf("got %+v %v, want 503 with Retry-After", res.r, res.err)
			}
			within(t, res.took, wait)
		}
	})
	t.Run("B21/recovers", func(t *testing.T) {
		release.open()
		for range 20 {
			if res := <-results; res.err != nil || res.r.status != 200 {
				t.Fatalf("got %+v %v, want 200", res.r, res.err)
			}
		}
		wg.Wait()
		for range 50 {
			wantStatus(t, exchange(t, g.addr, "GET / HTTP/1.1\r\nHost: hung\r\n\r\n"), 200)
		}
	})
	t.Run("B21/cancelled-requests-free-their-place", func(t *testing.T) {
		hung.set(hang)
		var cs []*client
		for range 40 {
			c := dial(t, g.addr)
			c.send("GET / HTTP/1.1\r\nHost: hung\r\n\r\n")
			cs = append(cs, c)
		}
		time.Sleep(300 * time.Millisecond)
		for _, c := range cs {
			c.reset() // a FIN alone may be a client that still waits
		}
		hung.set(hung.echo)
		eventually(t, patience, func() error {
			r := exchange(t, g.addr, "GET / HTTP/1.1\r\nHost: hung\r\nConnection: close\r\n\r\n")
			if r.status != 200 {
				return fmt.Errorf("status %d", r.status)
			}
			return nil
		})
		for range 50 {
			wantStatus(t, exchange(t, g.addr, "GET / HTTP/1.1\r\nHost: hung\r\n\r\n"), 200)
		}
	})
}

// latencies returns the sorted times of n requests, one after the other.
func latencies(t *testing.T, addr, host string, n int) []time.Duration {
	t.Helper()
	c := dial(t, addr)
	var ds []time.Duration
	for range n {
		begin := time.Now()
		wantStatus(t, c.get(host, "/"), 200)
		ds = append(ds, time.Since(begin))
	}
	slices.Sort(ds)
	return ds
}
