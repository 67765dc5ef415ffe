//go:build linux

package reactor

import (
	"errors"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestListenBelowUnprivileged takes the right to bind low ports out of effect,
// as it is for a program with the file capability cap_net_bind_service=p. What
// the process is permitted decides what is wanted: root may do it, others not.
func TestListenBelowUnprivileged(t *testing.T) {
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_unprivileged_port_start")
	if err != nil {
		t.Fatal(err)
	}
	start, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		sets, err := capabilities()
		if err != nil {
			t.Error(err)
			return
		}
		sets[0].Effective &^= bindService
		if err := setCapabilities(sets); err != nil {
			t.Error(err)
			return
		}
		permitted := start <= 1 || sets[0].Permitted&bindService != 0
		for port := uint16(1023); ; port-- {
			fd, err := listen(netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port), false, false)
			if errors.Is(err, unix.EADDRINUSE) && port > 1 {
				continue
			}
			if err == nil {
				closeFD(fd)
			}
			if permitted && err != nil || !permitted && !errors.Is(err, unix.EACCES) {
				t.Errorf("port %d: %v; permitted: %v", port, err, permitted)
			}
			break
		}
		if after, err := capabilities(); err != nil || after != sets {
			t.Errorf("capabilities %+v, %v; before: %+v", after, err, sets)
		}
	}()
	<-done
}

func TestPrivileged(t *testing.T) {
	for _, want := range []error{nil, unix.EADDRINUSE, errors.New("other")} {
		calls := 0
		err := privileged(func() error { calls++; return want })
		if !errors.Is(err, want) || calls != 1 {
			t.Errorf("%v: got %v after %d calls", want, err, calls)
		}
	}
}
