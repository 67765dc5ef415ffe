package tlsterm

import (
	"crypto"
	"crypto/tls"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// link connects a session with a client in memory. The test's goroutine is the
// loop; the client runs inside do.
type link struct {
	t testing.TB
	s *Session

	mu       sync.Mutex
	cond     *sync.Cond
	toServer []byte
	toClient []byte
	tasks    []func()
	busy     bool // the client is inside do
	hungry   bool // the client waits for input
	cut      bool // the client sees EOF
	together bool // feed only when the client has nothing more to say
	corrupt  bool // change the last byte of what is fed
	feeds    int

	shaken    int
	handshake error
	plain     []byte // what the session read
	keep      bool   // collect plain
	err       error  // of Feed or Read
	scratch   []byte
	wires     int    // calls of WriteWire
	posts     int    // calls of Post
	onWire    func() // called by WriteWire, when set
	wasFull   bool   // Full was true once
}

func newLink(t testing.TB, s *Socket) *link {
	l := &link{t: t, keep: true, scratch: make([]byte, 64<<10)}
	l.cond = sync.NewCond(&l.mu)
	l.s = s.NewSession(l)
	return l
}

func (l *link) Post(f func()) {
	l.mu.Lock()
	l.tasks = append(l.tasks, f)
	l.posts++
	l.mu.Unlock()
	l.cond.Broadcast()
}

func (l *link) WriteWire(p []byte) {
	l.mu.Lock()
	l.toClient = append(l.toClient, p...)
	l.hungry = false
	l.wires++
	l.mu.Unlock()
	l.cond.Broadcast()
	if l.onWire != nil {
		l.onWire()
	}
}

func (l *link) Handshaken(err error) {
	l.shaken++
	l.handshake = err
	if err == nil {
		l.drain()
	}
}

func (l *link) drain() {
	for l.err == nil {
		n, err := l.s.Read(l.scratch)
		if err != nil {
			l.err = err
		}
		if n == 0 {
			return
		}
		if l.keep {
			l.plain = append(l.plain, l.scratch[:n]...)
		}
	}
}

// step waits for something to happen, and runs it as the loop would. It
// returns false when the client is done and nothing is left.
func (l *link) step() bool {
	l.mu.Lock()
	said := func() bool { return len(l.toServer) > 0 && (!l.together || l.hungry || !l.busy) }
	for len(l.tasks) == 0 && !said() && l.busy {
		l.cond.Wait()
	}
	tasks := l.tasks
	l.tasks = nil
	var in []byte
	if said() {
		in, l.toServer = l.toServer, nil
		l.feeds++
	}
	l.mu.Unlock()
	for _, f := range tasks {
		f()
	}
	if len(in) > 0 && l.err == nil {
		if l.corrupt {
			in[len(in)-1] ^= 1
		}
		err := l.s.Feed(in)
		l.wasFull = l.wasFull || l.s.Full()
		if err != nil {
			l.err = err
			l.mu.Lock()
			l.cut = true
			l.mu.Unlock()
			l.cond.Broadcast()
			return true
		}
		l.drain()
	}
	return len(tasks) > 0 || len(in) > 0
}

// do runs a client's work while the test's goroutine is the loop.
func (l *link) do(f func()) {
	l.busy = true
	go func() {
		f()
		l.mu.Lock()
		l.busy = false
		l.mu.Unlock()
		l.cond.Broadcast()
	}()
	for {
		more := l.step()
		l.mu.Lock()
		busy := l.busy
		l.mu.Unlock()
		if !more && !busy {
			return
		}
	}
}

// shake runs the handshake of a new client.
func (l *link) shake(cfg *tls.Config) (*tls.Conn, error) {
	c := tls.Client((*clientEnd)(l), cfg)
	var err error
	l.do(func() { err = c.Handshake() })
	l.await()
	return c, err
}

// await runs the loop until the session's handshake is over.
func (l *link) await() {
	for l.shaken == 0 && l.err == nil {
		l.busy = true
		l.step()
		l.busy = false
	}
}

// takeTicket has the client read once, so that it sees its session ticket.
func (l *link) takeTicket(t testing.TB, c *tls.Conn) {
	t.Helper()
	if err := l.s.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	var err error
	l.do(func() { _, err = c.Read(make([]byte, 1)) })
	if err != nil {
		t.Fatal(err)
	}
}

// clientHello returns the first record of a client.
func clientHello(t testing.TB, cfg *tls.Config) []byte {
	t.Helper()
	l := &link{t: t, cut: true}
	l.cond = sync.NewCond(&l.mu)
	if err := tls.Client((*clientEnd)(l), cfg).Handshake(); err != io.EOF {
		t.Fatal(err)
	}
	return l.toServer
}

// panicking is a key that should not be asked.
type panicking struct{ crypto.Signer }

func (panicking) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) {
	panic("out of order")
}

// clientEnd is a link as its client sees it.
type clientEnd link

func (c *clientEnd) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.toClient) == 0 {
		if c.cut {
			return 0, io.EOF
		}
		c.hungry = true
		c.cond.Broadcast()
		c.cond.Wait()
	}
	c.hungry = false
	n := copy(p, c.toClient)
	c.toClient = c.toClient[n:]
	return n, nil
}

func (c *clientEnd) Write(p []byte) (int, error) {
	c.mu.Lock()
	c.toServer = append(c.toServer, p...)
	c.mu.Unlock()
	c.cond.Broadcast()
	return len(p), nil
}

func (c *clientEnd) Close() error                     { return nil }
func (c *clientEnd) LocalAddr() net.Addr              { return nil }
func (c *clientEnd) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (c *clientEnd) SetDeadline(time.Time) error      { return nil }
func (c *clientEnd) SetReadDeadline(time.Time) error  { return nil }
func (c *clientEnd) SetWriteDeadline(time.Time) error { return nil }

// open returns an open session and its client.
func open(t testing.TB, sock *Socket, cfg *tls.Config) (*link, *tls.Conn) {
	t.Helper()
	l := newLink(t, sock)
	c, err := l.shake(cfg)
	if err == nil {
		err = l.handshake
	}
	if err != nil {
		t.Fatal(err)
	}
	return l, c
}

// silent is the carrier of a session whose output nobody wants.
type silent struct{}

func (silent) Post(func())      {}
func (silent) WriteWire([]byte) {}
func (silent) Handshaken(error) {}

// records has a client encrypt n pieces of size bytes, and returns each piece's
// ciphertext.
func records(l *link, c *tls.Conn, n, size int) [][]byte {
	p := make([]byte, size)
	out := make([][]byte, n)
	for i := range out {
		l.toServer = nil
		c.Write(p)
		out[i] = l.toServer
	}
	l.toServer = nil
	return out
}
