//go:build linux

package main

import (
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestRelay sends through the relay and back, on two connections, and ends one
// of them from either side.
func TestRelay(t *testing.T) {
	upstream, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer upstream.Close()
	go func() {
		for {
			c, err := upstream.Accept()
			if err != nil {
				return
			}
			go func() {
				p := make([]byte, 100)
				for {
					n, err := c.Read(p)
					if err != nil || string(p[:n]) == "end" {
						_ = c.Close()
						return
					}
					_, _ = c.Write(p[:n])
				}
			}()
		}
	}()
	r, err := newRelay("127.0.0.1:0", upstream.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = r.poller.Polling(r.onEvent) }()
	sa, err := unix.Getsockname(r.listener)
	if err != nil {
		t.Fatal(err)
	}
	addr := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: sa.(*unix.SockaddrInet4).Port}
	var conns []net.Conn
	for range 2 {
		c, err := net.DialTCP("tcp", nil, addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
	}
	round := func(c net.Conn, s string) {
		t.Helper()
		if _, err := c.Write([]byte(s)); err != nil {
			t.Fatal(err)
		}
		p := make([]byte, len(s))
		if _, err := io.ReadFull(c, p); err != nil || string(p) != s {
			t.Fatalf("%q came back as %q, %v", s, p, err)
		}
	}
	for range 3 {
		round(conns[0], "first")
		round(conns[1], "second")
	}
	if _, err := conns[0].Write([]byte("end")); err != nil {
		t.Fatal(err)
	}
	if n, err := conns[0].Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("after the upstream's end: %d bytes, %v", n, err)
	}
	round(conns[1], "still")
}

func TestBadUpstream(t *testing.T) {
	if _, err := newRelay("127.0.0.1:0", "nowhere"); err == nil {
		t.Error("accepted")
	}
}
