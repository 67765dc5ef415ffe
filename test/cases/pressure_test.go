package cases

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// metric returns the value of a series of the gateway, "name" or
// `name{label="value"}`; 0 when it is not there.
func (g *gateway) metric(t testing.TB, series string) float64 {
	t.Helper()
	resp, err := http.Get("http://" + g.admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), series+" "); ok {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatalf("%s: %v", series, err)
			}
			return v
		}
	}
	return 0
}

// crowd opens n connections, which send the request at once, and hands each
// answer to got, in a goroutine of its own. It returns when all have been sent.
func crowd(t *testing.T, addr string, n int, request string, got func(*response, error, time.Duration)) *sync.WaitGroup {
	t.Helper()
	var all, sent sync.WaitGroup
	dialers := make(chan struct{}, 256)
	var failed atomic.Int64
	for range n {
		sent.Add(1)
		all.Go(func() {
			dialers <- struct{}{}
			conn, err := net.DialTimeout("tcp", addr, patience)
			begin := time.Now()
			if err == nil {
				_, err = io.WriteString(conn, request)
			}
			<-dialers
			sent.Done()
			if err != nil {
				failed.Add(1)
				return
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(3 * time.Minute))
			r, err := readResponse(bufio.NewReaderSize(conn, 512), "GET")
			got(r, err, time.Since(begin))
		})
	}
	sent.Wait()
	if failed.Load() > 0 {
		t.Fatalf("%d of %d connections could not be made", failed.Load(), n)
	}
	return &all
}

// 5,000 clients want something from a backend that hangs, whose pool has 50
// places. Those that can't be held are told so and when to come again, the
// gateway's memory is bounded, another backend is served, and when the backend
// is back so is everything.
func TestStampede(t *testing.T) {
	const clients, pool, held = 5000, 50, 100
	hung, well := newBackend(t, "hung"), newBackend(t, "well")
	g := start(t, options{args: []string{"--pool-size", "50", "--pool-wait-timeout", "90s", "--response-timeout", "2m", "--adaptive-timeout", "off"}},
		hung.manifest(), well.manifest(), simpleRoute("hung", hung), simpleRoute("well", well))
	wantStatus(t, exchange(t, g.addr, "GET / HTTP/1.1\r\nHost: hung\r\n\r\n"), 200)
	undisturbed := latencies(t, g.addr, "well", 200)
	before := g.rss(t)

	release := newGate(t)
	hung.set(func(u *upstreamConn, r *request) {
		release.wait()
		hung.echo(u, r)
	})
	var mu sync.Mutex
	var refused, served, odd int
	var slowest time.Duration
	all := crowd(t, g.addr, clients, "GET / HTTP/1.1\r\nHost: hung\r\nConnection: close\r\n\r\n", func(r *response, err error, took time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil && r.status == 200:
			served++
		case err == nil && r.status == 503 && r.has("Retry-After"):
			refused++
			if after, err := strconv.Atoi(r.get("Retry-After")); err != nil || after < 1 || after > 60 {
				odd++
			}
			if !release.isOpen() {
				slowest = max(slowest, took)
			}
		default:
			odd++
			if odd < 5 {
				t.Errorf("got %v, %v", r, err)
			}
		}
	})
	t.Run("B21/stampede-is-refused", func(t *testing.T) {
		eventually(t, time.Minute, func() error {
			mu.Lock()
			defer mu.Unlock()
			if refused < clients-pool-held {
				return fmt.Errorf("%d of %d were refused", refused, clients)
			}
			return nil
		})
		if n := hung.open(); n > pool {
			t.Errorf("%d connections to the hung backend, the pool has %d", n, pool)
		}
		mu.Lock()
		defer mu.Unlock()
		t.Logf("%d refused, the slowest after %v", refused, slowest.Round(time.Millisecond))
	})
	t.Run("B21/stampede-memory", func(t *testing.T) {
		const bound = 128 << 20
		if grown := g.rss(t) - before; grown > bound {
			t.Errorf("memory grew by %d MiB for %d clients", grown>>20, clients)
		} else {
			t.Logf("memory grew by %d MiB for %d clients", grown>>20, clients)
		}
	})
	t.Run("B21/stampede-metrics", func(t *testing.T) {
		const l = `{cluster="default/hung:80"`
		if n := g.metric(t, "headgate_upstream_requests_active"+l+"}"); n != pool {
			t.Errorf("%v requests under way, want %d", n, pool)
		}
		if n := g.metric(t, "headgate_upstream_requests_held"+l+"}"); n < 1 || n > held {
			t.Errorf("%v requests are held", n)
		}
		full, share := g.metric(t, "headgate_upstream_shed_total"+l+`,reason="full"}`), g.metric(t, "headgate_upstream_shed_total"+l+`,reason="share"}`)
		if full+share < clients-pool-held {
			t.Errorf("%v were shed because the queue was full, %v by their share", full, share)
		}
		if n := g.metric(t, "headgate_backpressure_propagation_seconds_count"+l+"}"); n < 1 {
			t.Errorf("T_bp was measured %v times", n)
		}
		if n := g.metric(t, `headgate_upstream_shed_total{cluster="default/well:80",reason="full"}`); n != 0 {
			t.Errorf("%v requests of the other cluster were shed", n)
		}
	})
	t.Run("B21/stampede-others-served", func(t *testing.T) {
		disturbed := latencies(t, g.addr, "well", 200)
		t.Logf("p99 of the healthy backend: %v, undisturbed %v", disturbed[197], undisturbed[197])
	})
	t.Run("B21/stampede-recovers", func(t *testing.T) {
		release.open()
		hung.set(hung.echo)
		all.Wait()
		if odd > 0 || served < pool || served+refused != clients {
			t.Errorf("%d served, %d refused, %d odd, of %d", served, refused, odd, clients)
		}
		shed := 0.0
		for _, reason := range []string{"full", "share", "timeout"} {
			shed += g.metric(t, `headgate_upstream_shed_total{cluster="default/hung:80",reason="`+reason+`"}`)
		}
		if int(shed) != refused {
			t.Errorf("%d clients were refused, and %v were counted", refused, shed)
		}
		for i := range 100 {
			r := exchange(t, g.addr, "GET / HTTP/1.1\r\nHost: hung\r\nConnection: close\r\n\r\n")
			if r.status != 200 {
				t.Fatalf("request %d after it came back got %d", i, r.status)
			}
		}
		eventually(t, patience, func() error {
			if n := g.metric(t, `headgate_upstream_requests_active{cluster="default/hung:80"}`); n != 0 {
				return fmt.Errorf("%v places did not come back", n)
			}
			return nil
		})
	})
}

// Four times as many clients as there are places: each request is served, since it
// is held until it has a place, and the backend never has more than there are.
func TestHeldRequestsAreServed(t *testing.T) {
	const pool, clients, each = 10, 40, 20
	be := newBackend(t, "be")
	var now, most atomic.Int64
	release := newGate(t)
	be.set(func(u *upstreamConn, r *request) {
		n := now.Add(1)
		release.wait()
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		time.Sleep(5 * time.Millisecond)
		now.Add(-1) // before the answer, behind which the next one may come
		be.echo(u, r)
	})
	g := start(t, options{args: []string{"--pool-size", strconv.Itoa(pool), "--pool-wait-timeout", "2m", "--adaptive-timeout", "off"}}, be.manifest(), simpleRoute("be", be))
	var all sync.WaitGroup
	var failed atomic.Int64
	for range clients {
		c := dial(t, g.addr)
		c.patient(2 * time.Minute)
		all.Go(func() {
			for range each {
				r, err := &response{}, c.trySend("GET / HTTP/1.1\r\nHost: be\r\n\r\n")
				if err == nil {
					r, err = readResponse(c.br, "GET")
				}
				if err != nil || r.status != 200 {
					failed.Add(1)
					return
				}
			}
		})
	}
	eventually(t, patience, func() error {
		if n := g.metric(t, `headgate_upstream_requests_held{cluster="default/be:80"}`); n != clients-pool {
			return fmt.Errorf("%v requests are held, want %d", n, clients-pool)
		}
		return nil
	})
	release.open()
	all.Wait()
	t.Run("B21/held-and-served", func(t *testing.T) {
		if n := failed.Load(); n > 0 {
			t.Errorf("%d of %d clients were failed", n, clients)
		}
		if n := most.Load(); n > pool {
			t.Errorf("%d requests were at the backend at once, the pool has %d places", n, pool)
		}
		if n := g.metric(t, `headgate_backpressure_propagation_seconds_count{cluster="default/be:80"}`); n < 1 {
			t.Errorf("T_bp was measured %v times", n)
		}
	})
}

// One client can't have the whole queue: another one finds room in it, and a place
// after that.
func TestQueueIsShared(t *testing.T) {
	const held, greedy = 30, 60
	be := newBackend(t, "be")
	release := newGate(t)
	be.set(func(u *upstreamConn, r *request) {
		release.wait()
		be.echo(u, r)
	})
	g := start(t, options{args: []string{"--pool-size", "1", "--pool-waiting", strconv.Itoa(held), "--pool-wait-timeout", "2m", "--response-timeout", "2m"}}, be.manifest(), simpleRoute("be", be))
	ask := func(from string) *client {
		d := net.Dialer{Timeout: patience, LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		conn, err := d.Dial("tcp", g.addr)
		if err != nil {
			t.Fatal(err)
		}
		c := newClient(t, conn)
		c.patient(2 * time.Minute)
		c.send("GET / HTTP/1.1\r\nHost: be\r\n\r\n")
		return c
	}
	series := func(name string) int { return int(g.metric(t, name)) }
	const l = `{cluster="default/be:80"`
	var all []*client
	for range greedy {
		all = append(all, ask("127.0.0.1"))
	}
	mine := 0
	eventually(t, patience, func() error { // one has the place, the others are held or shed
		mine = series("headgate_upstream_requests_held" + l + "}")
		shed := series("headgate_upstream_shed_total" + l + `,reason="share"}`)
		if active := series("headgate_upstream_requests_active" + l + "}"); active+mine+shed != greedy {
			return fmt.Errorf("%d active, %d held, %d shed of %d", active, mine, shed, greedy)
		}
		return nil
	})
	t.Run("B21/queue-share", func(t *testing.T) {
		if mine > held*3/4 || mine < held/2 {
			t.Errorf("one client has %d of %d", mine, held)
		}
		other := ask("127.0.0.2")
		eventually(t, patience, func() error {
			if n := series("headgate_upstream_requests_held" + l + "}"); n != mine+1 {
				return fmt.Errorf("%d are held, want %d", n, mine+1)
			}
			return nil
		})
		release.open()
		wantStatus(t, other.response("GET"), 200)
		served := 0
		for _, c := range all {
			switch r := c.response("GET"); {
			case r.status == 200:
				served++
			case r.status != 503 || !r.has("Retry-After"):
				t.Errorf("got %q", r.raw)
			}
		}
		if served != mine+1 {
			t.Errorf("%d of one client's requests were served, want %d", served, mine+1)
		}
	})
}

// Reading from a client pauses while its request is held: TCP pushes back.
func TestHeldClientIsNotRead(t *testing.T) {
	be := newBackend(t, "be")
	g := start(t, options{args: []string{"--pool-size", "1", "--pool-wait-timeout", "60s", "--response-timeout", "60s", "--adaptive-timeout", "off"}}, be.manifest(), simpleRoute("be", be))
	release := newGate(t)
	be.set(func(u *upstreamConn, r *request) {
		if r.target == "/first" {
			release.wait()
		}
		be.echo(u, r)
	})
	first := dial(t, g.addr)
	first.send("GET /first HTTP/1.1\r\nHost: be\r\n\r\n")
	eventually(t, patience, func() error {
		if g.metric(t, `headgate_upstream_requests_active{cluster="default/be:80"}`) != 1 {
			return fmt.Errorf("the first one has no place yet")
		}
		return nil
	})
	held := dial(t, g.addr)
	const size = 64 << 20
	held.send(fmt.Sprintf("POST /held HTTP/1.1\r\nHost: be\r\nContent-Length: %d\r\n\r\n", size))
	var sent atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		piece := make([]byte, 1<<20)
		for range size >> 20 {
			if held.trySend(string(piece)) != nil {
				return
			}
			sent.Add(int64(len(piece)))
		}
	}()
	t.Run("B21/held-upload-is-paused", func(t *testing.T) {
		last := int64(-1)
		eventually(t, patience, func() error {
			time.Sleep(300 * time.Millisecond)
			if now := sent.Load(); now != last {
				last = now
				return fmt.Errorf("%d bytes were sent and it goes on", now)
			}
			return nil
		})
		if last >= size/2 {
			t.Errorf("a held client could send %d of %d bytes", last, size)
		}
	})
	t.Run("B21/held-upload-arrives", func(t *testing.T) {
		release.open()
		wantStatus(t, first.response("GET"), 200)
		held.patient(2 * time.Minute)
		r := held.response("POST")
		<-done
		if r.status != 200 || len(r.body) < size {
			t.Errorf("got %d with %d bytes", r.status, len(r.body))
		}
	})
	t.Run("B21/held-client-goes-away", func(t *testing.T) { // its place in the queue comes back
		block := newGate(t)
		be.set(func(u *upstreamConn, r *request) {
			block.wait()
			be.echo(u, r)
		})
		blocker := dial(t, g.addr)
		blocker.send("GET / HTTP/1.1\r\nHost: be\r\n\r\n")
		for range 20 {
			c := dial(t, g.addr)
			c.send("GET / HTTP/1.1\r\nHost: be\r\n\r\n")
			eventually(t, patience, func() error {
				if g.metric(t, `headgate_upstream_requests_held{cluster="default/be:80"}`) != 1 {
					return fmt.Errorf("it is not held")
				}
				return nil
			})
			c.reset()
			eventually(t, patience, func() error {
				if n := g.metric(t, `headgate_upstream_requests_held{cluster="default/be:80"}`); n != 0 {
					return fmt.Errorf("%v are held", n)
				}
				return nil
			})
		}
		m := be.mark()
		left := dial(t, g.addr)
		left.send("GET /left HTTP/1.1\r\nHost: be\r\n\r\n")
		eventually(t, patience, func() error {
			if g.metric(t, `headgate_upstream_requests_held{cluster="default/be:80"}`) != 1 {
				return fmt.Errorf("it is not held")
			}
			return nil
		})
		left.Close() // in order, which a paused connection does not notice
		next := dial(t, g.addr)
		next.send("GET /next HTTP/1.1\r\nHost: be\r\n\r\n")
		eventually(t, patience, func() error {
			if g.metric(t, `headgate_upstream_requests_held{cluster="default/be:80"}`) != 2 {
				return fmt.Errorf("it is not held")
			}
			return nil
		})
		block.open()
		wantStatus(t, blocker.response("GET"), 200)
		wantStatus(t, next.response("GET"), 200)
		for _, r := range be.requestsSince(m) {
			if r.target == "/left" {
				t.Error("the backend got a request that nobody waits for")
			}
		}
	})
}
