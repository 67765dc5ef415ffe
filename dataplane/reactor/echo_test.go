//go:build linux

package reactor

import (
	"io"
	"net"
	"net/netip"
	"testing"
)

type echoH struct{}

func (echoH) OnRead(c *Conn, p []byte) {
	if len(p) == 0 {
		c.Close()
		return
	}
	c.Write(p)
}
func (echoH) OnDrained(c *Conn)          {}
func (echoH) OnClose(c *Conn, err error) {}

func TestEcho(t *testing.T) {
	r, err := New(Options{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := r.Listen(netip.MustParseAddrPort("127.0.0.1:0"), func(*Loop, *Conn) Handler { return echoH{} })
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		nc, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		nc.Write([]byte("hello"))
		nc.(*net.TCPConn).CloseWrite()
		b, err := io.ReadAll(nc)
		if string(b) != "hello" || err != nil {
			t.Fatal(string(b), err)
		}
		nc.Close()
	}
	r.Close()
}
