package dataplane

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// tunnelTo opens a tunnel through a server whose half-closed tunnels may be
// silent for a while, and ends the client's side. serve gets the backend's side.
func tunnelTo(t *testing.T, silent time.Duration, serve func(net.Conn)) (net.Conn, *bufio.Reader) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: test\r\n\r\n")
		serve(c)
	}()
	s := newServer(t, func(o *Options) { o.Timeouts.HalfClosed = silent })
	c := dial(t, apply(t, s, oneRoute(clusterOf("default/be:80", ln.Addr().String()), nil)))
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: test\r\n\r\n")
	r := bufio.NewReader(c)
	resp, err := http.ReadResponse(r, nil)
	if err != nil || resp.StatusCode != 101 {
		t.Fatalf("%v %v", resp, err)
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	return c, r
}

func TestAHalfClosedTunnelThatSpeaksIsKept(t *testing.T) {
	const silent, n = 2 * time.Second, 25
	_, r := tunnelTo(t, silent, func(c net.Conn) {
		for range n { // longer than it may be silent
			time.Sleep(silent / (n - 5))
			_, _ = c.Write([]byte("x"))
		}
	})
	if got, err := io.ReadAll(r); err != nil || string(got) != strings.Repeat("x", n) {
		t.Fatalf("got %q, %v", got, err)
	}
}

func TestAHalfClosedTunnelThatIsSilentIsCut(t *testing.T) {
	held := make(chan struct{})
	t.Cleanup(func() { close(held) })
	c, r := tunnelTo(t, 150*time.Millisecond, func(net.Conn) { <-held })
	_, err := r.ReadByte()
	var timeout net.Error
	if err == nil || errors.As(err, &timeout) && timeout.Timeout() {
		t.Fatalf("the tunnel is still open: %v", err)
	}
	_ = c.Close()
}
