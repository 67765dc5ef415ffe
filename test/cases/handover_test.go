package cases

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// chain is a site whose gateways follow each other.
type chain struct {
	dir     string // of the hand-over
	plain   string
	secure  string
	be      *backend
	current *gateway
}

// newChain starts the first gateway, with a plain and a TLS listener.
func newChain(t *testing.T, args ...string) *chain {
	t.Helper()
	be := newBackend(t, "be")
	be.set(func(u *upstreamConn, r *request) {
		if r.has("Upgrade") {
			tunnelEcho(u, r)
			return
		}
		be.echo(u, r)
	})
	plain, secure := freePort(t), freePort(t)
	cert := newCertificate(t, "a")
	c := &chain{dir: shortDir(t), plain: loopback(plain), secure: loopback(secure), be: be}
	args = append([]string{"--handover-dir", c.dir, "--drain-period", "20s", "--exit-after-handover=false"}, args...)
	c.current = start(t, options{args: c.withSocket(args), listeners: []string{
		fmt.Sprintf("{name: http, port: %d, protocol: HTTP}", plain), httpsListener("https", secure, "", "{name: cert}"),
	}}, be.manifest(), cert.secret("default", "cert"), simpleRoute("a", be))
	return c
}

// shortDir is a directory of this test's own: the path of a socket is short.
func shortDir(t testing.TB) string {
	dir, err := os.MkdirTemp("", "hg-") //nolint:usetesting // the path of a socket can't be as long as those of t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// sockets counts the admin sockets.
var sockets atomic.Int64

// withSocket gives a process an admin socket of its own.
func (c *chain) withSocket(args []string) []string {
	return append(args[:len(args):len(args)], "--admin-socket", filepath.Join(c.dir, fmt.Sprintf("admin-%d", sockets.Add(1))))
}

// successor is a further gateway on the same site, not started.
func (c *chain) successor(args ...string) *gateway {
	old := c.current
	g := &gateway{dir: old.dir, status: old.status, addr: old.addr, admin: old.admin, log: &logBuffer{}, done: make(chan struct{})}
	g.args = c.withSocket(append(old.args[:len(old.args):len(old.args)], args...))
	return g
}

// launch starts a further gateway on the same site, and does not wait.
func (c *chain) launch(t *testing.T, args ...string) *gateway {
	t.Helper()
	g := c.successor(args...)
	g.run(t)
	return g
}

// next launches a gateway and waits until it is ready.
func (c *chain) next(t *testing.T, args ...string) (old *gateway) {
	t.Helper()
	g := c.launch(t, args...)
	g.await(t, "ready")
	old, c.current = c.current, g
	return old
}

// probe asks the process itself.
func (g *gateway) probe(what string) (string, error) {
	out, err := exec.Command(os.Getenv(binaryEnv), "probe", what, "--socket", g.args[len(g.args)-1]).CombinedOutput()
	return string(out), err
}

func (g *gateway) await(t *testing.T, what string) {
	t.Helper()
	eventually(t, 2*patience, func() error {
		out, err := g.probe(what)
		if err != nil {
			return errors.New(out)
		}
		return nil
	})
}

// awaitLog waits until the process has said something.
func (g *gateway) awaitLog(t *testing.T, text string) {
	t.Helper()
	g.awaitLogs(t, text, 1)
}

// awaitLogs waits until the process has said something n times.
func (g *gateway) awaitLogs(t *testing.T, text string, n int) {
	t.Helper()
	eventually(t, 2*patience, func() error {
		if got := strings.Count(g.log.String(), text); got < n {
			return fmt.Errorf("the log says %q %d times, want %d", text, got, n)
		}
		return nil
	})
}

// stuck launches a gateway that stops at the first line of its log, which is that
// it has the sockets: nobody reads what it says.
func (c *chain) stuck(t *testing.T) *gateway {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	defer w.Close()
	size, err := unix.FcntlInt(w.Fd(), unix.F_SETPIPE_SZ, os.Getpagesize())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	g := c.successor()
	g.out = w
	g.run(t)
	return g
}

// kill ends the process without a word.
func (g *gateway) kill() {
	g.cmd.Process.Kill()
	<-g.done
	g.err = nil // as it should
}

// load is clients that send requests until they are stopped.
type load struct {
	fresh, kept, failed atomic.Int64
	mu                  sync.Mutex
	errors              []string
	stop                chan struct{}
	wg                  sync.WaitGroup
}

// newLoad starts 8 clients with a connection per request and 8 that keep theirs,
// half of them with TLS.
func (c *chain) newLoad() *load {
	l := &load{stop: make(chan struct{})}
	for i := range 8 {
		dial := func() (net.Conn, error) { return tryDial(c.plain) }
		if i%2 == 1 {
			dial = func() (net.Conn, error) {
				conn, err := tryTLS(c.secure, "a", nil)
				if err != nil {
					return nil, err
				}
				return conn, conn.SetDeadline(time.Now().Add(patience))
			}
		}
		l.wg.Go(func() { l.each(dial, &l.fresh, false) })
		l.wg.Go(func() { l.each(dial, &l.kept, true) })
	}
	return l
}

func (l *load) each(dial func() (net.Conn, error), count *atomic.Int64, keep bool) {
	var conn net.Conn
	var br *bufio.Reader
	for {
		select {
		case <-l.stop:
			if conn != nil {
				conn.Close()
			}
			return
		case <-time.After(rand.N(10 * time.Millisecond)):
		}
		var err error
		if conn == nil {
			if conn, err = dial(); err != nil {
				l.fail("connect: %v", err)
				continue
			}
			br = bufio.NewReader(conn)
		}
		conn.SetDeadline(time.Now().Add(patience))
		extra := ""
		if !keep {
			extra = "Connection: close\r\n"
		}
		count.Add(1)
		if _, err = io.WriteString(conn, "GET /load HTTP/1.1\r\nHost: a\r\n"+extra+"\r\n"); err == nil {
			var r *response
			if r, err = readResponse(br, "GET"); err == nil {
				err = r.err
			}
			if err == nil && r.status != 200 {
				err = fmt.Errorf("status %d", r.status)
			}
			if err == nil && keep && !strings.EqualFold(r.get("Connection"), "close") {
				continue
			}
		}
		if err != nil {
			l.fail("request, keep %v: %v", keep, err)
		}
		conn.Close()
		conn = nil
	}
}

func (l *load) fail(format string, args ...any) {
	l.failed.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.errors) < 10 {
		l.errors = append(l.errors, fmt.Sprintf(format, args...))
	}
}

// quit stops the clients.
func (l *load) quit() {
	close(l.stop)
	l.wg.Wait()
}

// end stops the clients. Not one request may have failed.
func (l *load) end(t *testing.T) {
	t.Helper()
	l.quit()
	for _, e := range l.errors {
		t.Error(e)
	}
	if l.fresh.Load() == 0 || l.kept.Load() == 0 {
		t.Errorf("there was no load: %d and %d requests", l.fresh.Load(), l.kept.Load())
	}
}

// tunnels are WebSockets that are in use.
func (c *chain) tunnels(t *testing.T, n int) []*client {
	var out []*client
	for i := range n {
		var k *client
		if i%2 == 0 {
			k = dial(t, c.plain)
		} else {
			k = dialTLS(t, c.secure, "a")
		}
		k.patient(time.Minute)
		upgrade(t, k)
		out = append(out, k)
	}
	return out
}

func speak(t *testing.T, tunnels []*client, when string) {
	t.Helper()
	for i, k := range tunnels {
		if err := k.pingpong("are you there?"); err != nil {
			t.Errorf("WebSocket %d %s: %v", i, when, err)
		}
	}
}

func TestHandover(t *testing.T) {
	t.Run("handover/under-load", func(t *testing.T) {
		c := newChain(t)
		l := c.newLoad()
		dropped := 0
		for round := range 8 {
			tunnels := c.tunnels(t, 20)
			speak(t, tunnels, "before")
			old := c.next(t)
			time.Sleep(100 * time.Millisecond) // both live
			ended := old.terminate(t)
			for range 5 {
				time.Sleep(50 * time.Millisecond)
				for _, k := range tunnels {
					if err := k.pingpong("still?"); err != nil {
						dropped++
						t.Errorf("round %d: a WebSocket was cut: %v", round, err)
					}
				}
			}
			for _, k := range tunnels {
				k.Close()
			}
			old.wantExit(t, ended, 18*time.Second)
		}
		l.end(t)
		t.Logf("8 hand-overs: %d requests on connections of their own, %d on kept ones, %d failed; 160 WebSockets, %d cut",
			l.fresh.Load(), l.kept.Load(), l.failed.Load(), dropped)
	})
	t.Run("handover/exits-by-itself", func(t *testing.T) {
		c := newChain(t, "--exit-after-handover")
		l := c.newLoad()
		old := c.next(t)
		select {
		case <-old.done:
		case <-time.After(2 * patience):
			t.Error("the old process stays")
		}
		l.end(t)
	})
	t.Run("handover/beside", func(t *testing.T) { // the old one can't be asked: both listen, by SO_REUSEPORT
		c := newChain(t)
		l := c.newLoad()
		for range 8 {
			if err := os.Remove(filepath.Join(c.dir, "handover.sock")); err != nil {
				t.Fatal(err)
			}
			old := c.current
			g := c.launch(t)
			g.await(t, "ready")
			g.awaitLog(t, "listening beside a process that does not answer")
			old.wantExit(t, old.terminate(t), 18*time.Second)
			g.awaitLog(t, "admin listening") // its port was the old one's
			c.current = g
		}
		dial(t, c.plain).Close()
		l.quit()
		// Some are lost; how many is chance.
		t.Logf("8 changes by SO_REUSEPORT: %d requests on connections of their own, %d on kept ones, %d failed",
			l.fresh.Load(), l.kept.Load(), l.failed.Load())
	})
	t.Run("handover/a-stranger-has-the-port", func(t *testing.T) { // of the same user, but with another directory
		c := newChain(t)
		other := *c
		other.dir = shortDir(t)
		other.current = &gateway{}
		*other.current = *c.current
		other.current.args = []string{"--handover-dir", other.dir}
		other.current.status = t.TempDir()
		g := other.launch(t, "--admin-address", loopback(freePort(t)))
		g.awaitLog(t, "PortUnavailable")
	})
	t.Run("handover/reuse-port", func(t *testing.T) { // each loop's queue is handed over
		c := newChain(t, "--placement", "reuse-port")
		l := c.newLoad()
		for range 2 {
			old := c.next(t)
			old.wantExit(t, old.terminate(t), 18*time.Second)
		}
		l.end(t)
	})
	t.Run("handover/new-dies-before-serving", func(t *testing.T) {
		c := newChain(t)
		l := c.newLoad()
		for i := range 2 {
			g := c.stuck(t)
			c.current.awaitLogs(t, "a new process has the sockets", i+1)
			g.kill()
			c.current.awaitLogs(t, "went before it served", i+1)
		}
		c.next(t)
		l.end(t)
	})
	t.Run("handover/new-dies-while-it-serves", func(t *testing.T) {
		c := newChain(t)
		first := c.current
		for range 2 {
			old := c.next(t)
			if old != first {
				t.Fatal("another process is the old one")
			}
			c.current.kill() // its own connections end with it
			first.awaitLog(t, "this one accepts again")
			c.current = first
			l := c.newLoad()
			time.Sleep(200 * time.Millisecond)
			l.end(t)
			if _, err := first.probe("ready"); err != nil {
				t.Errorf("not ready: %v", err)
			}
			if body := metricsPage(t, first.admin); !strings.Contains(body, "headgate_accepting 1") {
				t.Error("the admin server's port is not this process's again")
			}
			first.log.reset()
		}
	})
	t.Run("handover/old-crashed", func(t *testing.T) { // a stale socket is no process
		c := newChain(t)
		c.current.kill()
		if _, err := os.Stat(filepath.Join(c.dir, "handover.sock")); err != nil {
			t.Fatal(err)
		}
		c.next(t)
		l := c.newLoad()
		c.next(t)
		l.end(t)
	})
	t.Run("handover/three-generations", func(t *testing.T) { // nobody has told the first one to stop
		c := newChain(t)
		l := c.newLoad()
		first := c.next(t)
		second := c.next(t)
		second.wantExit(t, second.terminate(t), 18*time.Second)
		first.awaitLog(t, "has handed over to another one")
		first.wantExit(t, first.terminate(t), 18*time.Second)
		l.end(t)
		if _, err := os.Stat(filepath.Join(c.dir, "handover.sock")); err != nil {
			t.Errorf("the last process can't be found: %v", err)
		}
	})
	t.Run("handover/two-at-once", func(t *testing.T) { // both have the sockets; one serves first, the other follows it
		c := newChain(t)
		l := c.newLoad()
		a, b := c.launch(t), c.launch(t)
		a.await(t, "ready")
		b.await(t, "ready")
		first := c.current
		first.wantExit(t, first.terminate(t), 18*time.Second)
		eventually(t, patience, func() error {
			n := strings.Count(a.log.String()+b.log.String(), "the new process serves; this one stopped accepting")
			if n != 1 {
				return fmt.Errorf("%d of the two have stopped accepting, want 1", n)
			}
			return nil
		})
		l.end(t)
	})
	t.Run("handover/told-to-stop-too-soon", func(t *testing.T) { // the sockets always have somebody
		c := newChain(t)
		l := c.newLoad()
		g := c.launch(t)
		c.current.awaitLog(t, "a new process has the sockets")
		ended := c.current.terminate(t)
		g.await(t, "ready")
		c.current.wantExit(t, ended, 18*time.Second)
		l.end(t)
	})
	t.Run("handover/later-listener", func(t *testing.T) { // one that came after the sockets were handed over
		c := newChain(t)
		old := c.next(t)
		port := freePort(t)
		c.current.apply(t, "more.yaml", strings.Replace(gatewayObject("more", fmt.Sprintf("{name: http, port: %d, protocol: HTTP}", port)), "edge", "more", 1))
		for _, g := range []*gateway{c.current, old} {
			g.awaitLog(t, "configuration applied")
		}
		eventually(t, patience, func() error {
			conn, err := tryDial(loopback(port))
			if err == nil {
				conn.Close()
			}
			return err
		})
		old.wantExit(t, old.terminate(t), 18*time.Second)
		dial(t, loopback(port)).Close()
	})
}

// metricsPage reads what the admin server's port shows.
func metricsPage(t *testing.T, admin string) string {
	t.Helper()
	c := dial(t, admin)
	c.send("GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
	all, err := io.ReadAll(c.br)
	if err != nil {
		t.Fatal(err)
	}
	return string(all)
}
