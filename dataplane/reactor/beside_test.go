//go:build linux

package reactor

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A port is shared only by those who both want to: what was bound first is bound
// alone, and stays alone unless it was opened to others.
func TestListenBeside(t *testing.T) {
	for name, c := range map[string]struct {
		first   Options
		beside  bool
		refused bool
	}{
		"both want to":            {Options{Share: true}, true, false},
		"the first one does not":  {Options{}, true, true},
		"the second one does not": {Options{Share: true}, false, true},
		"one of many loops":       {Options{Workers: 2, Placement: ReusePort}, true, false},
		"none":                    {Options{Workers: 2, Placement: ReusePort}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			ln := listenOn(t, start(t, c.first), echo)
			r := start(t, Options{Workers: 2})
			listen := r.Listen
			if c.beside {
				listen = r.ListenBeside
			}
			second, err := listen(ln.Addr(), echo)
			if c.refused {
				if !errors.Is(err, unix.EADDRINUSE) {
					t.Fatalf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			eventually(t, "both accept", func() bool {
				nc := dialTCP(t, ln.Addr())
				mustWrite(t, nc, []byte("x"))
				mustRead(t, nc, 1)
				return r.Loops()[0].Stats().Accepted+r.Loops()[1].Stats().Accepted > 0 &&
					ln.reactor.Loops()[0].Stats().Accepted > 0
			})
			if second.Addr() != ln.Addr() {
				t.Errorf("the second one listens on %v", second.Addr())
			}
		})
	}
}

// Another user can't share a port, whatever it sets: the kernel sees to it.
func TestListenBesideAnotherUser(t *testing.T) {
	const variable = "REACTOR_TEST_BESIDE"
	if addr := os.Getenv(variable); addr != "" {
		r := start(t, Options{})
		if _, err := r.ListenBeside(mustAddr(addr), echo); !errors.Is(err, unix.EADDRINUSE) {
			t.Errorf("got %v", err)
		}
		return
	}
	if os.Geteuid() != 0 {
		t.Log("not root: the kernel's rule is not looked at")
		return
	}
	ln := listenOn(t, start(t, Options{Share: true}), echo)
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestListenBesideAnotherUser$", "-test.count=1")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), variable+"="+ln.Addr().String())
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65533, Gid: 65533}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// With ReusePort every loop's queue is handed over.
func TestAdoptManySockets(t *testing.T) {
	old := start(t, Options{Workers: 3, Placement: ReusePort})
	ln := listenOn(t, old, echo)
	ln.Pause()
	for _, l := range old.Loops() {
		on(t, l, func() {})
	}
	var waiting []net.Conn
	for range 24 {
		nc := dialTCP(t, ln.Addr())
		mustWrite(t, nc, []byte("x"))
		waiting = append(waiting, nc)
	}
	files, err := ln.Files()
	if err != nil {
		t.Fatal(err)
	}
	var fds []int
	for _, f := range files {
		fd, err := unix.Dup(int(f.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		fds = append(fds, fd)
		_ = f.Close()
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]Options{"as many loops": {Workers: 3, Placement: ReusePort}, "an acceptor": {Workers: 2}} {
		copies := make([]int, len(fds))
		for i, fd := range fds {
			if copies[i], err = unix.Dup(fd); err != nil {
				t.Fatal(err)
			}
		}
		r := start(t, o)
		if _, err := r.Adopt(copies, echo); err != nil {
			t.Fatal(name, err)
		}
		for _, nc := range waiting {
			mustRead(t, nc, 1)
			_ = nc.Close()
		}
		waiting = nil
		for range 12 {
			nc := dialTCP(t, ln.Addr())
			mustWrite(t, nc, []byte("y"))
			mustRead(t, nc, 1)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	other := listenOn(t, start(t, Options{}), echo)
	f, err := file(other)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := start(t, Options{}).Adopt([]int{fds[0], int(f.Fd())}, echo); err == nil {
		t.Error("sockets of two addresses were adopted as one")
	}
	closeAll(fds)
}
