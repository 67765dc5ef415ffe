//go:build linux

package reactor

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// splice relays between an accepted and a dialled connection with flow control,
// as a proxy does.
type splice struct {
	other   *Conn
	most    int // the largest amount that was queued towards this side
	drained int
	pauses  int
	closed  func(err error)
}

func (s *splice) OnConnect(*Conn) {}

func (s *splice) OnRead(c *Conn, p []byte) {
	if len(p) == 0 {
		s.other.CloseWrite()
		return
	}
	s.other.Write(p)
	to := s.other.Handler().(*splice)
	to.most = max(to.most, s.other.Buffered())
	if s.other.AboveHighWater() {
		c.PauseRead()
		to.pauses++
	}
}

func (s *splice) OnDrained(c *Conn) {
	s.drained++
	if c.Buffered() > c.Loop().options.LowWater {
		panic("drained above the low watermark")
	}
	s.other.ResumeRead()
}

func (s *splice) OnClose(_ *Conn, err error) {
	s.other.Close()
	if s.closed != nil {
		s.closed(err)
	}
}

// spliceTo returns an accept function that relays to upstream.
func spliceTo(t testing.TB, upstream netip.AddrPort, made func(client, server *splice)) func(*Loop, *Conn) Handler {
	return func(l *Loop, c *Conn) Handler {
		client, server := &splice{}, &splice{other: c}
		var err error
		if client.other, err = l.Dial(upstream, server); err != nil {
			t.Error(err)
			return nil
		}
		if made != nil {
			made(client, server)
		}
		return client
	}
}

// TestFlowControlBothWays sends 64 MiB through a relay to an echoing peer and
// back, with a reader that is slow at first: what the relay holds stays within
// the watermark and one read, and everything arrives.
func TestFlowControlBothWays(t *testing.T) {
	const total = 64 << 20
	addr, conns := peer(t)
	go func() {
		if nc, ok := <-conns; ok {
			_, _ = io.Copy(nc, nc)
			_ = nc.CloseWrite()
		}
	}()
	o := Options{HighWater: 128 << 10, LowWater: 32 << 10, ReadBuffer: 64 << 10}
	r := start(t, o)
	l := r.Loops()[0]
	sides := make(chan [2]*splice, 1)
	closed := make(chan error, 2)
	ln := listenOn(t, r, spliceTo(t, addr, func(client, server *splice) {
		client.closed = func(err error) { closed <- err }
		server.closed = client.closed
		sides <- [2]*splice{client, server}
	}))
	nc := dialTCP(t, ln.Addr())
	block := make([]byte, 1<<20)
	for i := range block {
		block[i] = byte(rand.Uint32())
	}
	sent := sha256.New()
	go func() {
		for range total / len(block) {
			block[0]++
			sent.Write(block)
			if _, err := nc.Write(block); err != nil {
				t.Error(err)
				return
			}
		}
		_ = nc.CloseWrite()
	}()
	pair := receive(t, sides, "pair")
	// Nobody reads: the peer blocks, then the relay's side to the peer fills up.
	full := func() (ok bool) {
		on(t, l, func() { ok = pair[0].pauses > 0 && pair[1].pauses > 0 })
		return ok
	}
	eventually(t, "both directions are paused", full)
	time.Sleep(20 * time.Millisecond)
	received := sha256.New()
	n, err := io.Copy(received, nc)
	if n != total || err != nil {
		t.Fatalf("%d bytes came back, error %v", n, err)
	}
	if !bytes.Equal(sent.Sum(nil), received.Sum(nil)) {
		t.Error("what came back is not what was sent")
	}
	for range 2 {
		if err := receive(t, closed, "OnClose"); err != nil {
			t.Errorf("closed with %v", err)
		}
	}
	on(t, l, func() {
		for i, s := range pair {
			t.Logf("side %d: at most %d bytes queued, %d pauses, %d times drained", i, s.most, s.pauses, s.drained)
			if s.most > o.HighWater+o.ReadBuffer {
				t.Errorf("side %d: %d bytes queued, limit %d", i, s.most, o.HighWater+o.ReadBuffer)
			}
			if s.drained == 0 || s.drained != s.pauses {
				t.Errorf("side %d: %d times drained after %d pauses", i, s.drained, s.pauses)
			}
		}
		if l.free.bytes > freeBytesLimit {
			t.Errorf("%d free bytes", l.free.bytes)
		}
	})
	if n := l.Stats().Conns; n != 0 {
		t.Errorf("%d connections left", n)
	}
}

// TestPauseInsideOnRead: no OnRead comes while reading is paused, not for bytes
// and not for the end of file, however much there is to read.
func TestPauseInsideOnRead(t *testing.T) {
	const total = 1 << 20
	r := start(t, Options{ReadBuffer: 4 << 10})
	l := r.Loops()[0]
	var timer Timer
	n, calls := 0, 0
	eof := make(chan int, 1)
	ln := listenOn(t, r, func(_ *Loop, c *Conn) Handler {
		timer.Fire = func(time.Time) { c.ResumeRead() }
		return &probe{read: func(c *Conn, p []byte) {
			if c.ReadPaused() {
				t.Error("OnRead while paused")
			}
			calls++
			n += len(p)
			if len(p) == 0 {
				eof <- n
				return
			}
			c.PauseRead()
			if calls%3 == 0 { // at once
				c.ResumeRead()
				return
			}
			l.Schedule(&timer, 0)
		}}
	})
	nc := dialTCP(t, ln.Addr())
	go func() {
		_, _ = nc.Write(make([]byte, total))
		_ = nc.CloseWrite()
	}()
	if got := receive(t, eof, "end of file"); got != total {
		t.Errorf("read %d bytes, want %d", got, total)
	}
}

// TestPausedIsQuiet: what a peer sends to a paused connection costs a few
// events and then nothing, and resuming delivers it and the end of file.
func TestPausedIsQuiet(t *testing.T) {
	r := start(t, Options{})
	l := r.Loops()[0]
	accepted := make(chan *Conn, 1)
	read := make(chan int, 100)
	ln := listenOn(t, r, func(_ *Loop, c *Conn) Handler {
		c.PauseRead()
		accepted <- c
		return &probe{read: func(_ *Conn, p []byte) { read <- len(p) }}
	})
	nc := dialTCP(t, ln.Addr())
	c := receive(t, accepted, "connection")
	before := l.Stats().Events
	for range 200 {
		mustWrite(t, nc, []byte("x"))
	}
	_ = nc.CloseWrite()
	eventually(t, "an event is seen", func() bool { return l.Stats().Events > before })
	time.Sleep(20 * time.Millisecond)
	if n := l.Stats().Events - before; n > 10 {
		t.Errorf("%d events while paused", n)
	}
	if len(read) > 0 {
		t.Error("OnRead while paused")
	}
	l.Post(c.ResumeRead)
	n := 0
	for {
		k := receive(t, read, "read")
		if n += k; k == 0 {
			break
		}
	}
	if n != 200 {
		t.Errorf("read %d bytes, want 200", n)
	}
	before = l.Stats().Events
	time.Sleep(20 * time.Millisecond)
	if n := l.Stats().Events - before; n > 2 {
		t.Errorf("%d events after the end of file", n)
	}
}

// TestReadsPerEvent: a connection with much to read gets some reads in a row, and
// then others get their turn.
func TestReadsPerEvent(t *testing.T) {
	const chunk, chunks = 4 << 10, 20
	r := start(t, Options{ReadBuffer: chunk})
	l := r.Loops()[0]
	accepted := make(chan *Conn, 2)
	var order []*Conn
	left := 2 * chunk * chunks
	done := make(chan struct{})
	ln := listenOn(t, r, func(_ *Loop, c *Conn) Handler {
		c.PauseRead()
		accepted <- c
		return &probe{read: func(c *Conn, p []byte) {
			if len(p) == 0 {
				return
			}
			order = append(order, c)
			if left -= len(p); left == 0 {
				close(done)
			}
		}}
	})
	var conns []*Conn
	for range 2 {
		nc := dialTCP(t, ln.Addr())
		conns = append(conns, receive(t, accepted, "connection"))
		mustWrite(t, nc, make([]byte, chunk*chunks))
	}
	eventually(t, "the bytes are there", func() (there bool) {
		on(t, l, func() { there = unread(conns[0].fd) == chunk*chunks && unread(conns[1].fd) == chunk*chunks })
		return there
	})
	on(t, l, func() { conns[0].ResumeRead(); conns[1].ResumeRead() })
	receive(t, done, "last byte")
	row, longest := 0, 0
	for i, c := range order {
		if row++; i+1 == len(order) || order[i+1] != c {
			longest, row = max(longest, row), 0
		}
	}
	if longest < readsPerEvent || longest > 2*readsPerEvent { // two turns may follow each other
		t.Errorf("%d reads of one connection in a row, want %d", longest, readsPerEvent)
	}
}

// TestPauseWithoutTrafficIsFree: as long as the peer is silent, pausing and
// resuming make no system call.
func TestPauseWithoutTrafficIsFree(t *testing.T) {
	r := start(t, Options{})
	l := r.Loops()[0]
	accepted := make(chan *Conn, 1)
	ln := listenOn(t, r, func(_ *Loop, c *Conn) Handler { accepted <- c; return &probe{} })
	dialTCP(t, ln.Addr())
	c := receive(t, accepted, "connection")
	on(t, l, func() {})
	before := l.Stats()
	for range 3 {
		on(t, l, func() { c.PauseRead(); c.Write([]byte("x")) }) // settled, too
		on(t, l, func() {
			if c.interest != readable {
				t.Errorf("interest %d after pausing", c.interest)
			}
		})
		on(t, l, c.ResumeRead)
	}
	on(t, l, func() {})
	after := l.Stats()
	if events, wakeups := after.Events-before.Events, after.Wakeups-before.Wakeups; events != wakeups {
		t.Errorf("%d events, %d of them wake-ups", events, wakeups)
	}
}

// TestWritingWhilePaused: a paused connection still sends all it has.
func TestWritingWhilePaused(t *testing.T) {
	const total = 16 << 20
	r := start(t, Options{})
	ln := listenOn(t, r, func(_ *Loop, c *Conn) Handler {
		return &probe{read: func(c *Conn, p []byte) {
			c.PauseRead()
			c.Write(make([]byte, total))
		}}
	})
	nc := dialTCP(t, ln.Addr())
	mustWrite(t, nc, []byte("go"))
	time.Sleep(5 * time.Millisecond)
	mustWrite(t, nc, []byte("more that is not read")) // makes it register anew
	time.Sleep(5 * time.Millisecond)
	if n, err := io.CopyN(io.Discard, nc, total); err != nil {
		t.Fatalf("%d bytes, %v", n, err)
	}
}

// TestResetWhilePaused: a reset is noticed though nobody reads.
func TestResetWhilePaused(t *testing.T) {
	tests := []struct {
		name  string
		first string // sent before the reset, and never read
		end   bool   // FIN before the reset
	}{
		{"silent peer", "", false},
		{"unread bytes", "bytes", false},
		{"half-closed", "", true},
		{"unread bytes, half-closed", "bytes", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := start(t, Options{})
			l := r.Loops()[0]
			accepted := make(chan *Conn, 1)
			closed := make(chan error, 1)
			ln := listenOn(t, r, func(_ *Loop, c *Conn) Handler {
				c.PauseRead()
				accepted <- c
				return &probe{
					read:   func(*Conn, []byte) { t.Error("OnRead while paused") },
					closed: func(_ *Conn, err error) { closed <- err },
				}
			})
			nc := dialTCP(t, ln.Addr())
			c := receive(t, accepted, "connection")
			if tt.first != "" {
				mustWrite(t, nc, []byte(tt.first))
			}
			if tt.end {
				_ = nc.CloseWrite()
			}
			if tt.first != "" || tt.end {
				eventually(t, "the event is seen", func() (seen bool) {
					on(t, l, func() { seen = c.interest == held })
					return seen
				})
			}
			_ = nc.SetLinger(0)
			_ = nc.Close()
			err := receive(t, closed, "OnClose")
			if want := map[bool]unix.Errno{false: unix.ECONNRESET, true: unix.EPIPE}[tt.end]; !errors.Is(err, want) {
				t.Errorf("OnClose got %v, want %v", err, want)
			}
		})
	}
}

// TestDialedResetKeepsTheAnswer: what an upstream sent before it reset the
// connection is delivered, whether reading was paused or not, and the end of
// file only when the upstream had ended in order.
func TestDialedResetKeepsTheAnswer(t *testing.T) {
	for _, paused := range []bool{false, true} {
		for _, end := range []bool{false, true} {
			name := map[bool]string{false: "reading", true: "paused"}[paused] + map[bool]string{false: ", reset", true: ", end, reset"}[end]
			t.Run(name, func(t *testing.T) {
				addr, conns := peer(t)
				r := start(t, Options{HighWater: 64 << 10, LowWater: 16 << 10})
				l := r.Loops()[0]
				var got bytes.Buffer
				eofs := 0
				closed := make(chan error, 1)
				var c *Conn
				upload := make([]byte, 32<<10)
				pump := func(c *Conn) {
					for i := 0; i < 8 && !c.AboveHighWater(); i++ {
						c.Write(upload)
					}
				}
				on(t, l, func() {
					var err error
					c, err = l.Dial(addr, &probe{
						connect: func(c *Conn) {
							if paused {
								c.PauseRead()
							}
							pump(c)
						},
						drained: pump,
						read: func(_ *Conn, p []byte) {
							if len(p) == 0 {
								eofs++
							}
							got.Write(p)
						},
						closed: func(_ *Conn, err error) { closed <- err },
					})
					if err != nil {
						t.Error(err)
					}
				})
				nc := receive(t, conns, "connection")
				mustRead(t, nc, 64<<10)
				mustWrite(t, nc, []byte("early answer"))
				if end {
					_ = nc.CloseWrite()
					time.Sleep(5 * time.Millisecond)
				}
				_ = nc.SetLinger(0)
				_ = nc.Close() // a reset
				if paused {
					eventually(t, "the failure is seen", func() (seen bool) {
						on(t, l, func() {
							if c.flags&flagFailed == 0 {
								c.Write(upload)
							}
							seen = c.flags&flagFailed != 0
						})
						return seen
					})
					if got.Len() > 0 || len(closed) > 0 {
						t.Error("delivered while paused")
					}
					on(t, l, c.ResumeRead)
				}
				if err := receive(t, closed, "OnClose"); err == nil {
					t.Error("OnClose got no error")
				}
				if got.String() != "early answer" {
					t.Errorf("read %q", got.String())
				}
				if !end && eofs != 0 || eofs > 1 || end && paused && eofs != 1 {
					t.Errorf("%d ends of file", eofs)
				}
			})
		}
	}
}

// TestDialedWriteFails though the connection seems to be open: it ends with the
// error all the same.
func TestDialedWriteFails(t *testing.T) {
	addr, conns := peer(t)
	r := start(t, Options{})
	l := r.Loops()[0]
	closed := make(chan error, 1)
	connected := make(chan *Conn, 1)
	on(t, l, func() {
		_, err := l.Dial(addr, &probe{
			connect: func(c *Conn) { connected <- c },
			closed:  func(_ *Conn, err error) { closed <- err },
		})
		if err != nil {
			t.Error(err)
		}
	})
	c := receive(t, connected, "connection")
	receive(t, conns, "connection")
	on(t, l, func() { c.fail(unix.ENETDOWN) })
	if err := receive(t, closed, "OnClose"); !errors.Is(err, unix.ENETDOWN) {
		t.Errorf("OnClose got %v", err)
	}
}

// TestHalfCloseAfterReset: the reset came before the poller could tell of it.
func TestHalfCloseAfterReset(t *testing.T) {
	for _, first := range []string{"", "ended"} {
		t.Run("peer "+first, func(t *testing.T) {
			r := start(t, Options{})
			l := r.Loops()[0]
			accepted := make(chan *Conn, 1)
			eof := make(chan struct{}, 1)
			closed := make(chan error, 1)
			ln := listenOn(t, r, func(_ *Loop, c *Conn) Handler {
				accepted <- c
				return &probe{
					read:   func(_ *Conn, p []byte) { eof <- struct{}{} },
					closed: func(_ *Conn, err error) { closed <- err },
				}
			})
			nc := dialTCP(t, ln.Addr())
			c := receive(t, accepted, "connection")
			if first != "" {
				_ = nc.CloseWrite()
				receive(t, eof, "end of file")
			}
			on(t, l, func() {
				_ = nc.SetLinger(0)
				_ = nc.Close()
				c.CloseWrite()
			})
			if err := receive(t, closed, "OnClose"); !errors.Is(err, unix.ECONNRESET) && !errors.Is(err, unix.EPIPE) {
				t.Errorf("OnClose got %v", err)
			}
		})
	}
}

// TestUrgentDataDoesNotSpin: one urgent byte would keep a level-triggered poller
// busy for ever.
func TestUrgentDataDoesNotSpin(t *testing.T) {
	r := start(t, Options{})
	l := r.Loops()[0]
	ln := listenOn(t, r, echo)
	nc := dialTCP(t, ln.Addr())
	raw, err := nc.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		before := l.Stats().Events
		if err := raw.Control(func(fd uintptr) {
			if err := unix.Sendto(int(fd), []byte("!"), unix.MSG_OOB, nil); err != nil {
				t.Error(err)
			}
		}); err != nil {
			t.Fatal(err)
		}
		if got := mustRead(t, nc, 1); got[0] != '!' {
			t.Errorf("read %q", got)
		}
		time.Sleep(10 * time.Millisecond)
		if n := l.Stats().Events - before; n > 4 {
			t.Errorf("%d events", n)
		}
	}
}

// TestOutboundQueue compares the queue with a plain slice.
func TestOutboundQueue(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var f freeList
	var o outbound
	var want []byte
	next := byte(0)
	iov := make([]unix.Iovec, 0, 8)
	for range 1000 {
		switch {
		case rng.IntN(3) > 0:
			p := make([]byte, rng.IntN(1<<rng.IntN(18)))
			for i := range p {
				p[i] = next
				next++
			}
			o.append(&f, p)
			want = append(want, p...)
		case rng.IntN(50) == 0:
			o.release(&f)
			want = nil
		default:
			k := rng.IntN(min(len(want), 1<<rng.IntN(19)) + 1)
			o.consume(&f, k)
			want = want[k:]
		}
		if o.n != len(want) || (o.head == nil) != (o.n == 0) || (o.tail == nil) != (o.n == 0) {
			t.Fatalf("%d bytes, want %d", o.n, len(want))
		}
		if f.bytes > freeBytesLimit {
			t.Fatalf("%d free bytes", f.bytes)
		}
		vs, n := o.gather(iov)
		var got []byte
		for c := o.head; c != nil && len(got) < n; c = c.next {
			got = append(got, c.buf[c.off:c.end]...)
		}
		if !bytes.Equal(got, want[:n]) || len(vs) == 0 && o.n > 0 || len(vs) < cap(vs) && n != o.n {
			t.Fatal("the queue's bytes differ")
		}
	}
	o.append(&f, make([]byte, 2*freeBytesLimit))
	o.release(&f)
	if f.bytes > freeBytesLimit || f.bytes < freeBytesLimit/2 {
		t.Errorf("%d free bytes, limit %d", f.bytes, freeBytesLimit)
	}
	held := 0
	for _, c := range f.head {
		for ; c != nil; c = c.next {
			held += len(c.buf)
		}
	}
	if held != f.bytes {
		t.Errorf("free list counts %d bytes, has %d", f.bytes, held)
	}
}

// TestLargeWritesAreNotQueued: a large write goes to the kernel at once and takes
// what is queued with it, and so do many small ones when they have become much.
func TestLargeWritesAreNotQueued(t *testing.T) {
	r := start(t, Options{})
	l := r.Loops()[0]
	accepted := make(chan *Conn, 1)
	ln := listenOn(t, r, func(l *Loop, c *Conn) Handler { accepted <- c; return &probe{} })
	nc := dialTCP(t, ln.Addr())
	c := receive(t, accepted, "connection")
	var sent []byte
	write := func(n int) {
		p := make([]byte, n)
		for i := range p {
			p[i] = byte(len(sent) + i)
		}
		sent = append(sent, p...)
		c.Write(p)
	}
	on(t, l, func() {
		if write(directWrite); c.Buffered() != 0 || l.free.bytes != 0 {
			t.Errorf("%d bytes are queued after a large write, %d bytes of buffers were used", c.Buffered(), l.free.bytes)
		}
		if write(100); c.Buffered() != 100 {
			t.Errorf("%d bytes are queued after a small write", c.Buffered())
		}
		if write(directWrite); c.Buffered() != 0 {
			t.Errorf("%d bytes are queued after another large write", c.Buffered())
		}
		for range 100 {
			if write(1000); c.Buffered() >= eagerFlush {
				t.Errorf("%d bytes are queued", c.Buffered())
			}
		}
	})
	if got := mustRead(t, nc, len(sent)); !bytes.Equal(got, sent) {
		t.Error("the bytes arrived in another order")
	}
}

// TestIdleConnectionOwnsNoBuffer, after it has sent a lot.
func TestIdleConnectionOwnsNoBuffer(t *testing.T) {
	r := start(t, Options{})
	l := r.Loops()[0]
	accepted := make(chan *Conn, 1)
	ln := listenOn(t, r, func(l *Loop, c *Conn) Handler { accepted <- c; return echo(l, c) })
	nc := dialTCP(t, ln.Addr())
	c := receive(t, accepted, "connection")
	on(t, l, func() { c.Write(make([]byte, 10<<20)) })
	if _, err := io.CopyN(io.Discard, nc, 10<<20); err != nil {
		t.Fatal(err)
	}
	on(t, l, func() {
		if c.out.head != nil || c.Buffered() != 0 {
			t.Errorf("%d bytes are still queued", c.Buffered())
		}
		if l.free.bytes == 0 {
			t.Error("no buffer went back to the free list")
		}
	})
}
