package cases

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

const upgradeRequest = "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n" +
	"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"

const switching = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
	"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"

// tunnelEcho accepts an upgrade and returns what it gets, until the peer ends
// its side.
func tunnelEcho(u *upstreamConn, r *request) {
	u.write(switching)
	io.Copy(u, u.br)
	u.Close()
}

// upgrade opens a tunnel and checks the switch.
func upgrade(t *testing.T, c *client) {
	t.Helper()
	c.send(upgradeRequest)
	h := c.head("GET")
	if h.status != 101 || !strings.EqualFold(h.get("Upgrade"), "websocket") || !strings.EqualFold(h.get("Connection"), "upgrade") ||
		h.get("Sec-WebSocket-Accept") == "" {
		t.Fatalf("got %q, want the switch", h.raw)
	}
}

// pingpong sends b through a tunnel and wants it back.
func (c *client) pingpong(b string) error {
	if err := c.trySend(b); err != nil {
		return err
	}
	got := make([]byte, len(b))
	if _, err := io.ReadFull(c.br, got); err != nil {
		return err
	}
	if string(got) != b {
		return errors.New("other bytes came back")
	}
	return nil
}

func TestUpgrade(t *testing.T) {
	be := newBackend(t, "be")
	g := start(t, options{args: []string{"--response-timeout", "1s", "--idle-timeout", "1s", "--header-timeout", "1s"}},
		be.manifest(), route("a", `
hostnames: [a]
rules:
- timeouts: {request: 2s}
  backendRefs: [{name: be, port: 80}]`))
	t.Run("upgrade/echo", func(t *testing.T) {
		be.set(tunnelEcho)
		m := be.mark()
		c := dial(t, g.addr)
		upgrade(t, c)
		for _, s := range []string{"x", "\x81\x05hello", "GET / HTTP/1.1\r\n\r\n", strings.Repeat("y", 100_000)} {
			if err := c.pingpong(s); err != nil {
				t.Fatal(err)
			}
		}
		q := be.since(m)
		if len(q) != 1 || !bytes.Contains(q[0], []byte("Upgrade: websocket\r\n")) ||
			!bytes.Contains(bytes.ToLower(q[0]), []byte("connection: upgrade\r\n")) ||
			!bytes.Contains(q[0], []byte("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n")) {
			t.Errorf("backend got %q", clip(bytes.Join(q, nil)))
		}
	})
	t.Run("upgrade/bytes-behind-the-request", func(t *testing.T) { // the client does not wait for the 101
		be.set(tunnelEcho)
		c := dial(t, g.addr)
		c.send(upgradeRequest + "early")
		if h := c.head("GET"); h.status != 101 {
			t.Fatalf("got %q", h.raw)
		}
		got := make([]byte, 5)
		if _, err := io.ReadFull(c.br, got); err != nil || string(got) != "early" {
			t.Errorf("got %q, %v", got, err)
		}
	})
	t.Run("upgrade/bytes-behind-the-switch", func(t *testing.T) {
		be.set(func(u *upstreamConn, r *request) {
			u.write(switching + "greeting")
			io.Copy(u, u.br)
			u.Close()
		})
		c := dial(t, g.addr)
		upgrade(t, c)
		got := make([]byte, 8)
		if _, err := io.ReadFull(c.br, got); err != nil || string(got) != "greeting" {
			t.Errorf("got %q, %v", got, err)
		}
	})
	t.Run("upgrade/client-half-closes", func(t *testing.T) {
		be.set(func(u *upstreamConn, r *request) {
			u.write(switching)
			all, _ := io.ReadAll(u.br) // until the client's end
			u.write("got " + string(all))
			u.Close()
		})
		c := dial(t, g.addr)
		upgrade(t, c)
		c.send("last words")
		c.halfClose()
		all, err := io.ReadAll(c.br)
		if err != nil || string(all) != "got last words" {
			t.Errorf("got %q, %v", all, err)
		}
	})
	t.Run("upgrade/backend-half-closes", func(t *testing.T) {
		rest := make(chan string, 1)
		be.set(func(u *upstreamConn, r *request) {
			u.write(switching + "bye")
			u.Conn.(interface{ CloseWrite() error }).CloseWrite()
			all, _ := io.ReadAll(u.br)
			rest <- string(all)
			u.Close()
		})
		c := dial(t, g.addr)
		upgrade(t, c)
		all, err := io.ReadAll(c.br)
		if err != nil || string(all) != "bye" {
			t.Errorf("client got %q, %v", all, err)
		}
		c.trySend("still here")
		c.Close()
		select {
		case got := <-rest:
			if got != "still here" {
				t.Errorf("backend got %q after its own end", got)
			}
		case <-time.After(patience):
			t.Error("backend did not see the client's end")
		}
	})
	for _, side := range []string{"client", "backend"} {
		t.Run("upgrade/reset-by-"+side, func(t *testing.T) {
			ended := make(chan bool, 1)
			be.set(func(u *upstreamConn, r *request) {
				u.write(switching)
				if side == "backend" {
					io.ReadFull(u.br, make([]byte, 4))
					u.reset()
				} else {
					ended <- u.awaitEnd(patience)
				}
				u.Close()
			})
			c := dial(t, g.addr)
			upgrade(t, c)
			c.send("ping")
			if side == "backend" {
				c.wantClosed()
				return
			}
			c.reset()
			if !<-ended {
				t.Error("backend's connection stays open")
			}
		})
	}
	t.Run("upgrade/refused", func(t *testing.T) {
		be.set(byPath(map[string]handler{
			"/ws":   answer("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno"),
			"/next": be.echo}))
		c := dial(t, g.addr)
		c.send(upgradeRequest)
		if r := c.response("GET"); r.status != 403 || string(r.body) != "no" {
			t.Errorf("got %q%q", r.raw, r.body)
		}
		if q := seen(t, c.get("a", "/next")); q.target != "/next" { // the connection speaks HTTP on
			t.Errorf("backend got %q", q.raw)
		}
	})
	t.Run("upgrade/ignored", func(t *testing.T) { // 200 instead of 101
		be.set(be.echo)
		c := dial(t, g.addr)
		c.send(upgradeRequest)
		seen(t, c.response("GET"))
		seen(t, c.get("a", "/next"))
	})
	t.Run("upgrade/outlives-timeouts", func(t *testing.T) { // response, idle and request timeouts end before a tunnel does
		be.set(tunnelEcho)
		c := dial(t, g.addr)
		upgrade(t, c)
		c.patient(20 * time.Second)
		for range 2 {
			time.Sleep(1700 * time.Millisecond)
			if err := c.pingpong("still there?"); err != nil {
				t.Fatalf("the tunnel ended: %v", err)
			}
		}
	})
	t.Run("upgrade/bulk-both-ways", func(t *testing.T) {
		be.set(tunnelEcho)
		c := dial(t, g.addr)
		upgrade(t, c)
		payload := make([]byte, 8<<20)
		rand.Read(payload)
		go func() {
			c.Write(payload)
			c.halfClose()
		}()
		all, err := io.ReadAll(c.br)
		if err != nil || !bytes.Equal(all, payload) {
			t.Errorf("got %d bytes, want %d equal ones; %v", len(all), len(payload), err)
		}
	})
}
