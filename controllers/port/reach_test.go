package port

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"
)

// listen returns a socket that takes connections and closes them when their
// clients do, and its address.
func listen(t *testing.T, address string) netip.AddrPort {
	t.Helper()
	ln, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(io.Discard, c)
				c.Close()
			}()
		}
	}()
	return netip.MustParseAddrPort(ln.Addr().String())
}

func TestReach(t *testing.T) {
	front, back := listen(t, "127.0.0.1:0"), listen(t, "127.0.0.1:0")
	refusing := listen(t, "127.0.0.1:0")
	lazy, err := net.Listen("tcp", "127.0.0.1:0") // nobody accepts: the kernel does
	if err != nil {
		t.Fatal(err)
	}
	defer lazy.Close()
	waiting := netip.MustParseAddrPort(lazy.Addr().String())
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := netip.MustParseAddrPort(closed.Addr().String())
	closed.Close()
	slow := listen(t, "127.0.0.1:0")
	far := netip.MustParseAddrPort("192.0.2.1:80")

	// The dialer stands for the rules of the host.
	var d net.Dialer
	h := New(Options{Proc: translated{os.DirFS("/proc"), back, front}, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		switch address {
		case front.String():
			return d.DialContext(ctx, network, back.String())
		case refusing.String():
			return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
		case slow.String():
			<-ctx.Done()
			return nil, ctx.Err()
		case far.String():
			t.Error("dialled an address of another host")
			return nil, errors.New("far")
		}
		return d.DialContext(ctx, network, address)
	}})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	want := map[netip.AddrPort]Verdict{back: Arrives, waiting: Arrives, nobody: Unknown, refusing: Refused}
	var addrs []netip.AddrPort
	for a := range want {
		addrs = append(addrs, a)
	}
	got := h.Reach(ctx, append(addrs, far))
	if _, told := got[far]; told {
		t.Error("a verdict on an address of another host")
	}
	for a, v := range want {
		if got[a] != v {
			t.Errorf("%v: %v, want %v", a, got[a], v)
		}
	}
	if got := h.Reach(ctx, []netip.AddrPort{front, slow}); got[slow] != Unknown || got[front] != Unknown {
		t.Errorf("%v: without the time to look twice nothing is certain", got)
	}
	if got := h.Reach(t.Context(), []netip.AddrPort{front}); got[front] != Diverted {
		t.Errorf("%v: want it diverted", got)
	}
}

// translated is this machine's /proc, with one address in the place of another
// where a client sees it: as the kernel shows a connection that it redirects.
type translated struct {
	fs.FS
	from, to netip.AddrPort
}

func (x translated) Open(name string) (fs.File, error) {
	text, err := fs.ReadFile(x.FS, name)
	if err != nil {
		return nil, err
	}
	remote := func(a netip.AddrPort) string {
		b := a.Addr().As4()
		return fmt.Sprintf(" %08X:%04X ", binary.NativeEndian.Uint32(b[:]), a.Port())
	}
	lines := strings.SplitAfter(string(text), "\n")
	for i, line := range lines {
		lines[i] = strings.Replace(line, remote(x.from)+"01 ", remote(x.to)+"01 ", 1)
	}
	return fstest.MapFS{"table": {Data: []byte(strings.Join(lines, ""))}}.Open("table")
}

// Over IPv6, and without a readable table.
func TestReachOtherTables(t *testing.T) {
	a := listen(t, "[::1]:0")
	if got := New(Options{}).Reach(t.Context(), []netip.AddrPort{a}); got[a] != Arrives {
		t.Errorf("%v: %v, want it to arrive", a, got[a])
	}
	if got := New(Options{Proc: proc("", "")}).Reach(t.Context(), []netip.AddrPort{a}); got[a] != Unknown {
		t.Errorf("%v: %v, want it unknown: the table does not have our own end", a, got[a])
	}
}
