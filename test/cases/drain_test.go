package cases

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// terminate sends SIGTERM and returns how the process ended and when.
func (g *gateway) terminate(t testing.TB) (ended <-chan time.Duration) {
	t.Helper()
	begin := time.Now()
	if err := g.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ch := make(chan time.Duration, 1)
	go func() {
		<-g.done
		ch <- time.Since(begin)
	}()
	return ch
}

func (g *gateway) wantExit(t testing.TB, ended <-chan time.Duration, atMost time.Duration) {
	t.Helper()
	select {
	case took := <-ended:
		if g.err != nil {
			t.Errorf("the gateway ended with %v, want exit code 0", g.err)
		}
		if took > atMost {
			t.Errorf("the gateway took %v to end, want at most %v", took, atMost)
		}
	case <-time.After(atMost + 5*time.Second):
		t.Errorf("the gateway still runs %v after SIGTERM", atMost+5*time.Second)
	}
}

func TestDrain(t *testing.T) {
	t.Run("drain/in-flight-finishes", func(t *testing.T) {
		be := newBackend(t, "be")
		g := start(t, options{args: []string{"--drain-period", "20s"}}, be.manifest(), simpleRoute("a", be))
		release := newGate(t)
		arrived := make(chan struct{}, 10)
		be.set(func(u *upstreamConn, r *request) {
			if r.target == "/idle" {
				be.echo(u, r)
				return
			}
			if r.target == "/body" {
				u.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
				arrived <- struct{}{}
				release.wait()
				u.write("6\r\n world\r\n0\r\n\r\n")
				return
			}
			arrived <- struct{}{}
			release.wait()
			be.echo(u, r)
		})
		idle, waiting, body, upload := dial(t, g.addr), dial(t, g.addr), dial(t, g.addr), dial(t, g.addr)
		seen(t, idle.get("a", "/idle"))
		waiting.send("GET /head HTTP/1.1\r\nHost: a\r\n\r\nGET /pipelined HTTP/1.1\r\nHost: a\r\n\r\n")
		body.send("GET /body HTTP/1.1\r\nHost: a\r\n\r\n")
		upload.send("POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello")
		for range 3 {
			<-arrived
		}
		ended := g.terminate(t)
		idle.wantClosed()                      // before the others
		eventually(t, patience, func() error { // nobody new is accepted
			c, err := tryDial(g.addr)
			if err != nil {
				return nil
			}
			defer c.Close()
			c.Write([]byte("GET /idle HTTP/1.1\r\nHost: a\r\n\r\n"))
			if n, _ := io.ReadAll(c); len(n) > 0 {
				return fmt.Errorf("a new connection got %q", clip(n))
			}
			return nil
		})
		upload.send("world")
		release.open()
		r := waiting.response("GET")
		wantStatus(t, r, 200)
		if !strings.EqualFold(r.get("Connection"), "close") {
			t.Errorf("Connection: %q, want close", r.get("Connection"))
		}
		waiting.wantClosed()
		if r := body.response("GET"); string(r.body) != "hello world" {
			t.Errorf("got %q", r.body)
		}
		body.wantClosed()
		if q := seen(t, upload.response("POST")); string(q.body) != "helloworld" {
			t.Errorf("backend got %q", q.body)
		}
		upload.wantClosed()
		g.wantExit(t, ended, 15*time.Second)
	})
	t.Run("drain/deadline", func(t *testing.T) { // what does not end is ended
		be := newBackend(t, "be")
		g := start(t, options{args: []string{"--drain-period", "3s"}}, be.manifest(), simpleRoute("a", be))
		be.set(func(u *upstreamConn, r *request) {
			if r.has("Upgrade") {
				tunnelEcho(u, r)
				return
			}
			hang(u, r)
		})
		hung, tunnel := dial(t, g.addr), dial(t, g.addr)
		hung.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		upgrade(t, tunnel)
		if err := tunnel.pingpong("ping"); err != nil {
			t.Fatal(err)
		}
		ended := g.terminate(t)
		if err := tunnel.pingpong("still open"); err != nil {
			t.Errorf("the tunnel ended before the deadline: %v", err)
		}
		g.wantExit(t, ended, 15*time.Second)
		tunnel.wantClosed()
	})
	t.Run("drain/nothing-to-do", func(t *testing.T) {
		be := newBackend(t, "be")
		g := start(t, options{args: []string{"--drain-period", "30s"}}, be.manifest(), simpleRoute("a", be))
		c := dial(t, g.addr)
		seen(t, c.get("a", "/"))
		g.wantExit(t, g.terminate(t), 15*time.Second)
	})
	t.Run("drain/not-ready", func(t *testing.T) { // a load balancer learns of it
		be := newBackend(t, "be")
		g := start(t, options{args: []string{"--drain-period", "20s"}}, be.manifest(), simpleRoute("a", be))
		release := newGate(t)
		arrived := make(chan struct{}, 1)
		be.set(func(u *upstreamConn, r *request) {
			arrived <- struct{}{}
			release.wait()
			be.echo(u, r)
		})
		c := dial(t, g.addr)
		c.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		<-arrived
		ended := g.terminate(t)
		eventually(t, patience, func() error {
			a, err := tryDial(g.admin)
			if err != nil {
				return nil // gone is not ready either
			}
			defer a.Close()
			io.WriteString(a, "GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
			if b, _ := io.ReadAll(a); !strings.HasPrefix(string(b), "HTTP/1.1 503") || !strings.Contains(string(b), "draining") {
				return fmt.Errorf("still ready: %q", b)
			}
			return nil
		})
		release.open()
		wantStatus(t, c.response("GET"), 200)
		g.wantExit(t, ended, 15*time.Second)
	})
	t.Run("drain/idle-gets-an-answer", func(t *testing.T) { // a request that was on its way when the drain began
		be := newBackend(t, "be")
		g := start(t, options{args: []string{"--drain-period", "20s"}}, be.manifest(), simpleRoute("a", be))
		c := dial(t, g.addr)
		seen(t, c.get("a", "/first"))
		ended := g.terminate(t)
		eventually(t, patience, func() error {
			if !strings.Contains(g.log.String(), "draining") {
				return errors.New("not draining")
			}
			return nil
		})
		time.Sleep(50 * time.Millisecond)
		r := c.get("a", "/second")
		if q := seen(t, r); q.target != "/second" || !strings.EqualFold(r.get("Connection"), "close") {
			t.Errorf("backend got %q, client %q", q.raw, r.raw)
		}
		c.wantClosed()
		g.wantExit(t, ended, 15*time.Second)
	})
	t.Run("drain/under-load", func(t *testing.T) { // nobody who keeps to the rules loses a request
		be := newBackend(t, "be")
		g := start(t, options{args: []string{"--drain-period", "20s"}}, be.manifest(), simpleRoute("a", be))
		var wg sync.WaitGroup
		warm := make(chan struct{}, 100)
		for i := range 16 {
			wg.Go(func() {
				for n := 0; ; n++ {
					conn, err := tryDial(g.addr)
					if err != nil {
						return // no longer accepts
					}
					c := newClient(t, conn)
					for m := 0; ; m++ {
						if c.trySend("GET / HTTP/1.1\r\nHost: a\r\n\r\n") != nil {
							break
						}
						r, err := readResponse(c.br, "GET")
						if err != nil {
							if len(r.raw) > 0 {
								t.Errorf("client %d: cut within the head: %v %q", i, err, r.raw)
							}
							break // an idle connection that was closed meanwhile
						}
						if r.status != 200 || r.err != nil {
							t.Errorf("client %d: %d, %v", i, r.status, r.err)
						}
						if n == 0 && m == 20 {
							warm <- struct{}{}
						}
						if strings.EqualFold(r.get("Connection"), "close") {
							break
						}
					}
					c.Close()
				}
			})
		}
		for range 16 {
			<-warm
		}
		ended := g.terminate(t)
		wg.Wait()
		g.wantExit(t, ended, 15*time.Second)
	})
}
