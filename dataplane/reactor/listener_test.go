//go:build linux

package reactor

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestAcceptedSocketsInheritOptions: they are set on the listener only.
func TestAcceptedSocketsInheritOptions(t *testing.T) {
	for _, placement := range []Placement{RoundRobin, ReusePort} {
		r := start(t, Options{Placement: placement})
		accepted := make(chan *Conn, 1)
		ln := listenOn(t, r, func(_ *Loop, c *Conn) Handler { accepted <- c; return &probe{} })
		dialTCP(t, ln.Addr())
		c := receive(t, accepted, "connection")
		for _, o := range []struct {
			name             string
			level, opt, want int
		}{
			{"TCP_NODELAY", unix.IPPROTO_TCP, unix.TCP_NODELAY, 1},
			{"SO_KEEPALIVE", unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
			{"TCP_KEEPIDLE", unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, keepAliveIdle},
			{"TCP_KEEPINTVL", unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, keepAliveInterval},
			{"TCP_KEEPCNT", unix.IPPROTO_TCP, unix.TCP_KEEPCNT, keepAliveCount},
		} {
			if got, err := unix.GetsockoptInt(c.fd, o.level, o.opt); got != o.want || err != nil {
				t.Errorf("%v: %s is %d, want %d (%v)", placement, o.name, got, o.want, err)
			}
		}
		flags, _ := unix.FcntlInt(uintptr(c.fd), unix.F_GETFL, 0)
		cloexec, _ := unix.FcntlInt(uintptr(c.fd), unix.F_GETFD, 0)
		if flags&unix.O_NONBLOCK == 0 || cloexec&unix.FD_CLOEXEC == 0 {
			t.Errorf("%v: not non-blocking, or not close-on-exec", placement)
		}
	}
}

func TestListenErrors(t *testing.T) {
	r := start(t, Options{})
	taken := listenOn(t, r, echo)
	if _, err := r.Listen(taken.Addr(), echo); !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("taken port: %v", err)
	}
	if _, err := r.Listen(mustAddr("192.0.2.1:0"), echo); !errors.Is(err, unix.EADDRNOTAVAIL) {
		t.Errorf("foreign address: %v", err)
	}
	if _, err := r.Listen(netip.AddrPort{}, echo); err == nil {
		t.Error("the zero address is accepted")
	}
	// The port is free as soon as Close has returned, connections or not.
	nc := dialTCP(t, taken.Addr())
	mustWrite(t, nc, []byte("x"))
	mustRead(t, nc, 1)
	for range 20 {
		if err := taken.Close(); err != nil {
			t.Fatal(err)
		}
		if err := taken.Close(); err != nil {
			t.Fatal(err)
		}
		var err error
		if taken, err = r.Listen(taken.Addr(), echo); err != nil {
			t.Fatal(err)
		}
	}
	dialTCP(t, taken.Addr())
	mustWrite(t, nc, []byte("y"))
	mustRead(t, nc, 1) // the old connection lives
}

// TestIPv6Only: [::] leaves the IPv4 port to others.
func TestIPv6Only(t *testing.T) {
	r := start(t, Options{})
	ln6, err := r.Listen(mustAddr("[::]:0"), echo)
	if err != nil {
		t.Fatal(err)
	}
	ln4, err := r.Listen(netip.AddrPortFrom(netip.IPv4Unspecified(), ln6.Addr().Port()), echo)
	if err != nil {
		t.Fatal(err)
	}
	dialTCP(t, netip.AddrPortFrom(netip.IPv6Loopback(), ln6.Addr().Port()))
	dialTCP(t, netip.AddrPortFrom(mustAddr("127.0.0.1:0").Addr(), ln4.Addr().Port()))
}

// TestPlacement: round robin is exact, least loaded fills up what is empty, and
// ReusePort reaches all loops.
func TestPlacement(t *testing.T) {
	connect := func(t *testing.T, r *Reactor, n int) (loads []int, clients []net.Conn, conns []*Conn) {
		accepted := make(chan *Conn, n)
		ln := listenOn(t, r, func(_ *Loop, c *Conn) Handler { accepted <- c; return &probe{} })
		for range n {
			clients = append(clients, dialTCP(t, ln.Addr()))
			conns = append(conns, receive(t, accepted, "connection"))
		}
		for _, l := range r.Loops() {
			loads = append(loads, l.Load())
		}
		return loads, clients, conns
	}
	t.Run("round robin", func(t *testing.T) {
		loads, _, conns := connect(t, start(t, Options{Workers: 3}), 12)
		if fmt.Sprint(loads) != "[4 4 4]" {
			t.Errorf("loads %v", loads)
		}
		for i, c := range conns {
			if c.Loop().Index() != i%3 {
				t.Errorf("connection %d is on loop %d", i, c.Loop().Index())
			}
		}
	})
	t.Run("least loaded", func(t *testing.T) {
		r := start(t, Options{Workers: 3, Placement: LeastLoaded})
		loads, _, conns := connect(t, r, 12)
		if fmt.Sprint(loads) != "[4 4 4]" {
			t.Errorf("loads %v", loads)
		}
		for _, c := range conns {
			if c.Loop().Index() == 1 {
				on(t, c.Loop(), func() { c.Abort(nil) })
			}
		}
		loads, _, _ = connect(t, r, 3)
		if fmt.Sprint(loads) != "[4 3 4]" {
			t.Errorf("loads %v after loop 1 had become empty", loads)
		}
	})
	t.Run("one worker", func(t *testing.T) {
		for _, placement := range []Placement{RoundRobin, LeastLoaded, ReusePort} {
			r := start(t, Options{Workers: 1, Placement: placement})
			before := r.Loops()[0].Stats().Wakeups
			loads, _, _ := connect(t, r, 8)
			if s := r.Loops()[0].Stats(); loads[0] != 8 || s.Wakeups-before > 2 { // one for the listener
				t.Errorf("%v: load %d, %d wake-ups", placement, loads[0], s.Wakeups-before)
			}
			_, err := r.Listen(listenOn(t, r, echo).Addr(), echo)
			if !errors.Is(err, unix.EADDRINUSE) {
				t.Errorf("%v: taken port: %v", placement, err)
			}
		}
	})
	t.Run("reuse port", func(t *testing.T) {
		r := start(t, Options{Workers: 2, Placement: ReusePort})
		loads, _, _ := connect(t, r, 64)
		if loads[0]+loads[1] != 64 || loads[0] == 0 || loads[1] == 0 {
			t.Errorf("loads %v", loads)
		}
		if s := r.AcceptorStats(); s.Events > s.Wakeups {
			t.Errorf("the acceptor saw connections: %+v", s)
		}
		for _, l := range r.Loops() {
			if s := l.Stats(); s.Wakeups > 2 { // one for the listener
				t.Errorf("loop %d was woken %d times", l.Index(), s.Wakeups)
			}
		}
	})
}

// TestHandOverWakesOncePerBatch: many connections that wait together cost each
// loop few wake-ups.
func TestHandOverWakesOncePerBatch(t *testing.T) {
	const n = 100
	r := start(t, Options{Workers: 2})
	var count atomic.Int64
	ln := listenOn(t, r, func(*Loop, *Conn) Handler { count.Add(1); return &probe{} })
	pause(t, ln)
	for range n {
		dialTCP(t, ln.Addr())
	}
	ln.Resume()
	eventually(t, "all are accepted", func() bool { return count.Load() == n })
	for _, l := range r.Loops() {
		if s := l.Stats(); s.Wakeups > 3 || s.Accepted != n/2 {
			t.Errorf("loop %d: %d wake-ups for %d connections", l.Index(), s.Wakeups, s.Accepted)
		}
	}
}

// TestPauseAndResumeListener: paused, connections wait; resumed, they are served.
func TestPauseAndResumeListener(t *testing.T) {
	for _, placement := range []Placement{RoundRobin, ReusePort} {
		t.Run(placement.String(), func(t *testing.T) {
			r := start(t, Options{Workers: 2, Placement: placement})
			var count atomic.Int64
			ln := listenOn(t, r, func(l *Loop, c *Conn) Handler { count.Add(1); return echo(l, c) })
			for round := range 3 {
				pause(t, ln)
				pause(t, ln)
				before := count.Load()
				events := r.AcceptorStats().Events + r.Loops()[0].Stats().Events + r.Loops()[1].Stats().Events
				var waiting []*net.TCPConn
				for range 8 {
					nc := dialTCP(t, ln.Addr())
					mustWrite(t, nc, []byte("x"))
					waiting = append(waiting, nc)
				}
				time.Sleep(10 * time.Millisecond)
				if n := count.Load(); n != before {
					t.Fatalf("round %d: %d accepted while paused", round, n-before)
				}
				if n := r.AcceptorStats().Events + r.Loops()[0].Stats().Events + r.Loops()[1].Stats().Events - events; n > 8 {
					t.Errorf("round %d: %d events while paused", round, n)
				}
				ln.Resume()
				for _, nc := range waiting {
					mustRead(t, nc, 1)
				}
			}
			ln.Pause()
			if err := ln.Close(); err != nil {
				t.Fatal(err)
			}
			ln.Resume() // of a closed one: nothing happens
		})
	}
}

// TestListenersComeAndGoUnderLoad: connections of one listener are undisturbed
// while others are opened, adopted, paused and closed.
func TestListenersComeAndGoUnderLoad(t *testing.T) {
	for _, placement := range []Placement{RoundRobin, LeastLoaded, ReusePort} {
		t.Run(placement.String(), func(t *testing.T) {
			r := start(t, Options{Workers: 2, Placement: placement})
			steady := listenOn(t, r, echo)
			stop := make(chan struct{})
			var wg sync.WaitGroup
			var rounds atomic.Int64
			for range 4 {
				nc := dialTCP(t, steady.Addr())
				wg.Go(func() {
					p := make([]byte, 100)
					for {
						select {
						case <-stop:
							return
						default:
						}
						if _, err := nc.Write(p); err != nil {
							t.Error(err)
							return
						}
						if _, err := io.ReadFull(nc, p); err != nil {
							t.Error(err)
							return
						}
						rounds.Add(1)
					}
				})
			}
			for range 4 { // new connections all the time, too
				wg.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
						}
						nc, err := net.DialTimeout("tcp", steady.Addr().String(), patience)
						if err != nil {
							t.Error(err)
							return
						}
						_, _ = nc.Write([]byte("x"))
						if _, err := io.ReadFull(nc, make([]byte, 1)); err != nil {
							t.Error(err)
						}
						_ = nc.Close()
						rounds.Add(1)
					}
				})
			}
			for i := range 60 {
				ln := listenOn(t, r, echo)
				nc := dialTCP(t, ln.Addr())
				mustWrite(t, nc, []byte("x"))
				if i%2 == 0 {
					ln.Pause()
					ln.Resume()
				}
				mustRead(t, nc, 1)
				f, err := file(ln)
				if err != nil {
					t.Fatal(err)
				}
				if err := ln.Close(); err != nil {
					t.Fatal(err)
				}
				fd, err := unix.Dup(int(f.Fd()))
				if err != nil {
					t.Fatal(err)
				}
				_ = f.Close()
				adopted, err := r.Adopt([]int{fd}, echo)
				if err != nil {
					t.Fatal(err)
				}
				nc2 := dialTCP(t, adopted.Addr())
				mustWrite(t, nc2, []byte("y"))
				mustRead(t, nc2, 1)
				if err := adopted.Close(); err != nil {
					t.Fatal(err)
				}
				mustWrite(t, nc, []byte("z"))
				mustRead(t, nc, 1)
				_, _ = nc.Close(), nc2.Close()
			}
			close(stop)
			wg.Wait()
			if rounds.Load() == 0 {
				t.Error("there was no load")
			}
		})
	}
}

// TestAdopt takes over a listener that another reactor has bound, with the
// connections that wait in its queue.
func TestAdopt(t *testing.T) {
	old := start(t, Options{Workers: 2})
	ln := listenOn(t, old, echo)
	f, err := file(ln)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fd, err := unix.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0); err != nil || flags&unix.O_NONBLOCK == 0 {
		t.Fatalf("handing the file over made the acceptor's socket blocking: %v", err)
	}
	pause(t, ln)
	waiting := dialTCP(t, ln.Addr())
	mustWrite(t, waiting, []byte("x"))
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}

	// As a parent without much care would leave it.
	if err := unix.SetNonblock(fd, false); err != nil {
		t.Fatal(err)
	}
	r := start(t, Options{Workers: 2})
	adopted, err := r.Adopt([]int{fd}, echo)
	if err != nil {
		t.Fatal(err)
	}
	if adopted.Addr() != ln.Addr() {
		t.Errorf("address %v, want %v", adopted.Addr(), ln.Addr())
	}
	mustRead(t, waiting, 1)
	nc := dialTCP(t, adopted.Addr())
	mustWrite(t, nc, []byte("y"))
	mustRead(t, nc, 1)
	if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("not close-on-exec: %v", err)
	}
}

// TestSharedSocketMadeBlocking by another process: the acceptor does not wait in
// accept.
func TestSharedSocketMadeBlocking(t *testing.T) {
	r := start(t, Options{Workers: 2})
	ln := listenOn(t, r, echo)
	f, err := file(ln)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for range 3 {
		if err := unix.SetNonblock(int(f.Fd()), false); err != nil {
			t.Fatal(err)
		}
		nc := dialTCP(t, ln.Addr())
		mustWrite(t, nc, []byte("x"))
		mustRead(t, nc, 1)
	}
}

// file returns a duplicate of a listener's first descriptor.
func file(ln *Listener) (*os.File, error) {
	files, err := ln.Files()
	if err != nil {
		return nil, err
	}
	for _, f := range files[1:] {
		_ = f.Close()
	}
	return files[0], nil
}

func TestAdoptRefuses(t *testing.T) {
	r := start(t, Options{})
	null, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	plain, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(plain)
	local, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(local)
	if err := unix.Bind(local, &unix.SockaddrUnix{Name: "@headgate-reactor-test"}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(local, 1); err != nil {
		t.Fatal(err)
	}
	for name, fd := range map[string]int{"bad": 1 << 20, "file": int(null.Fd()), "not listening": plain, "unix": local} {
		if _, err := r.Adopt([]int{fd}, echo); err == nil {
			t.Errorf("%s: adopted", name)
		}
	}
	if _, err := unix.FcntlInt(uintptr(plain), unix.F_GETFD, 0); err != nil {
		t.Errorf("a refused descriptor was closed: %v", err)
	}
	f, err := file(listenOn(t, r, echo))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	ended := start(t, Options{})
	if err := ended.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := ended.Adopt([]int{int(f.Fd())}, echo); !errors.Is(err, ErrClosed) {
		t.Errorf("a closed reactor: %v", err)
	}
	if _, err := unix.FcntlInt(f.Fd(), unix.F_GETFD, 0); err != nil {
		t.Errorf("a closed reactor closed the descriptor: %v", err)
	}
}

func TestFileOfClosedListener(t *testing.T) {
	r := start(t, Options{})
	ln := listenOn(t, r, echo)
	_ = ln.Close()
	if _, err := ln.Files(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Files: %v", err)
	}
}

// TestBrokenListenerDoesNotSpin: a listening socket that was shut down by
// somebody else, who has another descriptor of it, fails on every accept.
func TestBrokenListenerDoesNotSpin(t *testing.T) {
	r := start(t, Options{Workers: 2})
	ln := listenOn(t, r, echo)
	f, err := file(ln)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	before := r.AcceptorStats().Events
	if err := unix.Shutdown(int(f.Fd()), unix.SHUT_RDWR); err != nil {
		t.Fatal(err)
	}
	eventually(t, "accept fails", func() bool { return r.AcceptorStats().AcceptErrors > 0 })
	time.Sleep(50 * time.Millisecond)
	if n := r.AcceptorStats().Events - before; n > 20 {
		t.Errorf("%d events", n)
	}
	nc := dialTCP(t, listenOn(t, r, echo).Addr()) // others work
	mustWrite(t, nc, []byte("x"))
	mustRead(t, nc, 1)
}
