//go:build linux

package reactor

import (
	"net"
	"testing"
)

// A paused connection can be asked whether its peer has closed.
func TestPeerEnded(t *testing.T) {
	r := start(t, Options{Workers: 1})
	l := r.Loops()[0]
	conns := make(chan *Conn, 1)
	ln := listenOn(t, r, func(_ *Loop, c *Conn) Handler {
		c.PauseRead()
		conns <- c
		return &probe{}
	})
	ended := func(c *Conn) (yes bool) {
		on(t, l, func() { yes = c.PeerEnded() })
		return yes
	}
	for name, end := range map[string]func(*net.TCPConn) error{
		"half-closed": (*net.TCPConn).CloseWrite,
		"closed":      (*net.TCPConn).Close,
	} {
		t.Run(name, func(t *testing.T) {
			nc := dialTCP(t, ln.Addr())
			c := <-conns
			mustWrite(t, nc, []byte("unread"))
			if ended(c) {
				t.Fatal("an open connection has ended")
			}
			if err := end(nc); err != nil {
				t.Fatal(err)
			}
			eventually(t, "its end is seen", func() bool { return ended(c) })
		})
	}
	nc := dialTCP(t, ln.Addr())
	c := <-conns
	on(t, l, func() { c.Abort(nil) })
	eventually(t, "our own end is seen", func() bool { return ended(c) })
	_ = nc.Close()
}
