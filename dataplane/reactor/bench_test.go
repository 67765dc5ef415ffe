//go:build linux

package reactor

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// rawClient is a blocking client that allocates nothing.
type rawClient struct {
	fd  int
	buf []byte
}

func newRawClient(t testing.TB, ln *Listener, n int) *rawClient {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if err := unix.Connect(fd, &unix.SockaddrInet4{Port: int(ln.Addr().Port()), Addr: ln.Addr().Addr().As4()}); err != nil {
		t.Fatal(err)
	}
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
		t.Fatal(err)
	}
	return &rawClient{fd: fd, buf: make([]byte, n)}
}

// round sends the buffer and reads as much back.
func (c *rawClient) round(t testing.TB) {
	if n, err := unix.Write(c.fd, c.buf); n != len(c.buf) {
		t.Fatal(n, err)
	}
	for got := 0; got < len(c.buf); {
		n, err := unix.Read(c.fd, c.buf[got:])
		if n <= 0 {
			t.Fatal(n, err)
		}
		got += n
	}
}

// relay returns a listener whose connections are relayed to an echo server on a
// loop of the same reactor.
func relay(t testing.TB, r *Reactor) *Listener {
	upstream := listenOn(t, r, echo)
	return listenOn(t, r, spliceTo(t, upstream.Addr(), nil))
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	r := start(t, Options{})
	l := r.Loops()[0]
	check := func(name string, fn func()) {
		t.Helper()
		for range 10 {
			fn()
		}
		if n := testing.AllocsPerRun(200, fn); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	for name, size := range map[string]int{"relay of 500 bytes": 500, "relay of 100,000 bytes": 100_000} {
		c := newRawClient(t, relay(t, r), size)
		check(name, func() { c.round(t) })
	}
	done := make(chan struct{}, 1)
	notify := func() { done <- struct{}{} }
	check("post", func() { l.Post(notify); <-done })

	var timers [10]Timer
	for i := range timers {
		timers[i].Fire = func(time.Time) {}
	}
	arm := func() {
		for i := range timers {
			l.Schedule(&timers[i], time.Duration(i)*time.Second)
			l.Schedule(&timers[i], time.Duration(i)*time.Minute)
		}
		for i := range timers {
			l.Cancel(&timers[i])
		}
		done <- struct{}{}
	}
	check("timers", func() { l.Post(arm); <-done })

	var conn *Conn
	ln := listenOn(t, r, func(l *Loop, c *Conn) Handler { conn = c; return echo(l, c) })
	c := newRawClient(t, ln, 1)
	c.round(t)
	lingering := func() { // what a closing connection borrows
		k := l.getCloser(conn)
		k.watch()
		l.putCloser(k)
		done <- struct{}{}
	}
	check("closer", func() { l.Post(lingering); <-done })
}

func BenchmarkRelay(b *testing.B) {
	r := start(b, Options{})
	c := newRawClient(b, relay(b, r), 500)
	c.round(b)
	b.ReportAllocs()
	for b.Loop() {
		c.round(b)
	}
}

func BenchmarkRelayBulk(b *testing.B) {
	r := start(b, Options{})
	c := newRawClient(b, relay(b, r), 1<<20)
	c.round(b)
	b.SetBytes(2 << 20)
	b.ReportAllocs()
	// More than the kernel's buffers hold: both directions at once.
	for b.Loop() {
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			for p := c.buf; len(p) > 0; {
				n, err := unix.Write(c.fd, p)
				if err != nil {
					b.Error(err)
					return
				}
				p = p[n:]
			}
		}()
		p := make([]byte, 64<<10)
		for got := 0; got < len(c.buf); {
			n, err := unix.Read(c.fd, p)
			if n <= 0 {
				b.Fatal(n, err)
			}
			got += n
		}
		<-sent
	}
}

func BenchmarkPost(b *testing.B) {
	l := start(b, Options{}).Loops()[0]
	fn := func() {}
	b.ReportAllocs()
	for b.Loop() {
		l.Post(fn)
	}
	on(b, l, fn)
}

// BenchmarkSchedule arms one timer anew among many, as a request does.
func BenchmarkSchedule(b *testing.B) {
	var w wheel
	others := make([]Timer, 10_000)
	for i := range others {
		w.add(&others[i], 1<<40+int64(i))
	}
	var timer Timer
	now := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		if timer.Armed() {
			w.remove(&timer)
		}
		w.add(&timer, now+5000)
		if w.pop(now) != nil {
			b.Fatal("fired")
		}
		now++
	}
}

func BenchmarkExpire(b *testing.B) {
	var w wheel
	timers := make([]Timer, 1000)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		t := &timers[n%len(timers)]
		n++
		if t.Armed() {
			w.remove(t)
		}
		w.add(t, w.cur+1+int64(n*7919%5000))
		if n%8 == 0 {
			for now := w.cur + 1; w.pop(now) != nil; {
			}
		}
	}
}
