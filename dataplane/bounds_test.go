package dataplane

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/dataplane/ir"
)

// asked sends one request on a connection and returns the answer's body, with
// "close" behind it when the connection ends with it.
func asked(t *testing.T, c net.Conn, r *bufio.Reader) string {
	t.Helper()
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.7\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.Close {
		return string(body) + " close"
	}
	return string(body)
}

// What a socket says of its clients counts in the place of the process's options,
// and a change of it closes no connection.
func TestClientBounds(t *testing.T) {
	b := backendServer(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, strings.Join(r.Header.Values("X-Forwarded-For"), ","))
	})
	s := newServer(t, func(o *Options) { o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} })
	snap := oneRoute(clusterOf("default/web:80", b.URL), nil)
	at := apply(t, s, snap)
	next := func(c ir.Client) {
		t.Helper()
		socket := *snap.Sockets[0]
		socket.Client = c
		apply(t, s, &ir.Snapshot{Clusters: snap.Clusters, Sockets: []*ir.Socket{&socket}})
	}
	dial := func() (net.Conn, *bufio.Reader) {
		t.Helper()
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		return c, bufio.NewReader(c)
	}
	want := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("the backend was told %q, want %q", got, want)
		}
	}
	first, firstReader := dial()
	want(asked(t, first, firstReader), "192.0.2.7, 127.0.0.1")

	next(ir.Client{TrustedProxies: []netip.Prefix{}, MaxRequests: 3})
	want(asked(t, first, firstReader), "192.0.2.7, 127.0.0.1") // it keeps whom it trusts
	want(asked(t, first, firstReader), "192.0.2.7, 127.0.0.1 close")
	second, secondReader := dial()
	want(asked(t, second, secondReader), "127.0.0.1")

	next(ir.Client{IdleTimeout: time.Second})
	third, thirdReader := dial()
	want(asked(t, third, thirdReader), "192.0.2.7, 127.0.0.1")
	if _, err := thirdReader.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("an idle connection ends with %v, want %v", err, io.EOF)
	}

	next(ir.Client{HeaderTimeout: 50 * time.Millisecond})
	slow, slowReader := dial()
	if _, err := io.WriteString(slow, "GET / HT"); err != nil {
		t.Fatal(err)
	}
	if res, err := http.ReadResponse(slowReader, nil); err != nil || res.StatusCode != http.StatusRequestTimeout {
		t.Errorf("a slow head is answered %v, %v", res, err)
	}

	// The process's options are back.
	next(ir.Client{})
	last, lastReader := dial()
	want(asked(t, last, lastReader), "192.0.2.7, 127.0.0.1")
	if err := last.SetReadDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := lastReader.ReadByte(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection ends with %v", err)
	}
}
