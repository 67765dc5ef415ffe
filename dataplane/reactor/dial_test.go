//go:build linux

package reactor

import (
	"errors"
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestDial(t *testing.T) {
	addr, conns := peer(t)
	r := start(t, Options{})
	l := r.Loops()[0]
	events := make(chan string, 10)
	on(t, l, func() {
		returned := false
		c, err := l.Dial(addr, &probe{
			connect: func(c *Conn) {
				if !returned {
					t.Error("OnConnect before Dial returned")
				}
				if c.RemoteAddr() != addr || !c.LocalAddr().IsValid() {
					t.Errorf("addresses %v, %v", c.LocalAddr(), c.RemoteAddr())
				}
				if v, err := unix.GetsockoptInt(c.fd, unix.IPPROTO_TCP, unix.TCP_NODELAY); v == 0 || err != nil {
					t.Errorf("TCP_NODELAY is %d, %v", v, err)
				}
				events <- "connect"
				c.Write([]byte(" and after"))
			},
			read:   func(c *Conn, p []byte) { events <- "read " + string(p) },
			closed: func(_ *Conn, err error) { events <- "close"; _ = err },
		})
		if err != nil {
			t.Error(err)
			return
		}
		c.Write([]byte("before"))
		returned = true
	})
	nc := receive(t, conns, "connection")
	if got := string(mustRead(t, nc, len("before and after"))); got != "before and after" {
		t.Errorf("peer read %q", got)
	}
	mustWrite(t, nc, []byte("hello"))
	for _, want := range []string{"connect", "read hello"} {
		if got := receive(t, events, "event"); got != want {
			t.Errorf("event %q, want %q", got, want)
		}
	}
	_ = nc.Close()
	if got := receive(t, events, "event"); got != "read " {
		t.Errorf("event %q, want the end of file", got)
	}
	if s := l.Stats(); s.Dialed != 1 || s.Accepted != 0 || l.Load() != 0 {
		t.Errorf("stats %+v, load %d", s, l.Load())
	}
}

func TestDialFails(t *testing.T) {
	r := start(t, Options{})
	l := r.Loops()[0]
	// A port that was free a moment ago.
	ln := listenOn(t, r, echo)
	refused := ln.Addr()
	_ = ln.Close()
	tests := []struct {
		name string
		addr netip.AddrPort
		want unix.Errno
	}{
		{"refused", refused, unix.ECONNREFUSED},
		{"refused, IPv6", netip.AddrPortFrom(netip.IPv6Loopback(), refused.Port()), unix.ECONNREFUSED},
		{"broadcast", mustAddr("255.255.255.255:80"), unix.ENETUNREACH},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			closed := make(chan error, 2)
			on(t, l, func() {
				_, err := l.Dial(tt.addr, &probe{
					connect: func(*Conn) { t.Error("connected") },
					closed:  func(_ *Conn, err error) { closed <- err },
				})
				if err != nil || len(closed) > 0 {
					t.Errorf("Dial: %v, %d closes", err, len(closed))
				}
			})
			err := receive(t, closed, "OnClose")
			if !errors.Is(err, tt.want) && !(tt.name == "broadcast" && errors.Is(err, unix.EACCES)) {
				t.Errorf("OnClose got %v, want %v", err, tt.want)
			}
			if !strings.HasPrefix(err.Error(), "connect: ") {
				t.Errorf("error %q does not say that it is the connect's", err)
			}
		})
	}
	for _, bad := range []netip.AddrPort{{}, mustAddr("[fe80::1%no-such-interface]:80")} {
		on(t, l, func() {
			if c, err := l.Dial(bad, &probe{closed: func(*Conn, error) { t.Error("OnClose") }}); c != nil || err == nil {
				t.Errorf("Dial of %v: %v, %v", bad, c, err)
			}
		})
	}
	if n := l.Stats().Conns; n != 0 {
		t.Errorf("%d connections left", n)
	}
}

// TestConnectTimeout: nobody answers the SYN; the caller's timer ends it.
func TestConnectTimeout(t *testing.T) {
	for name, end := range map[string]func(*Conn, error){
		"abort": func(c *Conn, err error) { c.Abort(err) },
		"close": func(c *Conn, _ error) { c.Write([]byte("x")); c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, Options{})
			l := r.Loops()[0]
			addr := fullQueue(t)
			timeout := errors.New("connect timeout")
			closed := make(chan error, 2)
			var timer Timer
			on(t, l, func() {
				c, err := l.Dial(addr, &probe{
					connect: func(*Conn) { t.Error("connected") },
					closed:  func(_ *Conn, err error) { closed <- err },
				})
				if err != nil {
					t.Error(err)
				}
				timer.Fire = func(time.Time) { end(c, timeout) }
				l.Schedule(&timer, 5*time.Millisecond)
			})
			err := receive(t, closed, "OnClose")
			if want := map[string]error{"abort": timeout, "close": nil}[name]; err != want {
				t.Errorf("OnClose got %v, want %v", err, want)
			}
			on(t, l, func() {})
			if n := l.Stats().Conns; n != 0 || len(closed) > 0 {
				t.Errorf("%d connections, %d more closes", n, len(closed))
			}
		})
	}
}

// TestDialConnectsLater: the connect is not done when Dial returns.
func TestDialConnectsLater(t *testing.T) {
	r := start(t, Options{})
	l := r.Loops()[0]
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	addr, _ := localAddr(fd)
	// The queue holds one. The second one's SYN is dropped, and sent again after
	// a second, when there is room.
	connected := make(chan bool, 2)
	on(t, l, func() {
		for i := range 2 {
			c, err := l.Dial(addr, &probe{connect: func(c *Conn) { connected <- true; c.Write([]byte("x")) }})
			if err != nil {
				t.Fatal(err)
			}
			if i == 1 && c.flags&flagConnecting == 0 {
				t.Error("the second connect is done at once")
			}
			c.Write([]byte("queued"))
		}
	})
	for range 2 {
		var nfd int
		eventually(t, "a connection comes", func() bool {
			nfd, _, err = unix.Accept4(fd, unix.SOCK_CLOEXEC)
			return err == nil
		})
		defer unix.Close(nfd)
		receive(t, connected, "OnConnect")
		p := make([]byte, 10)
		if n, err := unix.Read(nfd, p); string(p[:n]) != "queuedx" {
			t.Errorf("peer read %q, %v", p[:n], err)
		}
	}
}

// TestDialConnectsAtOnce: OnConnect comes after Dial has returned, and not when
// the connection was closed meanwhile.
func TestDialConnectsAtOnce(t *testing.T) {
	addr, _ := peer(t)
	r := start(t, Options{})
	l := r.Loops()[0]
	for _, closing := range []bool{false, true} {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Connect(fd, &unix.SockaddrInet4{Port: int(addr.Port()), Addr: addr.Addr().As4()}); err != nil {
			t.Fatal(err)
		}
		if err := unix.SetNonblock(fd, true); err != nil {
			t.Fatal(err)
		}
		events := make(chan string, 2)
		on(t, l, func() {
			c := l.dialed(fd, addr, 0, &probe{
				connect: func(c *Conn) { events <- "connect"; c.Close() },
				closed:  func(*Conn, error) { events <- "close" },
			})
			if len(events) > 0 {
				t.Error("a callback before Dial returned")
			}
			if closing {
				c.Close()
			}
		})
		if !closing {
			if e := receive(t, events, "event"); e != "connect" {
				t.Error(e)
			}
		}
		if e := receive(t, events, "event"); e != "close" {
			t.Error(e)
		}
	}
}

// TestSelfConnect: a socket that dials its own port is connected to itself when
// nobody listens there.
func TestSelfConnect(t *testing.T) {
	r := start(t, Options{})
	l := r.Loops()[0]
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	addr, _ := localAddr(fd)
	closed := make(chan error, 1)
	on(t, l, func() {
		var sa unix.RawSockaddrInet6
		_, size, err := toSockaddr(addr, &sa)
		if err != nil {
			t.Error(err)
		}
		l.dialed(fd, addr, connect(fd, &sa, size), &probe{
			connect: func(*Conn) { t.Error("connected to itself") },
			closed:  func(_ *Conn, err error) { closed <- err },
		})
	})
	if err := receive(t, closed, "OnClose"); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("OnClose got %v", err)
	}
}

// TestDialedTunnel: bytes in both directions through two loops' worth of
// connections, and the end of one side ends the other.
func TestDialedTunnel(t *testing.T) {
	addr, conns := peer(t)
	r := start(t, Options{Workers: 2})
	ln := listenOn(t, r, spliceTo(t, addr, nil))
	for i := range 4 {
		nc := dialTCP(t, ln.Addr())
		up := receive(t, conns, "connection")
		mustWrite(t, nc, []byte("ping"))
		if got := string(mustRead(t, up, 4)); got != "ping" {
			t.Fatal(got)
		}
		mustWrite(t, up, []byte("pong"))
		if got := string(mustRead(t, nc, 4)); got != "pong" {
			t.Fatal(got)
		}
		if i%2 == 0 {
			nc, up = up, nc
		}
		_ = nc.CloseWrite()
		if rest, err := io.ReadAll(up); len(rest) > 0 || err != nil {
			t.Fatal(rest, err)
		}
		_ = up.Close()
		if rest, err := io.ReadAll(nc); len(rest) > 0 || err != nil {
			t.Fatal(rest, err)
		}
	}
	for _, l := range r.Loops() {
		eventually(t, "connections end", func() bool { return l.Stats().Conns == 0 })
	}
}

func TestSockaddr(t *testing.T) {
	for _, s := range []string{"127.0.0.1:80", "255.255.255.255:65535", "0.0.0.0:0", "[::1]:8443", "[2001:db8::1]:256", "[fe80::1%1]:1"} {
		var any unix.RawSockaddrAny
		var sa unix.RawSockaddrInet6
		addr := mustAddr(s)
		family, size, err := toSockaddr(addr, &sa)
		if err != nil {
			t.Errorf("%s: %v", s, err)
			continue
		}
		copy(bytesOf(&any, size), bytesOf(&sa, size))
		if got := fromSockaddr(&any); got != addr || (family == unix.AF_INET6) != addr.Addr().Is6() {
			t.Errorf("%s came back as %v, family %d", s, got, family)
		}
	}
	var sa unix.RawSockaddrInet6
	if family, _, err := toSockaddr(mustAddr("[::ffff:10.0.0.1]:1"), &sa); family != unix.AF_INET || err != nil {
		t.Errorf("a mapped address has family %d, %v", family, err)
	}
	if _, _, err := toSockaddr(mustAddr("[fe80::1%lo]:1"), &sa); err != nil || sa.Scope_id == 0 {
		t.Errorf("zone lo: index %d, %v", sa.Scope_id, err)
	}
}
