package tlsterm

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"
)

// loop is a minimal event loop: a goroutine that runs tasks in order.
type loop struct {
	mu    sync.Mutex
	cond  *sync.Cond
	tasks []func()
	ended bool
	done  chan struct{}
}

func newLoop(t testing.TB) *loop {
	l := &loop{done: make(chan struct{})}
	l.cond = sync.NewCond(&l.mu)
	go l.run()
	t.Cleanup(l.close)
	return l
}

func (l *loop) run() {
	defer close(l.done)
	for {
		l.mu.Lock()
		for len(l.tasks) == 0 && !l.ended {
			l.cond.Wait()
		}
		tasks := l.tasks
		l.tasks = nil
		ended := l.ended
		l.mu.Unlock()
		for _, f := range tasks {
			f()
		}
		if ended {
			return
		}
	}
}

func (l *loop) post(f func()) {
	l.mu.Lock()
	l.tasks = append(l.tasks, f)
	l.mu.Unlock()
	l.cond.Signal()
}

// do runs f on the loop and waits for it.
func (l *loop) do(f func()) {
	done := make(chan struct{})
	l.post(func() { defer close(done); f() })
	<-done
}

func (l *loop) close() {
	l.mu.Lock()
	l.ended = true
	l.mu.Unlock()
	l.cond.Signal()
	<-l.done
}

// conn is a server connection on a loop. What it reads goes to onPlain, on the
// loop, until an error, which ends up in err.
type conn struct {
	loop    *loop
	net     net.Conn
	s       *Session
	onPlain func(c *conn, p []byte)
	chunk   int // bytes given to Feed at once; 0 is all

	handshake error         // valid after shaken
	shaken    chan struct{} // closed by Handshaken or by Feed's error
	err       error         // valid after ended
	ended     chan struct{}
	over      bool // ended is closed; on the loop
	scratch   []byte
}

// serve makes a session over nc and reads from it until it ends.
func serve(l *loop, s *Socket, nc net.Conn, onPlain func(c *conn, p []byte)) *conn {
	c := &conn{loop: l, net: nc, onPlain: onPlain, shaken: make(chan struct{}), ended: make(chan struct{}),
		scratch: make([]byte, 32<<10)}
	c.s = s.NewSession(c)
	return c
}

func (c *conn) start() *conn {
	go c.pump()
	return c
}

func (c *conn) pump() {
	buf := make([]byte, 64<<10)
	for {
		n, err := c.net.Read(buf)
		stop := false
		c.loop.do(func() {
			p := buf[:n]
			for len(p) > 0 && !c.over {
				k := len(p)
				if c.chunk > 0 {
					k = min(k, c.chunk)
				}
				if err := c.s.Feed(p[:k]); err != nil {
					c.end(err)
				}
				p = p[k:]
				c.read()
			}
			if err != nil {
				c.end(err)
			}
			stop = c.over
		})
		if stop {
			return
		}
	}
}

// read drains the session.
func (c *conn) read() {
	for !c.over {
		n, err := c.s.Read(c.scratch)
		if err != nil {
			c.end(err)
			return
		}
		if n == 0 {
			return
		}
		c.onPlain(c, c.scratch[:n])
	}
}

func (c *conn) end(err error) {
	if c.over {
		return
	}
	c.over, c.err = true, err
	if errors.Is(err, io.EOF) {
		_ = c.s.CloseWrite()
	}
	c.s.Close()
	select {
	case <-c.shaken:
	default:
		c.handshake = err
		close(c.shaken)
	}
	c.net.Close()
	close(c.ended)
}

func (c *conn) Post(f func()) { c.loop.post(f) }

func (c *conn) WriteWire(p []byte) { _, _ = c.net.Write(p) }

func (c *conn) Handshaken(err error) {
	c.handshake = err
	close(c.shaken)
	if err != nil {
		c.end(err)
		return
	}
	c.read()
}

// echo sends back what it got.
func echo(c *conn, p []byte) {
	if err := c.s.Write(p); err != nil {
		c.end(err)
	}
}

// pipe returns two ends of a TCP connection over the loopback.
func pipe(t testing.TB) (client, server net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	client, err = net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err = ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}
