//go:build linux

package reactor

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestEcho(t *testing.T) {
	r := start(t, Options{Workers: 2})
	ln := listenOn(t, r, echo)
	for range 4 {
		nc := dialTCP(t, ln.Addr())
		for _, s := range []string{"a", "some more", string(make([]byte, 300_000))} {
			go func() { _, _ = nc.Write([]byte(s)) }()
			if got := mustRead(t, nc, len(s)); string(got) != s {
				t.Fatalf("%d bytes came back changed", len(s))
			}
		}
		if err := nc.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if rest, err := io.ReadAll(nc); len(rest) > 0 || err != nil {
			t.Fatal(rest, err)
		}
	}
	for _, l := range r.Loops() {
		eventually(t, "connections end", func() bool { return l.Stats().Conns == 0 })
		if s := l.Stats(); s.Accepted != 2 {
			t.Errorf("loop %d accepted %d connections, want 2", l.Index(), s.Accepted)
		}
	}
}

func TestConnIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(Conn{}); size > 200 {
		t.Errorf("a connection costs %d bytes, want at most 200", size)
	}
}

// TestHalfClose: both orders of ending the two directions.
func TestHalfClose(t *testing.T) {
	type event struct {
		What string
		N    int
	}
	t.Run("peer first", func(t *testing.T) {
		r := start(t, Options{})
		events := make(chan event, 10)
		ln := listenOn(t, r, func(*Loop, *Conn) Handler {
			return &probe{
				read: func(c *Conn, p []byte) {
					events <- event{"read", len(p)}
					if len(p) == 0 {
						c.Write([]byte("answer after the end"))
						c.CloseWrite()
						c.Write([]byte("dropped"))
					}
				},
				closed: func(_ *Conn, err error) {
					if err != nil {
						t.Error(err)
					}
					events <- event{"close", 0}
				},
			}
		})
		nc := dialTCP(t, ln.Addr())
		mustWrite(t, nc, []byte("req"))
		_ = nc.CloseWrite()
		if got, err := io.ReadAll(nc); string(got) != "answer after the end" || err != nil {
			t.Fatalf("%q, %v", got, err)
		}
		var got []event
		n := 0
		for len(got) == 0 || got[len(got)-1].What != "close" {
			e := receive(t, events, "event")
			n += e.N
			got = append(got, e)
		}
		if n != 3 || got[len(got)-2] != (event{"read", 0}) {
			t.Errorf("events %v", got)
		}
	})
	t.Run("this side first", func(t *testing.T) {
		r := start(t, Options{})
		closed := make(chan error, 2)
		var got []byte
		ln := listenOn(t, r, func(_ *Loop, c *Conn) Handler {
			c.Write([]byte("hello"))
			c.CloseWrite()
			return &probe{
				read:   func(_ *Conn, p []byte) { got = append(got, p...) },
				closed: func(_ *Conn, err error) { closed <- err },
			}
		})
		nc := dialTCP(t, ln.Addr())
		if got, err := io.ReadAll(nc); string(got) != "hello" || err != nil {
			t.Fatalf("%q, %v", got, err)
		}
		mustWrite(t, nc, []byte("still "))
		mustWrite(t, nc, []byte("reading"))
		_ = nc.Close()
		if err := receive(t, closed, "OnClose"); err != nil {
			t.Error(err)
		}
		if string(got) != "still reading" {
			t.Errorf("read %q", got)
		}
	})
}

// TestNothingAfterClose: whatever a handler does to its connection from within
// a callback, OnClose comes once and last, and the connection then ignores
// every call.
func TestNothingAfterClose(t *testing.T) {
	mine := errors.New("mine")
	tests := []struct {
		name string
		end  func(c *Conn)
		want error
	}{
		{"close", func(c *Conn) { c.Close() }, nil},
		{"close twice", func(c *Conn) { c.Close(); c.Close() }, nil},
		{"abort", func(c *Conn) { c.Abort(mine) }, mine},
		{"close, abort", func(c *Conn) { c.Close(); c.Abort(mine) }, mine},
		{"abort, close", func(c *Conn) { c.Abort(mine); c.Close() }, mine},
		{"abort twice", func(c *Conn) { c.Abort(mine); c.Abort(nil) }, mine},
		{"write, close", func(c *Conn) { c.Write([]byte("x")); c.Close(); c.Write([]byte("y")) }, nil},
		{"pause, close", func(c *Conn) { c.PauseRead(); c.Close() }, nil},
		{"close, resume", func(c *Conn) { c.PauseRead(); c.Close(); c.ResumeRead() }, nil},
		{"linger without time", func(c *Conn) { c.CloseLinger(0) }, nil},
		{"linger, close", func(c *Conn) { c.CloseLinger(time.Hour); c.Close() }, nil},
		{"close, linger", func(c *Conn) { c.Close(); c.CloseLinger(time.Hour) }, nil},
		{"shut, close", func(c *Conn) { c.CloseWrite(); c.Close() }, nil},
		{"big write, abort", func(c *Conn) { c.Write(make([]byte, 8<<20)); c.Abort(mine) }, mine},
		{"flush, close", func(c *Conn) { c.Write([]byte("x")); c.Flush(); c.Close(); c.Flush() }, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := start(t, Options{})
			l := r.Loops()[0]
			var events []string
			var conn *Conn
			done := make(chan error, 2)
			ln := listenOn(t, r, func(_ *Loop, c *Conn) Handler {
				conn = c
				return &probe{
					read: func(c *Conn, p []byte) {
						events = append(events, "read")
						tt.end(c)
						if !c.Closed() {
							t.Error("not Closed")
						}
					},
					drained: func(*Conn) { events = append(events, "drained") },
					closed: func(c *Conn, err error) {
						events = append(events, "close")
						c.Close()
						c.Write([]byte("z"))
						done <- err
					},
				}
			})
			nc := dialTCP(t, ln.Addr())
			mustWrite(t, nc, []byte("one"))
			if err := receive(t, done, "OnClose"); !errors.Is(err, tt.want) {
				t.Errorf("OnClose got %v, want %v", err, tt.want)
			}
			_, _ = nc.Write([]byte("two"))
			on(t, l, func() {
				conn.Write([]byte("x"))
				conn.Write(make([]byte, 1<<20))
				conn.Flush()
				conn.PauseRead()
				conn.ResumeRead()
				conn.CloseWrite()
				conn.Close()
				conn.CloseLinger(time.Hour)
				conn.Abort(mine)
				if conn.Buffered() != 0 || conn.AboveHighWater() || !conn.Closed() {
					t.Error("a closed connection has state")
				}
			})
			on(t, l, func() {}) // another turn
			if diff := cmp.Diff([]string{"read", "close"}, events); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if s := l.Stats(); s.Conns != 0 || l.Load() != 0 {
				t.Errorf("%d connections, load %d", s.Conns, l.Load())
			}
		})
	}
}

// TestWriteToClosedDoesNotReachTheNextOwner: a descriptor's number is used again
// at once.
func TestWriteToClosedDoesNotReachTheNextOwner(t *testing.T) {
	r := start(t, Options{})
	l := r.Loops()[0]
	accepted := make(chan *Conn, 2)
	ln := listenOn(t, r, func(_ *Loop, c *Conn) Handler { accepted <- c; return &probe{} })
	dialTCP(t, ln.Addr())
	old := receive(t, accepted, "connection")
	ln.Pause()
	nc := dialTCP(t, ln.Addr()) // waits in the kernel's queue
	on(t, l, func() { old.Abort(nil) })
	ln.Resume()
	heir := receive(t, accepted, "connection")
	if heir.fd != old.fd {
		t.Fatalf("descriptor %d, want %d again", heir.fd, old.fd)
	}
	on(t, l, func() {
		old.Write([]byte("wrong"))
		old.Write(make([]byte, directWrite))
		old.Abort(nil)
		old.Close()
		heir.Write([]byte("right"))
		heir.Close()
	})
	if got, err := io.ReadAll(nc); string(got) != "right" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
}

// TestEventsOfOneBatch: two connections are readable in one turn of the poller;
// the first one's callback closes the second.
func TestEventsOfOneBatch(t *testing.T) {
	r := start(t, Options{})
	l := r.Loops()[0]
	var conns []*Conn
	reads, closes := 0, 0
	accepted := make(chan struct{}, 2)
	ln := listenOn(t, r, func(_ *Loop, c *Conn) Handler {
		conns = append(conns, c)
		accepted <- struct{}{}
		return &probe{
			read: func(c *Conn, p []byte) {
				reads++
				for _, o := range conns {
					o.Close()
				}
			},
			closed: func(*Conn, error) { closes++ },
		}
	})
	a, b := dialTCP(t, ln.Addr()), dialTCP(t, ln.Addr())
	receive(t, accepted, "connection")
	receive(t, accepted, "connection")
	on(t, l, func() { // both become readable before the poller looks again
		mustWrite(t, a, []byte("x"))
		mustWrite(t, b, []byte("x"))
	})
	eventually(t, "both end", func() bool { return l.Stats().Conns == 0 })
	on(t, l, func() {
		if reads != 1 || closes != 2 {
			t.Errorf("%d reads and %d closes, want 1 and 2", reads, closes)
		}
	})
}

func TestRefusedByHandler(t *testing.T) {
	r := start(t, Options{})
	ln := listenOn(t, r, func(*Loop, *Conn) Handler { return nil })
	nc := dialTCP(t, ln.Addr())
	if n, err := nc.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("read %d bytes, error %v", n, err)
	}
	eventually(t, "it is closed", func() bool { return r.Loops()[0].Stats().Conns == 0 && r.Loops()[0].Load() == 0 })
}

func TestSetHandler(t *testing.T) {
	r := start(t, Options{})
	got := make(chan string, 4)
	second := &probe{
		read:   func(_ *Conn, p []byte) { got <- "second " + string(p) },
		closed: func(*Conn, error) { got <- "second closed" },
	}
	ln := listenOn(t, r, func(*Loop, *Conn) Handler {
		first := &probe{}
		first.read = func(c *Conn, p []byte) {
			got <- "first " + string(p)
			if c.Handler() != first {
				t.Error("Handler is another")
			}
			c.SetHandler(second)
		}
		return first
	})
	nc := dialTCP(t, ln.Addr())
	mustWrite(t, nc, []byte("a"))
	if s := receive(t, got, "read"); s != "first a" {
		t.Error(s)
	}
	mustWrite(t, nc, []byte("b"))
	if s := receive(t, got, "read"); s != "second b" {
		t.Error(s)
	}
	_ = nc.SetLinger(0)
	_ = nc.Close()
	if s := receive(t, got, "close"); s != "second closed" {
		t.Error(s)
	}
}

func TestAddresses(t *testing.T) {
	r := start(t, Options{})
	type pair struct{ local, remote, again string }
	got := make(chan pair, 1)
	for _, addr := range []string{"127.0.0.1:0", "[::1]:0"} {
		ln, err := r.Listen(mustAddr(addr), func(_ *Loop, c *Conn) Handler {
			p := pair{c.LocalAddr().String(), c.RemoteAddr().String(), ""}
			c.Abort(nil)
			p.again = c.LocalAddr().String() // remembered
			got <- p
			return &probe{}
		})
		if err != nil {
			t.Fatal(err)
		}
		nc, err := net.Dial("tcp", ln.Addr().String())
		if err != nil && !errors.Is(err, unix.ECONNRESET) {
			t.Fatal(err)
		}
		p := receive(t, got, "connection")
		if p.local != ln.Addr().String() || p.again != p.local {
			t.Errorf("local addresses %s and %s, want %s", p.local, p.again, ln.Addr())
		}
		if err == nil {
			if want := nc.LocalAddr().String(); p.remote != want {
				t.Errorf("remote address %s, want %s", p.remote, want)
			}
			_ = nc.Close()
		}
	}
}

// A peer that speaks for another one gets that one's address.
func TestSetRemoteAddr(t *testing.T) {
	other := mustAddr("192.0.2.1:5")
	r := start(t, Options{})
	seen := make(chan netip.AddrPort, 2)
	ln := listenOn(t, r, func(_ *Loop, c *Conn) Handler {
		seen <- c.RemoteAddr()
		c.SetRemoteAddr(other)
		seen <- c.RemoteAddr()
		return &probe{}
	})
	nc := dialTCP(t, ln.Addr())
	if got := <-seen; got.String() != nc.LocalAddr().String() {
		t.Errorf("the peer is %v, not %v", got, nc.LocalAddr())
	}
	if got := <-seen; got != other {
		t.Errorf("the peer is %v, not %v", got, other)
	}
}
