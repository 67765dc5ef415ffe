//go:build linux

package reactor

import (
	"errors"
	"io"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestCloseDelivers: all that was written before Close arrives, though it is far
// more than the kernel takes at once and the reader is slow.
func TestCloseDelivers(t *testing.T) {
	const total = 24 << 20
	const timeout = 2 * time.Second
	r := start(t, Options{CloseTimeout: timeout})
	closed := make(chan error, 1)
	ln := listenOn(t, r, func(*Loop, *Conn) Handler {
		return &probe{
			read:    func(c *Conn, p []byte) { c.Write(make([]byte, total)); c.Close() },
			drained: func(*Conn) { t.Error("drained after Close") },
			closed:  func(_ *Conn, err error) { closed <- err },
		}
	})
	nc := dialTCP(t, ln.Addr())
	mustWrite(t, nc, []byte("x"))
	// For longer than the timeout the reader is slow, but it does read.
	n := int64(0)
	for end := time.Now().Add(3 * timeout / 2); time.Now().Before(end); time.Sleep(timeout / 32) {
		k, err := io.CopyN(io.Discard, nc, 256<<10)
		if n += k; err != nil {
			t.Fatalf("after %d bytes: %v", n, err)
		}
	}
	k, err := io.Copy(io.Discard, nc)
	if n += k; n != total || err != nil {
		t.Fatalf("%d of %d bytes, %v", n, total, err)
	}
	if err := receive(t, closed, "OnClose"); err != nil {
		t.Error(err)
	}
}

// TestNoDrainedWhileClosing: the handler is not asked for more.
func TestNoDrainedWhileClosing(t *testing.T) {
	r := start(t, Options{})
	l := r.Loops()[0]
	accepted := make(chan *Conn, 1)
	ln := listenOn(t, r, func(_ *Loop, c *Conn) Handler {
		accepted <- c
		return &probe{drained: func(*Conn) { t.Error("drained after Close") }}
	})
	nc := dialTCP(t, ln.Addr())
	c := receive(t, accepted, "connection")
	on(t, l, func() {
		c.Write([]byte("last"))
		c.flags |= flagAbove | flagBlocked // as when the kernel has taken all but these
		c.Close()
	})
	on(t, l, func() {
		c.flags &^= flagBlocked
		c.touch()
	})
	if got, err := io.ReadAll(nc); string(got) != "last" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// TestCloseGivesUpOnAStalledReader, for Close and CloseLinger.
func TestCloseGivesUpOnAStalledReader(t *testing.T) {
	for name, end := range map[string]func(*Conn){
		"close":  func(c *Conn) { c.Close() },
		"linger": func(c *Conn) { c.CloseLinger(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, Options{CloseTimeout: 20 * time.Millisecond})
			closed := make(chan error, 1)
			ln := listenOn(t, r, func(*Loop, *Conn) Handler {
				return &probe{
					read:   func(c *Conn, p []byte) { c.Write(make([]byte, 24<<20)); end(c) },
					closed: func(_ *Conn, err error) { closed <- err },
				}
			})
			nc := dialTCP(t, ln.Addr())
			mustWrite(t, nc, []byte("x"))
			if err := receive(t, closed, "OnClose"); !errors.Is(err, ErrCloseTimeout) {
				t.Errorf("OnClose got %v", err)
			}
			if n, err := io.Copy(io.Discard, nc); !errors.Is(err, unix.ECONNRESET) {
				t.Errorf("client read %d bytes, then %v; want a reset", n, err)
			}
			on(t, r.Loops()[0], func() {
				if l := r.Loops()[0]; l.wheel.count != 0 {
					t.Errorf("%d timers left", l.wheel.count)
				}
			})
		})
	}
}

// TestClosingIsQuiet: what the peer sends to a connection that is closing is not
// reported again and again.
func TestClosingIsQuiet(t *testing.T) {
	r := start(t, Options{})
	l := r.Loops()[0]
	accepted := make(chan *Conn, 1)
	ln := listenOn(t, r, func(_ *Loop, c *Conn) Handler { accepted <- c; return &probe{} })
	nc := dialTCP(t, ln.Addr())
	c := receive(t, accepted, "connection")
	on(t, l, func() { c.Write(make([]byte, 24<<20)); c.Close() })
	before := l.Stats().Events
	for range 50 {
		mustWrite(t, nc, []byte("x"))
	}
	_ = nc.CloseWrite()
	time.Sleep(20 * time.Millisecond)
	if n := l.Stats().Events - before; n > 10 {
		t.Errorf("%d events", n)
	}
	on(t, l, func() {
		if c.flags&flagDone != 0 || c.Buffered() == 0 {
			t.Error("nothing is left to be delivered")
		}
	})
}

// TestCloseWhenThePeerIsGone: the bytes can't be delivered, and OnClose says so.
func TestCloseWhenThePeerIsGone(t *testing.T) {
	r := start(t, Options{})
	closed := make(chan error, 1)
	ln := listenOn(t, r, func(*Loop, *Conn) Handler {
		return &probe{
			read:   func(c *Conn, p []byte) { c.Write(make([]byte, 24<<20)); c.Close() },
			closed: func(_ *Conn, err error) { closed <- err },
		}
	})
	nc := dialTCP(t, ln.Addr())
	mustWrite(t, nc, []byte("x"))
	mustRead(t, nc, 1)
	_ = nc.SetLinger(0)
	_ = nc.Close()
	if err := receive(t, closed, "OnClose"); !errors.Is(err, unix.ECONNRESET) && !errors.Is(err, unix.EPIPE) {
		t.Errorf("OnClose got %v", err)
	}
}

// TestLinger: a client that is still sending gets the whole answer and then the
// end of file, not a reset (RFC 9112, section 9.6).
func TestLinger(t *testing.T) {
	answer := make([]byte, 100_000)
	r := start(t, Options{})
	l := r.Loops()[0]
	closed := make(chan error, 1)
	reads := 0
	ln := listenOn(t, r, func(*Loop, *Conn) Handler {
		return &probe{
			read: func(c *Conn, p []byte) {
				reads++
				c.Write(answer)
				c.CloseLinger(time.Minute)
			},
			closed: func(_ *Conn, err error) { closed <- err },
		}
	})
	nc := dialTCP(t, ln.Addr())
	sent := make(chan error, 1)
	go func() {
		for range 512 {
			if _, err := nc.Write(make([]byte, 64<<10)); err != nil {
				sent <- err
				return
			}
		}
		sent <- nc.CloseWrite()
	}()
	if err := receive(t, sent, "end of sending"); err != nil {
		t.Errorf("client could not send all: %v", err)
	}
	if got, err := io.ReadAll(nc); len(got) != len(answer) || err != nil {
		t.Errorf("client read %d of %d bytes, then %v", len(got), len(answer), err)
	}
	if err := receive(t, closed, "OnClose"); err != nil {
		t.Error(err)
	}
	on(t, l, func() {
		if reads != 1 {
			t.Errorf("%d reads, want 1", reads)
		}
		if l.wheel.count != 0 {
			t.Errorf("%d timers left", l.wheel.count)
		}
	})
}

// TestLingerEnds when its time is over though the client neither sends nor ends,
// and when the client had ended before.
func TestLingerEnds(t *testing.T) {
	for name, clientFirst := range map[string]bool{"silent client": false, "client ended": true} {
		t.Run(name, func(t *testing.T) {
			r := start(t, Options{})
			closed := make(chan time.Duration, 1)
			const max = 30 * time.Millisecond
			ln := listenOn(t, r, func(l *Loop, c *Conn) Handler {
				begin := l.Now()
				end := func() {
					c.Write([]byte("bye"))
					if clientFirst {
						c.CloseLinger(time.Hour)
					} else {
						c.CloseLinger(max)
					}
				}
				if !clientFirst {
					end()
				}
				return &probe{
					read: func(c *Conn, p []byte) {
						if len(p) == 0 {
							end()
						}
					},
					closed: func(_ *Conn, err error) {
						if err != nil {
							t.Error(err)
						}
						closed <- l.Now().Sub(begin)
					},
				}
			})
			nc := dialTCP(t, ln.Addr())
			if clientFirst {
				_ = nc.CloseWrite()
			}
			if got, err := io.ReadAll(nc); string(got) != "bye" || err != nil {
				t.Errorf("client read %q, %v", got, err)
			}
			if took := receive(t, closed, "OnClose"); !clientFirst && took < max {
				t.Errorf("closed after %v, before %v", took, max)
			}
		})
	}
}

// TestAbortResets and drops what was queued.
func TestAbortResets(t *testing.T) {
	r := start(t, Options{})
	ln := listenOn(t, r, func(*Loop, *Conn) Handler {
		return &probe{read: func(c *Conn, p []byte) { c.Write([]byte("dropped")); c.Abort(nil) }}
	})
	nc := dialTCP(t, ln.Addr())
	mustWrite(t, nc, []byte("x"))
	if n, err := nc.Read(make([]byte, 10)); n != 0 || !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("client read %d bytes, %v; want a reset", n, err)
	}
}
