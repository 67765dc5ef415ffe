//go:build linux

package reactor

import (
	"io"
	"net"
	"net/netip"
	"testing"
	"time"
	"unsafe"
)

// patience is how long a test waits for what should happen at once.
const patience = time.Minute

// probe is a handler made of functions; those that are nil do nothing.
type probe struct {
	read    func(c *Conn, p []byte)
	drained func(c *Conn)
	closed  func(c *Conn, err error)
	connect func(c *Conn)
}

func (h *probe) OnRead(c *Conn, p []byte) {
	if h.read != nil {
		h.read(c, p)
	}
}

func (h *probe) OnDrained(c *Conn) {
	if h.drained != nil {
		h.drained(c)
	}
}

func (h *probe) OnClose(c *Conn, err error) {
	if h.closed != nil {
		h.closed(c, err)
	}
}

func (h *probe) OnConnect(c *Conn) {
	if h.connect != nil {
		h.connect(c)
	}
}

// echo answers what it reads and closes when the peer has ended.
func echo(*Loop, *Conn) Handler {
	return &probe{read: func(c *Conn, p []byte) {
		if len(p) == 0 {
			c.Close()
			return
		}
		c.Write(p)
	}}
}

// start returns a reactor that is closed at the test's end.
func start(t testing.TB, o Options) *Reactor {
	t.Helper()
	if o.Workers == 0 {
		o.Workers = 1
	}
	r, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

var loopback = mustAddr("127.0.0.1:0")

func mustAddr(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

func listenOn(t testing.TB, r *Reactor, handler func(*Loop, *Conn) Handler) *Listener {
	t.Helper()
	ln, err := r.Listen(loopback, handler)
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// dialTCP connects an ordinary client, which is closed at the test's end.
func dialTCP(t testing.TB, addr netip.AddrPort) *net.TCPConn {
	t.Helper()
	nc, err := net.DialTimeout("tcp", addr.String(), patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	if err := nc.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return nc.(*net.TCPConn)
}

// peer listens as an ordinary server does and returns its address and the
// connections that it accepts.
func peer(t testing.TB) (netip.AddrPort, <-chan *net.TCPConn) {
	t.Helper()
	nl, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nl.Close() })
	conns := make(chan *net.TCPConn, 100)
	go func() {
		for {
			nc, err := nl.Accept()
			if err != nil {
				return
			}
			conns <- nc.(*net.TCPConn)
		}
	}()
	return nl.Addr().(*net.TCPAddr).AddrPort(), conns
}

// on runs fn on the loop and waits for it.
func on(t testing.TB, l *Loop, fn func()) {
	t.Helper()
	done := make(chan struct{})
	l.Post(func() {
		defer close(done)
		fn()
	})
	receive(t, done, "posted function")
}

// pause pauses a listener and waits until all of its loops have seen it.
func pause(t testing.TB, ln *Listener) {
	t.Helper()
	ln.Pause()
	for _, s := range ln.sockets {
		on(t, s.loop, func() {})
	}
}

// receive waits for a value.
func receive[T any](t testing.TB, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("no %s within %v", what, patience)
		panic("unreachable")
	}
}

// eventually waits until ok returns true.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

func mustWrite(t testing.TB, w io.Writer, p []byte) {
	t.Helper()
	if _, err := w.Write(p); err != nil {
		t.Fatal(err)
	}
}

func mustRead(t testing.TB, r io.Reader, n int) []byte {
	t.Helper()
	p := make([]byte, n)
	if _, err := io.ReadFull(r, p); err != nil {
		t.Fatal(err)
	}
	return p
}

// bytesOf returns the first n bytes of the memory at p.
func bytesOf[T any](p *T, n uint32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(p)), n)
}
