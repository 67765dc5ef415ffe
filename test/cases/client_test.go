package cases

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience is how long a client waits for something that must come.
const patience = 30 * time.Second

// client is one raw connection to the gateway.
type client struct {
	net.Conn
	t  testing.TB
	br *bufio.Reader
}

// dial connects to the gateway; the connection ends with the test.
func dial(t testing.TB, addr string) *client {
	t.Helper()
	c, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		t.Fatal(err)
	}
	return newClient(t, c)
}

// dialTLS connects with TLS and the server name; "" sends none. Certificates
// are not verified: the tests look at them.
func dialTLS(t testing.TB, addr, serverName string) *client {
	t.Helper()
	c, err := tryTLS(addr, serverName, nil)
	if err != nil {
		t.Fatalf("handshake for %q: %v", serverName, err)
	}
	return newClient(t, c)
}

func tryTLS(addr, serverName string, change func(*tls.Config)) (*tls.Conn, error) {
	config := &tls.Config{ServerName: serverName, InsecureSkipVerify: true}
	if change != nil {
		change(config)
	}
	return tls.DialWithDialer(&net.Dialer{Timeout: patience}, "tcp", addr, config)
}

func newClient(t testing.TB, c net.Conn) *client {
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience))
	return &client{Conn: c, t: t, br: bufio.NewReader(c)}
}

// patient moves the deadline on.
func (c *client) patient(d time.Duration) { c.SetDeadline(time.Now().Add(d)) }

// send writes s; it must go out.
func (c *client) send(s string) {
	c.t.Helper()
	if _, err := io.WriteString(c, s); err != nil {
		c.t.Fatalf("send: %v", err)
	}
}

// trySend writes s to a gateway that may have closed already.
func (c *client) trySend(s string) error {
	_, err := io.WriteString(c, s)
	return err
}

// get sends a GET and reads the answer.
func (c *client) get(host, target string) *response {
	c.t.Helper()
	c.send("GET " + target + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n")
	return c.response("GET")
}

// response reads the answer to a request with the method; it must come whole.
func (c *client) response(method string) *response {
	c.t.Helper()
	r := c.partial(method)
	if r.err != nil {
		c.t.Fatalf("body of %q after %d bytes: %v", r.start, len(r.body), r.err)
	}
	return r
}

// partial reads an answer whose body may be cut off.
func (c *client) partial(method string) *response {
	c.t.Helper()
	r, err := readResponse(c.br, method)
	if err != nil {
		c.t.Fatalf("response: %v", err)
	}
	return r
}

// head reads the next head, interim or final, and leaves the body.
func (c *client) head(method string) *response {
	c.t.Helper()
	r, _, err := readResponseHead(c.br, method)
	if err != nil {
		c.t.Fatalf("response head after %q: %v", r.raw, err)
	}
	return r
}

// wantClosed fails the test unless the gateway ends the connection without a
// further byte.
func (c *client) wantClosed() {
	c.t.Helper()
	rest, err := io.ReadAll(c.br)
	if ne, ok := err.(net.Error); ok && ne.Timeout() {
		c.t.Errorf("connection is still open")
	}
	if len(rest) > 0 {
		c.t.Errorf("got %q before the connection's end, want nothing", clip(rest))
	}
}

// halfClose ends the client's writing side.
func (c *client) halfClose() {
	c.t.Helper()
	var err error
	switch conn := c.Conn.(type) {
	case *net.TCPConn:
		err = conn.CloseWrite()
	case *tls.Conn:
		err = conn.CloseWrite()
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// reset ends the connection with a RST.
func (c *client) reset() {
	if conn, ok := c.Conn.(*net.TCPConn); ok {
		conn.SetLinger(0)
	}
	c.Close()
}

// exchange sends raw bytes on a new connection and reads the first answer.
func exchange(t testing.TB, addr, raw string) *response {
	t.Helper()
	c := dial(t, addr)
	c.trySend(raw)
	method, _, _ := strings.Cut(strings.TrimLeft(raw, "\r\n"), " ")
	r := c.response(method)
	c.Close()
	return r
}

// rejected sends raw bytes on a new connection and fails the test unless one
// answer with one of the statuses comes, and then the connection's end.
func rejected(t testing.TB, addr, raw string, statuses ...int) *response {
	t.Helper()
	c := dial(t, addr)
	c.trySend(raw)
	r := c.response("GET")
	wantStatus(t, r, statuses...)
	c.wantClosed()
	return r
}

// wantStatus fails the test unless the status is one of those.
func wantStatus(t testing.TB, r *response, statuses ...int) {
	t.Helper()
	for _, s := range statuses {
		if r.status == s {
			return
		}
	}
	t.Errorf("status %d, want %v: %q%q", r.status, statuses, r.raw, clip(r.body))
}

// seen reads an echo's body: the request as the backend got it.
func seen(t testing.TB, r *response) *request {
	t.Helper()
	if r.status != 200 || !r.has("X-Backend") {
		t.Fatalf("got %q%q, want a backend's echo", r.raw, clip(r.body))
	}
	br := bufio.NewReader(bytes.NewReader(r.body))
	h, err := readHead(br)
	if err != nil {
		t.Fatalf("echo: %v", err)
	}
	q, err := parseRequestHead(h)
	if err != nil {
		t.Fatalf("echo: %v", err)
	}
	q.body, _ = io.ReadAll(br)
	return q
}

// isReset tells if an error is a RST by the peer.
func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// eventually calls f until it returns nil or the time is over.
func eventually(t testing.TB, d time.Duration, f func() error) {
	t.Helper()
	end := time.Now().Add(d)
	for {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("not within %v: %v", d, err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// tryDial connects to an address that may not listen.
func tryDial(addr string) (net.Conn, error) {
	c, err := net.DialTimeout("tcp", addr, patience)
	if err == nil {
		err = c.SetDeadline(time.Now().Add(patience))
	}
	return c, err
}
